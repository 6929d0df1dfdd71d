# shellcheck shell=bash
# Processes of a home: started so that they outlive the shell, found again by
# pid AND start time, so that a pid in use by somebody else is never touched.
#
# run/NAME.pid holds one line: pid, start time in ticks since boot, boot id,
# start as seconds since 1970. It stays when the process dies, which is how
# "died" is told from "stopped".

PROC_PID=
PROC_SINCE=

log_of()
{
    printf '%s/log/%s.log' "$TOC_HOME" "$1"
}

pid_file_of()
{
    printf '%s/run/%s.pid' "$TOC_HOME" "$1"
}

boot_id()
{
    cat /proc/sys/kernel/random/boot_id 2>/dev/null || printf 'none'
}

# start_ticks PID: prints field 22 of stat; fails when gone or a zombie
start_ticks()
{
    local stat fields
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # the name, in parentheses, may hold spaces: cut behind the last ')'
    read -r -a fields <<<"${stat##*)}"
    [[ ${fields[0]} != Z && ${fields[0]} != X ]] || return 1
    printf '%s' "${fields[19]}"
}

# proc_alive NAME: sets PROC_PID and PROC_SINCE
proc_alive()
{
    local pid ticks boot since file
    PROC_PID=
    PROC_SINCE=
    file=$(pid_file_of "$1")
    [[ -f $file ]] || return 1
    read -r pid ticks boot since <"$file" || return 1
    [[ $pid =~ ^[0-9]+$ && $boot == "$(boot_id)" ]] || return 1
    [[ $(start_ticks "$pid") == "$ticks" ]] || return 1
    PROC_PID=$pid
    PROC_SINCE=$since
}

# Closes all but 0, 1 and 2: the lock of the home, and pipes of a caller that
# waits for their end.
close_inherited()
{
    local fd
    for fd in "/proc/$BASHPID/fd"/*; do
        fd=${fd##*/}
        if ((fd > 2)); then
            eval "exec $fd>&-"
        fi
    done
}

# proc_start NAME DIR COMMAND...: NAME must not be running
proc_start()
{
    local name=$1 dir=$2 pid ticks file
    shift 2
    file=$(pid_file_of "$name")
    printf -- '---- %s: toc starts %s\n' "$(date -u +%FT%TZ)" "$name" \
        >>"$(log_of "$name")"
    # setsid: no terminal, no hang-up. The shell makes background commands
    # ignore INT and QUIT; servers want them back.
    (
        cd -- "$dir" || exit 1
        close_inherited
        exec setsid env --default-signal=INT,QUIT "$@"
    ) </dev/null >>"$(log_of "$name")" 2>&1 &
    pid=$!
    disown "$pid"
    ticks=$(start_ticks "$pid") || ticks=0
    printf '%s %s %s %s\n' "$pid" "$ticks" "$(boot_id)" "$(date +%s)" \
        >"$file.new"
    mv -- "$file.new" "$file"
}

# proc_wait_gone NAME SECONDS
proc_wait_gone()
{
    local end=$(($(now_ms) + $2 * 1000))
    while proc_alive "$1"; do
        (($(now_ms) < end)) || return 1
        sleep 0.05
    done
}

# proc_stop NAME...: SIGTERM to all, then wait for each; SIGKILL for one that
# does not end within 15 s
proc_stop()
{
    local name
    for name in "$@"; do
        if proc_alive "$name"; then
            kill -TERM "$PROC_PID" 2>/dev/null || true
            # one that is frozen cannot act on it
            kill -CONT "$PROC_PID" 2>/dev/null || true
        fi
    done
    for name in "$@"; do
        proc_finish "$name"
    done
}

proc_finish()
{
    local name=$1 start file
    file=$(pid_file_of "$name")
    start=$(now_ms)
    if ! proc_alive "$name"; then
        rm -f -- "$file"
        say "stopped   $name"
        return
    fi
    if ! proc_wait_gone "$name" 15 && proc_alive "$name"; then
        warn "$name did not stop within 15 s: killing pid $PROC_PID"
        kill -KILL "$PROC_PID" 2>/dev/null || true
        proc_wait_gone "$name" 10 || die "pid $PROC_PID ($name) does not end"
    fi
    rm -f -- "$file"
    say "stopped   $name ($(seconds_since "$start") s)"
}

# proc_wait_ready NAME SECONDS WHAT_TO_DO PROBE...: polls until PROBE succeeds
proc_wait_ready()
{
    local name=$1 limit_ms=$(($2 * 1000)) hint=$3 start elapsed
    shift 3
    start=$(now_ms)
    alive_begin
    while ! "$@" >/dev/null 2>&1; do
        elapsed=$(($(now_ms) - start))
        if ! proc_alive "$name"; then
            alive_end
            warn "$name ended before it was ready"
            show_log_end "$(log_of "$name")"
            die "$hint"
        fi
        if ((elapsed > limit_ms)); then
            alive_end
            warn "$name was not ready within $((limit_ms / 1000)) s"
            show_log_end "$(log_of "$name")"
            die "$hint"
        fi
        alive_tick "$name" "$elapsed"
        sleep 0.1
    done
    alive_end
}

# Names that have a pid file, oldest known order is the caller's business.
proc_known()
{
    local f
    for f in "$TOC_HOME"/run/*.pid; do
        [[ -e $f ]] || continue
        f=${f##*/}
        printf '%s\n' "${f%.pid}"
    done
}
