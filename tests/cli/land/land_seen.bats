#!/usr/bin/env bats
# Landing on git: a verifier sees the commit that lands, and files that git ignores.
load ../helper
load ../land_helper

setup() {
    land_setup
    runs="$BATS_TEST_TMPDIR/runs"
    : >"$runs"
}

# once_seen PATH TEST: a verifier that records each run. The first run waits until PATH appears; each run ends with TEST.
once_seen() { echo "echo run >>'$runs'; [ \$(wc -l <'$runs') -gt 1 ] || for i in \$(seq 1000); do test -e '$1' && break; sleep 0.02; done; $2"; }

has_run() { [ "$(wc -l <"$runs")" -ge "$1" ]; }

# later COMMAND: runs it as soon as the verifier runs
later() { wait_until 30 has_run 1 && bash -euc "$1"; }

@test "L14: a new file that a user saves during the verification does not count: the verifier runs again without the file" {
    local head path
    head=$(git rev-parse main)
    for path in FIXED new/dir/FIXED; do
        : >"$runs"
        agent new 'echo broken >A'
        spawn later "mkdir -p '$(dirname "$path")'; echo >'$path'"
        expect 1 hl land new --verify "$(once_seen "$path" "test -e '$path'")"
        says 'verify failed'
        [ "$(wc -l <"$runs")" = 2 ]
        [ -e "$path" ]
        [ "$(git rev-parse main)" = "$head" ]
        rm -r "${path%%/*}"
        hl -q land drop new
    done
    # Nor does such a file reject good work.
    : >"$runs"
    agent right 'echo 1 >c'
    spawn later 'echo >BROKEN'
    expect 0 hl land right --verify "$(once_seen BROKEN '! test -e BROKEN')"
    [ "$(wc -l <"$runs")" = 2 ]
    [ "$(git show main:c)" = 1 ]
    [ "$(git status --porcelain)" = '?? BROKEN' ]
}

@test "the verifier runs once if only the verifier writes files, and sees another repository of the user" {
    git init -q other
    echo 1 >other/file
    agent one 'echo 1 >c'
    expect 0 hl land one --verify "echo run >>'$runs'; echo x >made; mkdir -p d/e; echo x >d/e/f; echo x >>a; rm b; test -e other/file"
    [ "$(wc -l <"$runs")" = 1 ]
    [ ! -e made ]
    [ -e other/file ]
}

@test "L14: edits under skip-worktree and assume-unchanged are hidden from the verifier, also those saved during its run" {
    local mark
    for mark in skip-worktree assume-unchanged; do
        echo plain >b
        git update-index "--$mark" b
        echo FIXED >b
        agent "$mark" "echo broken >A-$mark"
        expect 1 hl land "$mark" --verify 'grep -q FIXED b'
        says 'verify failed'
        [ "$(cat b)" = FIXED ]
        rm b
        expect 1 hl land "$mark" --verify '! test -e b'
        git update-index "--no-$mark" b && git checkout -q b && git update-index "--$mark" b
        : >"$runs"
        spawn later 'echo FIXED >b'
        expect 1 hl land "$mark" --verify "echo run >>'$runs'; [ \$(wc -l <'$runs') -gt 1 ] || for i in \$(seq 1000); do grep -q FIXED b && break; sleep 0.02; done; grep -q FIXED b"
        says 'verify failed'
        [ "$(wc -l <"$runs")" = 2 ]
        [ "$(cat b)" = FIXED ]
        expect 0 hl land "$mark" --verify "test -e A-$mark && [ \"\$(cat b)\" = x ]"
        [ "$(cat b)" = FIXED ]
        git ls-files -v b | grep -q '^[Sh] b$'
        git update-index "--no-$mark" b
        git checkout -q b
    done
    # Files outside of a sparse checkout stay hidden.
    mkdir one two && echo 1 >one/f && echo 2 >two/f && git add one two && git commit -qm dirs
    git sparse-checkout set one
    agent sparse 'echo 5 >one/g'
    expect 0 hl land sparse --verify 'test -e one/f && ! test -e two'
    [ "$(cat one/g)" = 5 ]
}

@test "L14: the verifier sees a submodule at the recorded commit, without the user's edits in it" {
    local recorded
    make_repository ../lib
    git submodule --quiet add "$BATS_TEST_TMPDIR/lib" lib
    git commit -qm lib
    recorded=$(git -C lib rev-parse HEAD)
    (cd lib && echo >FIXED && git add FIXED && git commit -qm fixed && echo >NEW && echo edited >b)
    agent sub 'echo broken >A'
    expect 1 hl land sub --verify 'test -e lib/FIXED'
    says 'verify failed'
    expect 1 hl land sub --verify 'test -e lib/NEW'
    says 'verify failed'
    expect 0 hl land sub --verify "echo run >>'$runs'; [ \$(git -C lib rev-parse HEAD) = $recorded ] && test \$(cat lib/b) = x && ! test -e lib/FIXED && ! test -e lib/NEW && echo x >lib/made"
    [ "$(wc -l <"$runs")" = 1 ]
    [ "$(git -C lib log -1 --format=%s)" = fixed ]
    [ "$(git -C lib status --porcelain)" = $' M b\n?? NEW' ]
    # A file that is saved there during the verification.
    : >"$runs"
    git -C lib checkout -q -f "$recorded" && rm lib/NEW
    agent later 'echo broken >B'
    spawn later 'echo >lib/FIXED'
    expect 1 hl land later --verify "$(once_seen lib/FIXED 'test -e lib/FIXED')"
    says 'verify failed'
    [ "$(wc -l <"$runs")" = 2 ]
    rm lib/FIXED
    # The submodule's repository lacks this commit.
    git update-index --cacheinfo "160000,$(git rev-parse HEAD),lib" && git commit -qm elsewhere
    agent gone 'echo 1 >c'
    expect 1 hl land gone --verify true
    says 'the submodule lib/ is not at'
    [ "$(git -C lib rev-parse HEAD)" = "$recorded" ]
    state_is gone conflict
}
