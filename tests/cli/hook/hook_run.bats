#!/usr/bin/env bats
# run --hooks: the client gets our hooks on its command line, and nothing is written to disk.
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

@test "a session that is resumed has its hooks; with a new command they are given anew" {
    RC=3 expect 3 hf run a --hooks -- claude -p one
    cp arg.4 first
    rm arg.*
    RC=3 expect 3 hf run a --resume
    cmp arg.4 first
    expect 2 hf run a --resume --hooks
    says "the hooks that it had"
    hf run a --resume --hooks -- claude -p two
    [ "$(cat arg.2)" = two ]
    cmp arg.4 first
}

@test "a command that is no client, or cannot be given hooks, is refused before anything starts" {
    expect 2 hf run a --hooks -- sh -c 'claude -p x'
    says "claude or codex"
    for client in gemini copilot; do
        expect 2 hf run a --hooks -- "$client" -p x
        says "hook install $client"
    done
    for option in --settings --settings={} --bare --safe-mode; do
        expect 2 hf run a --hooks -- claude "$option" x
    done
    hf run a --hooks -- claude -p -- --settings
    [ ! -e arg.6 ]
}
