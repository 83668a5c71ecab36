#!/usr/bin/env bats
# plan diff, commit, undo, rollback and recover, with real sandboxes.

setup() {
    D=$(mktemp -d)
    export HOLDFAST_DIR=$D/state
    T=$D/t
    mkdir -p "$T/sub/deep" "$T/gone"
    echo a >"$T/a"; echo b >"$T/sub/b"; echo c >"$T/sub/deep/c"; echo g >"$T/gone/g"
    ln -s a "$T/link"
    hf() { "$HOLDFAST" "$@"; }
    hf plan new p
    hf plan add p s "$T"
}

teardown() {
    chmod -R u+rwx "$D"
    rm -rf "$D"
}

inside() { hf plan enter p -- sh -ec "cd '$T'; $1"; }

tree() { (cd "$1" && find . -mindepth 1 -printf '%P %M %l\n' | sort; cd "$1" && find . -type f | sort | xargs -d '\n' -r cat); }

@test "a commit brings new, changed and deleted entries, types, modes and opaque directories" {
    change='echo A >a; rm sub/b; echo new >n; mkdir -p w/x; echo y >w/x/y; rm -r sub/deep; mkdir sub/deep; echo o >sub/deep/o; rm -r gone; echo was-dir >gone; rm link; mkdir link; chmod 700 sub; ln n n2'
    cp -a "$T" "$D/model"
    (cd "$D/model" && sh -ec "$change")
    inside "$change"
    run hf plan commit p
    echo "$output"
    [ "$status" -eq 0 ]
    diff <(tree "$D/model") <(tree "$T")
    [ "$T/n" -ef "$T/n2" ]
    [ -z "$(getfattr -R -d -m 'user.overlay' "$T" 2>/dev/null | grep overlay)" ]
    [ "$(hf --json plan show p | grep -o '"state":"[A-Z]*"')" = '"state":"COMMITTED"' ]
}

@test "where times answer everything, a commit neither reads the census nor waits for it" {
    command -v strace >/dev/null || skip "needs strace"
    inside 'echo A >a; echo new >n'
    ASAN_OPTIONS=detect_leaks=0 strace -f -o "$D/log" -e trace=openat "$HOLDFAST" plan commit p
    grep -q plan.json "$D/log"
    ! grep census "$D/log"
}

@test "L8: a commit leaves exactly one event, and so do a conflict and an undo" {
    inside 'echo A >a'
    echo mine >"$T/a"
    run hf plan commit p
    [ "$status" -eq 1 ]
    [ "$(hf journal query --event plan_conflict | wc -l)" -eq 1 ]
    hf plan commit p --force a
    [ "$(hf journal query --event plan_committed | wc -l)" -eq 1 ]
    hf plan undo p
    [ "$(hf journal query --event plan_undone | wc -l)" -eq 1 ]
}

@test "L11: a target that changed meanwhile is a conflict, and nothing is changed" {
    inside 'echo A >a; echo n >n'
    echo mine >"$T/a"
    run hf --json plan commit p
    [ "$status" -eq 1 ]
    [[ "$output" == *'"kind":"changed"'* && "$output" == *'"path":"a"'* ]]
    [ "$(cat "$T/a")" = mine ]
    [ ! -e "$T/n" ]
}

@test "L11: deleted meanwhile; equal changes are no conflict; different new files in one directory are none" {
    inside 'echo A >a; echo B >sub/b; echo mine >sub/mine'
    echo B >"$T/sub/b"
    echo theirs >"$T/sub/theirs"
    rm "$T/a"
    run hf plan commit p
    [ "$status" -eq 1 ]
    [[ "$output" == *deleted-meanwhile*a* ]]
    [[ "$output" != *sub/* ]]
    hf plan commit p --force a
    [ "$(cat "$T/a" "$T/sub/b" "$T/sub/mine" "$T/sub/theirs")" = "$(printf 'A\nB\nmine\ntheirs')" ]
}

@test "L11: a directory swapped for one whose files are all older is a conflict (trap 20)" {
    mkdir "$T/other"; echo x >"$T/other/b"
    hf plan new q; hf plan add q s "$T"
    hf plan enter q -- sh -ec "echo B >'$T/sub/b'"
    mv "$T/sub" "$T/sub.bak"; mv "$T/other" "$T/sub"
    run hf plan commit q
    [ "$status" -eq 1 ]
    [ "$(cat "$T/sub/b")" = x ]
}

@test "L11: a new file in a directory that the sandbox deleted is a conflict" {
    inside 'rm -r gone'
    echo x >"$T/gone/new"
    run hf plan commit p
    [ "$status" -eq 1 ]
    [[ "$output" == *changed-below*gone/new* ]]
    [ -e "$T/gone/g" ]
}

@test "a change whose mtime was set back is a conflict (trap 22)" {
    inside 'echo A >a'
    echo mine >"$T/a"; touch -d '2001-01-01' "$T/a"
    run hf plan commit p
    [ "$status" -eq 1 ]
}

@test "a target's file that is open for writing is a conflict (trap 24)" {
    inside 'echo A >a'
    exec 7>>"$T/a"
    run hf plan commit p
    exec 7>&-
    [ "$status" -eq 1 ]
    [[ "$output" == *open-for-writing*a* ]]
    hf plan commit p
    [ "$(cat "$T/a")" = A ]
}

# A store into a page that was dirty before the sandbox changes no time stamp.
@test "a target's file that is mapped for writing, and closed, is a conflict (trap 24)" {
    cd "$D"
    mkdir u; echo a >u/a; mkfifo go
    timeout 60 python3 -c 'import mmap, os
fd = os.open("u/a", os.O_RDWR)
page = mmap.mmap(fd, 2)
os.close(fd)
page[0:1] = b"m"
open("mapped", "w").close()
open("go").read()' &
    until [ -e mapped ]; do sleep 0.05; done
    hf plan new q
    hf plan add q s u
    hf plan enter q -- sh -c 'echo A >u/a'
    run hf plan commit q
    echo go >go
    wait
    [ "$status" -eq 1 ]
    [[ "$output" == *open-for-writing*a* ]]
    hf plan commit q
    [ "$(cat u/a)" = A ]
}

@test "an empty commit syncs nothing (trap 39), one with a change exactly twice" {
    command -v strace >/dev/null || skip "needs strace"
    hf plan enter p -- true
    ASAN_OPTIONS=detect_leaks=0 strace -f -o "$D/log" -e trace=syncfs,fsync,fdatasync "$HOLDFAST" plan commit p
    [ "$(grep -c sync "$D/log")" -eq 0 ]
    hf plan new q; hf plan add q s "$T"; hf plan enter q -- sh -ec "echo A >'$T/a'"
    ASAN_OPTIONS=detect_leaks=0 strace -f -o "$D/log" -e trace=syncfs,fsync,fdatasync "$HOLDFAST" plan commit q
    [ "$(grep -c 'syncfs(' "$D/log")" -eq 2 ]
    [ "$(grep -c 'fsync(\|fdatasync(' "$D/log")" -eq 0 ]
}

@test "L5: a stale fence refuses the commit" {
    token=$(hf lock acquire build --pid $$)
    inside 'echo A >a'
    hf lock release build --token "$token"
    run hf plan commit p --fence "build:$token"
    [ "$status" -eq 3 ]
    [ "$(cat "$T/a")" = a ]
    token=$(hf lock acquire build --pid $$)
    hf plan commit p --fence "build:$token"
    [ "$(cat "$T/a")" = A ]
    # What is committed stays so, and a holder that has lost its lock does not take it for its own success.
    hf plan commit p --fence "build:$token"
    hf lock release build --token "$token"
    run hf plan commit p --fence "build:$token"
    [ "$status" -eq 3 ]
    hf plan commit p
}

@test "an undo takes a commit back; a file changed since is a conflict" {
    before=$(tree "$T")
    inside 'echo A >a; rm -r gone; mkdir n; echo x >n/x'
    hf plan commit p
    echo later >"$T/a"
    run hf plan undo p
    [ "$status" -eq 1 ]
    [ "$(cat "$T/a")" = later ]
    [ ! -e "$T/gone" ]
    hf plan undo p --force a
    [ "$(tree "$T")" = "$before" ]
}

@test "a rollback drops the changes and leaves the targets alone" {
    inside 'echo A >a'
    hf plan rollback p
    [ "$(cat "$T/a")" = a ]
    run hf plan commit p
    [ "$status" -eq 1 ]
}

@test "git's index.lock of another process is a conflict, and ours is gone afterwards" {
    command -v git >/dev/null || skip "needs git"
    mkdir "$D/r"; cd "$D/r"
    git init -q; git config user.email a@b; git config user.name a; echo 1 >f; git add f; git commit -qm one
    hf plan new q; hf plan add q s "$D/r"
    hf plan enter q -- sh -ec "cd '$D/r'; echo 2 >f; git commit -qam two"
    touch "$D/r/.git/index.lock"
    run hf plan commit q
    [ "$status" -eq 1 ]
    [[ "$output" == *git-busy* ]]
    rm "$D/r/.git/index.lock"
    hf plan commit q
    [ ! -e "$D/r/.git/index.lock" ]
    [ "$(git -C "$D/r" log --format=%s | head -1)" = two ]
    [ -z "$(git -C "$D/r" status --porcelain)" ]
}

@test "a target on another mount than the state directory is committed by copying (trap 30)" {
    [ -w /dev/shm ] || skip "needs /dev/shm"
    O=$(mktemp -d /dev/shm/hf-plan-XXXXXX)
    echo a >"$O/a"
    hf plan new q; hf plan add q s "$O"
    hf plan enter q -- sh -ec "cd '$O'; echo A >a; mkdir d; echo x >d/x; ln d/x d/y"
    hf plan commit q
    [ "$(cat "$O/a" "$O/d/x")" = "$(printf 'A\nx')" ]
    [ "$O/d/x" -ef "$O/d/y" ]
    [ -z "$(ls -A "$O" | grep holdfast)" ]
    rm -rf "$O"
}

@test "L12: names with newlines, invalid UTF-8 and 255 bytes are committed" {
    long=$(printf 'x%.0s' $(seq 255))
    inside "printf 1 >\"\$(printf 'new\nline')\"; printf 2 >\"\$(printf 'bad\\377')\"; printf 3 >$long"
    run hf plan diff p --name-only -z
    hf plan commit p
    [ "$(cat "$T/$(printf 'new\nline')" "$T/$(printf 'bad\377')" "$T/$long")" = 123 ]
}

@test "--ignore leaves out what matches, --depends and --strict demand more" {
    inside 'mkdir cache; echo x >cache/x; echo A >a'
    echo theirs >"$T/sub/b"
    run hf plan commit p --depends sub/b
    [ "$status" -eq 1 ]
    [[ "$output" == *depends*sub/b* ]]
    run hf plan commit p --strict
    [ "$status" -eq 1 ]
    hf plan commit p --ignore 'cache/'
    [ "$(cat "$T/a")" = A ]
    [ ! -e "$T/cache" ]
}

@test "clone and copy are committed by their manifest" {
    change='echo A >a; rm -r gone; mkdir w; echo y >w/y; echo B >>sub/b'
    cp -a "$T" "$D/model"
    (cd "$D/model" && sh -ec "$change")
    hf plan new q; hf plan add q s "$T" --strategy copy
    (cd "$(hf plan path q s)" && sh -ec "$change")
    hf plan diff q
    hf plan commit q
    diff <(tree "$D/model") <(tree "$T")
    hf plan new r; hf plan add r s "$T" --strategy copy
    echo mine >"$T/a"
    echo other >"$(hf plan path r s)/a"
    run hf plan commit r
    [ "$status" -eq 1 ]
    [ "$(cat "$T/a")" = mine ]
}

@test "L11: of eight processes that commit one plan exactly one does it, and all learn of it" {
    inside 'for i in 1 2 3 4 5 6 7 8 9; do echo $i >n$i; done'
    for i in 1 2 3 4 5 6 7 8; do
        "$HOLDFAST" --json plan commit p -w 30s >"$D/out.$i" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid"; done
    [ "$(grep -l '"by_other":false' "$D"/out.* | wc -l)" -eq 1 ]
    [ "$(grep -l '"by_other":true' "$D"/out.* | wc -l)" -eq 7 ]
    [ "$(hf journal query --event plan_committed | wc -l)" -eq 1 ]
}

@test "two commits to one file: the older is not taken back under the newer, and after it only with --force" {
    inside 'echo one >a'
    hf plan commit p
    hf plan new q; hf plan add q s "$T"
    hf plan enter q -- sh -ec "echo two >'$T/a'"
    hf plan commit q
    run hf plan undo p
    [ "$status" -eq 1 ]
    [ "$(cat "$T/a")" = two ]
    hf plan undo q
    [ "$(cat "$T/a")" = one ]
    run hf plan undo p
    [ "$status" -eq 1 ]
    [ "$(cat "$T/a")" = one ]
    hf plan undo p --force a
    [ "$(cat "$T/a")" = a ]
}

@test "stacked commits: one that touches nothing of the other is taken back under it; a second undo is refused" {
    before=$(tree "$T")
    inside 'echo one >a; echo p >sub/of-p'
    hf plan commit p
    hf plan new q; hf plan add q s "$T"
    hf plan enter q -- sh -ec "cd '$T'; echo q >sub/of-q; rm -r gone"
    hf plan commit q
    hf plan undo p
    [ "$(cat "$T/a")" = a ]
    [ ! -e "$T/sub/of-p" ]
    [ "$(cat "$T/sub/of-q")" = q ]
    run hf plan undo p
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"only a commit can be undone"* ]]
    [ ! -e "$T/gone" ]
    hf plan undo q
    [ "$(tree "$T")" = "$before" ]
    run hf plan undo q
    [ "$status" -eq 1 ]
    [ "$(tree "$T")" = "$before" ]
}

@test "stacked commits: taken back in the reverse order they give each tree of before" {
    trees=() plans=(one two three)
    for plan in "${plans[@]}"; do
        trees+=("$(tree "$T")")
        hf plan new $plan; hf plan add $plan s "$T"
        hf plan enter $plan -- sh -ec "cd '$T'; echo $plan >$plan; mkdir -p d-$plan/x; echo $plan >d-$plan/x/f; chmod 700 sub"
        hf plan commit $plan
    done
    for i in 2 1 0; do
        hf plan undo "${plans[i]}"
        diff <(tree "$T") <(echo "${trees[i]}")
    done
}
