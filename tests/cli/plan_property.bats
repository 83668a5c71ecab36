#!/usr/bin/env bats
# Random operations: sandbox and commit against the same operations done directly. HF_SEQUENCES sets how many of each.

setup() {
    D=$(mktemp -d /dev/shm/hf-property-XXXXXX 2>/dev/null || mktemp -d)
    export HOLDFAST
}

teardown() {
    chmod -R u+rwx "$D"
    rm -rf "$D"
}

property() { # STRATEGY
    n=${HF_SEQUENCES:-30}
    # Half of the seeds are the same in every run, half are new.
    python3 "$BATS_TEST_DIRNAME/../helper/plan_property.py" "$1" 1 $((n / 2)) "$D/b" &&
        python3 "$BATS_TEST_DIRNAME/../helper/plan_property.py" "$1" $((RANDOM * 32768 + RANDOM + 100000)) $((n - n / 2)) "$D/b"
}

@test "random operations in an overlay, committed, give the tree of the same operations done directly" {
    run property overlay
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "random operations in a copy, committed, give the tree of the same operations done directly" {
    run property copy
    echo "$output"
    [ "$status" -eq 0 ]
}
