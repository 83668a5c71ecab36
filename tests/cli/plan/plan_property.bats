#!/usr/bin/env bats
# Random operations: sandbox and commit against the same operations done directly. HF_SEQUENCES sets how many of each; with
# HF_LONG=1 there are 3,400.

setup() {
    D=$(mktemp -d /dev/shm/hf-property-XXXXXX 2>/dev/null || mktemp -d)
    export HOLDFAST
}

teardown() {
    chmod -R u+rwx "$D"
    rm -rf "$D"
}

property() { # STRATEGY COUNT [DIRECTORY]
    local n=${HF_SEQUENCES:-${HF_LONG:+3400}}
    n=${n:-$2}
    # Half of the seeds are the same in every run, half are new.
    python3 "$BATS_TEST_DIRNAME/../../helper/plan_property.py" "$1" 1 $((n / 2)) "${3:-$D}/b" &&
        python3 "$BATS_TEST_DIRNAME/../../helper/plan_property.py" "$1" $((RANDOM * 32768 + RANDOM + 100000)) $((n - n / 2)) "${3:-$D}/b"
}

@test "random operations in an overlay, committed, give the tree of the same operations done directly" {
    run property overlay 30
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "random operations in a copy, committed, give the tree of the same operations done directly" {
    run property copy 30
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "random operations in a clone on btrfs, committed, give the tree of the same operations done directly" {
    [ "$(id -u)" = 0 ] || skip "NEEDS ROOT"
    command -v mkfs.btrfs >/dev/null || skip "NOT INSTALLED: mkfs.btrfs"
    truncate -s 256M "$D/disk"
    mkfs.btrfs -q "$D/disk"
    mkdir "$D/m"
    mount -o loop "$D/disk" "$D/m" || skip "NO LOOP MOUNTS"
    run property clone 10 "$D/m"
    echo "$output"
    umount -l "$D/m"
    [ "$status" -eq 0 ]
}
