#!/usr/bin/env bats
# land --speculate N: candidates that wait for the branch are verified on top of the ones before them, and what stood on one that failed is thrown away.
load ../helper
load ../land_helper

setup() {
    land_setup
    export DESK="$BATS_TEST_TMPDIR"
    : >"$DESK/begun"
}

# It notes what it sees, and waits until it is let go.
VERIFY='ls -d n* | paste -sd, >>"$DESK/begun"; until [ -e "$DESK/go" ]; do sleep 0.02; done; [ ! -e bad ]'

has_place() { [ "$(hl --json land show "$1" 2>/dev/null | jq -r .place)" = "$2" ]; }
has_begun() { [ "$(wc -l <"$DESK/begun")" -ge "$1" ]; }
begun() { [ "$(paste -sd' ' "$DESK/begun")" = "$1" ] || { echo "begun:"; cat "$DESK/begun"; return 1; }; }
landed_as() { [ "$(git log --reverse --format=%s | tail -n +2 | paste -sd,)" = "$1" ] || { git log --oneline; return 1; }; }

# queue PLACE NAME [OPTIONS]: lands it in the background, behind those that are there
queue() {
    spawn timeout --kill-after=5 120 "$HOLDFAST" land "$2" --verify "$VERIFY" -m "$2" "${@:3}"
    eval "pid_$2=$spawned_pid"
    wait_until 60 has_place "$2" "$1"
}
# ends NAME STATUS
ends() {
    local pid="pid_$1" status=0
    wait "${!pid}" || status=$?
    [ "$status" -eq "$2" ] || { echo "$1: exit $status, not $2"; hl land show "$1"; return 1; }
}
no_forecast_is_left() { [ -z "$(hl -q plan list --json | jq -r '.plans[].name' | grep '^\.land')" ] || { hl plan list; return 1; }; }

@test "--speculate: three are verified at once, each on top of the one before; all land in the order of the queue" {
    for i in 1 2 3; do agent "c$i" "echo $i >n$i"; done
    for i in 1 2 3; do queue "$i" "c$i" --speculate 3; done
    wait_until 60 has_begun 3
    begun "n1 n1,n2 n1,n2,n3"
    [ "$(git rev-list --count main)" -eq 1 ]
    touch "$DESK/go"
    for i in 1 2 3; do ends "c$i" 0; done
    landed_as "c1,c2,c3"
    clean
    no_forecast_is_left
}

@test "L14: --speculate: what stood on a candidate that failed is thrown away and verified again without it" {
    agent c1 'echo 1 >n1'
    agent c2 'echo 2 >n2; touch bad'
    agent c3 'echo 3 >n3'
    for i in 1 2 3; do queue "$i" "c$i" --speculate 3; done
    wait_until 60 has_begun 3
    touch "$DESK/go"
    ends c1 0
    ends c2 1
    ends c3 0
    grep -qx "n1,n3" "$DESK/begun"
    landed_as "c1,c3"
    state_is c2 rejected
    [ ! -e bad ]
    clean
    no_forecast_is_left
}

@test "L14: --speculate: a commit of the user comes between: the forecast does not count, and the candidate is verified on top of it" {
    for i in 1 2; do agent "c$i" "echo $i >n$i"; done
    for i in 1 2; do queue "$i" "c$i" --speculate 2; done
    wait_until 60 has_begun 2
    echo u >nu
    git add nu
    git commit -qm user
    touch "$DESK/go"
    for i in 1 2; do ends "c$i" 0; done
    tail -n1 "$DESK/begun" | grep -qx "n1,n2,nu"
    landed_as "user,c1,c2"
    clean
    no_forecast_is_left
}

@test "--speculate: no more than N at once; a candidate that is killed or gives up leaves no forecast, and lands later" {
    for i in 1 2 3; do agent "c$i" "echo $i >n$i"; done
    queue 1 c1 --speculate 2
    queue 2 c2 --speculate 2
    queue 3 c3 --speculate 2
    wait_until 60 has_begun 2
    # The third has had many looks at the queue by then: each is 200 ms.
    sleep 1
    begun "n1 n1,n2"
    pkill -KILL -P "$pid_c2"
    wait "$pid_c2" || true
    touch "$DESK/go"
    ends c1 0
    ends c3 0
    landed_as "c1,c3"
    expect 0 hl land c2
    [ "$(cat n2)" = 2 ]
    clean
    no_forecast_is_left
}

made() { hl -q plan list --json | jq -r '.plans[].name' | grep '^\.land' || true; }
is_made() { [ "$(made | wc -l)" -eq "$1" ] || { echo "not $1:"; hl plan list; return 1; }; }

is_stopped() { grep -qsE '^State:[[:space:]]+T' "/proc/$1/status"; }

# left NAME: its landing and its forecast are killed, so that neither clears up
left() {
    local pid="pid_$1" land
    land=$(pgrep -P "${!pid}")
    kill -STOP "$land"
    wait_until 10 is_stopped "$land"
    pkill -KILL -P "$land" || true
    kill -KILL "$land"
    wait "${!pid}" || true
}

@test "plans that a landing made for itself and a kill left are removed by drop, by a recovery and by plan gc, and by none while they are used" {
    for i in 1 2 3; do agent "c$i" "echo $i >n$i"; done
    for i in 1 2 3; do queue "$i" "c$i" --speculate 3; done
    wait_until 60 has_begun 3
    is_made 3
    expect 0 hl plan gc --age 0s --discard
    is_made 3
    for i in 3 2 1; do left "c$i"; done
    is_made 3
    expect 0 hl land drop c2
    is_made 2
    expect 0 hl land show c1
    is_made 1
    expect 0 hl plan gc --dry-run
    says "would    .land-"
    is_made 1
    expect 0 hl --json plan gc
    is_json '.removed == 1 and ([.plans[] | select(.removed) | .why] == ["a landing that was killed left it"])'
    is_made 0
    touch "$DESK/go"
    # The agents' work still lands.
    expect 0 hl land c1
    expect 0 hl land c3
    [ "$(cat n1 n3)" = $'1\n3' ]
    clean
}

@test "a plan of a landing whose candidate has no record any more is removed by plan gc" {
    agent c1 "echo 1 >n1"
    queue 1 c1
    wait_until 60 has_begun 1
    left c1
    is_made 1
    rm "$HOLDFAST_DIR/landings/c1"
    expect 0 hl plan gc
    says "removed  .land-"
    is_made 0
    hl plan show c1 >/dev/null
}
