# run: notices. The notify command is no part of the session: it delays nothing, holds nothing, and is bounded.
load ../session_helper

teardown() {
    touch "$BATS_TEST_TMPDIR/go"
}

@test "notify: one JSON object on stdin with all of it" {
    expect 3 hf run x --notify 'cat >notice' -- bash -c 'exit 3'
    told x 1
    jq -e '.v == 1 and .event == "end" and .session == "x" and .outcome == "failed" and .cause == "exit 3" and .exit == 3 and .attempt == 1' notice
    jq -e '.same == 1 and .failures == 1 and .ran_ms >= 0 and .token > 0 and (.command | startswith("bash")) and (.ended | test("Z$"))' notice
}

@test "notify: 200 identical failures are at most 8 notices" {
    expect 1 hf run x --max-runs 200 --backoff 1ms --backoff-max 1ms --notify 'jq -r .same >>notices' -- false
    is_field x '.attempt, .failures' $'200\n200'
    told x 5
    [ "$(cat notices)" = $'1\n3\n9\n27\n81' ]
}

@test "notify: each run is told anew, as cron makes them; in a loop a changed cause is told at once" {
    notify='jq -r "[.outcome, .cause] | join(\" \")" >>notices'
    for i in 1 2; do hf run x --notify "$notify" -- true; told x $i; done
    for i in 3 4; do hf run x --notify "$notify" -- false || true; told x $i; done
    hf run x --max-runs 4 --backoff 1ms --notify "$notify" -- bash -c 'echo >>n; [ "$(wc -l <n)" -lt 4 ] || exit 2; exit 1' || true
    told x 7
    cat notices
    [ "$(cat notices)" = 'succeeded exit 0
succeeded exit 0
failed exit 1
failed exit 1
failed exit 1
failed exit 1
failed exit 2' ]
}

@test "notify-on: failure tells no success, always tells every outcome, start tells each run's; resume and restart remember it" {
    hf run x --notify 'jq -r .outcome >>notices' --notify-on failure -- true
    expect 1 hf run x --notify 'jq -r .outcome >>notices' --notify-on failure -- false
    told x 1
    [ "$(cat notices)" = failed ]
    expect 1 hf run y --max-runs 2 --backoff 1ms --notify 'jq -r .outcome >>always' --notify-on always -- false
    expect 1 hf run y --resume
    told y 4
    expect 1 hf run z --max-runs 2 --backoff 1ms --notify 'jq -c "[.event, .outcome, .exit, .ended != null, .attempt]" >>starts' --notify-on start,failure -- false
    told z 2
    expect 0 hf restart z
    told z 4
    [ "$(cat starts)" = '["start",null,null,false,1]
["end","failed",1,true,1]
["start",null,null,false,3]
["end","failed",1,true,3]' ]
    for bad in sometimes start, ,; do expect 2 hf run x --notify-on "$bad" -- true; done
}

@test "notify: one that fails or is missing changes nothing but the event, which has what it said" {
    expect 0 hf run x --notify 'echo no route to host >&2; exit 5' -- true
    told x 1
    expect 0 hf run x --notify /no/such/notifier -- true
    told x 2
    expect 7 hf run x --notify 'kill -9 $$' -- bash -c 'exit 7'
    told x 3
    [ "$(hf -q journal query --event session_notified --json | jq -s 'map(.status) | join(" ")' -r)" = "5 127 137" ]
    hf -q journal query --event session_notified --json | jq -se '.[0].said == "no route to host" and (.[1].said | contains("/no/such/notifier")) and .[2].said == null'
}

# Holds the notice until `go` is there.
HELD='touch up-$HOLDFAST_ATTEMPT; until [ -e go ]; do sleep 0.02; done; cat >>notice'

@test "notify: a slow one delays neither exit, nor the reader of a pipe, nor the name, nor stop, wait, reap and rm" {
    expect 0 hf run x --notify "$HELD" -- echo said
    wait_until 10 test -e up-1
    output=$(hf run y --notify "$HELD" -- echo piped)
    [ "$output" = piped ]
    expect 0 hf run x -n -- true
    expect 0 hf wait x
    expect 0 hf reap
    expect 0 hf rm x
    [ ! -e notice ]
    touch go
    told x 1
    told y 1
    [ "$(wc -l <notice)" -eq 2 ]
}

@test "notify: it has no terminal, no descriptor of the run, and neither the marks nor the lock of the session" {
    expect 0 hf run x --notify 'env >environment; ls -l /proc/$$/fd >fds; cat /proc/$$/limits >limits; touch up; until [ -e go ]; do sleep 0.02; done' -- sh -c 'cat /proc/$$/limits >own; env >theirs'
    wait_until 10 test -e up
    grep -q '^HOLDFAST_RUNS=' theirs
    grep -q '^HOLDFAST_TOKEN=' theirs
    run ! grep -E '^HOLDFAST_(RUNS|TOKEN|LOCK)' environment
    grep -q '^HOLDFAST_SESSION=x$' environment
    run ! diff <(grep 'file locks' own) <(grep 'file locks' limits)
    [ "$(grep -cE ' [0-9]+ -> ' fds)" -le 4 ]
    run ! grep -E 'tty|pts|state' fds
    [ "$(hf --json lock list | jq -c '[.locks[] | select(.name == "x") | .holders[]]')" = '[]' ]
    touch go
    told x 1
}

@test "notify: in a loop the next attempt does not wait for it, and does not end it; order is kept" {
    spawn "$HOLDFAST" run x --max-runs 3 --every 1ms --backoff 1ms --notify-on always \
        --notify "$HELD" -- sh -c 'echo run >>runs; exit 1'
    wait "$spawned_pid" || [ $? -eq 1 ]
    [ "$(wc -l <runs)" -eq 3 ]
    [ ! -e notice ]
    touch go
    told x 3
    [ "$(jq .attempt notice)" = $'1\n2\n3' ]
    [ "$(hf --json journal query --event session_notified | jq -r .status | sort -u)" = 0 ]
}

@test "notify: told of a stop, and of a supervisor that was killed" {
    hf run x --detach --notify 'jq -r .outcome >stop' -- sleep 60
    hf stop x
    expect 143 hf wait x
    told x 1
    [ "$(cat stop)" = stopped ]
    spawn "$HOLDFAST" run y --notify 'jq -r .outcome >killed' -- sleep 60
    wait_until 10 is_field y .state running
    kill -KILL "$spawned_pid"
    told y 1
    [ "$(cat killed)" = abandoned ]
}

# released NAME N: releases the notice that waits; true when N of them were sent
released() {
    touch go
    has_told "$1" "$2"
}

@test "notify: a signal to run does not end a notice that is being sent, and the loop has its outcome (L8)" {
    for case in TERM:succeeded:0:1 HUP:succeeded:0:1 KILL:abandoned:125:2; do
        IFS=: read -r signal outcome exit notices <<<"$case"
        spawn "$HOLDFAST" run "$signal" --every 60s --notify "rm -f go; $HELD" -- true
        wait_until 10 test -e up-1
        kill -"$signal" "$spawned_pid"
        wait "$spawned_pid" 2>/dev/null || true
        wait_until 10 is_dead "$(field "$signal" .keeper.pid)"
        is_field "$signal" '.outcome, .exit' "$outcome"$'\n'"$exit"
        wait_until 10 released "$signal" "$notices"
        rm up-1
    done
    [ "$(hf --json journal query --event session_notified | jq -r .status | sort -u)" = 0 ]
}

@test "notify: what it leaves running ends with it" {
    expect 0 hf run x --notify 'sleep 600 >/dev/null 2>&1 & echo $! >left' -- true
    told x 1
    wait_until 10 is_dead "$(cat left)"
}
