# Whatever the umask, what we make can be used again: by the same call, by the next, and under another umask.
# Root is not held up by modes, so all of this runs as an ordinary user.
load helper

setup() {
    work=$(mktemp -d)
    spawned=()
    as=()
    program=$HOLDFAST
    if [ "$(id -u)" = 0 ]; then
        # Its own copy: the build may lie where only root can look.
        mkdir "$work/bin" "$work/libexec"
        cp "$HOLDFAST" "$work/bin/holdfast"
        cp "$(dirname "$HOLDFAST")/../libexec/holdfast-supervise" "$work/libexec/"
        program=$work/bin/holdfast
        own "$work"
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    fi
    cd "$work" || return 1
}

teardown() {
    cd / && rm -rf "$work"
}

# own PATH: to that user, with all that is in it
own() { [ "$(id -u)" != 0 ] || chown -R 65534:65534 "$1"; }

# under UMASK SCRIPT: as that user, in $work, with `hf` as the program
under() {
    run timeout --kill-after=5 60 ${as[@]+"${as[@]}"} env -u XDG_STATE_HOME HOME="$work/home" HOLDFAST_DIR="$work/deep/er/state" program="$program" \
        UMASK="$1" 3>&- bash -euc 'hf() { "$program" "$@"; }; umask "$UMASK"; '"$2"
    [ "$status" -eq 0 ] || { echo "under umask $1: exit $status: $2"; echo "$output"; ls -lR "$work"; return 1; }
}

every_verb='
    until_true() { local end=$((SECONDS + 30)); until "$@" >/dev/null; do [ $SECONDS -lt $end ] || exit 9; sleep 0.01; done; }
    is_waited_for() { hf lock list --json | grep -q "\"waiters\":\[{"; }
    hf journal emit note text=x
    hf lock run a -- true
    token=$(hf lock acquire b --pid $PPID --ttl 1m)
    hf lock renew b --token "$token"
    hf lock check b
    hf lock release b --token "$token"
    hf lock run q -- timeout 30 sh -c "until [ -e go ]; do sleep 0.01; done" &
    first=$!
    until_true hf -q lock check q
    hf lock run q -w 30 -- true &
    second=$!
    until_true is_waited_for
    mkdir go
    wait $first
    wait $second
    rmdir go
    hf lock list >/dev/null
    echo input | hf run in-$UMASK -d --stdin yes -- sh -c "cat; exit 3" >/dev/null
    hf wait in-$UMASK || test $? = 3
    hf -q run in-$UMASK --resume </dev/null | grep -q input
    hf run tty-$UMASK -d -t -- sh -c "read -r answer; test \"\$answer\" = yes" >/dev/null
    echo yes | hf -q attach tty-$UMASK >/dev/null
    hf wait tty-$UMASK
    hf file edit f -- sed s/a/b/
    hf file block f id --text text
    hf file edit f --sidecar --backup 2 -- cat
    hf file with f -- true
    hf file edit new-$UMASK-$RANDOM --create -- echo new
    hf run s --log -- echo hello
    hf logs s
    hf run r -- sh -c "test \$HOLDFAST_ATTEMPT -gt 1" || [ $? -eq 1 ]
    hf run r --resume
    hf run d --detach --log -- sleep 60
    hf ps >/dev/null
    hf stop d --grace 1s
    hf reap
    hf why a >/dev/null
    hf journal query >/dev/null
    hf journal verify'

@test "every verb works on a new directory under any umask, twice, and afterwards under 022 (L12)" {
    for mask in 0177 0277 0377 0477 0577 0777; do
        rm -rf deep f .f* f.*
        (umask 022; echo a >f)
        own f
        under "$mask" "$every_verb"
        under "$mask" "$every_verb"
        under 022 "$every_verb; hf doctor --json >/dev/null || [ \$? -eq 1 ]"
        # Nothing of ours lacks its owner's bits, and nothing lets others in.
        [ -z "$(find deep -type d ! -perm 0700)" ] || { find deep -type d ! -perm 0700 -ls; return 1; }
        [ -z "$(find deep -type f ! -perm 0600)" ] || { find deep -type f ! -perm 0600 -ls; return 1; }
        [ "$(stat -c %a .f.lock)" = 600 ]
    done
}

@test "the default place below HOME is made under any umask, with its parents" {
    for mask in 0177 0277 0777; do
        rm -rf home
        mkdir home
        own home
        under "$mask" 'unset HOLDFAST_DIR; hf journal emit note text=x; hf journal verify'
        under 022 'unset HOLDFAST_DIR; hf journal emit note text=x'
        [ -z "$(find home -mindepth 1 -type d ! -perm 0700)" ]
    done
}

@test "rotation under a umask that takes the right to write loses nothing" {
    export HOLDFAST_JOURNAL_SEGMENT=4096
    under 0277 'for i in {1..100}; do hf journal emit note text="$i $(printf %0200d 0)"; done; hf journal verify'
    [[ "$output" == *": whole"* ]]
    [ "$(find deep/er/state/journal -name 'events.0*' | wc -l)" -gt 3 ]
}

@test "many first users under an odd umask all succeed" {
    for mask in 0277 0777; do
        for _ in {1..12}; do
            rm -rf deep
            under "$mask" 'pids=(); for i in {1..8}; do "$program" journal emit note text=$i & pids+=($!); done
                for pid in "${pids[@]}"; do wait "$pid"; done; hf journal verify'
            [[ "$output" == *"8 record(s), sequence 1 to 8: whole"* ]]
        done
    done
}

@test "what an earlier version left without the owner's bits is repaired" {
    (umask 022; echo a >f)
    own f
    under 022 'hf journal emit note text=x; hf lock run a -- true; hf run s --log -- true; hf file edit f --sidecar -- cat'
    for mode in 0 0400 0200; do
        chmod "$mode" deep/er/state/FORMAT deep/er/state/locks/name/a deep/er/state/journal/counters .f.lock
        find deep/er/state/sessions -type f -exec chmod "$mode" {} +
        chmod "$mode" deep/er/state/locks/name/.wait deep/er/state/locks/name deep/er/state/locks deep/er/state/sessions/s deep/er/state/sessions
        chmod "$mode" deep/er/state/journal deep/er/state
        under 022 'hf ps >/dev/null; hf journal emit note text=x; hf lock run a -- true; hf run s --log -- true; hf logs s; hf file edit f -- cat'
        [ -z "$(find deep -type d ! -perm 0700)" ]
    done
    # Empty and not to be written: it was made so, not sealed.
    for mode in 0400 0; do
        rm deep/er/state/journal/events.jsonl
        install -m "$mode" /dev/null deep/er/state/journal/events.jsonl
        own deep/er/state/journal/events.jsonl
        under 022 'hf journal emit note text=again'
        [ "$(find deep/er/state/journal -name 'events.0*' | wc -l)" = 0 ]
    done
    # A home in which an earlier version stopped half way.
    for mode in 0500 0600 0; do
        rm -rf home && mkdir -p home/.local
        own home
        chmod "$mode" home/.local
        under 022 'unset HOLDFAST_DIR; hf journal emit note text=x'
    done
}

@test "a directory that its owner closed on purpose is not opened" {
    mkdir -m 0500 closed
    own closed
    under 022 'if HOLDFAST_DIR=$PWD/closed/state hf journal emit note text=x; then exit 1; fi'
    [[ "$output" == *"Permission denied"*"name another with --dir or HOLDFAST_DIR"* ]]
    [ "$(stat -c %a closed)" = 500 ]
}
