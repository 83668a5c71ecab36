#!/usr/bin/env bats
# hook guard: a tool call that would write what another session holds.
load ../helper

setup_file() { unset HOLDFAST_SESSION HOLDFAST_TOKEN HOLDFAST_PLAN CLAUDE_CODE_SESSION_ID GEMINI_SESSION_ID CLAUDECODE COPILOT_CLI; }

# tool NAME PATH: what a client writes before a tool call
tool() { jq -cn --arg t "$1" --arg p "$2" --arg d "$PWD" '{session_id:"s",hook_event_name:"PreToolUse",cwd:$d,tool_name:$t,tool_input:{file_path:$p}}'; }

# hold FILE: another process holds its lock until the file "end" is there
hold() {
    spawn "$HOLDFAST" file with "$1" -- sh -c 'touch held; until [ -e end ]; do sleep 0.02; done'
    wait_until 10 test -e held
}

@test "a file that another process holds is refused in each client's own form, with one event each (L8)" {
    echo x >f
    hold f
    expect 2 hf hook guard <<<"$(tool Write "$PWD/f")"
    says "holds its lock"
    CLAUDECODE=1 expect 0 hf hook guard <<<"$(tool Edit f)"
    is_json '.hookSpecificOutput.permissionDecision == "deny" and (.hookSpecificOutput | keys | length == 3)'
    COPILOT_CLI=1 expect 0 hf hook guard <<<"$(tool edit f)"
    is_json '.permissionDecision == "deny"'
    ln -s f link
    expect 2 hf hook guard <<<"$(tool Write link)"
    GEMINI_SESSION_ID=g expect 0 hf hook guard <<<"$(tool write_file f)"
    is_json '.decision == "deny"'
    [ "$(hf journal query --json --event tool_refused | wc -l)" -eq 5 ]
    touch end
}

@test "readers, free files, files of its own session, and everything that goes wrong are let through" {
    echo x >f
    echo x >free
    hold f
    for input in "$(tool Read f)" "$(tool Write free)" "$(tool Write new)" "$(tool Write /no/such/directory/f)" "$(tool Write '')" 'no json' ''; do
        expect 0 hf hook guard <<<"$input"
        [ -z "$output" ]
    done
    touch end
    wait "$spawned_pid"
    expect 0 hf file with f -- sh -c '"$1" hook guard <<E
'"$(tool Write f)"'
E' sh "$HOLDFAST"
    [ -z "$output" ]
}

@test "--targets: a file outside the targets of the plan it is in is refused, by whatever path" {
    mkdir -p in/side out
    ln -s "$PWD/out" in/link
    hf -q plan new p
    hf -q plan add p a "$PWD/in" || skip "no sandbox can be made here"
    for path in "$PWD/in/f" "$PWD/in/side/new" in/f; do
        HOLDFAST_PLAN=p expect 0 hf hook guard --targets <<<"$(tool Write "$path")"
    done
    for path in "$PWD/out/f" "$PWD/in/../out/f" "$PWD/in/link/f" /etc/f; do
        HOLDFAST_PLAN=p expect 2 hf hook guard --targets <<<"$(tool Write "$path")"
        says "outside"
    done
    hf -q plan rm p --discard
}

@test "the start of a session is noted with the client's process, not with the shell between" {
    hf -q name key x # makes nothing
    hf -q journal emit note text=x
    sh -c '"$1" hook session-start <"$2"; true' sh "$HOLDFAST" "$BATS_TEST_DIRNAME/recorded/claude-code/SessionStart.json"
    run hf journal query --json --event client_started
    is_json '.proof == "the nearest ancestor that is not a shell"'
    mkdir -p home/.claude/sessions
    start=$(sed 's/.*) //' "/proc/$$/stat" | cut -d' ' -f20)
    id=$(jq -r .session_id "$BATS_TEST_DIRNAME/recorded/claude-code/SessionStart.json")
    echo "{\"pid\":$$,\"sessionId\":\"$id\",\"procStart\":\"$start\"}" >"home/.claude/sessions/$$.json"
    HOME="$PWD/home" CLAUDECODE=1 hf hook session-start <"$BATS_TEST_DIRNAME/recorded/claude-code/SessionStart.json"
    run hf journal query --json --event client_started
    [[ "$output" == *"register has this process"* ]]
    [[ "$output" == *"p1:$$:"* ]]
    hf hook session-end <"$BATS_TEST_DIRNAME/recorded/claude-code/SessionEnd.json"
    [ "$(hf journal query --json --event client_ended | wc -l)" -eq 1 ]
}
