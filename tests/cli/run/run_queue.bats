# run --max-active with -w: the queue for a place in a group, and what is seen of those that wait in it.
load ../session_helper

# queue NAME [OPTIONS...]: a session of the group g that waits for its place; ends as `running` does
queue() {
    local name=$1
    shift
    spawn "$HOLDFAST" run "$name" --group g --max-active 1 -w "$@" -- bash -c "$until_go" "$name"
    wait_until 10 is_field "$name" .state queued
}

place() { field "$1" '"\(.waits_for.place) of \(.waits_for.of)"'; }

@test "-w waits for a place in the group, in order; ps, status and JSON say where it stands" {
    running a --group g --max-active 1
    expect 1 hf run b --group g --max-active 1 -- true
    says "1 of 1 sessions of the group 'g' are active (--max-active); wait for a place with -w"
    queue b
    queue c
    [ "$(place b), $(place c)" = "1 of 2, 2 of 2" ]
    expect 0 hf ps
    [[ "${lines[1]}" == a*running* ]]
    [[ "${lines[2]}" =~ ^b\ +queued\ \(place\ 1\ of\ 2\)\ .*\ bash\ -c ]]
    [[ "${lines[3]}" =~ ^c\ +queued\ \(place\ 2\ of\ 2\)\ .*waits\ for\ a\ place\ in\ \'g\',\ place\ 2 ]]
    expect 0 hf status c
    says "c: queued (place 2 of 2) for "
    says "place 2 of 2, for a place in the group 'g'"
    expect 0 hf ps c --json
    is_json '.sessions[0] | .group == "g" and .priority == 0 and .argv[0] == "bash" and .waits_for.kind == "group" and .outcome == null and .pid == null'
    # Its name is taken meanwhile.
    expect 1 hf run b -- true
    says "b"
    let_go a
    wait_until 10 is_field b .state running
    [ "$(place c)" = "1 of 1" ]
    let_go b
    wait_until 10 is_field c .state running
    [ "$(field c .waits_for)" = null ]
    let_go c
    wait_until 10 is_field c .state done
    [ ! -e "$HOLDFAST_DIR/sessions/c/queued.json" ]
}

@test "--priority: the highest is first, and those of one priority in the order in which they came" {
    running a --group g --max-active 1
    queue low1
    queue low2
    queue high1 --priority 5
    queue high2 --priority 5
    queue top --priority 1000
    [ "$(place top), $(place high1), $(place high2), $(place low1), $(place low2)" = "1 of 5, 2 of 5, 3 of 5, 4 of 5, 5 of 5" ]
    [ "$(hf ps -o name | tail -n +2 | tr '\n' ' ')" = "a top high1 high2 low1 low2 " ]
    let_go a
    for name in top high1 high2 low1 low2; do
        wait_until 10 is_field "$name" .state running
        let_go "$name"
        wait_until 10 is_field "$name" .state done
    done
    expect 2 hf run x --priority 5 -- true
    says "--priority needs --max-active N"
    expect 2 hf run x --max-active 1 --priority 1001 -- true
}

@test "of several places each goes to the next; a dead waiter and one that is killed give way" {
    for name in a b; do
        spawn "$HOLDFAST" run "$name" --group g --max-active 2 -- bash -c "$until_go" "$name"
        wait_until 10 test -s "up-$name"
    done
    for name in c d e f; do
        spawn "$HOLDFAST" run "$name" --group g --max-active 2 -w --priority $((10 - n++)) -- bash -c "$until_go" "$name"
        wait_until 10 is_field "$name" .state queued
    done
    kill -KILL "$(field c .keeper.pid)"
    wait_until 10 is_field d '"\(.waits_for.place)"' 1
    kill -KILL "$(field d .supervisor.pid)"
    wait_until 10 is_field e '"\(.waits_for.place)"' 1
    let_go a
    wait_until 10 is_field e .state running
    is_field f .state queued
    let_go b
    wait_until 10 is_field f .state running
    # Nothing of those that were killed is left, and their names are free.
    expect 1 hf ps c
    expect 0 hf -q run c -- true
    expect 0 hf -q run d -- true
}

@test "stop, TERM, INT and the end of -w leave the queue; nothing ran, and the run before is as it was" {
    expect 9 hf -q run b -- sh -c 'exit 9'
    before=$(field b '"\(.token) \(.outcome)"')
    running a --group g --max-active 1
    queue b
    is_field b .last.exit 9
    expect 0 hf stop b
    wait_until 10 is_dead "$spawned_pid"
    wait "$spawned_pid" || [ "$?" -eq 143 ]
    [ "$(field b '"\(.token) \(.outcome)"')" = "$before" ]
    spawn env --default-signal=INT "$HOLDFAST" run b --group g --max-active 1 -w -- touch ran
    wait_until 10 is_field b .state queued
    kill -INT "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 130 ]
    expect 1 hf run c --group g --max-active 1 -w 200ms -- touch ran
    says "are active (--max-active), and none ended in time"
    expect 0 hf run c --group g --max-active 1 -w 10ms --on-timeout skip -- touch ran
    expect 1 hf ps c
    [ ! -e ran ]
    [ ! -e "$HOLDFAST_DIR/sessions/c" ]
    [ "$(events session_refused c)" -ge 1 ]
    is_field a .state running
    hf lock list --kind group --json | jq -e '.locks[0].waiters == []'
}

@test "the name stays its own while it waits, longer than its lease" {
    running a --group g --max-active 1
    queue b --ttl 400ms
    token=$(field b .token)
    began=$(now_ms)
    wait_until 20 bash -c "[ \$((\$(date +%s%N) / 1000000 - $began)) -gt 1500 ]"
    expect 1 hf lock run b -w 100ms -- true
    is_field b .state queued
    is_field b .token "$token"
    let_go a
    wait_until 10 is_field b .state running
    is_field b .token "$token"
    [ "$(events lock_taken_over b)" -eq 0 ]
}

@test "in the background it waits as well, and goes on when its caller is gone" {
    running a --group g --max-active 1
    spawn "$HOLDFAST" run -d b --group g --max-active 1 -w -- bash -c "$until_go" b
    wait_until 10 is_field b .state queued
    kill -KILL "$spawned_pid"
    is_field b .state queued
    let_go a
    wait_until 10 is_field b .state running
    is_field b .group g
    let_go b
    wait_until 10 is_field b .state done
}

@test "a session that waits for a place which only its own ancestor could free is told so" {
    expect 1 hf run outer --group g --max-active 1 -- "$HOLDFAST" run inner --group g --max-active 1 -w 30s -- true
    says "deadlock: pid "
    [ "$(events lock_deadlock)" -eq 1 ]
}

@test "a resumed session has its place, priority and group again; --priority can be changed" {
    expect 9 hf -q run b --group g --max-active 1 --priority 7 -- sh -c 'exit 9'
    running a --group g --max-active 1
    spawn "$HOLDFAST" run b --resume -w
    wait_until 10 is_field b .state queued
    [ "$(field b '"\(.group) \(.priority)"')" = "g 7" ]
    expect 0 hf -q stop b
    spawn "$HOLDFAST" run b --resume -w --priority 8 -- true
    wait_until 10 is_field b .priority 8
    let_go a
    wait_until 10 is_field b .state done
}

@test "a wait of more than a second is told in one line on the terminal, which goes when it goes on" {
    command -v python3 >/dev/null || skip "no python3"
    for scenario in lock_run lock_acquire run_name run_group run_detached; do
        expect 0 env TERM=xterm python3 "${BATS_TEST_DIRNAME}/../../helper/terminal.py" "waits_$scenario"
        rm -f up go
    done
}
