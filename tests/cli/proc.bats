load helper

@test "the identity of a process is one word that check reads back" {
    spawn sleep 60
    id=$(hf proc id "$spawned_pid")
    [[ "$id" =~ ^p1:$spawned_pid:[0-9]+:[0-9]+:[0-9]+:[0-9]+:[0-9a-f-]{36}$ ]]
    expect 0 hf proc check "$id"
    says "alive: pid $spawned_pid runs"
    expect 0 hf proc check --json "$id"
    is_json '.liveness == "alive" and (.evidence | length > 0)'
}

@test "without a pid: the calling shell" {
    out=$(bash -c 'echo $$; "$HOLDFAST" proc id; true')
    [ "$(sed -n 1p <<<"$out")" = "$(sed -n 2p <<<"$out" | cut -d: -f2)" ]
}

@test "a dead process is exit 1, also while it is a zombie (L4)" {
    spawn sleep 60
    id=$(hf proc id "$spawned_pid")
    kill -KILL "$spawned_pid"
    # bash has not waited for it: it is a zombie, or reaped by the time we look. Dead both ways.
    wait_until 5 dead "$id"
    wait "$spawned_pid" || true
    expect 1 hf proc check "$id"
    says "dead"
}
dead() { run hf proc check "$1"; [ "$status" -eq 1 ]; }

@test "another pid namespace and a shifted identity are unknown or dead, never signalled (L6)" {
    spawn sleep 60
    IFS=: read -r p pid ino start tns pns boot < <(hf proc id "$spawned_pid")
    expect 3 hf proc check "$p:$pid:$ino:$start:$tns:1234:$boot"
    says "unknown"
    expect 3 hf proc signal "$p:$pid:$ino:$start:$tns:1234:$boot" KILL
    expect 1 hf proc check "$p:$pid:$ino:$start:$tns:$pns:00000000-0000-0000-0000-000000000000"
    says "earlier boot"
    expect 3 hf proc signal "$p:$pid:$((ino + 1)):$((start + 1)):$tns:$pns:$boot" KILL
    says "another process now"
    kill -0 "$spawned_pid"
    expect 0 hf journal query --event signal_refused --json
    [ "$(wc -l <<<"$output")" -eq 2 ]
}

@test "signal: the right process gets it, and one event tells (L6, L8)" {
    spawn sleep 60
    id=$(hf proc id "$spawned_pid")
    expect 0 hf proc signal "$id" TERM
    ended=0
    wait "$spawned_pid" || ended=$?
    [ "$ended" -eq 143 ] || { echo "ended with $ended"; return 1; }
    expect 1 hf proc signal "$id" TERM
    expect 0 hf journal query --json
    [ "$(jq -rs 'map(.event) | join(" ")' <<<"$output")" = "signal_sent signal_refused" ]
}

@test "signal: init, the own shell and its ancestors are protected" {
    expect 3 hf proc signal "$(hf proc id $$)" TERM
    says "ancestor"
    expect 3 hf proc signal "$(hf proc id 1)" TERM
    says "protected"
}

@test "signal: another user's process is refused, for root too" {
    if [ "$(id -u)" = 0 ]; then
        spawn setpriv --reuid=12345 --regid=12345 --clear-groups sleep 60
        wait_until 5 grep -q "^Uid:[[:space:]]12345" "/proc/$spawned_pid/status"
        target=$spawned_pid
    else
        target=$(for p in /proc/[0-9]*; do
            [ "${p#/proc/}" != 1 ] && grep -q '^Uid:[[:space:]]0' "$p/status" 2>/dev/null &&
                ! is_ancestor "${p#/proc/}" && echo "${p#/proc/}" && break
        done) || true
        [ -n "$target" ] || skip "no process of another user to be seen"
    fi
    expect 3 hf proc signal "$(hf proc id "$target")" KILL
    says "another user"
    kill -0 "$target" 2>/dev/null || [ -d "/proc/$target" ]
}
is_ancestor() {
    local p=$$
    while [ "$p" -gt 1 ]; do
        [ "$p" != "$1" ] || return 0
        p=$(awk '/^PPid:/ { print $2 }' "/proc/$p/status")
    done
    return 1
}

@test "a bare pid, a wrong signal and rubbish are refused with a hint" {
    expect 2 hf proc signal 4711
    says "another process may have"
    expect 2 hf proc check rubbish
    expect 2 hf proc id zero
    expect 2 hf proc id 0
    spawn sleep 60
    expect 2 hf proc signal "$(hf proc id "$spawned_pid")" NOSUCH
    says "not a signal"
    expect 1 hf proc id 4194303
}

@test "without pidfd_open: liveness still answers, signals are refused (L6)" {
    [ -x "$HELPERS/helper-enosys" ] || skip "no seccomp helper"
    spawn sleep 60
    id=$(hf proc id "$spawned_pid")
    run timeout 20 "$HELPERS/helper-enosys" pidfd_open -- "$HOLDFAST" proc check "$id"
    [ "$status" -ne 77 ] || skip "seccomp is not available here"
    [ "$status" -eq 0 ]
    says "weak"
    expect 3 timeout 20 "$HELPERS/helper-enosys" pidfd_open -- "$HOLDFAST" proc signal "$id" KILL
    kill -0 "$spawned_pid"
}
