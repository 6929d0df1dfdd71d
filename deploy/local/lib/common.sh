# shellcheck shell=bash
# Words to the user, bounded waits, and the lock of a home. Sourced by toc.
#
# Errors: `die` ends the command with code 1, `usage_error` with code 2.

say()
{
    printf '%s\n' "$*"
}

warn()
{
    printf 'toc: %s\n' "$*" >&2
}

die()
{
    warn "$*"
    exit 1
}

usage_error()
{
    warn "$*"
    warn "try: toc help"
    exit 2
}

# Quote a value so that a shell reads it back as one word.
quote()
{
    local v=$1
    if [[ $v =~ ^[A-Za-z0-9_./:,@%+=-]+$ ]]; then
        printf '%s' "$v"
    else
        printf "'%s'" "${v//\'/\'\\\'\'}"
    fi
}

now_ms()
{
    local t=${EPOCHREALTIME/[.,]/}
    printf '%s' "$((t / 1000))"
}

# seconds_since MS: "3.2"
seconds_since()
{
    local d=$(($(now_ms) - $1))
    printf '%d.%d' $((d / 1000)) $((d % 1000 / 100))
}

# upper NAME: scheduler-1 -> SCHEDULER_1, usable in a variable's name
upper()
{
    local v=${1//[^A-Za-z0-9]/_}
    printf '%s' "${v^^}"
}

# random_token N: N letters and digits
random_token()
{
    local s=
    while ((${#s} < $1)); do
        s+=$(head -c 48 /dev/urandom | base64 -w0 | tr -d '+/=')
    done
    printf '%s' "${s:0:$1}"
}

# Show that something long is alive: dots on a terminal, else a line now and
# then. alive_tick WHAT ELAPSED_MS; alive_end closes the line of dots.
ALIVE_DOTS=0
ALIVE_NEXT_MS=0

alive_begin()
{
    ALIVE_DOTS=0
    ALIVE_NEXT_MS=2000
}

alive_tick()
{
    local what=$1 elapsed=$2
    ((elapsed >= ALIVE_NEXT_MS)) || return 0
    if [[ -t 1 ]]; then
        ((ALIVE_DOTS > 0)) || printf '  waiting for %s ' "$what"
        printf '.'
        ALIVE_DOTS=$((ALIVE_DOTS + 1))
        ALIVE_NEXT_MS=$((elapsed + 1000))
    else
        say "  still waiting for $what ($((elapsed / 1000)) s)"
        ALIVE_NEXT_MS=$((elapsed + 10000))
    fi
}

alive_end()
{
    if ((ALIVE_DOTS > 0)); then
        printf '\n'
    fi
    ALIVE_DOTS=0
}

# run_shown WHAT LOG COMMAND...: run a long command with its output in LOG,
# show that it is alive, return its code. It is a process group of its own, so
# that an interrupt can end all of it.
RUN_GROUP=

interrupted()
{
    trap '' INT TERM
    alive_end
    if [[ -n $RUN_GROUP ]]; then
        kill -TERM -- "-$RUN_GROUP" 2>/dev/null || true
    fi
    die "interrupted; toc down stops what was started"
}

run_shown()
{
    local what=$1 log=$2 pid rc=0 start
    shift 2
    start=$(now_ms)
    alive_begin
    set -m
    "$@" </dev/null >>"$log" 2>&1 9>&- &
    pid=$!
    set +m
    RUN_GROUP=$pid
    while kill -0 "$pid" 2>/dev/null; do
        alive_tick "$what" $(($(now_ms) - start))
        sleep 0.1
    done
    wait "$pid" || rc=$?
    RUN_GROUP=
    alive_end
    return "$rc"
}

show_log_end()
{
    local log=$1
    if [[ -s $log ]]; then
        warn "the last lines of $log:"
        tail -n 15 -- "$log" | sed 's/^/    /' >&2
    else
        warn "its log $log is empty"
    fi
}

# One command at a time works on a home. The lock is descriptor 9; whatever
# is started closes it, or a server would hold the lock for its whole life.
lock_home()
{
    exec 9>>"$TOC_HOME/.lock"
    if ! flock -n 9; then
        say "another toc command works on $TOC_HOME, waiting for it"
        flock -w 600 9 || die "it did not end within 10 minutes"
    fi
    [[ $TOC_HOME/.lock -ef /dev/fd/9 ]] ||
        die "$TOC_HOME was removed meanwhile: run this again"
}

unlock_home()
{
    exec 9>&-
}
