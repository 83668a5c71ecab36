#!/usr/bin/env bats
# hook stop where its surroundings are bad: commands and input without end, a lost session, descriptors that are none.
load ../helper
load stops

@test "an until command that hangs is ended after its time, with all that it started, and the client is blocked" {
    unset_ids
    hf -q keep on --session s --until 'sleep 1000 & echo $! >pid; trap "" TERM; wait; sleep 1000' --until-timeout 1s
    stop "$(event s t 1)"; blocked
    says "sleep 1000"
    [ ! -e pid ] || ! kill -0 "$(cat pid)"
    [ "$(hf keep status --session s --json | jq .until_timeout_ms)" -eq 1000 ]
    # The same event again while nothing asks any more is judged at once.
    hf -q keep on --session s --until 'true'
    stop "$(event s t 2)"; allowed
}

@test "--until-timeout: more than nothing, less than what clients wait, and only with --until" {
    unset_ids
    expect 2 hf keep on --session s --until true --until-timeout 0
    expect 2 hf keep on --session s --until true --until-timeout 10m
    says "9m"
    expect 2 hf keep on --session s --until-timeout 5s
    says "--until"
    expect 0 hf keep on --session s --until true --until-timeout 9m
}

@test "past the deadline of its own session the client is let go at once" {
    unset_ids
    hf -q keep on --session late
    expect 124 hf run late --deadline 3s --grace 15s -- sh -c '
        trap "printf %s \"\$1\" | \"\$2\" hook stop >after; exit 0" TERM
        while :; do sleep 0.05; done' sh "$(event ignored t 1)" "$HOLDFAST"
    [ -e after ]
    [ ! -s after ]
    [ "$(hf journal query --json --event stop_allowed | jq -rs '.[-1].reason')" = stopping ]
}

@test "a client whose session was lost to another run of its name is let go" {
    unset_ids
    expect 0 hf run name -- sh -c '
        "$2" -q keep on
        printf %s "$1" | "$2" hook stop >mine
        printf %s "$1 " | HOLDFAST_TOKEN=1 "$2" hook stop >lost' sh "$(event ignored t 1)" "$HOLDFAST"
    jq -e '.decision == "block"' mine
    [ -e lost ]
    [ ! -s lost ]
    # The run is over, and its variables are still set somewhere.
    HOLDFAST_SESSION=name stop "$(event ignored t 2)"; allowed
    HOLDFAST_SESSION=never stop "$(event ignored t 2)" --session name; allowed
}

@test "umask 0777: work mode and its hooks work, and the record is its owner's alone" {
    unset_ids
    umask 0777
    hf -q keep on --session s
    output=$(event s t 1 | "$HOLDFAST" hook stop)
    umask 022
    blocked
    [ "$(stat -c %a "$HOLDFAST_DIR/modes/s")" = 600 ]
    [ "$(stat -c %a "$HOLDFAST_DIR/modes")" = 700 ]
}

@test "closed stdin, a directory as stdin: let go, exit 0, one event each" {
    unset_ids
    hf -q keep on --session s
    # Closed by the last shell before the hook: one in between would open a file of its own there.
    for hook in stop tool session-start session-end guard; do
        expect 0 hf run "$hook" -- sh -c 'exec "$1" hook "$2" --session s <&-' sh "$HOLDFAST" "$hook"
        [ -z "$output" ]
        expect 0 hf hook "$hook" --session s </
        [ -z "$output" ]
    done
    [ "$(events hook_failed)" -eq 10 ]
    [ "$(hf journal query --json --event hook_failed | jq -rs 'map(.cause) | unique | join(", ")')" = "its input cannot be read, its input is empty" ]
}

@test "closed stdout and a full one: exit 0, and nothing of the answer goes into a file of ours" {
    unset_ids
    hf -q keep on --session s --goal "a goal that is nowhere else"
    # The record has the goal, and nothing else in the state directory may.
    event s t 1 | hf -q hook stop >&-
    event s t 2 | hf -q hook stop >/dev/full
    [ "$(grep -rl "a goal that is nowhere else" "$HOLDFAST_DIR")" = "$HOLDFAST_DIR/modes/s" ]
    [ "$(hf keep status --session s --json | jq .blocks)" -eq 2 ]
}

@test "stdin that never ends, silent or by drops: let go in bounded time, exit 0, one event each" {
    unset_ids
    hf -q keep on --session s
    mkfifo silent drops
    spawn sh -c 'exec "$1" hook stop --session s <silent >one' sh "$HOLDFAST"
    one=$spawned_pid
    spawn sh -c 'exec "$1" hook stop --session s <drops >two' sh "$HOLDFAST"
    two=$spawned_pid
    exec 7>silent 8>drops
    # The writer of drops ends when its reader does.
    spawn sh -c 'while printf " " >&8; do sleep 0.2; done 2>/dev/null'
    exec 8>&-
    wait "$one"
    wait "$two"
    exec 7>&-
    [ ! -s one ]
    [ ! -s two ]
    [ "$(events hook_failed)" -eq 2 ]
    # What writes without a pause has an end as well.
    yes | hf hook stop --session s >three
    [ ! -s three ]
    [ "$(events hook_failed)" -eq 3 ]
}
