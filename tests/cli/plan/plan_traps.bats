#!/usr/bin/env bats
# What goes wrong around an overlay: each trap by its number, seen from outside.

load ../plan_helper

setup() { plan_setup; T=$ROOM/T; }
teardown() { plan_teardown; }

attr() { python3 -c 'import os, sys; print(sorted((n, os.getxattr(sys.argv[1], n, follow_symlinks=False)) for n in os.listxattr(sys.argv[1], follow_symlinks=False) if n.startswith("user.")))' "$1"; }
set_attr() { python3 -c 'import os, sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())' "$@"; }

opaque() {
    T=$ROOM/T
    mkdir "$T/d"; echo old >"$T/d/old"; mkdir "$T/d/below"; echo x >"$T/d/below/x"
    own "$T"
    needs_overlay
    plan_over "$T"
    inside 'cd "$1"; rm -r d; mkdir d; echo new >d/new' "$T"
    hp -q plan commit p
    [ "$(ls -A "$T/d")" = new ]
    [ "$(attr "$T/d")" = '[]' ]
}

@test "trap 15: a directory that was removed and made again loses its old children at the commit" { both opaque; }

whiteouts() {
    T=$ROOM/T
    for i in 1 2 3; do echo $i >"$T/f$i"; done
    own "$T"
    needs_overlay
    plan_over "$T"
    inside 'cd "$1"; rm f1 f2 f3' "$T"
    [ "$(hp plan diff p --name-only | sort | tr '\n' ' ')" = 'f1 f2 f3 ' ]
    run hp --json plan commit p
    [ "$(jq -c '[.added, .changed, .deleted]' <<<"$output")" = '[0,0,3]' ]
    [ -z "$(ls -A "$T")" ]
}

@test "trap 16: three deletions are three, though their whiteouts are one inode" { both whiteouts; }

@test "trap 17: an empty file with overlayfs' whiteout attribute is a deletion, in a directory that says so" {
    mkdir "$T/d"; echo gone >"$T/d/gone"; echo empty >"$T/d/empty"
    needs_overlay
    plan_over "$T"
    inside 'cd "$1"; : >d/empty; echo n >d/n' "$T"
    : >"$(upper 1)/d/gone"
    set_attr "$(upper 1)/d/gone" user.overlay.whiteout y
    set_attr "$(upper 1)/d" user.overlay.opaque x
    hp -q plan commit p
    [ "$(ls -A "$T/d" | tr '\n' ' ')" = 'empty n ' ]
    [ ! -s "$T/d/empty" ]
    [ "$(attr "$T/d")" = '[]' ]
}

escaped() {
    T=$ROOM/T
    echo a >"$T/a"; mkdir "$T/d"; echo x >"$T/d/x"
    own "$T"
    needs_overlay
    plan_over "$T"
    inside 'cd "$1"; python3 -c "import os; os.setxattr(\"a\", \"user.overlay.mine\", b\"1\"); os.setxattr(\"d\", \"user.overlay.mine\", b\"2\")"; echo n >d/n; mkdir e; echo x >e/x' "$T"
    hp -q plan commit p
    [ "$(attr "$T/a")" = "[('user.overlay.mine', b'1')]" ]
    [ "$(attr "$T/d")" = "[('user.overlay.mine', b'2')]" ]
    [ "$(attr "$T/d/n")$(attr "$T/e")$(attr "$T/e/x")" = '[][][]' ]
}

@test "trap 18: overlayfs' attributes do not reach the target; those of the user with such names do" { both escaped; }

hard_linked() {
    T=$ROOM/T
    echo a >"$T/a"; ln "$T/a" "$T/a2"
    own "$T"
    needs_overlay
    plan_over "$T"
    inside 'echo A >>"$1/a"' "$T"
    rm "$T/a"
    run hp plan commit p
    [ "$status" -eq 1 ]
    echo "$output"
    [[ "$output" == *deleted-meanwhile*a* || "$output" == *name-unknown*a* ]] # the second: before the census came to it
    [ ! -e "$T/a" ]
    [ "$(cat "$T/a2")" = a ]
}

@test "trap 19: a changed hard link whose file was deleted meanwhile is a conflict, not a new file" { both hard_linked; }

survivor() {
    T=$ROOM/T
    echo a >"$T/a"
    own "$T"
    needs_overlay
    plan_over "$T"
    mkfifo "$ROOM/stop" "$ROOM/on"; own "$ROOM/stop" "$ROOM/on"
    exec 8<>"$ROOM/on"
    # Opens the target's file, forks twice, and lives on when its command has ended.
    inside '(setsid bash -c "exec 3>>\"\$1/a\" </dev/null >/dev/null 2>&1; echo >\"\$2/on\"; read -r <\"\$2/stop\"; echo late >&3; echo >\"\$2/on\"" x "$1" "$2" &)' "$T" "$ROOM"
    read -r -t 20 <&8
    for verb in commit rollback "rm --discard"; do
        run hp plan ${verb%% *} p $([ "$verb" = "${verb#* }" ] || echo "${verb#* }")
        [ "$status" -eq 1 ]
        [[ "$output" == *"still in the sandbox"* ]]
    done
    [ "$(cat "$T/a")" = a ]
    echo >"$ROOM/stop"
    read -r -t 20 <&8
    for _ in $(seq 200); do
        run hp plan commit p
        [ "$status" -eq 1 ] || break
        sleep 0.05
    done
    exec 8>&-
    [ "$status" -eq 0 ]
    [ "$(cat "$T/a")" = $'a\nlate' ]
}

@test "trap 25: a process left in the sandbox holds up commit, rollback and rm, and its last write is not lost" { both survivor; }

@test "trap 25: a copy with a file that is still written to, also below a new directory, is not committed" {
    echo a >"$T/a"
    hp -q plan new p
    hp -q plan add p s "$T" --strategy copy
    C=$(hp plan path p s)
    mkdir "$C/new"
    exec 7>"$C/new/f"
    run hp plan commit p
    [ "$status" -eq 1 ]
    [[ "$output" == *open-for-writing* ]]
    [ ! -e "$T/new" ]
    echo done >&7
    exec 7>&-
    hp -q plan commit p
    [ "$(cat "$T/new/f")" = 'done' ]
}

two_edits() {
    T=$ROOM/T
    printf 'user text\n' >"$T/notes.md"
    own "$T"
    needs_overlay
    plan_over "$T"
    local bin=$HOLDFAST
    [ "$as_user" = 0 ] || bin=$ROOM/holdfast
    inside '"$2" -q file block "$1/notes.md" agent --text inside' "$T" "$bin"
    hp -q file block "$T/notes.md" other --text outside
    run hp plan commit p
    [ "$status" -eq 1 ]
    [[ "$output" == *changed*notes.md* ]]
    grep -q outside "$T/notes.md"
    ! grep -q inside "$T/notes.md"
}

@test "trap 27: edits of one shared file inside and outside end in a conflict, not in a lost update" { both two_edits; }

# In step with a shell inside: step SCRIPT runs it there and waits until it is done.
step() { echo "$1; echo >'$ROOM/done'" >&9; read -r -t 20 <&8; }

@test "trap 29: a replaced or new file that the sandbox never saw is a conflict; the user's version stays" {
    echo old >"$T/replaced"; echo old >"$T/in-place"
    needs_overlay
    plan_over "$T"
    mkfifo "$ROOM/in" "$ROOM/done"
    hp -q plan enter p -- sh <"$ROOM/in" &
    spawned+=($!)
    exec 9>"$ROOM/in" 8<>"$ROOM/done"
    step "cd '$T'; cat replaced in-place >/dev/null; [ ! -e fresh ]"
    echo user >"$T/.tmp"; mv "$T/.tmp" "$T/replaced"
    echo user >"$T/fresh"
    echo user >"$T/in-place"
    step "echo agent >>replaced; echo agent >fresh; echo agent >>in-place"
    exec 9>&-
    wait "${spawned[0]}"
    exec 8>&-
    run hp --json plan commit p
    [ "$status" -eq 1 ]
    [ "$(jq -r '[.conflicts[].path] | sort | join(" ")' <<<"$(grep '^{' <<<"$output")")" = 'fresh in-place replaced' ]
    [ "$(cat "$T/replaced" "$T/fresh" "$T/in-place")" = $'user\nuser\nuser' ]
}

@test "trap 32, L10: a sync that fails first or last leaves all old and says so, or all new" {
    command -v strace >/dev/null || skip "needs strace"
    for error in ENOSPC EDQUOT EIO; do
        for when in 1 2; do
            rm -rf "$T"; mkdir "$T"; echo a >"$T/a"; echo b >"$T/b"
            hp -q plan new p
            hp -q plan add p s "$T"
            hp -q plan enter p -- sh -c "cd '$T'; echo A >a; rm b; echo c >c"
            run env ASAN_OPTIONS=detect_leaks=0 strace -f -o "$ROOM/log" -e trace=syncfs -e "inject=syncfs:error=$error:when=$when" "$HOLDFAST" plan commit p
            echo "$error $when: $status $output"
            grep -q INJECTED "$ROOM/log"
            if [ "$status" -eq 0 ]; then
                [ "$(cat "$T"/*)" = $'A\nc' ]
            else
                [ "$status" -eq 4 ]
                [ "$(cat "$T"/*)" = $'a\nb' ]
                [ "$(hp --json plan show p | jq -r .state)" = ACTIVE ]
                hp -q plan commit p
                [ "$(cat "$T"/*)" = $'A\nc' ]
            fi
            hp -q plan rm p
        done
    done
}

@test "trap 32: a target on a full file system stays as it was; the sandbox is kept and lands when there is room" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount"
    mkdir "$ROOM/small"
    mount -t tmpfs -o size=256k none "$ROOM/small" || skip "no tmpfs here"
    echo a >"$ROOM/small/a"; head -c 150000 /dev/zero >"$ROOM/small/ballast"
    before=$(tree "$ROOM/small")
    plan_over "$ROOM/small"
    inside 'cd "$1"; echo A >a; head -c 150000 /dev/urandom >big' "$ROOM/small"
    run hp plan commit p
    echo "$output"
    after=$(tree "$ROOM/small")
    rm "$ROOM/small/ballast"
    run_status=$status
    hp -q plan commit p
    big=$(stat -c %s "$ROOM/small/big")
    umount "$ROOM/small"
    [ "$run_status" -eq 4 ]
    [[ "$output" == *"No space left"* ]]
    [ "$after" = "$before" ]
    [ "$big" -eq 150000 ]
}

nested_sandbox() {
    T=$ROOM/T
    own "$T"
    needs_overlay
    as unshare -Ur true || skip "NO USER NAMESPACES FOR THIS USER"
    plan_over "$T"
    inside 'unshare -Ur true'
    hp -q run x --in "$T" --readonly-rest -- unshare -Ur true
}

@test "trap 33: a command's own sandbox works inside, also with --readonly-rest: /proc stays writable" { both nested_sandbox; }

@test "trap 41: a new directory lands by one rename, however much is in it" {
    command -v strace >/dev/null || skip "needs strace"
    needs_overlay
    for n in 10 1500; do
        hp -q plan new p
        hp -q plan add p s "$T"
        inside 'cd "$1"; mkdir "n$2"; cd "n$2"; for ((i = 0; i < $2; i++)); do echo >"f$i"; done' "$T" $n
        ASAN_OPTIONS=detect_leaks=0 strace -f -o "$ROOM/log.$n" -e trace=renameat2 "$HOLDFAST" -q plan commit p
        [ "$(ls "$T/n$n" | wc -l)" -eq $n ]
        hp -q plan rm p
    done
    [ "$(grep -c 'renameat2(' "$ROOM/log.10")" -eq "$(grep -c 'renameat2(' "$ROOM/log.1500")" ]
}

@test "trap 42: a tree that was removed and made again lands whole, and without its user's later changes lost" {
    mkdir -p "$T/d"; for i in 1 2 3 4 5; do echo $i >"$T/d/f$i"; echo $i >"$T/f$i"; done
    needs_overlay
    plan_over "$T"
    inside 'cp -a "$1" "$2/copy"; cd "$1"; rm -rf ./*; cp -a "$2/copy/." .; echo changed >f1; rm f2' "$T" "$ROOM"
    cp -a "$T" "$ROOM/model"; (cd "$ROOM/model" && echo changed >f1 && rm f2)
    hp -q plan new q; hp -q plan add q s "$T"
    hp -q plan enter q -- bash -euc 'cd "$1"; cp -a . "$2/copy2"; rm -rf ./*; cp -a "$2/copy2/." .' x "$T" "$ROOM"
    hp -q plan commit p
    [ "$(tree "$T")" = "$(tree "$ROOM/model")" ]
    # q put back what it found: where p changed something, that is a conflict.
    run hp plan commit q
    [ "$status" -eq 1 ]
    [ "$(tree "$T")" = "$(tree "$ROOM/model")" ]
}
