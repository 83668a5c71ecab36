#!/usr/bin/env bats
# run --hooks: the client gets our hooks on its command line, and nothing is written into its settings or the project.
load ../helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s HOME="$BATS_TEST_TMPDIR/home"
    unset CLAUDE_CONFIG_DIR CODEX_HOME
    mkdir -p "$HOME" "$BATS_TEST_TMPDIR/bin"
    cd "$BATS_TEST_TMPDIR" || return 1
    # It writes its arguments down, one in a file.
    for client in claude codex gemini copilot; do
        printf '#!/bin/sh\nrm -f arg.*\nn=0\nfor a; do n=$((n + 1)); printf %%s "$a" >arg.$n; done\nexit "${RC:-0}"\n' >"bin/$client"
        chmod +x "bin/$client"
    done
    PATH="$PWD/bin:$PATH"
    spawned=()
}

@test "claude gets --settings, before a --, and the hooks in it work; nothing is written into its settings" {
    hf run a --hooks -- claude -p "fix it" -- prompt
    [ "$(cat arg.1 arg.2 arg.3 arg.5 arg.6)" = "-pfix it--settings--prompt" ]
    jq -e '.disableAllHooks == false and .hooks.Stop[0].hooks[0].timeout == 600' arg.4
    jq -r '.hooks.Stop[0].hooks[0] | [.command] + .args | @sh' arg.4 >line
    hf -q keep on --session s
    echo '{"session_id":"s","hook_event_name":"Stop"}' | sh line | jq -e '.decision == "block"'
    [ -z "$(ls -A "$HOME")" ]
    [ ! -e .claude ]
}

@test "codex gets -c for each event, in TOML, when its command says that hooks are trusted" {
    hf run a --hooks -- codex exec --dangerously-bypass-hook-trust "fix it"
    [ "$(cat arg.1)" = -c ]
    grep -q '^hooks\.Stop=\[{hooks=\[{type="command",command="[^"]* hook stop",timeout=600}\]}\]$' arg.2
    expect 2 hf run b --hooks -- codex exec "fix it"
    says "dangerously-bypass-hook-trust"
}

@test "copilot gets --plugin-dir, a plugin of the state directory whose hooks work" {
    umask 0177
    hf run a --hooks -- copilot -p "fix it"
    [ "$(cat arg.1 arg.3 arg.4)" = "--plugin-dir-pfix it" ]
    plugin=$(cat arg.2)
    [ "$plugin" = "$HOLDFAST_DIR/clients/copilot" ]
    [ "$(jq -r .hooks "$plugin/plugin.json")" = hooks.json ]
    jq -e '.version == 1 and .hooks.agentStop[0].timeoutSec == 600' "$plugin/hooks.json"
    [ "$(stat -c %a "$plugin")$(stat -c %a "$plugin/hooks.json")" = 700600 ]
    hf -q keep on --session s
    jq -r '.hooks.agentStop[0].bash' "$plugin/hooks.json" >line
    echo '{"sessionId":"s","stopReason":"end_turn"}' | sh line | jq -e '.decision == "block"'
    [ -z "$(ls -A "$HOME")" ]
    # Written once; what has other bytes is written anew, and a directory of another's is refused (L12).
    before=$(stat -c %i "$plugin/hooks.json")
    hf run a --hooks -- copilot -p x
    [ "$(stat -c %i "$plugin/hooks.json")" = "$before" ]
    echo '{}' >"$plugin/hooks.json"
    hf run a --hooks -- copilot -p x
    jq -e '.hooks.agentStop' "$plugin/hooks.json"
    rm -r "$plugin"
    ln -s "$HOME" "$plugin"
    expect 3 hf run a --hooks -- copilot -p x
    [ -z "$(ls -A "$HOME")" ]
}

@test "a session that is resumed has its hooks; with a new command they are given anew" {
    RC=3 expect 3 hf run a --hooks -- claude -p one
    cp arg.4 first
    rm arg.*
    RC=3 expect 3 hf run a --resume
    cmp arg.4 first
    expect 2 hf run a --resume --hooks
    says "keeps its hooks"
    hf run a --resume --hooks -- claude -p two
    [ "$(cat arg.2)" = two ]
    cmp arg.4 first
}

@test "a command that is no client, or cannot be given hooks, is refused before anything starts" {
    expect 2 hf run a --hooks -- sh -c 'claude -p x'
    says "claude, codex or copilot"
    expect 2 hf run a --hooks -- gemini -p x
    says "hook install gemini"
    says "reads them at its start"
    for option in --settings --settings={} --bare --safe-mode; do
        expect 2 hf run a --hooks -- claude "$option" x
    done
    hf run a --hooks -- claude -p -- --settings
    [ ! -e arg.6 ]
}
