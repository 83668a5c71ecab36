#!/usr/bin/env bats
# The verifier of a run runs once if the branch has not moved and the verifier saw only the commit that lands.
load ../helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s DESK="$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    land_room
}

# runs N NAME SCRIPT [VERIFIER]: a run that lands after N runs of its verifier
runs() {
    : >"$DESK/count"
    # shellcheck disable=SC2016
    expect 0 hl run "$2" --in . --verify 'echo x >>"$DESK/count"; '"${4:-true}" -- sh -c "$3"
    [ "$(wc -l <"$DESK/count")" -eq "$1" ] || { echo "$(wc -l <"$DESK/count") verifications, not $1"; return 1; }
}

@test "one verifier run is enough if the branch has not moved and the verifier saw only the commit that lands" {
    runs 1 one 'echo 1 >one'
    runs 1 two 'echo 2 >two; git add two; git commit -qm two; echo 3 >three' 'echo trace >trace; echo y >two; test -e x.o'
    runs 1 three 'rm three; git mv two four'
    [ "$(cat four)" = 2 ]
    [ ! -e trace ]
    clean
}

@test "L14: the verifier runs again if the branch has moved, or if the sandbox showed another file of agent or user" {
    # An ignored file that the agent made is not on the branch.
    : >"$DESK/count"
    expect 1 hl run one --in . --verify 'echo x >>"$DESK/count"; test -e made.o' -- sh -c 'echo 1 >one; echo 1 >made.o'
    [ "$(wc -l <"$DESK/count")" -eq 2 ]
    hl -q land drop one
    # The branch moves.
    runs 2 two 'echo 2 >two' '[ -e between ] || { : >"$DESK/move"; until [ -e "$DESK/moved" ]; do sleep 0.02; done; }' &
    pid=$!
    wait_until 30 test -e "$DESK/move"
    echo between >between
    git add between
    git commit -qm between
    touch "$DESK/moved"
    wait "$pid"
    [ "$(git log --format=%s | paste -sd' ')" = "Work of two between first" ]
    # The user saves a new file while the verifier works: it saw that file, and the branch has none.
    : >"$DESK/count"
    rm -f "$DESK/move" "$DESK/moved"
    timeout 100 "$HOLDFAST" run three --in . --verify 'echo x >>"$DESK/count"; : >"$DESK/move"; until [ -e "$DESK/moved" ]; do sleep 0.02; done; test -e FIXED' \
        -- sh -c 'echo 3 >three' &
    pid=$!
    wait_until 30 test -e "$DESK/move"
    echo >FIXED
    touch "$DESK/moved"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 1 ]
    [ "$(wc -l <"$DESK/count")" -eq 2 ]
    [ "$(git log -1 --format=%s)" = "Work of two" ]
}

@test "L14: the verifier runs again if the sandbox showed edits under skip-worktree or uncommitted files" {
    git update-index --skip-worktree b
    echo FIXED >b
    : >"$DESK/count"
    expect 1 hl run one --in . --verify 'echo x >>"$DESK/count"; grep -q FIXED b' -- sh -c 'echo 1 >one'
    [ "$(wc -l <"$DESK/count")" -eq 2 ]
    hl -q land drop one
    git update-index --no-skip-worktree b
    : >"$DESK/count"
    expect 1 hl run two --in . --base worktree --verify 'echo x >>"$DESK/count"; grep -q FIXED b' -- sh -c 'echo 1 >two'
    [ "$(wc -l <"$DESK/count")" -eq 2 ]
}
