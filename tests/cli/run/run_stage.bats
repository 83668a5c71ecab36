# The stage of a session: its callbacks are called where run/stage.h says, in that order, also when one of the processes is killed.
load ../session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" STAGED="$BATS_TEST_TMPDIR/calls" HOLDFAST
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
}

staged() { timeout --kill-after=5 20 "$HELPERS/helper-staged" "$@"; }

# calls: what was called, without the tokens
calls() { sed -E 's/^(recover) .*/\1/' "$STAGED" 2>/dev/null | paste -sd' '; }

are() { [ "$(calls)" = "$1" ] || { echo "calls: $(calls)"; return 1; }; }

@test "stage: begin, enter in the child, end with the outcome; the verifier enters as well, until does not" {
    expect 0 staged x -- bash -c 'echo command >>"$STAGED"'
    are "begin 1 enter command end succeeded"
    rm "$STAGED"
    expect 7 staged y --verify 'echo verifier >>"$STAGED"' -- bash -c 'exit 7'
    are "begin 1 enter end failed"
    rm "$STAGED"
    expect 1 staged z --verify 'echo verifier >>"$STAGED"; false' -- true
    are "begin 1 enter enter verifier end verify-failed"
    rm "$STAGED"
    expect 0 staged u --until '[ "$(grep -c begin "$STAGED")" -ge 2 ]' -- true
    are "begin 1 enter end succeeded begin 2 enter end succeeded"
    rm "$STAGED"
    expect 127 staged n -- /no/such/program
    are "begin 1 enter end not-started"
}

@test "stage: recover has the token of the run before, once, before everything else" {
    expect 3 staged x -- bash -c 'exit 3'
    token=$(field x .token)
    rm "$STAGED"
    expect 3 staged x --resume
    [ "$(head -n 1 "$STAGED")" = "recover $token" ]
    are "recover begin 2 enter end failed"
}

@test "stage: end comes when the tree is empty and before the outcome is on record" {
    expect 0 staged x -- bash -c 'trap "" TERM; (trap "" TERM; sleep 60) & echo $! >left; exit 0'
    rm "$STAGED"
    spawn "$HELPERS/helper-staged" --hang end x -- bash -c 'sleep 60 & echo $! >left; exit 0'
    wait_until 10 grep -qs '^end' "$STAGED"
    is_dead "$(cat left)"
    is_field x '.state == "running" or .state == "stopping"' true
    expect 0 hf lock check x
    [ "$(events session_ended x)" -eq 1 ]
    touch "$STAGED.go"
    wait "$spawned_pid"
    [ "$(events session_ended x)" -eq 2 ]
}

@test "stage: a failing callback is never a success (L14)" {
    expect 125 staged --fail begin x -- touch ran
    are "begin 1"
    [ ! -e ran ]
    is_field x .outcome not-started
    rm "$STAGED"
    expect 126 staged --fail enter x -- touch ran
    are "recover begin 1 enter end not-started"
    [ ! -e ran ]
    rm "$STAGED"
    expect 125 staged --fail end x -- true
    is_field x '.outcome, .cause' $'failed\nits work was not kept: No space left on device'
    rm "$STAGED"
    expect 3 staged --fail end x -- bash -c 'exit 3'
    is_field x .outcome failed
    rm "$STAGED"
    expect 97 staged --fail recover x -- touch ran
    says "No space left"
    are "recover"
    [ ! -e ran ]
}

@test "stage: interrupted, stopped and timed out are told to end as such" {
    spawn env --default-signal=INT "$HELPERS/helper-staged" x -- bash -c 'trap "exit 0" INT; touch up; while :; do sleep 0.02; done'
    wait_until 10 test -e up
    kill -INT "$spawned_pid"
    wait "$spawned_pid" || true
    are "begin 1 enter end interrupted"
    rm up "$STAGED"
    spawn "$HELPERS/helper-staged" x -- bash -c 'trap "exit 0" TERM; touch up; while :; do sleep 0.02; done'
    wait_until 10 test -e up
    kill -TERM "$spawned_pid"
    wait "$spawned_pid" || true
    are "recover begin 1 enter end stopped"
}

# killed PROCESS WHERE: kills the supervisor, the keeper or both while the stage is at WHERE; the next run recovers that token
killed() {
    local process=$1 where=$2 token
    rm -f "$STAGED" "$STAGED.go"
    if [ "$where" = command ]; then
        spawn "$HELPERS/helper-staged" x -- bash -c 'echo command >>"$STAGED"; sleep 60'
    else
        spawn "$HELPERS/helper-staged" --hang "$where" x -- true
    fi
    wait_until 10 grep -qs "^$where" "$STAGED"
    # Its intent is on disk before begin.
    keeper=$(field x .keeper.pid) token=$(field x .token)
    case $process in
    supervisor) kill -KILL "$spawned_pid" ;;
    keeper) kill -KILL "$keeper" ;;
    both) kill_keepers x ;;
    esac
    touch "$STAGED.go"
    wait "$spawned_pid" || true
    wait_until 10 is_dead "$keeper"
    echo "$process killed at $where: $(calls)"
    [ "$(grep -c '^end' "$STAGED")" -le 1 ]
    [ "$process" = supervisor ] || [ "$where" = end ] || [ "$(grep -c '^end' "$STAGED")" -eq 0 ]
    [ "$process" != supervisor ] || [ "$where" != command ] || [ "$(grep -c '^end abandoned' "$STAGED")" -eq 1 ]
    # L14: nobody calls that a success unless its end was written.
    if [ "$process" != supervisor ]; then [ "$(hf -q reap x >/dev/null 2>&1; field x .outcome)" = abandoned ]; fi
    rm -f "$STAGED"
    expect 0 staged x -- true
    [ "$(head -n 1 "$STAGED")" = "recover $token" ]
    are "recover begin 1 enter end succeeded"
}

@test "stage: supervisor, keeper or both killed at begin, enter, in the command, at end: the next run recovers that token first (L14)" {
    for process in supervisor keeper both; do
        for where in begin enter command end; do
            killed "$process" "$where"
        done
    done
}
