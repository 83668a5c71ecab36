#!/usr/bin/env bats
# hook stop and keep: the work mode of a session, and the one answer that all clients understand.
load ../helper
load stops

R="$BATS_TEST_DIRNAME/recorded"

@test "without work mode every recorded stop is let through, with nothing said and nothing made" {
    unset_ids
    for file in "$R"/*/*top*.json "$R"/gemini/AfterAgent*.json; do
        stop "$(cat "$file")" || { echo "$file"; false; }
        allowed
    done
    [ ! -e "$HOLDFAST_DIR" ]
}

@test "in work mode the recorded stop of each client is blocked by exactly the two keys" {
    unset_ids
    for file in claude-code/Stop codex/Stop copilot/agentStop copilot-pascalcase/Stop gemini/AfterAgent; do
        id=$(jq -r '.session_id // .sessionId' "$R/$file.json")
        hf -q keep on --session "$id" --goal "finish $file"
        stop "$(cat "$R/$file.json")"
        blocked || { echo "$file"; false; }
        says "finish $file"
    done
}

@test "a subagent's stop and a failed turn are never blocked" {
    unset_ids
    for file in claude-code/SubagentStop claude-code/StopFailure codex/Interrupt; do
        hf -q keep on --session "$(jq -r .session_id "$R/$file.json")"
        stop "$(cat "$R/$file.json")"
        allowed
    done
}

@test "the id is the option, then HOLDFAST_SESSION, then the client's; never another session's" {
    unset_ids
    hf -q keep on --session mine
    hf -q keep on --session theirs
    stop "$(event theirs t 1)" --session nobody
    allowed
    stop "$(event nobody t 1)" --session mine
    blocked
    HOLDFAST_SESSION=other stop "$(event theirs t 1)"
    allowed
    stop "$(event theirs t 1)"
    blocked
    CLAUDE_CODE_SESSION_ID=theirs stop '{"hook_event_name":"Stop"}'
    blocked
}

@test "without any id the client is let go, with one event (L8)" {
    unset_ids
    hf -q keep on --session mine
    stop '{"hook_event_name":"Stop","stop_hook_active":false}'
    allowed
    [ "$(events stop_allowed)" -eq 1 ]
}

@test "a turn is blocked at most --max times, then let go once and told; the next turn counts anew" {
    unset_ids
    hf -q keep on --session s --max 2
    for n in 1 2; do
        stop "$(event s t1 $n)"; blocked
    done
    stop "$(event s t1 3)"; allowed
    [ "$(events stop_allowed)" -eq 1 ]
    stop "$(event s t2 1)"; blocked
    [ "$(events stop_blocked)" -eq 3 ]
}

@test "three blocks without a tool call are enough; a tool call in between is progress" {
    unset_ids
    hf -q keep on --session s
    for n in 1 2 3; do stop "$(event s t $n)"; blocked; done
    stop "$(event s t 4)"; allowed
    hf -q keep on --session s
    for n in 5 6 7 8 9; do
        stop "$(event s t $n)"; blocked
        jq -c '.session_id = "s"' "$R/claude-code/PostToolUse.json" | hf hook tool
    done
}

@test "a background task that runs is progress, and the client is told to wait for it" {
    unset_ids
    hf -q keep on --session s --max 100
    for n in 1 2 3 4 5; do
        stop "$(event s t $n | jq -c '.background_tasks = [{id:"b",status:"running"}]')"
        blocked
        says "1 background task"
    done
}

@test "the same stop delivered twice counts once and gets the same answer, also side by side" {
    unset_ids
    hf -q keep on --session s --max 3
    e=$(event s t 1 | jq -c '.timestamp = "2026-11-16T00:00:00Z"')
    stop "$e"; blocked
    stop "$e"; blocked
    [ "$(hf keep status --session s --json | jq .blocks)" -eq 1 ]
    # Two hooks of one event side by side: the until command holds the first one up.
    mkfifo go
    hf -q keep on --session p --until 'cat go; false'
    event p t 1 >in
    spawn sh -c 'exec "$1" hook stop <in >one' sh "$HOLDFAST"
    exec 7>go
    spawn sh -c 'exec "$1" hook stop <in >two' sh "$HOLDFAST"
    wait_until 10 grep -q holdfast "/proc/$spawned_pid/comm"
    exec 7>&-
    wait "${spawned[@]}"
    [ "$(hf keep status --session p --json | jq .blocks)" -eq 1 ]
    jq -e '.decision == "block"' one
    jq -e '.decision == "block"' two
}

@test "--until: while it fails the client goes on; when it succeeds work mode ends" {
    unset_ids
    mkdir at && cd at
    hf -q keep on --session s --until 'test -e done'
    cd ..
    stop "$(event s t 1)"; blocked
    says "test -e done"
    touch at/done
    stop "$(event s t 2)"; allowed
    expect 1 hf keep status --session s
    [ "$(events keep_ended)" -eq 1 ]
}

@test "work mode ends with its ttl; a start in the future counts as now" {
    unset_ids
    hf -q keep on --session s --ttl 1ms
    stop "$(event s t 1)"; allowed
    expect 1 hf keep status --session s
    hf -q keep on --session f --ttl 1h
    sed -i 's/"since_ns":[0-9]*/"since_ns":9000000000000000000/' "$HOLDFAST_DIR/modes/f"
    [ "$(hf keep status --session f --json | jq '.left_ms <= 3600000')" = true ]
    stop "$(event f t 1)"; blocked
    [ "$(hf keep status --session f --json | jq '.left_ms <= 3600000')" = true ]
}

@test "a session that is stopping is let go at once" {
    unset_ids
    e=$(event ignored t 1)
    spawn "$HOLDFAST" run held --grace 10s -- sh -c '
        "$2" -q keep on
        printf %s "$1" | "$2" hook stop >before
        trap "printf %s \"\$1\" | \"\$2\" hook stop >after; exit 0" TERM
        touch ready
        while :; do sleep 0.05; done' sh "$e" "$HOLDFAST"
    wait_until 10 test -e ready
    hf -q stop held
    wait "$spawned_pid" || [ $? -eq 143 ]
    jq -e '.decision == "block"' before
    [ -e after ]
    [ ! -s after ]
}

@test "garbage, nothing, too much and hostile input: let go, exit 0, one event each, none of it repeated" {
    unset_ids
    hf -q keep on --session s
    n=0
    for input in '' 'no json' '[]' '"x"' '{' '{"session_id":' "$(printf '\xff\xfe')"; do
        stop "$input"; allowed
        n=$((n + 1))
        [ "$(events hook_failed)" -eq "$n" ]
    done
    head -c 17000000 /dev/zero | tr '\0' ' ' | hf hook stop
    [ "$(events hook_failed)" -eq $((n + 1)) ]
    run hf journal query --event hook_failed
    [[ "$output" != *"no json"* ]]
    # Ids that no client makes are none.
    for id in '../../x' 'a/b' '..' '' "$(printf 'a\nb')" "$(printf 'x%.0s' {1..100})"; do
        stop "$(event "$id" t 1)"; allowed
    done
    [ "$(ls "$HOLDFAST_DIR/modes")" = s ]
}

@test "half of an emoji, as JavaScript writes it, and numbers beyond 64 bits are no reason to let a client go" {
    unset_ids
    hf -q keep on --session s --max 100
    n=0
    for text in '"\ud83d"' '"\ude00"' '"cut \ud83d\u0041"' '"\ud83d\ud83d\ude00"' '"\\\\ud83d \ud83d"' '"\uD83D"' '"\ud83d\n"' 12345678901234567000; do
        n=$((n + 1))
        hf -q hook tool <<<'{"session_id":"s","hook_event_name":"PreToolUse"}'
        stop "{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"last_assistant_message\":$text,\"n\":$n}"; blocked
    done
    # What is wrong besides stays wrong.
    for text in '"\ud83"' '"\ud83d' '"\ud83d\u00"' '"\ud83d", 0' '"\ud83d\x"'; do
        stop "{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"last_assistant_message\":$text}"; allowed
    done
    [ "$(events hook_failed)" -eq 5 ]
}

@test "a damaged record is put away, with one event, and the client is let go (L12)" {
    unset_ids
    hf -q keep on --session s
    echo '{"v":1' >"$HOLDFAST_DIR/modes/s"
    stop "$(event s t 1)"; allowed
    [ "$(events record_quarantined)" -eq 1 ]
    stop "$(event s t 1)"; allowed
    rm -f "$HOLDFAST_DIR/modes/s"; ln -s /etc/passwd "$HOLDFAST_DIR/modes/s"
    stop "$(event s t 1)"; allowed
}

@test "an agent does not change another session's work mode; a person may" {
    unset_ids
    hf -q keep on --session a
    export CLAUDE_CODE_SESSION_ID=b
    expect 3 hf keep off --session a
    says "--force"
    # A session without work mode is refused too, so the message does not name a holder.
    expect 3 hf keep on --session fresh
    says "'fresh' is another session: you are in session 'b'; --force changes its work mode anyway"
    run ! grep -q held <<<"$output"
    expect 3 hf -q --json keep on --session fresh
    is_json '.error.code == "not-owner" and .error.exit == 3'
    unset CLAUDE_CODE_SESSION_ID
    hf -q keep off --session a
    expect 1 hf keep off --session a
    expect 2 hf keep on
    says "--session"
}

@test "an agent may name its own session in the sanitized form, and no other session" {
    unset_ids
    local own
    for own in 'a: b' 'a\b' 'ünï' '$(touch pwned)'; do
        export CLAUDE_CODE_SESSION_ID=$own
        clean=$(hf name sanitize -- "$own")
        expect 0 hf keep on --session "$clean" --goal x --ttl 1m
        expect 0 hf keep off --session "$clean"
        expect 3 hf keep on --session "${clean}x"
    done
    # Two ids may share a sanitized form: the other one's id as it is stays the other one's.
    CLAUDE_CODE_SESSION_ID='a:b' expect 3 hf keep on --session 'a/b'
    [ ! -e pwned ]
}

@test "the goal, the input and the environment are not in the journal" {
    unset_ids
    export SECRET_KEY=hunter2
    hf -q keep on --session s --goal "goal-text"
    stop "$(event s t 1 | jq -c '.last_assistant_message = "answer-text"')"; blocked
    run hf journal query --json
    [[ "$output" != *goal-text* && "$output" != *answer-text* && "$output" != *hunter2* ]]
}

@test "a heartbeat keeps a silent session alive beyond --idle; without one it ends" {
    unset_ids
    expect 0 hf run quiet --idle 1s -- sh -c '"$1" beat --busy; sleep 3; "$1" beat' sh "$HOLDFAST"
    expect 124 hf run quiet --idle 1s -- sh -c '"$1" beat; sleep 30' sh "$HOLDFAST"
    expect 0 hf run tool --idle 1s -- sh -c 'printf %s "$2" | "$1" hook tool; sleep 3' sh "$HOLDFAST" "$(cat "$R/claude-code/PreToolUse.json")"
    expect 2 hf beat
}
