# run -d -t and attach: a session in the background with a terminal of its own, and viewers that come and go.
load ../session_helper

terminal() {
    command -v python3 >/dev/null || skip "no python3"
    expect 0 env TERM=dumb python3 "${BATS_TEST_DIRNAME}/../../helper/terminal.py" "$@"
    hf -q stop x --grace 0 >/dev/null 2>&1 || true
    rm -f go
}

@test "attach shows what was put out since the start, types, and leaves by its keys; the session goes on" {
    terminal attach_shows_types_and_detaches
}

@test "attach passes the size of the window on, at once and when it changes" {
    terminal attach_passes_the_size_on
}

@test "attach: Ctrl-C is an interrupt, never a success (L14); Ctrl-Z does not leave it stopped" {
    terminal attach_ctrl_c_and_ctrl_z
}

@test "attach: several viewers, one writer; the next types when it leaves; --take, --read-only" {
    terminal attach_has_one_writer
}

@test "attach puts the terminal back: after a TERM, after the keeper's death" {
    terminal attach_is_put_back
}

@test "attach: what is shown again asks the terminal nothing; what is live does, and the screen is left" {
    terminal attach_does_not_ask_again
}

@test "attach from a pipe answers a question and returns" {
    hf run x -d -t -- bash -c 'read -r l; echo "answer $l" >answer; sleep 60' >/dev/null
    echo yes | hf attach x >/dev/null
    wait_until 10 grep -qx "answer yes" answer
    expect 0 hf stop x --grace 0
}

@test "attach: a session without a terminal, one that has ended and one that never was are told apart" {
    hf run x -d -- sleep 60 >/dev/null
    expect 1 hf attach x
    says "it has no terminal"
    expect 0 hf stop x --grace 0
    expect 1 hf attach none
    hf run y -d -t -- true >/dev/null
    hf wait y
    run hf attach y
    [ "$status" -ne 0 ]
    [ ! -e "$HOLDFAST_DIR/sessions/y/attach" ]
    expect 2 hf run x -t -- true
    expect 2 hf run x -d -t --no-log -- true
    expect 2 hf attach x --detach-keys ctrl-
}

@test "attach: viewers that are stuck, flood or talk nonsense hold up neither the command nor its keeper" {
    command -v python3 >/dev/null || skip "no python3"
    hf run x -d -t -- bash -c 'until [ -e go ]; do sleep 0.02; done; seq 50000 | tail -n 1; exit 7' >/dev/null
    # Twelve that connect and say nothing, one that floods, one that sends what is no message.
    python3 - "$HOLDFAST_DIR/sessions/x" <<'PY'
import os, socket, sys
os.chdir(sys.argv[1])
def viewer():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("attach")
    return s
stuck = [viewer() for _ in range(12)]
s = viewer()
s.setblocking(False)
try:
    for _ in range(100000):
        s.send(os.urandom(600))
except OSError:
    pass
PY
    hello=$(hf attach x --read-only </dev/null & sleep 0.5; kill $! 2>/dev/null; wait) || true
    touch go
    expect 7 hf wait x -w 15
    [ "$(hf logs x | tr -d '\r' | tail -n 1)" = 50000 ]
}

@test "attach: the socket is for this user alone, below a directory of any length" {
    long="$BATS_TEST_TMPDIR/$(printf 'd%.0s' {1..120})"
    HOLDFAST_DIR="$long" hf run x -d -t -- bash -c 'read -r l; exit 3' >/dev/null
    [ "$(stat -c %a "$long/sessions/x/attach")" = 600 ]
    # It leaves at the end of its input, or is told how the session ended: whichever comes first.
    echo | HOLDFAST_DIR="$long" hf attach x >/dev/null || [ $? -eq 3 ]
    HOLDFAST_DIR="$long" expect 3 hf wait x -w 10
}

@test "run -d -t: resume remembers the terminal; a loop has one for each attempt" {
    hf run x -d -t -- bash -c '[ -t 0 ]; echo "tty $?"; exit 1' >/dev/null
    expect 1 hf wait x
    hf run x -d --resume >/dev/null
    expect 1 hf wait x
    [ "$(hf logs x | tr -d '\r' | paste -sd,)" = "tty 0,tty 0" ]
    hf run y -d -t --max-runs 2 -- bash -c '[ -t 0 ]; echo "tty $?"' >/dev/null
    expect 0 hf wait y
    [ "$(hf logs y | tr -d '\r' | paste -sd,)" = "tty 0,tty 0" ]
}
