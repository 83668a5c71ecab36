# Forgetting: rm, prune, run --rm, by itself; records of idle locks; and that what is forgotten or old slows nobody down.
load ../session_helper

# later DURATION WORDS...: our command, with the wall clock set on
later() {
    local time=$1
    shift
    ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 faketime "+$time" "$HOLDFAST" "$@"
}

names() { hf ps -a -o name | tail -n +2 | sort | xargs; }

@test "rm forgets ended sessions with their logs, refuses those that run or were not reaped, and the name can be used again" {
    local token
    hf -q run a --log -- echo one
    hf -q run b --log -- echo two
    running live
    token=$(field a .token)
    expect 3 hf rm a --token 5
    expect 1 hf rm live
    says "it is running"
    is_field live .state running
    expect 0 hf rm a --token "$token"
    [ ! -e "$HOLDFAST_DIR/sessions/a" ]
    [ ! -e "$HOLDFAST_DIR/recent/a" ]
    [ -z "$(find "$HOLDFAST_DIR/sessions" -name '.removed*')" ]
    expect 1 hf logs a
    expect 1 hf rm a
    says "no such session"
    expect 1 hf rm a b
    [ "$(names)" = live ]
    expect 0 hf -q run a --log -- echo again
    [ "$(hf logs a)" = again ]
    [ "$(field a .token)" -gt "$token" ]
    expect 0 hf --json rm a
    is_json '.name == "a" and .removed'
    hf -q run gone --detach -- sleep 60
    kill_keepers gone
    wait_until 5 is_field gone .state dead-unreaped
    expect 1 hf rm gone
    says "'holdfast reap gone' cleans up"
    hf reap gone
    expect 0 hf rm gone
}

@test "prune: by age, never the newest N, and --dry-run only says which" {
    command -v faketime >/dev/null || skip "needs faketime"
    for name in a b c; do hf -q run "$name" --log -- echo "$name"; done
    running live
    expect 0 hf prune
    says "0 sessions forgotten"
    expect 0 later '8 days' --json prune --dry-run
    [ "$(hf ps -a -o name | wc -l)" -eq 5 ]
    [ "$(later '8 days' -q prune --keep 1 | xargs)" = "a b" ]
    [ "$(names)" = "c live" ]
    [ "$(later '8 days' -q --json prune | jq -c '[.pruned[].name], .dry_run' | xargs)" = "[c] false" ]
    is_field live .state running
    expect 2 hf prune --keep some
}

@test "prune --max-bytes forgets the oldest until the logs fit" {
    for name in a b c; do hf -q run "$name" --log -- head -c 100000 /dev/zero; done >/dev/null
    expect 0 hf prune --older-than 1d --max-bytes 250K
    [ "$(names)" = "b c" ]
}

@test "run --rm leaves nothing, whatever came of it, also in the background and when it is resumed" {
    expect 0 hf -q run a --rm --log -- echo hello
    says hello
    expect 3 hf -q run b --rm -- sh -c 'exit 3'
    expect 0 hf -q run c -d --rm -- true
    wait_until 10 bash -c '[ ! -e "$HOLDFAST_DIR/sessions/c" ]'
    [ "$(names)" = "" ]
    [ -z "$(ls "$HOLDFAST_DIR/sessions" "$HOLDFAST_DIR/recent" | grep -v :)" ]
    # A supervisor and keeper that were killed could not remove it: the resumed run does.
    hf -q run d -d --rm -- sleep 60
    kill_keepers d
    wait_until 5 is_field d .state dead-unreaped
    hf -q reap d
    expect 0 hf run d --resume -- true
    says ", rm"
    [ ! -e "$HOLDFAST_DIR/sessions/d" ]
}

@test "a run forgets old sessions and idle locks by itself, once an hour; \$HOLDFAST_PRUNE says which, or off" {
    command -v faketime >/dev/null || skip "needs faketime"
    hf -q run old --log -- echo old
    hf -q lock run idle -- true
    HOLDFAST_PRUNE=off later '40 days' -q run x1 -- true
    [ -e "$HOLDFAST_DIR/sessions/old" ]
    HOLDFAST_PRUNE=60d later '40 days' -q run x2 -- true
    [ -e "$HOLDFAST_DIR/sessions/old" ]
    # The hour since has not passed.
    later '40 days' -q run x3 -- true
    [ -e "$HOLDFAST_DIR/sessions/old" ]
    later '41 days' -q run x4 -- true
    [ ! -e "$HOLDFAST_DIR/sessions/old" ]
    [ ! -e "$HOLDFAST_DIR/locks/name/idle" ]
    [ -e "$HOLDFAST_DIR/sessions/x1" ]
}

@test "the token of a lock rises over the removal of its record (L2); lock list has no lock whose holder ended, unless --all" {
    command -v faketime >/dev/null || skip "needs faketime"
    local first second
    spawn "$HOLDFAST" lock run x -- sh -c 'echo "$HOLDFAST_TOKEN" >first; sleep 60'
    wait_until 10 test -s first
    kill -KILL "$spawned_pid"
    wait "$spawned_pid" || true
    wait_until 5 bash -c '[ -z "$("$0" lock list)" ]' "$HOLDFAST"
    [[ "$(hf lock list --all)" == *x*dead* ]]
    [ "$(hf --json lock list --all | jq '.locks | length')" = 1 ]
    later '2 hours' -q prune
    [ ! -e "$HOLDFAST_DIR/locks/name/x" ]
    [ -z "$(hf lock list --all)" ]
    hf -q lock run x -- sh -c 'echo "$HOLDFAST_TOKEN" >second'
    [ "$(cat second)" -gt "$(cat first)" ]
}

@test "ps reads nothing of what ended long ago, and finds what runs although its directory was deleted" {
    command -v faketime >/dev/null || skip "needs faketime"
    hf -q run old -- true
    running live
    [ "$(later '2 days' ps -o name | tail -n +2)" = live ]
    [ ! -e "$HOLDFAST_DIR/recent/old" ]
    [ -e "$HOLDFAST_DIR/recent/live" ]
    [ "$(names)" = "live old" ]
    rm -r "$HOLDFAST_DIR/sessions/live"
    [ "$(hf ps -o name | tail -n +2)" = "$(printf 'live')" ]
    # Without the list of names, it is made from the sessions there are.
    hf -q run new -- true
    rm -r "$HOLDFAST_DIR/recent"
    hf ps >/dev/null
    [ "$(ls "$HOLDFAST_DIR/recent" | xargs)" = "new old" ]
    hf -q run old -- true
    [ "$(hf ps -o name | tail -n +2 | grep -c old)" = 1 ]
}
