# tests/cli/helper.bash - what every CLI test loads.
#
# Each test has its own state directory and a limit on every command: nothing here may hang.
bats_require_minimum_version 1.5.0

: "${HOLDFAST:?the binary to test}" "${HELPERS:?directory of the helper programs}"

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state"
    # The bound of 100 ms is for people's machines; on a loaded one it would cost records that tests count.
    export HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
}

# kill_spawned: kills each spawned process that still runs. The number of an ended one may belong to another program.
kill_spawned() {
    local pid running
    running=" $(jobs -pr | tr '\n' ' ')"
    for pid in ${spawned[@]+"${spawned[@]}"}; do
        [[ $running == *" $pid "* ]] || continue
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

teardown() {
    kill_spawned
    # A sandbox that was kept has directories of overlayfs that only their mode keeps an ordinary user from removing.
    chmod -R u+rwX "$BATS_TEST_TMPDIR" 2>/dev/null || true
}

hf() { timeout --kill-after=5 20 "$HOLDFAST" "$@"; }

# spawn COMMAND...: in the background, ended with the test; the pid is in $spawned_pid
spawn() {
    "$@" 3>&- &
    spawned_pid=$!
    spawned+=("$spawned_pid")
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

# others_inside: some process of another user is in a pid namespace below ours, so the end of a namespace cannot be proven
others_inside() {
    local file
    [ "$EUID" != 0 ] || return 1
    for file in /proc/[0-9]*/status; do
        ! awk -v me="$EUID" '$1 == "Uid:" { other = $2 != me } $1 == "NSpid:" { inside = NF > 2 } END { exit !(other && inside) }' "$file" 2>/dev/null || return 0
    done
    return 1
}

# expect STATUS COMMAND...: runs it, compares the status, shows what it said
expect() {
    local want=$1
    shift
    if [ "$want" -eq 127 ]; then run -127 "$@"; else run "$@"; fi
    [ "$status" -eq "$want" ] || { echo "exit $status, not $want: $*"; echo "$output"; return 1; }
}

# says TEXT: the last output holds it
says() { [[ "$output" == *"$1"* ]] || { echo "does not say '$1':"; echo "$output"; return 1; }; }

# is_json JQ-EXPRESSION: true of the last output
# jq 1.6 says yes to nothing at all.
is_json() { { [ -n "$output" ] && jq -e "$1" <<<"$output" >/dev/null; } || { echo "not $1:"; echo "$output"; return 1; }; }
