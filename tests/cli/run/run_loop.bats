# run: loops, back-off, and health that comes from outcomes.
load ../session_helper

@test "loop: --max-runs runs so often; each attempt is one session_ended event" {
    expect 0 hf run x --max-runs 3 -- bash -c 'echo run >>runs'
    [ "$(wc -l <runs)" -eq 3 ]
    [ "$(events session_ended x)" -eq 3 ]
    [ "$(events session_started x)" -eq 3 ]
    is_field x '.attempt, .state, .loop' $'3\ndone\ntrue'
}

@test "loop: what --until waited for is the outcome, for ps and wait too, though the last attempt failed" {
    expect 0 hf run x --backoff 1ms --until '[ "$(wc -l <runs)" -ge 3 ]' -- bash -c 'echo run >>runs; exit 7'
    is_field x '.state, .exit, .attempt' $'done\n0\n3'
    expect 0 hf wait x
    run -0 hf --json journal query --event session_ended
    [ "$(grep -c '"status":7' <<<"$output")" -eq 3 ]
}

@test "loop: --until ends it, with exit 0; its exit status alone decides" {
    expect 0 hf run x --until '[ "$(wc -l <runs)" -ge 4 ]' -- bash -c 'echo run >>runs'
    [ "$(wc -l <runs)" -eq 4 ]
    [ "$(events session_gave_up x)" -eq 0 ]
}

@test "loop: --max-runs over and --until never true is gave-up, exit 1, with one event, and is resumed (L14)" {
    expect 1 hf run x --max-runs 2 --until false -- bash -c 'echo run >>more'
    says "gave-up"
    [ "$(wc -l <more)" -eq 2 ]
    is_field x '.state, .outcome, .exit' $'failed\ngave-up\n1'
    [ "$(events session_gave_up x)" -eq 1 ]
    expect 1 hf wait x
    # The status of the last attempt is not that of the loop, either.
    expect 1 hf run y --max-runs 2 --backoff 1ms --until false -- bash -c 'exit 7'
    is_field y '.outcome, .cause' $'gave-up\nthe --until condition did not become true in 2 attempts (the last: exit 7)'
    expect 0 hf run x --resume --until true
    is_field x '.outcome, .attempt' $'succeeded\n3'
}

@test "loop: stopped or interrupted before --until is true, it is not done although its last attempt was (L14)" {
    spawn "$HOLDFAST" run x --every 60s --until false -- true
    wait_until 10 is_field x .state waiting
    kill -TERM "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 143 ]
    is_field x .outcome stopped
    spawn env --default-signal=INT "$HOLDFAST" run y --every 60s --until 'touch asked; until [ -e go ]; do sleep 0.02; done' -- true
    wait_until 10 test -e asked
    kill -INT "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 130 ]
    is_field y .outcome interrupted
}

@test "loop: --every is from start to start" {
    start=$(now_ms)
    expect 0 hf run x --every 200ms --max-runs 4 -- sleep 0.1
    took=$(($(now_ms) - start))
    [ "$took" -ge 650 ]
    [ "$took" -lt 3000 ]
}

@test "loop: its exit status is that of the last attempt; exit 7 is failed, never done" {
    expect 7 hf run x --max-runs 2 --backoff 1ms -- bash -c 'exit 7'
    is_field x '.state, .outcome, .exit, .failures' $'failed\nfailed\n7\n2'
    expect 0 hf run x --max-runs 2 --backoff 1ms -- bash -c '[ -e second ] || { touch second; exit 7; }'
    is_field x '.state, .failures' $'done\n0'
}

@test "loop: the pause after a failure doubles, up to its cap" {
    hf run x --max-runs 6 --backoff 100ms --backoff-max 300ms -- bash -c 'date +%s%N >>at; exit 1' || true
    mapfile -t at <at
    gap() { echo $(((at[$1 + 1] - at[$1]) / 1000000)); }
    echo "gaps: $(gap 0) $(gap 1) $(gap 2) $(gap 3) $(gap 4)"
    [ "$(gap 0)" -ge 100 ]
    [ "$(gap 1)" -ge 200 ]
    for i in 2 3 4; do [ "$(gap $i)" -ge 300 ]; done
    # Without the cap they would be 800 and 1600; one of them may be late on a busy machine.
    [ "$(gap 3)" -lt 790 ] || [ "$(gap 4)" -lt 790 ]
}

@test "loop: an attempt that reached its deadline, or could not start, does not end the loop" {
    expect 124 hf run x --max-runs 2 --deadline 50ms --backoff 1ms -- sleep 60
    is_field x .attempt 2
    expect 127 hf run x --max-runs 2 --backoff 1ms -- /no/such/program
    is_field x .attempt 2
}

# in_pause NAME OPTIONS... -- COMMAND: a loop in the background that has run once and pauses
in_pause() {
    local name=$1
    shift
    hf run "$name" -d --every 1h --notify "cat >>notices-$name" --notify-on always "$@"
    wait_until 10 is_field "$name" '.next_in_ms != null' true
    paused=$(date -u +%FT%T.%6NZ)
}

# ended NAME STATUS OUTCOME NOTICES: the outcome of a loop that ended in its pause, by wait, ps and its notices
ended() {
    local name=$1 status=$2 outcome=$3 notices=$4
    expect "$status" hf wait "$name"
    is_field "$name" .outcome "$outcome"
    # A new outcome has a new time.
    is_field "$name" ".ended > \"$paused\"" "$([ "$notices" -gt 1 ] && echo true || echo false)"
    told "$name" "$notices"
    [ "$(jq -r .outcome "notices-$name" | tail -n 1)" = "$outcome" ]
    [ "$(events session_ended "$name")" -eq 1 ]
    [ "$(events session_stopping "$name")" -eq 1 ]
}

@test "loop: stop between two attempts of an endless loop, or after a failure: the last outcome counts (L14)" {
    spawn "$HOLDFAST" run x --every 60s -- true
    wait_until 10 is_field x .state waiting
    kill -TERM "$spawned_pid"
    wait "$spawned_pid"
    is_field x '.state, .attempt' $'done\n1'
    in_pause endless -- true
    expect 0 hf stop endless
    ended endless 0 succeeded 1
    in_pause failing --until false -- bash -c 'exit 7'
    expect 0 hf stop failing
    ended failing 7 failed 1
}

@test "loop: stop between two attempts, with --until or --max-runs left: stopped, with its notice (L14)" {
    in_pause until --until false -- true
    expect 0 hf stop until
    ended until 143 stopped 2
    in_pause max --max-runs 5 -- true
    expect 0 hf stop max
    ended max 143 stopped 2
    is_field max .cause "it was asked to stop after 1 of 5 attempts"
    [ "$(events session_killed)" -eq 0 ]
}

@test "loop: a supervisor killed between two good attempts leaves it abandoned, with its events and its notice (L14, L8)" {
    local name
    for name in endless max; do
        if [ "$name" = max ]; then in_pause max --max-runs 5 -- true; else in_pause endless -- true; fi
        kill -KILL "$(field "$name" .supervisor.pid)"
        ended "$name" 125 abandoned 2
        is_field "$name" .cause "the supervisor was killed"
        [ "$(events session_killed "$name")" -eq 1 ]
        expect 0 hf status
        says "$name"
    done
}

@test "loop: a keeper killed between two good attempts leaves it abandoned, with its events and its notice (L8)" {
    in_pause endless -- true
    kill -KILL "$(field endless .keeper.pid)"
    ended endless 125 abandoned 2
    in_pause max --max-runs 5 -- true
    kill -KILL "$(field max .keeper.pid)"
    ended max 125 abandoned 2
    is_field max .cause "the keeper was killed"
    [ "$(events session_killed max)" -eq 1 ]
}

@test "run: supervisor or keeper killed while the command runs: one session_stopping, one session_killed, one notice (L8)" {
    local one
    for one in supervisor keeper; do
        mkdir "$one"
        hf run "$one" -d -C "$one" --notify 'cat >notice' -- sleep 60
        kill -KILL "$(field "$one" ".$one.pid")"
        expect 125 hf wait "$one"
        told "$one" 1
        jq -e --arg cause "the $one was killed" '.outcome == "abandoned" and .cause == $cause' "$one/notice"
        [ "$(events session_stopping "$one")" -eq 1 ]
        [ "$(events session_killed "$one")" -eq 1 ]
    done
}

@test "loop: an interrupt that ends the attempt ends the loop" {
    spawn env --default-signal=INT "$HOLDFAST" run x --every 10ms --backoff 10ms -- bash -c 'echo run >>runs; exec sleep 60'
    wait_until 10 test -s runs
    wait_until 10 is_field x .state running
    kill -INT "$spawned_pid"
    expect 130 hf wait x -w 10
    [ "$(wc -l <runs)" -eq 1 ]
    is_field x '.state, .outcome' $'stopped\ninterrupted'
}

@test "loop: a command that exits 0 on INT ends its loop, and is neither succeeded nor verified (L14)" {
    spawn env --default-signal=INT "$HOLDFAST" run x --every 10ms --verify 'touch verified' -- bash -c '
        trap "exit 0" INT; echo run >>runs; while :; do sleep 0.02; done'
    wait_until 10 test -s runs
    wait_until 10 is_field x .state running
    kill -INT "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 130 ]
    [ "$(wc -l <runs)" -eq 1 ]
    [ ! -e verified ]
    is_field x '.outcome, .exit, .cause' $'interrupted\n130\nit was interrupted (exit 0)'
}

@test "loop: killed between two good attempts it is abandoned, for run, ps and reap alike, and is resumed (L14)" {
    spawn "$HOLDFAST" run x --every 60s -- true
    wait_until 10 is_field x .state waiting
    kill -KILL "$(field x .keeper.pid)"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 125 ]
    is_field x '.state, .outcome, .exit' $'failed\nabandoned\n125'
    hf run y --detach --every 60s -- true
    wait_until 10 is_field y .state waiting
    kill_keepers y
    wait_until 5 is_field y .state dead-unreaped
    expect 0 hf reap y
    is_field y '.state, .outcome, .exit' $'failed\nabandoned\n125'
    [ "$(events session_ended y)" -eq 1 ]
    expect 0 hf run y --resume --max-runs 1 --every 0
    is_field y '.state, .attempt' $'done\n2'
}

@test "loop: an until that hangs or leaves something behind is ended; the loop goes on" {
    expect 1 hf run x --max-runs 2 --until 'sleep 60 & echo $! >>left; false' -- true
    [ "$(wc -l <left)" -eq 2 ]
    for pid in $(cat left); do is_dead "$pid"; done
}

@test "loop: goes on while its supervisor is stopped, and gives its status when that goes on" {
    spawn "$HOLDFAST" run x --max-runs 150 --backoff 1ms --backoff-max 1ms -- bash -c 'exit 4'
    wait_until 10 is_field x '.attempt > 0' true
    kill -STOP "$spawned_pid"
    wait_until 20 is_field x '.attempt, .state' $'150\nfailed'
    kill -CONT "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 4 ]
}

@test "health: a loop whose every run fails is failing while it waits and while it runs" {
    spawn "$HOLDFAST" run x --backoff 100ms --backoff-max 60s --every 1ms -- bash -c '[ ! -e later ] || sleep 60; exit 1'
    wait_until 10 is_field x .state failing
    touch later
    wait_until 10 is_field x '.pid != null and .state == "failing"' true
}
