#!/usr/bin/env bats
# Short runs of chaos; `make chaos` has the long one.
load helper

setup() { export CHAOS_DIR=$BATS_TEST_TMPDIR/chaos; }

# chaos OPTIONS...: its exit status in $status, 77 skips
chaos() {
    run timeout --kill-after=10 600 "$fleet_tests/chaos/run" "${HELPERS%/tests}" "$@"
    echo "$output"
    [ "$status" -ne 77 ] || [ "${CI:-}:$(id -u)" = true:0 ] || skip "${lines[-1]}"
}

@test "the harness finds what it looks for: etcdctl lock and a host that is cut off" {
    command -v etcdctl >/dev/null || skip "etcdctl is not installed (Debian: etcd-client)"
    chaos cut-off --client etcdctl --ttl 2
    [ "$status" -eq 1 ]
    [[ "$output" == *"overlap: the next one came"* ]]
    [[ "$output" != *Traceback* ]]
}
