#!/usr/bin/env bats
# Short runs of chaos; `make chaos` has the long one.
load helper

setup() { export CHAOS_DIR=$BATS_TEST_TMPDIR/chaos; }

# chaos OPTIONS...: its exit status in $status, 77 skips
chaos() {
    run timeout --kill-after=10 600 "$fleet_tests/chaos/run" "${HELPERS%/tests}" "$@"
    echo "$output"
    [ "$status" -ne 77 ] || skip "${lines[-1]}"
}

@test "the harness finds what it looks for: etcdctl lock and a host that is cut off" {
    command -v etcdctl >/dev/null || skip "etcdctl is not installed (Debian: etcd-client)"
    chaos cut-off --client etcdctl --ttl 2
    [ "$status" -eq 1 ]
    [[ "$output" == *"overlap: the next one came"* ]]
    [[ "$output" != *Traceback* ]]
}

@test "control: a holder that nothing can end is seen to overlap with the next one" {
    chaos control --ttl 2
    [ "$status" -eq 1 ]
    [[ "$output" == *"overlap: the next one came"* ]]
    [[ "$output" != *Traceback* ]]
}

@test "L1: a holder that is cut off has ended before the next one holds" {
    chaos cut-off --ttl 3
    [ "$status" -eq 0 ]
    [[ "$output" == *"ms between them"* ]]
}

@test "L1 L2: at most one holder, and tokens rise, whatever fails" {
    chaos random --seconds 20 --ttl 3
    [ "$status" -eq 0 ]
}

@test "L1 L2 L3: what acquire, check and release say is the history of one lock" {
    chaos history --seconds 10
    [ "$status" -eq 0 ]
}
