#!/usr/bin/env bats
# Locks on three members and two hosts: one queue for all hosts, and what the loss of members does to it.
load helper

setup_file() {
    start_cluster "$BATS_FILE_TMPDIR/fleet" 3 --hosts 2
    cluster in h1 true
}

teardown_file() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

setup() {
    W=$BATS_TEST_TMPDIR
    store="$(cluster url)/q$BATS_TEST_NUMBER?ttl=3s&call-timeout=500ms"
    jobs=()
    cluster heal
}

teardown() {
    touch "$W/go" "$W/go2"
    for pid in "${jobs[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    wait || true
}

on() { cluster in "$1" env HOLDFAST_STORE="$store" HOLDFAST_DIR="$W/$1" "${@:2}"; }
hf() { on "$1" timeout 60 "$HOLDFAST" "${@:2}"; }
# start HOST NAME WORD FILE: in the background, waits for NAME, writes WORD to the file "order", and holds it until FILE is there
start() {
    on "$1" "$HOLDFAST" lock run "$2" -w 60s -- bash -c 'echo "$2" >>"$1/order"; until [ -e "$1/$3" ]; do sleep 0.02; done; echo "$2 ends" >>"$1/order"' x "$W" "$3" "$4" 3>&- 2>>"$W/said" &
    jobs+=($!)
}
waiters() { [ "$(hf h1 lock list --json | jq -s "[.[] | .. | .waiters? // empty | .[]] | length")" -ge "$1" ]; }
order() { grep -qsx "$1" "$W/order"; }
# used HOST: the members that it has connections to
used() { cluster in "$1" ss -Htn state established | awk '{ sub(/.*198\.18\.0\./, "m", $4); sub(/:.*/, "", $4); print $4 }' | sort -u; }

@test "L1: waiters of two hosts get the lock in the order in which they came" {
    start h1 x a go
    wait_until 30 order a
    start h2 x b go
    wait_until 30 waiters 1
    start h1 x c go
    wait_until 30 waiters 2
    start h2 x d go
    wait_until 30 waiters 3
    touch "$W/go"
    wait_until 60 order "d ends"
    [ "$(tr '\n' ' ' <"$W/order")" = "a a ends b b ends c c ends d d ends " ]
}

@test "a waiter whose member is cut off silently gets its turn through another (trap 12)" {
    start h2 x a go
    wait_until 30 order a
    start h1 x b go2
    wait_until 30 waiters 1
    member=$(used h1)
    [ "$(wc -w <<<"$member")" -eq 1 ]
    cluster cut h1 "$member"
    touch "$W/go"
    wait_until 40 order b
    touch "$W/go2"
}

@test "a member that hangs ends no lock and no session: a renewal asks another member in time" {
    store="$(cluster url)/q$BATS_TEST_NUMBER?ttl=12s&call-timeout=3s"
    start h1 x a go
    wait_until 30 order a
    hf h1 run -d s -- sleep 1000
    wait_until 30 eval '[ "$(hf h1 status --json s | jq -r .state)" = running ]'
    member=$(used h1)
    [ "$(wc -w <<<"$member")" -eq 1 ]
    cluster pause "$member"
    # Two leases pass.
    end=$((SECONDS + 24))
    wait_until 40 eval '[ "$SECONDS" -ge "$end" ]'
    run ! order "a ends"
    [ "$(hf h1 status --json s | jq -r .state)" = running ]
    cluster resume "$member"
    hf h1 stop s
    touch "$W/go"
    wait_until 20 order "a ends"
}

@test "machines begin with different members" {
    for i in {1..12}; do
        on h1 unshare -u sh -c 'hostname "$1"; exec "$2" lock run "$1" -- bash -c "touch \"$3/up-$1\"; until [ -e \"$3/go\" ]; do sleep 0.02; done"' x "agent-$i" "$HOLDFAST" "$W" 3>&- &
        jobs+=($!)
    done
    for i in {1..12}; do wait_until 30 test -e "$W/up-agent-$i"; done
    wait_until 10 eval '[ "$(used h1 | wc -l)" -eq 3 ]'
    touch "$W/go"
    wait "${jobs[@]}"
}

@test "L1: a majority that is away for longer than the lease ends the holder; the queue goes on when it is back (trap 10, trap 33)" {
    # As agents do, it ends with 0 when it is asked to end; what it started does not end by itself.
    on h1 "$HOLDFAST" lock run x -- bash -c 'trap "exit 0" TERM; setsid bash -c "trap \"\" TERM; echo \$\$ >\"\$1/left\"; exec sleep 300" x "$1" & until [ -s "$1/left" ]; do sleep 0.02; done
        echo a >>"$1/order"; while :; do sleep 0.02; done' x "$W" 3>&- 2>>"$W/said" &
    jobs+=($!)
    wait_until 30 order a
    on h1 kill -0 "$(cat "$W/left")"
    start h2 x b go2
    wait_until 30 waiters 1
    cluster pause m1 m2
    # It ends by its own clock, without a cluster to ask.
    status=0
    wait "${jobs[0]}" || status=$?
    [ "$status" -eq 3 ]
    run ! on h1 kill -0 "$(cat "$W/left")"
    run ! order b
    cluster resume m1 m2
    wait_until 40 order b
    touch "$W/go2"
}

@test "a member that is replaced by an empty one changes nothing for holder and waiter" {
    command -v etcdctl >/dev/null || skip "etcdctl is not installed (Debian: etcd-client)"
    ctl() { cluster in h1 env ETCDCTL_API=3 timeout 20 etcdctl --endpoints "$(cluster endpoints)" --command-timeout 5s "$@"; }
    start h1 x a go
    wait_until 30 order a
    start h2 x b go2
    wait_until 30 waiters 1
    id=$(ctl member list | awk -F', ' '$3 == "m3" { print $1 }')
    peer=$(ctl member list | awk -F', ' '$3 == "m3" { print $4 }')
    cluster kill m3
    # A call that was not answered may have been done: what counts is the list.
    listed() { ctl member list 2>/dev/null | grep -q "$1"; }
    removed() { ctl member remove "$id" >/dev/null 2>&1 || true; ctl member list >/dev/null 2>&1 && ! listed "$id"; }
    added() { listed "$peer" || { ctl member add m3 --peer-urls="$peer" >/dev/null 2>&1 || true; listed "$peer"; }; }
    wait_until 60 removed
    wait_until 60 added
    cluster replace m3
    hf h2 lock check x
    touch "$W/go"
    wait_until 40 order b
    touch "$W/go2"
}
