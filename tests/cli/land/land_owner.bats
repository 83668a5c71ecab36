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
