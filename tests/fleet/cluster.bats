#!/usr/bin/env bats
# The fleet of the tests: members start, fail and heal as they are told, and nothing is left.
load helper

teardown() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

get() { cluster in "$1" env ETCDCTL_API=3 etcdctl --endpoints "$2" --command-timeout 500ms --dial-timeout 500ms get k; }

# on NODE MEMBER: that member answers that node, by a read that needs a quorum
answers() { local m=198.18.0.${2#m}:2379; get "$1" "http://$m" >/dev/null 2>&1; }
silent() { ! answers "$@"; }

# arrives FROM TO SECONDS: datagrams from one node reach the other
arrives() {
    local to=198.18.0.${2#?}
    case $2 in h*) to=198.18.0.$((100 + ${2#h})) ;; esac
    cluster in "$1" timeout "$3" bash -c "while :; do echo x >/dev/udp/$to/9999; sleep 0.05; done" 2>/dev/null &
    cluster in "$2" python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9999))
s.settimeout(float(sys.argv[1]))
s.recv(1)' "$3" 2>/dev/null
}

@test "three members and two hosts start, answer and stop" {
    start_cluster "$BATS_TEST_TMPDIR/fleet" 3 --hosts 2
    [ "$(cluster health | paste -sd' ')" = "m1 m2 m3" ]
    wait_until 30 answers h1 m1
    wait_until 30 answers h2 m3
    [ "$(cluster in h1 hostname)" = h1 ]
    [ "$(cluster in h1 cat /proc/sys/kernel/random/boot_id)" != "$(cluster in h2 cat /proc/sys/kernel/random/boot_id)" ]
    run cluster in h2 sh -c 'exit 7'
    [ "$status" -eq 7 ]
    first=$(cat "$FLEET_DIR/ready")
    cluster stop
    ended "$first"
    [ ! -e "$FLEET_DIR/fleet" ]
    cluster stop
}

@test "cuts are silent, have a direction, and heal" {
    start_cluster "$BATS_TEST_TMPDIR/fleet" 3 --hosts 2
    cluster cut h1 m1
    silent h1 m1
    wait_until 30 answers h1 m2
    wait_until 30 answers h2 m1
    cluster heal
    wait_until 30 answers h1 m1
    # One way: what m1 sends to h1 arrives, what h1 sends does not.
    cluster cut --one-way h1 m1
    arrives m1 h1 10
    run ! arrives h1 m1 1
    silent h1 m1
    cluster heal
    wait_until 30 answers h1 m1
    cluster isolate m2
    cluster isolate h1
    cluster isolate m2
    wait_until 20 silent m2 m2
    wait_until 20 answers m1 m1
    silent h1 m1
    cluster heal
    wait_until 30 answers h1 m2
    cluster link h2 down
    silent h2 m1
    cluster link h2 up
    wait_until 30 answers h2 m1
}

@test "without a quorum nobody answers; killed and paused members come back" {
    start_cluster "$BATS_TEST_TMPDIR/fleet" 3 --hosts 1
    cluster kill m1
    cluster pause m2
    wait_until 20 silent h1 m3
    cluster resume m2
    wait_until 20 answers h1 m3
    cluster restart m1
    wait_until 30 answers h1 m1
    cluster kill m1 m3
    cluster pause m2
    cluster heal
    wait_until 30 answers h1 m3
}

@test "the leader is named, and another one leads after it is paused" {
    start_cluster "$BATS_TEST_TMPDIR/fleet" 3
    leader=$(cluster leader)
    cluster pause "$leader"
    moved() { local now; now=$(cluster leader) && [ "$now" != "$leader" ]; }
    wait_until 30 moved
}

@test "nothing is left when the owner is killed" {
    # shellcheck disable=SC2016  # the inner shell's
    bash -c '"$0" -C "$1" start 1 --owner $$ && touch "$1/up" && sleep 1000' "$fleet_tests/cluster" "$BATS_TEST_TMPDIR/fleet" 3>&- &
    owner=$!
    wait_until 60 test -e "$BATS_TEST_TMPDIR/fleet/up" -o ! -d "/proc/$owner"
    [ -e "$BATS_TEST_TMPDIR/fleet/up" ] || { [ "$(id -u)" != 0 ] && skip "no namespaces for this user"; }
    first=$(cat "$BATS_TEST_TMPDIR/fleet/ready")
    kill -KILL "$owner"
    wait_until 60 ended "$first"
    wait "$owner" || true
}

@test "nothing is left when the watcher is killed" {
    start_cluster "$BATS_TEST_TMPDIR/fleet" 1
    first=$(cat "$FLEET_DIR/ready")
    kill -KILL "$(cat "$FLEET_DIR/watcher")"
    wait_until 60 ended "$first"
}

@test "on loopback: free ports, two at a time, and nothing left" {
    start_cluster "$BATS_TEST_TMPDIR/one" 1 --loopback --profile conformance
    start_cluster "$BATS_TEST_TMPDIR/two" 3 --loopback
    [ "$(cluster endpoints)" != "$(cluster -C "$BATS_TEST_TMPDIR/one" endpoints)" ]
    ETCDCTL_API=3 etcdctl --endpoints "$(cluster endpoints)" put k v
    cluster kill m2
    cluster restart m2
    [ "$(cluster health | wc -l)" -eq 3 ]
    member=$(cat "$FLEET_DIR/m1.pid")
    kill -KILL "$(cat "$FLEET_DIR/watcher")"
    wait_until 60 ended "$member"
    cluster -C "$BATS_TEST_TMPDIR/one" stop
}

@test "wrong use is refused" {
    export FLEET_DIR=$BATS_TEST_TMPDIR/none
    run -1 cluster start 0
    run -1 cluster start 1 --profile quick
    run -1 cluster leader
    start_cluster "$BATS_TEST_TMPDIR/fleet" 1 --loopback
    run -1 cluster start 1 --loopback
    run -1 cluster cut m1 m2
    run -1 cluster kill m7
}
