# Records and directories that were tampered with: put away or refused, never acted upon, never a crash (L6, L12).
load ../session_helper

# victim: a process that no record may get killed; its pid is $victim
victim() {
    spawn sleep 60
    victim=$spawned_pid
}

# ended_session NAME: one with a record
ended_session() { hf run "$1" -- false || true; }

record() { echo "$HOLDFAST_DIR/sessions/$1/session.jsonl"; }

# A status that says something, and no signal's: nothing crashed.
is_orderly() { [ "$status" -lt 128 ] && [[ "$output" != *Sanitizer* ]]; }

# all_survive NAME: every command copes with it; the victim and the other session live
all_survive() {
    local command
    for command in "ps $1" "wait $1 -w 1" "stop $1" "reap $1" "logs $1"; do
        run hf $command
        is_orderly || { echo "$command: $status $output"; return 1; }
    done
    expect 0 hf ps --json
    is_json '[.sessions[].name] | index("other") != null'
    expect 0 hf reap
    is_field other .state running
    run ! is_dead "$victim"
}

@test "a record that is no file of ours is put away, by ps and by all others; the others are listed" {
    victim
    running other
    for kind in symlink dangling fifo directory mode socket; do
        ended_session x
        file=$(record x)
        case $kind in
        symlink) mv "$file" elsewhere; ln -s "$PWD/elsewhere" "$file" ;;
        dangling) rm "$file"; ln -s /no/such/file "$file" ;;
        fifo) rm "$file"; mkfifo -m 600 "$file" ;;
        directory) rm "$file"; mkdir -m 700 "$file" ;;
        mode) chmod 644 "$file" ;;
        socket) rm "$file"; python3 -c 'import os, socket, sys; os.chdir(os.path.dirname(sys.argv[1])); socket.socket(socket.AF_UNIX).bind("session.jsonl")' "$file" ;;
        esac
        echo "kind: $kind"
        all_survive x
        expect 0 hf run x -- true
        is_field x .state done
    done
    [ -n "$(ls -A "$HOLDFAST_DIR/quarantine")" ]
    [ -z "$(find elsewhere -newer "$HOLDFAST_DIR/quarantine")" ]
}

@test "a record of another user is put away" {
    [ "$(id -u)" -eq 0 ] || skip "only root can give a file away"
    victim
    running other
    ended_session x
    chown 65534 "$(record x)"
    expect 3 hf ps x
    all_survive x
    expect 0 hf run x -- true
}

@test "the first look at a damaged record is exit 3 with one event; after that there is none" {
    for text in garbage '{}' '[]' '{"v":1}' '{"v":1,"pid":4711,"x":"0123456789abcdef"}' $'\xff\xfe' '!' ' '; do
        ended_session x
        printf '%s\n' "$text" >"$(record x)"
        chmod 600 "$(record x)"
        run hf ps x
        echo "$text: $status $output"
        # Only a line that was closed as torn is as good as none.
        if [ "$text" = '!' ]; then [ "$status" -eq 1 ]; else [ "$status" -eq 3 ]; fi
        expect 1 hf ps x
        [ ! -e "$(record x)" ] || [ "$text" = '!' ]
    done
    [ "$(events record_quarantined x)" -eq 7 ]
}

@test "empty, torn, or without its newline: as good as none, and the next run works" {
    for cut in 0 1 40; do
        ended_session x
        head -c "$cut" "$(record x)" >part
        cat part >"$(record x)"
        expect 1 hf ps x
        expect 0 hf run x -- true
        is_field x '.state, .attempt' $'done\n1'
    done
}

@test "huge files cost no time; what stands before the last line does not matter" {
    ended_session x
    cp -p "$(record x)" whole
    truncate -s 4G "$(record x)"
    start=$(now_ms)
    run hf ps x
    is_orderly
    [ $(($(now_ms) - start)) -lt 3000 ]
    # A hole, then the right line: it is the last one.
    cp -p whole "$(record x)"
    { head -c 20000 /dev/zero | tr "\0" y; echo; tr -d "\0" <whole; } >"$(record x)"
    is_field x .state failed
    expect 0 hf run x -- true
    # One endless line.
    head -c 100000 /dev/zero | tr '\0' y >"$(record x)"
    expect 3 hf ps x
}

@test "the record of another session, copied in, is not believed: nothing of that one is touched" {
    running other
    ended_session x
    cat "$(record other)" >"$(record x)"
    expect 3 hf stop x
    says "another session"
    is_field other .state running
    cat "$(record other)" >"$(record x)"
    expect 3 hf reap x || expect 0 hf reap x
    is_field other .state running
    run ! is_dead "$(cat up-other)"
    cat "$(record other)" >"$(record x)"
    expect 0 hf run x -- true
    is_field other .state running
}

@test "a record of an earlier run put back: its processes are gone, its token is old, nothing is signalled" {
    victim
    running x
    cp -p "$(record x)" old
    let_go x
    wait "$spawned_pid"
    cat old >"$(record x)"
    is_field x .state dead-unreaped
    expect 1 hf stop x
    [ "$output" = already-gone ]
    # The journal still knows how that run ended, and says it once.
    is_field x '.state, .outcome' $'done\nsucceeded'
    [ "$(events session_ended x)" -eq 1 ]
    rm go-x up-x
    cat old >"$(record x)"
    expect 0 hf run x -- true
    is_field x .state done
    run ! is_dead "$victim"
}

@test "a session's directory that is not ours is refused, and hides no other" {
    victim
    running other
    for kind in symlink file mode; do
        rm -rf "$HOLDFAST_DIR/sessions/x"
        ended_session x
        case $kind in
        symlink) mv "$HOLDFAST_DIR/sessions/x" away; ln -s "$PWD/away" "$HOLDFAST_DIR/sessions/x" ;;
        file) rm -r "$HOLDFAST_DIR/sessions/x"; touch "$HOLDFAST_DIR/sessions/x" ;;
        mode) chmod 755 "$HOLDFAST_DIR/sessions/x" ;;
        esac
        echo "kind: $kind"
        expect 3 hf ps x
        expect 3 hf run x -- touch ran
        all_survive x
        rm -rf "$HOLDFAST_DIR/sessions/x"
    done
    [ ! -e ran ]
}

@test "a log that is a symlink or a pipe is never followed, written to or waited for" {
    touch target
    for kind in symlink fifo; do
        hf run x --log -- echo one >/dev/null
        log=$(ls -d "$HOLDFAST_DIR/sessions/x"/log.*)
        rm "$log"
        case $kind in
        symlink) ln -s "$PWD/target" "$log" ;;
        fifo) mkfifo -m 600 "$log" ;;
        esac
        run hf logs x
        [ "$status" -ne 0 ]
        is_orderly
        hf run x --log -- false || true
        run hf run x --log --resume -- echo two
        is_orderly
        rm -rf "$HOLDFAST_DIR/sessions/x"
    done
    [ ! -s target ]
}

@test "names that are no keys, and other things in the directory, are passed over" {
    running other
    mkdir -m 700 "$HOLDFAST_DIR/sessions/%zz" "$HOLDFAST_DIR/sessions/a b" "$HOLDFAST_DIR/sessions/.hidden"
    touch "$HOLDFAST_DIR/sessions/plain"
    expect 0 hf ps --json
    is_json '[.sessions[].name] == ["other"]'
}
