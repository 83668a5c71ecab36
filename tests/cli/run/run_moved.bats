# run --in DIR --verify CMD: when other files of the target change while the verifier runs, it runs again, with them.
load ../session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    mkdir T
    echo one >T/a
    echo two >T/b
    mkfifo began go
    export DESK=$PWD
}

# A verifier that says that it runs, and what it sees; then it waits to be let go. It lies beside the target.
VERIFIER='cat T/a T/b | paste -sd, >>"$DESK/seen"; tail -n1 "$DESK/seen" | grep -q bad && exit 1; echo >"$DESK/began"; cat "$DESK/go" >/dev/null'

# during N COMMAND...: while the verifier runs for the Nth time
during() {
    local n=$1
    shift
    timeout 20 cat began >/dev/null || { echo "the verifier did not begin"; return 1; }
    [ "$(wc -l <seen)" -eq "$n" ] || { echo "not run $n:"; cat seen; return 1; }
    "$@"
    echo | timeout 20 tee go >/dev/null
}

seen() { [ "$(paste -sd' ' seen)" = "$1" ] || { echo "seen:"; cat seen; return 1; }; }

edit() { echo "$1" >T/b; }

# begin OPTIONS...: the run in the background; its exit status is in $status after `ended`
begin() { spawn hf run x --in T --verify "$VERIFIER" "$@"; runner=$spawned_pid; }
ended() {
    status=0
    wait "$runner" || status=$?
    [ "$status" -eq "$1" ] || { echo "exit $status, not $1"; hf status x; return 1; }
}

@test "L14: another file that changes while it is verified: verified again with it, then committed; the journal says so" {
    begin -- sh -c 'echo ours >T/a'
    during 1 edit theirs
    during 2 true
    ended 0
    seen "ours,two ours,theirs"
    [ "$(cat T/a T/b)" = "$(printf 'ours\ntheirs')" ]
    [ "$(events run_moved x)" -eq 1 ]
    [ "$(hf -q journal query --event run_moved --json | jq -r .path)" = b ]
    [ "$(events run_committed x)" -eq 1 ]
    [[ "$(field x .cause)" == "exit 0, verified, committed: 0 added, 1 changed, 0 deleted"* ]]
}

@test "L14: what the verifier refuses the second time is not committed, and is kept" {
    begin -- sh -c 'echo ours >T/a'
    during 1 edit bad
    ended 1
    seen "ours,two ours,bad"
    [ "$(cat T/a T/b)" = "$(printf 'one\nbad')" ]
    [ "$(field x .outcome)" = verify-failed ]
    [ "$(events run_committed)" -eq 0 ]
    expect 0 hf plan diff run:x --stat
    says "a"
}

@test "a file that is added or deleted counts; what came before the verifier does not, and without a verifier nothing does" {
    begin -- sh -c 'echo ours >T/a; echo >"$DESK/began"; cat "$DESK/go" >/dev/null'
    timeout 20 cat began >/dev/null
    edit before
    echo >go
    during 1 touch T/new
    during 2 rm T/new
    during 3 true
    ended 0
    seen "ours,before ours,before ours,before"
    expect 0 hf run y --in T -- sh -c 'echo more >T/a'
    [ "$(events run_moved y)" -eq 0 ]
}

@test "the file that is being changed by the run itself is a conflict, not a reason to verify again" {
    begin -- sh -c 'echo ours >T/a'
    during 1 sh -c 'echo theirs >T/a'
    ended 1
    seen "ours,two"
    [ "$(field x .outcome)" = conflict ]
    [ "$(cat T/a)" = theirs ]
}

@test "a target that changes each time it is verified ends as a conflict that names the path; the work is kept" {
    begin --result r.json -- sh -c 'echo ours >T/a'
    for n in 1 2 3 4 5 6; do
        during "$n" edit "$n"
    done
    ended 1
    [ "$(wc -l <seen)" -eq 6 ]
    jq -e '.outcome == "conflict" and (.cause | contains("b")) and .landed.conflicts[0].path == "b"' r.json
    [ "$(cat T/a)" = one ]
    expect 0 hf plan diff run:x --stat
    says "a"
}

@test "output that goes to a file in the target is no change of it" {
    spawn sh -c 'exec "$0" run x --in T --verify "echo talks; $1" -- sh -c "echo ours >T/a" >T/log 2>&1' "$HOLDFAST" "$VERIFIER"
    runner=$spawned_pid
    during 1 true
    ended 0
    seen "ours,two"
    grep -q talks T/log
}

@test "of a git directory the commits count, not the index" {
    git init -q -b main T
    (cd T && git add a b && git -c user.name=u -c user.email=u@x commit -q -m one)
    begin --land off -- sh -c 'echo ours >T/a'
    during 1 sh -c 'touch T/b.new && git -C T add b.new && git -C T rm -q --cached b.new && rm T/b.new && touch -d "2001-01-01" T/.git/index'
    # The file that came and went has changed the directory.
    during 2 sh -c 'touch T/.git/index; : >T/.git/FETCH_HEAD'
    ended 0
    (cd T && git checkout -q a)
    : >seen
    begin --land off -- sh -c 'echo ours >T/a'
    during 1 git -C T -c user.name=u -c user.email=u@x commit -q --allow-empty -m two
    during 2 true
    ended 0
    [[ "$(hf -q journal query --event run_moved --json | jq -r .path | tail -n1)" == .git/refs/heads/main ]]
}

@test "a copy does not show what others do, so it is verified once" {
    spawn hf run x --cwd T --in T --strategy copy --verify 'echo >>"$DESK/seen"; echo >"$DESK/began"; cat "$DESK/go" >/dev/null' -- sh -c 'echo ours >a'
    runner=$spawned_pid
    during 1 edit theirs
    ended 0
    [ "$(cat T/a T/b)" = "$(printf 'ours\ntheirs')" ]
    [ "$(events run_moved x)" -eq 0 ]
}

@test "L14: stopped or killed while it is verified again: nothing is committed" {
    begin -- sh -c 'echo ours >T/a'
    during 1 edit theirs
    timeout 20 cat began >/dev/null
    hf stop x --grace 1s
    ended 143
    [ "$(cat T/a)" = one ]
    : >seen
    expect 0 hf plan rm run:x --discard
    begin -- sh -c 'echo ours >T/a'
    during 1 edit again
    timeout 20 cat began >/dev/null
    kill_keepers x
    wait "$runner" || true
    expect 0 hf reap x
    [ "$(cat T/a)" = one ]
    [ "$(events run_committed)" -eq 0 ]
    [ "$(field x .outcome)" = abandoned ]
    # The kernel gives an overlay's work directory no rights at all.
    chmod -R u+rwX "$BATS_TEST_TMPDIR"
}
