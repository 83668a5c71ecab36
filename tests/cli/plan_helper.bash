# tests/cli/plan_helper.bash - what the tests of plans share, beside helper.bash.
#
# Most of them run twice: as the user of the suite and, if that is root, as an ordinary user (uid 65534) too.

# plan_as_user FILE...: go on as the ordinary user; skips the test where that cannot be done. Everything below a new
# $ROOM belongs to that user; the binary is copied because it may stand where that user cannot read.
plan_as_user() {
    [ "$(id -u)" = 0 ] || return 0
    command -v setpriv >/dev/null || skip "no setpriv"
    as_user=1
    chmod 755 "$ROOM"
    cp "$HOLDFAST" "$ROOM/holdfast"
    chown -R 65534:65534 "$ROOM"
}

# A directory that the ordinary user reaches: bats makes its own below a 0700 one.
plan_room() {
    ROOM=$(mktemp -d)
    as_user=0
    export HOLDFAST_DIR="$ROOM/state" HOME="$ROOM/home"
    mkdir -p "$ROOM/home" "$ROOM/T"
    git config --file "$ROOM/home/.gitconfig" user.name tester
    git config --file "$ROOM/home/.gitconfig" user.email tester@example.org
    cd "$ROOM" || return 1
}

plan_room_done() {
    cd / || return 1
    # A mode 000 directory of an overlay stops rm.
    chmod -R u+rwx "$ROOM" 2>/dev/null || true
    rm -rf "$ROOM"
}

# as COMMAND...: as the user of this test
as() {
    if [ "$as_user" = 1 ]; then
        timeout --kill-after=5 60 setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        timeout --kill-after=5 60 "$@"
    fi
}

# hp ARGS...: holdfast as the user of this test
hp() {
    if [ "$as_user" = 1 ]; then as "$ROOM/holdfast" "$@"; else as "$HOLDFAST" "$@"; fi
}

# inside SCRIPT [ARGS...]: a script inside plan p
inside() { hp -q plan enter p -- bash -euc "$1" inside "${@:2}"; }

# needs_overlay: skips, loudly, where this machine has no overlay for the user of this test
needs_overlay() {
    hp -q plan new probe
    mkdir -p "$ROOM/probe"
    [ "$as_user" = 0 ] || chown 65534:65534 "$ROOM/probe"
    run hp plan add probe probe "$ROOM/probe" --strategy overlay
    [ "$status" -eq 0 ] || skip "NO OVERLAY HERE: $output"
    hp -q plan rm probe
}

# plan_over DIR...: plan p with a sandbox s1, s2, ... over each
plan_over() {
    local n=0 dir
    hp -q plan new p
    for dir in "$@"; do
        n=$((n + 1))
        hp -q plan add p "s$n" "$dir"
    done
}

# upper N: the upper directory of sandbox sN of plan p
upper() { echo "$HOLDFAST_DIR/plans/p/s/s$1/u"; }

# tree DIR: names, types, modes and contents, to be compared
tree() { (cd "$1" && find . -printf '%P %y %m %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r md5sum); }

plan_setup() { spawned=(); plan_room; }

plan_teardown() {
    kill_spawned
    plan_room_done
}

both() { # both FUNCTION: as the user of the suite, then as the ordinary user
    "$1"
    [ "$(id -u)" = 0 ] || return 0
    plan_room_done
    plan_room
    plan_as_user
    "$1"
}

own() { [ "$as_user" = 0 ] || chown -R 65534:65534 "$@"; }
