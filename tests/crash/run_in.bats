# run --in with a process killed at its system calls: the targets are old or new, and the record says which (L10, L14).
load ../cli/session_helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    command -v strace >/dev/null || skip "no strace"
    ASAN_OPTIONS=detect_leaks=0 strace -f -b execve -o trace -e inject=uname:signal=KILL:when=9999 true 2>/dev/null ||
        skip "strace may not trace here"
    skip_sanitizers "a sanitizer's calls are not ours"
}

fresh() {
    rm -rf T
    mkdir T
    echo old >T/a
    echo old >T/b
}

work='echo new >T/a; rm T/b; echo new >T/c; mkdir T/d; echo new >T/d/e'

# look: "old" or "new", all of it; anything else is what must not be
look() {
    case $(cd T && find . -type f | sort | xargs grep -H . | paste -sd' ') in
    './a:old ./b:old') echo old ;;
    './a:new ./c:new ./d/e:new') echo new ;;
    *) find T; echo torn ;;
    esac
}

# traced INJECT: session x under strace, its status in $status. Of the command nothing is traced.
traced() {
    status=0
    timeout --kill-after=5 30 strace -f -b execve -o trace -e trace="${1%%:*}" -e inject="$1" \
        "$HOLDFAST" run x --in T --grace 100ms --verify 'test -e T/c' -- bash -c "$work" >said 2>&1 3>&- || status=$?
}

keepers_gone() { local pid; for pid in $(hf -q ps x --json 2>/dev/null | jq -r '.sessions[0] | .keeper.pid, .supervisor.pid | select(. != null)'); do is_dead "$pid" || return 1; done; }

# told_true: after the crash and what comes next, record and targets agree, and stay so
told_true() {
    local before outcome seen
    wait_until 20 keepers_gone
    hf reap x >/dev/null 2>reaped || grep -qE 'no such session' reaped || { echo "reap: $(cat reaped)"; return 1; }
    seen=$(look)
    outcome=$(field x .outcome 2>/dev/null || echo none)
    echo "$1: exit $status, $outcome, $seen"
    [ "$seen" != torn ]
    case $outcome in
    succeeded) [ "$seen" = new ] ;;
    *) [ "$seen" = old ] ;;
    esac
    [ "$status" -ne 0 ] || [ "$outcome" = succeeded ]
    [ "$(events run_committed x)" -le 1 ]
    # Nothing that is done later changes it.
    hf -q plan recover >/dev/null 2>&1 || true
    [ "$(look)" = "$seen" ]
    expect 0 hf run x --discard --in T -- true
    [ "$(look)" = "$seen" ]
}

# at CALL FIRST LAST: kills the process that makes its CALL for the Nth time
at() {
    local n
    for ((n = $2; n <= $3; n++)); do
        rm -rf "$HOLDFAST_DIR"
        fresh
        traced "$1:signal=KILL:when=$n"
        told_true "$1 $n" || { cat said; return 1; }
        # Nobody came so far: nor will one at a higher number.
        grep -q 'killed by SIGKILL' trace || break
    done
}

@test "L14: killed at a rename, a sync, an unlink or a write: committed and recorded, or neither" {
    at renameat2 1 16
    at syncfs 1 4
    at fdatasync 1 6
    at fsync 1 4
    at unlinkat 1 10
    at pwrite64 1 24
}

@test "L14: killed at a fork, a lock, a wait or a message: the same" {
    at clone 1 4
    at clone3 1 4
    at flock 1 12
    at waitid 1 8
    at sendmsg 1 3
    at sendto 1 4
    at mkdirat 1 12
}

is_landing() { [ "$(field x .state 2>/dev/null)" = landing ]; }

# The commit is slow at its CALL number N: meanwhile PROCESS is killed.
while_landing() {
    local process=$1 call=$2 n=$3 pid
    rm -rf "$HOLDFAST_DIR"
    fresh
    spawn timeout --kill-after=5 30 strace -f -b execve -o trace -e trace="$call" -e inject="$call:delay_enter=700000:when=$n" \
        "$HOLDFAST" run x --in T --grace 100ms -- bash -c "$work"
    status=137
    wait_until 20 is_landing || return 0 # it was slow elsewhere
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

@test "L14: supervisor, keeper, both, or the child that commits is killed, or the session stopped, while it lands" {
    for process in supervisor keeper both child stop; do
        while_landing "$process" syncfs 1
        while_landing "$process" renameat2 1
        while_landing "$process" renameat2 3
    done
}
