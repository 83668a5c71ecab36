# What supervisor and keeper cost: under 1 MiB private each, and no growth with output or attempts.
load ../session_helper

private_kb() { awk '/^Private_(Clean|Dirty):/ { n += $2 } END { print n }' "/proc/$1/smaps_rollup"; }

descriptors() { ls "/proc/$1/fd" | wc -l; }

# costs NAME: "KB KB FDS FDS" of supervisor and keeper
costs() {
    local supervisor keeper
    supervisor=$(field "$1" .supervisor.pid) keeper=$(field "$1" .keeper.pid)
    echo "$(private_kb "$supervisor") $(private_kb "$keeper") $(descriptors "$supervisor") $(descriptors "$keeper")"
}

# is_small KB KB FDS FDS
is_small() {
    echo "supervisor $1 kB, keeper $2 kB private; $3 and $4 descriptors"
    [ "$1" -lt 1024 ] && [ "$2" -lt 1024 ] && [ "$3" -lt 20 ] && [ "$4" -lt 30 ]
}

# has_grown BEFORE AFTER: by a descriptor or by more than 128 kB. Pages that the two have in common become one's own when the other
# writes to its copy; a leak of 150 bytes in each of 1,000 attempts is more than that.
has_grown() {
    local before=($1) after=($2)
    echo "before: $1, after: $2"
    [ $((after[0] - before[0])) -gt 128 ] || [ $((after[1] - before[1])) -gt 128 ] ||
        [ "${after[2]}" -gt "${before[2]}" ] || [ "${after[3]}" -gt "${before[3]}" ]
}

# has_settled NAME: it costs what it did before. A descriptor may be open for a moment; growth stays.
has_settled() {
    after=$(costs "$1")
    ! has_grown "$before" "$after"
}

@test "supervisor and keeper have less than 1 MiB each, in front, in the background and with a log" {
    skip_sanitizers "a sanitizer's memory is not ours"
    running front
    is_small $(costs front)
    running logged --log --idle 1h --deadline 1h
    is_small $(costs logged)
    hf run back --detach -- sleep 60
    is_small $(costs back)
}

@test "100,000 lines of output with --log: no growth" {
    skip_sanitizers "a sanitizer's memory is not ours"
    spawn bash -c '"$0" run x --log -- bash -c "echo up; until [ -e flood ]; do sleep 0.02; done; seq 100000; touch flooded; until [ -e go ]; do sleep 0.02; done" >/dev/null' "$HOLDFAST"
    wait_until 10 is_field x .state running
    before=$(costs x)
    touch flood
    wait_until 20 test -e flooded
    after=$(costs x)
    is_small $after
    wait_until 20 has_settled x
    touch go
    wait "$spawned_pid"
}

# held: the loop of x is within an attempt and stays there
held() { [ "$(cat "/proc/$(field x .pid)/comm" 2>/dev/null)" = sleep ]; }

reached() { [ "$(wc -l <runs)" -ge "$1" ]; }

@test "1,000 attempts of a loop: no growth in memory or descriptors" {
    skip_sanitizers "a sanitizer's memory is not ours"
    touch runs
    spawn "$HOLDFAST" run x --max-runs 5000 --backoff 1ms --backoff-max 1ms -- sh -c 'echo >>runs; [ ! -e hold ] || exec sleep 60; exit 1'
    wait_until 20 reached 20
    touch hold
    wait_until 20 held
    before=$(costs x)
    rm hold
    kill "$(field x .pid)"
    wait_until 60 reached 1000
    touch hold
    wait_until 20 held
    after=$(costs x)
    is_small $after
    wait_until 20 has_settled x
    [ "$(stat -c %s "$HOLDFAST_DIR/sessions/x/session.jsonl")" -lt 600000 ]
    expect 0 hf stop x --grace 0
}
