# run --stdin: what a command in the background reads as its standard input, and again when it is resumed.
bats_require_minimum_version 1.5.0
load ../session_helper

# last NAME: what its last attempt wrote
last() { hf logs "$1" --attempt "$(field "$1" .attempt)"; }

# inputs NAME: what is kept of its standard input
inputs() { find "$HOLDFAST_DIR/sessions/$1" -name 'input.*'; }

@test "detach: a pipe or file on standard input comes to the command, in each attempt from its beginning" {
    echo "from a pipe" | "$HOLDFAST" run x --detach -- cat
    expect 0 hf wait x
    [ "$(hf logs x)" = "from a pipe" ]
    seq 100000 >file
    hf run x --detach --max-runs 2 --backoff 1ms -- md5sum <file
    expect 0 hf wait x
    [ "$(hf logs x | sort | uniq -c | awk '{ print $1, $2 }')" = "2 $(md5sum <file | cut -d' ' -f1)" ]
    hf run x --detach -- cat </dev/null
    expect 0 hf wait x
    [ -z "$(hf logs x)" ]
    # What a command does to it changes nothing.
    echo kept | "$HOLDFAST" run x --detach --max-runs 2 --backoff 1ms -- bash -c 'cat; echo changed 2>/dev/null >/dev/stdin; true'
    expect 0 hf wait x
    [ "$(hf logs x | paste -sd,)" = kept,kept ]
}

@test "detach: a socket on standard input, as sshd and node give it, is the same as a pipe" {
    python3 - "$HOLDFAST" <<'EOF'
import socket, subprocess, sys
ours, theirs = socket.socketpair()
ours.sendall(b"from a socket\n")
ours.shutdown(socket.SHUT_WR)
subprocess.run([sys.argv[1], "run", "x", "--detach", "--", "cat"], stdin=theirs, check=True, timeout=20)
EOF
    expect 0 hf wait x
    [ "$(hf logs x)" = "from a socket" ]
}

@test "detach: more standard input than is kept is refused; an open pipe with nothing in it is said and left alone" {
    head -c 17M /dev/zero >large
    status=0
    hf run x --detach -- cat <large 2>said || status=$?
    [ "$status" -eq 2 ]
    grep -q "larger than 16 MiB" said
    mkfifo pipe
    exec 8<>pipe
    "$HOLDFAST" run x --detach -- cat <&8 2>said
    exec 8>&-
    grep -q "stays open" said
    expect 0 hf wait x
}

@test "detach: a loop that reads lines starts a session for each of them; --stdin yes gives the rest to the command" {
    seq 3 >list
    while read -r n; do "$HOLDFAST" run "file-$n" --detach -- cat; done <list 2>said
    [ "$(grep -c 'the caller keeps standard input' said)" -eq 2 ] # there is nothing left when the last one is read
    seq 3 | while read -r n; do "$HOLDFAST" run "pipe-$n" --detach -- cat 2>/dev/null; done
    while read -r n; do "$HOLDFAST" -q run "no-$n" --detach --stdin no -- cat; done <list 2>said
    [ ! -s said ]
    for name in file pipe no; do
        expect 0 hf wait "$name-1" "$name-2" "$name-3"
        [ -z "$(hf logs "$name-1")$(hf logs "$name-2")$(hf logs "$name-3")" ]
    done
    while read -r n; do "$HOLDFAST" run "yes-$n" --detach --stdin yes -- cat; done <list
    expect 0 hf wait yes-1
    [ "$(hf logs yes-1 | paste -sd,)" = 2,3 ]
    expect 1 hf wait yes-2
    # A pipe that came through a shell function or script is meant for the command only if that is said.
    echo through | hf run f --detach --stdin yes -- cat
    expect 0 hf wait f
    [ "$(hf logs f)" = through ]
    # In the foreground the command has it as any command would, but for --stdin no.
    while read -r n; do hf run "here-$n" --stdin no -- cat; done <list >out
    [ ! -s out ]
    [ -d "$HOLDFAST_DIR/sessions/here-3" ]
    expect 2 hf run x --detach --stdin maybe -- cat
    says "--stdin must be yes or no, not 'maybe'"
    expect 2 hf run x --detach --terminal --stdin yes -- cat
}

@test "resume: what a session in the background read from standard input it reads again, from the beginning" {
    seq 100000 >file
    hf run x --detach -- bash -c 'md5sum; exit 3' <file
    expect 3 hf wait x
    first=$(last x)
    [ "$first" = "$(md5sum <file)" ]
    expect 0 hf run x --resume --detach </dev/null
    says "standard input of $(stat -c %s file) bytes"
    expect 3 hf wait x
    [ "$(last x)" = "$first" ]
    # In the foreground as well, and on a terminal; and whatever stands on the standard input of a restart.
    [ "$(hf run x --resume 2>/dev/null </dev/null)" = "$first" ]
    script -qec "$HOLDFAST -q run x --resume" /dev/null </dev/null | tr -d '\r' >shown || true
    grep -qF "$first" shown
    echo other >other
    hf restart x <other
    expect 3 hf wait x
    [ "$(last x)" = "$first" ]
    # What the command does to it changes nothing, and there is one of it.
    [ "$(stat -c %a "$(inputs x)")" = 600 ]
    hf run x --resume --detach -- bash -c 'echo >/dev/stdin; exit 3' </dev/null
    expect 3 hf wait x
    cmp file "$(inputs x)"
    expect 0 hf rm x
    [ -z "$(find "$HOLDFAST_DIR/sessions" -name 'input.*')" ]
}

@test "resume: standard input that is given again counts from now on; --stdin yes with nothing takes it back" {
    echo one | "$HOLDFAST" run x --detach -- bash -c 'cat; exit 3'
    expect 3 hf wait x
    echo two | "$HOLDFAST" run x --resume --detach
    expect 3 hf wait x
    [ "$(last x)" = two ]
    cmp <(echo two) "$(inputs x)"
    # In the foreground it is the caller's, and is not kept.
    [ "$(echo three | hf run x --resume 2>/dev/null)" = three ]
    [ -z "$(inputs x)" ]
    echo four | "$HOLDFAST" run x --resume --detach
    expect 3 hf wait x
    [ "$(last x)" = four ]
    hf run x --resume --detach --stdin yes </dev/null
    expect 3 hf wait x
    [ -z "$(last x)" ]
    [ -z "$(inputs x)" ]
    # One that is run anew has nothing of before; one that is forgotten keeps nothing.
    echo five | "$HOLDFAST" run x --detach -- bash -c 'cat; exit 3'
    expect 3 hf wait x
    expect 3 hf run x -- bash -c 'exit 3' </dev/null
    [ -z "$(inputs x)" ]
    # shellcheck disable=SC2016 # the inner shell's
    echo six | "$HOLDFAST" run y --rm --detach -- bash -c 'cat >got; find "$HOLDFAST_DIR/sessions/y" -name "input*" >kept; echo >done'
    wait_until 10 test -e done
    [ "$(cat got)" = six ]
    [ ! -s kept ]
}

@test "resume: standard input that is lost or was changed is refused, exit 3, and can be given again" {
    echo one | "$HOLDFAST" run x --detach -- bash -c 'cat; exit 3'
    expect 3 hf wait x
    file=$(inputs x)
    echo two >"$file"
    expect 3 hf run x --resume --detach
    says "the 4 bytes that were kept are lost; resume it with that input in a pipe or file"
    rm "$file"
    ln -s /etc/passwd "$file"
    expect 3 hf run x --resume
    says "are lost; resume it with that input"
    echo one | "$HOLDFAST" run x --resume --detach
    expect 3 hf wait x
    [ "$(last x)" = one ]
    cmp <(echo one) "$(inputs x)"
    rm "$(inputs x)"
    expect 3 hf run x --resume --stdin yes </dev/null
    # It counts for what prune may take.
    head -c 1M /dev/zero >large
    hf run x --detach -- true <large
    expect 0 hf wait x
    run --separate-stderr hf prune --older-than 0 --dry-run --json
    is_json '.pruned[0].log_bytes >= 1048576'
}
