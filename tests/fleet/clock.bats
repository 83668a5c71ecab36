#!/usr/bin/env bats
# The clock of one host stands still while the host works on and etcd's time goes on: a virtual machine whose time was not set right after a
# pause. tests/fleet/clock.c does it to the real programs. What a lease promises ends there; what is left is the watch, and then the token.
load helper

setup_file() {
    start_cluster "$BATS_FILE_TMPDIR/fleet" 1 --hosts 2
    cluster in h1 true
}

teardown_file() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

setup() {
    W=$BATS_TEST_TMPDIR
    store="$(cluster url)/c$BATS_TEST_NUMBER?ttl=3s&call-timeout=1s"
    jobs=()
    cluster heal
}

teardown() {
    rm -f "$W/clock"
    touch "$W/go"
    for pid in "${jobs[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    for h in h1 h2; do hf $h stop --all -q >/dev/null 2>&1 || true; done
    wait || true
}

# on HOST COMMAND...: all that runs on h1 has the clock of $W/clock
on() {
    local clock=()
    [ "$1" != h1 ] || clock=(LD_PRELOAD="$HELPERS/helper-clock.so" HF_TEST_CLOCK="$W/clock")
    cluster in "$1" env HOLDFAST_STORE="$store" HOLDFAST_DIR="$W/$1" "${clock[@]}" "${@:2}"
}
hf() { on "$1" timeout 60 "$HOLDFAST" "${@:2}"; }
# in_background COMMAND...: its pid in $!
in_background() {
    "$@" 3>&- 2>>"$W/said" &
    jobs+=($!)
}
stop_clock() { echo 0 >"$W/clock.new" && mv "$W/clock.new" "$W/clock"; }
stands_still() { [ "$(on h1 date +%s)" = "$(on h1 date +%s)" ] && [ "$(on h1 date +%s)" -lt "$(date +%s)" ]; }
# The command of a holder: it alone has the file. If another one has it as well, the file `second` is there, and it exits with 9.
alone='echo "$HOLDFAST_TOKEN" >>"$1/tokens"; echo $$ >"$1/$2.pid"; exec 9>>"$1/alone"; flock -n 9 || { echo $$ >"$1/second"; flock 9; exit 9; }; until [ -e "$1/go" ]; do sleep 0.02; done'
# holding HOST: in the background, takes x; then the file HOST.pid has the pid of its command
holding() {
    in_background on "$1" "$HOLDFAST" lock run x -w 60s -- bash -c "$alone" x "$W" "$1"
    wait_until 60 test -s "$W/$1.pid"
}
# watched: the renewer of h1 has two connections, and the second is its watch. Before that, 0.3 s after its start, a holder has only its clock.
watched() {
    local pid
    pid=$(cluster in h1 pgrep -fx 'holdfast-renew x') && [ "$(cluster in h1 ss -Htnp state established | grep -c "pid=$pid,")" -eq 2 ]
}
# lives HOST: the command of its holder does; one that nobody has reaped yet does not
lives() { cluster in "$1" grep -q '^State:[^ZX]*$' "/proc/$(cat "$W/$1.pid")/status" 2>/dev/null; }
gone() { ! lives "$1"; }
tokens_rise() { sort -cnu "$W/tokens"; }

@test "L1 L2: the clock of a holder stands still: its own watch tells that the lease has ended, and its tree has ended before the next one holds" {
    holding h1
    holder=$!
    wait_until 30 watched
    stop_clock
    wait_until 10 stands_still
    holding h2
    next=$!
    # It has found itself alone, or it would have exited with 9.
    touch "$W/go"
    wait "$next"
    status=0
    wait "$holder" || status=$?
    cat "$W/said"
    [ "$status" -eq 3 ]
    grep -q "the lock is lost" "$W/said"
    gone h1
    stands_still
    tokens_rise
}

# two_believe: h1 holds, its clock stands still and it is cut off: the next one holds on h2 while the first still works
two_believe() {
    echo first >"$W/file"
    holding h1
    holder=$!
    wait_until 30 watched
    stop_clock
    wait_until 10 stands_still
    cluster isolate h1
    holding h2
    next=$!
    # This is what no lease can prevent, and the table in FLEET.md says so.
    wait_until 30 test -s "$W/second"
    lives h1
    tokens_rise
    { read -r old && read -r new; } <"$W/tokens"
    # What checks the token: on h2 the new one acts, and the old one does not any more.
    hf h2 file edit "$W/file" --fence "x:$new" -- sed s/first/new/
    run hf h2 file edit "$W/file" --fence "x:$old" -- sed s/new/old/
    [ "$status" -eq 3 ]
    run hf h2 lock check x --token "$old"
    [ "$status" -eq 3 ]
    # On h1 nobody can prove the old one: the write waits for an answer, as long as neither time nor the network goes on.
    in_background hf h1 file edit "$W/file" --fence "x:$old" -- sed s/new/old/
    late=$!
}

# refused PID: that command has ended without a change of the file
refused() {
    local status=0
    wait "$1" || status=$?
    [ "$status" -eq 3 ] || [ "$status" -eq 125 ] # the token is old, or nobody answered
    [ "$(cat "$W/file")" = new ]
}

@test "L2 L5: its clock stands still and it is cut off: two believe, and the token decides; when its clock goes on, the tree has ended" {
    two_believe
    rm "$W/clock"
    wait_until 30 gone h1
    refused "$late"
    status=0
    wait "$holder" || status=$?
    [ "$status" -eq 3 ]
    grep -q "the lock is lost" "$W/said"
    touch "$W/go"
    [ "$(cat "$W/file")" = new ]
}

@test "L2 L5: its clock stands still and it is cut off: two believe, and the token decides; when the network is back, the tree has ended" {
    two_believe
    cluster heal
    wait_until 60 gone h1
    stands_still
    refused "$late"
    run hf h1 lock check x --token "$old"
    [ "$status" -eq 3 ]
    run hf h1 file edit "$W/file" --fence "x:$old" -- sed s/new/old/
    [ "$status" -eq 3 ]
    [ "$(cat "$W/file")" = new ]
    touch "$W/go"
}

# session HOST: a run over the directory $W/HOST.dir, whose command ends when the file HOST.go is there
session() {
    mkdir -p "$W/$1.dir"
    in_background on "$1" "$HOLDFAST" run n -w 60s -C "$W/$1.dir" --in "$W/$1.dir" -- \
        sh -c 'echo "$HOLDFAST_TOKEN" >>"$1/tokens"; echo "$HOLDFAST_TOKEN" >made; echo $$ >"$1/$2.pid"; until [ -e "$1/$2.go" ]; do sleep 0.02; done' x "$W" "$1"
    wait_until 60 test -s "$W/$1.pid"
}

@test "L1 L2 L5: the same for a session: cut off, its work is not committed with the old token; when its clock goes on, it has ended" {
    session h1
    first=$!
    stop_clock
    wait_until 10 stands_still
    cluster isolate h1
    session h2
    second=$!
    tokens_rise
    # Both commands succeed. The new token commits; the old one waits for a proof that cannot come.
    touch "$W/h1.go" "$W/h2.go"
    wait "$second"
    [ "$(cat "$W/h2.dir/made")" = "$(tail -1 "$W/tokens")" ]
    wait_until 30 gone h1
    rm "$W/clock"
    status=0
    wait "$first" || status=$?
    [ "$status" -eq 125 ]
    # The keeper ends it, or the supervisor is faster and ends the keeper as well.
    outcome=$(cluster in h1 env HOLDFAST_DIR="$W/h1" "$HOLDFAST" status --json n | jq -r .outcome)
    [ "$outcome" = lost-lock ] || [ "$outcome" = abandoned ]
    [ ! -e "$W/h1.dir/made" ]
}

@test "L1 L2: the clock of a session stands still: its own watch tells that the lease has ended, and its tree has ended before the next one begins" {
    on h1 "$HOLDFAST" run -d n -- bash -c "$alone" x "$W" h1
    wait_until 60 test -s "$W/h1.pid"
    wait_until 30 eval '[ "$(hf h2 status --json n | jq -r .state)" = running ]'
    stop_clock
    wait_until 10 stands_still
    in_background on h2 "$HOLDFAST" run n -w 60s -- bash -c "$alone" x "$W" h2
    wait_until 60 test -s "$W/h2.pid"
    gone h1
    [ ! -e "$W/second" ]
    tokens_rise
    touch "$W/go"
    wait "$!"
    [ "$(cluster in h1 env HOLDFAST_DIR="$W/h1" "$HOLDFAST" status --json n | jq -r .outcome)" = lost-lock ]
    stands_still
}
