#!/usr/bin/env bats
# The hooks of a client report prompts, waits and background tasks to its session; run --end-background ends the tasks.
load ../session_helper
load stops

R="$BATS_TEST_DIRNAME/recorded"

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s
    cd "$BATS_TEST_TMPDIR" || return 1
    spawned=()
    unset_ids
    unset CLAUDE_CODE_SESSION_ATTENDED CLAUDE_CODE_ENTRYPOINT
    command -v python3 >/dev/null || skip "no python3"
}

# A client as far as its hooks see it: it starts tasks, each in a session of its own with its output in a file with the task's id, and
# a server in its own group; it stops, again and again while tasks end, and ends when none is left.
client() {
    cat >client.py <<'PY'
import json, os, subprocess, sys

kinds = sys.argv[1].split(",")           # of its tasks
again = int(sys.argv[2])                 # how often it starts one that has ended again
server = subprocess.Popen(["sleep", "500"])
open("server", "w").write(str(server.pid))
command = "trap '' TERM; echo \"it's\"; touch ready; sleep 600 & wait; wait"


def start(number):
    task = {"id": "b%06d" % number, "type": kinds[number % len(kinds)], "status": "running", "description": "x", "command": command}
    with open("tasks/%s.output" % task["id"], "w") as out:
        task["process"] = subprocess.Popen(["bash", "-c", "eval " + command.replace("'", "'\\''").join("''")], stdout=out, stderr=out, start_new_session=True)
    return task


os.makedirs("tasks", exist_ok=True)
tasks = [start(i) for i in range(len(kinds))]
while not os.path.exists("ready"):
    pass
stops = 0
while tasks:
    stops += 1
    shown = [{k: v for k, v in t.items() if k != "process"} for t in tasks]
    event = {"session_id": "c", "hook_event_name": "Stop", "stop_hook_active": False, "prompt_id": "p%d" % stops, "background_tasks": shown}
    hook = subprocess.run([os.environ["HOLDFAST"], "hook", "stop"], input=json.dumps(event).encode(), stdout=subprocess.PIPE, check=True)
    assert hook.stdout == b"", hook.stdout
    open("stops", "w").write(str(stops))
    for t in list(tasks):
        t["process"].wait()
        tasks.remove(t)
        if again > 0:
            again -= 1
            tasks.append(start(len(kinds) * stops))
assert server.poll() is None, "the server was ended"
PY
    export CLAUDE_CODE_SESSION_ATTENDED=0
}

@test "ps, status, --json and one event show that an answered client waits for its background task (L8)" {
    client
    hf -q run x -d -- python3 client.py shell 0
    wait_until 30 test -e stops
    is_field x '.activity.state' background
    [[ "$(hf ps x | tail -1)" == *"  (answered; waits for its background task 'trap '' TERM; echo "* ]]
    [[ "$(hf status x)" == *$'\n  answered; waits for its background task '\'* ]]
    is_field x '.needs' '[]'
    [ "$(events background_left)" -eq 1 ]
    [ "$(hf journal query --json --event background_left | jq -r '.count, .killed' | xargs)" = "1 0" ]
}

@test "run --end-background ends all processes of the tasks and no other process: the client ends with 0 (L6)" {
    client
    expect 0 timeout 60 "$HOLDFAST" run x --end-background --deadline 55s -- python3 client.py shell,shell 0
    [ "$(events background_left)" -eq 1 ]
    # Two shells and their two sleeps.
    [ "$(hf journal query --json --event background_left | jq -r '.count, (.killed >= 4)' | xargs)" = "2 true" ]
    is_field x '.outcome' succeeded
}

@test "an agent that restarts its task: the task is ended three times in an attempt, then the client waits" {
    client
    hf -q run x -d --end-background -- python3 client.py shell 9
    wait_until 60 eval '[ "$(cat stops 2>/dev/null)" = 4 ]'
    [ "$(hf journal query --json --event background_left | jq -r '.killed > 0' | xargs)" = "true true true false" ]
    is_field x '.activity.state' background
}

@test "a task of another type than shell is not ended, and neither are the shells next to it" {
    client
    hf -q run x -d --end-background -- python3 client.py shell,subagent 0
    wait_until 30 test -e stops
    [ "$(hf journal query --json --event background_left | jq -r '.count, .killed' | xargs)" = "2 0" ]
    is_field x '.activity.text | endswith(" and 1 more")' true
}

@test "--end-background adds hooks to the client and is kept by --resume; other commands run without hooks" {
    hf -q run x --end-background -- sh -c 'exit 3' || true
    expect 0 hf run x --resume -- true
    [[ "$output" == *"end-background"* ]]
    mkdir bin
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >words\n' >bin/claude
    chmod +x bin/claude
    hf -q run y --end-background -- "$PWD/bin/claude" -p hello
    [[ "$(cat words)" == *--settings*'"hook","stop"'* ]]
}

@test "a client on a terminal: its hooks report a prompt, work, and the wait for the next prompt" {
    cat >asks.py <<'PY'
import os, subprocess, sys, time
for hook, name in (("asks", "ask"), ("tool", "tool"), ("stop", "stop"), ("asks", "idle")):
    subprocess.run([os.environ["HOLDFAST"], "hook", hook], stdin=open(name + ".json"), check=True)
    open("did-" + name, "w").close()
    while not os.path.exists("past-" + name):
        time.sleep(0.02)
PY
    cp "$R/copilot/permissionRequest.json" ask.json
    cp "$R/copilot/postToolUse.json" tool.json
    cp "$R/copilot/agentStop.json" stop.json
    echo '{"hook_event_name":"Notification","notification_type":"idle_prompt","message":"Claude is waiting for your input"}' >idle.json
    COPILOT_CLI=1 hf -q run x -d -t -- python3 asks.py
    wait_until 20 test -e did-ask
    is_field x '.needs[0].code, .activity.text' $'asks\napprove bash: echo hi-from-cop; pwd'
    touch past-ask
    wait_until 20 test -e did-tool
    is_field x '.needs, .activity.state' $'[]\nworking'
    touch past-tool
    wait_until 20 test -e did-stop
    is_field x '.needs[0].code, .activity.state' $'waits\ndone'
    touch past-stop
    wait_until 20 test -e did-idle
    is_field x '.needs[0].code, .activity.state' $'waits\ndone'
    # Without a terminal no person can answer.
    rm -f did-* past-*
    COPILOT_CLI=1 hf -q run y -d -- python3 asks.py
    wait_until 20 test -e did-ask
    is_field y '.needs, .activity' $'[]\nnull'
}

@test "messages of hooks are plain text and bounded; broken events and clients outside of a session get no answer" {
    cat >say.py <<'PY'
import json, os, subprocess
event = {"hook_event_name": "Notification", "notification_type": "permission_prompt", "message": "\x1b[31mrm\x1b[0m \x9b31m\n\u202e" + "x" * 5000}
for text in (json.dumps(event), "", "{", '{"hook_event_name":"Notification"}', '{"hook_event_name":"PostToolUse2"}', "[" * 100000):
    hook = subprocess.run([os.environ["HOLDFAST"], "hook", "asks"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    assert hook.stdout == b"", hook.stdout
open("said", "w").close()
subprocess.run(["sleep", "600"])
PY
    CLAUDE_CODE_SESSION_ATTENDED=1 hf -q run x -d -- python3 say.py
    wait_until 20 test -e said
    is_field x '.activity.text | (length, .[0:6])' $'255\nrm ??x'
    run --separate-stderr hf hook asks <<<'{"hook_event_name":"PermissionRequest","tool_name":"Bash"}'
    [ "$status$output$stderr" = 0 ]
}
