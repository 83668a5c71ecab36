#!/usr/bin/env bats
# Landing on git: an agent's edits that git does not report land, or are kept and named.
load ../helper
load ../land_helper

setup() { land_setup; }

# unlanded NAME PATH: nothing landed, the file is named, and its sandbox has it
unlanded() {
    says "nothing landed; 1 changed file is kept: $2"
    state_is "$1" rejected
    hl plan diff "$(hl --json land show "$1" | jq -r .plan)" 2>&1 | grep -q "$2"
    clean
}

@test "L14: edits of files that the user marked skip-worktree or assume-unchanged land: changed, deleted, made executable, alone or with others" {
    mkdir d
    seq 5 >d/own
    git add -A
    git commit -qm d
    for mark in skip-worktree assume-unchanged; do
        for verify in true ''; do
            git update-index "--$mark" a b d/own
            expect 0 hl run "one-$mark$verify" --in . ${verify:+--verify 'grep -q agent a'} -- sh -c 'echo agent >>a'
            says "1 commit, 1 file"
            [ "$(git show main:a | tail -n 1)" = agent ]
            [ "$(tail -n 1 a)" = agent ]
            expect 0 hl run "two-$mark$verify" --in . --verify "$verify" -- sh -c 'echo agent >>b; echo 1 >>new; rm -r d'
            says "1 commit, 3 files"
            [ "$(git show main:b | tail -n 1)" = agent ]
            [ -z "$(git ls-tree -r --name-only main d)" ]
            [ ! -e d ]
            expect 0 hl run "three-$mark$verify" --in . --verify "$verify" -- sh -c 'mkdir d; seq 5 >d/own; rm new; git add -A; git commit -qm three; chmod +x a'
            says "2 commits, 3 files"
            [ -x a ]
            git update-index --no-skip-worktree a b
            git update-index --no-assume-unchanged a b
            chmod -x a
            git commit -qam again
            clean
        done
    done
}

@test "L14: a change of a skip-worktree or assume-unchanged file lands if the user saved the same content again" {
    for mark in skip-worktree assume-unchanged; do
        git update-index "--$mark" a b
        touch -d '1 hour ago' a
        expect 0 hl run "same-$mark" --in . -- sh -c 'echo agent >>a'
        says "1 commit, 1 file"
        [ "$(tail -n 1 a)" = agent ]
        [ "$(git ls-files -v b | cut -c1)" = "$([ "$mark" = skip-worktree ] && echo S || echo h)" ]
        git update-index "--no-$mark" a b
        clean
    done
}

@test "L14: a user's own edits under skip-worktree or assume-unchanged do not land with the agent's, and stay" {
    for mark in skip-worktree assume-unchanged; do
        seq 20 >a
        git commit -qam "$mark" || :
        git update-index "--$mark" a
        sed -i 1s/^/secret/ a
        hl -q land begin "one-$mark" .
        hl -q plan enter "one-$mark" -- sh -c 'grep -q secret a; echo agent >>a'
        expect 1 hl land "one-$mark"
        # The user's edits in the work tree block the landing. Its commit has the agent's edits only.
        tip=$(hl --json land show "one-$mark" | jq -r .tip)
        [ "$(git show "$tip:a")" = "$(seq 20; echo agent)" ]
        [ "$(head -n 1 a)" = secret1 ]
        # Without them in the way it lands, and a second try makes the same of it.
        git update-index "--no-$mark" a
        git checkout -q a
        expect 0 hl land "one-$mark"
        [ "$(cat a)" = "$(seq 20; echo agent)" ]
        clean
    done
}

@test "L14: the agent and the user change the same line of a skip-worktree file: it is kept and named, and the rest lands" {
    git update-index --skip-worktree a
    sed -i 1s/^/secret/ a
    agent both 'sed -i 1s/secret/agent/ a'
    expect 1 hl land both
    says "nothing landed; 1 changed file is kept: a"
    expect 0 hl run rest --in . -- sh -c 'sed -i 1s/secret/agent/ a; echo 1 >new'
    says "1 changed file has not landed, the first: a; the sandbox is kept"
    [ "$(git show main:new)" = 1 ]
    [ "$(head -n 1 a)" = secret1 ]
    hl plan diff run:rest | grep -q 'M a'
    hl land list | grep rest | grep -q "1 changed file has not landed"
    expect 0 hl --json land show rest
    is_json '.unlanded == [{"path": "a", "kind": "kept"}]'
    # The name is not used again before that is decided.
    expect 1 hl run rest --in . -- true
    says "the last run left 1 changed file, not landed"
    says "    holdfast land drop rest "
    hl --json ps rest | jq -e '.sessions[0].needs[0].code == "unlanded"'
    expect 0 hl land drop rest
    state_is rest landed
    run -1 hl plan show run:rest
    hl --json ps rest | jq -e '.sessions[0].needs == []'
    expect 1 hl land drop rest
    says "it is landed"
    expect 0 hl run rest --in . -- true
}

@test "L14: core.fileMode=false: a mode that the agent changes is kept and named, a mode of the user is not" {
    git config core.fileMode false
    chmod +x b
    agent mode 'chmod +x a'
    expect 1 hl land mode
    unlanded mode a
    expect 0 hl run edits --in . -- sh -c 'echo 1 >>b; echo 2 >>a'
    says "landed on main"
    [[ $output != *kept* ]]
}

@test "L14: core.checkStat=minimal, and a file system monitor that lies: edits that the stat data do not show land" {
    git config core.checkStat minimal
    touch -d @1000000000 b
    git status >/dev/null
    expect 0 hl run same --in . -- sh -c 'echo y >b; touch -d @1000000000 b'
    says "1 commit, 1 file"
    [ "$(git show main:b)" = y ]
    git config --unset core.checkStat
    printf '#!/bin/sh\nprintf "token\\0"\n' >../monitor
    chmod +x ../monitor
    git config core.fsmonitor "$PWD/../monitor"
    git update-index --fsmonitor-valid a
    expect 0 hl run monitor --in . -- sh -c 'echo 1 >>a; git add b'
    says "1 commit, 1 file"
}

@test "L14: an edit is kept and named if a clean filter removes it" {
    echo 'a filter=strip' >.gitattributes
    git config filter.strip.clean 'sed /local/d'
    git add -A
    git commit -qm attributes
    agent filtered 'echo local >>a'
    expect 1 hl land filtered
    unlanded filtered a
    expect 0 hl run mixed --in . -- sh -c 'echo local >>a; echo 1 >>b'
    says "1 changed file has not landed, the first: a"
    expect 0 hl run touched --in . -- sh -c 'touch a; echo 2 >>b'
    [[ $output != *kept* ]]
    # Where the file lands, the filter decides about its content.
    expect 0 hl run both --in . -- sh -c 'printf "1\nlocal\n" >>a'
    [[ $output != *kept* ]]
}

@test "L14: an edit is kept and named if git converts it: ends of lines, ident, encoding" {
    printf '%s\n' 'a text=auto' '*.i ident' '*.u working-tree-encoding=UTF-16LE-BOM' >.gitattributes
    printf '$Id$\nz\n' >v.i
    git add -A
    git commit -qm attributes
    rm v.i
    git checkout -q v.i
    agent lines 'sed -i "s/\$/\r/" a'
    expect 1 hl land lines
    unlanded lines a
    agent ident 'sed -i "1s/.*/\$Id: mine \$/" v.i'
    expect 1 hl land ident
    unlanded ident v.i
    git config core.autocrlf input
    expect 0 hl run mixed --in . -- sh -c 'sed -i "s/\$/\r/" b; echo 1 >c'
    says "1 changed file has not landed, the first: b"
    # A file that a checkout writes in the same way is not kept, nor are line ends that land.
    expect 0 hl run same --in . -- sh -c 'touch a v.i; cp v.i w; cat w >v.i; rm w; echo 2 >c'
    [[ $output != *kept* ]]
    git config --unset core.autocrlf
    expect 0 hl run lands --in . -- sh -c 'sed -i "s/\$/\r/" b; cp a a.new; mv a.new a'
    [[ $output != *kept* ]]
    [ "$(git show HEAD:b | od -An -c | tr -d ' ')" = 'x\r\n' ]
    # The sandbox hides this edit.
    sed -i 's/$/\r/' a
    expect 0 hl run hidden --in . -- sh -c 'echo 3 >c'
    [[ $output != *kept* ]]
}

@test "L14: a new file in a submodule is kept and named, unless the submodule ignores it" {
    make_repository ../other
    git submodule --quiet add ../other sub
    git commit -qm sub
    agent new 'echo 1 >sub/new; echo 1 >sub/x.o; echo 1 >x.o'
    expect 1 hl land new
    unlanded new sub/new
    expect 0 hl run ignored --in . -- sh -c 'echo 2 >sub/x.o; echo 2 >x.o; rm b'
    [[ $output != *kept* ]]
}

@test "nothing is kept for ignored files, hidden edits of the user, restored files, and a sparse checkout" {
    mkdir -p in out
    echo 1 >in/f
    echo 1 >out/f
    git add -A
    git commit -qm sparse
    git sparse-checkout set in 2>/dev/null
    echo edit >>a
    echo new >untracked
    for base in head worktree; do
        expect 0 hl run "$base" --in . --base "$base" -- sh -euc "
            echo $base >x.o; mkdir -p build; echo '*' >build/.gitignore; echo 1 >build/made; touch b
            cp b keep; echo 1 >>b; cat keep >b; rm keep; mkdir empty; mkfifo pipe; echo $base >>in/f; mkdir -p out; echo $base >>out/new"
        says "1 commit, 2 files"
        [[ $output != *kept* ]]
        [ ! -e out/f ]
    done
    [ "$(git status --porcelain)" = $' M a\n?? untracked' ]
}

@test "a verifier's files are not kept as the agent's, with the agent's edit kept from before" {
    git update-index --skip-worktree a
    sed -i 1s/^/secret/ a
    expect 0 hl run one --in . --verify 'echo 1 >junk; chmod +x b' -- sh -c 'sed -i 1s/secret/agent/ a; echo 1 >new'
    says "1 changed file has not landed, the first: a"
    expect 0 hl --json land show one
    is_json '[.unlanded[].path] == ["a"]'
}
