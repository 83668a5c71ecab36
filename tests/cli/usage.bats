load helper

@test "no command prints the usage on stderr and exits 2" {
    run --separate-stderr hf
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ "$stderr" == usage:* ]]
}

@test "--help and help print on stdout and exit 0; a noun shows only its verbs" {
    expect 0 hf --help
    says "journal query"
    expect 0 hf help journal
    says "journal verify"
    [[ "$output" != *"name key"* ]]
    expect 0 hf journal --help
    expect 0 hf journal emit --help
    says "--durable"
}

@test "an unknown command, verb or option exits 2, names it and suggests" {
    expect 2 hf jurnal query
    says "'jurnal'"
    says "did you mean 'journal'?"
    expect 2 hf xyzzy
    [[ "$output" != *"did you mean"* ]]
    expect 2 hf journal qery
    says "no verb 'qery'; did you mean 'query'?"
    expect 2 hf journal query --evnt note
    says "did you mean --event?"
    expect 2 hf --jsn version
    expect 2 hf name key
    says "missing"
    expect 2 hf name key a b
    says "unexpected argument 'b'"
    expect 2 hf journal query --limit
    says "needs a value"
    expect 2 hf journal query --limit=many
    says "not a number"
    expect 2 hf journal query --since tomorrowish
    says "is not a time"
    expect 2 hf journal query --since 2026-02-30
    says "is not a time"
    expect 2 hf version --json=yes
    says "takes no value"
}

@test "short options may be joined, and the last may have its value in the same word" {
    hf -q run x --log -- printf '1\n2\n3\n'
    [ "$(hf logs -fn1 x)" = 3 ]
    [ "$(hf logs -fn 2 x)" = "$(printf '2\n3')" ]
    expect 2 hf logs -fz x
    says "'-fz': unknown option -z"
    expect 2 hf logs -fn x
}

@test "a mistyped or missing value is refused; it never becomes the command, and an option or -- never becomes the value" {
    local options
    expect 2 hf lock run x -w abc -- touch ran
    says "--wait: 'abc' is not a duration"
    expect 2 hf lock run x -w touch ran
    expect 2 hf lock run x -w "" -- touch ran
    expect 2 hf lock acquire x -w abc
    expect 2 hf lock fd 9 -w abc
    expect 2 hf run x -w abc -- touch ran
    expect 2 hf run -w touch ran
    expect 2 hf run x --ttl -- touch ran
    says "--ttl needs a value"
    for options in "--verify" "--notify" "--cwd" "--env" "--mem" "--verify --deadline 5m" "--in --deadline 5m"; do
        # shellcheck disable=SC2086  # several words
        expect 2 hf run x $options -- touch ran
        says "needs a value"
    done
    [ ! -e ran ]
    # Where no command follows, an id may be any word.
    expect 0 hf keep on --session --force --goal -- --ttl 1m
    # Without a value it is followed by an option, by --, or by nothing.
    expect 0 hf lock run x -w -- touch ran
    expect 0 hf lock run x -w --ttl 5s touch ran
    expect 0 hf lock acquire x --pid $$ -w
    expect 0 hf run y --verify=true -w -- true
}

# Each verb that there is, one in a line.
verbs() { hf help | sed -nE 's/^  ([a-z]+( [a-z-]+)?)  +.*/\1/p'; }

@test "a letter has one meaning: -n where it waits or where it shows, -s shared; every help fits into 80 columns" {
    while read -r -a verb; do
        hf "${verb[@]}" --help >help
        sed -nE 's/^  -([a-zA-Z]), --([a-z-]+).*/\1 \2/p' help >>letters
        awk -v verb="${verb[*]}" 'length > 79 { print verb ": " $0 }' help >>wide
        # A command that waits has both, and one that shows has no -w beside its -n.
        if grep -q '^  -n, --nonblock' help; then grep -q '^  -w, --wait' help; fi
        if grep -qE '^  -n, --(lines|limit) ' help; then [ "$(grep -c '^  -w, ' help)" -eq 0 ]; fi
    done < <(verbs)
    hf help >help
    awk 'length > 79' help >>wide
    [ ! -s wide ] || { cat wide; false; }
    [ "$(verbs | wc -l)" -gt 60 ]
    diff <(sort -u letters) - <<'END'
C cwd
E conflict-exit-code
S since
U until
a all
c command
d detach
e event
f follow
m message
n limit
n lines
n nonblock
o output
p patch
r read-only
r reentrant
s shared
t terminal
t text
t times
t token
u unlock
v verbose
w wait
z null
END
}

@test "the options of run stand under titles" {
    expect 0 hf run --help
    grep -E '^[A-Z]' <<<"$output" | diff - <(printf '%s\n' "Time limits and success" "Background, input and log" \
        "Command, directory and resume" "Repetition and notices" "Concurrency" "Processes and their limits" \
        "Signals and the exit status" "Sandbox and landing on git" "If the name is taken")
}

@test "the name of the program alone shows the first things, within a screen of 80 x 24, exit 2" {
    expect 2 hf
    [ "${#lines[@]}" -le 22 ]
    [ "$(awk 'length > 79' <<<"$output")" = "" ]
    says "run NAME -- CMD"
    says "holdfast help"
}

@test "global options are taken before and behind the command, and -- ends them" {
    expect 0 hf --json version
    is_json '.v == 1 and (.version | type == "string")'
    expect 0 hf version --json
    is_json '.v == 1'
    expect 0 hf name key -- --json
    [ "$output" = --json ]
}

@test "version: plain, flag and JSON agree" {
    expect 0 hf version
    plain=$output
    expect 0 hf --version
    [ "$output" = "$plain" ]
    expect 0 hf version --json
    [ "holdfast $(jq -r .version <<<"$output")" = "$plain" ]
}

@test "-q silences talk, not data, and keeps the exit status" {
    expect 2 hf -q jurnal
    [ -z "$output" ]
    expect 0 hf -q name key a/b
    [ "$output" = 'a%2Fb' ]
}

@test "stdout that cannot be written is exit 4, not silence" {
    [ -c /dev/full ] || skip "no /dev/full"
    run bash -c '"$HOLDFAST" version >/dev/full'
    [ "$status" -eq 4 ]
}

@test "closed stdio does not make a file of ours stdout" {
    hf journal emit note text=one
    "$HOLDFAST" journal emit note text=two <&- >&- 2>&-
    expect 0 hf journal verify
    says "2 record(s)"
    says "whole"
}

@test "messages cannot be steered by what the user gave: control bytes are shown" {
    expect 2 hf journal emit $'no\e[31mte'
    says '\x1b[31m'
}
