#!/usr/bin/env bats
# The real clients with our hooks, offline: tests/clients/run starts this in a network of its own.
load ../cli/helper

PORT=8787

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s HOME="$BATS_TEST_TMPDIR/home"
    mkdir -p "$HOME" "$BATS_TEST_TMPDIR/project"
    cd "$BATS_TEST_TMPDIR/project" || return 1
    spawned=()
}

# model SCRIPTS: the stand-in, with what it answers
model() {
    command -v node >/dev/null || skip "node is not installed"
    cat >../scripts.json
    spawn node "$BATS_TEST_DIRNAME/fake-model.js" "$PORT" ../requests.jsonl ../scripts.json
    wait_until 60 grep -q ":$(printf %04X "$PORT") 00000000:0000 0A" /proc/net/tcp
}

# have CLIENT: its program and environment in $client and $with; where it is not installed, the test is skipped
have() {
    local url="http://127.0.0.1:$PORT" packages=${HOLDFAST_CLIENTS:-/nonexistent}
    with=(env -u CLAUDECODE -u CLAUDE_CODE_SESSION_ID IS_SANDBOX=1 FAKE_KEY=fake)
    case $1 in
    claude)
        program="$packages/@anthropic-ai/claude-code-linux-x64/claude"
        with+=("ANTHROPIC_BASE_URL=$url" ANTHROPIC_API_KEY=fake DISABLE_TELEMETRY=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1)
        client=("$program" -p --permission-mode bypassPermissions) ;;
    codex)
        program=$(find "$packages"/@openai/*/vendor -path '*/bin/codex' -type f 2>/dev/null | head -n 1)
        mkdir -p "$HOME/.codex"
        printf '%s\n' 'model="fake-model"' 'model_provider="fake"' '[model_providers.fake]' 'name="fake"' "base_url=\"$url/v1\"" 'wire_api="responses"' 'env_key="FAKE_KEY"' >"$HOME/.codex/config.toml"
        client=("$program" exec --skip-git-repo-check --dangerously-bypass-hook-trust --dangerously-bypass-approvals-and-sandbox) ;;
    copilot)
        program="$packages/.bin/copilot"
        with+=("COPILOT_PROVIDER_BASE_URL=$url/v1" COPILOT_PROVIDER_API_KEY=x COPILOT_MODEL=fake-model COPILOT_OFFLINE=true COPILOT_AUTO_UPDATE=false)
        client=("$program" --allow-all-tools -p) ;;
    gemini)
        program="$packages/.bin/gemini"
        with+=(GEMINI_API_KEY=fake "GOOGLE_GEMINI_BASE_URL=$url" GEMINI_TELEMETRY_ENABLED=false GEMINI_CLI_TRUST_WORKSPACE=true)
        mkdir -p "$HOME/.gemini"
        printf '{\n  "security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n' >"$HOME/.gemini/settings.json"
        client=("$program" --yolo -p) ;;
    esac
    [ -x "$program" ] || skip "$1 is not installed: make check-clients installs it"
}

# session NAME OPTIONS... -- PROMPT: the client as a session
session() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    "${with[@]}" timeout --kill-after=10 180 "$HOLDFAST" run "$name" "${options[@]}" -- "${client[@]}" "$2" </dev/null
}

events() { timeout 20 "$HOLDFAST" journal query --json --event "$1" --name "$2" | wc -l; }

# tool CLIENT COMMAND: how its model asks for a shell command
tool() {
    case $1 in
    claude) jq -cn --arg c "$2" '{tool:"Bash",input:{command:$c,description:"x"}}' ;;
    codex) jq -cn --arg c "$2" '{tool:"exec_command",input:{cmd:$c}}' ;;
    copilot) jq -cn --arg c "$2" '{tool:"bash",input:{command:$c,description:"x"}}' ;;
    gemini) jq -cn --arg c "$2" '{tool:"run_shell_command",input:{command:$c,description:"x"}}' ;;
    esac
}

# The work of one client from the first stop to the goal: asked to go on, it does what is missing, and is let go.
until_the_goal() {
    have "$1"
    model <<<"{\"goal\":[{\"text\":\"first\"},$(tool "$1" 'touch done'),{\"text\":\"second\"}],\"default\":[{\"text\":\"x\"}]}"
    hf -q hook install "$1"
    hf -q keep on --session s --until 'test -e done' --goal 'make the file'
    session s -- '@@goal@@ begin' >out
    [ -e done ]
    grep -q second out
    [ "$(events stop_blocked s)" -eq 1 ]
    [ "$(timeout 20 "$HOLDFAST" journal query --json --event keep_ended | jq -r .reason)" = "the until command succeeded" ]
    # The goal has reached the model.
    grep -q 'make the file' ../requests.jsonl
}

# A client that never does what it is asked is let go after --max blocks.
up_to_the_cap() {
    have "$1"
    model <<<'{"plain":[{"text":"no"},{"text":"no","repeat":true}],"default":[{"text":"x"}]}'
    hf -q hook install "$1"
    hf -q keep on --session s --max 2
    session s -- '@@plain@@ begin' >out
    [ "$(events stop_blocked s)" -eq 2 ]
    [ "$(timeout 20 "$HOLDFAST" journal query --json --event stop_allowed | jq -r .reason)" = limit ]
}

# The deadline comes while the stop hook waits for its until command: everything ends, nothing is left.
deadline_while_blocked() {
    have "$1"
    model <<<'{"plain":[{"text":"no"}],"default":[{"text":"x"}]}'
    hf -q hook install "$1"
    hf -q keep on --session s --until 'echo $$ >asking; exec sleep 1000' --until-timeout 9m
    run session s --deadline 40s --grace 5s -- '@@plain@@ begin'
    [ "$status" -eq 124 ]
    [ -e asking ]
    [ ! -d "/proc/$(cat asking)" ]
    timeout 20 "$HOLDFAST" ps s --json | jq -e ".sessions[0] | .outcome == \"timed-out\""
}

@test "claude: blocked until the goal is reached" { until_the_goal claude; }
@test "codex: blocked until the goal is reached" { until_the_goal codex; }
@test "copilot: blocked until the goal is reached" { until_the_goal copilot; }
@test "gemini: blocked until the goal is reached" { until_the_goal gemini; }

@test "claude: let go after --max blocks" { up_to_the_cap claude; }
@test "codex: let go after --max blocks" { up_to_the_cap codex; }
@test "copilot: let go after --max blocks" { up_to_the_cap copilot; }
@test "gemini: let go after --max blocks" { up_to_the_cap gemini; }

@test "claude: a deadline during a block ends everything at once" { deadline_while_blocked claude; }
@test "codex: a deadline during a block ends everything at once" { deadline_while_blocked codex; }

@test "claude: two sessions in one project: the work mode of one is nothing to the other" {
    have claude
    model <<<'{"plain":[{"text":"no"},{"text":"no","repeat":true}],"default":[{"text":"x"}]}'
    hf -q hook install claude --project
    hf -q keep on --session a --max 2
    session a -- '@@plain@@ begin' >out.a &
    a=$!
    session b -- '@@plain@@ begin' >out.b
    wait "$a"
    [ "$(events stop_blocked a)" -eq 2 ]
    [ "$(events stop_blocked b)" -eq 0 ]
    # Nothing but its own end has changed it.
    hf keep status --session a
}

@test "claude: with run --hooks the agent's own shell cannot take the hooks out" {
    have claude
    mkdir -p .claude
    model <<<"{\"off\":[$(tool claude 'mkdir -p ~/.claude; echo {} >~/.claude/settings.json; echo {\"disableAllHooks\":true} | tee .claude/settings.json >.claude/settings.local.json; sleep 2'),{\"text\":\"no\"},{\"text\":\"no\",\"repeat\":true}],\"default\":[{\"text\":\"x\"}]}"
    hf -q keep on --session s --max 2
    session s --hooks -- '@@off@@ begin' >out
    [ "$(cat .claude/settings.local.json)" = '{"disableAllHooks":true}' ]
    [ "$(events stop_blocked s)" -eq 2 ]
}

@test "codex: run --hooks gives it our hooks" {
    have codex
    model <<<'{"plain":[{"text":"no"},{"text":"no","repeat":true}],"default":[{"text":"x"}]}'
    hf -q keep on --session s --max 2
    session s --hooks -- '@@plain@@ begin' >out
    [ "$(events stop_blocked s)" -eq 2 ]
    [ ! -e "$HOME/.codex/hooks.json" ]
}

@test "copilot: with run --hooks the agent's own shell cannot take the hooks out" {
    have copilot
    model <<<"{\"off\":[$(tool copilot 'mkdir -p ~/.copilot .github/hooks; rm -rf ~/.copilot/hooks; echo {\"disableAllHooks\":true} | tee ~/.copilot/settings.json ~/.copilot/config.json >.github/hooks/x.json; sleep 1'),{\"text\":\"no\"},{\"text\":\"no\",\"repeat\":true}],\"default\":[{\"text\":\"x\"}]}"
    hf -q keep on --session s --max 2
    session s --hooks -- '@@off@@ begin' >out
    [ "$(cat .github/hooks/x.json)" = '{"disableAllHooks":true}' ]
    [ "$(events stop_blocked s)" -eq 2 ]
    [ ! -e "$HOME/.copilot/hooks" ]
}

# Clients that read their settings once: what hook install put there is in force until they end.
installed_for_the_whole_run() {
    have "$1"
    model <<<"{\"off\":[$(tool "$1" "$2; touch tampered; sleep 1"),{\"text\":\"no\"},{\"text\":\"no\",\"repeat\":true}],\"default\":[{\"text\":\"x\"}]}"
    hf -q hook install "$1"
    hf -q keep on --session s --max 2
    session s -- '@@off@@ begin' >out
    [ -e tampered ]
    [ "$(events stop_blocked s)" -eq 2 ]
}

@test "gemini: hooks that the agent's own shell takes out of the settings stay in force until the client ends" {
    installed_for_the_whole_run gemini 'mkdir -p .gemini; echo {\"hooksConfig\":{\"enabled\":false}} | tee ~/.gemini/settings.json >.gemini/settings.json'
}
@test "codex: hooks that the agent's own shell takes out of the settings stay in force until the client ends" {
    installed_for_the_whole_run codex 'mv ~/.codex/hooks.json taken-out'
}
@test "copilot: hooks that the agent's own shell takes out of the settings stay in force until the client ends" {
    installed_for_the_whole_run copilot 'rm -rf ~/.copilot/hooks; echo {\"disableAllHooks\":true} >~/.copilot/settings.json'
}

# Two sessions of one client in one project: the work mode of one is nothing to the other.
two_sessions() {
    have "$1"
    model <<<'{"plain":[{"text":"no"},{"text":"no","repeat":true}],"default":[{"text":"x"}]}'
    hf -q hook install "$1"
    hf -q keep on --session a --max 2
    session a -- '@@plain@@ begin' >out.a &
    a=$!
    session b -- '@@plain@@ begin' >out.b
    wait "$a"
    [ "$(events stop_blocked a)" -eq 2 ]
    [ "$(events stop_blocked b)" -eq 0 ]
    # Nothing but its own end has changed it.
    hf keep status --session a
}

@test "codex: two sessions in one project: the work mode of one is nothing to the other" { two_sessions codex; }
@test "copilot: two sessions in one project: the work mode of one is nothing to the other" { two_sessions copilot; }
@test "gemini: two sessions in one project: the work mode of one is nothing to the other" { two_sessions gemini; }

@test "copilot: a deadline during a block ends everything at once" { deadline_while_blocked copilot; }
@test "gemini: a deadline during a block ends everything at once" { deadline_while_blocked gemini; }

@test "claude: a comment in its settings switches them off, as hook install says; with --fix they work" {
    have claude
    model <<<'{"plain":[{"text":"no"},{"text":"no","repeat":true}],"default":[{"text":"x"}]}'
    hf -q hook install claude
    sed -i '1s|{|{ // mine|' "$HOME/.claude/settings.json"
    hf -q keep on --session s --max 1
    session s -- '@@plain@@ begin' >out
    [ "$(events stop_blocked s)" -eq 0 ]
    expect 3 hf hook install claude
    hf -q hook install claude --fix
    session s -- '@@plain@@ begin' >out
    [ "$(events stop_blocked s)" -eq 1 ]
}

@test "claude: --end-background ends a background task after the answer, and the client ends with 0" {
    have claude
    model <<<'{"bg":[{"tool":"Bash","input":{"command":"echo \"it'"'"'s\"; exec sleep 300","description":"x","run_in_background":true}},{"text":"answered"},{"text":"again"}],"default":[{"text":"x"}]}'
    session s --end-background --deadline 120s -- '@@bg@@ begin' >out
    grep -q answered out
    timeout 20 "$HOLDFAST" journal query --json --event background_left | jq -e '.count == 1 and .killed >= 1 and (.tasks | contains("exec sleep 300"))'
}

# on_terminal CLIENT: as `have`, at the prompts of a person on a terminal: $client takes one prompt and asks before it runs a command
on_terminal() {
    have "$1"
    case $1 in
    claude)
        with+=(ANTHROPIC_API_KEY=sk-ant-fake-key-for-tests-000)
        printf '{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["ke-key-for-tests-000"],"rejected":[]},"projects":{"%s":{"hasTrustDialogAccepted":true}}}' "$PWD" >"$HOME/.claude.json"
        client=("$program" --permission-mode manual) ;;
    codex)
        printf '[projects."%s"]\ntrust_level="trusted"\n' "$PWD" >>"$HOME/.codex/config.toml"
        client=("$program" --ask-for-approval on-request --sandbox read-only) ;;
    copilot)
        mkdir -p "$HOME/.copilot"
        printf '{"trusted_folders":["%s"]}' "$PWD" >"$HOME/.copilot/config.json"
        client=("$program" -i) ;;
    gemini)
        printf '{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}' >"$HOME/.gemini/settings.json"
        client=("$program" -i) ;;
    esac
}

is_blocked() { timeout 20 "$HOLDFAST" ps s --json | jq -e '.sessions[0] | .activity.state == "blocked" and .needs[0].code == "asks"'; }

# Its prompt before a command is a need at once.
asks_on_its_terminal() {
    local options=() more={}
    on_terminal "$1"
    [ "$1" != codex ] || more='{sandbox_permissions:"require_escalated",justification:"x"}'
    [ "$1" != copilot ] || options=(--hooks)
    model <<<"{\"ask\":[$(tool "$1" 'touch permitted' | jq -c ".input += $more"),{\"text\":\"done\"}],\"default\":[{\"text\":\"x\"}]}"
    "${with[@]}" TERM=xterm-256color timeout 60 "$HOLDFAST" run s -d -t "${options[@]}" -- "${client[@]}" '@@ask@@ begin' >/dev/null
    wait_until 90 is_blocked || { timeout 20 "$HOLDFAST" status s; timeout 20 "$HOLDFAST" logs s | cat -v | tail -c 2000; return 1; }
    timeout 20 "$HOLDFAST" status s | grep '^! asked .* ago: '
    timeout 20 "$HOLDFAST" stop s --grace 0 >/dev/null
    [ ! -e permitted ]
}

@test "claude: a permission prompt on its terminal needs you at once" { asks_on_its_terminal claude; }
@test "codex: a permission prompt on its terminal needs you at once" { asks_on_its_terminal codex; }
@test "copilot: a permission prompt on its terminal needs you at once" { asks_on_its_terminal copilot; }
@test "gemini: a permission prompt on its terminal needs you at once" { asks_on_its_terminal gemini; }
