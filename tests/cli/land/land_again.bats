#!/usr/bin/env bats
# Landing a kept plan again, landing on another branch, changes that the branch has already, and user settings that must not change the landed bytes.
load ../helper
load ../land_helper

setup() { land_setup; }

# waiting_run NAME OPTIONS... -- SCRIPT: a run whose command ends once "go" is there; returns when the script is done
waiting_run() {
    local script=${*: -1}
    export DESK="$BATS_TEST_TMPDIR"
    rm -f "$DESK/up" "$DESK/go"
    # shellcheck disable=SC2016
    spawn timeout 100 "$HOLDFAST" --json run "$1" --in . "${@:2:$#-2}" sh -c "$script"'
        : >"$DESK/up"; until [ -e "$DESK/go" ]; do sleep 0.02; done' >"$DESK/out" 2>"$DESK/said"
    wait_until 30 test -e "$DESK/up"
}

has_plan() { hl --json plan list | jq -e --arg name "$1" 'any(.plans[]; .name == $name)' >/dev/null; }

@test "a kept plan lands again, with its later work only" {
    agent one 'echo one >one; git add one; git commit -qm one'
    expect 0 hl land one --keep-plan
    expect 0 hl land one
    says "nothing to land"
    echo other >other
    git add other
    git commit -qm other
    hl -q plan enter one -- sh -c 'echo two >two'
    expect 0 hl land one --message two
    [ "$(git log --format=%s | paste -sd' ')" = "two other one first" ]
    [ "$(git show --format= --name-only HEAD)" = two ]
    has_plan one
    clean
}

@test "a kept plan lands again after a rebase of its commits" {
    agent one 'echo one >one; git add one; git commit -qm one'
    git commit -q --allow-empty -m between
    expect 0 hl land one --keep-plan
    says rebased
    # A report is about one landing.
    expect 0 hl land one
    says "nothing to land"
    [[ $output != *rebased* ]]
    hl -q plan enter one -- sh -c 'echo more >>one; git commit -qam two'
    expect 0 hl land one --verify 'grep -q more one'
    [ "$(git log --format=%s | paste -sd' ')" = "two one between first" ]
    clean
}

@test "--keep always keeps the sandbox of a landed run without the files of its verifier, and it lands again" {
    expect 0 hl run one --in . --land main --keep always --verify 'echo v >trace; test -e one' -- sh -c 'echo one >one'
    says "plan 'run:one'"
    has_plan run:one
    hl -q plan enter run:one -- sh -c 'test ! -e trace; echo two >two'
    expect 0 hl land one
    [ "$(cat two)" = two ]
    [ ! -e trace ]
    [ "$(git log --format=%s | wc -l)" -eq 3 ]
    has_plan run:one
    clean
    # Without the option the sandbox goes.
    expect 0 hl run two --in . --land main -- sh -c 'echo three >three'
    ! has_plan run:two
}

@test "the next run of a name does not discard later work in its kept sandbox" {
    expect 0 hl run one --in . --land main --keep always -- sh -c 'echo one >one'
    hl -q plan enter run:one -- sh -c 'echo two >two'
    expect 1 hl run one --in . --land main -- true
    expect 0 hl land one
    [ "$(cat two)" = two ]
    # Now all of it has landed.
    expect 0 hl run one --in . --land main -- sh -c 'echo three >three'
    [ "$(cat three)" = three ]
}

@test "a renamed branch is a conflict that keeps the work, and --branch lands it" {
    agent one 'echo one >one; git add one; git commit -qm one'
    git branch -m main trunk
    expect 1 hl land one
    says "the branch 'main' no longer exists"
    says "--branch"
    [ "$(git log -1 --format=%s refs/holdfast/one)" = one ]
    expect 3 hl land one --branch nowhere
    says "no branch 'nowhere'"
    expect 0 hl land one --branch trunk
    [ "$(git log -1 --format=%s trunk)" = one ]
    clean
    hl --json land show one | jq -e '.branch == "trunk"'
}

@test "a run whose branch is deleted ends with 1, and its work lands on another branch" {
    git branch side
    waiting_run one --land side -- 'echo one >one'
    git branch -q -D side
    touch "$BATS_TEST_TMPDIR/go"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 1 ]
    hl --json ps -a one | jq -e '.sessions[0].cause | test("the branch .side. no longer exists")'
    expect 0 hl land one --branch main
    [ "$(cat one)" = one ]
    clean
}

@test "a glob of --also without a match is reported" {
    printf 'dist/\n' >>.gitignore
    git commit -qam ignore
    agent one 'mkdir dist; echo 1 >dist/a; echo 2 >b'
    expect 0 hl land one --also 'a' --also dist
    says "--also a"
    says "matched no file"
    [[ "$output" != *"--also dist"* ]]
    [ "$(git ls-files dist)" = dist/a ]
    expect 0 hl run two --in . --also 'none*' -- sh -c 'echo 3 >b'
    says "--also none*"
    expect 0 hl run three --in . --also 'none*' -- sh -c 'mkdir -p dist; echo 3 >dist/x'
    says "--also none*"
    says "nothing to land"
    expect 0 hl run nothing --in . --also 'none*' -- true
    says "--also none*"
    # A file that lands anyway is a match, too.
    expect 0 hl run four --in . --also b -- sh -c 'echo 4 >b'
    [[ "$output" != *"--also"* ]]
    agent five 'echo 5 >b'
    expect 0 hl -q --json land five --also none
    is_json '.also_unmatched == ["none"]'
}

@test "rebase.backend and apply.whitespace do not change the landed bytes" {
    git config rebase.backend apply
    git config apply.whitespace fix
    agent one 'printf "trailing   \n" >one; git add one; git commit -qm one'
    git commit -q --allow-empty -m between
    expect 0 hl land one
    [ "$(cat one)" = "trailing   " ]
    git config apply.whitespace error
    agent two 'printf "trailing   \n" >two; git add two; git commit -qm two'
    git commit -q --allow-empty -m again
    expect 0 hl land two
    [ "$(cat two)" = "trailing   " ]
    clean
}

@test "a change that the branch has already is reported as such" {
    agent one 'echo same >b; git commit -qam mine'
    echo same >b
    git commit -qam theirs
    expect 0 hl land one
    says "its change is on the branch already"
    [ "$(git log -1 --format=%s)" = theirs ]
    hl --json land show one | jq -e '.commits == 0 and .files == 0'
    expect 0 hl run two --in . --land main -- sh -c 'echo again >b'
    git commit -q --allow-empty -m between
    agent three 'echo again >c; git add c; git commit -qm mine'
    echo again >c
    git add c
    git commit -qm theirs
    expect 0 hl -q --json land three
    is_json '.already == true and .commits == 0'
    waiting_run four --land main -- 'echo four >b; git commit -qam four'
    echo four >b
    git commit -qam theirs
    touch "$BATS_TEST_TMPDIR/go"
    wait "$spawned_pid"
    grep -q "its change is on main already" "$BATS_TEST_TMPDIR/said"
    jq -e '.landed.already' "$BATS_TEST_TMPDIR/out"
}

@test "a file under skip-worktree or assume-unchanged that the user edited and the agent changed is a conflict 'dirty'" {
    for mark in skip-worktree assume-unchanged; do
        agent "$mark" "git update-index --no-$mark b; echo agent-$mark >b; git commit -qam agent"
        git update-index "--$mark" b
        echo "user $mark" >b
        expect 1 hl land "$mark"
        says "dirty  b"
        [ "$(cat b)" = "user $mark" ]
        git cat-file -e "refs/holdfast/$mark"
        expect 1 hl run "run-$mark" --in . -- sh -c "git update-index --no-$mark b; echo run >b; git commit -qam run"
        says dirty
        git update-index "--no-$mark" b
        git checkout -q b
        expect 0 hl land "$mark"
        [ "$(cat b)" = "agent-$mark" ]
    done
}
