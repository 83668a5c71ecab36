load ../tree

# Every way in which a session ends, with every kind of process in its tree, held together by a cgroup or by the walk.
# In each: no process of the tree is left, those beside it are untouched, a waiter for the name gets it when the tree is
# empty and not before, and the journal has it once.

# start_session MECHANISM OPTIONS... -- TREE-ARGUMENTS...: by a process that has children of its own already
start_session() {
    local mechanism=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    bystander before
    # A child, and a child's child's child: when the first of that line is killed, the second comes to the supervisor.
    spawn bash -c '
        "$TREE" bystander "$PWD/by.child" &
        bash -c "bash -c \"\\\"\\\$TREE\\\" bystander \\\"\\\$PWD/by.descendant\\\"; :\" & wait" &
        echo $! >line
        exec "$HOLDFAST" "$@" >output' _ run t --tree "$mechanism" --grace 0.2 "${options[@]}" -- "$TREE" build "$tree" "$@"
    supervisor=$spawned_pid
    bystanders+=("$PWD/by.child" "$PWD/by.descendant")
    wait_until 20 test -e "$tree.ready"
    wait_until 10 test -s by.child
    wait_until 10 test -s by.descendant
    kill -KILL "$(cat line)"
    bystander beside helper-tree
    [ "$(session t .supervisor.pid)" = "$supervisor" ]
    [ "$(session t .tree)" = "$mechanism" ]
    keeper=$(session t .keeper.pid)
    leader=$(session t .leader.pid)
}

# ends_with STATUS: the supervisor exits, and everything holds
ends_with() {
    local status_seen=0
    wait "$supervisor" || status_seen=$?
    [ "$status_seen" -eq "$1" ] || { echo "exit $status_seen, not $1"; return 1; }
    nobody_lives "$tree"
    bystanders_are_well
    gone "$keeper"
    expect 0 hf journal verify
}

killed_once() {
    [ "$(events session_killed t)" = 1 ]
    [ "$(events session_ended t)" = 1 ]
}

ends_by_exit() {
    needs "$1"
    start_session "$1" -- --exit 3 $SHAPES cleared hop
    queue lock run
    touch "$tree.go"
    ends_with 3
    queue_found_it_empty
    killed_once
}

ends_by_term() {
    needs "$1"
    start_session "$1" -- $SHAPES cleared hop
    queue lock run
    kill -TERM "$supervisor"
    ends_with 143
    queue_found_it_empty
    killed_once
    [ "$(events session_stopping t)" = 1 ]
}

ends_by_stop() {
    needs "$1"
    start_session "$1" --log -- $SHAPES cleared hop
    queue lock run
    expect 0 hf stop t
    [ "$output" = killed ]
    ends_with 143
    queue_found_it_empty
    killed_once
    expect 1 hf stop t
    [ "$output" = already-gone ]
}

ends_by_deadline() {
    needs "$1"
    start_session "$1" --deadline 3 -- --ignore $SHAPES cleared hop
    queue lock run
    ends_with 124
    queue_found_it_empty
    killed_once
}

ends_by_idle() {
    needs "$1"
    start_session "$1" --idle 0.5 -- --talk $SHAPES cleared hop
    queue lock run
    touch "$tree.go"
    ends_with 124
    queue_found_it_empty
    killed_once
}

ends_by_lost_lock() {
    needs "$1"
    start_session "$1" --ttl 0.3 -- $SHAPES cleared hop
    expect 0 hf lock break t --reason "the test"
    ends_with 125
    killed_once
    # Nobody came after it, so its outcome is its own.
    [ "$(session t .outcome)" = lost-lock ]
    expect 0 hf reap t
    killed_once
}

ends_by_lost_lock_with_a_successor() {
    needs "$1"
    start_session "$1" --ttl 0.3 -- $SHAPES cleared hop
    queue run
    expect 0 hf lock break t --reason "the test"
    queue_found_it_empty
    ends_with 125
    [ "$(session t .state)" = done ]
}

ends_by_kill_of_supervisor() {
    needs "$1"
    start_session "$1" -- $SHAPES cleared hop
    queue lock run
    kill -KILL "$supervisor"
    queue_found_it_empty
    wait_until 5 gone "$keeper"
    ends_with 137
    killed_once
    [ "$(session t .outcome)" = abandoned ]
}

ends_by_kill_of_keeper() {
    needs "$1"
    start_session "$1" -- $SHAPES cleared hop
    queue lock run
    kill -KILL "$keeper"
    ends_with 125
    queue_found_it_empty
    killed_once
    [ "$(session t .outcome)" = abandoned ]
}

# The same without other children: then every process below the supervisor is of the tree.
ends_by_kill_of_lone_keeper() {
    needs "$1"
    bystander before
    start_tree "$1" -- $SHAPES cleared hop
    queue lock run
    kill -KILL "$keeper"
    ends_with 125
    queue_found_it_empty
    killed_once
}

ends_by_kill_of_leader() {
    needs "$1"
    start_session "$1" -- $SHAPES cleared hop
    queue lock run
    kill -KILL "$leader"
    ends_with 137
    queue_found_it_empty
    killed_once
}

# The terminal is closed under it: the command leads its session (as in a terminal window), or a shell does.
ends_by_closed_terminal() {
    needs "$1"
    bystander before
    case $2 in
    leader) on_terminal "$HOLDFAST" run t --tree "$1" --grace 0.2 -- "$TREE" build "$tree" $SHAPES cleared hop ;;
    captured) on_terminal "$HOLDFAST" run t --tree "$1" --grace 0.2 --log -- "$TREE" build "$tree" $SHAPES cleared hop ;;
    shell) on_terminal bash -ic '"$HOLDFAST" run t --tree "$0" --grace 0.2 -- "$TREE" build "$@"; exit' "$1" "$tree" $SHAPES cleared hop ;;
    esac
    wait_until 20 test -e "$tree.ready"
    keeper=$(session t .keeper.pid)
    supervisor=$(session t .supervisor.pid)
    queue lock run
    touch hangup
    queue_found_it_empty
    wait_until 10 gone "$supervisor"
    gone "$keeper"
    wait_until 10 test -s terminal.status
    [ "$2" = shell ] || [ "$(cat terminal.status)" = 129 ] || { echo "exit $(cat terminal.status)"; return 1; }
    nobody_lives "$tree"
    bystanders_are_well
    killed_once
    [ "$(session t .state)" = stopped ]
    [ "$(session t .exit)" = 129 ]
    expect 0 hf journal verify
}

@test "the whole tree ends: the command's exit; cgroup (L6, L7, L8)" { ends_by_exit cgroup; }
@test "the whole tree ends: TERM to the supervisor; cgroup (L6, L7, L8)" { ends_by_term cgroup; }
@test "the whole tree ends: stop; cgroup (L6, L7, L8)" { ends_by_stop cgroup; }
@test "the whole tree ends: its deadline; cgroup (L6, L7, L8)" { ends_by_deadline cgroup; }
@test "the whole tree ends: silence; cgroup (L6, L7, L8)" { ends_by_idle cgroup; }
@test "the whole tree ends: a lost lock; cgroup (L6, L7, L8)" { ends_by_lost_lock cgroup; }
@test "the whole tree ends: a lost lock, before its successor starts; cgroup (L6, L7, L8)" { ends_by_lost_lock_with_a_successor cgroup; }
@test "the whole tree ends: its terminal is closed; cgroup (L6, L7, L8)" { ends_by_closed_terminal cgroup leader; }
@test "the whole tree ends: its terminal is closed, output captured; cgroup (L6, L7, L8)" { ends_by_closed_terminal cgroup captured; }
@test "the whole tree ends: its terminal is closed, below a shell; cgroup (L6, L7, L8)" { ends_by_closed_terminal cgroup shell; }
@test "the whole tree ends: SIGKILL of the supervisor; cgroup (L6, L7, L8)" { ends_by_kill_of_supervisor cgroup; }
@test "the whole tree ends: SIGKILL of the keeper; cgroup (L6, L7, L8)" { ends_by_kill_of_keeper cgroup; }
@test "the whole tree ends: SIGKILL of the keeper, whatever its environment; cgroup (L6, L7, L8)" { ends_by_kill_of_lone_keeper cgroup; }
@test "the whole tree ends: SIGKILL of the command; cgroup (L6, L7, L8)" { ends_by_kill_of_leader cgroup; }

@test "the whole tree ends: the command's exit; walk (L6, L7, L8)" { ends_by_exit walk; }
@test "the whole tree ends: TERM to the supervisor; walk (L6, L7, L8)" { ends_by_term walk; }
@test "the whole tree ends: stop; walk (L6, L7, L8)" { ends_by_stop walk; }
@test "the whole tree ends: its deadline; walk (L6, L7, L8)" { ends_by_deadline walk; }
@test "the whole tree ends: silence; walk (L6, L7, L8)" { ends_by_idle walk; }
@test "the whole tree ends: a lost lock; walk (L6, L7, L8)" { ends_by_lost_lock walk; }
@test "the whole tree ends: a lost lock, before its successor starts; walk (L6, L7, L8)" { ends_by_lost_lock_with_a_successor walk; }
@test "the whole tree ends: its terminal is closed; walk (L6, L7, L8)" { ends_by_closed_terminal walk leader; }
@test "the whole tree ends: its terminal is closed, output captured; walk (L6, L7, L8)" { ends_by_closed_terminal walk captured; }
@test "the whole tree ends: its terminal is closed, below a shell; walk (L6, L7, L8)" { ends_by_closed_terminal walk shell; }
@test "the whole tree ends: SIGKILL of the supervisor; walk (L6, L7, L8)" { ends_by_kill_of_supervisor walk; }
@test "the whole tree ends: SIGKILL of the keeper; walk (L6, L7, L8)" { ends_by_kill_of_keeper walk; }
@test "the whole tree ends: SIGKILL of the keeper, whatever its environment; walk (L6, L7, L8)" { ends_by_kill_of_lone_keeper walk; }
@test "the whole tree ends: SIGKILL of the command; walk (L6, L7, L8)" { ends_by_kill_of_leader walk; }

# The process between a supervisor with other children and its keeper only reaps.
reaper() { ps -o ppid= -p "$keeper" | tr -d ' '; }

@test "a supervisor with other children: its reaper ends with it, with the session, and may be killed (L7)" {
    start_session walk -- $SHAPES cleared hop
    between=$(reaper)
    [ "$(ps -o ppid= -p "$between" | tr -d ' ')" = "$supervisor" ]
    [ "$(ps -o comm= -p "$between")" = holdfast-reaper ]
    expect 0 hf stop t
    ends_with 143
    wait_until 5 gone "$between"
    rm -f line by.* "$tree"*
    bystanders=()

    start_session walk -- $SHAPES cleared hop
    between=$(reaper)
    kill -KILL "$supervisor"
    wait_until 10 gone "$keeper"
    ends_with 137
    wait_until 5 gone "$between"
    rm -f line by.* "$tree"*
    bystanders=()

    # Nobody but the keeper notices; and when that is killed, too, the marks tell whose they are.
    start_session walk -- $SHAPES cleared:2
    between=$(reaper)
    kill -KILL "$between"
    wait_until 5 gone "$between"
    expect 0 hf ps t
    kill -KILL "$keeper"
    ends_with 125
    [ "$(session t .outcome)" = abandoned ]
}

@test "a supervisor with other children: its exit waits for nobody that is left running, and 'run' for no lock when it is stopped" {
    expect 0 bash -c 'sleep 60 >/dev/null 2>&1 & echo $! >other
        exec "$HOLDFAST" run x --leave-running -- bash -c "sleep 60 >/dev/null 2>&1 & echo \$! >left"'
    run ! gone "$(cat left)"
    run ! gone "$(cat other)"
    kill -KILL "$(cat left)" "$(cat other)"
    spawn "$HOLDFAST" lock run x -- sleep 60
    wait_until 5 hf lock check x
    spawn bash -c 'sleep 60 & echo $! >other; exec "$HOLDFAST" run x -w 30 -- touch never'
    wait_until 10 waiters x 1
    kill -TERM "$spawned_pid"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 143 ]
    wait_until 5 waiters x 0
    kill -KILL "$(cat other)"
    [ ! -e never ]
}

are_living() { [ "$(living "$tree")" -eq "$1" ]; }

# A thousand that went away (own session, double fork) and do not listen to TERM.
thousand() {
    local start end late made
    needs "$1"
    bystander before
    start=${EPOCHREALTIME/./}
    start_tree "$1" -- --exit 0 storm:1000
    wait_until 60 are_living 1001
    made=$(((${EPOCHREALTIME/./} - start) / 1000))
    queue lock run
    # From the command's exit: TERM, 0.2 s of grace, and then.
    touch "$tree.go"
    wait_until 5 gone "$leader"
    start=${EPOCHREALTIME/./}
    wait "$supervisor"
    end=${EPOCHREALTIME/./}
    late=$(((end - start) / 1000 - 200))
    echo "# 1,000 processes, $1: made in $made ms; all dead and the supervisor gone $late ms after the grace time" >&3
    nobody_lives "$tree"
    queue_found_it_empty
    bystanders_are_well
    [ "$(events session_killed t)" = 1 ]
    expect 0 hf journal query --json --event session_killed
    is_json '.count == 1000'
    # As fast as this machine is now: that it made them is the measure.
    [ "$late" -lt $((1000 + 2 * made)) ]
}

@test "a tree of 1,000 processes ends soon after the grace time; cgroup (L7)" { thousand cgroup; }
@test "a tree of 1,000 processes ends soon after the grace time; walk (L7)" { thousand walk; }
