#!/usr/bin/env bats
# Landing on git: agents that misbehave, repositories that are special, processes that are killed, many at once.
load ../helper
load ../land_helper

setup() { land_setup; }

@test "an agent that deletes .git, rewrites history, leaves a rebase or a conflict: refused, its sandbox kept" {
    git commit -q --allow-empty -m second
    agent gone 'echo 1 >c; rm -rf .git'
    agent amended 'echo 1 >c; git add c; git commit -q --amend -m rewritten'
    agent rebasing 'git checkout -q -b x HEAD^; echo 1 >c; git add c; git commit -qm x; git checkout -q main; echo 2 >c; git add c; git commit -qm y; git rebase -q x || true'
    head=$(git rev-parse main)
    for name in gone amended rebasing; do
        expect 1 hl land "$name"
        state_is "$name" rejected
        hl plan show "$name" >/dev/null
    done
    [ "$(git rev-parse main)" = "$head" ]
    clean
}

@test "an agent that runs gc, switches branch, detaches HEAD or leaves index.lock still lands" {
    agent gc 'echo 1 >c; git add c; git commit -qm c; git reflog expire --expire=now --all; git gc -q --prune=now'
    expect 0 hl land gc
    agent branch 'git checkout -q -b feature; echo 2 >d'
    expect 0 hl land branch
    agent detached 'git checkout -q --detach; echo 3 >e; git add e; git commit -qm e'
    expect 0 hl land detached
    agent locked 'echo 4 >f; : >.git/index.lock'
    expect 0 hl land locked
    [ "$(cat c d e f)" = $'1\n2\n3\n4' ]
    [ -z "$(git branch --list feature)" ]
    clean
}

@test "configuration, hooks, attributes and filters that an agent plants are never run outside its sandbox" {
    agent evil "cat >.git/evil <<E
#!/bin/sh
[ -n \"\\\$HOLDFAST_PLAN\" ] || touch $BATS_TEST_TMPDIR/escaped
exit 0
E
chmod +x .git/evil
for h in pre-commit post-checkout reference-transaction post-rewrite; do cp .git/evil .git/hooks/\$h; done
git config core.fsmonitor .git/evil; git config filter.x.smudge .git/evil; git config filter.x.clean .git/evil
git config core.sshCommand .git/evil; git config core.pager .git/evil
echo '*.z filter=x' >.gitattributes; echo 1 >c"
    expect 0 hl land evil
    [ ! -e "$BATS_TEST_TMPDIR/escaped" ]
    [ -z "$(git config filter.x.smudge)" ]
    clean
}

@test "bare, empty, detached and plain directories are refused with what to do; a sub-directory takes the top" {
    git init -q --bare ../bare
    expect 3 hl land begin n ../bare
    says bare
    git init -q ../empty
    expect 3 hl land begin n ../empty
    says 'no commit'
    mkdir ../plain
    expect 3 hl land begin n ../plain
    says 'not in a git work tree'
    git checkout -q --detach
    expect 3 hl land begin n .
    says detached
    git checkout -q main
    expect 3 hl land begin n . --branch nowhere
    says "no branch"
    mkdir sub
    expect 0 hl land begin n sub
    says 'using the whole work tree'
}

@test "a linked worktree, a shallow clone, a sparse checkout and a branch that is checked out nowhere are landed on" {
    git worktree add -q ../linked -b side
    (cd ../linked && agent linked 'echo 1 >c')
    expect 0 hl land linked
    [ "$(cat ../linked/c)" = 1 ]
    [ -z "$(git -C ../linked status --porcelain)" ]
    agent elsewhere 'echo 2 >d' --branch side
    expect 0 hl land elsewhere
    [ "$(cat ../linked/d)" = 2 ]
    [ -z "$(git -C ../linked status --porcelain)" ]
    git branch free
    agent free 'echo 3 >e' --branch free
    expect 0 hl land free
    [ "$(git show free:e)" = 3 ]
    [ ! -e e ]
    clean
    git commit -q --allow-empty -m more
    git clone -q --depth 1 "file://$PWD" ../shallow
    (cd ../shallow && agent shallow 'echo 4 >f' && hl -q land shallow && clean)
    mkdir -p one two && echo 1 >one/f && echo 2 >two/f && git add -A && git commit -qm dirs
    git sparse-checkout set one
    agent sparse 'echo 5 >one/g'
    expect 0 hl land sparse
    [ ! -e two ]
    clean
}

@test "a submodule at another commit of its remote lands" {
    make_repository ../lib
    git submodule --quiet add "$BATS_TEST_TMPDIR/lib" lib
    git commit -qm lib
    git config diff.ignoreSubmodules all
    echo 2 >../lib/c
    git -C ../lib add c
    git -C ../lib commit -qm c
    # One is fetched in the sandbox and left uncommitted, the other is known to the real repository.
    agent one 'cd lib; git fetch -q; git checkout -q origin/HEAD'
    expect 0 hl land one --verify 'test -e lib/c'
    [ "$(git rev-parse HEAD:lib)" = "$(git -C ../lib rev-parse HEAD)" ]
    git submodule --quiet update --no-fetch
    [ "$(cat lib/c)" = 2 ]
    sound
    git commit -q --allow-empty -m between
    git config --unset diff.ignoreSubmodules
    agent two 'git -C lib checkout -q HEAD~1; git add lib; git commit -qm back'
    git commit -q --allow-empty -m between
    expect 0 hl land two --verify 'test ! -e lib/c'
    [ "$(git rev-parse HEAD:lib)" = "$(git -C ../lib rev-parse HEAD~1)" ]
    # The user's checkout is stale now. 'git commit -a' of an agent does not land it.
    agent three 'echo 3 >b; git commit -qam three'
    expect 0 hl land three
    [ "$(git rev-parse HEAD:lib)" = "$(git -C ../lib rev-parse HEAD~1)" ]
    [ "$(cat b)" = 3 ]
}

@test "a submodule with edits and another commit is refused, and kept" {
    make_repository ../lib
    git -C ../lib commit -q --allow-empty -m second
    git submodule --quiet add "$BATS_TEST_TMPDIR/lib" lib
    git commit -qm lib
    agent one 'cd lib; git checkout -q HEAD~1; echo edit >b'
    expect 1 hl land one
    says "files of the submodule lib"
}

@test "a change of a submodule is refused, and kept" {
    make_repository ../lib
    git submodule --quiet add "$BATS_TEST_TMPDIR/lib" lib
    git commit -qm lib
    agent sub 'cd lib; echo 1 >c; git add c; git commit -qm c'
    expect 1 hl land sub
    says "none of its remote branches has the new commit"
    state_is sub rejected
}

@test "what a killed try left in the sandbox is waited for; an agent that goes on is told" {
    agent late 'echo 1 >c; (exec sleep 0.5 >/dev/null 2>&1) &'
    expect 0 hl land late
    [ "$(cat c)" = 1 ]
    agent on 'echo 2 >c; (exec sleep 60 >/dev/null 2>&1) & echo $! >../on'
    expect 1 hl land on
    says 'the work has not ended yet'
    state_is on working
    kill "$(cat ../on)"
    expect 0 hl land on
    [ "$(cat c)" = 2 ]
    clean
}

@test "lock files that a killed git left in the sandbox hinder nothing, also in a linked work tree" {
    local locks='>"$d/index.lock"; >"$d/HEAD.lock"; >"$c/refs/heads/$b.lock"; >"$c/packed-refs.lock"; >"$c/config.lock"'
    local names='d=$(git rev-parse --git-dir) c=$(git rev-parse --git-common-dir) b=$(git symbolic-ref --short HEAD)'
    agent killed "echo 1 >c; git add c; git commit -qm c; echo 2 >d; $names; $locks"
    expect 0 hl land killed
    [ "$(git log --format=%s | head -n 2)" = "$(printf 'Work of killed\nc')" ]
    clean
    git worktree add -q -b side ../side
    (cd ../side && agent linked "echo 3 >e; $names; $locks" && hl -q land linked && [ "$(cat e)" = 3 ] && clean)
}

@test "killed at any moment: the next try lands it, and branch, index and work tree agree (L10)" {
    for i in $(seq 1 14); do
        agent "k$i" "echo $i >k$i; sed -i \"s/^$i\$/line $i/\" a"
        # In the foreground, timeout waits for what it killed; else the next try may meet one that still dies.
        timeout --foreground -s KILL "$(printf "0.%03d" $((i * 35)))" "$HOLDFAST" -q land "k$i" --verify "test -f k$i" || true
        hl -q land "k$i" --verify "test -f k$i" || state_is "k$i" landed
        state_is "k$i" landed
        [ "$(cat "k$i")" = "$i" ]
        clean
    done
    [ "$(git rev-list --count main)" = 15 ]
}

@test "ten candidates over three repositories at once, users who commit meanwhile: every commit is green, no work is lost" {
    cd ..
    for r in p q; do make_repository "$r"; done
    for i in 0 1 2 3 4 5 6 7 8 9; do
        repo=$(printf '%s\n' r p q | sed -n $((i % 3 + 1))p)
        bad=ok
        [ "$i" -ne 4 ] || bad=broken
        (cd "$repo" && agent "c$i" "echo $bad >t$i; sed -i s/^$((i + 3))\$/n$i/ a")
    done
    for i in 0 1 2 3 4 5 6 7 8 9; do
        spawn "$HOLDFAST" -q land "c$i" --verify '! grep -l broken t*'
    done
    for repo in r p q; do
        for i in 1 2 3; do
            echo "$i" >"$repo/user$i"
            git -C "$repo" add "user$i"
            wait_until 30 git -C "$repo" commit -qm "user $i" "user$i" 2>/dev/null
        done
    done
    for pid in "${spawned[@]}"; do wait "$pid" || true; done
    for i in 0 1 2 3 4 5 6 7 8 9; do
        want=landed
        [ "$i" -ne 4 ] || want=rejected
        state_is "c$i" "$want"
    done
    for repo in r p q; do
        cd "$BATS_TEST_TMPDIR/$repo"
        clean
        [ "$(git log --format=%s main | grep -c '^user')" = 3 ]
        for commit in $(git rev-list main); do
            [ -z "$(git grep -l broken "$commit" -- 't*')" ]
        done
    done
    git -C "$BATS_TEST_TMPDIR/p" cat-file -e refs/holdfast/c4 || { hl land show c4; return 1; }
}
