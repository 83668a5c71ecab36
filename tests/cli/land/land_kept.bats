#!/usr/bin/env bats
# Landing on git: work that cannot land is kept and named, and never thrown away as "nothing".
load ../helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    land_room
}

# kept NAME WORDS...: rejected by land, its sandbox still there, the words said
kept() {
    local name=$1 word
    shift
    expect 1 hl land "$name"
    for word in "$@"; do
        says "$word"
    done
    state_is "$name" rejected
    hl plan show "$name" >/dev/null
}

@test "L14: commits on another branch, a tag, a stash or a HEAD that was detached are not 'nothing': rejected, kept, told where" {
    head=$(git rev-parse main)
    agent stash 'echo g >g; git add g; git stash -q'
    kept stash "HEAD is where it began" "a stash of the sandbox"
    agent detached 'git checkout -q --detach; echo s >s; git add s; git commit -qm s; git checkout -q main'
    kept detached "on no branch" "HEAD was detached"
    agent tagged 'git checkout -q --detach; echo s >s; git add s; git commit -qm s; git tag keep; git checkout -q main'
    kept tagged "tag keep of the sandbox"
    agent branch 'git checkout -q -b side; echo s >s; git add s; git commit -qm s; git checkout -q main'
    kept branch "branch side of the sandbox"
    agent reset 'echo s >s; git add s; git commit -qm s; git reset -q --hard HEAD^'
    kept reset "on no branch" "or reset"
    # The work is where it was said to be, and can be brought onto HEAD.
    hl -q plan enter stash -- git stash pop -q
    expect 0 hl land stash
    [ "$(cat g)" = g ]
    [ "$(git rev-parse main^)" = "$head" ]
    clean
}

@test "L14: a run whose work is in a stash fails, with or without a verifier, and keeps its sandbox" {
    for verify in "" "--verify=true"; do
        name=s${verify:+v}
        expect 1 hl run "$name" --in . ${verify:+"$verify"} -- sh -c 'echo g >g; git add g; git stash -q'
        says "a stash of the sandbox"
        state_is "$name" rejected
        hl plan enter "$(hl --json land show "$name" | jq -r .plan)" -- git stash show -p | grep -q '^+g$'
    done
}

@test "nothing to land: an agent that changed nothing, or whose commits the repository has, its reflogs counted" {
    # What its user committed and took back is in the reflog, which is seen through the sandbox.
    git commit -q --allow-empty -m 'taken back'
    git reset -q --hard HEAD^
    git checkout -q -b other
    git commit -q --allow-empty -m other
    git tag there
    git checkout -q main
    git clone -q . ../remote
    git -C ../remote commit -q --allow-empty -m 'of another'
    git remote add origin ../remote
    agent looked 'git status; git log --all; git fsck; touch x.o'
    agent moved 'git checkout -q other; git tag mine; git checkout -q main; git branch mine; git stash list'
    agent fetched 'git fetch -q origin'
    agent stashed 'echo 1 >>a; git stash -q; git stash drop -q'
    for name in looked moved fetched stashed; do
        expect 0 hl land "$name"
        says "there was nothing to land"
    done
    clean
}
