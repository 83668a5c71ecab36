#!/usr/bin/env bats
# Power cuts: root, /dev/fuse and loop devices are needed. POWERCUT_LIMIT sets how many flushes are tried (all: 100000).

load ../cli/session_helper

setup() {
    W=$(mktemp -d /dev/shm/hf-powercut-XXXXXX)
    export W HOLDFAST HELPERS
    [ "$(id -u)" = 0 ] || skip "needs root"
    [ -c /dev/fuse ] && [ -c /dev/loop-control ] || skip "needs /dev/fuse and loop devices"
    command -v mkfs.ext4 >/dev/null || skip "needs mkfs.ext4"
    "$HOLDFAST" --dir "$W/probe" plan new probe || skip "no plans here"
}

teardown() {
    rm -rf "$W"
}

powercut() { # FLUSHES FS MUTANT NOISE
    # Mounts of its own: no other namespace that is made meanwhile gets a copy of them, and keeps the device.
    LIMIT=${POWERCUT_LIMIT:-$1} timeout 600 unshare -m --propagation private python3 "$BATS_TEST_DIRNAME/powercut/powercut.py" "$2" "$3" "$4" 1
}

@test "L10: a power cut anywhere in a commit leaves all old or all new" {
    run powercut 15 ext4 0 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *'"commit": "syncs 2"'* ]]
    [[ "$output" != *mixed* && "$output" != *lost* && "$output" != *failed* && "$output" != *unmountable* ]]
    [[ "$output" == *'"new"'* ]]
}

# elsewhere FS FLUSHES: the same there
elsewhere() {
    command -v "mkfs.$1" >/dev/null || skip "NOT INSTALLED: mkfs.$1"
    grep -qw "$1" /proc/filesystems || skip "THE KERNEL LACKS $1"
    skip_sanitizers "it is about the file system, not about the program"
    run powercut "$2" "$1" 0 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" != *mixed* && "$output" != *lost* && "$output" != *failed* && "$output" != *unmountable* ]]
    [[ "$output" == *'"new"'* ]]
}

# It has the name of a renamed file on disk before the content: two records in a row were lost here.
@test "L10: a power cut anywhere in a commit on xfs leaves all old or all new, and a plan that is known" { elsewhere xfs 12; }

@test "L10: a power cut anywhere in a commit on btrfs leaves all old or all new, and a plan that is known" { elsewhere btrfs 6; }

@test "L10: the power cuts find a commit that leaves out its first sync" {
    skip_sanitizers "it is about the power cuts, not about the program"
    for try in 1 2 3; do
        run powercut 30 ext4 1 1
        echo "$output"
        [[ "$output" == *mixed* || "$output" == *lost* || "$output" == *failed* ]] && return 0
    done
    false
}

@test "L10: the power cuts find a commit that syncs its intent but not its new versions" {
    skip_sanitizers "it is about the power cuts, not about the program"
    for try in 1 2 3; do
        run powercut 30 ext4 2 1
        echo "$output"
        [[ "$output" == *mixed* || "$output" == *lost* || "$output" == *failed* ]] && return 0
    done
    false
}

@test "L10: a power cut in a commit to another file system than the state's leaves all old or all new" {
    run powercut 6 ext4+ext4 0 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *'"commit": "syncs 4"'* ]]
    [[ "$output" != *mixed* && "$output" != *lost* && "$output" != *failed* && "$output" != *unmountable* ]]
}

@test "L10: the power cuts find old versions that go before the second sync (trap 38)" {
    skip_sanitizers "it is about the power cuts, not about the program"
    for try in 1 2 3; do
        run powercut 3 ext4+ext4 3 1
        echo "$output"
        [[ "$output" == *mixed* || "$output" == *lost* || "$output" == *failed* ]] && return 0
    done
    false
}

@test "a power cut while a command writes in a copy makes it torn, or leaves it as before; on disk when the command's end is told" {
    run powercut 12 ext4 use 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" != *mixed* && "$output" != *lost* && "$output" != *failed* && "$output" != *unmountable* ]]
    [[ "$output" == *'"torn"'* && "$output" == *'"new"'* ]]
}

@test "the power cuts find a copy that is in use and not marked" {
    skip_sanitizers "it is about the power cuts, not about the program"
    for try in 1 2 3; do
        run powercut 12 ext4 use-unmarked 1
        echo "$output"
        [[ "$output" == *mixed* || "$output" == *lost* ]] && return 0
    done
    false
}
