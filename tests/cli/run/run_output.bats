# run: where the output goes - straight through, to the log, to both - and what silence means.
load ../session_helper

@test "detach returns when the command runs, says its pid, and the log has the output" {
    expect 0 hf run x --detach -- bash -c 'echo $$; echo oops >&2; until [ -e go ]; do sleep 0.02; done; exit 3'
    says "x runs in the background: pid $(field x .pid)"
    wait_until 10 bash -c '[ "$("$0" logs x | wc -l)" -eq 2 ]' "$HOLDFAST"
    expect 0 hf logs x
    [ "${lines[0]}" = "$(field x .pid)" ]
    [ "${lines[1]}" = oops ]
    expect 1 hf run x --detach -- true
    touch go
    expect 3 hf wait x
    run --separate-stderr hf --json run x --detach -- true
    is_json '.v == 1 and .name == "x" and .outcome == null and .pid > 1 and .attempt == 1 and .token > 0 and .supervisor.pid > 1'
    expect 0 hf wait x
}

@test "detach gives the reason when the command cannot run" {
    expect 127 hf run x --detach -- /no/such/program
    says "not-started"
    says "No such file"
    expect 126 hf run x --detach -- /etc/passwd
    expect 126 hf wait x
}

@test "detach holds nothing of the caller's open, and is no child of it" {
    start=$(now_ms)
    out=$(hf run x --detach -- sleep 30)
    [ $(($(now_ms) - start)) -lt 3000 ]
    [[ "$out" == *"in the background"* ]]
    exec 9<>file
    flock 9
    hf run y --detach -- sleep 30 9>&9
    exec 9>&-
    # A descriptor that the session had inherited would still hold this lock.
    flock -n file true
    for pid in $(field x '.supervisor.pid, .keeper.pid, .pid'); do
        [ "$(readlink "/proc/$pid/fd/0")" = /dev/null ]
        run ! bash -c 'ls -l "/proc/$1/fd" | grep -q "pipe:.*bats"' _ "$pid"
    done
    [ "$(ps -o sid= -p "$(field x .pid)")" -ne "$(ps -o sid= -p $$)" ]
    expect 0 hf stop x --grace 0
}

@test "log tees: the caller has both streams apart, the log has both" {
    run --separate-stderr hf run x --log -- bash -c 'echo out; echo err >&2; exit 4'
    [ "$status" -eq 4 ]
    [ "$output" = out ]
    [ "$stderr" = err ]
    expect 0 hf logs x
    [ "$(sort <<<"$output" | paste -sd' ')" = "err out" ]
}

@test "with --no-log there is no log, and that is said; in the background the output goes nowhere" {
    [ "$(hf run x --no-log -- echo out)" = out ]
    expect 1 hf logs x
    says "has no log"
    hf run y --no-log --detach -- echo out
    expect 0 hf wait y
    expect 1 hf logs y
    expect 2 hf run x --no-log --log -- true
    expect 1 hf logs never-run
}

@test "stdin goes to the command, with and without --log, and its end too" {
    [ "$(echo hello | hf run x -- cat)" = hello ]
    [ "$(echo hello | hf run x --log -- cat)" = hello ]
    [ "$(echo hello | hf run x --idle 10s -- cat)" = hello ]
    [ "$(hf run x --log -- cat </dev/null)" = "" ]
}

@test "100,000 lines through --log: none is lost, changed or doubled" {
    seq 100000 | md5sum >want
    hf run x --log -- seq 100000 | md5sum >got
    hf logs x | md5sum >logged
    cmp want got
    cmp want logged
    # Without a newline at the end, and bytes that are no text.
    head -c 300000 /dev/urandom >bytes
    hf run x --log -- cat bytes | cmp - bytes
    hf logs x | cmp - bytes
}

@test "a reader that goes away: with --log the command goes on and the log has all of it" {
    hf run x --log -- bash -c 'for i in {1..2000}; do echo "line $i, long enough to fill a pipe in the end" || exit 9; done; touch finished' | head -n 1
    [ -e finished ]
    [ "$(hf logs x | wc -l)" -eq 2000 ]
    is_field x .state done
}

@test "a reader that goes away: when no log was asked for the command gets SIGPIPE, as it would alone" {
    status=0
    bash -c '"$0" run x --no-log -- yes | head -n 1; exit "${PIPESTATUS[0]}"' "$HOLDFAST" || status=$?
    [ "$status" -eq 141 ]
    status=0
    bash -c '"$0" run x -- yes | head -n 1; exit "${PIPESTATUS[0]}"' "$HOLDFAST" || status=$?
    [ "$status" -eq 141 ]
    status=0
    bash -c '"$0" run x --idle 10s -- yes | head -n 1; exit "${PIPESTATUS[0]}"' "$HOLDFAST" || status=$?
    [ "$status" -eq 141 ]
}

@test "a reader that is slow gets everything, and a deadline still ends it" {
    hf run x --log -- seq 30000 | (wait_until 5 is_field x .state running; cat) | md5sum >got
    seq 30000 | md5sum | cmp - got
    start=$(now_ms)
    status=0
    # Nobody reads: the command blocks in its write, the keeper does not.
    bash -c '"$0" run x --log --deadline 300ms --grace 100ms -- yes | (until [ -e ended ]; do sleep 0.02; done); exit "${PIPESTATUS[0]}"' "$HOLDFAST" 3>&- &
    pipeline=$!
    wait_until 8 is_field x .outcome timed-out
    touch ended
    wait "$pipeline" || status=$?
    [ "$status" -eq 124 ]
    [ $(($(now_ms) - start)) -lt 15000 ]
}

@test "logs: the last lines, the run before, and the log of a resumed session is gone on with" {
    hf run x --log -- seq 5 >/dev/null
    expect 0 hf logs x -n 2
    [ "$output" = $'4\n5' ]
    expect 0 hf logs x -n 0
    [ -z "$output" ]
    expect 0 hf logs x -n 99
    [ "${#lines[@]}" -eq 5 ]
    expect 1 hf logs x --previous
    hf run x --log -- bash -c 'printf second; exit 1' >/dev/null || true
    expect 0 hf logs x
    [ "$output" = second ]
    expect 0 hf logs x -n 1
    [ "$output" = second ]
    expect 0 hf logs x --previous
    [ "${#lines[@]}" -eq 5 ]
    hf run x --log --resume -- printf third >/dev/null
    expect 0 hf logs x
    [ "$output" = secondthird ]
    expect 2 hf logs x -f --previous
    expect 2 hf logs
}

@test "logs -f shows what comes and ends with the session" {
    hf run x --detach -- bash -c 'echo one; until [ -e go ]; do sleep 0.02; done; echo two'
    spawn bash -c '"$0" logs x -f >followed' "$HOLDFAST"
    wait_until 10 grep -q one followed
    run ! grep -q two followed
    touch go
    wait "$spawned_pid"
    [ "$(cat followed)" = $'one\ntwo' ]
    # Of one that has ended: all of it, at once.
    expect 0 hf logs x -f
    [ "${#lines[@]}" -eq 2 ]
}

@test "logs -f ends when both of its keepers are killed, too" {
    hf run x --detach -- bash -c 'echo one; sleep 60'
    spawn bash -c '"$0" logs x -f >followed' "$HOLDFAST"
    wait_until 10 grep -q one followed
    kill_keepers x
    wait "$spawned_pid"
    expect 0 hf reap x
}

@test "idle: silence ends it with 124, output keeps it alive; in front and in the background" {
    expect 124 hf run x --idle 300ms -- bash -c 'echo here; sleep 60'
    says here
    is_field x '.outcome + ": " + .cause' "timed-out: no output for too long"
    expect 0 hf run x --idle 1s -- bash -c 'for i in {1..12}; do echo $i; sleep 0.1; done'
    [ "${#lines[@]}" -eq 12 ]
    expect 0 hf run x --idle 300ms --detach -- bash -c 'echo here; sleep 60'
    expect 124 hf wait x -w 10
    expect 0 hf run x --idle 1s --detach -- bash -c 'for i in {1..12}; do echo $i; sleep 0.1; done'
    expect 0 hf wait x -w 10
    expect 124 hf run x --idle 300ms --log -- sleep 60
}

@test "a child that keeps the output open does not keep the session, nor the caller's pipe" {
    start=$(now_ms)
    out=$(hf run x --log -- bash -c 'sleep 60 & echo done')
    [ "$out" = done ]
    out=$(hf run x --grace 100ms -- bash -c '(trap "" TERM; sleep 60) & echo done')
    [ "$out" = done ]
    [ $(($(now_ms) - start)) -lt 8000 ]
}

@test "a stop while output is pumped ends at once" {
    spawn bash -c '"$0" run x --log -- yes >/dev/null' "$HOLDFAST"
    wait_until 10 is_field x .state running
    start=$(now_ms)
    expect 0 hf stop x
    [ $(($(now_ms) - start)) -lt 4000 ]
}
