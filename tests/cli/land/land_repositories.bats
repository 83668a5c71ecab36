#!/usr/bin/env bats
# Landing on repositories of every kind, and what it costs in gits: each is landed on, or refused with a message that says why.
load ../helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state"
    cd "$BATS_TEST_TMPDIR" || return 1
    land_room
}

# The kernel gives an overlay's work directory no rights at all.
teardown() { chmod -R u+rwX "$BATS_TEST_TMPDIR" || true; }

# gits COMMAND...: how many gits it starts
gits() {
    local real=$BATS_TEST_TMPDIR/bin log=$BATS_TEST_TMPDIR/gits
    mkdir -p "$real"
    printf '#!/bin/sh\necho "$*" >>%q\nexec %q "$@"\n' "$log" "$(command -v git)" >"$real/git"
    chmod +x "$real/git"
    : >"$log"
    PATH="$real:$PATH" "$@" >&2 || return 1
    wc -l <"$log"
}

lands() { hl -q run "$1" --in . -- sh -euc "$2"; }

@test "a landing starts few gits: 14 for work that was left uncommitted, 12 for a commit, 4 for nothing, packed refs or not" {
    [ "$(gits lands left 'echo 1 >new1')" -le 14 ]
    committed=$(git rev-parse HEAD)
    cat >"$BATS_TEST_TMPDIR/commit" <<'AGENT'
echo 2 >new2
/usr/bin/git add -A
exec /usr/bin/git commit -qm two
AGENT
    [ -x /usr/bin/git ] || skip "git is elsewhere"
    [ "$(gits hl -q run commits --in . -- sh -e "$BATS_TEST_TMPDIR/commit")" -le 12 ]
    [ "$(git rev-parse HEAD~1)" = "$committed" ]
    [ "$(gits lands nothing true)" -le 4 ]
    git pack-refs --all
    [ "$(gits lands nothing true)" -le 4 ]
    [ "$(gits lands packed 'echo 3 >new3')" -le 14 ]
    [ "$(cat new1 new2 new3 | tr -d '\n')" = 123 ]
    git diff-index --quiet HEAD # the index knows the times of what landed
    clean
}

@test "what the user has in the way is untouched, also where git would not ask: ignored, deleted, of another type" {
    # An ignored file where a directory is to be.
    echo mine >d.o
    agent one 'rm -f d.o; mkdir d.o; echo x >d.o/x; git add -f d.o/x; git commit -qm d'
    run hl land one
    [ "$status" -eq 1 ]
    [[ $output == *dirty*d.o/x* ]]
    [ "$(cat d.o)" = mine ]
    # A file that the user has deleted and not committed.
    rm a
    agent two 'echo 21 >>a'
    run hl land two
    [ "$status" -eq 1 ]
    [ ! -e a ]
    git checkout -q a
    hl -q land two
    [ "$(tail -n1 a)" = 21 ]
    # Types change.
    agent three 'rm b; mkdir b; echo in >b/in; ln -s b/in l; chmod +x a'
    hl -q land three
    agent four 'rm -r b l; echo file >b; mkdir l; echo in >l/in'
    hl -q land four
    [ "$(cat b l/in | tr -d '\n')" = filein ]
    [ -x a ]
    clean
}

@test "a rebase, bisect, merge or cherry-pick that the agent did not end is refused; one of the user's meanwhile is not the agent's" {
    git branch side
    agent stopped 'echo 1 >n1; git add -A; git commit -qm 1; echo 2 >n2; git add -A; git commit -qm 2; GIT_SEQUENCE_EDITOR="sed -i 1ibreak" git rebase -qi HEAD~1' || true
    run hl land stopped
    [ "$status" -eq 1 ]
    [[ $output == *"begun and not ended"* ]]
    agent bisects 'echo 1 >n1; git add -A; git commit -qm 1; git bisect start -q'
    run hl land bisects
    [ "$status" -eq 1 ]
    [[ $output == *"begun and not ended"* ]]
    # The user merges, and has not ended it, while the agent works and leaves a file.
    git checkout -q side
    echo side >side
    git add side
    git commit -qm side
    git checkout -q main
    echo here >b
    git commit -qam here
    agent works 'echo 3 >n3'
    git merge -q --no-commit --no-ff side >/dev/null
    hl -q land works
    [ "$(git rev-list --count --merges main)" -eq 0 ]
    [ -e n3 ]
    git commit -qm merged
    sound
}
