# What a shell offers behind `holdfast`: made from the tables of commands and options, tried in real bash, zsh and fish.
load helper

# words WORD...: what could stand for the last of them
words() { hf __complete "$@" | cut -f1 | paste -sd' '; }

@test "completion: commands, verbs and options with what they mean; nothing is made in the state directory" {
    [ "$(words jour)" = journal ]
    [ "$(words lock re)" = "release renew" ]
    hf __complete lock run --wa | grep -q $'^--wait\twait at most DUR'
    [ "$(words journal query --js)" = --json ]
    [ "$(words help lock ren)" = renew ]
    [ "$(words --json lock ren)" = renew ]
    # An option that is only refused is not offered.
    [ "$(words run --slo)" = "" ]
    [ ! -e "$HOLDFAST_DIR" ]
}

@test "completion: names of sessions, locks, plans and events; values of options; directories and files" {
    hf -q run nightly -- true
    hf -q lock run build -- true
    hf -q plan new fix-160
    [ "$(words stop ni)" = nightly ]
    [ "$(words ps nightly ni)" = nightly ]
    [ "$(words lock check bu)" = build ]
    [ "$(words plan diff fi)" = fix-160 ]
    [ "$(words journal query --event lock_fail)" = lock_fail_open ]
    [ "$(words run x --strategy c)" = "clone copy" ]
    [ "$(words hook install c)" = "claude codex copilot" ]
    [ "$(words run x --in ./)" = :dirs ]
    [ "$(words file edit CL)" = :files ]
    [ "$(words plan add p s ./)" = :dirs ]
}

@test "completion: behind the name, with or without --, the words are the command's" {
    [ "$(words lock run x -- ma)" = ":command 4" ]
    [ "$(words lock run x ma)" = ":command 3" ]
    [ "$(words lock run -w 5s x -- make -f)" = ":command 6" ]
    [ "$(words run x --deadline 5m --in . -- gi)" = ":command 7" ]
    [ "$(words run x --deadl)" = --deadline ]
}

@test "completion: names that would break a shell's line are left out, and hostile words give no answer and no harm" {
    hf -q run $'two\nlines' -- true
    hf -q run 'has space' -- true
    [ "$(words stop tw)" = "" ]
    hf __complete stop ha | grep -q '^has space'
    [ "$(words '$(touch pwned)' '`touch pwned`')" = "" ]
    [ "$(words "")" != "" ]
    [ "$(hf __complete | wc -l)" -gt 5 ]
    [ ! -e pwned ]
    expect 2 hf completion csh
    says "bash, zsh and fish"
}

with_path() { PATH="$(dirname "$HOLDFAST"):$PATH" "$@"; }

@test "completion in a real bash" {
    hf -q run 'has space' -- true
    hf completion bash >script
    cat >try <<'TRY'
. ./script
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast 2>/dev/null; echo "${COMPREPLY[*]}"; }
try holdfast lock rel
try holdfast run x --strategy ov
try holdfast stop ha
try holdfast lock run x -- printen
complete -p holdfast
TRY
    with_path bash --norc try >answers
    diff -u - answers <<'ANSWERS'
release
overlay
has\ space
printenv
complete -F _holdfast holdfast
ANSWERS
}

@test "completion in a real fish" {
    command -v fish >/dev/null || skip "fish is not installed"
    hf -q run 'has space' -- true
    hf completion fish >script
    export HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD
    with_path fish -N -c 'source script; complete -C "holdfast lock rel"; complete -C "holdfast run x --strategy ov"; complete -C "holdfast stop ha"; complete -C "holdfast lock run x -- printen"' >answers
    cut -f1 answers | diff -u - <(printf '%s\n' release overlay 'has space' printenv) || { cat answers; return 1; }
}

@test "completion in a real zsh" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    hf completion zsh >script
    cat >try <<'TRY'
zmodload zsh/zpty
zpty shell "env TERM=dumb zsh -f -i"
say() { zpty -w shell "$1"; }
say "PS1= ; unsetopt zle_bracketed_paste; autoload -Uz compinit && compinit -D -u; source ./script; print ready-\$((1+1))"
zpty -r shell answer '*ready-2*'
zpty -w -n shell $'holdfast lock rel\t\n'
zpty -r shell answer '*missing*'
print -r -- "$answer"
zpty -w -n shell $'holdfast completion fis\t> made && print made-$((1+1))\n'
zpty -r shell answer '*made-2*'
TRY
    with_path timeout 30 zsh -f try >answers || { cat answers; return 1; }
    grep -q "holdfast lock release" answers
    head -n1 made | grep -q "fish completion"
}
