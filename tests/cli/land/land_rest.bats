#!/usr/bin/env bats
# Landing on git: stashes, other branches, detached commits and linked worktrees of the sandbox are kept and named.
load ../helper
load ../land_helper

setup() { land_setup; }

refs() { git for-each-ref --format='%(refname)' refs/holdfast | sort; }

@test "L14: HEAD lands; stashes, branches, tags and detached commits are kept as refs, named, and removed by land drop alone" {
    for verify in '' 'true'; do
        expect 0 hl run "one$verify" --in . --verify "$verify" -- sh -euc '
            echo 1 >>a; git stash -q; echo 2 >>a; git stash -q
            git switch -qc feat/x; echo big >BIG; git add .; git commit -qm big; git switch -q main
            git switch -q --detach; echo big >BIG; git add .; git commit -qm detached; git switch -q main
            git switch -q --detach; echo tag >T; git add .; git commit -qm tagged; git tag v1; git switch -q main
            echo >A; git add A; git commit -qm a'
        says "landed on main"
        says "branch feat/x of the sandbox has 1 commit that main does not have; kept as refs/holdfast/one$verify+branch-feat/x"
        says "git stash apply refs/holdfast/one$verify+stash-2"
        says "tag v1 of the sandbox has 1 commit"
        says "is new and on no branch (HEAD was detached or reset); kept as refs/holdfast/one$verify+commit-1"
        [ "$(refs)" = "$(printf 'refs/holdfast/one%s+%s\n' "$verify" branch-feat/x "$verify" commit-1 "$verify" stash-1 "$verify" stash-2 "$verify" tag-v1)" ]
        [ "$(git show "refs/holdfast/one$verify+branch-feat/x:BIG")" = big ]
        [ "$(git log -1 --format=%s "refs/holdfast/one$verify+commit-1")" = detached ]
        git stash apply -q "refs/holdfast/one$verify+stash-1"
        [ "$(tail -n 1 a)" = 2 ]
        git checkout -q a
        expect 0 hl --json land show "one$verify"
        is_json '.kept | length == 5'
        is_json '.kept[0].ref | startswith("refs/holdfast/one")'
        hl land list | grep "one$verify" | grep -q "kept: refs/holdfast/one$verify+"
        # Other runs of that name remove nothing: successful, failed or empty.
        expect 0 hl run "one$verify" --in . -- true
        expect 1 hl run "one$verify" --in . -- sh -c 'echo 3 >>a; exit 1'
        [ "$(refs | wc -l)" -eq 5 ]
        hl plan rm --discard "run:one$verify"
        expect 0 hl run "one$verify" --in . -- sh -c 'echo 3 >>a; git stash -q; echo 1 >>B'
        [ "$(refs | wc -l)" -eq 6 ]
        says "refs/holdfast/one$verify+stash-3"
        expect 0 hl land drop "one$verify"
        [ -z "$(refs)" ]
        expect 1 hl land drop "one$verify"
        git rm -q A B
        git commit -qm again
    done
}

@test "L14: a try that is refused and tried again keeps a stash once, and a moved ref stays" {
    hl -q land begin again .
    hl -q plan enter again -- sh -euc 'echo 1 >>a; git stash -q; echo 1 >c'
    expect 1 hl land again --verify false
    [ "$(refs)" = $'refs/holdfast/again\nrefs/holdfast/again+stash-1' ]
    expect 0 hl land again --verify true
    [ "$(refs)" = refs/holdfast/again+stash-1 ]
    says "a stash of the sandbox is not on main"
    says "  git stash apply refs/holdfast/again+stash-1"
    says "  holdfast land drop again"
    # A ref that its user moved stays.
    git update-ref refs/holdfast/again+stash-1 main
    expect 0 hl land drop again
    [ "$(refs)" = refs/holdfast/again+stash-1 ]
}

@test "L14: killed when the ref of a stash is made: the next try names it, makes no second one, and land drop removes it" {
    agent killed 'echo 1 >>a; git stash -q; echo 1 >c'
    mkdir ../bin
    cat >../bin/git <<E
#!/bin/sh
case "\$*" in
*"update-ref refs/holdfast/killed+"*)
    $(command -v git) "\$@" || exit
    kill -KILL "\$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/\$PPID/stat")" ;;
*) exec $(command -v git) "\$@" ;;
esac
E
    chmod +x ../bin/git
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" expect 137 hl land killed
    [ "$(refs)" = refs/holdfast/killed+stash-1 ]
    expect 0 hl land killed
    says "  git stash apply refs/holdfast/killed+stash-1"
    [ "$(refs)" = refs/holdfast/killed+stash-1 ]
    [ "$(git show main:c)" = 1 ]
    expect 0 hl land drop killed
    [ -z "$(refs)" ]
}

@test "nothing is kept of commits that HEAD has: merged, cherry-picked, amended, squashed, reset, or popped from a stash" {
    git stash list
    git branch other
    for script in \
        'git switch -qc feat; echo 1 >f; git add f; git commit -qm f; git switch -q main; git merge -q --no-ff --no-edit feat' \
        'git switch -qc feat; echo 1 >f; git add f; git commit -qm f; git switch -q main; echo 1 >g; git add g; git commit -qm g; git cherry-pick feat >/dev/null' \
        'echo 1 >f; git add f; git commit -qm f; echo 2 >f; git commit -qa --amend -m f2' \
        'echo 1 >f; git add f; git commit -qm f; echo 2 >f; git commit -qam f2; git reset -q --soft HEAD~2; git commit -qm squashed' \
        'echo 1 >f; git add f; git commit -qm f; echo 2 >f; git commit -qam f2; git reset -q --hard HEAD~1' \
        'echo 1 >>a; git stash -q; git stash pop -q; echo 1 >f' \
        'git switch -qc feat; echo 1 >f; git add f; git commit -qm f' \
        'git switch -q other; git switch -q main; git tag here; git gc -q --prune=now; echo 1 >f'; do
        expect 0 hl run one --in . -- sh -euc "$script"
        says "landed on main"
        [[ $output != *kept* ]] || { echo "$script: $output"; return 1; }
        [ -z "$(refs)" ]
        git rm -qf f
        [ ! -e g ] || git rm -qf g
        git checkout -q HEAD a
        git commit -qm again || :
    done
}

@test "L14: names that are taken: another name of the same kind, a directory of refs, odd and long names" {
    expect 0 hl run 'od d/n' --in . -- sh -euc 'git switch -qc x; echo 1 >X; git add X; git commit -qm x; git switch -q main; echo 1 >c'
    says "refs/holdfast/od%20d%2Fn+branch-x"
    expect 0 hl run 'od d/n' --in . -- sh -euc 'git switch -qc x/y; echo 2 >X; git add X; git commit -qm x; git switch -q main; echo 1 >d'
    says "refs/holdfast/od%20d%2Fn+branch-x-y-2"
    expect 0 hl run 'od d/n' --in . -- sh -euc 'git switch -qc x; echo 3 >X; git add X; git commit -qm x; git switch -q main; echo 1 >e'
    says "refs/holdfast/od%20d%2Fn+branch-x-2"
    [ "$(refs | wc -l)" -eq 3 ]
    sound
}

# subagent NAME SCRIPT: what a client does for one of its agents
subagent='subagent() { git worktree add -q --lock -b "worktree-$1" ".claude/worktrees/$1"; (cd ".claude/worktrees/$1"; eval "$2"); }; '

@test "a clean linked worktree whose commits are merged does not prevent a landing, also in an ignored directory" {
    for ignored in '' .claude; do
        printf '%s\n' "*.o" $ignored >.gitignore
        git commit -qam "ignored$ignored" || :
        expect 0 hl run "merged$ignored" --in . --verify true -- sh -euc "$subagent"'subagent one "echo 1 >f; git add f; git commit -qm f"
            git merge -q worktree-one; subagent two "echo 2 >g; git add g; git commit -qm g"; git cherry-pick worktree-two >/dev/null; subagent idle ":"'
        says "landed on main"
        [[ $output != *kept* ]]
        [ -z "$(refs)" ]
        [ ! -e .claude ]
        git rm -q f g
        git commit -qm again
    done
    expect 0 hl run nothing --in . -- sh -euc "$subagent"'subagent idle ":"'
    says "nothing to land"
}

@test "L14: unmerged commits of a linked worktree are kept as a ref, its edits with the sandbox; alone they are refused with the command" {
    for ignored in '' .claude; do
        printf '%s\n' "*.o" $ignored >.gitignore
        git commit -qam "ignored$ignored" || :
        expect 0 hl run "two$ignored" --in . -- sh -euc "$subagent"'subagent one "echo 1 >f; git add f; git commit -qm f; echo 2 >f; git commit -qam f2"; echo 1 >>b'
        says "worktree .claude/worktrees/one holds 2 commits that main does not have; kept as refs/holdfast/two${ignored/./%2E}+branch-worktree-one"
        git merge -q "refs/holdfast/two${ignored/./%2E}+branch-worktree-one"
        [ "$(cat f)" = 2 ]
        hl land drop "two$ignored"
        expect 0 hl run "dirty$ignored" --in . -- sh -euc "$subagent"'subagent one "echo 3 >f; echo 1 >new; echo 1 >x.o"; echo 1 >>b'
        says "2 changed files have not landed, the first: .claude/worktrees/one/f; the sandbox is kept"
        expect 0 hl land drop "dirty$ignored"
        agent "alone$ignored" "$subagent"'subagent one "echo 3 >f; git commit -qam f3"'
        expect 1 hl land "alone$ignored"
        says "worktree .claude/worktrees/one holds 1 commit that main does not have"
        says "'holdfast plan enter alone$ignored -- git -C $PWD merge "
        eval "$(hl land show "alone$ignored" | grep -o "plan enter [^']*" | sed 's/^/hl -q /')"
        expect 0 hl land "alone$ignored"
        [ "$(cat f)" = 3 ]
        agent "edits$ignored" "$subagent"'subagent one "echo 4 >f"'
        expect 1 hl land "edits$ignored"
        says "nothing landed; 1 changed file is kept: .claude/worktrees/one/f"
        agent "loose$ignored" "$subagent"'subagent one "git switch -q --detach; echo 4 >f; git commit -qam f4"; echo 1 >>b'
        expect 0 hl land "loose$ignored"
        says "refs/holdfast/loose${ignored/./%2E}+worktree-"
        git rm -q f
        git commit -qm again
    done
}

@test "the printed commands get the work of a branch whose name a shell would interpret, and of a long name" {
    local long
    long="an agent with a name that is longer than fifty bytes, and has spaces"
    expect 0 hl run odd --in . -- sh -euc 'git switch -qc "fix/it'\''s;\$(touch\${IFS}executed)&x"; echo 1 >f; git add f; git commit -qm f; git switch -q main; echo 1 >>b'
    says "kept as refs/holdfast/odd+branch-fix/it's"
    PATH=${HOLDFAST%/*}:$PATH eval "$(grep -o 'git merge [^ ].*' <<<"$output" | head -n 1 | sed "s/'\$//")"
    [ "$(cat f)" = 1 ]
    agent other 'git switch -qc "fix\$(id)"; echo 2 >f; git commit -qam f; git switch -q main; echo 1 >>a'
    expect 0 hl land other
    PATH=${HOLDFAST%/*}:$PATH eval "$(grep -o '  git merge .*' <<<"$output")"
    [ "$(cat f)" = 2 ]
    [ ! -e executed ]
    expect 1 hl run "$long" --in . -- sh -euc 'git switch -qc feat; echo 3 >f; git commit -qam f; git switch -q main'
    PATH=${HOLDFAST%/*}:$PATH eval "$(hl land show "$long" | grep -o "holdfast plan enter [^']*")"
    expect 0 hl land "$long"
    [ "$(cat f)" = 3 ]
}

@test "L14: commits of a detached worktree outside of the work tree are kept as a ref; the user's other worktrees are not" {
    git worktree add -q --detach "$BATS_TEST_TMPDIR/user's" main
    (cd "$BATS_TEST_TMPDIR/user's" && git commit -q --allow-empty -m user)
    expect 0 hl run one --in . -- sh -euc 'git worktree add -q --detach "../agent s.lock"; cd "../agent s.lock"; echo 1 >f; git add f; git commit -qm f; cd ../r; echo 1 >>b'
    says "agent s.lock of the sandbox has 1 commit that main does not have; kept as refs/holdfast/one+worktree-agent-s-lock"
    [ "$(refs)" = refs/holdfast/one+worktree-agent-s-lock ]
    git merge -q refs/holdfast/one+worktree-agent-s-lock
    [ "$(cat f)" = 1 ]
    # The work tree may be a linked one itself.
    cd "$BATS_TEST_TMPDIR/user's"
    git switch -qc side
    expect 0 hl run two --in . -- sh -euc 'git branch new; echo 1 >>b'
    [[ $output != *kept* ]] || { echo "$output"; return 1; }
    agent three 'git worktree add -q --detach ../alone; cd ../alone; echo 2 >f; git add f; git commit -qm f'
    expect 1 hl land three
    says "HEAD has not moved, but worktree $BATS_TEST_TMPDIR/alone of the sandbox has 1 commit"
    says "'holdfast plan enter three -- git "
    says " merge "
}
