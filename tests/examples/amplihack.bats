# examples/amplihack: lock | unlock | check and the stop hook, with amplihack's files, messages and exit codes.
load helper

TOOL() { timeout --kill-after=5 $BOUND /usr/bin/python3 "$EXAMPLES/amplihack/lock_tool.py" "$@"; }
# stop JSON: the hook's answer
stop() { timeout --kill-after=5 $BOUND /usr/bin/python3 "$EXAMPLES/amplihack/stop.py" <<<"$1" 2>/dev/null; }
blocks() { expect 0 stop "$1" && is_json '.decision == "block"'; }
approves() { expect 0 stop "$1" && is_json '.decision == "approve"'; }

LOCK=.claude/runtime/locks/.lock_active

@test "amplihack: lock, check and unlock keep the file, its mode and the messages" {
    export AMPLIHACK_SESSION_ID=../../etc/passwd
    expect 0 TOOL check
    [ "$output" = "ℹ Lock is NOT active" ]
    expect 0 TOOL lock --message "Run the tests"
    says "✓ Lock enabled"
    [ "$(stat -c %a $LOCK)" = 600 ]
    [[ "$(cat $LOCK)" =~ ^locked_at:\ 20[0-9T:.+-]+$'\n'session_id:\ ______etc_passwd$ ]]
    expect 0 TOOL lock
    says "⚠ WARNING: Lock was already active"
    expect 0 TOOL check
    says "✓ Lock is ACTIVE"
    says "Custom instruction: Run the tests"
    expect 0 TOOL unlock
    [ "$output" = "✓ Lock disabled - Claude will stop normally" ]
    expect 0 TOOL unlock
    [ "$output" = "ℹ Lock was not enabled" ]
    [ -z "$(ls -A .claude/runtime/locks)" ]
}

@test "amplihack: the hook blocks its own session with the text, and leaves another one's lock alone" {
    AMPLIHACK_SESSION_ID=a TOOL lock --message "Run the tests"
    blocks '{"session_id":"a","n":1}'
    is_json '.reason == "Run the tests"'
    approves '{"session_id":"b"}'
    AMPLIHACK_SESSION_ID=b expect 1 TOOL unlock
    says "✗ ERROR: Failed to remove lock: it belongs to session a"
    mkdir -p sub
    cd sub
    blocks '{"session_id":"a","n":2}'
    AMPLIHACK_SHUTDOWN_IN_PROGRESS=1 approves '{"session_id":"a","n":3}'
    cd ..
    [ -e $LOCK ]
    printf '%01001d' 0 >.claude/runtime/locks/.lock_message
    hf -q hook tool --session a <<<'{"hook_event_name":"PostToolUse"}'
    blocks '{"session_id":"a","n":4}'
    is_json '.reason | test("not reached")'
}

@test "amplihack: time and count end the lock, also without a session id" {
    AMPLIHACK_MAX_LOCK_ITERATIONS=2 TOOL lock
    blocks '{"n":1}'
    blocks '{"n":2}'
    approves '{"n":3}'
    [ ! -e $LOCK ]
    TOOL lock
    sed -i 's/^locked_at: .*/locked_at: 2999-01-01T00:00:00/' $LOCK
    touch -d '1 hour ago' $LOCK
    AMPLIHACK_LOCK_TTL_SECONDS=1800 approves '{"n":4}'
    [ ! -e $LOCK ]
}

@test "amplihack: a lock without a session id blocks every session until its time is over" {
    expect 0 TOOL lock
    [ "$(cut -d : -f 1 $LOCK)" = locked_at ]
    blocks '{"session_id":"sess-9","hook_event_name":"Stop"}'
    blocks '{"session_id":"sess-10","hook_event_name":"Stop"}'
    blocks '{"hook_event_name":"Stop"}'
    sed -i 's/^locked_at: .*/locked_at: 2020-01-01T00:00:00/' $LOCK
    approves '{"session_id":"sess-9","n":2}'
    [ ! -e $LOCK ]
    expect 1 hf keep status --session unknown
}

@test "amplihack: any id can lock, and its own session is blocked" {
    local id n=0
    for id in . 'a\b' 'ünï' '$(touch pwned)' 'a: b' ../../x -rf --force "$(printf '%0300d' 1)"; do
        export AMPLIHACK_SESSION_ID=$id
        expect 0 TOOL lock
        says "✓ Lock enabled"
        blocks "$(jq -nc --arg id "$id" --argjson n $((n += 1)) '{session_id: $id, n: $n}')"
        approves '{"session_id":"other"}'
        HOLDFAST_SESSION=fix-160 expect 0 TOOL unlock
        HOLDFAST_SESSION=fix-160 expect 0 TOOL lock
        expect 0 TOOL unlock
    done
    [ ! -e pwned ]
}

@test "amplihack: a lock file of another tool works, and garbage approves" {
    mkdir -p .claude/runtime/locks
    touch $LOCK
    blocks '{"session_id":"a"}'
    printf 'session_id: ../x\n' >$LOCK
    blocks '{"session_id":"b"}'
    approves 'nonsense'
    approves '[]'
    approves ''
    rm $LOCK
    mkdir $LOCK
    approves '{"session_id":"a"}'
}

@test "amplihack: it fails well: the hook approves, the tool says why" {
    TOOL lock
    HOLDFAST=/none/holdfast approves '{}'
    HOLDFAST_DIR=/proc/self/none approves '{}'
    rm $LOCK
    HOLDFAST=/none/holdfast expect 1 TOOL lock
    says "✗ ERROR: Failed to create lock"
    HOLDFAST_DIR=/proc/self/none expect 1 TOOL lock
    [ ! -e $LOCK ]
}
