# shellcheck shell=bash
# The commands.

command_up()
{
    local began
    began=$(now_ms)
    home_create
    lock_home
    settings_load
    ports_load
    say "toc: cluster in $TOC_HOME"
    trap interrupted INT TERM
    if [[ -n $OPT_SERVERS_ONLY ]]; then
        packages_install server
    else
        packages_install server build
        SETTINGS[roles]=yes
    fi
    settings_save
    servers_up
    if [[ -z $OPT_SERVERS_ONLY ]]; then
        roles_up
    fi
    unlock_home
    trap - INT TERM
    say "up in $(seconds_since "$began") s"
    if [[ -n $OPT_SERVERS_ONLY ]]; then
        say "next: eval \"\$($(quote "$LOCAL_DIR/toc") env$(home_option))\""
        return
    fi
    endpoints_print
    [[ -n $OPT_NO_DEMO ]] || command_demo
}

# how to name this home on a command line
home_option()
{
    if [[ -n $OPT_HOME ]]; then
        printf ' --home %s' "$(quote "$TOC_HOME")"
    fi
}

# Everything that should run, in starting order, then what else has a pid file.
all_names()
{
    local name
    local -A seen=()
    {
        printf '%s\n' mariadb etcd kafka
        role_names
        proc_known
    } | while read -r name; do
        if [[ -z ${seen[$name]:-} ]]; then
            seen[$name]=yes
            printf '%s\n' "$name"
        fi
    done
}

address_of()
{
    if is_server "$1"; then
        "$1_address"
    else
        role_address "$1"
    fi
}

ready_of()
{
    if is_server "$1"; then
        "$1_ready"
    else
        role_ready "$1"
    fi
}

command_status()
{
    local name pid since ready rc=0
    home_need
    say "cluster in $TOC_HOME"
    printf '%-13s %-8s %-20s %-22s %s\n' NAME PID "UP SINCE" ADDRESS READY
    while read -r name; do
        pid=-
        since=-
        ready=no
        if proc_alive "$name"; then
            pid=$PROC_PID
            printf -v since '%(%F %T)T' "$PROC_SINCE"
            if ready_of "$name" >/dev/null 2>&1; then
                ready=yes
            fi
        elif [[ -e $(pid_file_of "$name") ]]; then
            ready=died
        else
            ready=stopped
        fi
        [[ $ready == yes ]] || rc=1
        printf '%-13s %-8s %-20s %-22s %s\n' "$name" "$pid" "$since" \
            "$(address_of "$name")" "$ready"
    done < <(all_names)
    return "$rc"
}

command_env()
{
    local line
    home_need
    servers_any_alive || die "no server runs in $TOC_HOME (toc up starts them)"
    while IFS= read -r line; do
        printf 'export %s=%s\n' "${line%%=*}" "$(quote "${line#*=}")"
    done < <(
        servers_env
        roles_env
    )
}

log_names()
{
    local f
    for f in "$TOC_HOME"/log/*.log; do
        f=${f##*/}
        printf '%s ' "${f%.log}"
    done
}

command_logs()
{
    local name=${1:-}
    local -a files
    home_exists || die "no cluster in $TOC_HOME"
    if [[ -n $name ]]; then
        files=("$(log_of "$name")")
        [[ -f ${files[0]} && $name != */* ]] ||
            die "no log of $name; there are: $(log_names)"
    else
        files=("$TOC_HOME"/log/*.log)
    fi
    if [[ -n $OPT_FOLLOW ]]; then
        exec tail -n 20 -F -- "${files[@]}"
    fi
    tail -n "$([[ -n $name ]] && printf 200 || printf 20)" -- "${files[@]}"
}

# Stops in reverse order; processes of one kind stop together.
stop_all()
{
    local name kind
    local -A group=()
    while read -r name; do
        kind=${name%-*}
        ! is_server "$name" || kind=server
        group[$kind]+=" $name"
    done < <(proc_known)
    for kind in shop admin executor scheduler server; do
        # shellcheck disable=SC2086 # words: names have no spaces
        proc_stop ${group[$kind]:-}
        unset "group[$kind]"
    done
    for kind in "${!group[@]}"; do
        # shellcheck disable=SC2086
        proc_stop ${group[$kind]}
    done
}

command_down()
{
    home_need
    lock_home
    stop_all
    say "down; the data stays in $TOC_HOME"
}

command_destroy()
{
    local answer
    if [[ ! -e $TOC_HOME ]]; then
        say "nothing to remove: $TOC_HOME does not exist"
        return 0
    fi
    home_exists || die "$TOC_HOME has no $HOME_MARKER: not ours, not removed"
    if [[ -z $OPT_YES ]]; then
        [[ -t 0 ]] || die "this removes all data in $TOC_HOME: say --yes"
        read -r -p "Remove all data in $TOC_HOME? [y/N] " answer || answer=
        [[ $answer == [yY]* ]] || die "nothing removed"
    fi
    settings_load
    ports_load
    lock_home
    stop_all
    ports_release
    rm -rf --one-file-system -- "$TOC_HOME"
    say "removed   $TOC_HOME"
}

known_name()
{
    local names
    names=$(all_names)
    [[ $'\n'$names$'\n' == *$'\n'"$1"$'\n'* ]] ||
        die "no process is named $1; there are: ${names//$'\n'/ }"
}

# No lock: a test may kill one process while another is being started.
command_kill()
{
    local name=$1 signal=${2:-KILL} number
    home_need
    known_name "$name"
    signal=${signal#SIG}
    number=$(kill -l "$signal" 2>/dev/null) || usage_error "no signal $signal"
    [[ $number != [A-Z]* ]] || signal=$number
    proc_alive "$name" || die "$name does not run"
    kill -s "$signal" "$PROC_PID" || die "cannot signal pid $PROC_PID"
    case $signal in
        KILL | TERM | INT)
            proc_wait_gone "$name" 15 || die "$name still runs after 15 s"
            say "ended     $name (SIG$signal)"
            ;;
        *) say "signalled $name (SIG$signal)" ;;
    esac
}

command_start()
{
    local name=$1 began
    home_need
    known_name "$name"
    began=$(now_ms)
    lock_home
    if proc_alive "$name"; then
        say "running   $name ($(address_of "$name"))"
        return
    elif is_server "$name"; then
        "${name}_start"
    else
        role_start "$name"
    fi
    unlock_home
    if is_server "$name"; then
        "${name}_wait"
    else
        role_wait "$name"
    fi
    say "ready     $name ($(seconds_since "$began") s)"
}
