#!/usr/bin/env bats
# hook install, uninstall, status: our hooks in the settings of clients, and every other byte as it was.
load ../helper

setup() {
    export HOLDFAST_DIR="$BATS_TEST_TMPDIR/state" HOLDFAST_JOURNAL_WAIT=5s HOME="$BATS_TEST_TMPDIR/home"
    unset CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME
    mkdir -p "$HOME/.claude" "$BATS_TEST_TMPDIR/project"
    cd "$BATS_TEST_TMPDIR/project" || return 1
    S="$HOME/.claude/settings.json"
    spawned=()
}

# there_and_back FILE CLIENT [SCOPE]: installed, installed again, taken out: the same bytes, mode and owner as before
there_and_back() {
    local file=$1 mode
    shift
    cp -p "$file" before
    mode=$(stat -c %a:%u:%g "$file")
    hf -q hook install "$@"
    run ! cmp -s "$file" before
    hf hook status "$@" >/dev/null
    cp "$file" once
    hf -q hook install "$@"
    cmp "$file" once
    # Nothing but lines of ours were added: what was there stands there in its order.
    [ "$(stat -c %a:%u:%g "$file")" = "$mode" ]
    hf -q hook uninstall "$@"
    cmp "$file" before
    [ ! -e "$(dirname "$file")/.$(basename "$file").lock" ]
    [ "$(stat -c %a:%u:%g "$file")" = "$mode" ]
    expect 1 hf hook status "$@"
}

@test "each client gets its own form: events, exec form, units of time" {
    for client in claude codex copilot gemini; do hf -q hook install "$client"; done
    jq -e '.hooks.Stop == [{hooks:[{type:"command",command:$p,args:["hook","stop"],timeout:600}]}]' --arg p "$(readlink -f "$HOLDFAST")" "$S"
    jq -e '.hooks | keys == ["PermissionRequest","PostToolUse","PostToolUseFailure","PreToolUse","SessionEnd","SessionStart","Stop"]' "$S"
    jq -e '.hooks.Stop[0].hooks[0] | .command == $p + " hook stop" and .timeout == 600 and (has("args") | not)' --arg p "$(readlink -f "$HOLDFAST")" "$HOME/.codex/hooks.json"
    jq -e '.version == 1 and (.hooks.agentStop[0] | .timeoutSec == 600 and (.bash | endswith("hook stop")))' "$HOME/.copilot/hooks/holdfast.json"
    jq -e '.hooks.AfterAgent[0].hooks[0] | .timeout == 600000 and .name == "holdfast-stop"' "$HOME/.gemini/settings.json"
    hf -q hook install claude --guard
    jq -e '.hooks.PreToolUse[0].hooks | length == 2' "$S"
    jq -e '.hooks.PreToolUse | length == 1' "$S"
    # The hooks do what the settings say.
    hf -q keep on --session s
    jq -r '.hooks.Stop[0].hooks[0] | [.command] + .args | @sh' "$S" >line
    echo '{"session_id":"s","hook_event_name":"Stop"}' | sh line | jq -e '.decision == "block"'
    for client in claude codex copilot gemini; do hf -q hook uninstall "$client"; done
    [ ! -e "$S" ]
    [ ! -e "$HOME/.codex/hooks.json" ]
    [ ! -e "$HOME/.copilot/hooks/holdfast.json" ]
    [ ! -e "$HOME/.gemini/settings.json" ]
    # Not even a lock file is left, and none is made by an uninstall that has nothing to do.
    for client in claude codex copilot gemini; do hf -q hook uninstall "$client"; done
    [ -z "$(find "$HOME" ! -type d)" ]
}

@test "install and uninstall give the same bytes again, however the file is written" {
    n=0
    for text in '{}' '{}\n' '{\n}\n' '{ }' '{"a":1}' '{\n  "model": "x",\n  "unknown": {"deep": [1, 2, {"y": null}]}\n}\n' \
        '{\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n' '{"hooks":{}}' '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"echo"}]}]},"z":0}' \
        '{\r\n    "a": "\\u00e9 \\" // no comment",\r\n    "b": 1e400\r\n}\r\n' '\xef\xbb\xbf{\n  "a": 1\n}\n' '{\n  "a": 12345678901234567890123\n}' \
        '{"hooks":{"SessionStart":[\n],"Unknown":7},"disableAllHooks":false}' '  {  "a"  :  1  }  \n\n'; do
        # shellcheck disable=SC2059
        printf "$text" >"$S"
        # A number that no double holds is none that can be read.
        [[ "$text" != *1e400* ]] || sed -i 's/1e400/1e40/' "$S"
        there_and_back "$S" claude || { cat -A "$S"; false; }
        n=$((n + 1))
    done
    [ "$n" -eq 14 ]
    printf '{ // mine\n  "hooks": { /* none */ },\n  "a": 1 // one\n}\n' >before.gemini
    mkdir -p "$HOME/.gemini"
    cp before.gemini "$HOME/.gemini/settings.json"
    there_and_back "$HOME/.gemini/settings.json" gemini
}

@test "line ends, byte order mark, indentation and mode of the file are those of our lines" {
    printf '\xef\xbb\xbf{\r\n\t"a": 1\r\n}\r\n' >"$S"
    chmod 640 "$S"
    umask 077
    hf -q hook install claude
    [ "$(stat -c %a "$S")" = 640 ]
    [ "$(head -c 3 "$S" | od -An -tx1 | tr -d ' ')" = efbbbf ]
    [ "$(grep -c . "$S")" -eq "$(grep -c $'\r$' "$S")" ]
    grep -q $'^\t\t"Stop": \\[\r$' "$S"
    tail -c +4 "$S" | jq -e '.a == 1 and .hooks.Stop'
}

@test "a comment or a last comma, which switch the whole file off in Claude: told, refused, and put right by --fix" {
    printf '{\n  "model": "x", // the best\n  "b": [1, 2,],\n  "c": "a, // b,}"\n}\n' >"$S"
    cp "$S" before
    expect 3 hf hook install claude
    says "line 2: a comment"
    says "ignores the whole file"
    says "--fix"
    cmp "$S" before
    [ "$(hf journal query --json --event file_abandoned | jq -r .path)" = "$S" ]
    expect 1 hf hook status claude --user
    says "unreadable"
    says "line 2"
    hf -q hook install claude --fix
    jq -e '.model == "x" and .b == [1, 2] and .c == "a, // b,}" and .hooks.Stop' "$S"
    cmp "$S.~1~" before
    hf -q hook uninstall claude
    printf '{\n  "model": "x",\n  "b": [1, 2],\n  "c": "a, // b,}"\n}\n' | cmp - "$S"
    printf '{"a":1,}' >"$S"
    expect 3 hf hook install claude
    says "line 1: a trailing comma"
    # What --fix does not understand it leaves alone.
    for text in '{"a":' 'no' '[]' '{"a":1}}' '{"hooks":[]}' '{"hooks":{},"hooks":{}}' '{"hooks":{"Stop":{}}}'; do
        printf %s "$text" >"$S"
        expect 3 hf hook install claude --fix
        [ "$(cat "$S")" = "$text" ]
    done
    : >"$S"
    expect 3 hf hook install claude
    hf -q hook install claude --fix
    jq -e .hooks.Stop "$S"
}

@test "hooks of other people stay, also beside ours in one group; hooks of an older holdfast are replaced" {
    cat >"$S" <<'J'
{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "/old/holdfast hook stop", "timeout": 5}, {"type": "command", "command": "say done"}]},
      {"hooks": [{"type": "command", "command": "/usr/bin/holdfast hook stop; rm x"}]}
    ],
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo holdfast hook stop"}]}]
  }
}
J
    expect 0 hf hook status claude --user
    says different
    hf -q hook install claude
    expect 0 hf hook status claude --user
    says installed
    jq -e '[.hooks[][].hooks[] | select(.command == "/old/holdfast hook stop")] == []' "$S"
    hf -q hook uninstall claude
    jq -ce '[.hooks[][].hooks[].command]' "$S" | grep -qx '\["say done","/usr/bin/holdfast hook stop; rm x","echo holdfast hook stop"\]'
}

@test "a project does not get what its user has; the user gets it, and learns of the project" {
    hf -q hook install codex --user
    expect 0 hf hook install codex --project
    says "nothing to do"
    [ ! -e .codex/hooks.json ]
    hf -q hook uninstall codex --user
    hf -q hook install codex --project
    expect 0 hf hook install codex --user
    says "uninstall them in one of the two"
    # Copilot reads the project's settings of Claude.
    hf -q hook install claude --project
    expect 0 hf hook install copilot --user
    says "nothing to do" || says "uninstall them in one"
    expect 0 hf hook install copilot --project
    [ ! -e .github ]
}

@test "what else keeps hooks from running is told: trust, the start directory, hooks switched off" {
    expect 0 hf hook install codex
    says "/hooks"
    expect 0 hf hook install copilot --project
    says GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS
    mkdir sub && cd sub
    expect 0 hf hook install claude --project
    says "started in this directory"
    [ -e .claude/settings.json ]
    cd ..
    expect 0 hf hook install claude --local
    [ -e .claude/settings.local.json ]
    echo '{"disableAllHooks":true}' >"$S"
    expect 0 hf hook install claude --user
    says "disables all hooks"
    run hf --json hook status claude
    jq -se 'map(.scope + ":" + .state) == ["user:installed","project:absent","local:installed"] and .[0].disabled' <<<"$output"
    expect 2 hf hook install codex --local
    expect 2 hf hook install emacs
    says "claude, codex"
    expect 2 hf hook install claude --user --project
}

@test "--dry-run prints the new text and makes nothing, not even a lock file" {
    printf '{\n  "a": 1\n}\n' >"$S"
    hf -q hook install claude --dry-run >text
    hf -q hook install claude --project --dry-run | jq -e .hooks.Stop
    [ "$(ls -A "$HOME/.claude" .)" = "$(printf '.:\ntext\n\n%s:\nsettings.json' "$HOME/.claude")" ]
    [ "$(cat "$S")" = "$(printf '{\n  "a": 1\n}')" ]
    hf -q hook install claude
    cmp text "$S"
    hf -q hook uninstall claude --dry-run | cmp - <(printf '{\n  "a": 1\n}\n')
    cmp text "$S"
}

@test "a symlink is followed inside the home directory and the project, and refused outside (L12)" {
    mkdir "$HOME/dotfiles"
    printf '{\n  "a": 1\n}\n' >"$HOME/dotfiles/claude.json"
    ln -s ../dotfiles/claude.json "$S"
    hf -q hook install claude
    [ -L "$S" ]
    jq -e .hooks.Stop "$HOME/dotfiles/claude.json"
    hf -q hook uninstall claude
    [ "$(cat "$HOME/dotfiles/claude.json")" = "$(printf '{\n  "a": 1\n}')" ]
    # A project that points at its user's settings.
    mkdir .claude
    ln -s "$HOME/dotfiles/claude.json" .claude/settings.json
    expect 3 hf hook install claude --project
    [ "$(cat "$HOME/dotfiles/claude.json")" = "$(printf '{\n  "a": 1\n}')" ]
    rm -r .claude
    ln -s "$HOME/dotfiles" .claude
    expect 3 hf hook install claude --project
    [ ! -e "$HOME/dotfiles/settings.json" ]
}

@test "a read-only file, a directory or a FIFO in its place: refused, and nothing waits" {
    echo '{"a":1}' >"$S"
    chmod 444 "$S"
    expect 4 hf hook install claude
    says "read-only"
    [ "$(cat "$S")" = '{"a":1}' ]
    rm -f "$S"
    mkdir "$S"
    expect 3 hf hook install claude
    rmdir "$S"
    mkfifo "$S"
    expect 3 hf hook install claude
    expect 1 hf hook status claude
}

@test "missing directories are made, with any umask, and a file of ours alone goes again" {
    rm -rf "$HOME"
    mkdir "$HOME"
    umask 0777
    hf -q hook install copilot
    umask 022
    jq -e .hooks.agentStop "$HOME/.copilot/hooks/holdfast.json"
    hf -q hook uninstall copilot
    [ ! -e "$HOME/.copilot/hooks/holdfast.json" ]
    CODEX_HOME="$PWD/elsewhere" expect 4 hf hook install codex
    mkdir elsewhere
    CODEX_HOME="$PWD/elsewhere" hf -q hook install codex
    # A relative one is another directory after each cd.
    CODEX_HOME=elsewhere expect 2 hf hook install codex
    says "'elsewhere' is not an absolute path"
    jq -e .hooks.Stop elsewhere/hooks.json
}

@test "--dir becomes part of the hooks, quoted for clients that use a shell" {
    mkdir -m 700 "it's here"
    hf -q --dir "it's here" hook install codex
    hf -q --dir "it's here" keep on --session s
    jq -r '.hooks.Stop[0].hooks[0].command' "$HOME/.codex/hooks.json" >line
    echo '{"session_id":"s","hook_event_name":"Stop"}' | sh line | jq -e '.decision == "block"'
    expect 0 hf --dir "it's here" hook status codex --user
    says installed
    hf -q --dir "it's here" hook uninstall codex
    [ ! -e "$HOME/.codex/hooks.json" ]
}

@test "ten installs at once beside an editor of the same file: one set of hooks, nothing lost" {
    printf '{\n  "n": 0\n}\n' >"$S"
    for _ in 1 2 3 4 5 6 7 8 9 10; do spawn timeout 60 "$HOLDFAST" -q hook install claude; done
    for _ in 1 2 3 4 5; do hf -q file edit "$S" -- jq --tab '.n += 1'; done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    jq -e '.n == 5 and (.hooks.Stop | length == 1) and ([.hooks[][].hooks[]] | length == 7)' "$S"
    hf -q hook uninstall claude
    jq -ce . "$S" | grep -qx '{"n":5}'
}

@test "installs and uninstalls side by side: the lock file that goes lets nobody past, and the last one decides" {
    printf '{\n  "mine": 1\n}\n' >"$S"
    cp "$S" before
    for i in 1 2 3 4 5 6; do
        bash -c 'for n in 1 2 3 4; do timeout 60 "$HOLDFAST" -q hook install claude && timeout 60 "$HOLDFAST" -q hook uninstall claude || exit 1; done' &
        spawned+=($!)
    done
    for pid in "${spawned[@]}"; do wait "$pid"; done
    hf -q hook uninstall claude
    cmp "$S" before
    [ "$(ls -A "$(dirname "$S")")" = settings.json ]
}

@test "hook status in the home directory shows the user's file once, and not as a project's that differs" {
    hf -q hook install claude
    cd "$HOME" || return 1
    expect 0 hf hook status claude
    [ "$(grep -c . <<<"$output")" = 2 ] || { echo "$output"; return 1; }
    [[ "$output" == *"user     installed"* && "$output" != *project* && "$output" == *"local    absent"* ]]
    [ "$(hf --json hook status claude | jq -rs 'map(.scope) | join(" ")')" = "user local" ]
    # A link to the home directory is the same place.
    ln -s "$HOME" "$BATS_TEST_TMPDIR/link"
    cd "$BATS_TEST_TMPDIR/link" || return 1
    expect 0 hf hook status claude
    [[ "$output" != *project* ]]
    # A scope that is named is always shown.
    expect 0 hf hook status claude --project
}
