# tests/cli/land_helper.bash - what the tests of landing share, beside helper.bash.

land_setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    land_room
}

# A repository "r" with a branch "main" checked out: a (20 lines), b, .gitignore, an ignored x.o.
land_room() {
    command -v git >/dev/null || skip "NO GIT HERE"
    export HOME="$BATS_TEST_TMPDIR/home"
    mkdir -p "$HOME"
    git config --global user.name tester
    git config --global user.email tester@example.org
    git config --global init.defaultBranch main
    git config --global protocol.file.allow always
    mkdir probe
    hf -q plan new probe
    run hf plan add probe probe "$PWD/probe" --strategy overlay
    [ "$status" -eq 0 ] || skip "NO OVERLAY HERE: $output"
    hf -q plan rm probe
    make_repository r
    cd r || return 1
}

make_repository() {
    git init -q "$1"
    seq 20 >"$1/a"
    echo x >"$1/b"
    echo '*.o' >"$1/.gitignore"
    git -C "$1" add -A
    git -C "$1" commit -qm first
    echo object >"$1/x.o"
}

hl() { timeout --kill-after=5 120 "$HOLDFAST" "$@"; }

# agent NAME SCRIPT [OPTIONS]: a candidate over the current directory whose agent is a script
agent() {
    hl -q land begin "$1" . "${@:3}"
    hl -q plan enter "$1" -- bash -euc "$2"
}

# clean: index, work tree and branch agree; nothing is damaged
clean() {
    local status
    status=$(git status --porcelain)
    [ -z "$status" ] || { echo "not clean: $status"; return 1; }
    sound
}

sound() {
    git fsck --no-dangling --strict >"$BATS_TEST_TMPDIR/fsck" 2>&1 || { cat "$BATS_TEST_TMPDIR/fsck"; return 1; }
    # The last git of a landing that was killed is asked to end, and takes its lock along.
    wait_until 20 without_locks || { find .git -name '*.lock' -o -name 'tmp_objdir-*'; return 1; }
}

without_locks() { [ -z "$(find .git -name '*.lock' -o -name 'tmp_objdir-*')" ]; }

# state_is NAME STATE
state_is() {
    local is
    is=$(hl --json land show "$1" | jq -r .state)
    [ "$is" = "$2" ] || { echo "$1 is $is, not $2"; hl land show "$1"; return 1; }
}
