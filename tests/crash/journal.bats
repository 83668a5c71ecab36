# Killed at every system call that changes something: what was acknowledged stays, the next record is whole.
load ../cli/helper
load helper

nothing_yet() { rm -rf "$HOLDFAST_DIR"; }

numbers_have_no_gap() {
    expect 0 hf journal emit note text=next
    expect 0 hf journal verify
    [ "$(hf -q journal query --json | jq -rs 'map(.seq) == [range(1; length + 1)]')" = true ]
}

@test "kill at every call of the very first emit: the next one works and the journal is whole (L9)" {
    require_strace
    each_point nothing_yet numbers_have_no_gap journal emit note text=first --durable
}

as_before() {
    rm -rf "$HOLDFAST_DIR"
    cp -a before "$HOLDFAST_DIR"
}

nothing_is_lost() {
    local last
    last=$(hf -q journal query --json --limit 1 | jq .seq)
    expect 0 hf journal emit note text=next
    expect 0 hf journal verify
    [ "$(hf -q journal query --json --event note --limit 1 | jq -r .text)" = next ]
    [ "$(hf -q journal query --json --limit 1 | jq .seq)" -gt "$last" ]
}

@test "kill at every call of an emit that rotates and prunes: nothing acknowledged is lost (L9)" {
    require_strace
    export HOLDFAST_JOURNAL_SEGMENT=4K HOLDFAST_JOURNAL_RETAIN=8K
    for i in {1..10}; do hf journal emit note text="$(printf 'x%.0s' {1..900})"; done
    cp -a "$HOLDFAST_DIR" before
    each_point as_before nothing_is_lost journal emit note text="$(printf 'y%.0s' {1..900})" --durable
    grep -q rename points.list
    grep -q unlink points.list
}
