# run: how a session is ended. Which process gets TERM and when, which cause counts, what is told of it.
load ../session_helper

# A leader that notes TERM and takes its time, with a tool that notes TERM as well; ends when the file "end" is there.
agent='
    bash -c "trap \"date +%s%N >tool.term; exit 0\" TERM; echo \$\$ >tool.pid; while :; do sleep 0.02; done" &
    trap "date +%s%N >leader.term" TERM
    echo $$ >leader.pid
    until [ -e end ] && [ -e leader.term ]; do sleep 0.02; done
    date +%s%N >leader.end
    exit 0'

start_agent() {
    rm -f tool.* leader.* end
    spawn "$HOLDFAST" run x "$@" -- bash -c "$agent"
    wait_until 10 test -s leader.pid
    wait_until 10 test -s tool.pid
    wait_until 10 is_field x .state running
}

ended_with() {
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq "$1" ] || { echo "exit $status, not $1"; return 1; }
    is_dead "$(cat leader.pid)" && is_dead "$(cat tool.pid)"
}

# is_taken PID: no signal is pending there
is_taken() { ! grep -qsE '^(SigPnd|ShdPnd):.*[1-9a-f]' "/proc/$1/status"; }

@test "TERM goes to the leader; its tool has it when the leader has gone, and not before" {
    start_agent --grace 30s
    kill -TERM "$spawned_pid"
    wait_until 5 test -s leader.term
    # A third of the grace is ten seconds.
    sleep 0.3
    [ ! -e tool.term ]
    touch end
    ended_with 143
    wait_until 5 test -s tool.term
    [ "$(cat tool.term)" -gt "$(cat leader.end)" ]
    is_field x .outcome stopped
    [ "$(events session_killed x)" -eq 0 ]
}

@test "TERM goes to the rest after a third of the grace, KILL at its end" {
    start_agent --grace 3s
    kill -TERM "$spawned_pid"
    ended_with 137
    gap=$((($(cat tool.term) - $(cat leader.term)) / 1000000))
    echo "the tool had TERM $gap ms after the leader"
    [ "$gap" -ge 900 ]
    [ "$gap" -lt 2900 ]
    is_field x .outcome stopped
    [ "$(events session_killed x)" -eq 1 ]
}

@test "--term tree: all have TERM at once" {
    start_agent --term tree --grace 30s
    kill -TERM "$spawned_pid"
    wait_until 5 test -s tool.term
    wait_until 5 test -s leader.term
    touch end
    ended_with 143
    expect 2 hf run x --term forest -- true
}

@test "deadline and stop end in the same order; a stopped leader is continued" {
    rm -f up got
    expect 124 hf run x --deadline 300ms --grace 10s -- bash -c 'trap "echo TERM >got; exit 0" TERM; kill -STOP $$; while :; do sleep 0.02; done'
    [ "$(cat got)" = TERM ]
    start_agent --grace 30s
    spawn "$HOLDFAST" stop x
    wait_until 5 test -s leader.term
    [ ! -e tool.term ]
    touch end
    wait "$spawned_pid"
    is_field x .outcome stopped
}

@test "the first cause stays: a TERM in the grace of a deadline leaves timed-out, 124; a deadline in that of a stop leaves stopped" {
    spawn "$HOLDFAST" run x --deadline 300ms --grace 1s -- bash -c 'trap "echo TERM >>got" TERM; touch up; while :; do sleep 0.02; done'
    wait_until 10 test -s got
    kill -TERM "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 124 ]
    is_field x '.outcome, .exit, .cause' $'timed-out\n124\nthe deadline was reached'
    # And as one event, beside that of the stop.
    [ "$(hf -q journal query --event session_ended --json | jq -rs 'map(.outcome) | join(" ")')" = timed-out ]
    rm got up
    spawn "$HOLDFAST" run y --deadline 1s --grace 2s -- bash -c 'trap "echo TERM >>got" TERM; touch up; while :; do sleep 0.02; done'
    wait_until 10 test -e up
    kill -TERM "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 137 ]
    is_field y .outcome stopped
}

@test "the first cause stays: TERM after INT leaves interrupted, 130; INT after TERM leaves stopped" {
    for signals in "INT TERM" "TERM INT" "INT INT TERM" "QUIT HUP"; do
        rm -f up
        spawn env --default-signal=INT,QUIT "$HOLDFAST" run x --verify true -- bash -c 'trap "" INT QUIT; trap "sleep 0.1; exit 0" TERM HUP; touch up; while :; do sleep 0.02; done'
        wait_until 10 test -e up
        for signal in $signals; do
            kill -"$signal" "$spawned_pid"
            # One after the other: of those that are pending at once, the lowest number would be the first.
            wait_until 10 is_taken "$spawned_pid"
        done
        status=0
        wait "$spawned_pid" || status=$?
        echo "$signals: $status $(field x .outcome)"
        case $signals in
        INT*) [ "$status $(field x .outcome)" = "130 interrupted" ] ;;
        QUIT*) [ "$status $(field x .outcome)" = "131 interrupted" ] ;;
        TERM*) [ "$status $(field x .outcome)" = "143 stopped" ] ;;
        esac
    done
    [ "$(events session_ended x)" = 4 ]
}

@test "the first cause stays in a loop, too: a TERM in the grace of a deadline ends it after that attempt" {
    spawn "$HOLDFAST" run x --every 1ms --deadline 300ms --grace 500ms -- bash -c 'trap "echo TERM >>got" TERM; echo run >>runs; while :; do sleep 0.02; done'
    wait_until 10 test -s got
    kill -TERM "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 124 ]
    [ "$(wc -l <runs)" -eq 1 ]
}

@test "a slow disk holds up neither the deadline nor the grace: no sync before TERM, none before KILL" {
    command -v strace >/dev/null || skip "no strace"
    skip_sanitizers "a sanitizer's calls are not ours"
    strace -f -o trace -e inject=uname:delay_enter=1000 true 2>/dev/null || skip "strace may not trace here"
    hf run x -- true
    status=0
    # Every sync takes four seconds; those before the start and after the end are waited for.
    timeout 60 strace -f -b execve -o trace -e trace=fdatasync,fsync -e inject=fdatasync,fsync:delay_enter=4000000 \
        "$HOLDFAST" run x --deadline 1s --grace 1500ms -- perl -MTime::HiRes=time,sleep -e '
            sub note { open(my $f, ">", "$_[0].new"); printf $f "%d\n", time * 1000; close $f; rename("$_[0].new", $_[0]) }
            $SIG{TERM} = sub { note("term") unless -e "term" };
            note("start");
            while (1) { note("beat"); sleep 0.02 }' || status=$?
    [ "$status" -eq 124 ]
    [ "$(grep -c 'sync(' trace)" -ge 2 ]
    late=$(($(cat term) - $(cat start)))
    grace=$(($(cat beat) - $(cat term)))
    echo "TERM after $late ms, KILL $grace ms later"
    # A sync on the way would make it 5,000 and 5,500; a loaded machine may start the command late, or let it beat seldom.
    [ "$late" -lt 4500 ]
    [ "$grace" -ge 300 ]
    [ "$grace" -lt 5000 ]
}

@test "a process that is stopped with the lock's record in its hand holds up neither the deadline nor the grace" {
    spawn "$HOLDFAST" run x --deadline 1s --grace 1s -- bash -c 'trap "" TERM; echo $$ >up; while :; do sleep 0.02; done'
    local supervisor=$spawned_pid
    wait_until 10 test -s up
    spawn perl -MFcntl=:flock -e 'open(F, "+<", $ARGV[0]) && flock(F, LOCK_EX) && sleep 60' "$(find "$HOLDFAST_DIR/locks" -type f -name x)"
    # Its own bound is 10 s for each look at the record, and there were several.
    wait_until 8 is_dead "$(cat up)"
    kill "$spawned_pid"
    wait "$supervisor" || [ $? = 124 ]
    is_field x .outcome timed-out
}

@test "a TERM that the supervisor reads before it knows that the keeper has the lock: TERM, grace, and one story (L7)" {
    spawn "$HOLDFAST" lock run x -- bash -c 'until [ -e free ]; do sleep 0.02; done'
    wait_until 10 hf lock check x
    spawn "$HOLDFAST" run x -w 60 -- bash -c 'trap "echo TERM >>got; exit 0" TERM; touch up; while :; do sleep 0.02; done'
    wait_until 10 bash -c '[ "$("$0" lock list --json | jq "[.locks[].waiters[]] | length")" = 1 ]' "$HOLDFAST"
    # It does not read the keeper's news while it is stopped.
    kill -STOP "$spawned_pid"
    touch free
    wait_until 10 test -e up
    kill -TERM "$spawned_pid"
    kill -CONT "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 143 ]
    [ "$(cat got)" = TERM ]
    is_field x '.outcome, .exit' $'stopped\n143'
    [ "$(hf -q journal query --event session_ended --json | jq -rs 'map(.outcome + " " + (.status | tostring)) | join(",")')" = "stopped 143" ]
    [ "$(events session_killed x)" -eq 0 ]
}

@test "a TERM that comes between the lock and the start: nothing is started, and one story (L14)" {
    command -v strace >/dev/null || skip "no strace"
    skip_sanitizers "a sanitizer's calls are not ours"
    strace -f -o trace -e inject=uname:delay_enter=1000 true 2>/dev/null || skip "strace may not trace here"
    hf run x -- true
    # The sync of the intent takes three seconds. The child is there, and is not let go before.
    spawn strace -f -b execve -o trace -e trace=fdatasync -e inject=fdatasync:delay_enter=3000000 "$HOLDFAST" run x -- touch ran
    wait_until 10 is_field x .state starting
    [ "$(cat "/proc/$(field x .pid)/comm")" = holdfast-keeper ]
    kill -TERM "$(field x .supervisor.pid)"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 143 ]
    [ ! -e ran ]
    is_field x '.outcome, .exit, .cause' $'stopped\n143\nit was asked to stop before its start'
    expect 1 hf lock check x
}

@test "what outlived the command and was ended is told: one event with count and names, one line, a field (L8)" {
    # Both have become what they are when the command ends.
    run --separate-stderr hf --json run x -- bash -c 'for i in 1 2; do sleep 60 & until [ "$(cat "/proc/$!/comm")" = sleep ]; do :; done; done'
    [ "$status" -eq 0 ]
    is_json '.outlived.count == 2 and .outlived.names == "sleep (2)" and .outcome == "succeeded"'
    [ "$(grep -c "2 processes outlived the command and were ended: sleep (2)" <<<"$stderr")" -eq 1 ]
    [ "$(hf -q journal query --event session_outlived --json | jq -rs 'map("\(.attempt) \(.count) \(.names)") | join(",")')" = "1 2 sleep (2)" ]
    is_field x '.outlived | "\(.count) \(.names)"' "2 sleep (2)"
    # Nothing of the kind: nothing is told, and the next run forgets it.
    run --separate-stderr hf --json run x -- true
    is_json '.outlived == null'
    [ -z "$stderr" ]
    is_field x .outlived null
    # Left on purpose, or ended with the command by a stop: not told as such.
    hf run x --leave-running -- bash -c 'sleep 60 >/dev/null 2>&1 & echo $! >left'
    kill -KILL "$(cat left)"
    expect 124 hf run x --deadline 100ms -- bash -c 'sleep 60 & wait'
    [ "$(events session_outlived x)" -eq 1 ]
    # In the background it is on record; with no grace it is told as well.
    hf run y --detach --grace 0 -- bash -c 'sleep 60 & exit 4'
    expect 4 hf wait y
    is_field y .outlived.count 1
}

@test "without a terminal the command has its own process group: kill 0 in it does not end the caller" {
    cat >caller <<'EOF'
"$HOLDFAST" run x -- bash -c 'echo $$ >leader; ps -o pgid= -p $$ >group; trap "kill 0" EXIT; exit 5' 2>said
echo $? >status
ps -o pgid= -p $$ >caller.group
EOF
    setsid -w bash caller </dev/null
    [ "$(tr -d ' ' <group)" = "$(cat leader)" ]
    [ "$(tr -d ' ' <group)" != "$(tr -d ' ' <caller.group)" ]
    # bash gets its own TERM in the trap.
    [ "$(cat status)" -eq 143 ] || [ "$(cat status)" -eq 5 ]
}

@test "signals that would end the supervisor alone are passed to the leader's group, and end nobody else" {
    for signal in ALRM ABRT VTALRM PROF XCPU USR1 USR2 IO PWR STKFLT RTMIN+3; do
        rm -f up group
        spawn setsid -w env -C "$PWD" "$HOLDFAST" run x -- bash -c 'ulimit -c 0; sleep 60 & echo $! >group; echo $$ >up; wait; sleep 60'
        wait_until 10 test -s up
        wait_until 10 is_field x .state running
        kill -s "$signal" "$(field x .supervisor.pid)"
        status=0
        wait "$spawned_pid" || status=$?
        [ "$status" -eq $((128 + $(kill -l "$signal"))) ] || { echo "$signal: exit $status"; return 1; }
        is_dead "$(cat up)"
        is_dead "$(cat group)"
        is_field x .outcome failed
    done
}

@test "TSTP, TTIN and TTOU to the supervisor stop both, CONT continues both" {
    for signal in TSTP TTIN TTOU; do
        rm -f up-x go-x
        running x
        kill -"$signal" "$spawned_pid"
        wait_until 10 is_stopped "$spawned_pid"
        wait_until 10 is_stopped "$(cat up-x)"
        kill -CONT "$spawned_pid"
        wait_until 10 bash -c '! grep -qsE "^State:[[:space:]]+T" "/proc/$0/status" "/proc/$1/status"' "$spawned_pid" "$(cat up-x)"
        let_go x
        wait "$spawned_pid"
    done
}

@test "a second TERM, as timeout sends it, does not change the status" {
    for i in {1..10}; do
        rm -f up
        spawn "$HOLDFAST" run x -- bash -c 'trap "exit 9" TERM; touch up; while :; do sleep 0.01; done'
        wait_until 10 test -e up
        kill -TERM "$spawned_pid"
        kill -TERM "$spawned_pid" 2>/dev/null || true
        status=0
        wait "$spawned_pid" || status=$?
        [ "$status" -eq 9 ]
        is_field x '.outcome' stopped
        [ "$status" -eq "$(field x .exit)" ] || { echo "exit $status, on record $(field x .exit)"; return 1; }
    done
}
