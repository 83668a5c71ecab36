# run --in on a git work tree with a process killed at its system calls: the branch is old or new, the record says which, the user's
# work tree follows it, and no work is lost (L10, L14).
load ../cli/session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s HOME="$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    command -v strace >/dev/null || skip "no strace"
    ASAN_OPTIONS=detect_leaks=0 strace -f -b execve -o trace -e inject=uname:signal=KILL:when=9999 true 2>/dev/null ||
        skip "strace may not trace here"
    skip_sanitizers "a sanitizer's calls are not ours"
    mkdir probe
    hf -q plan new probe
    hf plan add probe p "$PWD/probe" --strategy overlay >/dev/null 2>&1 || skip "NO OVERLAY HERE"
    hf -q plan rm probe --discard
    git config --global user.name Tester
    git config --global user.email tester@localhost
    git config --global init.defaultBranch main
    git init -q T.new
    (cd T.new && echo old >a && echo old >b && git add . && git commit -q -m base)
    base=$(git -C T.new rev-parse HEAD)
}

fresh() {
    chmod -R u+rwX T "$HOLDFAST_DIR" 2>/dev/null || true
    rm -rf T "$HOLDFAST_DIR" finished
    cp -a T.new T
}

work='echo new >a; rm b; mkdir d; echo new >d/e; git add -A; git commit -q -m one; echo new >c; touch ../finished'

# look: "old" or "new", of the branch and of the user's files alike; anything else is what must not be
look() {
    local head files
    head=$(git -C T log --format=%s main | paste -sd' ')
    files=$(cd T && find . -path ./.git -prune -o -type f -print | sort | xargs grep -H . | paste -sd' ')
    case "$head $files" in
    'base ./a:old ./b:old') echo old ;;
    'Work of x one base ./a:new ./c:new ./d/e:new') echo new ;;
    *) echo "torn: $head $files" ;;
    esac
}

# traced INJECT: session x under strace, its status in $status. Of the programs that it starts nothing is traced.
traced() {
    status=0
    timeout --kill-after=5 60 strace -f -b execve -o trace -e trace="${1%%:*}" -e inject="$1" \
        "$HOLDFAST" run x --in T -C T --grace 100ms --verify 'test -e c' -- bash -c "$work" >said 2>&1 3>&- || status=$?
}

gone() { local pid; for pid in $(hf -q ps x --json 2>/dev/null | jq -r '.sessions[0] | .keeper.pid, .supervisor.pid | select(. != null)'); do is_dead "$pid" || return 1; done; }

# told_true WHERE: after the crash and what comes next, record, branch and files agree; work that was finished lands by a verb
told_true() {
    local seen outcome
    wait_until 60 gone
    hf reap x >/dev/null 2>reaped || grep -qE 'no such session' reaped || { echo "reap: $(cat reaped)"; return 1; }
    seen=$(look)
    outcome=$(field x .outcome 2>/dev/null || echo none)
    echo "$1: exit $status, $outcome, $seen"
    case $outcome in
    succeeded) [ "$seen" = new ] ;;
    *) [ "$seen" = old ] ;;
    esac
    [ "$status" -ne 0 ] || [ "$outcome" = succeeded ]
    [ "$(events land_landed x)" -le 1 ]
    git -C T fsck --no-progress --connectivity-only >/dev/null
    [ -z "$(git -C T status --porcelain)" ]
    if [ "$seen" = old ] && [ -e finished ]; then
        hf land x >landed 2>&1 || hf run x --resume >>landed 2>&1 || { cat landed; return 1; }
        [ "$(look)" = new ]
        [ -z "$(git -C T status --porcelain)" ]
    fi
    # The next run of the name is not in the way of what was left.
    expect 0 hf run x --discard --in T -- true
}

# at CALL LAST: kills the process that makes its CALL for the Nth time. HF_LONG: at each; else at each fourth, others in every run.
at() {
    local n step=4
    [ -z "${HF_LONG:-}" ] || step=1
    for ((n = 1 + RANDOM % step; n <= $2; n += step)); do
        fresh
        traced "$1:signal=KILL:when=$n"
        told_true "$1 $n" || { cat said; return 1; }
        # Nobody came so far: nor will one at a higher number.
        grep -q 'killed by SIGKILL' trace || break
    done
}

@test "L14: a landing whose process is killed at a rename, a sync, an unlink or a write: on the branch and recorded, or neither, and nothing lost" {
    at renameat2 30
    at syncfs 4
    at fdatasync 10
    at fsync 12
    at unlinkat 12
    at pwrite64 40
}

@test "L14: a landing whose process is killed at a fork, a lock, a wait or a message: the same" {
    at clone 8
    at clone3 8
    at flock 12
    at waitid 8
    at sendmsg 3
    at mkdirat 12
}

is_landing() { [ "$(field x .state 2>/dev/null)" = landing ]; }

# The landing is slow at its CALL number N: meanwhile PROCESS is killed.
while_landing() {
    local process=$1 call=$2 n=$3 pid
    fresh
    spawn timeout --kill-after=5 60 strace -f -b execve -o trace -e trace="$call" -e inject="$call:delay_enter=700000:when=$n" \
        "$HOLDFAST" run x --in T -C T --grace 100ms -- bash -c "$work"
    status=137
    wait_until 60 is_landing || return 0 # it was slow elsewhere
    case $process in
    supervisor) kill -KILL "$(field x .supervisor.pid)" ;;
    keeper) kill -KILL "$(field x .keeper.pid)" ;;
    both) kill_keepers x ;;
    stop) kill -TERM "$(field x .supervisor.pid)" ;;
    child) pid=$(pgrep -P "$(field x .keeper.pid)" -x hf-landing) && kill -KILL "$pid" ;;
    esac || true
    wait "$spawned_pid" || status=$?
    [ "$process" != both ] && [ "$process" != supervisor ] || status=137
    told_true "$process killed while landing at $call $n"
}

@test "L14: supervisor, keeper, both, or the child that lands is killed, or the session stopped, while it lands on the branch" {
    for process in supervisor keeper both child stop; do
        while_landing "$process" renameat2 8
        [ -n "${HF_LONG:-}" ] || continue
        while_landing "$process" syncfs 1
        while_landing "$process" renameat2 4
    done
}

# -- the step that commits what the command left, before the verifier runs (seal) ---------------------------------------------

changing=mkdirat,pwrite64,write,ftruncate,fchmod,renameat,renameat2,linkat,unlinkat,flock,fcntl,fsync,fdatasync,syncfs,clone,clone3,pipe2,sendmsg,waitid

# sealing ARGS...: session x, whose command has done its work and waits; then strace with ARGS at the keeper and at what it starts; then it goes on.
# What it left is sealed next. The verifier says that it was reached.
sealing() {
    fresh
    rm -f verified go
    spawn timeout --kill-after=5 60 "$HOLDFAST" run x --in T -C T --grace 100ms --verify 'touch ../verified; test -e c' -- \
        bash -c "$work; until [ -e ../go ]; do sleep 0.02; done"
    session=$spawned_pid
    wait_until 60 test -e finished
    : >trace
    spawn strace -f -b execve -o trace "$@" -p "$(field x .keeper.pid)" 2>attached
    wait_until 20 grep -q attached attached
    touch go
    status=0
    wait "$session" || status=$?
    wait "$spawned_pid" || true
}

# Of each call as many as one process made before the verifier ran: "CALL N" in a line.
seal_points() {
    sealing -e trace="$changing,execve"
    [ "$status" -eq 0 ]
    sed -nE '/execve.*touch .*verified/q; s/^([0-9]+) +([a-z0-9_]+)\(.*/\1 \2/p' trace | grep -v execve | sort | uniq -c |
        awk '{ if ($1 > most[$3]) most[$3] = $1 } END { for (call in most) for (n = 1; n <= most[call]; n++) print call, n }' | sort
}

@test "L14: keeper or child killed at a system call while what the command left is committed for the verifier: nothing landed, nothing lost" {
    local call n killed=0
    seal_points >points
    [ "$(wc -l <points)" -gt 30 ]
    [ -n "${HF_LONG:-}" ] || { shuf -n 12 points >some && mv some points; }
    while read -r call n <&4; do
        sealing -e trace="$call" -e inject="$call:signal=KILL:when=$n"
        ! grep -q 'killed by SIGKILL' trace || killed=$((killed + 1))
        told_true "sealing, killed at $call $n" || { cat trace; return 1; }
    done 4<points
    [ "$killed" -gt 6 ]
}

# sealed_without PROCESS: it is killed while the commit is being made, in a hook of the sandbox's git.
sealed_without() {
    fresh
    rm -f hooked go
    printf '#!/bin/sh\n: >../hooked\nuntil [ -e ../go ]; do sleep 0.02; done\n' >T/.git/hooks/pre-commit
    chmod +x T/.git/hooks/pre-commit
    spawn timeout --kill-after=5 60 "$HOLDFAST" run x --in T -C T --grace 100ms --verify 'test -e c' -- bash -c "${work/git commit/git commit -n}"
    wait_until 60 test -e hooked
    case $1 in
    supervisor) kill -KILL "$(field x .supervisor.pid)" ;;
    keeper) kill -KILL "$(field x .keeper.pid)" ;;
    both) kill_keepers x ;;
    child) kill -KILL "$(pgrep -P "$(field x .keeper.pid)" -x hf-landing)" ;;
    stop) kill -TERM "$(field x .supervisor.pid)" ;;
    esac
    rm T/.git/hooks/pre-commit
    touch go
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -ne 0 ]
    told_true "$1 killed while sealing"
    [ -e finished ] && [ "$(look)" = new ]
}

@test "L14: supervisor, keeper, both, or the child that seals is killed, or the session stopped, in a hook of the commit for the verifier" {
    for process in supervisor keeper both child stop; do
        sealed_without "$process"
    done
}

teardown() { chmod -R u+rwX "$BATS_TEST_TMPDIR" || true; }
