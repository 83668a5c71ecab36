#!/usr/bin/env bats
# Repositories of another owner: safe.directory names the work tree, and what root lands belongs to the owner.
load ../helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    [ "$(id -u)" -eq 0 ] || skip "NOT ROOT"
    land_room
    mkdir sub
    echo s >sub/s
    git add sub
    git commit -qm sub
    chown -R nobody .
    git config --global --add safe.directory "$PWD"
}

@test "a repository of another owner lands with safe.directory=PATH" {
    expect 0 hl run one --in . --verify 'test -e one' -- sh -c 'echo one >one'
    agent two 'echo two >two; git add two; git commit -qm two'
    git commit -q --allow-empty -m between
    expect 0 hl land two --verify true
    [ "$(cat one two | paste -sd' ')" = "one two" ]
    clean
}

@test "a repository of another owner without safe.directory is refused before the command starts" {
    git config --global --unset-all safe.directory
    expect 125 hl run one --in . -- sh -c 'touch "$HOME/started"' || expect 3 hl run one --in . -- sh -c 'touch "$HOME/started"'
    says "dubious ownership"
    [ ! -e "$HOME/started" ]
}

# foreign: what in the repository does not belong to its owner
foreign() { find . ! -user nobody; }

@test "files that root lands in another owner's repository belong to the owner" {
    git branch feature/x
    chown -R nobody .
    expect 0 hl run one --in . --verify 'test -e new/dir/f' -- sh -c 'mkdir -p new/dir; echo 1 >new/dir/f; echo 2 >>a; ln -s a link; rm b; chmod +x sub/s'
    run foreign
    [ -z "$output" ] || { echo "$output"; return 1; }
    agent two 'echo two >sub/two; git add sub/two; git commit -qm two'
    git commit -q --allow-empty -m between
    chown -R nobody .
    expect 0 hl land two --verify true
    agent three 'echo three >three'
    expect 1 hl land three --verify false
    hl -q land drop three
    agent four 'echo four >four'
    expect 0 hl land four --branch feature/x
    run foreign
    [ -z "$output" ] || { echo "$output"; return 1; }
    # A directory of root's that was there before stays root's.
    mkdir rootdir
    agent five 'echo 5 >rootdir/f'
    expect 0 hl land five
    [ "$(stat -c %U rootdir)" = root ]
    clean
}

@test "the refs that keep other work, and a refused candidate, belong to the owner" {
    agent one 'git switch -qc feat/x; echo 1 >c; git add c; git commit -qm c; git switch -q main; echo 1 >>b; git stash -q; echo 1 >>a'
    expect 0 hl land one
    agent two 'echo two >>a'
    git show HEAD~1:a >a
    chown -R nobody .
    expect 1 hl land two
    git for-each-ref | grep refs/holdfast/two
    run foreign
    [ -z "$output" ] || { echo "$output"; return 1; }
}
