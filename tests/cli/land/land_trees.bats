#!/usr/bin/env bats
# Landing on git: other repositories in the work tree, symbolic links that become directories, and the other way round.
load ../helper
load ../land_helper

setup() { land_setup; }

# nested DIR: a repository of the user's in the work tree, which git lists as one untracked path
nested() {
    git init -q "$1"
    echo 1 >"$1/one"
    git -C "$1" add one
    git -C "$1" commit -qm one
}

@test "a repository of the user's in the work tree stops no landing, and is seen in the sandbox; one that the agent made or changed does" {
    nested vend
    for base in head worktree; do
        expect 0 hl run "$base" --in . --base "$base" -- sh -euc "cat vend/one; echo $base >>a"
        [[ $output != *"not seen by the command"* ]]
    done
    [ "$(tail -n 2 a)" = $'head\nworktree' ]
    # Beside it, what is uncommitted is hidden, and only that is counted.
    echo 1 >untracked
    expect 0 hl run counted --in . -- sh -euc '[ ! -e untracked ]; cat vend/one; echo 3 >>a'
    says "1 uncommitted path in the work tree: not seen by the command"
    expect 1 hl run changed --in . -- sh -euc 'echo 2 >vend/two; git -C vend add two; git -C vend commit -qm two'
    says "it made or changed another repository, vend"
    expect 1 hl run made --in . -- sh -euc 'git init -q sub/own; echo 2 >sub/own/two; echo 4 >>a'
    says "it made or changed another repository, sub/own"
    [ "$(git -C vend log --format=%s)" = one ]
    [ "$(git status --porcelain)" = $'?? untracked\n?? vend/' ]
}

@test "a work tree of the same repository below the work tree stops no landing" {
    git worktree add -q below -b below
    expect 0 hl run beside --in . -- sh -euc 'echo 1 >>a'
    [ "$(tail -n 1 a)" = 1 ]
    [ -z "$(git -C below status --porcelain)" ]
}

@test "a symbolic link becomes a directory, a directory a symbolic link or a file, a file a directory: committed or not, they land" {
    mkdir d
    echo x >d/f
    ln -s d l
    git add -A
    git commit -qm link
    for how in 'git add -A; git commit -qm done' ''; do
        expect 0 hl run directory --in . -- sh -euc "rm l; mkdir l; echo 1 >l/f; $how"
        [ "$(cat l/f d/f)" = $'1\nx' ]
        clean
        expect 0 hl run link --in . -- sh -euc "rm -r l; ln -s d l; rm -r d; ln -s a d; $how"
        [ "$(readlink l d)" = $'d\na' ]
        clean
        expect 0 hl run back --in . -- sh -euc "rm d; mkdir d; echo x >d/f; rm b; mkdir b; echo 1 >b/c; $how"
        [ "$(cat l/f b/c)" = $'x\n1' ]
        clean
        expect 0 hl run file --in . -- sh -euc "rm -r b; echo x >b; $how"
        [ "$(cat b)" = x ]
        clean
    done
}

@test "files of the user's behind a symbolic link, or in the place of one, are a conflict and stay" {
    mkdir d
    echo x >d/f
    git add -A
    git commit -qm d
    # Its directory is the user's own link now: what the agent changes is sought there by nothing.
    expect 0 hl land begin edits .
    hl -q plan enter edits -- sh -euc 'echo 2 >d/f; git commit -qam two'
    mv d ../kept
    ln -s ../kept d
    expect 1 hl land edits
    says 'dirty  d/f'
    [ "$(cat ../kept/f)" = x ]
    [ -L d ]
}
