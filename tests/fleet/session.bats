#!/usr/bin/env bats
# Sessions whose name counts on every machine of the store: run on one host, seen from and refused on the other.
load helper

setup_file() {
    start_cluster "$BATS_FILE_TMPDIR/fleet" 3 --hosts 2
    cluster in h1 true
}

teardown_file() { [ -z "${FLEET_DIR:-}" ] || cluster stop; }

setup() {
    W=$BATS_TEST_TMPDIR
    prefix=t$BATS_TEST_NUMBER
    store="$(cluster url)/$prefix?ttl=3s&call-timeout=500ms"
    cluster heal
}

teardown() {
    for h in h1 h2; do
        hf $h stop --all -q >/dev/null 2>&1 || true
    done
}

# hf HOST ARGS...: holdfast on that host, with a state directory of its own and the store
hf() { on "$1" "$HOLDFAST" "${@:2}"; }
on() { cluster in "$1" env HOLDFAST_STORE="$store" HOLDFAST_DIR="$W/$1" "${@:2}"; }
# of HOST NAME KEY: a field of its session
of() { hf "$1" status --json "$2" | jq -r ".$3"; }
# alone FILE: the command of a session that must be the only one: exit 9 when another one runs
alone='exec 9>>"$1"; flock -n 9 || exit 9; echo "$HOLDFAST_TOKEN" >>"$1"; shift; "$@"'
# here HOST NAME KEY: the same of what that host has on record; with the store it is the newest one of the fleet
here() { cluster in "$1" env HOLDFAST_DIR="$W/$1" "$HOLDFAST" status --json "$2" | jq -r ".$3"; }
# parts HOST NAME: sets supervisor, keeper (pids on that host)
parts() {
    supervisor=$(of "$1" "$2" supervisor.pid)
    keeper=$(of "$1" "$2" keeper.pid)
}
# signal HOST SIGNAL PID...
signal() { cluster in "$1" kill "-$2" "${@:3}"; }
# The next session on h2 begins, waits at most 30 s, and finds itself alone.
next_is_alone() { hf h2 run -w 30s "$1" -- bash -c "$alone" x "$W/alone" true; }

@test "L1 L2: one session of a name in the fleet; the refusal names the host; tokens rise over hosts" {
    hf h1 run -d n -- bash -c "$alone" x "$W/alone" sleep 1000
    wait_until 20 test -s "$W/alone"
    run hf h2 run n -- echo ran
    [ "$status" -eq 1 ]
    [[ "$output" == *"on h1"* ]]
    [[ "$output" != *"ran"* ]]
    run hf h2 run -w 300ms n -- echo ran
    [ "$status" -eq 1 ]
    [ "$(of h1 n token)" = "$(cat "$W/alone")" ]
    hf h1 stop n
    next_is_alone n
    hf h1 run n -- bash -c "$alone" x "$W/alone" true
    sort -cn "$W/alone"
    [ "$(wc -l <"$W/alone")" -eq 3 ]
    # A name of this machine alone is another one.
    cluster in h1 env HOLDFAST_DIR="$W/h1" "$HOLDFAST" run n -- true
}

@test "L1: a host that is cut off ends its session before the next one begins elsewhere" {
    hf h1 run -d n -- bash -c "$alone" x "$W/alone" sleep 1000
    wait_until 20 test -s "$W/alone"
    cluster isolate h1
    next_is_alone n
    cluster heal
    [ "$(here h1 n outcome)" = lost-lock ]
    [ "$(of h1 n host)" = h2 ]
    sort -cn "$W/alone"
}

@test "control: a session that believes in its lease for too long is seen to overlap with the next one" {
    libexec=$BATS_TEST_TMPDIR/libexec
    mkdir -m 755 "$libexec"
    cp "${HELPERS%/tests}"/libexec/holdfast-supervise "$libexec"
    cp "$HELPERS/helper-late" "$libexec/holdfast-renew"
    on h1 env HOLDFAST_LIBEXEC="$libexec" "$HOLDFAST" run -d n -- bash -c "$alone" x "$W/alone" sleep 1000
    wait_until 20 test -s "$W/alone"
    cluster isolate h1
    run next_is_alone n
    cluster heal
    [ "$status" -eq 9 ]
}

@test "L1: cut off with its keeper stopped, the supervisor ends the tree; with the supervisor stopped, the keeper does" {
    for part in keeper supervisor; do
        rm -f "$W/alone"
        hf h1 run -d "$part" -- bash -c "$alone" x "$W/alone" sleep 1000
        wait_until 20 test -s "$W/alone"
        parts h1 "$part"
        signal h1 STOP "${!part}"
        cluster isolate h1
        next_is_alone "$part"
        cluster heal
        signal h1 CONT "$supervisor" || true
    done
}

@test "L7: keeper and supervisor killed: the agent ends the tree, then the name is free at once" {
    store="$(cluster url)/$prefix?ttl=120s"
    hf h1 run -d n -- bash -c "$alone" x "$W/alone" sleep 1000
    wait_until 20 test -s "$W/alone"
    parts h1 n
    # Stopped, it is still there when it is killed, although it would end at once without its keeper.
    signal h1 STOP "$supervisor"
    signal h1 KILL "$keeper" "$supervisor"
    next_is_alone n
    hf h1 run -d m -- bash -c "$alone" x "$W/alone" sleep 1000
    wait_until 20 eval '[ "$(wc -l <"$W/alone")" -eq 3 ]'
    parts h1 m
    signal h1 KILL "$keeper"
    next_is_alone m
    [ "$(here h1 m outcome)" = abandoned ]
}

@test "a session outlives its lease many times; its renewer is replaced when it is killed" {
    hf h1 run -d n -- sleep 1000
    wait_until 20 eval '[ "$(of h1 n state)" = running ]'
    token=$(of h1 n token)
    worker=$(cluster in h1 pgrep -f 'holdfast-renew n session' | tail -1)
    signal h1 KILL "$worker"
    wait_until 20 eval 'cluster in h1 pgrep -f "holdfast-renew n session" | grep -qv "^$worker$"'
    end=$((SECONDS + 5))
    wait_until 20 eval '[ "$SECONDS" -ge "$end" ]'
    [ "$(of h1 n state)" = running ]
    [ "$(of h1 n token)" = "$token" ]
    hf h2 lock check n --token "$token"
    hf h1 stop n
    run ! hf h2 lock check n
}

@test "a lock that is broken ends the session at once; nothing is committed" {
    mkdir "$W/tree"
    hf h1 run -d n -C "$W/tree" --in "$W/tree" -- sh -c 'echo new >file; echo here >"$1"; exec sleep 1000' x "$W/up"
    wait_until 20 test -s "$W/up"
    hf h2 lock break n --reason test
    run hf h1 wait n
    [ "$status" -eq 125 ]
    [ "$(here h1 n outcome)" = lost-lock ]
    [ ! -e "$W/tree/file" ]
    run hf h1 run n -C "$W/tree" --in "$W/tree" -- true
    [ "$status" -eq 1 ] # its work is kept until it is discarded
    hf h1 run n --discard -C "$W/tree" --in "$W/tree" -- sh -c 'echo new >file'
    [ "$(cat "$W/tree/file")" = new ]
}

@test "a loop keeps its name; a session that waits for it can be stopped; resumed without the store it is refused" {
    hf h1 run -d n --every 200ms --max-runs 3 -- bash -c "$alone" x "$W/alone" true
    hf h2 run -d -w 60s n -- true &
    waiter=$!
    run hf h2 run n -- true
    [ "$status" -eq 1 ]
    hf h1 wait n
    wait "$waiter"
    hf h2 wait n
    [ "$(sort -u "$W/alone" | wc -l)" -eq 1 ]
    [ "$(wc -l <"$W/alone")" -eq 3 ]
    run hf h1 run n -- test -e "$W/again"
    run cluster in h1 env HOLDFAST_DIR="$W/h1" "$HOLDFAST" run --resume n
    echo "$output"
    [ "$status" -ne 0 ]
    [[ "$output" == *"--store"* ]]
    touch "$W/again"
    hf h1 run --resume n
    hf h1 run -d n -- sleep 1000
    hf h2 run -w 60s n -- true &
    waiter=$!
    wait_until 20 eval 'hf h2 ps | grep -q starting'
    hf h2 stop n
    status=0
    wait "$waiter" || status=$?
    [ "$status" -eq 143 ]
    hf h1 stop n
}

@test "without a cluster that answers a session is not started, and says why" {
    cluster isolate h1
    run hf h1 run n -- echo ran
    [ "$status" -eq 4 ] || [ "$status" -eq 125 ]
    [[ "$output" != *ran* ]]
    [[ "$output" == *n* ]]
}

@test "ps --all-hosts, status, why, wait and logs tell of a session on the other host" {
    mkfifo "$W/go"
    hf h1 run -d n -- sh -c 'echo begun >"$1"; read -r line <"$2"; exit 7' x "$W/up" "$W/go"
    wait_until 20 test -s "$W/up"
    wait_until 20 eval '[ "$(hf h2 ps --all-hosts --json | jq -r ".sessions[] | select(.name == \"n\") | .host + \" \" + .state")" = "h1 running" ]'
    hf h2 ps --all-hosts | grep -q '^n  *h1  *running'
    [ "$(of h2 n host)" = h1 ]
    [ "$(of h2 n token)" = "$(of h1 n token)" ]
    hf h2 status n | grep -q 'running on h1'
    hf h2 why n | grep -q 'session: running on h1'
    run hf h2 logs n
    [ "$status" -eq 1 ]
    [[ "$output" == *"on h1"* ]]
    run hf h2 wait -w 300ms -E 9 n
    [ "$status" -eq 9 ]
    hf h2 wait n &
    waiter=$!
    echo go >"$W/go"
    status=0
    wait "$waiter" || status=$?
    [ "$status" -eq 7 ]
    [ "$(of h2 n outcome)" = failed ]
    run hf h2 wait n
    [ "$status" -eq 7 ]
    # What was run here last is told from here.
    hf h2 run n -- true
    [ "$(of h2 n outcome)" = succeeded ]
    [ "$(of h1 n host)" = h2 ]
    run cluster in h1 env HOLDFAST_DIR="$W/h1" "$HOLDFAST" ps --all-hosts
    [ "$status" -eq 2 ]
}

@test "stop asks the keeper on the other host: TERM, the grace, KILL; the outcome is read back" {
    hf h1 run -d n -- bash -c 'trap "echo term >\"$1\"; exit 3" TERM; echo up >"$1"; while :; do sleep 0.1; done' x "$W/said"
    wait_until 20 test -s "$W/said"
    wait_until 20 eval '[ "$(of h2 n state)" = running ]'
    run hf h2 stop n
    [ "$status" -eq 0 ]
    [[ "$output" == *"asked h1"* ]]
    [[ "$output" == *stopped* ]]
    [ "$(cat "$W/said")" = term ]
    [ "$(of h1 n outcome)" = stopped ]
    run hf h2 stop n
    [ "$status" -eq 1 ]
    [[ "$output" == *already-gone* ]]
    # One that ignores TERM is killed after the grace that was asked for.
    hf h1 run -d m --grace 1h -- bash -c 'trap "" TERM; echo up >"$1"; while :; do sleep 0.1; done' x "$W/up"
    wait_until 20 test -s "$W/up"
    wait_until 20 eval '[ "$(of h2 m state)" = running ]'
    [ "$(hf h2 stop --grace 200ms m --json 2>/dev/null | jq -r '.host + " " + .outcome')" = "h1 stopped" ]
    [ "$(of h1 m state)" = stopped ]
    # A token that is another run's reaches nothing.
    run hf h2 stop m --token 5
    [ "$status" -ne 0 ]
}

@test "a host that died is shown as such; wait says that the outcome is not known" {
    hf h1 run -d n -- sleep 1000
    wait_until 20 eval '[ "$(of h2 n state)" = running ]'
    cluster isolate h1
    run hf h2 wait n
    [ "$status" -eq 125 ]
    [[ "$output" == *"check that host"* ]]
    [ "$(of h2 n state)" = dead-unreaped ]
}
