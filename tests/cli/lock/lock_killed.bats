# What a killed `lock run --ttl` leaves: nothing of its command, and its lock only when all of that has ended.
load ../tree

# hold OPTIONS... -- SHAPES...: `lock run t --ttl` of a tree; the wrapper is $wrapper
hold() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    # A session of its own, so that its group can be killed without this test.
    spawn setsid "$HOLDFAST" lock run t --ttl 1m ${options[@]+"${options[@]}"} -- "$TREE" build "$tree" --ignore "$@"
    wrapper=$spawned_pid
    wait_until 20 test -e "$tree.ready"
}

all_ends() {
    wait "$wrapper" || true
    wait_until 20 nobody_lives "$tree"
    bystanders_are_well
    expect 0 hf lock run t -n -- true
    expect 0 hf journal query --event lock_taken_over
    [ -z "$output" ]
    rm -f "$tree" "$tree.ready"
}

@test "L1, L7: SIGKILL of lock run --ttl ends everything, and the next waiter gets the lock only then" {
    local mode
    bystander one
    for mode in "" "--slots 1" "-s"; do
        # shellcheck disable=SC2086
        hold $mode -- $SHAPES
        queue lock run
        kill -KILL "$wrapper"
        queue_found_it_empty
        all_ends
        rm -f at-lock at-lock.status
    done
}

@test "L1, L7: the same when the whole process group of lock run --ttl is killed" {
    # shellcheck disable=SC2086
    hold -- $SHAPES
    queue lock run
    kill -KILL -- "-$wrapper"
    queue_found_it_empty
    all_ends
}

@test "SIGKILL of the process between lock run --ttl and its command ends everything; it is told" {
    # shellcheck disable=SC2086
    spawn "$HOLDFAST" lock run t --ttl 1m -- "$TREE" build "$tree" --ignore $SHAPES 2>said
    wrapper=$spawned_pid
    wait_until 20 test -e "$tree.ready"
    kill -KILL "$(pgrep -P "$wrapper")"
    status=0
    wait "$wrapper" || status=$?
    [ "$status" -eq 137 ]
    nobody_lives "$tree"
    grep -q "the watcher of the command was killed" said
    all_ends
}

@test "a lock run --ttl that is killed while it waits, or had children before, leaves nothing either" {
    hold -- plain
    spawn "$HOLDFAST" lock run t --ttl 1m -w 30 -- touch ran
    wait_until 10 waiters t 1
    local held
    held=$(pgrep -P "$(pgrep -P "$spawned_pid")")
    kill -KILL "$spawned_pid"
    wait_until 10 gone "$held"
    kill -KILL "$wrapper"
    all_ends
    [ ! -e ran ]
    # shellcheck disable=SC2016,SC2086
    spawn bash -c 'sleep 300 & echo $! >before; exec "$HOLDFAST" lock run t --ttl 1m -- "$TREE" build "$@"' - "$tree" $SHAPES
    wrapper=$spawned_pid
    wait_until 20 test -e "$tree.ready"
    kill -KILL "$wrapper"
    all_ends
    kill -0 "$(cat before)"
    kill "$(cat before)"
}

@test "run --ttl: what outlives the command by itself is left alone, and frees the lock" {
    spawn "$HOLDFAST" lock run t --ttl 1m -- "$TREE" build "$tree" --exit 3 setsid
    wait_until 20 test -e "$tree.ready"
    touch "$tree.go"
    status=0
    wait "$spawned_pid" || status=$?
    [ "$status" -eq 3 ]
    expect 0 hf lock run t -n -- true
    [ "$(living "$tree")" -eq 1 ]
}
