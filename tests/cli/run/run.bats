# run: what the command gets, what comes back, what is refused, what is passed on.
load ../session_helper

@test "the command's exit status is ours; it runs without a shell, with its words as they are" {
    expect 0 hf run x -- true
    expect 7 hf run x -- bash -c 'exit 7'
    expect 125 hf run x -- bash -c 'exit 125'
    expect 255 hf run x -- bash -c 'exit 255'
    run --separate-stderr hf run x -- printf '[%s]' 'a b' '$HOME' '*' '' -n --deadline
    [ "$status" -eq 0 ]
    [ "$output" = '[a b][$HOME][*][][-n][--deadline]' ]
    [ -z "$stderr" ]
}

@test "127 not found, 126 not executable, 128+N killed by N; each is on record as such" {
    expect 127 hf run x -- /no/such/program
    says "not-started"
    is_field x '.state + " " + .outcome + " " + (.exit | tostring)' "failed not-started 127"
    PATH=/usr/bin:/bin expect 127 hf run x -- no-such-program-in-path
    expect 126 hf run x -- /etc/passwd
    expect 126 hf run x -- /
    expect 137 hf run x -- bash -c 'kill -KILL $$'
    is_field x .cause "killed by SIGKILL"
    expect 139 hf run x -- bash -c 'ulimit -c 0; kill -SEGV $$'
    expect 1 hf lock check x
}

@test "124 when the deadline is reached, and nothing of it lives (L7)" {
    start=$(now_ms)
    expect 124 hf run x --deadline 200ms -- bash -c 'echo $$ >pid; sleep 60 & echo $! >child; wait'
    [ $(($(now_ms) - start)) -lt 4000 ]
    is_dead "$(cat pid)"
    is_dead "$(cat child)"
    is_field x '.outcome + ": " + .cause' "timed-out: the deadline was reached"
    expect 124 hf run x --deadline 100ms --grace 100ms -- bash -c 'trap "" TERM; sleep 60 & wait; sleep 60'
    [ "$(events session_killed x)" -eq 1 ]
}

@test "usage errors are 2, and nothing is started" {
    expect 2 hf run
    expect 2 hf run x
    expect 2 hf run x --
    expect 2 hf run x --deadline -- touch ran
    expect 2 hf run x --deadline soon -- touch ran
    expect 2 hf run x --no-such-option -- touch ran
    expect 2 hf run x --shared -- touch ran
    expect 2 hf run x --slots 2 -- touch ran
    expect 2 hf run x --on-timeout proceed -- touch ran
    says "two sessions with the same name"
    expect 2 hf run x --on-timeout never -- touch ran
    expect 2 hf run x --tree forest -- touch ran
    expect 2 hf run x --group g -- touch ran
    expect 2 hf run x --max-active 65 --group g -- touch ran
    expect 2 hf run x --max-active 0 --group g -- touch ran
    expect 2 hf run x --max-runs 0 -- touch ran
    expect 2 hf run x --max-depth 0 -- touch ran
    expect 2 hf run x -E 256 -- touch ran
    expect 2 hf run x --ttl 31d -- touch ran
    expect 2 hf run "$(printf 'n%.0s' {1..81})" -- touch ran
    expect 2 hf run '' -- touch ran
    [ ! -e ran ]
}

@test "a lease that is too short to be kept is a usage error, not 125" {
    expect 2 hf run x --ttl 1ms -- touch ran
    [ ! -e ran ]
}

@test "the command learns its session: HOLDFAST_* variables; the caller's own do not leak in" {
    HOLDFAST_DEADLINE=1 HOLDFAST_TOKEN=1 HOLDFAST_SESSION=other expect 0 hf run 'my run' -- env
    [ "$(grep -c ^HOLDFAST_SESSION= <<<"$output")" -eq 1 ]
    says "HOLDFAST_SESSION=my run"
    says "HOLDFAST_LOCK=my run"
    says "HOLDFAST_DIR=$HOLDFAST_DIR"
    says "HOLDFAST_DEPTH=1"
    [[ "$output" != *HOLDFAST_DEADLINE* ]]
    [ "$(sed -n 's/^HOLDFAST_TOKEN=//p' <<<"$output")" = "$(field 'my run' .token)" ]
    before=$(date +%s)
    expect 0 hf run x --deadline 1h -- bash -c 'echo "$HOLDFAST_DEADLINE"; "$0" run inner -- bash -c "echo \$HOLDFAST_DEPTH \$HOLDFAST_SESSION"' "$HOLDFAST"
    [ $((lines[0] - before)) -ge 3600 ]
    [ $((lines[0] - before)) -le 3610 ]
    [ "${lines[1]}" = "2 inner" ]
}

@test "the token in the environment is that of the held lock" {
    expect 0 hf run x -- bash -c '"$0" lock check x --token "$HOLDFAST_TOKEN"' "$HOLDFAST"
}

@test "a second run of the name: exit 1 or -E; names the holder, its age, its command and what to do (L1)" {
    running x
    expect 1 hf run x -- touch ran
    says "held by pid "
    says "is running, for "
    says "attempt 1: bash -c"
    says "holdfast stop x"
    says "holdfast logs x"
    says "alive"
    expect 77 hf run x -E 77 -- touch ran
    expect 1 hf run x -n -- touch ran
    run --separate-stderr hf --json run x -w 100ms -- touch ran
    [ "$status" -eq 1 ]
    is_json '.conflict and .name == "x" and .age_seconds >= 0 and .holder.liveness == "alive" and .error.code == "timeout"'
    is_json ".holder_pid == $(field x .keeper.pid)"
    expect 1 hf run x --detach -- touch ran
    says "holdfast stop x"
    [ ! -e ran ]
    let_go x 5
    wait "$spawned_pid" || [ $? -eq 5 ]
}

@test "busy as JSON names the session too: state, command, attempt" {
    running x
    run --separate-stderr hf --json run x -- touch ran
    [ "$status" -eq 1 ]
    is_json '.session.state == "running" and .session.attempt == 1 and (.session.command | startswith("bash -c"))'
}

@test "busy: a name that is held as a plain lock is not taken for the session that had it before" {
    hf run x --detach -- sleep 60
    kill_keepers x
    wait_until 5 is_field x .state dead-unreaped
    hf reap x
    hf lock acquire x --pid $$ >/dev/null
    expect 1 hf run x -- touch ran
    says "held by pid $$"
    says "lock break --reason TEXT x"
    [[ "$output" != *"it is failed"* ]]
    [ ! -e ran ]
}

@test "-w waits its turn and gets it; on time-out: fail is 1, skip is 0 with one event" {
    running x
    spawn "$HOLDFAST" run x -w 20 -- touch ran
    waiter=$spawned_pid
    wait_until 10 bash -c '[ "$("$0" lock list --json | jq "[.locks[] | select(.name == \"x\") | .waiters | length] | add")" = 1 ]' "$HOLDFAST"
    expect 1 hf run x -w 50ms -- touch never
    expect 0 hf run x -w 50ms --on-timeout skip -- touch never
    says "skipped"
    expect 0 hf run x -n --on-timeout skip -- touch never
    [ "$(events lock_skipped x)" -eq 2 ]
    [ ! -e ran ]
    let_go x
    wait "$waiter"
    [ -e ran ]
    [ ! -e never ]
}

@test "a run that waits for its turn can be interrupted, and leaves no trace" {
    running x
    spawn bash -c 'exec env --default-signal=INT "$0" run x -w 20 -- touch never 2>said' "$HOLDFAST"
    waiter=$spawned_pid
    waiting() { [ "$(hf lock list --json | jq '[.locks[] | select(.name == "x") | .waiters | length] | add')" = "$1" ]; }
    wait_until 10 waiting 1
    kill -INT "$waiter"
    status=0
    wait "$waiter" || status=$?
    [ "$status" -eq 130 ]
    grep -q "stopped while it waited" said
    wait_until 10 waiting 0
    [ ! -e never ]
    is_field x .state running
}

@test "a run that waits for its turn ends when its supervisor is killed: nothing starts later" {
    running x
    spawn "$HOLDFAST" run x -w 60 -- touch never
    waiting() { [ "$(hf lock list --json | jq '[.locks[] | select(.name == "x") | .waiters | length] | add')" = "$1" ]; }
    wait_until 10 waiting 1
    waiter=$spawned_pid
    keeper=$(pgrep -P "$waiter")
    kill -KILL "$waiter"
    wait_until 5 is_dead "$keeper"
    let_go x
    wait "${spawned[0]}"
    expect 0 hf run x -- true
    [ ! -e never ]
}

# signalled SIGNAL...: a session whose command notes what it gets; sends them all to the supervisor
signalled() {
    local signal n=0
    spawn env --default-signal=INT,QUIT "$HOLDFAST" run x -- bash -c '
        for s in INT QUIT USR1 USR2 ALRM WINCH CONT; do trap "echo $s >>got" $s; done
        trap "echo TERM >>got; exit 0" TERM
        trap "echo HUP >>got; exit 0" HUP
        touch up; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -e up
    for signal; do
        kill -"$signal" "$spawned_pid"
        n=$((n + 1))
        wait_until 10 bash -c '[ "$(cat got 2>/dev/null | wc -l)" -ge "$0" ]' "$n"
    done
}

@test "USR1 USR2 ALRM WINCH CONT are passed on, once each, and end nothing" {
    signalled USR1 USR2 ALRM WINCH CONT
    touch go
    wait "$spawned_pid"
    [ "$(paste -sd' ' got)" = "USR1 USR2 ALRM WINCH CONT" ]
    is_field x .state done
}

@test "INT and QUIT are passed on, once each; the attempt is interrupted, 130 or 131, though the command exits 0 (L14)" {
    signalled INT QUIT
    touch go
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 130 ]
    [ "$(paste -sd' ' got)" = "INT QUIT" ]
    is_field x '.state, .outcome, .exit, .cause' $'stopped\ninterrupted\n130\nit was interrupted (exit 0)'
    rm go got up
    signalled QUIT
    touch go
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 131 ]
    is_field x .outcome interrupted
}

@test "TERM ends the session: 143 although the command exits 0, and it counts as stopped" {
    signalled TERM
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 143 ]
    # TERM to the tree comes with CONT, for those that are stopped.
    [ "$(grep -vc CONT got)" -eq 1 ]
    is_field x '.state + " " + .outcome' "stopped stopped"
}

@test "HUP ends the session, too; the command gets HUP" {
    signalled HUP
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 129 ]
    grep -q HUP got
    is_field x .outcome stopped
}

@test "what the caller ignores (nohup) stays ignored, here and in the command" {
    spawn bash -c 'trap "" HUP; exec "$0" run x -- bash -c "touch up; until [ -e go ]; do sleep 0.02; done"' "$HOLDFAST"
    wait_until 10 test -e up
    kill -HUP "$spawned_pid"
    touch go
    wait "$spawned_pid"
}

@test "a caller that ignores SIGCHLD gets the command's status all the same" {
    expect 0 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$HOLDFAST" run x -- true
    expect 7 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$HOLDFAST" run x -- bash -c 'exit 7'
    expect 0 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$HOLDFAST" run x --detach -- true
    expect 0 hf wait x
}

@test "closed standard descriptors do no harm" {
    expect 7 bash -c '"$0" run x -- sh -c "exit 7" <&- >&- 2>&-' "$HOLDFAST"
    expect 7 bash -c '"$0" run x --log -- sh -c "echo out; exit 7" <&- >&- 2>&-' "$HOLDFAST"
    is_field x .outcome failed
}

@test "the lock is held while it runs and free afterwards; the record is private" {
    expect 0 hf run x -- bash -c '"$0" lock check x' "$HOLDFAST"
    expect 1 hf lock check x
    [ "$(stat -c %a "$HOLDFAST_DIR/sessions/x")" = 700 ]
    [ "$(stat -c %a "$HOLDFAST_DIR/sessions/x/session.jsonl")" = 600 ]
    [ "$(stat -c %a "$HOLDFAST_DIR/sessions/x/command.json")" = 600 ]
    expect 0 hf journal verify
}

@test "any bytes may be in a name; none of them leaves the state directory (L12)" {
    for name in ../up 'a/b' $'new\nline' $'\xff\xfe' '..' 'ünï'; do
        expect 0 hf run "$name" -- true
        expect 0 hf wait "$name"
        expect 0 hf ps "$name"
    done
    [ -z "$(find "$BATS_TEST_TMPDIR" -newer "$HOLDFAST_DIR/FORMAT" -type f -not -path "$HOLDFAST_DIR/*")" ]
    expect 0 hf ps --json
    is_json '.sessions | length == 6'
}

@test "125 when Holdfast fails around the command: its record cannot be written, so nothing starts" {
    command -v strace >/dev/null || skip "no strace"
    hf run x -- true
    [ "$(strace -f -o trace -e inject=uname:error=EPERM true 2>&1)" = "" ] || skip "strace may not trace here"
    status=0
    ASAN_OPTIONS=detect_leaks=0 timeout 20 strace -f -b execve -o trace -e inject=fdatasync:error=ENOSPC "$HOLDFAST" run x -- touch ran 2>said || status=$?
    cat said
    [ "$status" -eq 125 ]
    [ ! -e ran ]
    grep -q "No space left" said
    expect 1 hf lock check x
    expect 0 hf run x -- true
}

@test "twenty at once: each gets its turn, never two together (L1)" {
    pids=()
    for i in {1..20}; do
        spawn "$HOLDFAST" run x -w 60 -- bash -c 'mkdir critical || touch broken; echo >>turns; rmdir critical'
        pids+=("$spawned_pid")
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    [ "$(wc -l <turns)" -eq 20 ]
    [ ! -e broken ]
    [ "$(events session_ended x)" -eq 20 ]
}

@test "a state directory that is taken away: the lease is lost, the tree ends, exit 125" {
    spawn bash -c '"$0" run x --ttl 600ms --grace 200ms -- bash -c "echo \$\$ >up; exec sleep 60" 2>said; echo $? >status' "$HOLDFAST"
    wait_until 10 test -s up
    rm -rf "$HOLDFAST_DIR"
    wait "$spawned_pid"
    [ "$(cat status)" -eq 125 ]
    grep -q "lost-lock" said
    is_dead "$(cat up)"
}
