# tests/fleet/helper.bash - what every test of the fleet loads: the cluster of tests/fleet/cluster, skipped where it cannot start.
bats_require_minimum_version 1.5.0

: "${HOLDFAST:?the binary to test}" "${HELPERS:?directory of the helper programs}"
fleet_tests=${BASH_SOURCE[0]%/*}

cluster() { "$fleet_tests/cluster" "$@"; }

# start_cluster DIR START-OPTIONS...: a fleet that ends with this test file; skips with the reason where none can be. In continuous
# integration as root nothing is skipped: a machine without etcd would prove nothing there.
start_cluster() {
    local said status=0
    export FLEET_DIR=$1
    shift
    # The owner is this shell, not the one that catches the output.
    said=$(cluster start --owner $$ "$@" 2>&1) || status=$?
    [ "$status" -ne 77 ] || [ "${CI:-}:$(id -u)" = true:0 ] || skip "${said##*$'\n'}"
    [ "$status" -eq 0 ] || { echo "$said"; return 1; }
}

# wait_until SECONDS COMMAND...: until it succeeds; fails after the deadline
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || { echo "still not: $*"; return 1; }
        sleep 0.02
    done
}

# ended PID: gone, or a zombie that nobody reaps
ended() { ! grep -q '^State:[^ZX]*$' "/proc/$1/status" 2>/dev/null; }
