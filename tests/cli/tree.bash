# tests/cli/tree.bash - for tests of whole process trees: building them, bystanders, what is left.
#
# Every tree is known by the file that its processes announce themselves in (see tests/helper/tree.c), so that a test
# only ever touches what it made, and looks for survivors by what cannot be recycled.

load "${BASH_SOURCE[0]%/*}/helper"

TREE="$HELPERS/helper-tree"

# Every kind that a command may leave behind.
SHAPES="plain:2 ignore stopped setsid daemon:2 orphan bomb:8 pipe zombie:3 chain:6 wide:8 headless"

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" TREE
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    bystanders=()
    tree="$PWD/tree"
}

teardown() {
    local file
    kill_spawned
    for file in "$PWD"/tree* "$PWD"/by.*; do
        case $file in *.ready | *.go | *.signals | *.beat) continue ;; esac
        [ ! -f "$file" ] || "$TREE" end "$file"
    done
    # What a later run of that name would have removed.
    cat "$HOLDFAST_DIR"/sessions/*/session.jsonl "$HOLDFAST_DIR"/quarantine/* 2>/dev/null |
        sed -nE 's/.*"cgroup":"([^"]*holdfast-[0-9]+)".*/\1/p' | sort -ur | xargs -r rmdir 2>/dev/null || true
}

# needs MECHANISM: skips where no cgroup may be made
needs() {
    [ "$1" = cgroup ] || return 0
    run hf run probe --tree cgroup -- true
    [ "$status" -eq 0 ] || skip "no cgroup (v2) may be made here: ${output##*holdfast: }"
}

# bystander NAME [COMM]: a process that must neither end nor get any signal
bystander() {
    bystanders+=("$PWD/by.$1")
    spawn "$TREE" bystander "$PWD/by.$1" ${2:+"$2"}
    wait_until 10 test -s "by.$1"
}

bystanders_are_well() {
    local file
    for file in ${bystanders[@]+"${bystanders[@]}"}; do
        run "$TREE" living "$file"
        [ "$status" -eq 1 ] || { echo "bystander $file was killed"; return 1; }
        [ ! -s "$file.signals" ] || { echo "bystander $file got signals: $(paste -sd' ' "$file.signals")"; return 1; }
    done
}

# nobody_lives FILE: by what its processes wrote and by their command lines
nobody_lives() {
    run "$TREE" living "$1"
    [ "$status" -eq 0 ] || { echo "survivors of $1:"; echo "$output"; return 1; }
}

# session NAME JQ-EXPRESSION: of what ps says
session() { hf ps "$1" --json | jq -r ".sessions[0]$2"; }

events() { hf journal query --json --event "$1" --name "$2" | wc -l; }

# gone PID: exited; one that nobody has reaped yet counts as exited
gone() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    [[ "${stat##*) }" == Z* ]]
}

waiters() { [ "$(hf lock list --json | jq ".locks[] | select(.name == \"$1\") | .waiters | length")" = "$2" ]; }

# The sharp side of L7: a waiter for the name looks, at the moment it gets it, whether a process of the tree lives.
# queue VERB...: "lock run" or "run", which must come to the name only when the tree is empty
queue() {
    spawn "$HOLDFAST" "$@" t -w 30 -- bash -c '"$TREE" living "$0" >at-lock 2>&1; echo $? >at-lock.status' "$tree"
    queued=$spawned_pid
    wait_until 10 waiters t 1
}

queue_found_it_empty() {
    wait_until 20 test -s at-lock.status
    wait "$queued" || true
    [ "$(cat at-lock.status)" = 0 ] || { echo "the lock was free while these lived:"; cat at-lock; return 1; }
}

# on_terminal COMMAND...: on a terminal of its own, which is closed when the file "hangup" appears; the exit status of
# the command comes to the file "terminal.status", its pid is in "terminal.pid"
on_terminal() {
    spawn python3 -c '
import os, pty, select, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
open("terminal.pid", "w").write(str(pid))
while not os.path.exists("hangup"):
    if select.select([master], [], [], 0.01)[0]:
        try:
            os.read(master, 4096)
        except OSError:
            break
os.close(master)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
open("terminal.status.new", "w").write(str(status))
os.rename("terminal.status.new", "terminal.status")
' "$@"
    terminal=$spawned_pid
}

# start_tree MECHANISM OPTIONS... -- TREE-ARGUMENTS...: the session "t"; its processes are in $supervisor $keeper $leader
start_tree() {
    local mechanism=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    rm -f "$tree.ready"
    spawn "$HOLDFAST" run t --tree "$mechanism" --grace 0.2 ${options[@]+"${options[@]}"} -- "$TREE" build "$tree" "$@"
    supervisor=$spawned_pid
    wait_until 20 test -e "$tree.ready"
    keeper=$(session t .keeper.pid)
    leader=$(session t .leader.pid)
}

is_stopped() { grep -qsE '^State:[[:space:]]+T' "/proc/$1/status" || gone "$1"; }

# kill_at_once PID...: nobody of them can act on another's death. Named from outside to inside, a supervisor before its keeper,
# and killed the other way round: the kernel continues a stopped keeper when its supervisor dies first.
kill_at_once() {
    local pid i
    kill -STOP "$@"
    for pid; do wait_until 5 is_stopped "$pid"; done
    for ((i = $#; i > 0; i--)); do kill -KILL "${!i}"; done
    for pid; do wait_until 5 gone "$pid"; done
}

living() { "$TREE" living "$1" | wc -l; }
