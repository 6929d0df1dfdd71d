# shellcheck shell=bash
# TOC's own processes: building, starting, readiness, addresses.

ROLE_TARGETS=(toc-scheduler toc-executor toc-admin tocctl toc-shop)

# Names of the roles of this cluster, in the order in which they start.
role_names()
{
    local i
    [[ ${SETTINGS[roles]} == yes ]] || return 0
    for ((i = 1; i <= SETTINGS[schedulers]; i++)); do
        say "scheduler-$i"
    done
    for ((i = 1; i <= SETTINGS[executors]; i++)); do
        say "executor-$i"
    done
    say "admin-1"
    say "shop"
}

role_program()
{
    printf '%s/bin/toc-%s' "${SETTINGS[build_dir]}" "${1%-*}"
}

role_address()
{
    printf '127.0.0.1:%s' "${PORTS[$(upper "$1")]:-?}"
}

scheduler_addresses()
{
    local i list=
    for ((i = 1; i <= SETTINGS[schedulers]; i++)); do
        list+=,$(role_address "scheduler-$i")
    done
    printf '%s' "${list:1}"
}

# The environment of one role, sorted. $TOC_HOME/roles.env may add lines
# NAME=VALUE, for experiments; those of here win.
role_env()
{
    local name=$1
    {
        if [[ $name == shop ]]; then
            say "TOC_SCHEDULER=$(scheduler_addresses)"
            say "TOC_SHOP_LISTEN=$(role_address "$name")"
        else
            servers_env
            say "TOC_LISTEN=$(role_address "$name")"
            say "TOC_NODE=$name"
            say "TOC_PARTITIONS=${SETTINGS[partitions]}"
        fi
        if [[ -n ${TOC_LOG_LEVEL:-} ]]; then
            say "TOC_LOG_LEVEL=$TOC_LOG_LEVEL"
        fi
        if [[ -f $TOC_HOME/roles.env ]]; then
            grep -E '^TOC_[A-Z_]+=' "$TOC_HOME/roles.env" || true
        fi
    } | LC_ALL=C sort -s -t= -k1,1 -u
}

# Does NAME, which runs, run what would be started now? Not after a build, a
# change of options, or a server's move to another port.
role_current()
{
    local name=$1 now wanted
    proc_alive "$name" || return 1
    [[ $(readlink -- "/proc/$PROC_PID/exe") == "$(role_program "$name")" ]] ||
        return 1
    now=$(tr '\0' '\n' <"/proc/$PROC_PID/environ" | grep '^TOC_' |
        grep -v '^TOC_LOG_LEVEL=' | LC_ALL=C sort) || true
    wanted=$(role_env "$name" | grep -v '^TOC_LOG_LEVEL=' | LC_ALL=C sort)
    [[ $now == "$wanted" ]]
}

role_start()
{
    local name=$1 program
    local -a vars
    program=$(role_program "$name")
    [[ -x $program ]] ||
        die "no program $program: run toc up without --no-build"
    port_ensure "$(upper "$name")" "$name"
    mapfile -t vars < <(role_env "$name")
    proc_start "$name" "$TOC_HOME/run" env "${vars[@]}" "$program"
    say "starting  $name ($(role_address "$name"))"
}

role_ready()
{
    timeout 5 "${SETTINGS[build_dir]}/bin/tocctl" health "$(role_address "$1")"
}

role_wait()
{
    proc_wait_ready "$1" 60 "see the log above (toc status tells whether the \
servers are ready)" \
        role_ready "$1"
}

roles_any_alive()
{
    local name
    while read -r name; do
        ! proc_alive "$name" || return 0
    done < <(role_names)
    return 1
}

# All addresses are told as soon as one role runs: a client must know the
# scheduler too that is dead at the moment.
roles_env()
{
    local i list=
    roles_any_alive || return 0
    for ((i = 1; i <= SETTINGS[executors]; i++)); do
        list+=,$(role_address "executor-$i")
    done
    say "TOC_SCHEDULER=$(scheduler_addresses)"
    say "TOC_EXECUTOR=${list:1}"
    say "TOC_ADMIN=$(role_address admin-1)"
    say "TOC_SHOP=$(role_address shop)"
}

# Stops what an earlier up with more schedulers or executors has left.
roles_stop_surplus()
{
    local name names
    local -a surplus=()
    names=$(role_names)
    while read -r name; do
        if ! is_server "$name" &&
            [[ $'\n'$names$'\n' != *$'\n'"$name"$'\n'* ]]; then
            surplus+=("$name")
        fi
    done < <(proc_known)
    proc_stop ${surplus[@]+"${surplus[@]}"}
}

# Ports first, all of them: each role's environment names those of others.
roles_ensure_ports()
{
    local name
    while read -r name; do
        port_ensure "$(upper "$name")" "$name"
    done < <(role_names)
}

roles_up()
{
    local name began
    local -a names started=()
    build_run
    began=$(now_ms)
    mapfile -t names < <(role_names)
    roles_ensure_ports
    roles_stop_surplus
    for name in "${names[@]}"; do
        if role_current "$name"; then
            say "running   $name ($(role_address "$name"))"
            continue
        fi
        if proc_alive "$name"; then
            say "renewing  $name: its program or its settings have changed"
            proc_stop "$name"
        fi
        role_start "$name"
        started+=("$name")
        # the first scheduler brings the schema up to date; all need it
        [[ $name != scheduler-1 ]] || role_wait "$name"
    done
    for name in "${names[@]}"; do
        role_wait "$name"
    done
    if ((${#started[@]} > 0)); then
        say "ready     ${started[*]} ($(seconds_since "$began") s)"
    fi
}

build_run()
{
    local dir=${SETTINGS[build_dir]} log=$TOC_HOME/log/build.log start target
    if [[ -z $OPT_NO_BUILD ]]; then
        start=$(now_ms)
        say "building  TOC in $dir (log: $log)"
        : >"$log"
        mkdir -p -- "$dir"
        exec 8>>"$dir/.toc-build.lock"
        flock -w 1800 8 || die "another build in $dir does not end"
        run_shown "the build" "$log" build_locked "$dir" || {
            show_log_end "$log"
            die "the build failed"
        }
        exec 8>&-
        say "built     TOC ($(seconds_since "$start") s)"
    fi
    for target in "${ROLE_TARGETS[@]}"; do
        [[ -x $dir/bin/$target ]] ||
            die "$dir/bin/$target is missing: build it, or leave out --no-build"
    done
}

# Only what the cluster runs; ninja knows what is out of date.
build_locked()
{
    local dir=$1
    cd -- "$REPO_DIR" || return 1
    if [[ ! -f $dir/CMakeCache.txt ]]; then
        cmake --preset release -B "$dir" || return 1
    fi
    cmake --build "$dir" --target "${ROLE_TARGETS[@]}"
}

endpoints_print()
{
    local name
    say ""
    say "endpoints"
    while read -r name; do
        printf '  %-13s %s\n' "$name" "$(address_of "$name")"
    done < <(all_names)
    say ""
}

command_demo()
{
    local script=$REPO_DIR/deploy/sample/demo.sh line
    home_need
    roles_any_alive || die "the cluster does not run: toc up"
    [[ -f $script ]] || die "there is no $script"
    (
        while IFS= read -r line; do
            export "${line?}"
        done < <(
            servers_env
            roles_env
        )
        export PATH="${SETTINGS[build_dir]}/bin:$PATH"
        exec bash "$script"
    ) || die "the demonstration failed; the cluster runs on (toc logs, toc down)"
    demo_print_next
}

demo_print_next()
{
    local toc
    toc=$(quote "$LOCAL_DIR/toc")$(home_option)
    cat <<NEXT

what to try next
  eval "\$($toc env)"
  export PATH=$(quote "${SETTINGS[build_dir]}/bin"):\$PATH
  tocctl help             all that the command line can do
  $toc kill scheduler-1   then submit again: nothing is lost
  $toc start scheduler-1
  $toc down               stop everything, keep the data
NEXT
}
