#!/usr/bin/env bats
# Landing on git: the work of a sandbox becomes the branch, or is kept.
load ../helper
load ../land_helper

setup() { land_setup; }

@test "commits and what was left uncommitted land as a fast-forward; work tree and index follow (L14)" {
    agent one 'sed -i s/^2$/two/ a; git commit -qam second; echo new >c; rm b; mkdir d; echo deep >d/e'
    [ ! -e c ]
    expect 0 hl -q --json land one --verify 'test -f c && test ! -e b && grep -q two a && test -f x.o' --message 'The rest'
    is_json '.result == "landed" and .commits == 2 and .files == 4 and .branch == "main" and .rebased == false and .verify_ms >= 0'
    [ "$(jq -r .commit <<<"$output")" = "$(git rev-parse main)" ]
    [ "$(cat c d/e)" = $'new\ndeep' ]
    [ ! -e b ]
    [ "$(git log --format=%s)" = $'The rest\nsecond\nfirst' ]
    clean
    run git for-each-ref refs/holdfast
    [ -z "$output" ]
    run hl plan list --json
    is_json '.plans == []'
    run hl journal query --event land_landed --json
    says '"name":"one"'
    [[ "$(git reflog main)" == *"holdfast: land one"* ]]
}

@test "a target that cannot have a sandbox is refused, and the plan that was begun is not left behind" {
    # The repository can be a target; the linked worktree, which holds the state directory, cannot.
    git worktree add -q "$BATS_TEST_TMPDIR/linked" -b side
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/linked/state"
    expect 3 hl land begin one "$BATS_TEST_TMPDIR/linked"
    says "$BATS_TEST_TMPDIR/linked"
    expect 0 hl plan list --json
    is_json '.plans == []'
    expect 1 hl land show one
}

@test "without an identity of its user the commit is still made" {
    rm "$HOME/.gitconfig"
    agent one 'echo 1 >>b'
    expect 0 env -u EMAIL "$HOLDFAST" land one
    clean
}

@test "two candidates: the second is rebased onto the first, and verified in that form" {
    agent one 'sed -i s/^2$/two/ a'
    agent two 'sed -i s/^19$/nineteen/ a; git commit -qam nineteen'
    expect 0 hl land one
    expect 0 hl -q --json land two --verify 'grep -q two a && grep -q nineteen a'
    is_json '.rebased == true'
    [ "$(git log --format=%s)" = $'nineteen\nWork of one\nfirst' ]
    clean
}

@test "--merge merge makes a merge commit, --merge ff-only is a conflict when the branch moved" {
    agent one 'echo 1 >>b'
    agent two 'echo 2 >c'
    agent three 'echo 3 >d'
    expect 0 hl land one --merge ff-only
    expect 0 hl land two --merge merge
    [ "$(git rev-list --merges --count main)" = 1 ]
    expect 1 hl land three --merge ff-only
    state_is three conflict
    clean
}

@test "--merge and --land-merge rebase replace an ff-only of before; without them it counts on" {
    agent one 'echo 1 >c'
    git commit -q --allow-empty -m user
    expect 1 hl land one --merge ff-only
    expect 1 hl land one
    says 'only a fast-forward is allowed'
    expect 0 hl land one --merge rebase
    says 'rebased onto the new state of the branch'
    [[ $output != *signed* ]]
    expect 1 hl run two --in . --land-merge ff-only -- sh -c "[ -e d ] || echo 1 >d; touch ../in; until [ -e ../go ]; do sleep 0.02; done" 3>&- &
    wait_until 20 test -e ../in
    git commit -q --allow-empty -m again
    touch ../go
    wait $!
    state_is two conflict
    expect 1 hl run two --resume
    says 'only a fast-forward is allowed'
    expect 0 hl run two --resume --land-merge rebase
    says 'rebased onto the new state of the branch'
    clean
}

@test "a merge is not called a rebase, and no signatures are missed that were not there" {
    agent one 'echo 1 >c'
    git commit -q --allow-empty -m user
    expect 0 hl land one --merge merge
    [[ $output != *rebased* && $output != *sign* ]]
    hl run two --in . --land-merge merge -- sh -c 'echo 1 >d; touch ../in; until [ -e ../go ]; do sleep 0.02; done' >../said 2>&1 3>&- &
    wait_until 20 test -e ../in
    git commit -q --allow-empty -m again
    touch ../go
    wait $!
    grep "landed on main" ../said
    run ! grep rebased ../said
    [[ $(hl --json ps two | jq -r .cause) != *rebased* ]]
    [ "$(git rev-list --merges --count main)" = 2 ]
    clean
}

@test "land list: no line is wider than the screen, and none is cut for a pipe or with --no-trunc" {
    hl run left --in . -- sh -c 'echo 1 >c; exit 3' || true
    hl land list | grep -q "'holdfast land drop [^ ]*' drops it$"
    for option in "" " --no-trunc"; do
        COLUMNS=80 script -qec "'$HOLDFAST' land list$option" /dev/null </dev/null | tr -d '\r' >../shown
        grep '^kept       left  main  its run ended' ../shown
        if [ -n "$option" ]; then [ "$(wc -L <../shown)" -gt 80 ]; else [ "$(wc -L <../shown)" -le 80 ]; fi
    done
}

@test "a wait for a branch that runs out tells the branch, one for a candidate the candidate" {
    agent one 'echo 1 >c'
    agent two 'echo 2 >d'
    hl -q land one --verify 'touch ../in; until [ -e ../go ]; do sleep 0.02; done' 3>&- &
    wait_until 20 test -e ../in
    expect 1 hl land two -w 100ms
    says "candidate 'two': branch 'main': timed out, still held"
    expect 1 hl land one -w 100ms
    says "candidate 'one': already held"
    touch ../go
    wait $!
    expect 0 hl land two
}

@test "a verifier that says no: nothing lands, the work is kept, and lands when it says yes (L14)" {
    agent one 'echo bad >>b'
    head=$(git rev-parse main)
    expect 1 hl -q --json land one --verify 'echo written >b; echo more >new; exit 3'
    is_json '.result == "rejected" and (.text | contains("exit 3"))'
    [ "$(git rev-parse main)" = "$head" ]
    clean
    git cat-file -e refs/holdfast/one
    state_is one rejected
    run hl journal query --event land_rejected --json
    says '"name":"one"'
    expect 0 hl land retry one --verify 'grep -q bad b'
    clean
}

@test "a verifier that hangs is ended with all it started; what it writes never lands" {
    agent one 'echo 1 >>b'
    expect 1 hl -q --json land one --verify "setsid sleep 300 & echo evil >>b; sleep 300" --verify-timeout 500ms
    is_json '.text | contains("did not end in time")'
    expect 0 hl land one --verify 'echo evil >>b; git commit -qam evil; rm -rf .git; true'
    [ "$(cat b)" = $'x\n1' ]
    clean
}

@test "a textual conflict: its paths, the work in refs/holdfast, exit 1; it lands after the branch was mended" {
    agent one 'sed -i s/^2$/two/ a'
    agent two 'sed -i s/^2$/zwei/ a'
    expect 0 hl land one
    expect 1 hl -q --json land two
    is_json '.result == "conflict" and .paths == [{"path":"a","kind":"content"}]'
    expect 1 hl land two
    says "its work is kept: refs/holdfast/two, commit"
    [ "$(git show refs/holdfast/two:a | sed -n 2p)" = zwei ]
    git revert --no-edit HEAD >/dev/null
    expect 0 hl land two
    [ "$(sed -n 2p a)" = zwei ]
    clean
}

@test "uncommitted edits of the user: untouched, and a conflict 'dirty' where the candidate changes the same file" {
    agent one 'echo 1 >>b; echo 2 >c'
    agent two 'sed -i s/^2$/two/ a'
    echo mine >>b
    echo staged >s
    git add s
    expect 1 hl -q --json land one
    is_json '.result == "conflict" and .paths == [{"path":"b","kind":"dirty"}]'
    expect 0 hl land two
    [ "$(git status --porcelain)" = $' M b\nA  s' ]
    [ "$(tail -n 1 b)" = mine ]
    git checkout -q b
    echo untracked >c
    expect 1 hl -q --json land one
    is_json '.paths == [{"path":"c","kind":"dirty"}]'
    rm c
    expect 0 hl land one
    [ "$(git status --porcelain)" = 'A  s' ]
    sound
}

@test "a work tree that is dirty at the start: --base head begins without the edits, --base worktree with them" {
    echo mine >>b
    echo notes >notes
    agent one 'test ! -e notes; grep -qx x b; test -f x.o; echo 1 >c'
    expect 0 hl land one
    [ "$(git status --porcelain)" = $' M b\n?? notes' ]
    [ "$(git show main:c)" = 1 ]
    agent two 'test -f notes; grep -q mine b; echo 2 >c' --base worktree
    expect 0 hl land two
    [ "$(cat c)" = 2 ]
    sound
}

@test "--base head: edits alone, new files alone, staged ones, in a directory of their own; ignored files stay" {
    echo edit >>a
    agent one 'git status --porcelain >../one; ls x.o'
    git checkout -q a
    mkdir d
    echo new >d/n
    echo object >d/o.o
    agent two 'git status --porcelain >../two; ls d >../two.d'
    git add d/n
    git rm -q --cached b
    agent three 'git status --porcelain >../three; cat b >../three.b'
    [ -z "$(cat ../one ../two ../three)" ]
    [ "$(cat ../two.d)" = o.o ]
    [ "$(cat ../three.b)" = x ]
    [ "$(git status --porcelain | paste -sd,)" = "D  b,A  d/n,?? b" ]
    # A git of the user's has the index at that moment.
    touch .git/index.lock
    agent four 'git status --porcelain >../four; git rm -q --cached b'
    rm .git/index.lock
    [ ! -s ../four ]
}

@test "an edit that the user saves while the agent works is seen in the sandbox, and does not land with its work" {
    hl -q land begin one .
    hl -q land begin two .
    echo wip >>b
    hl -q plan enter one -- sh -c 'echo 1 >c'
    hl -q plan enter two -- sh -c 'echo 2 >d; git add -A; git commit -qm all'
    expect 0 hl land one
    [ "$(git show --format= --name-only main)" = c ]
    expect 0 hl -q --json land two
    is_json '.left_out == 1'
    [ "$(git show --format= --name-only main)" = d ]
    [ "$(git status --porcelain)" = ' M b' ]
    sound
}

@test "L14: edits of a user in the commits of an agent are left out: changed, new, deleted, staged, in each of them; the rest lands as it was committed" {
    seq 100 130 >gone
    git add gone
    git commit -qm gone
    for name in one two three four; do hl -q land begin "$name" .; done
    echo wip >>b
    rm gone
    echo mine >'new file'
    echo staged >staged
    git add staged
    edited=$(git status --porcelain)
    GIT_AUTHOR_NAME='An Agent' GIT_AUTHOR_EMAIL=agent@example.org GIT_AUTHOR_DATE='2026-01-02T03:04:05 +0100' hl -q plan enter one -- sh -ec '
        echo 1 >c; git add -A; git commit -qm "first
with a second line"; git commit -q --allow-empty -m empty; echo 2 >>c; git commit -qam second'
    expect 0 hl land one
    says "left out"
    [ "$(git log --reverse --format=%s -3 main | paste -sd,)" = 'first with a second line,empty,second' ] || { git log --format=%s; return 1; }
    [ "$(git log -1 --format='%an %ae %ad' main~2)" = 'An Agent agent@example.org Fri Jan 2 03:04:05 2026 +0100' ]
    [ "$(git diff --name-only main~3 main)" = c ]
    [ "$(git status --porcelain)" = "$edited" ]
    # A commit that has nothing else, beside one that has.
    hl -q plan enter two -- sh -ec 'git commit -qam "the edit of another"; echo 2 >d; git add d; git commit -qm mine'
    expect 0 hl land two
    [ "$(git log -1 --format=%s main)" = mine ]
    [ "$(git diff --name-only main~ main)" = d ]
    # A merge among them cannot be made anew; nor is there anything left without the edit.
    hl -q plan enter three -- sh -ec 'git checkout -qb side; echo 1 >s; git add -A; git commit -qm s; git checkout -q main; echo 1 >m; git add m; git commit -qm m; git merge -q --no-edit side'
    expect 1 hl -q --json land three --merge merge
    is_json '[.paths[].kind] | unique == ["outside"]'
    hl -q plan enter four -- sh -ec 'git commit -qam "only the edit of another"'
    expect 1 hl -q --json land four
    is_json '[.paths[].kind] | unique == ["outside"]'
    [ "$(git status --porcelain)" = "$edited" ]
    # What the user has committed meanwhile is no edit any more.
    git add -A
    git commit -qm "by the user"
    expect 0 hl land four
    clean
}

@test "a path that only the index of an agent leaves out is its own change, and nobody's edit: a conflict, and nothing lands" {
    agent one 'git rm -q --cached b; git commit -qm untracked'
    expect 1 hl -q --json land one
    is_json '.paths == [{"path":"b","kind":"outside"}]'
    clean
}

@test "an agent that commits after another landed does not undo that landing" {
    hl -q land begin one .
    hl -q plan enter one -- sh -c 'sed -i s/^2$/two/ a'
    agent two 'sed -i s/^19$/nineteen/ a'
    expect 0 hl land two
    hl -q plan enter one -- sh -c 'git commit -qam later'
    expect 0 hl land one
    [ "$(sed -n '2p;19p' a)" = $'two\nnineteen' ]
    clean
}

# working NAME SCRIPT: an agent that does SCRIPT when ../go-NAME is there
working() {
    hl -q land begin "$1" .
    hl -q plan enter "$1" -- bash -euc "touch ../up-$1; until [ -e ../go-$1 ]; do sleep 0.02; done; $2" 3>&- &
    pid=$!
    wait_until 20 test -e "../up-$1"
}

@test "HEAD, its branch and the index stay as they were in the sandbox, cost no copy, and no write inside reaches the real ones" {
    index=$(stat -c %i .git/index)
    working one 'git status --porcelain >../status; git log --format=%s >../log; git symbolic-ref HEAD >../head
        for f in HEAD index refs/heads/main; do echo damaged >.git/$f; done'
    # The same file: nothing was copied. The state directory is on the same file system here.
    [ "$(find "$HOLDFAST_DIR"/plans/one/s -name index -inum "$index" | wc -l)" -eq 1 ]
    [ -z "$(find "$HOLDFAST_DIR"/plans/one/s/*/u -type f)" ]
    git checkout -q -b other
    echo user >b
    git commit -qam user
    cp .git/index ../index
    touch ../go-one
    wait "$pid"
    [ "$(cat ../status)" = " M b" ] # seen through the sandbox, and not in its index
    [ "$(cat ../log)" = first ]
    [ "$(cat ../head)" = refs/heads/main ]
    cmp .git/index ../index
    [ "$(git symbolic-ref HEAD)" = refs/heads/other ]
    clean
    hl -q land drop one
    # A state directory elsewhere: the index is a copy.
    [ -d /dev/shm ] && [ "$(stat -c %d /dev/shm)" != "$(stat -c %d .)" ] || skip "one file system"
    HOLDFAST_DIR=$(mktemp -d /dev/shm/holdfast.XXXXXX)
    export HOLDFAST_DIR
    agent two 'echo two >two; git add two'
    echo 2 >>b
    git commit -qam again
    hl -q land two
    [ "$(git log --format=%s | paste -sd ' ')" = "Work of two again user first" ]
    clean
    rm -rf "$HOLDFAST_DIR"
}

@test "looking at a candidate takes no lock, so that it is never in the way of its landing" {
    agent one 'echo 21 >>a'
    run hl land one --verify false
    [ "$status" -eq 1 ]
    cp -r "$HOLDFAST_DIR/locks/land" ../locks
    hl land show one
    hl land list
    diff -r "$HOLDFAST_DIR/locks/land" ../locks
    hl -q land one --verify true
    clean
}

@test "a user's commits meanwhile are kept; the candidate comes on top" {
    agent one 'echo 1 >c'
    echo 2 >d
    git add d
    git commit -qm user
    git pack-refs --all
    expect 0 hl land one --verify 'test -f d && test -f c'
    [ "$(git log --format=%s)" = $'Work of one\nuser\nfirst' ]
    clean
}

@test "commits that the user took back meanwhile do not come back with the candidate's work" {
    echo secret >secret
    git add secret
    git commit -qm secret
    agent one 'echo 1 >one'
    agent two 'echo 2 >two'
    agent three 'echo 3 >three'
    git reset -q --hard HEAD~1
    hl -q land one
    [ -e one ]
    [ ! -e secret ]
    git commit -q --allow-empty -m user
    hl -q land two --verify '[ ! -e secret ]'
    [ "$(git log --format=%s | tr '\n' ' ')" = "Work of two user Work of one first " ]
    # A merge would bring it back.
    run hl land three --merge merge
    [ "$status" -eq 1 ]
    [[ $output == *"no longer has"* ]]
    [ ! -e secret ]
    clean
}

@test "nothing to land is said, proven and journalled, and is no failure; it is one when its base left the branch (L14)" {
    agent one 'true'
    expect 0 hl -q --json land one --verify false
    is_json '.result == "landed" and .commits == 0 and .files == 0 and (.text | contains("nothing to land"))'
    [ "$(jq -r .commit <<<"$output")" = "$(git rev-parse main)" ]
    run hl journal query --event land_landed --json
    says '"commits":0'
    git commit -q --allow-empty -m second
    agent rewritten 'true'
    git reset -q --hard HEAD^
    expect 1 hl land rewritten
    says 'not part of the branch'
    state_is rewritten rejected
    agent two 'git checkout -q -b side; echo 1 >c; git add c; git commit -qm side; git checkout -q main'
    expect 1 hl land two
    says 'branch side of the sandbox'
    clean
}

@test "--also: ignored files that the agent made and a glob matches land, no others; one that the user has otherwise is a conflict" {
    printf '*.o\nout/\n' >.gitignore
    git commit -qam ignore
    mkdir out
    echo warm >out/seen
    make='echo 1 >y.o; echo new >x.o; mkdir -p out/deep; echo 2 >out/deep/f; echo 3 >out/g; echo 4 >z.o; echo 5 >c'
    agent none "$make"
    expect 0 hl land none
    [ "$(git show --format= --name-only main)" = c ]
    agent some "$make; echo 6 >c"
    expect 0 hl land some --also out --also '/y*' --also 'no/such/**' --verify 'test -f out/g && git ls-files --error-unmatch y.o'
    [ "$(git show --format= --name-only main | sort | tr '\n' ' ')" = 'c out/deep/f out/g y.o ' ]
    [ "$(cat out/deep/f out/seen x.o)" = $'2\nwarm\nobject' ]
    clean
    agent mine 'echo theirs >x.o; echo 7 >c'
    expect 1 hl -q --json land mine --also '*.o'
    is_json '.paths == [{"path":"x.o","kind":"dirty"}]'
    [ "$(cat x.o)" = object ]
    rm x.o
    expect 0 hl land mine
    [ "$(cat x.o)" = theirs ]
    agent bad 'echo 8 >c'
    expect 2 hl land bad --also ''
    expect 0 hl land bad --also '../x' --also ':(exclude)c'
    [ "$(git show --format= --name-only main)" = c ]
    clean
}

@test "hooks run in the sandbox only; one that refuses the commit is said and the work kept" {
    printf '#!/bin/sh\necho ran >>hooked\n' >.git/hooks/pre-commit
    printf '#!/bin/sh\ntouch "%s"\n' "$BATS_TEST_TMPDIR/ran" >.git/hooks/reference-transaction
    cp .git/hooks/reference-transaction .git/hooks/post-checkout
    chmod +x .git/hooks/*
    agent one 'echo 1 >c'
    expect 0 hl land one
    [ ! -e hooked ]
    rm -f "$BATS_TEST_TMPDIR/ran"
    printf '#!/bin/sh\nexit 1\n' >.git/hooks/pre-commit
    agent two 'echo 1 >d'
    rm -f "$BATS_TEST_TMPDIR/ran"
    expect 1 hl land two
    says 'hook'
    run hl plan diff two --name-only
    says d
}

@test "drop gives a candidate up: ref and plan go, the branch stays; a name can be used again after it" {
    agent one 'echo 1 >c'
    expect 1 hl land one --verify false
    run hl land begin one .
    [ "$status" -eq 1 ]
    expect 0 hl land drop one
    state_is one dropped
    [ -z "$(git for-each-ref refs/holdfast)" ]
    expect 1 hl land one
    expect 1 hl land drop one
    expect 1 hl land show nobody
    agent one 'echo 2 >c'
    expect 0 hl land one
    clean
}

@test "list: the queue of each branch, with candidates and what became of the others" {
    agent one 'echo 1 >c'
    agent two 'echo 2 >c'
    hl -q land begin three .
    expect 0 hl land one --verify true
    expect 1 hl land two
    run hl -q --json land list
    is_json '.queues | length == 1'
    is_json '.queues[0].candidates[0] | .key == "three" and .place == null and .ahead == []'
    is_json '.queues[0] | .branch == "main" and .green == true and .candidates[0].step == "working" and ([.recent[].result] == ["landed", "conflict"])'
    run hl land list
    says 'conflict   two'
}

@test "why says what became of a candidate, and asks the repository whether the branch still has it (L14)" {
    agent one 'echo 1 >c'
    expect 0 hl land one
    expect 0 hl why one
    says 'candidate for main: landed'
    says 'is part of the branch'
    says 'land_landed'
    git commit -q --allow-empty -m later
    expect 0 hl --json why one
    is_json '.land.state == "landed" and .land.proven == true and .land.key == "one" and ([.events[].event] | index("land_landed")) != null'
    git reset -q --hard HEAD~2
    expect 0 hl why one
    says 'is no longer part of the branch'
    expect 0 hl --json why one
    is_json '.land.proven == false'
    agent two 'echo 2 >>b'
    echo mine >>b
    expect 1 hl land two
    expect 0 hl why two
    says 'candidate for main: conflict'
    says 'dirty  b'
    says 'land_conflict'
    expect 0 hl --json why nobody
    is_json '.land == null'
}

@test "a name with odd bytes, a path with newline and quotes" {
    name=$'o dd/na"me\n%'
    agent "$name" 'printf x >"q\"uo
te"'
    expect 0 hl land "$name"
    [ -f $'q"uo\nte' ]
    clean
}
