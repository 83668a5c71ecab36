#!/usr/bin/env bats
# Landing on git: work that cannot land is kept and named, and never thrown away as "nothing".
load ../helper
load ../land_helper

setup() { land_setup; }

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
    kept stash "HEAD has not moved" "a stash of the sandbox"
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

# stuck LOCK NAME: a run with a verifier that a lock of git stops: verified once, told, kept, and landed when the lock is gone
stuck() {
    local lock=$1 name=stuck-$2
    : >"../verified"
    : >"$lock"
    expect 125 hl run "$name" --in . --verify 'echo v >>../verified' -- sh -c "echo x >$name"
    says "$lock"
    says "remove it if no git is running"
    says "Unable to create"
    # The branch has not moved, so the verification in the agent's sandbox counts.
    [ "$(wc -l <../verified)" -eq 1 ]
    [ ! -e "$name" ]
    [ -e "$lock" ]
    state_is "$name" queued
    hl land list | grep -q "remove it if no git is running"
    rm "$lock"
    expect 0 hl land "$name"
    [ "$(cat "$name")" = x ]
    clean
}

@test "L14: a lock that a killed git left is named after some seconds, and nothing is verified again for it; without it the work lands" {
    stuck "$PWD/.git/packed-refs.lock" packed
    stuck "$PWD/.git/refs/heads/main.lock" branch
    agent by-hand 'echo 1 >c'
    : >.git/packed-refs.lock
    expect 1 hl land by-hand
    says "packed-refs.lock: timed out, still held: remove it if no git is running, then 'holdfast land by-hand' continues"
    rm .git/packed-refs.lock
    expect 0 hl land by-hand
}

@test "a lock that another git gives back in time is waited for" {
    agent waits 'echo 1 >c'
    mkdir ../bin
    # The second git that moves refs finds the lock; it is given back while that waits.
    cat >../bin/git <<E
#!/bin/sh
case "\$*" in
*update-ref*)
    [ -e "$BATS_TEST_TMPDIR/held" ] || { : >"$BATS_TEST_TMPDIR/held"; : >"$PWD/.git/packed-refs.lock"; }
    [ "\$(wc -l <"$BATS_TEST_TMPDIR/moves")" -lt 2 ] || rm -f "$PWD/.git/packed-refs.lock"
    echo >>"$BATS_TEST_TMPDIR/moves" ;;
esac
exec $(command -v git) "\$@"
E
    chmod +x ../bin/git
    : >../moves
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" expect 0 hl land waits
    [ "$(wc -l <../moves)" -eq 3 ]
    [ "$(cat c)" = 1 ]
    clean
}

@test "L14: a git that has moved the branch and cannot say so: the ref decides, and the work tree follows" {
    agent mute 'echo 1 >c'
    mkdir ../bin
    cat >../bin/git <<E
#!/bin/sh
case "\$*" in
*update-ref*--stdin*)
    rm -f "$BATS_TEST_TMPDIR/answers"
    mkfifo "$BATS_TEST_TMPDIR/answers"
    exec 4<&0
    $(command -v git) "\$@" <&4 >"$BATS_TEST_TMPDIR/answers" &
    while read -r line && [ "\$line" != "commit: ok" ]; do echo "\$line"; done <"$BATS_TEST_TMPDIR/answers" ;;
*) exec $(command -v git) "\$@" ;;
esac
E
    chmod +x ../bin/git
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" expect 0 hl land mute
    [ "$(cat c)" = 1 ]
    [ "$(git show main:c)" = 1 ]
    clean
}

@test "L10: killed between work tree and branch, and a lock of git stops the recovery: the work tree goes back, and lands later" {
    agent killed 'echo 1 >c'
    mkdir ../bin
    # Between the answer to "prepare" and "commit" the work tree has been changed.
    cat >../bin/git <<E
#!/bin/sh
case "\$*" in
*update-ref*--stdin*)
    while read -r line; do
        case "\$line" in
        delete*) moves=1 ;;
        commit) [ -z "\$moves" ] || { kill -KILL "\$PPID"; exit; } ;;
        esac
        echo "\$line"
    done | $(command -v git) "\$@" ;;
*) exec $(command -v git) "\$@" ;;
esac
E
    chmod +x ../bin/git
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" expect 137 hl land killed
    [ "$(cat c)" = 1 ]
    run ! git cat-file -e main:c
    wait_until 20 without_locks
    : >.git/packed-refs.lock
    expect 1 hl land killed
    says "packed-refs.lock: timed out, still held: remove it if no git is running"
    [ ! -e c ]
    [ -z "$(git status --porcelain)" ]
    state_is killed queued
    rm .git/packed-refs.lock
    expect 0 hl land killed
    [ "$(cat c)" = 1 ]
    clean
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
