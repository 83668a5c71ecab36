# run --in DIR: the command works in a sandbox; what it made is committed when command and verifier succeed, or not at all.
load ../session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    mkdir T
    echo one >T/a
    echo two >T/b
}

# changes: how T differs from how it was
untouched() { [ "$(cat T/a T/b)" = "$(printf 'one\ntwo')" ] && [ "$(ls -A T | paste -sd' ')" = "a b" ] || { ls -lA T; cat T/*; return 1; }; }

no_plan() { [ -z "$(hf -q plan list --json | jq -r '.plans[].name')" ] || { hf plan list; return 1; }; }

@test "run --in: success is committed, the outcome, the journal and --result say what, and the plan is gone (L14)" {
    expect 0 hf run x --in T --result r.json -- sh -c 'echo 1 >T/a; rm T/b; echo new >T/c; pwd >T/where; test -z "$(ls -A T | grep -v "^[abcw]")"'
    says "committed: 2 added, 1 changed, 1 deleted"
    [ "$(cat T/a T/c)" = "$(printf '1\nnew')" ]
    [ ! -e T/b ]
    [ "$(cat T/where)" = "$PWD" ]
    jq -e '.outcome == "succeeded" and .landed.committed and (.landed.kept | not) and .landed.added == 2 and .landed.changed == 1 and .landed.deleted == 1' r.json
    [ "$(events run_committed x)" -eq 1 ]
    [ "$(hf -q journal query --event run_committed --json | jq .token)" = "$(jq .token r.json)" ]
    [[ "$(field x .cause)" == "exit 0, committed: 2 added, 1 changed, 1 deleted, "*" bytes" ]]
    no_plan
}

@test "run --in: nothing to commit is a success that says so, and costs no plan" {
    expect 0 hf run x --in T -- true
    [ "$output" = "" ]
    [ "$(field x .cause)" = "exit 0, nothing to commit" ]
    no_plan
    untouched
}

@test "run --in: the verifier runs in the sandbox; what it writes is committed with the rest" {
    expect 0 hf run x --in T --verify 'grep -q changed T/a && echo verified >T/v' -- sh -c 'echo changed >T/a'
    [ "$(cat T/a T/v)" = "$(printf 'changed\nverified')" ]
    [[ "$(field x .cause)" == "exit 0, verified, committed:"* ]]
}

@test "run --in: failure, a verifier that says no, crashes or hangs, and a deadline commit nothing; the message says what to do" {
    expect 7 hf run x --in T -- sh -c 'echo bad >T/a; exit 7'
    says "holdfast plan diff run:x"
    says "plan commit run:x"
    says "plan rm --discard run:x"
    says "--resume"
    untouched
    [ "$(events run_kept x)" -eq 1 ]
    expect 1 hf run x --discard --in T --verify 'false' -- sh -c 'echo bad >T/a'
    says "dropping the work of the last run: 1 file changed"
    says "verify failed"
    untouched
    expect 1 hf run x --discard --in T --verify 'echo more >T/v; kill -SEGV $$' -- sh -c 'echo bad >T/a'
    untouched
    expect 1 hf run x --discard --in T --verify 'sleep 60' --verify-deadline 100ms --grace 100ms -- sh -c 'echo bad >T/a'
    untouched
    expect 124 hf run x --discard --in T --deadline 300ms --grace 100ms -- sh -c 'trap "" TERM; echo bad >T/a; sleep 60 & wait; sleep 60'
    untouched
    [ "$(events run_committed)" -eq 0 ]
}

@test "L14: run --in: a command that moves or removes the directory it was started in loses nothing: verified if that can be, else kept" {
    mkdir T/sub
    echo 1 >T/sub/f
    # The verifier has no directory to start in.
    expect 1 hf run x -C "$PWD/T/sub" --in T --verify true -- sh -c 'cd .. && mv sub moved && echo 2 >moved/g'
    says "verify could not be run"
    says "plan diff run:x"
    [ "$(ls -A T | paste -sd' ')" = "a b sub" ]
    expect 0 hf plan diff run:x
    says moved
    expect 0 hf plan commit run:x
    [ "$(cat T/moved/g)" = 2 ]
    hf -q plan rm run:x --discard
    # Without one it is committed.
    expect 0 hf run x -C "$PWD/T/moved" --in T -- sh -c 'cd .. && rm -r moved && echo 3 >h'
    [ "$(cat T/h)" = 3 ]
    [ ! -e T/moved ]
}

@test "run --in: --keep never drops, always keeps also what was committed, and undo takes that back" {
    expect 3 hf run x --in T --keep never -- sh -c 'echo bad >T/a; exit 3'
    no_plan
    untouched
    expect 0 hf run x --in T --keep always -- sh -c 'echo good >T/a'
    says "plan undo run:x"
    [ "$(cat T/a)" = good ]
    expect 0 hf plan undo run:x
    untouched
    expect 0 hf run x --in T -- true
    no_plan
}

@test "run --in: a failure without changes keeps nothing" {
    expect 3 hf run x --in T -- sh -c 'exit 3'
    no_plan
}

@test "run --in: --resume goes on in the kept sandbox, with directories and options as they were" {
    expect 3 hf run x --in T --keep always --verify 'test -e T/done' -- sh -c 'echo begun >>T/a; [ "$HOLDFAST_ATTEMPT" = 2 ] || exit 3; touch T/done'
    untouched
    cd /
    expect 0 hf run x --resume
    says "in $BATS_TEST_TMPDIR/T, keep always"
    cd "$BATS_TEST_TMPDIR"
    [ "$(cat T/a)" = "$(printf 'one\nbegun\nbegun')" ]
    [ -e T/done ]
    # Also in the background.
    expect 3 hf run y --in T -- sh -c 'echo more >>T/a; [ "$HOLDFAST_ATTEMPT" = 2 ] || exit 3'
    expect 0 hf run y --resume --detach
    expect 0 hf wait y
    [ "$(tail -n 2 T/a)" = "$(printf 'more\nmore')" ]
}

@test "run --in: --commit never leaves the changes; the next run does not drop them (HF_E_DIRTY), a commit by hand lands them" {
    expect 0 hf run x --in T --commit never -- sh -c 'echo good >T/a'
    says "kept as plan 'run:x'"
    untouched
    is_field x .outcome succeeded
    expect 1 hf run x --in T -- true
    says "were not committed"
    expect 0 hf plan commit run:x
    [ "$(cat T/a)" = good ]
    expect 0 hf run x --in T -- true
}

@test "run --in: two at once see their own; the second to commit has the conflict list, its work is kept (L11)" {
    spawn "$HOLDFAST" run one --in T -- bash -c 'echo first >T/a; touch up-one; until [ -e go-one ]; do sleep 0.02; done'
    wait_until 10 test -e up-one
    expect 0 hf run two --in T -- sh -c 'grep -q one T/a && echo second >T/a && echo mine >T/m'
    [ "$(cat T/a)" = second ]
    touch go-one
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 1 ]
    [ "$(cat T/a)" = second ]
    is_field one .outcome conflict
    is_field one .state failed
    [ "$(events run_conflict one)" -eq 1 ]
    [ "$(events run_kept one)" -eq 1 ]
    expect 0 hf plan diff run:one
    says "a"
    expect 1 hf run one --in T -- true
    says "were not committed"
    expect 0 hf plan commit run:one --force a
    [ "$(cat T/a)" = first ]
}

@test "run --in: a conflict lists path and kind on stderr and in --json, exit 1" {
    spawn bash -c '"$HOLDFAST" run one --json --in T -- bash -c "echo first >T/a; touch up; until [ -e go ]; do sleep 0.02; done" >out 2>err; echo $? >status'
    wait_until 10 test -e up
    echo user >T/a
    touch go
    wait_until 10 test -s status
    [ "$(cat status)" = 1 ]
    jq -e '.outcome == "conflict" and .exit == 1 and .landed.conflicts == [{"sandbox":"T","path":"a","kind":"changed","by":null}] and .landed.conflicts_total == 1 and .landed.kept' out
    grep -q 'changed .*T: a' err
    [ "$(cat T/a)" = user ]
}

@test "run --in: --retry runs it again in a new sandbox after a conflict, and only then" {
    spawn "$HOLDFAST" run x --in T --retry 2 -- bash -c 'cat T/a >>T/seen; echo mine >T/a; touch up; until [ -e go ]; do sleep 0.02; done'
    wait_until 10 test -e up
    echo other >T/a
    touch go
    wait "$spawned_pid"
    [ "$(cat T/a)" = mine ]
    [ "$(cat T/seen)" = other ]
    [ "$(events session_ended x)" -eq 2 ]
    [ "$(events run_conflict x)" -eq 1 ]
    [ "$(events run_committed x)" -eq 1 ]
    is_field x .attempt 2
    expect 3 hf run y --in T --retry 2 -- bash -c 'echo >>n; exit 3'
    [ "$(wc -l <n)" -eq 1 ]
}

@test "run --in: loops commit each attempt's work" {
    expect 0 hf run x --in T --max-runs 3 -- bash -c 'echo $HOLDFAST_ATTEMPT >>T/n'
    [ "$(paste -sd' ' T/n)" = "1 2 3" ]
    [ "$(events run_committed x)" -eq 3 ]
    expect 0 hf run y --in T --until '[ "$(wc -l <T/n)" -ge 6 ]' --backoff 10ms --every 10ms -- bash -c 'echo more >>T/n; [ $((HOLDFAST_ATTEMPT % 2)) = 0 ]'
    [ "$(wc -l <T/n)" -eq 6 ]
    no_plan
}

@test "run --in: in the background as in the foreground" {
    expect 0 hf run x --in T --detach -- bash -c 'echo bg >T/a'
    expect 0 hf wait x
    [ "$(cat T/a)" = bg ]
    expect 0 hf run y --in T --detach --verify false -- bash -c 'echo bg2 >T/a'
    hf wait y || true
    is_field y .outcome verify-failed
    [ "$(cat T/a)" = bg ]
    expect 0 hf plan diff run:y
}

@test "run --in: daemons that write into the sandbox are ended before the commit; the helper is none of them" {
    expect 0 hf run x --in T --grace 200ms -- bash -c 'trap "" TERM; setsid bash -c "trap \"\" TERM; while :; do date >T/clock; sleep 0.01; done" & disown; sleep 0.1; exit 0'
    says "outlived the command"
    [[ "$(field x .outlived.names)" =~ ^((bash|sleep|date)(\ \([0-9]+\))?(,\ |$))+$ ]]
    cp T/clock before
    sleep 0.3
    cmp T/clock before
    expect 0 hf run y --in T -- bash -c 'mkdir T/d && mv T/d T/e'
    [ -z "$output" ] || says "committed"
    [[ "$output" != *outlived* ]]
    is_field y .outlived null
}

@test "run --in: an agent that deletes everything, closes its sandbox or renames directories is committed as it is" {
    mkdir -p T/deep/er
    touch T/deep/er/f
    expect 0 hf run x --in T -- bash -c 'mv T/deep T/moved'
    [ -e T/moved/er/f ]
    [ ! -e T/deep ]
    # What its owner cannot read is committed by root alone; for others nothing is, and why is said.
    if [ "$(id -u)" = 0 ]; then
        expect 0 hf run x --in T -- bash -c 'mkdir T/shut; touch T/shut/f; chmod 000 T/shut'
        [ "$(stat -c %a T/shut)" = 0 ]
    else
        expect 125 hf run x --in T --keep never -- bash -c 'mkdir T/shut; touch T/shut/f; chmod 000 T/shut'
        says "was not committed: "
        says "Permission denied"
        [ ! -e T/shut ]
        no_plan
    fi
    expect 0 hf run x --in T -- bash -c 'rm -rf T/* T/.[!.]*'
    [ -d T ]
    [ -z "$(ls -A T)" ]
}

@test "run --in: DIR relative, with a symlink, twice, nested, and as the working directory" {
    mkdir -p T/in/ner
    ln -s T L
    expect 0 hf run x --in L --in ./T --in "$PWD/T" -- bash -c 'echo 1 >T/a'
    [ "$(cat T/a)" = 1 ]
    expect 0 hf run x --in T --in T/in -- bash -c 'echo 2 >T/a; echo 2 >T/in/ner/f'
    [ "$(cat T/a T/in/ner/f)" = "$(printf '2\n2')" ]
    cd T/in/ner
    expect 0 hf run x --in . -- bash -c 'echo 3 >f; pwd >g'
    [ "$(cat f g)" = "$(printf '3\n%s' "$PWD")" ]
    expect 0 hf run x --in ../.. -- bash -c 'echo 4 >f'
    [ "$(cat f)" = 4 ]
    cd "$BATS_TEST_TMPDIR"
    expect 0 hf run x --cwd T --in T -- bash -c 'echo 5 >a'
    [ "$(cat T/a)" = 5 ]
}

@test "run --in: what cannot be a target is refused before anything starts, and leaves no session (L12)" {
    expect 3 hf run x --in "$BATS_TEST_TMPDIR" -- touch ran
    says "state directory"
    expect 3 hf run x --in nowhere -- touch ran
    says "No such file"
    expect 3 hf run x --in T/a -- touch ran
    expect 3 hf run x --detach --in "$BATS_TEST_TMPDIR" -- touch ran
    [ ! -e ran ]
    no_plan
    expect 1 hf ps x
}

@test "run --in: usage" {
    expect 2 hf run x --in T --keep sometimes -- true
    expect 2 hf run x --in T --commit later -- true
    expect 2 hf run x --in T --strategy magic -- true
    expect 2 hf run x --in T --leave-running -- true
    expect 2 hf run x --keep never -- true
    expect 2 hf run x --in T --ask -- true </dev/null
    says "terminal"
    expect 2 hf run x --in T --commit ask --detach -- true
    expect 2 hf run "$(printf 'x%.0s' {1..80})" --in T -- true
    expect 2 hf plan new run:mine
    says "belong to sessions"
}

@test "run --in: the plan of a running session is not committed by hand" {
    running x --in T
    expect 1 hf plan commit run:x
    says "runs"
    let_go x
    wait "$spawned_pid"
}

@test "run --in: with copy the command works in the copy, which is said; the rest is the same" {
    expect 0 hf run x --cwd T --in T --strategy copy --verify 'grep -q copied a' -- bash -c 'echo copied >a; pwd >where'
    says "is a copy"
    [ "$(cat T/a)" = copied ]
    [[ "$(cat T/where)" == "$HOLDFAST_DIR"/plans/* ]]
    expect 4 hf run x --cwd T --in T --strategy copy -- bash -c 'echo bad >a; exit 4'
    [ "$(cat T/a)" = copied ]
    expect 4 hf run x --resume
}

@test "run --in: a command that cannot be executed, umask 0777 and a closed stdout" {
    expect 127 hf run x --in T -- /no/such/program
    no_plan
    untouched
    expect 0 bash -c 'umask 0777; exec "$HOLDFAST" run x --in T -- sh -c "umask 022; echo 1 >T/a"'
    [ "$(cat T/a)" = 1 ]
    expect 0 bash -c 'exec "$HOLDFAST" run x --in T -- sh -c "echo 2 >T/a" >&-'
    [ "$(cat T/a)" = 2 ]
}

@test "run --in: gc keeps the work of a failed run, however old; --discard removes it after --age, and prints it" {
    hf -q plan new mine
    hf -q plan add mine s T
    hf -q plan enter mine -- sh -c 'echo mine >T/a'
    expect 3 hf run x --in T -- sh -c 'echo bad >T/a; exit 3'
    expect 0 hf plan gc
    [ "$(hf -q plan list --json | jq -r '[.plans[].name] | join(" ")')" = "mine run:x" ]
    command -v faketime >/dev/null || skip "no faketime: only the first half was tested"
    # Its library must be loaded before the sanitizer's.
    export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
    expect 0 faketime '+20 days' "$HOLDFAST" plan gc --age 0s
    says "run:x                 it holds work that was not committed"
    [ "$(hf -q plan list --json | jq -r '[.plans[].name] | join(" ")')" = "mine run:x" ]
    expect 0 hf plan gc --discard
    [ "$(hf -q plan list --json | jq -r '[.plans[].name] | join(" ")')" = "mine run:x" ]
    expect 0 faketime '+2 days' "$HOLDFAST" plan gc --discard --dry-run
    says "would    run:x                 its uncommitted work is discarded"
    [ "$(hf -q plan list --json | jq -r '[.plans[].name] | join(" ")')" = "mine run:x" ]
    running live --in T
    expect 0 faketime '+2 days' "$HOLDFAST" --json plan gc --discard
    is_json '.removed == 2 and ([.plans[] | select(.removed) | .plan] | sort) == ["mine", "run:x"]'
    [ "$(hf -q plan list --json | jq -r '[.plans[].name] | join(" ")')" = "run:live" ]
    let_go live
    wait "$spawned_pid"
}

@test "run --ask: d shows the diff and asks again; y commits, all else does not, with the status of -E" {
    expect 0 env TERM=dumb python3 "${BATS_TEST_DIRNAME}/../../helper/terminal.py" ask_shows_the_diff --in T --ask -E 42
    [ "$(cat T/a)" = changed ]
}
