#!/usr/bin/env bats
# What etcd does that a store must cope with, on one member: compaction, no space, a snapshot that is restored, leases left behind.
# docs/FLEET-TRAPS.md has the whole list.
load helper

setup_file() {
    command -v etcdctl >/dev/null || skip "etcdctl is not installed (Debian: etcd-client)"
    start_cluster "$BATS_FILE_TMPDIR/fleet" 1 --loopback --profile conformance -- --quota-backend-bytes 16000000
}

teardown_file() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    export HOLDFAST_DIR=$BATS_TEST_TMPDIR/state
    HOLDFAST_STORE="$(cluster url)/t$BATS_TEST_NUMBER?ttl=3s&call-timeout=1s"
    export HOLDFAST_STORE
    jobs=()
}

teardown() {
    touch go
    for pid in "${jobs[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    wait || true
}

ctl() { ETCDCTL_API=3 timeout 20 etcdctl --endpoints "$(cluster endpoints)" --command-timeout 5s "$@"; }
hf() { timeout 60 "$HOLDFAST" "$@"; }
# holding NAME [OPTIONS...]: in the background, until the file go is there; "held" is there when it holds
holding() {
    "$HOLDFAST" lock run "$@" -- bash -c 'echo "$HOLDFAST_TOKEN" >held; until [ -e go ]; do sleep 0.02; done' 3>&- &
    jobs+=($!)
    wait_until 30 test -s held
}
# waiting NAME FILE: in the background, writes FILE when it has the lock
waiting() {
    "$HOLDFAST" lock run "$1" -w 40s -- touch "$2" 3>&- &
    jobs+=($!)
}
waiters() { [ "$(hf lock list --json | jq -s "[.[] | .. | .waiters? // empty | .[]] | length")" -ge "$1" ]; }
leases() { ctl lease list | tail -n +2 | wc -l; }

@test "a waiter gets its turn although the history that it watches is compacted (trap 9, trap 11)" {
    holding x
    waiting x got
    wait_until 30 waiters 1
    for i in 1 2 3; do ctl put /junk "$i" >/dev/null; done
    ctl compact "$(ctl get /junk -w json | jq .header.revision)" >/dev/null
    touch go
    wait_until 30 test -e got
}

@test "a first waiter that is stopped delays the next one by its lease, not for ever (trap 13)" {
    holding x
    waiting x first
    wait_until 30 waiters 1
    stopped=${jobs[1]}
    kill -STOP "$stopped"
    waiting x second
    wait_until 30 waiters 2
    touch go
    wait_until 30 test -e second
    [ ! -e first ]
    kill -CONT "$stopped"
    wait_until 30 test -e first
}

@test "readers behind a writer are all let in, each with few requests (trap 31)" {
    requests() { curl -s "$(cluster endpoints)/metrics" | awk '/^grpc_server_started_total.*(Txn|Range|LeaseGrant|Watch)"/ { n += $2 } END { print n }'; }
    holding x
    for i in 1 2 3 4 5 6; do
        "$HOLDFAST" lock run x -s -w 40s -- bash -c "touch reader$i; until [ -e reader1 -a -e reader2 -a -e reader3 -a -e reader4 -a -e reader5 -a -e reader6 ]; do sleep 0.02; done" 3>&- &
        jobs+=($!)
    done
    wait_until 30 waiters 6
    command -v curl >/dev/null && before=$(requests)
    touch go
    # Each waits for all others: they are inside at the same time.
    wait
    jobs=()
    [ -z "${before:-}" ] || [ $(($(requests) - before)) -lt $((6 * 25)) ]
}

@test "L2: after a clock that was an hour ahead tokens rise by one (trap 27)" {
    ahead=$((($(date +%s) + 3600) * 1000000))
    hf lock run x -- true
    ctl put "/t$BATS_TEST_NUMBER/1/n/name/x" "{\"v\":1,\"token\":\"$(printf %020d $ahead)\",\"slots\":0}"
    for n in 1 2 3; do
        [ "$(hf lock run x -- sh -c 'echo $HOLDFAST_TOKEN')" = $((ahead + n)) ]
    done
    # As an older version wrote it.
    ctl put "/t$BATS_TEST_NUMBER/1/n/name/x" "{\"v\":1,\"token\":\"$((ahead + 100))\",\"slots\":0}"
    [ "$(hf lock run x -- sh -c 'echo $HOLDFAST_TOKEN')" = $((ahead + 101)) ]
}

@test "acquisitions that are killed leave no lease behind once it is over (trap 34)" {
    before=$(leases)
    for i in 1 2 3 4 5 6 7 8; do
        "$HOLDFAST" lock run "k$i" -- sleep 1000 3>&- &
        pid=$!
        sleep "0.00$i"
        kill -KILL $pid 2>/dev/null || true
    done
    wait || true
    back() { [ "$(leases)" -le "$before" ]; }
    wait_until 30 back
}

@test "without space the holder renews, is checked and released, and break works; acquiring says why (trap 15)" {
    holding x
    hf lock acquire y --ttl 600s >token
    value=$(head -c 700000 /dev/zero | tr '\0' x)
    for i in $(seq 60); do printf %s "$value" | ctl put /fill >/dev/null 2>&1 || break; done
    ctl alarm list | grep -q NOSPACE
    run hf lock run z -n -- true
    [ "$status" -eq 125 ] || [ "$status" -eq 4 ]
    [[ "$output" == *space* ]]
    # Three leases later it is still held.
    sleep 6
    hf lock check x --token "$(cat held)"
    hf lock check y --token "$(cat token)"
    hf lock break y --reason test
    touch go
    wait "${jobs[0]}"
    jobs=()
    run hf lock check x
    [ "$status" -eq 1 ]
    # Space again, for the tests that follow.
    ctl del /fill >/dev/null
    ctl compact "$(ctl get /x -w json | jq .header.revision)" >/dev/null
    ctl defrag >/dev/null
    ctl alarm disarm >/dev/null
    hf lock run z -n -- true
}

@test "a snapshot that is restored is refused until it is accepted; tokens go on rising (trap 14, L2)" {
    hf lock run x -- true
    ctl snapshot save snap >/dev/null 2>&1
    last=$(hf lock run x -- sh -c 'echo $HOLDFAST_TOKEN')
    ETCDCTL_API=3 etcdctl snapshot restore snap --data-dir restored --name r --initial-cluster r=http://127.0.0.1:1 --initial-advertise-peer-urls http://127.0.0.1:1 >/dev/null 2>&1
    port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    setpriv --pdeathsig KILL etcd --name r --data-dir restored --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
        --listen-peer-urls http://127.0.0.1:0 --initial-cluster r=http://127.0.0.1:1 --initial-advertise-peer-urls http://127.0.0.1:1 >etcd.log 2>&1 3>&- &
    restored=$!
    export HOLDFAST_STORE="etcd://127.0.0.1:$port/t$BATS_TEST_NUMBER?ttl=3s&call-timeout=1s"
    answers() { timeout 5 bash -c "exec 5<>/dev/tcp/127.0.0.1/$port" 2>/dev/null && "$HOLDFAST" lock run x -- true 2>&1 | grep -q 'cluster id'; }
    wait_until 30 answers
    run hf lock run x -- true
    [ "$status" -eq 3 ] || [ "$status" -eq 125 ]
    [[ "$output" == *"doctor --accept-cluster"* ]]
    hf doctor --accept-cluster >/dev/null || true
    [ "$(hf lock run x -w 20s -- sh -c 'echo $HOLDFAST_TOKEN')" -gt "$last" ]
    kill -KILL $restored
    wait $restored || true
}

@test "all servers are gone at the release: the command's status, in bounded time, and when the lock frees itself (trap 32)" {
    "$HOLDFAST" lock run x -- bash -c 'touch held; until [ -e go ]; do sleep 0.02; done; exit 5' 2>said 3>&- &
    pid=$!
    wait_until 30 test -e held
    cluster pause m1
    touch go
    status=0
    wait $pid || status=$?
    cluster resume m1
    [ "$status" -eq 5 ]
    grep -q 'it becomes free within 3 s' said
    hf lock run x -w 30s -- true
}
