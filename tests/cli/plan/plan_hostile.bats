#!/usr/bin/env bats
# Plans in the hands of a hostile, tired or unlucky user: the message, the exit status, and what the targets have then.

load ../plan_helper

setup() {
    plan_setup
    T=$ROOM/T
    mkdir "$T/sub"
    echo a >"$T/a"; echo b >"$T/sub/b"
}
teardown() { plan_teardown; }

state() { hp --json plan show p | jq -r .state; }

# Kills a commit of four operations at its Nth rename.
killed_commit() {
    command -v strace >/dev/null || skip "needs strace"
    plan_over "$T"
    inside 'cd "$1"; echo A >a; echo n >n; rm -r sub' "$T"
    strace -f -o /dev/null -e trace=renameat2 -e "inject=renameat2:signal=KILL:when=$1" "$HOLDFAST" plan commit p || true
    [ "$(state)" = PREPARED ]
}

landed() { [ "$(ls -A "$T" | tr '\n' ' ')$(cat "$T/a")" = 'a n A' ]; }

@test "L10: enter, add and rm finish a commit that was killed before they do anything else" {
    mkdir "$ROOM/other"
    killed_commit 2
    run hp plan enter p -- true
    [ "$status" -ne 0 ]
    [[ "$output" == *COMMITTED* ]]
    landed
    hp -q plan undo p
    hp -q plan rm p
    killed_commit 2
    run hp plan add p more "$ROOM/other"
    [ "$status" -eq 1 ]
    [[ "$output" == *COMMITTED* ]]
    landed
    hp -q plan undo p
    hp -q plan rm p
    killed_commit 3
    hp -q plan rm p
    landed
}

@test "L10: recovering twice changes nothing the second time" {
    killed_commit 2
    [ "$(hp --json plan recover p | jq .recovered)" = true ]
    landed
    before=$(tree "$T")
    [ "$(hp --json plan recover p | jq .recovered)" = false ]
    [ "$(hp --json plan recover | jq .recovered)" = false ]
    [ "$(tree "$T")" = "$before" ]
    [ "$(hp journal query --event plan_committed | wc -l)" -le 1 ]
}

@test "a commit without an output to write to is still a commit: exit 0" {
    for out in '>&-' '>&- 2>&-' '<&- >&- 2>&-' '>/dev/full'; do
        hp -q plan new p
        hp -q plan add p s "$T"
        inside 'date +%N >>"$1/a"' "$T"
        lines=$(wc -l <"$T/a")
        eval "\"\$HOLDFAST\" --json plan commit p $out"
        [ "$(state)" = COMMITTED ]
        [ "$(wc -l <"$T/a")" -eq $((lines + 1)) ]
        hp -q plan rm p
    done
}

@test "an umask of 0177 or 0777 spoils neither the state nor the target" {
    for mask in 0177 0777; do
        (
            umask $mask
            hp -q plan new p
            hp -q plan add p s "$T"
            hp -q plan add p c "$T/sub" --strategy copy
            hp -q plan enter p -- bash -c 'echo A >"$1/a"; echo n >"$1/n.$2"' x "$T" $mask
            hp -q plan commit p
            hp -q plan rm p
        )
        [ "$(stat -c %a "$T/a")" = 644 ]
        [ "$(stat -c %a "$T/n.$mask")" = "$([ $mask = 0177 ] && echo 600 || echo 0)" ]
    done
}

@test "L12: a target replaced by a symlink between add and commit is refused, wherever the link leads" {
    plan_over "$T"
    inside 'echo A >"$1/a"' "$T"
    mv "$T" "$ROOM/real"
    mkdir "$ROOM/elsewhere"; echo e >"$ROOM/elsewhere/a"
    for to in "$ROOM/elsewhere" "$ROOM/real" /nowhere; do
        ln -s "$to" "$T"
        for verb in 'commit p' 'enter p -- true'; do
            run hp plan $verb
            [ "$status" -ne 0 ]
            [[ "$output" == *"symbolic link"* ]]
        done
        rm "$T"
    done
    [ "$(cat "$ROOM/elsewhere/a" "$ROOM/real/a")" = $'e\na' ]
    # Another directory in its place is refused as well; the one that was added is taken again.
    mkdir "$T"
    run hp plan commit p
    [ "$status" -eq 3 ]
    rmdir "$T"
    run hp plan commit p
    [ "$status" -eq 3 ]
    [[ "$output" == *gone* ]]
    mv "$ROOM/real" "$T"
    hp -q plan commit p
    [ "$(cat "$T/a")" = A ]
}

@test "names: 300 bytes are a usage error, a newline is shown escaped, dots lead nowhere" {
    long=$(printf 'x%.0s' $(seq 300))
    run hp plan new "$long"
    [ "$status" -eq 2 ]
    [[ "$output" == *"at most 80"* ]]
    hp -q plan new $'a\nb'
    hp -q plan new ..
    run hp plan add $'a\nb' "$long" "$T"
    [ "$status" -eq 2 ]
    hp -q plan add $'a\nb' $'c\nd' "$T"
    hp -q plan add .. ../.. "$T"
    run hp plan list
    [ "${#lines[@]}" -eq 3 ]
    [[ "$output" == *'a\x0ab'*'c\x0ad'* ]]
    hp -q plan rm $'a\nb'
    hp -q plan rm ..
    [ -z "$(ls -A "$HOLDFAST_DIR/plans")" ]
}

@test "sockets, FIFOs and devices: listed, never committed, never opened" {
    mkfifo "$T/theirs"
    needs_overlay
    plan_over "$T"
    inside 'cd "$1"; mkfifo fifo; mkdir d; mkfifo d/fifo; echo x >d/x; rm a; mkfifo a; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")"' "$T"
    run hp plan diff p
    [ "$(grep -c '^S ' <<<"$output")" -eq 4 ]
    hp -q plan diff p --patch
    hp -q plan commit p
    [ "$(cd "$T" && find . -type p -o -type s)" = ./theirs ]
    [ "$(cat "$T/a" "$T/d/x")" = $'a\nx' ]
}

@test "commit and rm from inside the sandbox are refused; after the command both work" {
    needs_overlay
    plan_over "$T"
    inside 'echo A >"$1/a"; for verb in "commit p" "rm p --discard" "rollback p"; do r=0; "$2" plan $verb 2>>"$3" || r=$?; [ $r = 1 ]; done' "$T" "$HOLDFAST" "$ROOM/said"
    cat "$ROOM/said"
    [ "$(grep -c 'still in the sandbox' "$ROOM/said")" -eq 3 ]
    [ "$(cat "$T/a")" = a ]
    # also by a command that does so at once: it does not start before the plan's lock is given back
    for ((i = 0; i < 20; i++)); do
        run hp -q plan enter p -- "$HOLDFAST" plan commit p
        [ "$status" -eq 1 ]
        [[ $output == *"still in the sandbox"* ]]
    done
    hp -q plan commit p
    [ "$(cat "$T/a")" = A ]
    hp -q plan rm p
}

@test "L11: the second of two plans over one target learns which plan changed it" {
    hp -q plan new q
    hp -q plan add q s "$T"
    plan_over "$T"
    inside 'echo P >"$1/a"; rm "$1/sub/b"' "$T"
    hp -q plan enter q -- sh -c "echo Q >'$T/a'; echo Q >'$T/sub/b'"
    hp -q plan commit p
    run hp --json plan commit q
    [ "$status" -eq 1 ]
    json=$(grep '^{' <<<"$output")
    [ "$(jq -r '[.conflicts[] | .path + " " + .kind + " " + .by] | join(", ")' <<<"$json")" = 'a changed plan p, sub/b deleted-meanwhile plan p' ]
    run hp plan commit q
    [[ "$output" == *'2 conflicts'* ]]
    # The one that came first can be taken back, and then the other one fits no more by itself.
    hp -q plan undo p
    [ "$(cat "$T/a" "$T/sub/b")" = $'a\nb' ]
}

@test "rm --discard works on a full state directory, plain rm keeps work and removes what holds none" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount"
    mkdir "$ROOM/small"
    mount -t tmpfs -o size=400k none "$ROOM/small" || skip "no tmpfs here"
    export HOLDFAST_DIR=$ROOM/small/state
    hp -q plan new none
    hp -q plan enter clean --in "$T" -- true
    plan_over "$T"
    inside 'echo A >"$1/a"; head -c 900000 /dev/zero >"$1/big" 2>/dev/null || true' "$T"
    head -c 900000 /dev/zero >"$ROOM/small/ballast" 2>/dev/null || true
    run hp plan rm p
    plain=$status
    [ -e "$(upper 1)/a" ] && kept=1
    removed=0
    for name in none clean; do hp plan rm "$name" && removed=$((removed + 1)); done
    head -c 900000 /dev/zero >"$ROOM/small/more" 2>/dev/null || true
    run hp plan rm p --discard
    echo "$output"
    left=$(ls -A "$HOLDFAST_DIR/plans")
    umount "$ROOM/small"
    [ "$plain" -ne 0 ]
    [ "$kept" = 1 ]
    [ "$removed" -eq 2 ]
    [ "$status" -eq 0 ]
    [ -z "$left" ]
}

@test "--force without a path is the last word, or stands before an option; a path that is not changed is refused" {
    plan_over "$T"
    inside 'echo A >"$1/a"' "$T"
    echo mine >"$T/a"
    run hp plan commit p --force
    [ "$status" -eq 1 ]
    run hp plan commit p --force --strict
    [ "$status" -eq 1 ]
    run hp plan commit p --force nothing
    [ "$status" -eq 2 ]
    [ "$(cat "$T/a")" = mine ]
    hp -q plan commit p --force a
    [ "$(cat "$T/a")" = A ]
}

@test "plan diff inside its own sandbox says that it belongs outside" {
    plan_as_user
    needs_overlay
    plan_over "$T"
    program=$HOLDFAST
    [ "$as_user" = 0 ] || program=$ROOM/holdfast
    run inside '"$1" plan diff p' "$program"
    echo "$output"
    [ "$status" -eq 3 ]
    [[ "$output" == *"seen through a sandbox here; do this outside 'plan enter'"* ]]
}
