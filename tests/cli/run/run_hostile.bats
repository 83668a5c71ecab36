#!/usr/bin/env bats
# Agents and verifiers that misbehave in a transactional run. What must hold: when a run is reported, none of its processes lives;
# what is committed or lands is what was verified; after anything but success target and branch are as they were, and the work is kept.
load ../session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME="$BATS_TEST_TMPDIR/home"
    mkdir -p "$HOME" "$BATS_TEST_TMPDIR/desk"
    export DESK="$BATS_TEST_TMPDIR/desk"
    spawned=()
    git init -q -b main "$BATS_TEST_TMPDIR/repo"
    cd "$BATS_TEST_TMPDIR/repo" || return 1
    git config user.email tester@example.org
    git config user.name Tester
    echo ok >check
    echo 1 >file
    git add -A
    git commit -qm base
    git commit -q --allow-empty -m second
    head=$(git rev-parse main)
    hf plan new probe 2>/dev/null
    hf plan add probe p "$PWD" --strategy overlay >/dev/null 2>&1 || skip "no overlay here"
    hf -q plan rm probe --discard
    cat >"$DESK/daemon" <<'E'
#!/bin/bash
# Ignores what it can, and writes into the directory that it is in for as long as it lives.
trap '' TERM INT HUP
echo $$ >>"$DESK/daemons"
while :; do echo $RANDOM >scribble; echo x >>grows; done
E
    chmod +x "$DESK/daemon"
}

teardown() {
    local pid
    kill_spawned
    for pid in $(cat "$DESK/daemons" 2>/dev/null); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    wait
    chmod -R u+rwX "$BATS_TEST_TMPDIR" || true
}

# Three ways to stay behind; the last leaves its session, its environment and its parents.
DAEMONS='"$DESK/daemon" & setsid "$DESK/daemon" & (env -i DESK="$DESK" PATH="$PATH" setsid setsid "$DESK/daemon" </dev/null >/dev/null 2>&1 &);
    until [ "$(wc -l <"$DESK/daemons" 2>/dev/null)" -ge 3 ]; do sleep 0.02; done;'

# Is every daemon that was started dead?
none_lives() {
    local pid
    [ "$(wc -l <"$DESK/daemons")" -ge "${1:-3}" ] || { echo "they were not started"; return 1; }
    while read -r pid; do
        is_dead "$pid" || { echo "$pid lives"; return 1; }
    done <"$DESK/daemons"
}

go() { timeout --kill-after=5 60 "$HOLDFAST" run x --discard --in . --grace 300ms "$@"; }
unmoved() { [ "$(git rev-parse main)" = "$head" ] && [ -z "$(git status --porcelain)" ] || { git log --oneline main; git status --short; return 1; }; }
is_sound() { git fsck --strict >/dev/null 2>&1 && [ -z "$(git status --porcelain)" ] || { git fsck; git status --short; return 1; }; }
kept() { hf plan show run:x >/dev/null && [ "$(field x .outcome)" = "$1" ] || { hf plan list; hf ps x; return 1; }; }

@test "L7: daemons that ignore TERM and write into the sandbox are dead before plain files are committed, and the target is at rest then" {
    expect 0 go --land off -- bash -c "$DAEMONS echo 2 >file"
    none_lives
    [ "$(cat file)" = 2 ]
    before=$(cat scribble; wc -l <grows)
    says "3 processes"
    [ "$(cat scribble; wc -l <grows)" = "$before" ]
}

@test "L7: the same where it lands: what they wrote last is in the commit, or nothing of it" {
    expect 0 go --verify 'grep -qx ok check' -- bash -c "$DAEMONS echo 2 >file"
    none_lives
    is_sound
    [ "$(git rev-list --count main)" -eq 3 ]
    [ "$(git show main:file)" = 2 ]
}

@test "L7: one that moved itself into another cgroup is found and ended as well" {
    export PLACE
    PLACE=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [ "$(id -u)" = 0 ] && [ -n "$PLACE" ] && (echo 0 >"$PLACE/cgroup.procs") 2>/dev/null || skip "NO CGROUPS THAT CAN BE WRITTEN HERE"
    expect 0 go --land off -- bash -c '(echo 0 >"$PLACE/cgroup.procs"; exec setsid "$DESK/daemon" </dev/null >/dev/null 2>&1) &
        until [ -s "$DESK/daemons" ]; do sleep 0.02; done; echo 2 >file'
    none_lives 1
    [ "$(cat file)" = 2 ]
}

@test "an agent that ignores TERM at its deadline is killed with all it started; nothing is committed, and nothing lands" {
    for how in off HEAD; do
        rm -f "$DESK/daemons"
        expect 124 go --land $how --deadline 2s -- bash -c "trap '' TERM; $DAEMONS echo bad >check; while :; do sleep 1; done"
        none_lives
        unmoved
        kept timed-out
    done
}

@test "L14: an agent that kills its keeper, its supervisor or both: nothing is committed, nothing lands, the next run is not hindered" {
    for how in off HEAD; do
        for victim in '$PPID' '$(cut -d" " -f4 /proc/$PPID/stat)' '$(cut -d" " -f4 /proc/$PPID/stat) $PPID'; do
            run go --land $how -- bash -c "echo bad >check; kill -KILL $victim; sleep 60"
            [ "$status" -ne 0 ]
            unmoved
            hf -q reap --all >/dev/null 2>&1 || true
        done
    done
    expect 0 go --verify 'grep -qx ok check' -- sh -c 'echo 2 >file'
    [ "$(git show main:file)" = 2 ]
}

@test "L14: an agent that deletes .git, amends, resets or orphans its history lands nothing; the branch is as it was, its work is kept" {
    for script in 'rm -rf .git' 'git commit -q --amend -m rewritten' 'git reset -q --hard HEAD^; echo 3 >file; git commit -qam third' \
        'git checkout -q --orphan new; git commit -qm alone' 'git update-ref -d HEAD' 'echo "ref: refs/heads/nowhere" >.git/HEAD'; do
        expect 1 go -- sh -c "echo 2 >more; git add more; $script"
        unmoved
        [ "$(hf land show x --json | jq -r .state)" = rejected ]
        expect 0 hf land drop x
        run hf -q plan rm run:x --discard
    done
}

@test "an agent that runs gc, repacks, expires reflogs, switches branches or commits on one of its own lands; the repository is whole" {
    n=2
    for script in 'git reflog expire --expire=now --all; git gc -q --prune=now' 'git repack -qadf; git prune --expire=now' \
        'git checkout -q -b other' 'git checkout -q --detach' 'git worktree add -q ../elsewhere 2>/dev/null; git branch -D main 2>/dev/null || true' \
        'git config core.bare false; git config core.worktree "$PWD"; git pack-refs --all'; do
        expect 0 go --verify 'grep -qx ok check' -- sh -c "echo $n >n$n; git add n$n; git commit -qm n$n; $script"
        says "landed on main"
        n=$((n + 1))
        is_sound
        [ "$(git rev-list --count main)" -eq $n ]
    done
    [ "$(git branch --format='%(refname:short)')" = main ]
    rm -rf ../elsewhere
}

@test "L14: a verifier that crashes, hangs with daemons, or kills its parent says no: nothing is committed, nothing lands, none lives" {
    for how in off HEAD; do
        expect 1 go --land $how --verify 'echo bad >check; kill -SEGV $$' -- sh -c 'echo 2 >file'
        unmoved
        kept verify-failed
        rm -f "$DESK/daemons"
        expect 1 go --land $how --verify-deadline 2s --verify "trap '' TERM; $DAEMONS sleep 60" -- sh -c 'echo 2 >file'
        none_lives
        unmoved
        kept verify-failed
        run go --land $how --verify 'kill -KILL $PPID; sleep 60' -- sh -c 'echo 2 >file'
        [ "$status" -ne 0 ]
        unmoved
        hf -q reap --all >/dev/null 2>&1 || true
    done
}

@test "what a verifier writes is part of the change of plain files; of a landing nothing is, written or committed, the first time or as it lands" {
    expect 0 go --land off --keep always --verify 'echo made >built' -- sh -c 'echo 2 >file'
    [ "$(cat built file)" = $'made\n2' ]
    expect 0 hf plan undo run:x
    expect 0 hf plan rm run:x
    unmoved
    git update-index --assume-unchanged check # such a mark makes the landing verify again
    expect 0 go --verify 'echo >>"$DESK/times"; n=$(wc -l <"$DESK/times"); echo made >"built$n"; [ "$n" = 1 ] ||
        { echo 3 >file; git add -A; git commit -qm sly; git update-ref refs/heads/main HEAD; rm -rf .git/refs; }' -- sh -c 'echo 2 >file'
    is_sound
    [ "$(git rev-list --count main)" -eq 3 ]
    [ "$(git show main:file)" = 2 ]
    [ "$(wc -l <"$DESK/times")" -ge 2 ]
    [ ! -e built1 ]
    [ ! -e built2 ]
}

@test "L7: daemons of a verifier that says yes are dead when it has landed, and wrote nothing into the work tree" {
    git update-index --assume-unchanged check # such a mark makes the landing verify again
    expect 0 go --verify '[ ! -e "$DESK/once" ] || { '"$DAEMONS"' true; }; touch "$DESK/once"' -- sh -c 'echo 2 >file'
    none_lives
    is_sound
    [ "$(git show --format= --name-only main)" = file ]
    [ ! -e scribble ]
}

@test "L12: symlinks, hard links and devices that an agent puts in place of directories lead nowhere outside" {
    mkdir sub outside-of
    echo in >sub/f
    echo out >"$DESK/secret"
    expect 0 go --land off -- sh -c 'rm -rf sub; ln -s "$DESK" sub; mkfifo pipe; echo 2 >file'
    [ -L sub ]
    [ "$(cat "$DESK/secret")" = out ]
    expect 0 go --land off -- sh -c 'rm sub; mkdir sub; echo new >sub/secret'
    [ "$(cat "$DESK/secret")" = out ]
    [ "$(cat sub/secret)" = new ]
}

@test "L14: an agent that deletes the state directory under its run: no success is reported that is none" {
    run go --land off -- sh -c 'echo 2 >file; chmod -R u+rwX "$HOLDFAST_DIR" 2>/dev/null; rm -rf "$HOLDFAST_DIR"/*'
    if [ "$status" -eq 0 ]; then [ "$(cat file)" = 2 ]; else unmoved; fi
    git reset -q --hard main
    run go -- sh -c 'echo 2 >file; chmod -R u+rwX "$HOLDFAST_DIR" 2>/dev/null; rm -rf "$HOLDFAST_DIR"/*'
    if [ "$status" -eq 0 ]; then [ "$(git show main:file)" = 2 ]; else unmoved; fi
}
