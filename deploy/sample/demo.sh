#!/usr/bin/env bash
#
# Shows what TOC does for the sample shop, with real numbers, and checks each
# step: exit code 1 and a message when something is not as it says.
#
#   deploy/local/toc demo
#
# Needs toc-shop and tocctl on the PATH, and a running cluster's TOC_SHOP,
# TOC_SCHEDULER and TOC_ADMIN (deploy/local/toc env). May run any number of
# times: each run has orders of its own.

set -euo pipefail

: "${TOC_SHOP:?is not set: eval \"\$(deploy/local/toc env)\"}"
: "${TOC_SCHEDULER:?is not set: eval \"\$(deploy/local/toc env)\"}"

RUN=$(printf '%(%H%M%S)T' -1)-$$
BEGAN=${EPOCHREALTIME/./}

say()
{
    printf '%s\n' "$*"
}

title()
{
    printf '\n== %s\n' "$*"
}

fail()
{
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

# Shows a command and its output, two columns in.
show()
{
    local out rc=0
    printf '$ %s\n' "$*"
    out=$("$@" 2>&1) || rc=$?
    printf '%s\n' "$out" | sed 's/^/  /; s/ *$//'
    ((rc == 0)) || fail "$1 has failed (exit code $rc)"
}

# wait_for SECONDS WHAT COMMAND...: until COMMAND succeeds.
wait_for()
{
    local limit=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" 2>/dev/null; do
        ((SECONDS <= limit)) || fail "waited in vain: $what"
        sleep 0.1
    done
}

order_state()
{
    toc-shop order get "$1" | awk 'NR == 2 { print $2 }'
}

order_is()
{
    [[ $(order_state "$1") == "$2" ]]
}

task_state()
{
    tocctl get "order/$1/pay" -o json |
        grep -m 1 -o '"state": *"[A-Z_]*"' | grep -o '[A-Z]*"$' | tr -d '"'
}

task_is()
{
    [[ $(task_state "$1") == "$2" ]]
}

task_id()
{
    tocctl get "order/$1/pay" -o id
}

# calls ID: attempt, due, arrival, lateness in ms, answer of each call.
calls()
{
    toc-shop calls "$1" | awk 'NR > 1 {
        answer = $7
        for (i = 8; i <= NF; i++) answer = answer " " $i
        print $3, $4, $5, $6, answer
    }'
}

show_calls()
{
    local attempt due arrived late answer
    while read -r attempt due arrived late answer; do
        say "  attempt $attempt: due $due, called $arrived, $late ms late;" \
            "the shop answered: $answer"
        ((late >= 0)) || fail "TOC called early: $late ms"
    done < <(calls "$1")
}

called_times()
{
    (($(calls "$1" | wc -l) >= $2))
}

stock_available()
{
    toc-shop stock "$1" | awk 'NR == 2 { print $2 }'
}

unpaid()
{
    local id=$RUN-a before
    title "1. An order that nobody pays is closed at its millisecond"
    before=$(stock_available tea)
    show toc-shop order create "$id" tea 2 3s
    (($(stock_available tea) == before - 2)) ||
        fail "2 pieces should be reserved"
    say "  2 of $before pieces of tea are reserved; 3 s to pay ..."
    wait_for 15 "order $id is closed" order_is "$id" TIMEOUT_CANCELLED
    [[ $(calls "$id" | wc -l) == 1 ]] || fail "TOC should call once"
    show_calls "$id"
    show toc-shop order get "$id"
    (($(stock_available tea) == before)) ||
        fail "the pieces should be back in stock"
    say "  the 2 pieces are back: $before available"
}

paid()
{
    local id=$RUN-b
    title "2. An order paid a second before its time is up is left alone"
    toc-shop order create "$id" tea 1 3s >/dev/null
    sleep 2
    show toc-shop order pay "$id"
    task_is "$id" CANCELLED ||
        fail "the timeout should be CANCELLED, it is $(task_state "$id")"
    sleep 2
    [[ -z $(calls "$id") ]] || fail "TOC called although the order was paid"
    order_is "$id" PAID || fail "the order should be PAID"
    say "  a second after its time: order PAID, timeout CANCELLED, not called"
}

retried()
{
    local id=$RUN-c
    title "3. A shop that fails is called again"
    show toc-shop mode failing
    toc-shop order create "$id" tea 1 1s 15s >/dev/null
    wait_for 15 "the failure is recorded" task_failed "$id"
    show tocctl describe "order/$id/pay"
    task_is "$id" RETRY ||
        fail "the timeout should be in RETRY, it is $(task_state "$id")"
    say "  it will be called again 15 s after the failure; the shop is up sooner"
    show toc-shop mode up
    show tocctl run-now "order/$id/pay" --reason repaired
    wait_for 15 "the timeout succeeds" task_is "$id" SUCCESS
    order_is "$id" TIMEOUT_CANCELLED || fail "the order should be closed"
    show_calls "$id"
}

task_failed()
{
    tocctl describe "order/$1/pay" | grep -q 'the shop is failing'
}

dead()
{
    local id=$RUN-d task
    title "4. A shop that goes on failing leaves a dead letter, to be redriven"
    toc-shop mode failing >/dev/null
    toc-shop order create "$id" tea 1 500ms 1s,1s >/dev/null
    say "  two retries, a second apart: three attempts ..."
    wait_for 20 "the timeout is DEAD" task_is "$id" DEAD
    [[ $(calls "$id" | wc -l) == 3 ]] || fail "there should be 3 attempts"
    show_calls "$id"
    show tocctl dead list --biz-type order --biz-id "$id"
    task=$(task_id "$id")
    tocctl dead list | grep -q "$task" ||
        fail "task $task should be among the dead letters"
    toc-shop mode up >/dev/null
    say "  the shop is up again"
    show tocctl dead redrive "$task"
    wait_for 15 "the redriven timeout succeeds" task_is "$id" SUCCESS
    order_is "$id" TIMEOUT_CANCELLED || fail "the order should be closed"
    show toc-shop order get "$id"
}

main()
{
    local command
    for command in toc-shop tocctl; do
        command -v "$command" >/dev/null ||
            fail "$command is not on the PATH (build/release/bin)"
    done
    trap 'toc-shop mode up >/dev/null 2>&1 || true' EXIT
    toc-shop mode up >/dev/null
    unpaid
    paid
    retried
    dead
    printf '\nall as it should be, in %d s\n' \
        $(((${EPOCHREALTIME/./} - BEGAN) / 1000000))
}

main "$@"
