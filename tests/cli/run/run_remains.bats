load ../tree

# Supervisor and keeper are gone, both at once, or stopped past the lease: what is left is ended by proven identity,
# by reap or by the next run of that name, before anything new starts.

COUNTED="plain:2 ignore stopped setsid daemon orphan chain:4 headless"

# abandon MECHANISM SHAPES...: a tree that nobody looks after any more
abandon() {
    local mechanism=$1
    shift
    needs "$mechanism"
    bystander before
    start_tree "$mechanism" -- --ignore "$@"
    kill_at_once "$supervisor" "$keeper"
    wait_until 5 gone "$leader"
    left=$(living "$tree")
    [ "$left" -gt 5 ]
    [ "$(session t .state)" = dead-unreaped ]
}

all_ended() {
    nobody_lives "$tree"
    bystanders_are_well
    expect 0 hf journal verify
}

reap_ends_them() {
    abandon "$1" $COUNTED
    expect 0 hf reap t --json
    is_json ".reaped[0].name == \"t\" and .reaped[0].killed == $left"
    all_ended
    [ "$(events session_reaped t)" = 1 ]
    [ "$(events session_ended t)" = 1 ]
    [ "$(session t .outcome)" = abandoned ]
    expect 0 hf reap t --json
    is_json ".reaped[0].killed == 0"
    expect 1 hf stop t
    [ "$output" = already-gone ]
}

@test "both killed at once: reap ends what is left, says how many, once; cgroup (L6, L7, L8)" { reap_ends_them cgroup; }
@test "both killed at once: reap ends what is left, says how many, once; walk (L6, L7, L8)" { reap_ends_them walk; }

@test "both killed at once: reap ends every kind of process; cgroup (L7)" {
    abandon cgroup $SHAPES cleared hop
    expect 0 hf reap
    all_ended
}

@test "both killed at once: reap ends every kind of process, also with its environment cleared; walk (L7)" {
    abandon walk $SHAPES cleared:3 hop:2
    expect 0 hf reap
    all_ended
}

# as_root: only root can make processes of other users
as_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

@test "both killed at once: reap by root ends a child that changed its uid and cleared its environment; walk (L7)" {
    as_root
    abandon walk $COUNTED stranger:2
    expect 0 hf reap
    all_ended
}

@test "both killed at once: the next run ends a child that changed its uid before its command starts; walk (L7)" {
    as_root
    abandon walk $COUNTED stranger cleared
    new_run_finds_nobody
    all_ended
}

@test "both killed at once: reap ends a child that left its cgroup and cleared its environment; cgroup (L7)" {
    as_root
    needs cgroup
    jq -r .cgroup < <(tr -d '\0' <"$HOLDFAST_DIR/sessions/probe/session.jsonl" | tail -1) | sed 's,/holdfast-[0-9]*$,/cgroup.procs,' | tr -d '\n' >"$tree.cgroups"
    abandon cgroup $COUNTED moved
    expect 0 hf reap
    all_ended
}

# An ordinary user's child that became another user's (a set-uid program): found, and not to be ended.
@test "both killed at once, and a child is another user's by now: the next run says which, and does not start (L7)" {
    as_root
    # A place that another user can reach.
    cd "$(mktemp -d)" && chmod 755 . && cp "$HOLDFAST" holdfast && mkdir theirs && chown 65534 theirs
    cp "$(dirname "$HOLDFAST")/../libexec/holdfast-supervise" .
    ordinary() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOLDFAST_DIR="$PWD/theirs/state" HOLDFAST_LIBEXEC="$PWD" timeout 30 "$@"; }
    is_up() { ordinary ./holdfast ps t --json >shown 2>/dev/null && jq -e '.sessions[0].state == "running"' shown >/dev/null; }
    ordinary ./holdfast run t --detach --tree walk -- sleep 1000
    wait_until 10 is_up
    # What a set-uid program of the tree would be: the mark of the tree, and a user of its own.
    mark=$(awk '/^Max file locks/ { print $5 }' "/proc/$(jq .sessions[0].leader.pid shown)/limits")
    spawn env -i prlimit --locks="$mark:$mark" sleep 1000
    stranger=$spawned_pid
    wait_until 5 grep -q "^Max file locks *$mark" "/proc/$stranger/limits"
    kill_at_once $(jq '.sessions[0] | .supervisor.pid, .keeper.pid' shown)
    expect 1 ordinary ./holdfast run t -- touch theirs/ran
    says "pid $stranger of uid 0"
    [ ! -e theirs/ran ]
    expect 1 ordinary ./holdfast reap t
    kill -KILL "$stranger"
    wait_until 5 gone "$stranger"
    expect 0 ordinary ./holdfast run t -- touch theirs/ran
    [ -e theirs/ran ]
    rm -r "$PWD"
}

@test "a process that took the mark of another session is ended with it, and nobody beside it (L6)" {
    needs walk
    bystander before
    start_tree walk -- $COUNTED
    mark=$(awk '/^Max file locks/ { print $5 }' "/proc/$leader/limits")
    spawn env -i prlimit --locks="$mark:$mark" sleep 1000
    poser=$spawned_pid
    spawn env -i prlimit --locks="$((mark - 1)):$((mark - 1))" sleep 1000
    near=$spawned_pid
    wait_until 5 grep -q "^Max file locks *$mark" "/proc/$poser/limits"
    kill_at_once "$supervisor" "$keeper"
    expect 0 hf reap t
    all_ended
    gone "$poser"
    run ! gone "$near"
}

@test "another state directory with a session of the same name: reap touches nothing of it (L6)" {
    bystander before
    abandon walk $COUNTED cleared
    other="$PWD/tree-other"
    HOLDFAST_DIR="$PWD/elsewhere" spawn "$HOLDFAST" run t --tree walk --grace 0.2 -- "$TREE" build "$other" cleared daemon
    wait_until 20 test -e "$other.ready"
    before=$(living "$other")
    expect 0 hf reap t
    all_ended
    [ "$(living "$other")" = "$before" ]
    HOLDFAST_DIR="$PWD/elsewhere" expect 0 hf stop t
    nobody_lives "$other"
}

@test "a low limit of the user's own is left as it is; the session works, and its environment marks it" {
    run bash -c 'ulimit -x 1000 && exec "$HOLDFAST" run t -- grep "Max file locks" /proc/self/limits'
    [ "$status" -eq 0 ]
    [[ "$output" =~ ^"Max file locks "*1000\ *1000 ]] || { echo "$output"; return 1; }
}

@test "a record that ps has put away, then both killed: the next run still ends what is left; walk (L7)" {
    bystander before
    start_tree walk -- --ignore $SHAPES cleared:2
    printf 'garbage\n' >"$HOLDFAST_DIR/sessions/t/session.jsonl"
    run hf ps t
    kill_at_once "$supervisor" "$keeper"
    new_run_finds_nobody
    all_ended
}

stop_ends_them() {
    abandon "$1" $SHAPES
    expect 0 hf stop t
    [ "$output" = killed ]
    all_ended
}

@test "both killed at once: stop ends what is left; cgroup (L7)" { stop_ends_them cgroup; }
@test "both killed at once: stop ends what is left; walk (L7)" { stop_ends_them walk; }

# checker: a command for a new run that looks for the old tree
new_run_finds_nobody() {
    expect 0 hf run t -w 20 -- bash -c '"$TREE" living "$0" >at-start; echo $? >at-start.status' "$tree"
    [ "$(cat at-start.status)" = 0 ] || { echo "two agents at once:"; cat at-start; return 1; }
}

next_run_ends_them() {
    abandon "$1" $SHAPES
    new_run_finds_nobody
    all_ended
    [ "$(events session_reaped t)" = 1 ]
}

@test "both killed at once: the next run ends what is left before its command starts; cgroup (L4, L7)" { next_run_ends_them cgroup; }
@test "both killed at once: the next run ends what is left before its command starts; walk (L4, L7)" { next_run_ends_them walk; }

with_corrupt_record() {
    abandon "$1" $SHAPES
    printf '{"v":1,"token":"garbage"}\n' >>"$HOLDFAST_DIR/sessions/t/session.jsonl"
    if [ "$2" = reap ]; then expect 0 hf reap t; else new_run_finds_nobody; fi
    all_ended
    [ -n "$(ls "$HOLDFAST_DIR/quarantine")" ]
}

@test "both killed at once, record corrupt: reap still knows them by their mark; cgroup" { with_corrupt_record cgroup reap; }
@test "both killed at once, record corrupt: reap still knows them by their mark; walk" { with_corrupt_record walk reap; }
@test "both killed at once, record corrupt: the next run does as well; walk" { with_corrupt_record walk run; }

# What a run leaves that is killed between making its cgroup and saving the name.
empty_group_is_swept() {
    needs cgroup
    probed=$(tr -d '\0' <"$HOLDFAST_DIR/sessions/probe/session.jsonl" | tail -1 | jq -r .cgroup)
    left="$(dirname "$probed")/holdfast-$((RANDOM * 32768 + RANDOM))"
    mkdir "$left"
    # What a living keeper has made is not touched, empty or not: a loop between two attempts.
    spawn "$HOLDFAST" run loop --tree cgroup --every 60s -- true
    wait_until 10 is_waiting
    kept=$(tr -d '\0' <"$HOLDFAST_DIR/sessions/loop/session.jsonl" | tail -1 | jq -r .cgroup)
    foreign="$(dirname "$probed")/holdfast-mine" && mkdir -p "$foreign"
    expect 0 hf "$@"
    rmdir "$foreign"
    [ ! -d "$left" ]
    [ -d "$kept" ]
    expect 0 hf stop loop
    [ ! -d "$kept" ]
}
is_waiting() { [ "$(session loop .state)" = waiting ]; }

@test "an empty cgroup of a run that was killed before it could note it: reap removes it, and no other" { empty_group_is_swept reap; }
@test "an empty cgroup of a run that was killed before it could note it: the next run removes it, and no other" { empty_group_is_swept run next --tree cgroup -- true; }

@test "the keeper is killed right after it made its cgroup: the group it leaves is removed by reap" {
    needs cgroup
    strace -f -o /dev/null -e inject=uname:signal=KILL:when=9999 true 2>/dev/null || skip "strace may not trace here"
    export ASAN_OPTIONS=detect_leaks=0
    hf run x --tree cgroup -- true
    # At the flock that follows the mkdir: the how-manieth of its process that is. Now and then the time of the tokens is
    # noted, under a flock of its own; then it is another one, and is counted again.
    left=
    for try in 1 2 3 4 5 6 7 8; do
        strace -f -o trace -e trace=flock "$HOLDFAST" run x --tree cgroup -- true
        nth=$(awk '/flock/ { n[$1]++ } /LOCK_SH/ { print n[$1]; exit }' trace)
        status=0
        strace -f -o trace -e trace=mkdirat,flock -e inject=flock:signal=KILL:when="$nth" "$HOLDFAST" run x --tree cgroup -- true || status=$?
        left=$(sed -nE 's/.*"([^"]*holdfast-[0-9]+)".*/\1/p' trace)
        [ -z "$left" ] || [ "$status" -ne 125 ] || break
    done
    # Another run, of another test, may have swept it by now.
    [ -n "$left" ]
    [ "$status" -eq 125 ]
    expect 0 hf reap
    [ ! -d "$left" ]
}

# start_nested MECHANISM: the session "t", in it the session "inner" with a tree of its own
start_nested() {
    needs "$1"
    bystander before
    inner="$PWD/tree-inner"
    spawn "$HOLDFAST" run t --tree "$1" --grace 0.2 -- bash -c '
        "$TREE" build "$1" ignore daemon chain:3 cleared &
        exec "$HOLDFAST" run inner --tree "$0" --grace 0.2 -- "$TREE" build "$2" ignore daemon setsid chain:3 headless cleared:2' "$1" "$tree" "$inner"
    supervisor=$spawned_pid
    wait_until 20 test -e "$tree.ready"
    wait_until 20 test -e "$inner.ready"
    keeper=$(session t .keeper.pid)
    inner_supervisor=$(session inner .supervisor.pid)
    inner_keeper=$(session inner .keeper.pid)
}

nested_killed_at_all_levels() {
    start_nested "$1"
    kill_at_once "$supervisor" "$keeper" "$inner_supervisor" "$inner_keeper"
    [ "$(living "$inner")" -gt 4 ]
    # The outer one's mark stands in the environment of everybody in it; the inner one's record tells whose the others are.
    expect 0 hf reap t --json
    nobody_lives "$inner"
    all_ended
    expect 0 hf reap --json
    is_json '.reaped[0].name == "inner" and .reaped[0].killed == 0'
}

@test "a session in a session, all four killed: the outer one's reap ends both trees; cgroup" { nested_killed_at_all_levels cgroup; }
@test "a session in a session, all four killed: the outer one's reap ends both trees; walk" { nested_killed_at_all_levels walk; }

inner_killed_only() {
    start_nested "$1"
    kill_at_once "$inner_supervisor" "$inner_keeper"
    # The leader of the outer one was the inner supervisor: its tree ends, and with it what the inner one left.
    status_seen=0
    wait "$supervisor" || status_seen=$?
    [ "$status_seen" -eq 137 ]
    nobody_lives "$inner"
    all_ended
}

@test "a session in a session, the inner two killed: the outer one ends what they left; cgroup" { inner_killed_only cgroup; }
@test "a session in a session, the inner two killed: the outer one ends what they left; walk" { inner_killed_only walk; }

keeper_stopped() {
    needs "$1"
    bystander before
    start_tree "$1" --ttl 0.5 -- --ignore $SHAPES cleared hop
    kill -STOP "$keeper"
    new_run_finds_nobody
    status_seen=0
    wait "$supervisor" || status_seen=$?
    [ "$status_seen" -eq 125 ] || { echo "exit $status_seen"; return 1; }
    gone "$keeper"
    all_ended
    [ "$(session t .state)" = "done" ]
}

@test "a keeper stopped past its lease: the next run takes over, and ends the old tree first; cgroup (L4, L7)" { keeper_stopped cgroup; }
@test "a keeper stopped past its lease: the next run takes over, and ends the old tree first; walk (L4, L7)" { keeper_stopped walk; }

@test "a keeper stopped: stop wakes it and ends the session (L7)" {
    start_tree walk -- $COUNTED
    kill -STOP "$keeper"
    expect 0 hf stop t
    [ "$output" = killed ]
    all_ended
}

@test "a keeper stopped, and nobody wants the name: the supervisor wakes it when its lease has run out" {
    start_tree walk --ttl 0.5 -- $COUNTED
    kill -STOP "$keeper"
    wait_until 10 grep -q '^State:.*T' "/proc/$keeper/status"
    wait_until 10 grep -q '^State:.*S' "/proc/$keeper/status"
    expect 0 hf lock check t
    expect 0 hf stop t
    all_ended
}

@test "a keeper stopped: TERM to the supervisor wakes it and ends the session (L7)" {
    start_tree walk -- $COUNTED
    kill -STOP "$keeper"
    kill -TERM "$supervisor"
    wait_until 5 gone "$supervisor"
    all_ended
    [ "$(session t .outcome)" = stopped ]
}

@test "a supervisor stopped: the keeper goes on, frees the name, and the status is there when it wakes" {
    bystander before
    start_tree walk -- --exit 7 $COUNTED
    kill -STOP "$supervisor"
    touch "$tree.go"
    expect 0 hf lock run t -w 10 -- true
    all_ended
    [ "$(session t .exit)" = 7 ]
    kill -CONT "$supervisor"
    status_seen=0
    wait "$supervisor" || status_seen=$?
    [ "$status_seen" -eq 7 ]
}

@test "a supervisor stopped and the keeper killed: stop wakes it to end the tree (L7)" {
    bystander before
    start_tree walk -- --ignore $COUNTED
    kill -STOP "$supervisor"
    kill -KILL "$keeper"
    wait_until 5 gone "$keeper"
    expect 0 hf stop t
    [ "$output" = killed ]
    all_ended
}

@test "the keeper is killed while stop waits for it: the supervisor ends the tree, and stop says so (L7)" {
    bystander before
    start_tree walk --grace 5 -- --ignore $COUNTED
    spawn bash -c '"$HOLDFAST" stop t >stopped 2>&1; echo $? >>stopped'
    stopping() { [ "$(session t .state)" = stopping ]; }
    wait_until 5 stopping
    kill -KILL "$keeper"
    wait "$spawned_pid"
    [ "$(paste -sd' ' stopped)" = "killed 0" ] || { cat stopped; return 1; }
    all_ended
}

left_running_is_left() {
    needs "$1"
    outliving="$PWD/tree-left"
    # Not by `run`: it would wait for every process that has its pipe.
    hf run t --tree "$1" --leave-running -- bash -c '"$TREE" build "$0" --exit 0 plain setsid daemon & until [ -e "$0.ready" ]; do sleep 0.01; done; touch "$0.go"; wait' "$outliving" </dev/null >/dev/null 2>&1
    [ "$(living "$outliving")" = 3 ]
    [ "$(events session_left_running t)" = 1 ]
    [ "$(events session_killed t)" = 0 ]
    expect 1 hf lock check t
    expect 0 hf run t -- true
    [ "$(living "$outliving")" = 3 ]
    # Not even the end of a later run that nobody finished takes them with it.
    abandon "$1" $COUNTED
    expect 0 hf reap t
    all_ended
    [ "$(living "$outliving")" = 3 ]
}

@test "--leave-running: what outlives the command lives on, also when a later run is reaped; cgroup (L6)" { left_running_is_left cgroup; }
@test "--leave-running: what outlives the command lives on, also when a later run is reaped; walk (L6)" { left_running_is_left walk; }

@test "--leave-running in a loop: an attempt that cannot start does not wait for what an earlier one left" {
    printf '#!/bin/sh\n"$TREE" build "%s" setsid >/dev/null 2>&1 &\nrm command\n' "$tree" >command
    chmod +x command
    expect 127 hf run t --leave-running --max-runs 2 --every 0.01 -- ./command
    wait_until 5 test -e "$tree.ready"
    [ "$(living "$tree")" = 2 ]
}

@test "a container's first process can be a session, which is shown there and outside; killing the container frees its name (L4, L7)" {
    local ns=(unshare -p -f --mount-proc --kill-child) first
    [ "$EUID" = 0 ] || ns=(unshare -r -p -f --mount-proc --kill-child)
    "${ns[@]}" true || skip "no pid namespaces here"
    [ "$(readlink /proc/self/ns/pid)" = "pid:[4026531836]" ] || skip "not in the machine's first pid namespace"
    spawn "${ns[@]}" "$HOLDFAST" run c -- sh -c 'until [ -e go ]; do sleep 0.05; done; "$HOLDFAST" --json ps >inside; exec sleep 600'
    first=$spawned_pid
    wait_until 20 eval '[ "$(hf --json ps | jq -r ".sessions[0].state")" = running ]'
    [ "$(hf --json ps | jq .sessions[0].supervisor.pid)" = 1 ]
    touch go
    wait_until 20 test -s inside
    wait_until 20 eval '[ "$(jq -r ".sessions[0].state" inside)" = running ]'
    expect 1 hf run c -- true
    says "is running"
    kill -KILL "$first"
    # Its keeper may have the time to end the record.
    over() { [[ "$(hf --json ps -a | jq -r ".sessions[0].state")" = @(dead-unreaped|failed) ]]; }
    free() { hf run c -- true; }
    # While a process of another user is in a pid namespace, it may be the holder.
    seen=
    proven() { "$@" || { ! others_inside || seen=1; return 1; }; }
    wait_until 60 proven over || { [ -z "$seen" ] || skip "a process of another user in a pid namespace may be the holder"; false; }
    wait_until 60 proven free || { [ -z "$seen" ] || skip "a process of another user in a pid namespace may be the holder"; false; }
    expect 0 hf --json journal query --event record_quarantined
    [ -z "$output" ]
    [ "$(hf --json journal query --event session_ended | jq -r .outcome | xargs)" = "abandoned succeeded" ]
}
