#!/usr/bin/env bats
# run --require-change: a run without a change fails.
load ../session_helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    land_room
}

@test "--require-change: a run without a change fails with 1, reports it and leaves no plan" {
    expect 0 hl run one --in . -- true
    expect 1 hl run one --in . --require-change -- true
    says "nothing was changed"
    expect 1 hl run one --in . --require-change --verify true -- true
    says "nothing was changed"
    expect 1 hl -q --json run one --in . --require-change -- true
    is_json '.outcome == "failed" and .exit == 1 and .landed.no_change and (.cause | test("nothing was changed"))'
    # Ignored files do not land, and an undone change is no change.
    expect 1 hl run one --in . --require-change -- sh -c 'echo new >x.o'
    expect 1 hl run one --in . --require-change --verify true -- sh -c 'echo new >b; echo x >b'
    hl --json plan list | jq -e '.plans == []'
    is_field one '[.needs[] | .code, .action] | join(" ")' "failed resume"
}

@test "a loop that gave up needs you, also if its runs landed" {
    expect 1 hl run loop --in . --until false --max-runs 2 -- sh -c 'echo "$HOLDFAST_ATTEMPT" >one'
    [ "$(cat one)" = 2 ]
    is_field loop '[.needs[] | .code, .action] | join(" ")' "gave-up resume"
}

@test "--require-change: a run with a change succeeds, and a failing command keeps its status" {
    expect 0 hl run one --in . --require-change --verify 'test -e one' -- sh -c 'echo one >one'
    [ "$(cat one)" = one ]
    expect 0 hl run two --in . --require-change -- git commit -q --allow-empty -m empty
    expect 7 hl run three --in . --require-change -- sh -c 'exit 7'
}

@test "--require-change with plain files, in a loop, and after a resume" {
    mkdir files
    cd files
    expect 1 hl run one --in . --land off --require-change -- true
    says "nothing was changed"
    expect 1 hl run one --in . --land off --require-change --commit never -- true
    expect 0 hl run one --in . --land off --require-change -- sh -c 'echo 1 >f'
    [ "$(cat f)" = 1 ]
    export DESK="$BATS_TEST_TMPDIR"
    expect 0 hl run two --in . --land off --require-change --max-runs 3 --until 'test -e two' --backoff 10ms -- \
        sh -c 'echo x >>"$DESK/n"; [ "$(wc -l <"$DESK/n")" -lt 2 ] || echo 2 >two'
    [ "$(wc -l <"$DESK/n")" -eq 2 ]
    expect 1 hl run three --in . --land off --require-change -- true
    expect 1 hl run three --resume
    expect 2 hl run four --require-change -- true
}
