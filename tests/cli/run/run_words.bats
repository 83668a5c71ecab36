# The words of `run`, and verbs that people try: a run without a name, a line for the shell, restart, lock status, why FILE.
load ../helper
load ../session_helper

@test "run without a name makes one and says it, in the foreground and in the background" {
    run --separate-stderr hf run -- echo yes
    [ "$status" -eq 0 ]
    [ "$output" = yes ]
    [[ "$stderr" =~ session\ \'(echo-[0-9a-f]{4})\' ]] || { echo "$stderr"; return 1; }
    hf wait "${BASH_REMATCH[1]}"
    expect 0 hf run --detach -- sleep 60
    [[ "$output" =~ ^(sleep-[0-9a-f]{4})\ runs ]] || { echo "$output"; return 1; }
    hf kill "${BASH_REMATCH[1]}"
    # Two at once have two names.
    hf -q run -d -- sleep 60
    hf -q run -d -- sleep 60
    [ "$(hf ps --json | jq '[.sessions[] | select(.state == "running")] | length')" -eq 2 ]
    hf stop --all --grace 0
}

@test "run -c takes a line for the shell; with a command beside it, or none at all: exit 2" {
    [ "$(hf run x -c 'echo $((1 + 1)) | cat')" = 2 ]
    [ "$(hf -q run -c 'echo none')" = none ]
    expect 2 hf run x -c true -- false
    says "a second one"
    expect 2 hf run x
    says "missing command"
    expect 2 hf run
    expect 2 hf run --resume
    says "needs the name"
    # A resumed one has its line again.
    hf run y -c 'echo again; exit 3' || [ $? -eq 3 ]
    run hf -q run y --resume
    [ "$status" -eq 3 ]
    [ "$output" = again ]
}

@test "restart: ends the session, starts it again as it was, in the background" {
    hf -q run x --detach --env LEVEL=7 --deadline 1h -- sh -c 'echo level $LEVEL; exec sleep 60'
    first=$(hf ps x --json | jq '.sessions[0].token')
    expect 0 hf restart x
    [ "$(hf ps x --json | jq '.sessions[0].token')" -gt "$first" ]
    [ "$(hf ps x --json | jq -r '.sessions[0].state')" = running ]
    [ "$(hf ps x --json | jq '.sessions[0].deadline_ms')" -eq 3600000 ]
    logged() { [ "$(hf logs x | tail -n1)" = "level 7" ]; }
    wait_until 10 logged
    # With a token it is that run or none (L3).
    run hf restart x --token "$first"
    [ "$status" -eq 3 ]
    [ "$(hf ps x --json | jq -r '.sessions[0].attempt')" -eq 2 ]
    expect 0 hf restart x --token "$(hf ps x --json | jq '.sessions[0].token')"
    # Also a session that has ended; a name without a session is refused.
    hf stop x
    expect 0 hf restart x --grace 0
    hf kill x
    expect 1 hf restart never
}

@test "lock status: all locks, or one as why does; why finds the lock of a file" {
    hf lock run build -- "$HOLDFAST" lock status | grep -q build
    hf lock run build -- "$HOLDFAST" lock status build | grep -q "held by pid"
    echo one >notes.md
    hf file with notes.md -- "$HOLDFAST" why notes.md | grep -q "held by pid"
    hf file with notes.md -- "$HOLDFAST" why ./notes.md --json >json
    jq -e '.kind == "file" and (.holders | length) == 1' json
    hf why notes.md | grep -q "dead: pid"
    echo one >other.md
    hf why other.md | grep -q "is free"
    # A name that is a lock's stays the lock's, whatever files there are.
    echo >build
    hf why build | grep -vq notes
}

@test "lock fd N -- CMD runs with the lock; --unlock gives it back and keeps the descriptor" {
    exec 8<>f
    # bats itself uses descriptor 3.
    hf lock fd 8 -n -- sh -c '! flock -n f true'
    run ! flock -n f true
    hf lock fd 8 --unlock
    flock -n f true
    hf lock fd 8 -n
    run ! flock -n f true
    expect 2 hf lock fd 8 --unlock -- true
    exec 8>&-
    expect 2 hf lock fd 8 --unlock
}

@test "a command with shell syntax or a builtin: the refusal names -c; the plan of a session has its own name" {
    local command PATH=/usr/bin:/bin # a directory in PATH that cannot be read makes a missing program EACCES
    for command in 'echo a && false' 'cd' 'ls; ls'; do
        expect 127 hf run x -- "$command" /tmp
        says "write -c LINE"
    done
    expect 127 hf run x -- ./not-here
    [[ "$output" != *"-c LINE"* ]]
    expect 0 hf -- run x -- true
    expect 2 hf lock deploy -- true
    says "'holdfast lock run NAME -- CMD...'"
    mkdir T
    hf -q run x --in T -- sh -c 'touch T/f; exit 1' || true
    expect 1 hf plan diff x
    says "no such plan: the plan of that session is 'run:x'"
    expect 1 hf plan diff y
    says "'holdfast plan new y' makes it"
}
