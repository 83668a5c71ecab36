#!/usr/bin/env bats
# Signatures of the commits that a landing makes: commit.gpgSign is honoured if a key can be used, --sign requires it.
load ../helper
load ../land_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    command -v ssh-keygen >/dev/null || skip "NO SSH-KEYGEN HERE"
    land_room
    make_key "$BATS_TEST_TMPDIR/key" ''
    echo "tester@example.org $(cat "$BATS_TEST_TMPDIR/key.pub")" >"$BATS_TEST_TMPDIR/signers"
    git config gpg.format ssh
    git config user.signingKey "$BATS_TEST_TMPDIR/key"
    git config gpg.ssh.allowedSignersFile "$BATS_TEST_TMPDIR/signers"
}

make_key() { ssh-keygen -q -t ed25519 -N "$2" -f "$1"; }

# The commits of the branch after the first that are not signed.
unsigned() { git log --format='%G? %s' main --not "$(git rev-list --max-parents=0 main)" | grep -v '^G '; }

@test "commit.gpgSign: Holdfast signs its own commit, rebased commits and merges" {
    git config commit.gpgSign true
    agent one 'echo one >one'
    expect 0 hl land one
    [[ "$output" != *sign* ]]
    expect 0 hl run two --in . --verify 'test -e two' -- sh -c 'echo two >two'
    [[ "$output" != *sign* ]]
    agent three 'echo three >three; git add three; git commit -qm three'
    git commit -q --allow-empty -m between
    expect 0 hl -q --json land three
    is_json '.rebased and .unsigned == false and (.text | test("sign") | not)'
    agent four 'echo four >four'
    git commit -q --allow-empty -m between
    expect 0 hl land four --merge merge
    run unsigned
    [ -z "$output" ]
}

@test "commit.gpgSign with a key that cannot be used: the work lands, and unsigned commits are reported" {
    make_key "$BATS_TEST_TMPDIR/locked" secret
    git config commit.gpgSign true
    git config user.signingKey "$BATS_TEST_TMPDIR/locked"
    agent one 'echo one >one'
    expect 0 hl land one </dev/null
    says "commit.gpgSign is set, but no key could be used"
    expect 0 hl run two --in . --verify true -- sh -c 'echo two >two'
    says "commit.gpgSign is set, but no key could be used"
    expect 0 hl -q --json run three --in . -- sh -c 'echo three >three'
    is_json '.landed.unsigned'
    agent four 'git config commit.gpgSign false; echo four >four; git add four; git commit -qm four'
    git commit -q --no-gpg-sign --allow-empty -m between
    expect 0 hl -q --json land four
    is_json '.rebased and .unsigned'
    clean
}

@test "--sign signs each commit that lands, or nothing lands" {
    agent one 'echo one >one; git add one; git commit -qm one; echo more >more'
    expect 0 hl land one --sign
    expect 0 hl run two --in . --sign --verify 'test -e two' -- sh -c 'echo two >two; git add two; git commit -qm two'
    run unsigned
    [ -z "$output" ]
    [ "$(git log --format=%s | paste -sd' ')" = "two Work of one one first" ]
    head=$(git rev-parse HEAD)
    git config user.signingKey "$BATS_TEST_TMPDIR/nothing"
    agent three 'echo three >three'
    expect 1 hl land three --sign
    says "signature"
    agent four 'echo four >four; git add four; git commit -qm four'
    expect 1 hl land four --sign
    says "cannot be signed"
    [ "$(git log -1 --format=%s refs/holdfast/four)" = four ]
    expect 1 hl run five --in . --sign -- sh -c 'echo five >five'
    [ "$(git rev-parse HEAD)" = "$head" ]
    git config user.signingKey "$BATS_TEST_TMPDIR/key"
    expect 0 hl land three
    expect 0 hl land four
    expect 0 hl land five
    run unsigned
    [ -z "$output" ]
    clean
}
