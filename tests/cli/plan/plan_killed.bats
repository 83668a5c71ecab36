# plan enter that is killed: nothing of its command goes on, or it is found, named and ended. As root and as an ordinary user.
load ../helper
load ../plan_helper

setup() { plan_setup; }
teardown() { plan_teardown; }

# start ARGS...: holdfast itself in the background, so that its pid is known
start() {
    if [ "$as_user" = 1 ]; then
        spawn setpriv --reuid=65534 --regid=65534 --clear-groups "$ROOM/holdfast" -q "$@"
    else
        spawn "$HOLDFAST" -q "$@"
    fi
}

# A command that leaves a writer which has left group, session and parent, and with "env -i" as $2 its environment.
# shellcheck disable=SC2016
LEAVES='cd "$1"; (setsid $2 sh -c "echo \$\$ >away; while :; do echo x >>log; sleep 0.01; done" </dev/null >/dev/null 2>&1 &)
while [ ! -s away ]; do sleep 0.01; done; cat away >"$3/away"; echo $PPID >"$3/watcher"; echo $$ >"$3/pid"; while :; do sleep 0.05; done'

gone() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || true
    [ -z "$state" ] || [ "$state" = Z ]
}

# enter_and_leave STRATEGY [env -i]: plan p, entered by $enter with a command $pid that has left a writer $away
enter_and_leave() {
    mkdir -p T; echo o >T/f; own T; chmod 777 "$ROOM"
    hp -q plan new p
    hp -q plan add p s1 T --strategy "$1"
    start plan enter p -- sh -c "$LEAVES" sh "$(hp plan path p s1)" "${2:-}" "$ROOM"
    enter=$spawned_pid
    wait_until 20 test -s pid
    pid=$(cat pid) away=$(cat away) watcher=$(cat watcher)
    [ "$(cat "/proc/$watcher/comm")" = hf-sandbox ]
}

at_rest() { hp --json plan show p | jq -e '(.in_use | not) and .sandboxes[0].settled and .dirty' >/dev/null; }

# the log of the writer, where a commit would take it from
written() { cat "$HOLDFAST_DIR"/plans/p/s/s1/[uc]/log 2>/dev/null | wc -c; }

enter_killed() {
    needs_overlay; enter_and_leave "$1" "env -i"
    expect 1 hp plan commit p
    says "still in the sandbox"
    kill -KILL "$enter"
    wait_until 20 gone "$pid"
    wait_until 20 gone "$away"
    wait_until 20 at_rest
    [ ! -e T/log ]; [ "$(written)" -gt 0 ]
    hp -q plan commit p
    [ -s T/log ]
}
enter_killed_overlay() { enter_killed overlay; }
enter_killed_copy() { enter_killed copy; }
@test "plan enter killed: its command ends with all that it started, and the sandbox comes to rest; overlay" { both enter_killed_overlay; }
@test "plan enter killed: its command ends with all that it started, and the sandbox comes to rest; copy" { both enter_killed_copy; }

watcher_killed() {
    needs_overlay; enter_and_leave overlay "env -i"
    kill -KILL "$watcher"
    status=0; wait "$enter" || status=$?
    [ "$status" -eq 125 ]
    wait_until 20 gone "$pid"
    gone "$away"
    run hp --json plan show p
    is_json '(.in_use | not) and .dirty'
    [ ! -e T/log ]
}
@test "a killed watcher takes the command with it, and plan enter ends what that had started" { both watcher_killed; }

# both_killed STRATEGY CLEARING
both_killed() {
    needs_overlay; enter_and_leave "$1" "$2"
    kill -STOP "$enter"
    kill -KILL "$watcher"
    wait_until 20 gone "$watcher"
    kill -KILL "$enter"
    wait_until 20 gone "$pid"
    run ! gone "$away"
    run hp --json plan show p
    is_json '.in_use'
    for verb in commit rollback; do
        expect 1 hp plan "$verb" p
        says "has outlived"; says "plan recover"
    done
    run ! gone "$away"
}
both_killed_overlay() {
    both_killed overlay "env -i"
    # what joins now finds the namespaces by a process that is in them, and does not take it for rest when it ends itself
    [ "$(hp -q plan enter p -- cat T/f)" = o ]
    expect 1 hp plan commit p
    hp -q plan recover p
    gone "$away"; at_rest
    [ "$(hp --json journal query --event plan_recovered | jq -s '.[0].outcome')" = '"ended"' ]
    hp -q plan commit p; [ -s T/log ]
}
both_killed_copy() {
    both_killed copy ""
    # removing the plan ends them, too
    hp -q plan rm p --discard
    gone "$away"; [ ! -e "$HOLDFAST_DIR/plans/p" ]; [ ! -e T/log ]
}
@test "plan enter and its watcher killed: what is left is named, nothing is committed, and plan recover ends it" { both both_killed_overlay; }
@test "plan enter and its watcher killed: what is left in a copy is named, and plan rm ends it" { both both_killed_copy; }

joined() {
    needs_overlay; enter_and_leave overlay
    start plan enter p -- sh -c 'while [ ! -e stop ]; do sleep 0.02; done; echo second >T/second; exit 4'
    second=$spawned_pid
    wait_until 20 sh -c '[ "$(wc -l <"$HOLDFAST_DIR/plans/p/in")" -eq 1 ]'
    in_twice() { [ "$(hp --json journal query --event plan_entered | jq -s 'length')" -eq 2 ]; }
    wait_until 20 in_twice
    kill -KILL "$enter"
    wait_until 20 gone "$away"
    touch stop
    status=0; wait "$second" || status=$?
    [ "$status" -eq 4 ]
    wait_until 20 at_rest
    [ -s "$(upper 1)/second" ]
}
@test "of two commands in one sandbox, that of the plan enter that is killed ends, the other goes on" { both joined; }

joined_one_is_left() {
    needs_overlay; enter_and_leave overlay "env -i"
    start plan enter p -- sh -c 'echo $$ >second; while [ ! -e stop ]; do sleep 0.02; done'
    second=$spawned_pid
    wait_until 20 test -s second
    kill -STOP "$enter"
    kill -KILL "$watcher"
    wait_until 20 gone "$watcher"
    kill -KILL "$enter"
    run ! gone "$away"
    # the second one ends by itself, and does not take it for rest either
    touch stop
    wait "$second"
    run ! gone "$away"
    expect 1 hp plan commit p
    says "has outlived"
    [ ! -e T/log ]
    hp -q plan recover p
    gone "$away"; at_rest
}
@test "what a killed watcher left inside is not forgotten when another command in the sandbox ends" { both joined_one_is_left; }

torn_copy() {
    mkdir -p T; echo o >T/f; own T; chmod 777 "$ROOM"
    hp -q plan new p
    hp -q plan add p s1 T --strategy copy
    mark=$HOLDFAST_DIR/plans/p/s/s1/used
    hp -q plan enter p -- sh -c 'echo n >"$1/f"; cp "$2" seen' sh "$(hp plan path p s1)" "$mark"
    [ "$(cat seen)" = "$(cat /proc/sys/kernel/random/boot_id)" ]
    [ ! -e "$mark" ]
    # power failed while it was in use: the mark is that of another boot
    as sh -c 'echo -n 9f1c2a3b-0123-4567-89ab-0123456789ab >"$1"' sh "$mark"
    run hp --json plan show p
    is_json '.sandboxes[0].settled | not'
    expect 3 hp plan commit p
    says "may be torn"; [ "$(cat T/f)" = o ]
    expect 3 hp plan enter p -- true
    hp -q plan commit p --force
    [ "$(cat T/f)" = n ]
}
@test "a copy that was in use when power failed may be torn, and is committed with --force only" { both torn_copy; }

run_with_a_copy() {
    mkdir -p T; echo o >T/f; own T; chmod 777 "$ROOM"
    cd T
    expect 1 hp run r --in . --strategy copy -- sh -c 'echo n >f; exit 1'
    run hp --json plan show run:r
    is_json '.dirty and .sandboxes[0].settled and .sandboxes[0].strategy == "copy"'
}
@test "the copy of a run that failed is kept, and at rest" { both run_with_a_copy; }
