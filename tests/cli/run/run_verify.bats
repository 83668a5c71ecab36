# run: verification, resuming, admission.
load ../session_helper

@test "verify: success needs its exit 0; it has the session's environment and runs only after success" {
    export HF=$HOLDFAST
    expect 0 hf run x --verify '[ "$HOLDFAST_SESSION" = x ] && "$HF" lock check x --token "$HOLDFAST_TOKEN"' -- true
    is_field x '.state, .outcome, .cause' $'done\nsucceeded\nexit 0, verified'
    expect 7 hf run x --verify 'touch verified' -- bash -c 'exit 7'
    is_field x .outcome failed
    expect 124 hf run x --deadline 100ms --verify 'touch verified' -- sleep 60
    expect 127 hf run x --verify 'touch verified' -- /no/such/program
    [ ! -e verified ]
}

@test "verify: no, missing, crashed and late are all verify-failed: exit 1, or -E" {
    expect 1 hf run x --verify false -- true
    says "session 'x': verify failed: exit 1"
    is_field x '.state, .outcome, .exit, .cause' $'verify-failed\nverify-failed\n1\nverify failed: exit 1'
    expect 1 hf wait x
    expect 33 hf run x -E 33 --verify 'exit 9' -- true
    expect 1 hf run x --verify /no/such/verifier -- true
    is_field x .cause "verify could not be run: exit 127 (a command was not found)"
    touch plain
    expect 1 hf run x --verify ./plain -- true
    is_field x .cause "verify could not be run: exit 126 (a command is not executable)"
    expect 1 hf run x --verify 'kill -SEGV $$' -- true
    says "killed by SIGSEGV"
    start=$(now_ms)
    expect 1 hf run x --verify 'sleep 60' --verify-deadline 200ms -- true
    [ $(($(now_ms) - start)) -lt 5000 ]
    is_field x '.outcome, .cause' $'verify-failed\nverify did not end in time'
    PATH=/nowhere expect 1 "$HOLDFAST" run x --verify true -- /bin/true
    says "verify could not be run"
}

# tool NAME: a shell line that makes an executable script of that name
tool() { echo "mkdir -p $(dirname "$1"); printf '#!/bin/sh\n' >$1; chmod +x $1"; }

@test "verify: a first word that no shell can find is refused before the command starts; --until and --notify likewise" {
    local line
    for line in 'no-such-tool test' 'A=1 B=2 no-such-tool' '  no-such-tool' 'no-such-tool && true'; do
        expect 125 hf run x --verify "$line" -- touch ran
        says "verifier 'no-such-tool': No such file or directory"
        expect 125 hf run x -d --verify "$line" -- touch ran
    done
    expect 125 hf run x --until 'no-such-tool' -- touch ran
    says "until 'no-such-tool'"
    expect 125 hf run x --notify 'no-such-tool' -- touch ran
    says "notify 'no-such-tool'"
    [ ! -e ran ]
    expect 1 hf ps x
    [ "$(events session_refused x)" -eq 10 ]
    # What a run before it left is untouched.
    expect 3 hf run x --verify true -- sh -c 'exit 3'
    expect 125 hf run x --verify no-such-tool -- touch ran
    is_field x .exit 3
    expect 125 hf run x --resume --verify no-such-tool
    is_field x .attempt 1
}

@test "verify: builtins, shell syntax, scripts that the command makes, and a PATH in its directory are accepted" {
    local line
    for line in true ': x' '[ -d . ]' 'if true; then :; fi' '{ true; }' '(true)' 'no-such-tool || true' 'true; true' '! no-such-tool' \
        'test -d . && true' 'X=1 sh -c :' '"true"' '$(echo true)' 'exec true' 'sh -c true'; do
        expect 0 hf run x --verify "$line" -- true
    done
    expect 0 hf run x --verify './made/tool' -- sh -c "$(tool made/tool)"
    PATH=$PATH:bin1 expect 0 hf run x --verify new-tool -- sh -c "$(tool bin1/new-tool)"
    PATH=$PATH:$PWD/bin2 expect 0 hf run x --verify new-tool -- sh -c "$(tool bin2/new-tool)"
    expect 0 hf run x --env "PATH=$PATH:$PWD/bin3" --verify new-tool -- sh -c "$(tool bin3/new-tool)"
    mkdir -p w/.git w/sub && cd w/sub
    PATH=$PATH:$BATS_TEST_TMPDIR/w/bin expect 0 hf run x --verify new-tool -- sh -c "$(tool ../bin/new-tool)"
    # A program that the command installs elsewhere needs the word "command".
    PATH=$PATH:$BATS_TEST_TMPDIR/far expect 125 hf run x --verify new-tool -- sh -c "$(tool ../../far/new-tool)"
    says "write 'command new-tool'"
    PATH=$PATH:$BATS_TEST_TMPDIR/far expect 0 hf run x --verify 'command new-tool' -- sh -c "$(tool ../../far/new-tool)"
    # A PATH of the session counts, and not the caller's.
    expect 125 hf run x --env PATH=/nowhere --verify touch -- /bin/true
}

@test "verify: what it leaves behind is ended as well, before the lock is free (L7)" {
    expect 0 hf run x --verify 'sleep 60 & echo $! >left' -- true
    is_dead "$(cat left)"
    expect 1 hf run x --grace 100ms --verify 'trap "" TERM; sleep 60 & echo $! >left; exit 3' -- true
    is_dead "$(cat left)"
    expect 1 hf run x --verify-deadline 100ms --grace 100ms --verify 'setsid sleep 60 & echo $! >left; wait' -- true
    is_dead "$(cat left)"
}

@test "verify: a stop while it runs is a stop, not a success" {
    spawn "$HOLDFAST" run x --verify 'touch up; sleep 60' -- true
    wait_until 10 test -e up
    expect 0 hf stop x
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 143 ]
    is_field x .outcome stopped
}

@test "verify: abandoned while it runs is never a success" {
    hf run x --detach --verify 'touch up; sleep 60' -- true
    wait_until 10 test -e up
    kill_keepers x
    wait_until 5 is_field x .state dead-unreaped
    expect 0 hf reap x
    is_field x .outcome abandoned
}

@test "resume: the next attempt, with the command as it was, in any bytes" {
    word=$(printf 'a b\n"\\ \xff ü')
    expect 3 hf run x -- bash -c 'printf %s "$1" >word; exit 3' _ "$word"
    rm word
    expect 3 hf run x --resume
    [ "$(cat word)" = "$word" ]
    is_field x '.attempt, .failures' $'2\n2'
    expect 0 hf run x --resume -- true
    is_field x '.attempt, .state, .failures' $'3\ndone\n0'
    [ "$(events session_ended x)" -eq 3 ]
}

@test "resume: refused after success, and where there is nothing; one event each" {
    expect 1 hf run x --resume -- touch ran
    says "nothing to resume"
    expect 1 hf run x --resume
    hf run x -- true
    expect 1 hf run x --resume -- touch ran
    says "attempt 1 succeeded"
    [ ! -e ran ]
    [ "$(events session_refused x)" -eq 3 ]
    is_field x '.state, .attempt' $'done\n1'
    expect 1 hf lock check x
}

@test "resume: after verify-failed, stopped, timed-out and abandoned it goes on" {
    expect 1 hf run x --verify false -- true
    expect 124 hf run x --resume --deadline 100ms -- sleep 60
    hf run x --resume --detach --deadline 0 -- sleep 60
    expect 0 hf stop x
    hf run x --resume --detach
    kill_keepers x
    wait_until 5 is_field x .state dead-unreaped
    expect 0 hf run x --resume --verify '' -- true
    is_field x '.attempt, .state' $'5\ndone'
    [ "$(hf -q journal query --event session_ended --json | jq -rs 'map(.outcome) | join(" ")')" = "verify-failed timed-out stopped abandoned succeeded" ]
}

@test "depth: sessions within sessions are counted; more than --max-depth is refused with the numbers" {
    expect 0 hf run a --max-depth 2 -- "$HOLDFAST" run b --max-depth 2 -- true
    expect 1 hf run a -- "$HOLDFAST" run b --max-depth 1 -- touch ran
    says "session 2 within sessions, and the limit is 1"
    [ "$(events session_refused b)" -eq 1 ]
    HOLDFAST_DEPTH=32 expect 1 hf run c -- touch ran
    says "33"
    for garbage in abc -1 1.5 '1 ' 0x1 99999999999999999999 '🦀'; do
        HOLDFAST_DEPTH=$garbage expect 1 hf run c -- touch ran
    done
    HOLDFAST_DEPTH= expect 0 hf run c -- true
    [ ! -e ran ]
}

@test "max-active: at most N of a group, refused with the numbers; a place is free again afterwards" {
    running a --max-active 2 --group g
    first=$spawned_pid
    running b --max-active 2 --group g
    expect 1 hf run c --max-active 2 --group g -- touch ran
    says "2 of 2 sessions of the group 'g' are active"
    [ "$(events session_refused c)" -eq 1 ]
    expect 61 hf run c -E 61 --max-active 2 --group g -- touch ran
    expect 1 hf run c --detach --max-active 2 --group g -- touch ran
    expect 0 hf run c --max-active 2 --group other -- true
    expect 0 hf run c --max-active 2 -- true
    expect 0 hf run c -- true
    [ ! -e ran ]
    let_go a
    wait "$first"
    expect 0 hf run c --max-active 2 --group g -- touch ran
    kill -KILL "$(field b .keeper.pid)"
    wait "$spawned_pid" || true
    expect 0 hf run c --max-active 2 --group g -- "$HOLDFAST" run d --max-active 2 --group g -- true
}

# place_is_awaited: another session asks for the place again and again and looks, when it has it, whether $leader lives
place_is_awaited() {
    spawn bash -c 'until "$0" -q run probe --max-active 1 --group g -- bash -c "$2" "$1"; do touch asked; done' "$HOLDFAST" "$leader" \
        'grep -sE "^State:.[^ZX]" "/proc/$0/status" >at-place; touch had-it'
    wait_until 10 test -e asked
    [ ! -e had-it ]
}

place_was_free_in_time() {
    wait_until 10 test -e had-it
    [ ! -s at-place ]
    [ ! -e ran ]
    # Nobody had to take it from the dead.
    wait "$spawned_pid"
    hf journal query --event lock_taken_over --json | jq -c 'select(.kind == "group")' >taken
    [ ! -s taken ]
    wait_until 5 is_field a .state failed
    expect 0 hf run c --max-active 1 --group g -- true
}

@test "max-active: a place is free when the tree is empty, and not before: keeper killed (L7)" {
    running a --max-active 1 --group g --tree walk
    supervisor=$spawned_pid leader=$(field a .leader.pid) keeper=$(field a .keeper.pid)
    place_is_awaited
    # The supervisor is stopped before it can act: the place stays taken.
    kill -STOP "$supervisor"
    kill -KILL "$keeper"
    wait_until 5 is_dead "$keeper"
    expect 1 hf run c --max-active 1 --group g -- touch ran
    says "1 of 1 sessions"
    kill -CONT "$supervisor"
    place_was_free_in_time
}

@test "max-active: a place is free when the tree is empty, and not before: supervisor killed (L7)" {
    running a --max-active 1 --group g --tree walk
    supervisor=$spawned_pid leader=$(field a .leader.pid)
    place_is_awaited
    kill -KILL "$supervisor"
    place_was_free_in_time
}

@test "max-active: another number while the group is busy is refused, and said" {
    running a --max-active 2 --group g
    expect 1 hf run c --max-active 3 --group g -- touch ran
    says "--max-active"
    [ ! -e ran ]
}

# The kernel may kill what is started in a cgroup that was killed once.
@test "after processes of the command had to be killed, the verifier, the next attempt and a session inside run all the same" {
    stubborn='(trap "" TERM; echo >>stubborn; exec sleep 60) & until [ -s stubborn ]; do sleep 0.02; done'
    expect 0 hf run x --grace 200ms --verify 'echo verified' -- bash -c "$stubborn"
    says verified
    expect 0 hf run y --grace 200ms --every 10ms --max-runs 2 -- bash -c "echo attempt >>attempts; $stubborn"
    [ "$(wc -l <attempts)" -eq 2 ]
    expect 0 hf run z --grace 200ms --verify '"$HOLDFAST" run inner -- echo inside' -- bash -c "$stubborn"
    says inside
}
