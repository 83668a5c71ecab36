#!/usr/bin/env bats
# doctor with a store: what each server says, another cluster, names that nobody uses.
load helper

setup() {
    command -v etcdctl >/dev/null || skip "etcdctl is not installed (Debian: etcd-client)"
    start_cluster "$BATS_TEST_TMPDIR/fleet" 1 --loopback
    export HOLDFAST_DIR=$BATS_TEST_TMPDIR/state
    HOLDFAST_STORE="$(cluster url)/hf"
    export HOLDFAST_STORE
}

teardown() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

ctl() { ETCDCTL_API=3 timeout 20 etcdctl --endpoints "$(cluster endpoints)" --command-timeout 5s "$@"; }
# rows OPTIONS...: a line for each check: its name, status, what was found, the remedy
rows() { "$HOLDFAST" doctor --json "$@" | jq -r '.checks[] | .check + " " + .status + " " + .found + " " + (.instead // "")'; }

@test "doctor tells of each server, and what to do about one that does not answer" {
    rows >"$BATS_TEST_TMPDIR/out" || true
    grep -qE '^member (ok|absent) .*etcd 3\.' "$BATS_TEST_TMPDIR/out"
    for check in clock quorum space rights; do
        grep -q "^$check ok " "$BATS_TEST_TMPDIR/out"
    done
    HOLDFAST_STORE="${HOLDFAST_STORE/etcd:\/\//etcd:\/\/127.0.0.1:1,}"
    rows >"$BATS_TEST_TMPDIR/out" || true
    grep -q '^member warn .*127.0.0.1:1.*remove it from the URL' "$BATS_TEST_TMPDIR/out"
    HOLDFAST_STORE=etcd://127.0.0.1:1/hf
    run "$HOLDFAST" doctor
    [ "$status" -eq 4 ]
    [[ "$output" == *"no server of the store answers"* ]]
}

@test "a cluster that was made anew is refused until it is accepted" {
    "$HOLDFAST" lock run x -- true
    cluster stop
    start_cluster "$BATS_TEST_TMPDIR/again" 1 --loopback
    HOLDFAST_STORE="$(cluster url)/hf"
    run "$HOLDFAST" lock run x -- true
    [ "$status" -eq 3 ]
    [[ "$output" == *"--accept-cluster"* ]]
    run "$HOLDFAST" doctor
    [ "$status" -eq 4 ]
    "$HOLDFAST" doctor --accept-cluster || [ "$?" -eq 1 ]
    "$HOLDFAST" lock run x -- true
}

@test "L2: names that nobody has used for a week are removed, and no others" {
    ctl put /hf/1/n/name/old '{"v":1,"token":"1000","slots":0}'
    ctl put /hf/1/s/name/old '{"v":1}'
    ctl put /hf/1/n/name/held '{"v":1,"token":"1000","slots":0}'
    ctl put /hf/1/h/name/held/00000000000000001000 '{"v":1}'
    "$HOLDFAST" lock run recent -- true
    "$HOLDFAST" doctor --clean-store || [ "$?" -eq 1 ]
    [ "$(ctl get --prefix --keys-only /hf/1/ | grep . | sort | paste -sd' ')" = "/hf/1/h/name/held/00000000000000001000 /hf/1/n/name/held /hf/1/n/name/recent" ]
    run "$HOLDFAST" --store local: doctor --clean-store
    [ "$status" -eq 2 ]
}
