# tests/cli/hook/stops.bash - calling the stop hook, and judging its answer.

unset_ids() { unset HOLDFAST_SESSION HOLDFAST_TOKEN CLAUDE_CODE_SESSION_ID GEMINI_SESSION_ID AMPLIHACK_SESSION_ID CLAUDECODE COPILOT_CLI; }

# stop JSON [OPTIONS]: calls the hook with that input
stop() {
    local input=$1
    shift
    run --separate-stderr hf hook stop "$@" <<<"$input"
    [ "$status" -eq 0 ] || { echo "exit $status: $stderr"; return 1; }
    [ -z "$stderr" ] || { echo "stderr: $stderr"; return 1; }
}

blocked() { jq -e '.decision == "block" and (.reason | length > 0) and (keys | length == 2)' <<<"$output" >/dev/null ||
    { echo "not blocked: '$output'"; return 1; }; }
allowed() { [ -z "$output" ] || { echo "not allowed: '$output'"; return 1; }; }

# event SESSION TURN N: a stop of Claude; N tells it from the others
event() { jq -cn --arg s "$1" --arg t "$2" --arg n "$3" \
    '{session_id:$s,prompt_id:$t,hook_event_name:"Stop",stop_hook_active:($n != "1"),last_assistant_message:$n,background_tasks:[]}'; }

events() { hf journal query --json --event "$1" 2>/dev/null | wc -l; }
