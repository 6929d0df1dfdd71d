# shellcheck shell=bash
# The three servers together. For a server S there are S_start, S_ready,
# S_wait and S_address.

# in the order in which they start: the slowest first
SERVERS=(kafka mariadb etcd)

is_server()
{
    [[ " ${SERVERS[*]} " == *" $1 "* ]]
}

servers_up()
{
    local name began
    local -A started=()
    began=$(now_ms)
    for name in "${SERVERS[@]}"; do
        if proc_alive "$name"; then
            continue
        fi
        "${name}_start"
        started[$name]=yes
        say "starting  $name ($("${name}_address"))"
    done
    for name in "${SERVERS[@]}"; do
        "${name}_wait"
        if [[ -n ${started[$name]:-} ]]; then
            say "ready     $name ($(seconds_since "$began") s)"
        else
            say "running   $name ($("${name}_address"))"
        fi
    done
}

servers_any_alive()
{
    local name
    for name in "${SERVERS[@]}"; do
        ! proc_alive "$name" || return 0
    done
    return 1
}

# The variables that programs and tests need to find the servers.
servers_env()
{
    say "TOC_CLUSTER=toc"
    say "TOC_MYSQL=mysql://toc@$(mariadb_address)/toc"
    say "TOC_MYSQL_PASSWORD_FILE=$(mariadb_password_file)"
    say "TOC_ETCD=http://$(etcd_address)"
    say "TOC_KAFKA=$(kafka_address)"
}
