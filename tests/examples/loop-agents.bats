# examples/loop-agents: the functions, messages and return codes of loop-agents, without its races.
load helper

setup_file() { export LOCK_SH="$BATS_TEST_DIRNAME/../../examples/loop-agents/lock.sh"; }

# engine SCRIPT...: a shell that has sourced lock.sh
engine() { timeout --kill-after=5 $BOUND bash -c '. "$LOCK_SH"; '"$1" engine "${@:2}" 3>&-; }

# hold SESSION: an engine that has the session, in the background; its pid is in $spawned_pid
hold() {
    # shellcheck disable=SC2016
    spawn bash -c '. "$LOCK_SH"; acquire_lock "$0" && touch "$0.held" && exec sleep 600' "$1"
    wait_until $BOUND test -e "$1.held"
    rm "$1.held"
}

# end PID: kills a process that was spawned, and waits for its end
end() { kill -KILL "$1" && { wait "$1" 2>/dev/null || true; }; }

field() { jq -r ".$1" .claude/locks/s.lock; }

@test "loop-agents: a lock has the file, and is released by its owner only" {
    expect 0 engine 'acquire_lock s && is_locked s && echo "$$ $(jq -r .pid,.session .claude/locks/s.lock | xargs)"; release_lock s; is_locked s; echo "now $?"'
    [ "$(cut -d ' ' -f 1 <<<"${lines[0]}") s" = "$(cut -d ' ' -f 2- <<<"${lines[0]}")" ]
    says "now 1"
    [ ! -e .claude/locks/s.lock ]
    hold s
    expect 0 engine 'release_lock s; is_locked s'
    [ "$(field pid)" = "$spawned_pid" ]
    [ "$(field session)" = s ]
    [[ "$(field started_at)" =~ ^20..-..-..T..:..:..Z$ ]]
}

@test "loop-agents: a running session is refused with its pid, and a killed one is followed at once" {
    hold s
    expect 1 engine 'acquire_lock s'
    [ "$output" = "Error: Session 's' is already running (PID $spawned_pid)"$'\n'"  Use --force to override" ]
    end "$spawned_pid"
    expect 0 engine 'acquire_lock s && echo mine'
    [ "$output" = mine ]
}

@test "loop-agents: of ten racers beside sweeps one gets the session (L1)" {
    local racer
    mkfifo go
    exec 7<>go
    for racer in 1 2 3 4 5 6 7 8 9 10; do
        spawn bash -c '. "$LOCK_SH"; read -r _ <go; cleanup_stale_locks; acquire_lock s 2>/dev/null && echo x >>got; echo x >>done; exec sleep 600'
    done
    printf '\n%.0s' 1 2 3 4 5 6 7 8 9 10 >&7
    wait_until $BOUND sh -c '[ "$(wc -l <done 2>/dev/null || echo 0)" = 10 ]'
    [ "$(wc -l <got)" = 1 ]
    kill -0 "$(field pid)"
}

@test "loop-agents: a sweep removes what dead sessions left and nothing else" {
    hold s
    local dead=$spawned_pid
    hold t
    end "$dead"
    expect 0 engine 'cleanup_stale_locks'
    [ "$output" = "Removing stale lock: s (PID $dead)" ]
    [ -e .claude/locks/t.lock ]
    expect 0 engine 'cleanup_stale_locks'
    [ "$output" = "" ]
}

@test "loop-agents: --force ends the old engine before the new one has the session" {
    hold s
    expect 0 engine 'acquire_lock s --force && ! kill -0 "$1" 2>/dev/null && acquire_lock s --force' "$spawned_pid"
    says "Warning: Overriding existing lock for session 's' (PID $spawned_pid)"
}

@test "loop-agents: a file of the original counts while that very process lives" {
    mkdir -p .claude/locks
    spawn sleep 600
    jq -n --argjson pid "$spawned_pid" '{session: "s", pid: $pid, started_at: (now | todate)}' >.claude/locks/s.lock
    expect 0 engine 'is_locked s'
    expect 1 engine 'acquire_lock s'
    says "already running (PID $spawned_pid)"
    # The same pid, but the lock is older than the process: the number was given away again.
    jq -n --argjson pid "$spawned_pid" '{session: "s", pid: $pid, started_at: "2020-01-01T00:00:00Z"}' >.claude/locks/s.lock
    expect 0 engine 'acquire_lock s'
    kill -0 "$spawned_pid"
    echo '{"pid": [], "session"' >.claude/locks/s.lock
    expect 0 engine 'acquire_lock s'
}

@test "loop-agents: with_file_lock runs functions, keeps their status and loses no update" {
    echo 0 >n
    local worker
    for worker in 1 2 3 4; do
        # shellcheck disable=SC2016
        spawn bash -c '. "$LOCK_SH"; add() { echo $(($(cat n) + 1)) >n; }; for i in 1 2 3 4 5; do with_file_lock n 60 add || exit; done'
    done
    for worker in "${spawned[@]}"; do wait "$worker"; done
    [ "$(cat n)" = 20 ]
    expect 7 engine 'f() { return 7; }; with_file_lock n f'
    # What the command leaves behind does not keep the lock.
    expect 0 engine 'f() { sleep 60 3>&- >/dev/null 2>&1 & echo $! >left; }; with_file_lock n f && with_file_lock n 30 true'
    exec 8<>n.lock
    flock 8
    expect 1 engine 'with_file_lock n 0.05 echo never'
    says "still locked after 0.05 s"
}

@test "loop-agents: it has every function of the original and no other" {
    # Those of scripts/lib/lock.sh without a leading underscore. Callers that do not find one go on without a lock.
    expect 0 env -i PATH="$PATH" bash -c '. "$0"; declare -F | cut -d " " -f 3 | grep -v ^_ | LC_ALL=C sort | xargs' "$LOCK_SH"
    [ "$output" = "acquire_flock acquire_lock cleanup_orphaned_beads cleanup_stale_locks detect_flock is_locked release_lock with_exclusive_file_lock with_file_lock" ]
    mkdir bin
    expect 0 engine 'PATH=bin; detect_flock'
    [ "$output" = noclobber ]
    expect 0 engine 'acquire_flock s && is_locked s'
}

@test "loop-agents: no update of a shared file is lost the way its callers lock it" {
    echo '{"n":0}' >state.json
    local worker
    for worker in 1 2 3 4; do
        # shellcheck disable=SC2016
        spawn bash -c '. "$LOCK_SH"
            add() { jq ".n += 1" state.json >"state.$$" && mv "state.$$" state.json; }
            for i in 1 2 3 4 5 6 7 8 9 10; do
                if type with_exclusive_file_lock &>/dev/null; then with_exclusive_file_lock state.json add; else add; fi
            done'
    done
    for worker in "${spawned[@]}"; do wait "$worker"; done
    [ "$(jq .n state.json)" = 40 ]
}

@test "loop-agents: a file that cannot be locked is reported with the reason, and the command does not run" {
    HOLDFAST=/nowhere/holdfast expect 1 engine 'with_exclusive_file_lock n touch ran'
    [ "$output" = "Error: holdfast is not installed (or set HOLDFAST)" ]
    # A limit that 'holdfast lock fd' refuses.
    FILE_LOCK_TIMEOUT=soon expect 1 engine 'with_exclusive_file_lock n touch ran'
    says "Error: n cannot be locked: "
    run ! grep -q "still locked" <<<"$output"
    [ ! -e ran ]
}

@test "loop-agents: with_exclusive_file_lock takes its time from the call, else from FILE_LOCK_TIMEOUT" {
    expect 1 engine 'with_exclusive_file_lock ""'
    says "requires a target path"
    expect 1 engine 'with_exclusive_file_lock n'
    says "requires a command"
    expect 3 engine 'with_exclusive_file_lock new/dir/n exit 3; s=$?; [ -e new/dir/n.lock ] && exit $s'
    exec 8<>n.lock
    flock 8
    expect 1 engine 'with_exclusive_file_lock n 0 echo never'
    FILE_LOCK_TIMEOUT=0 expect 1 engine 'with_exclusive_file_lock n echo never'
    says "still locked after 0 s"
    spawn bash -c '. "$LOCK_SH"; echo >waits; with_exclusive_file_lock n touch got' 8>&-
    wait_until $BOUND test -e waits
    [ ! -e got ]
    flock -u 8
    wait "$spawned_pid"
    [ -e got ]
}

@test "loop-agents: the beads of a dead session are open again, and no other ones" {
    mkdir bin
    printf '%s\n' '#!/bin/sh' 'echo "$*" >>bd.log' '[ "$1" != list ] || echo "[{\"id\":\"b-1\",\"dependencies\":[{\"id\":\"b-9\"}]},{\"id\":\"b-2\"}]"' >bin/bd
    chmod +x bin/bd
    hold s
    PATH=$PWD/bin:$PATH expect 0 engine 'cleanup_stale_locks'
    [ ! -e bd.log ]
    end "$spawned_pid"
    PATH=$PWD/bin:$PATH expect 0 engine 'cleanup_stale_locks'
    says "Releasing orphaned beads for session 's'"
    [ "$(cat bd.log)" = "list --label=pipeline/s --status=in_progress --json
update b-1 --status=open
update b-2 --status=open" ]
}

@test "loop-agents: it fails well" {
    expect 1 engine 'acquire_lock ../../etc/passwd'
    expect 1 engine 'HOLDFAST=/none/holdfast; acquire_lock s'
    says "holdfast is not installed"
    expect 1 engine 'HOLDFAST_DIR=/proc/self/none; export HOLDFAST_DIR; acquire_lock s'
    says "cannot be locked"
    expect 1 engine 'LOCKS_DIR=/proc/self/none; acquire_lock s'
    expect 0 engine 'HOLDFAST=/none/holdfast; release_lock s'
    [ ! -e .claude/locks/s.lock ]
}
