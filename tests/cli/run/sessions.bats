# ps, wait, stop, reap: a session as others see it, and what they can do to it.
load ../session_helper

@test "ps --json has every field; what is not known is null, never 0" {
    running x --deadline 1h --log
    expect 0 hf ps x --json
    is_json '.v == 1 and (.sessions | length) == 1'
    is_json '.sessions[0] | .name == "x" and .state == "running" and .outcome == null and .exit == null and .cause == null'
    is_json '.sessions[0] | .pid > 1 and .leader.pid == .pid and (.keeper.id | startswith("p1:")) and .supervisor.pid > 1'
    is_json '.sessions[0] | .attempt == 1 and .failures == 0 and .loop == false and .token > 0 and (.tree | test("^(walk|cgroup)$"))'
    is_json '.sessions[0] | (.command | startswith("bash -c")) and (.started | test("^20.*Z$")) and .ended == null and .ran_ms == null'
    is_json '.sessions[0] | .age_ms >= 0 and .deadline_left_ms > 3500000 and .output_age_ms >= 0'
    is_json '.sessions[0] | .processes >= 1 and .memory_bytes > 100000 and .cpu_ms >= 0 and (.evidence | length) > 0'
    is_json ".sessions[0].pid == $(cat up-x) and .sessions[0].supervisor.pid == $spawned_pid"
    running y
    expect 0 hf ps y --json
    is_json '.sessions[0] | .deadline_left_ms == null and .output_age_ms == null'
    let_go x 3
    wait "${spawned[0]}" || true
    expect 0 hf ps x --json
    is_json '.sessions[0] | .state == "failed" and .outcome == "failed" and .exit == 3 and .cause == "exit 3" and .pid == null'
    is_json '.sessions[0] | .leader == null and .processes == null and .memory_bytes == null and .ran_ms > 0 and (.ended | test("Z$"))'
}

@test "every state has its word: starting and running, hung, suspended, stopping, failing, waiting, done, failed, dead-unreaped" {
    running silent --log --hung-after 100ms
    wait_until 5 is_field silent .state hung
    # Shown, not ended.
    let_go silent
    wait "$spawned_pid"
    is_field silent .state done

    running frozen
    kill -STOP "$(cat up-frozen)"
    wait_until 5 is_field frozen .state suspended
    kill -CONT "$(cat up-frozen)"
    wait_until 5 is_field frozen .state running

    spawn "$HOLDFAST" run slow --grace 20s -- bash -c 'trap "until [ -e go-slow ]; do sleep 0.02; done; exit 0" TERM; touch up-slow; while :; do sleep 0.02; done'
    wait_until 10 test -e up-slow
    kill -TERM "$spawned_pid"
    wait_until 5 is_field slow .state stopping
    touch go-slow
    wait "$spawned_pid" || true
    is_field slow .state stopped

    spawn "$HOLDFAST" run loop --every 60s -- true
    wait_until 10 is_field loop .state waiting
    spawn "$HOLDFAST" run bad --every 60s -- false
    wait_until 10 is_field bad .state failing
    is_field bad '.failures, .loop' $'1\ntrue'
    hf run no -- false || true
    is_field no .state failed

    hf run gone --detach -- sleep 60
    kill_keepers gone
    wait_until 5 is_field gone .state dead-unreaped
}

@test "a run shows how the one before it ended under last, and has no end of its own while it runs" {
    hf run x -- bash -c 'exit 6' || true
    running x
    is_field x '.state, .outcome, .exit, .cause, .ended' $'running\nnull\nnull\nnull\nnull'
    is_field x '.last | .outcome, .exit, .cause, (.ended | type), (.ran_ms | type)' $'failed\n6\nexit 6\nstring\nnumber'
    let_go x
    wait "$spawned_pid"
    is_field x '.outcome, .exit, .last' $'succeeded\n0\nnull'
}

@test "a verifier that runs is shown, and its session is not yet done; the command's pid is no more" {
    spawn "$HOLDFAST" run x --verify 'touch up; until [ -e go ]; do sleep 0.02; done' -- true
    wait_until 10 test -e up
    is_field x '.state, .outcome, .pid' $'verifying\nnull\nnull'
    touch go
    wait "$spawned_pid"
    is_field x '.state, .cause' $'done\nexit 0, verified'
}

@test "a loop between two attempts has not ended: the last attempt stands under last" {
    spawn "$HOLDFAST" run x --every 60s -- bash -c 'exit 4'
    wait_until 10 is_field x .state failing
    is_field x '.outcome, .exit, .ended, .last.outcome, .last.exit' $'null\nnull\nnull\nfailed\n4'
}

# damage NAME: its record, while it runs
damage() { printf 'garbage\n' >"$HOLDFAST_DIR/sessions/$1/session.jsonl"; }

@test "a damaged record while it runs: ps has a row unreadable, alone and in the list, each time; stop ends it" {
    running x
    pid=$(cat up-x)
    damage x
    for look in 1 2; do
        expect 0 hf ps x --json
        is_json '.sessions[0] | .name == "x" and .state == "unreadable" and .pid == null and .keeper.pid > 1 and .attempt == null'
        expect 0 hf ps
        says unreadable
    done
    [ "$(events record_quarantined x)" -eq 1 ]
    # The name is taken all the same.
    expect 1 hf run x -- touch ran
    says "its record is damaged"
    [ ! -e ran ]
    expect 0 hf stop x
    [ "$output" = stopped ]
    is_dead "$pid"
    is_field x '.state, .outcome' $'stopped\nstopped'
    expect 0 hf run x -- true
}

@test "a damaged record between two attempts of a loop: unreadable each time, until the next attempt writes it anew" {
    spawn "$HOLDFAST" run x --every 60s -- true
    wait_until 10 is_field x .state waiting
    damage x
    for look in 1 2; do is_field x .state unreadable; done
    expect 0 hf stop x
    [ "$output" = stopped ]
    is_field x '.state != "unreadable" and .ended != null' true
    spawn "$HOLDFAST" run x --every 60s -- true
    wait_until 10 is_field x .state waiting
}

@test "a damaged record while it runs: stop as the first to see it ends it; wait sees its end; the next run is not refused" {
    running x
    damage x
    expect 0 hf stop x
    [ "$output" = stopped ]
    is_dead "$(cat up-x)"
    running y
    damage y
    spawn bash -c '"$0" wait y >/dev/null 2>&1; echo $? >status' "$HOLDFAST"
    let_go y 42
    wait "$spawned_pid"
    [ "$(cat status)" -eq 42 ]
    expect 0 hf run y -n -- true
}

# The look is held between reading the record and moving it away; meanwhile the keeper writes how the session ended.
@test "a look at a damaged record never puts away the one that the keeper writes meanwhile" {
    skip_sanitizers "strace and the leak checker exclude each other"
    strace -f -o /dev/null -e inject=uname:signal=KILL:when=9999 true 2>/dev/null || skip "strace may not trace here"
    running x
    supervisor=$spawned_pid
    damage x
    spawn strace -y -o trace -e trace=pread64,renameat,renameat2 -e inject=renameat,renameat2:delay_enter=1000000 "$HOLDFAST" ps x
    wait_until 10 grep -q 'pread64.*session.jsonl' trace
    let_go x 7
    wait "$spawned_pid" || true
    wait "$supervisor" || true
    is_field x '.state, .exit' $'failed\n7'
}

@test "a lock of that name that no session holds is not ended by stop, though the record is damaged (L6)" {
    hf run x -- true
    spawn "$HOLDFAST" lock run x -- sleep 60
    wait_until 10 hf lock check x
    damage x
    run hf stop x
    [ "$status" -ne 0 ]
    expect 1 hf stop x
    says not-found
    expect 0 hf lock check x
}

# The winner is held where it has the lock and has not written its record yet: its keeper stops at its first rename, that of the command.
@test "the loser of a start race is told that the session is just starting, and not to break its lock" {
    skip_sanitizers "strace and the leak checker exclude each other"
    strace -f -o /dev/null -e inject=uname:signal=KILL:when=9999 true 2>/dev/null || skip "strace may not trace here"
    hf run other -- true
    for before in none ended; do
        [ "$before" = none ] || hf run r1 -- false || true
        spawn strace -f -qq -o trace -e trace=renameat,renameat2 -e inject=renameat,renameat2:signal=STOP:when=1 "$HOLDFAST" run r1 -- true
        wait_until 10 grep -q 'stopped by SIGSTOP' trace
        expect 1 hf run r1 -- touch ran
        says "session 'r1' is just starting"
        [[ "$output" != *break* ]]
        expect 0 hf ps r1 --json
        is_json '.sessions[0] | .state == "starting" and .outcome == null'
        kill -CONT "$(jq '.sessions[0].keeper.pid' <<<"$output")"
        wait "$spawned_pid"
        rm trace
    done
    [ ! -e ran ]
}

# The keeper has forked what becomes the command and is held there, by strace, before it writes the record.
keeper_has_a_child() {
    keeper=$(hf lock list --json | jq '.locks[] | select(.name == "r2") | .holders[0].pid')
    [ -n "$keeper" ] && grep -q . "/proc/$keeper/task/$keeper/children"
}

@test "a session whose command waits for its record to be let go is starting, for ps and for the loser of the race, and not damaged" {
    skip_sanitizers "strace and the leak checker exclude each other"
    strace -f -o /dev/null -e inject=uname:signal=KILL:when=9999 true 2>/dev/null || skip "strace may not trace here"
    spawn strace -f -qq -o /dev/null -e trace=clone3 -e inject=clone3:delay_exit=60000000 "$HOLDFAST" run r2 -- touch ran
    wait_until 20 keeper_has_a_child
    expect 0 hf ps r2 --json
    is_json '.sessions[0].state == "starting"'
    expect 1 hf run r2 -- true
    says "session 'r2' is just starting"
    [ ! -e ran ]
    kill -KILL "$spawned_pid" # what was traced goes on by itself
    expect 0 hf wait r2 -w 20s
    [ -e ran ]
}

@test "wait finds a session that ran from its first line to its last while wait looked for it" {
    skip_sanitizers "strace and the leak checker exclude each other"
    strace -f -o /dev/null -e inject=uname:signal=KILL:when=9999 true 2>/dev/null || skip "strace may not trace here"
    # wait has found no record, and is stopped before it looks for a holder of the name.
    spawn strace -f -qq -o trace -P r4 -e trace=openat -e inject=openat:signal=SIGSTOP:when=1 "$HOLDFAST" wait r4
    wait_until 20 grep -q 'stopped by SIGSTOP' trace
    hf run r4 -- true
    kill -CONT "$(awk '/stopped by SIGSTOP/ { print $1; exit }' trace)"
    wait "$spawned_pid"
}

@test "a name whose holder is not known, because a process is stopped with the record in its hand, is not said to be locked by no session" {
    hf run r3 -- true
    exec 9<>"$HOLDFAST_DIR/locks/name/r3"
    flock 9
    expect 1 hf run r3 -w 200ms -- touch ran 9>&-
    exec 9>&-
    says "session 'r3': a process is stopped while it changes the record"
    [[ "$output" != *"held by"* ]]
    [ ! -e ran ]
}

@test "wait: the session's status, as JSON, late, of nobody, and of one that is dead" {
    expect 1 hf wait never-run
    running x
    start=$(now_ms)
    expect 1 hf wait x -w 200ms
    says "not ended after 200 ms: it is running"
    [ $(($(now_ms) - start)) -lt 5000 ]
    expect 9 hf wait x -w 0 -E 9
    spawn bash -c '"$0" --json wait x >waited; echo $? >status' "$HOLDFAST"
    let_go x 42
    wait "$spawned_pid"
    [ "$(cat status)" -eq 42 ]
    jq -e '.exit == 42 and .state == "failed" and .name == "x"' waited
    expect 42 hf wait x
    expect 2 hf wait
    hf run dead --detach -- sleep 60
    spawn bash -c '"$0" wait dead 2>said; echo $? >status' "$HOLDFAST"
    waiter=$spawned_pid
    kill_keepers dead
    wait "$waiter"
    [ "$(cat status)" -eq 125 ]
    grep -q "reap dead" said
    expect 0 hf reap dead
    expect 125 hf wait dead
}

@test "when wait returns the name is free: the next run is not refused" {
    for i in {1..15}; do
        hf run x --detach --notify 'sleep 0.05' -- bash -c "exit $((i % 2))"
        expect $((i % 2)) hf wait x
        expect 0 hf run x -n -- true
    done
}

@test "stop: stopped within the grace time, killed after it, already-gone, not-found" {
    expect 1 hf stop never-run
    says not-found
    running x
    expect 0 hf stop x
    [ "$output" = stopped ]
    is_dead "$(cat up-x)"
    expect 1 hf stop x
    [ "$output" = already-gone ]
    hf run y --detach --grace 100ms -- bash -c 'trap "" TERM; touch up; while :; do sleep 1; done'
    wait_until 10 test -e up
    pid=$(field y .pid)
    expect 0 hf stop y
    [ "$output" = killed ]
    is_dead "$pid"
    [ "$(events session_killed y)" -eq 1 ]
    is_field y '.state, .cause' $'stopped\nit was asked to stop (killed by SIGKILL)'
    expect 2 hf stop
    hf run z --detach -- sleep 60
    expect 0 hf --json stop z
    is_json '.v == 1 and .name == "z" and .outcome == "stopped" and .exit == 0'
    run --separate-stderr hf --json stop never-run
    [ "$status" -eq 1 ]
    is_json '.outcome == "not-found"'
}

@test "stop and kill take several names and --all; the worst status counts, and each is told by its name" {
    running a
    running b
    expect 1 hf stop a never-run b
    [ "$(grep -v ^holdfast: <<<"$output")" = "$(printf 'a: stopped\nnever-run: not-found\nb: stopped')" ]
    running c
    hf run d --detach -- bash -c 'trap "" TERM; touch deaf; while :; do sleep 1; done'
    wait_until 10 test -e deaf
    expect 2 hf kill --all d
    expect 2 hf kill d --grace 5s
    expect 0 hf kill --all
    [ "$(sort <<<"$output")" = "$(printf 'c: killed\nd: killed')" ]
    expect 0 hf stop --all
    says "no session is running"
}

@test "stop --all inside a session ends the others, not its own" {
    running other
    expect 0 hf run inside -- "$HOLDFAST" stop --all
    says "other: stopped"
    says "is not stopped"
    is_field inside .outcome succeeded
}

@test "wait takes several names: all have ended, the first status that is not 0 is the status; -w is for all of them" {
    hf run a --detach -- true
    hf run b --detach -- bash -c 'exit 7'
    hf run c --detach -- bash -c 'exit 9'
    expect 7 hf wait a b c
    running d
    expect 1 hf wait a d -w 10ms
    says "'d'"
    let_go d
    expect 0 hf wait a d
}

@test "run: --timeout is --deadline, -C is --cwd, also when it is resumed" {
    mkdir there
    expect 124 hf run x --timeout 100ms -C there -- bash -c 'pwd >where; sleep 60'
    [ "$(cat there/where)" = "$PWD/there" ]
    expect 124 hf run x --resume
    says "deadline 100ms"
}

@test "stop --grace 0 asks nobody; stop --grace is that of this stop, also when it is shorter than the session's" {
    hf run x --detach -- bash -c 'trap "touch asked; exit 0" TERM; touch up; while :; do sleep 0.02; done'
    wait_until 10 test -e up
    start=$(now_ms)
    expect 0 hf stop x --grace 0
    [ "$output" = killed ]
    [ ! -e asked ]
    hf run y --detach --grace 60s -- bash -c 'trap "" TERM; touch up-y; while :; do sleep 0.02; done'
    wait_until 10 test -e up-y
    expect 0 hf stop y --grace 200ms
    [ "$output" = killed ]
    [ $(($(now_ms) - start)) -lt 8000 ]
}

@test "stop --grace: the longest that can be given is waited for" {
    local longest=9223372036
    spawn "$HOLDFAST" run x -- bash -c 'trap "touch told" TERM; echo $$ >up; until [ -e go ]; do sleep 0.02; done'
    local supervisor=$spawned_pid
    wait_until 10 test -s up
    spawn bash -c '"$HOLDFAST" stop x --grace '"$longest"'s >word'
    wait_until 10 test -e told
    is_field x .state stopping
    touch go
    wait "$spawned_pid"
    [ "$(cat word)" = stopped ]
    wait "$supervisor" || [ $? = 143 ]
}

@test "a session cannot stop itself from inside: refused with 3, and it goes on" {
    expect 5 hf run x -- bash -c '"$0" stop x; [ $? -eq 3 ] && exit 5' "$HOLDFAST"
    says "this command runs in that session, which cannot stop itself"
    is_field x '.outcome, .exit' $'failed\n5'
    [ "$(events session_refused x)" -eq 1 ]
}

@test "a loop is stopped between two attempts and within one" {
    spawn "$HOLDFAST" run x --every 60s -- true
    wait_until 10 is_field x .state waiting
    expect 0 hf stop x
    [ "$output" = stopped ]
    wait "$spawned_pid" || true
    hf run y --detach --every 10ms -- sleep 60
    expect 0 hf stop y
    is_field y '.state, .attempt' $'stopped\n1'
}

@test "stopped by two at once: both see it end, one event" {
    running x
    spawn bash -c '"$0" stop x >one' "$HOLDFAST"
    first=$spawned_pid
    spawn bash -c '"$0" stop x >two' "$HOLDFAST"
    wait "$spawned_pid" || true
    wait "$first" || true
    grep -qxE 'stopped|already-gone' one
    grep -qxE 'stopped|already-gone' two
    [ "$(events session_stopping x)" -eq 1 ]
}

@test "reap: of one that lives refused, of one that ended nothing, of a dead one all; by name and all together" {
    running x
    expect 1 hf reap x
    says "already held"
    expect 1 hf reap never-run
    hf run dead --detach -- sleep 60
    pid=$(field dead .pid)
    kill_keepers dead
    wait_until 5 is_field dead .state dead-unreaped
    expect 0 hf --json reap
    is_json '(.reaped | length) == 1 and .reaped[0].name == "dead"'
    is_dead "$pid"
    is_field dead '.state, .outcome, .exit' $'failed\nabandoned\n125'
    expect 1 hf lock check dead
    expect 0 hf reap
    [ -z "$output" ]
    expect 0 hf reap dead
    [ "$output" = "dead: 0 processes ended" ]
    [ "$(events session_reaped dead)" -eq 1 ]
    is_field x .state running
}

@test "a name that is taken in another directory: the refusal names that directory" {
    mkdir there
    spawn "$HOLDFAST" run x -C there -- sleep 60
    wait_until 10 is_field x .state running
    expect 1 hf run x -- true
    says "it runs in $PWD/there"
    cd there
    expect 1 hf run x -- true
    [[ "$output" != *"it runs in"* ]]
}
