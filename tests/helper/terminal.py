#!/usr/bin/env python3
"""tests/helper/terminal.py SCENARIO [run options...]: `holdfast run x` on a terminal of its own, as a person would use it.

Exit 0 when all came as it should; else the last output and what was missing. Nothing waits longer than LIMIT.
"""
import atexit
import fcntl
import hashlib
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

LIMIT = 60
HOLDFAST = os.environ["HOLDFAST"]


class Terminal:
    """A pty and what runs on it as the leader of its session."""

    def __init__(self, argv, rows=33, columns=77):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        self.seen = b""
        self.at = 0
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(self.slave, fd)
            os.closerange(3, 1000)
            for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
                signal.signal(sig, signal.SIG_DFL)
            os.execvp(argv[0], argv)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, data):
        """Types it; reads meanwhile, so that neither side waits for the other."""
        while data:
            readable, writable, _ = select.select([self.master], [self.master], [], LIMIT)
            if readable:
                self.seen += os.read(self.master, 65536)
            if writable:
                data = data[os.write(self.master, data[:256]):]

    def expect(self, pattern, limit=LIMIT):
        """Waits for it in what came since the last one that was found."""
        end = time.monotonic() + limit
        while True:
            found = re.search(pattern.encode(), self.seen[self.at:], re.S)
            if found:
                self.at += found.end()
                return found
            left = end - time.monotonic()
            if left <= 0:
                fail(self, "no " + pattern)
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    fail(self, "closed before " + pattern)

    def is_read(self):
        """Waits until the program has read everything that was typed."""
        end = time.monotonic() + LIMIT
        while struct.unpack("i", fcntl.ioctl(self.slave, termios.FIONREAD, struct.pack("i", 0)))[0] > 0:
            if time.monotonic() > end:
                fail(self, "what was typed is not read")
            time.sleep(0.01)

    def wait(self):
        """The exit status as a shell gives it; what still comes is read."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.02)[0]:
                self.seen += os.read(self.master, 65536)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status) % 256
        fail(self, "it does not end")

    def must_be_as_before(self):
        now = termios.tcgetattr(self.slave)
        if now != self.modes:
            fail(self, f"modes were {self.modes}, are {now}")


def fail(terminal, text):
    print(f"{text}; seen: {terminal.seen!r}")
    try:
        os.kill(terminal.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    sys.exit(1)


def must(terminal, condition, text):
    if not condition:
        fail(terminal, text)


def start(options, script, *more):
    return Terminal([HOLDFAST, "run", "x", *options, "--", "bash", "-c", script, *more])


def field(path):
    said = subprocess.run([HOLDFAST, "-q", "ps", "x", "--json"], capture_output=True, check=False).stdout
    value = subprocess.run(["jq", "-r", ".sessions[0] | " + path], input=said, capture_output=True, check=False).stdout
    return value.decode().strip()


def until(terminal, path, wanted):
    end = time.monotonic() + LIMIT
    while field(path) != wanted:
        must(terminal, time.monotonic() < end, f"{path} is {field(path)}, not {wanted}")
        time.sleep(0.02)


def is_a_terminal(options):
    t = start(options, '[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo ALL; stty size; : </dev/tty && echo OWN; read -r l; echo "LINE $l"; exit 6')
    t.expect("ALL\r\n33 77\r\nOWN\r\n")
    t.send(b"hello\n")
    t.expect("LINE hello\r\n")
    must(t, t.wait() == 6, "status")
    t.must_be_as_before()


def is_resized(options):
    t = start(options, 'trap "stty size" WINCH; echo READY; until [ -e go ]; do sleep 0.02; done')
    t.expect("READY")
    t.resize(40, 100)
    t.expect("40 100")
    open("go", "w").close()
    must(t, t.wait() == 0, "status")


def ctrl_c_comes_once(options):
    t = start(options, 'n=0; trap \'n=$((n + 1)); echo "GOT $n"\' INT; echo READY; until [ -e go ]; do sleep 0.02; done; echo "TOTAL $n"; exit 5')
    t.expect("READY")
    t.send(b"\x03")
    t.expect("GOT 1")
    time.sleep(0.2)  # for a second one, which must not come
    open("go", "w").close()
    t.expect("TOTAL 1")
    # It went on and exits 5; it was interrupted all the same.
    must(t, t.wait() == 130, "status")
    must(t, field(".outcome") == "interrupted", field(".outcome"))
    t = start(options, "echo READY; exec sleep 60")
    t.expect("READY")
    t.send(b"\x03")
    must(t, t.wait() == 130, "status")
    t.must_be_as_before()


def ctrl_c_is_never_a_success(options):
    """A command that exits 0 at once on Ctrl-C is as fast as the supervisor that gets it, too."""
    for _ in range(15):
        t = start([*options, "--verify", "touch verified"], "trap 'exit 0' INT; echo READY; while :; do sleep 0.01; done")
        t.expect("READY")
        t.send(b"\x03")
        must(t, t.wait() == 130, "status")
        must(t, field(".outcome") == "interrupted", field(".outcome"))
    t = Terminal([HOLDFAST, "run", "x", *options, "--", "perl", "-e", "$SIG{INT} = sub { exit 0 }; $| = 1; print qq(READY\n); select(undef, undef, undef, 0.05) while 1"])  # perl sees a signal between two steps
    t.expect("READY")
    t.send(b"\x03")
    must(t, t.wait() == 130, "status")
    must(t, not os.path.exists("verified"), "it was verified")


def ctrl_c_while_it_lands(options):
    """The verifier of the landing touches ../second, and never ends by itself."""
    t = start(options, "echo 1 >new; echo READY")
    t.expect("READY")
    end = time.monotonic() + LIMIT
    while not os.path.exists("../second"):
        must(t, time.monotonic() < end, "it is not verified as it lands")
        time.sleep(0.02)
    t.send(b"\x03")
    must(t, t.wait() == 130, "status")
    must(t, field(".outcome") == "interrupted", field(".outcome"))


def ask_shows_the_diff(options):
    question = r"commit these changes\? d shows the diff \[y/N/d\] "
    t = start(options, "echo refused >T/a")
    t.expect("M a")
    t.expect(question)
    t.send(b"\n")
    must(t, t.wait() == 42, "status")
    must(t, field(".outcome") == "declined", field(".outcome"))
    subprocess.run([HOLDFAST, "-q", "plan", "rm", "run:x", "--discard"], check=True)
    t = start(options, "echo changed >T/a")
    t.expect(question)
    t.send(b"d\n")
    t.expect(r"--- a/a.*-one.*\+changed")
    t.expect(question)
    t.send(b"y\n")
    must(t, t.wait() == 0, "status")


def shell():
    t = Terminal(["env", "PS1=PROMPT ", "bash", "--norc", "--noprofile", "--noediting", "-i"])
    t.expect("PROMPT ")
    return t


def in_shell(t, command):
    t.send(command.encode() + b"\n")


def ctrl_z_stops_and_fg_goes_on(options):
    t = shell()
    in_shell(t, f"'{HOLDFAST}' run x {' '.join(options)} -- bash -c 'echo REA''DY; read -r l; echo \"LINE $l\"; exit 6'")
    t.expect("READY\r\n")
    for _ in range(2):
        t.send(b"\x1a")
        t.expect("Stopped")
        t.expect("PROMPT ")
        until(t, ".state", "suspended")
        in_shell(t, "echo SHELL$((1 + 1)); stty -a | grep -oE -e '-?(icanon|isig|opost)' | xargs echo MODES")
        t.expect("SHELL2\r\n.*MODES (isig icanon|icanon isig|opost isig icanon|isig icanon opost)")
        t.expect("PROMPT ")
        in_shell(t, "fg")
        until(t, ".state", "running")
    t.send(b"hello\n")
    t.expect("LINE hello\r\n")
    t.expect("PROMPT ")
    in_shell(t, "echo STATUS $?")
    t.expect("STATUS 6")
    in_shell(t, "exit")
    t.wait()


def await_gone(t, pid):
    end = time.monotonic() + LIMIT
    while os.path.exists(f"/proc/{pid}"):
        must(t, time.monotonic() < end, f"pid {pid} does not end")
        time.sleep(0.001)


def a_signal_to_the_group_is_never_a_success(options):
    """As timeout(1) sends it: supervisor and command have it at once. The supervisor is stopped, so that the command is faster."""
    for sig, outcome in ((signal.SIGTERM, "stopped"), (signal.SIGHUP, "stopped"), (signal.SIGINT, "interrupted")):
        t = shell()
        command = f'trap "exit 0" {sig.value}; echo REA""DY; while :; do sleep 0.01; done'
        in_shell(t, f"'{HOLDFAST}' run x {' '.join(options)} --verify 'touch verified' -- bash -c '{command}' &")
        t.expect("READY")
        until(t, ".state", "running")
        leader, supervisor = field(".leader.pid"), int(field(".supervisor.pid"))
        os.kill(supervisor, signal.SIGSTOP)
        os.killpg(supervisor, sig)
        await_gone(t, leader)
        os.kill(supervisor, signal.SIGCONT)
        # The shell has reaped it, and no longer takes it for stopped.
        await_gone(t, supervisor)
        in_shell(t, f"wait {supervisor}; echo STATUS $?")
        # A supervisor that went on too late for the keeper's patience cannot say which signal it was.
        t.expect(f"STATUS ({128 + sig}|130)\r")
        must(t, field(".outcome") in (outcome, "interrupted"), field(".outcome"))
        must(t, not os.path.exists("verified"), "it was verified")
        in_shell(t, "exit")
        t.wait()


def a_shell_within_has_its_own_jobs(options):
    t = Terminal([HOLDFAST, "run", "x", *options, "--", "env", "PS1=PROMPT ", "bash", "--norc", "--noprofile", "--noediting", "-i"])
    t.expect("PROMPT ")
    in_shell(t, "cat")
    t.send(b"echoed\n")
    t.expect("echoed\r\n.*echoed\r\n")
    t.send(b"\x1a")
    t.expect("Stopped")
    t.expect("PROMPT ")
    must(t, field(".state") == "running", "the session was stopped with it")
    in_shell(t, "fg")
    t.expect("cat\r\n")
    # The shell says so before it gives the terminal away. That cat echoes proves that it has it.
    t.send(b"again\n")
    t.expect("again\r\n.*again\r\n")
    t.send(b"\x03")
    t.expect("PROMPT ")
    in_shell(t, "exit 9")
    must(t, t.wait() == 9, "status")
    t.must_be_as_before()


def a_background_job_leaves_the_terminal_alone(options):
    t = shell()
    in_shell(t, f"'{HOLDFAST}' run x {' '.join(options)} -- bash -c 'until [ -e go ]; do sleep 0.02; done; echo E''ND' &")
    until(t, ".state", "running")
    in_shell(t, "stty -a | grep -oE -e '-?(icanon|isig|opost)' | xargs echo MODES; echo SHELL$((1 + 1))")
    t.expect("MODES [^-\r]*\r\n.*SHELL2\r\n")
    must(t, field(".state") == "running", "it was stopped")
    in_shell(t, "touch go; wait; echo STATUS $?")
    t.expect("STATUS 0")
    in_shell(t, "exit")
    t.wait()


def modes_are_put_back(options):
    """After an ordinary end, after a TERM to the supervisor, after the keeper is killed."""
    raw = "stty raw -echo; echo READY; sleep 60"
    t = start(options, "stty raw -echo; echo READY; stty sane")
    t.expect("READY")
    must(t, t.wait() == 0, "status")
    t.must_be_as_before()
    t = start(options, raw)
    t.expect("READY")
    until(t, ".state", "running")
    os.kill(t.pid, signal.SIGTERM)
    must(t, t.wait() == 143, "status")
    t.must_be_as_before()
    t = start(options, raw)
    t.expect("READY")
    until(t, ".state", "running")
    os.kill(int(field(".keeper.pid")), signal.SIGKILL)
    must(t, t.wait() == 125, "status")
    t.must_be_as_before()


def a_long_paste_arrives_whole(options):
    text = b"".join(b"%06d," % i for i in range(9000))
    t = start(options, 'stty raw -echo; echo READY; until [ -e go ]; do sleep 0.02; done; head -c "$0" | md5sum; stty sane', str(len(text)))
    t.expect("READY")
    # More than the terminal holds, before anybody reads it.
    t.send(text[:3000])
    open("go", "w").close()
    t.send(text[3000:])
    t.expect(hashlib.md5(text).hexdigest())
    must(t, t.wait() == 0, "status")


def a_paste_faster_than_its_reader_arrives_whole(options):
    text = b"".join(b"%06d," % i for i in range(9000))
    t = start(options, 'stty raw -echo; echo READY; for i in {1..9}; do head -c 7000; sleep 0.05; done | md5sum; stty sane')
    t.expect("READY")
    t.send(text)
    t.expect(hashlib.md5(text).hexdigest())
    must(t, t.wait() == 0, "status")


def ctrl_c_ends_a_loop_between_attempts(options):
    t = start([*options, "--every", "60s"], "echo READY")
    t.expect("READY")
    until(t, ".state", "waiting")
    t.send(b"\x03")
    t.wait()
    t.must_be_as_before()


def a_verifier_has_an_ordinary_terminal(options):
    t = start([*options, "--verify", "touch up; until [ -e go ]; do sleep 0.02; done; echo VERIFIED; echo NEXT"], "echo READY")
    t.expect("READY")
    until(t, ".state", "verifying")
    open("go", "w").close()
    t.expect("VERIFIED\r\nNEXT\r\n")
    must(t, t.wait() == 0, "status")
    os.remove("go")
    t = start([*options, "--verify", "sleep 60"], "echo READY")
    t.expect("READY")
    until(t, ".state", "verifying")
    t.send(b"\x03")
    must(t, t.wait() == 130, "status")
    must(t, field(".outcome") == "interrupted", field(".outcome"))


def a_closed_terminal_ends_it(options):
    t = start(options, "echo $$ >pid; trap 'echo HUP >>got; exit 0' HUP; trap 'exit 0' TERM; echo READY; while :; do sleep 0.02; done")
    t.expect("READY")
    until(t, ".state", "running")
    os.close(t.slave)
    os.close(t.master)
    _, status = os.waitpid(t.pid, 0)
    must(t, os.waitstatus_to_exitcode(status) % 256 == 129, f"status {status}")
    must(t, field(".outcome") == "stopped", field(".outcome"))
    must(t, open("got").read().startswith("HUP"), "no HUP")
    must(t, not os.path.exists("/proc/" + open("pid").read().strip() + "/exe"), "it lives")


def error_goes_elsewhere(options):
    t = Terminal(["sh", "-c", "exec \"$0\" run x -- sh -c '[ -t 1 ] && [ ! -t 2 ] && echo to the terminal; echo to the file >&2' 2>err", HOLDFAST])
    t.expect("to the terminal\r\n")
    must(t, t.wait() == 0, "status")


def only_output_is_a_terminal(options):
    """As with `git log | run … less`: its modes are those of the caller's terminal."""
    t = Terminal(["sh", "-c", "echo in | \"$0\" run x -- sh -c 'read -r l; [ -t 1 ] && echo GOT $l; tty <&1; stty -echo <&1'", HOLDFAST])
    t.expect("GOT in\r\n" + os.ttyname(t.slave))
    must(t, t.wait() == 0, "status")
    must(t, not termios.tcgetattr(t.slave)[3] & termios.ECHO, "it set the modes of another terminal")


def only_error_is_a_terminal(options):
    t = Terminal(["sh", "-c", "\"$0\" run x -- sh -c '[ -t 2 ] && [ ! -t 1 ] && echo ERR >&2; echo OUT' | sed s/OUT/PIPED/; \"$0\" logs x", HOLDFAST])
    t.expect("ERR\r\n.*PIPED\r\n.*OUT\r\n")
    must(t, t.wait() == 0, "status")


# -- attach: x runs in the background with a terminal of its own ------------------------


def attach(*options):
    return Terminal([HOLDFAST, "attach", "x", *options])


def background(script, *options):
    subprocess.run([HOLDFAST, "run", "x", "-d", "-t", *options, "--", "bash", "-c", script], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def has_written(text):
    """Waits until the session in the background has written it, before any viewer attaches."""
    end = time.monotonic() + LIMIT
    while text not in subprocess.run([HOLDFAST, "logs", "x", "--raw"], check=True, stdout=subprocess.PIPE).stdout:
        if time.monotonic() > end:
            sys.exit(f"it does not write {text}")
        time.sleep(0.02)


def detach(t, keys=b"\x10\x11"):
    t.send(keys)
    t.expect("detached from session")
    must(t, t.wait() == 0, "status")
    t.must_be_as_before()


def attach_shows_types_and_detaches(options):
    background('echo START; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo ALL; read -r l; echo "LINE $l"; read -r l; echo "LINE $l"; exit 6')
    t = attach()
    t.expect("START\r\nALL\r\n")
    t.send(b"one\n")
    t.expect("LINE one\r\n")
    detach(t)
    must(t, field(".state") == "running", "it did not go on")
    t = attach("--detach-keys", "ctrl-\\")
    t.expect("START\r\nALL\r\n.*LINE one\r\n")
    detach(t, b"\x1c")
    t = attach()
    t.expect("LINE one\r\n")
    # The first of the keys alone is typed, after a while.
    t.send(b"a\x10b\x7f\n")
    t.expect("LINE a\x10\r\n")
    must(t, t.wait() == 6, "the status of the session")
    t.must_be_as_before()


def attach_passes_the_size_on(options):
    # bash forgets a signal that comes while the trap of the one before runs: so the trap only takes note.
    background('trap seen=1 WINCH; echo READY; until [ -e go ]; do sleep 0.02; [ -z "$seen" ] || { seen=; stty size; }; done')
    has_written(b"READY")
    t = attach()
    t.expect("READY.*33 77")
    t.resize(40, 100)
    t.expect("40 100")
    open("go", "w").close()
    must(t, t.wait() == 0, "status")


def attach_ctrl_c_and_ctrl_z(options):
    background('trap "exit 0" INT; echo READY; while :; do sleep 0.02; done')
    t = attach()
    t.expect("READY")
    until(t, ".state", "running")
    leader = field(".pid")
    t.send(b"\x1a")
    time.sleep(0.3)
    must(t, open(f"/proc/{leader}/stat").read().split()[2] != "T", "it was stopped, and nothing lets it go on")
    t.send(b"\x03")
    must(t, t.wait() == 130, "status")
    must(t, field(".outcome") == "interrupted", field(".outcome"))
    t.must_be_as_before()


def attach_has_one_writer(options):
    background('stty -echo; echo READY; while read -r l; do echo "GOT $l"; [ "$l" != end ] || exit 0; done')
    first = attach()
    first.expect("READY")
    first.send(b"one\n")
    first.expect("GOT one\r\n")
    second = attach()
    second.expect("READY.*GOT one\r\n.*pid [0-9]+ has the keyboard")
    second.send(b"not\n")
    second.is_read()
    first.send(b"two\n")
    for t in (first, second):
        t.expect("GOT two\r\n")
    must(second, b"GOT not" not in second.seen, "two writers")
    # The one that waited types when the first has left.
    detach(first)
    second.send(b"three\n")
    second.expect("GOT three\r\n")
    third = attach("--take")
    third.expect("GOT three\r\n")
    second.expect("pid [0-9]+ has the keyboard")
    second.send(b"not\n")
    watcher = attach("--read-only")
    watcher.expect("GOT three\r\n")
    watcher.send(b"not\n")
    third.send(b"end\n")
    for t in (second, third, watcher):
        must(t, t.wait() == 0, "status")
        must(t, b"GOT not" not in t.seen, "two writers")
        t.must_be_as_before()


def attach_is_put_back(options):
    """After a TERM to the viewer, and after the keeper and supervisor are killed."""
    background("echo READY; sleep 60")
    t = attach()
    t.expect("READY")
    os.kill(t.pid, signal.SIGTERM)
    must(t, t.wait() == 0, "status")
    t.must_be_as_before()
    t = attach()
    t.expect("READY")
    until(t, ".state", "running")
    os.kill(int(field(".keeper.pid")), signal.SIGKILL)
    must(t, t.wait() != 0, "status")
    t.must_be_as_before()


def attach_does_not_ask_again(options):
    background(r"printf 'A\033[6nB\033]11;?\033\\C\033[31mred\033[0m\033[?1049h\033P+q544e\033\\D\005E\n'; read -r l; printf 'LIVE\033[6n\n'; read -r l")
    has_written(b"E")
    t = attach()
    t.expect("E\r\n")
    must(t, t.seen.startswith(b"AB" + b"C\x1b[31mred\x1b[0m\x1b[?1049hDE"), "what was shown again")
    t.send(b"\n")
    t.expect("LIVE\x1b\\[6n")
    t.send(b"\n")
    must(t, t.wait() == 0, "status")
    must(t, b"\x1b[?1049l" in t.seen, "the other screen was left on")


def watch_resized(options):
    t = Terminal([HOLDFAST, "ps", "--watch", "--interval", "1h"], 24, 80)
    t.expect("COMMAND")
    t.expect("true")
    t.resize(24, 60)
    t.expect("COMMAND")
    t.send(b"\x03")
    must(t, t.wait() == 256 - signal.SIGINT, "status")


# -- a wait is told ---------------------------------------------------------------------

def screen(data):
    """The lines that a person sees: carriage returns, newlines and the clearing of a line are all that came."""
    lines, at = [""], 0
    for part in re.findall(rb"\r|\n|\x1b\[K|[^\r\n\x1b]+", data):
        if part == b"\r":
            at = 0
        elif part == b"\n":
            lines.append("")
            at = 0
        elif part == b"\x1b[K":
            lines[-1] = lines[-1][:at]
        else:
            text = part.decode()
            lines[-1] = lines[-1][:at] + text + lines[-1][at + len(text):]
            at += len(text)
    return [line for line in lines if line]


HELD = "echo up >up; until [ -e go ]; do sleep 0.02; done"


def waits(holder, argv, line, status=0, after=("DONE",)):
    """`argv` waits for what `holder` has: `line` is seen, anew each second, and is gone when it goes on."""
    held = subprocess.Popen([HOLDFAST, *holder, "--", "sh", "-c", HELD], stdout=subprocess.DEVNULL)
    atexit.register(held.terminate)  # a scenario that fails leaves nothing behind that its caller would wait for
    end = time.monotonic() + LIMIT
    while not os.path.exists("up"):
        if time.monotonic() > end:
            sys.exit("the holder does not come up")
        time.sleep(0.02)
    t = Terminal([HOLDFAST, *argv], rows=24, columns=80)
    t.expect("\r" + line + "\x1b\\[K")
    t.expect("\r" + line + "\x1b\\[K")
    seen = screen(t.seen)
    must(t, len(seen) == 1 and re.fullmatch(line, seen[0]) and len(seen[0]) < 80, f"the screen shows {seen}")
    # Given up by Ctrl-C, or let in.
    if status:
        t.send(b"\x03")
    else:
        open("go", "w", encoding="ascii").close()
    got = t.wait()
    must(t, got == status, f"status {got}")
    if not status:
        seen = screen(t.seen)
        must(t, len(seen) == len(after) and all(map(re.fullmatch, after, seen)), f"the screen shows {seen}")
    open("go", "w", encoding="ascii").close()
    if held.wait(LIMIT):
        sys.exit("the holder failed")
    for name in ("up", "go"):
        os.remove(name)


def waits_lock_run(options):
    line = r"waiting for 'build' \(pid \d+ sh, \d+ s\), place 1; Ctrl-C gives up"
    waits(["lock", "run", "build"], ["lock", "run", "build", "--", "echo", "DONE"], line)
    waits(["lock", "run", "build"], ["lock", "run", "build", "--ttl", "5s", "--", "echo", "DONE"], line)
    waits(["lock", "run", "build"], ["lock", "run", "build", "--", "echo", "DONE"], line, status=-signal.SIGINT % 256)


def waits_lock_acquire(options):
    line = r"waiting for 'build' \(pid \d+ sh, \d+ s\), place 1; Ctrl-C gives up"
    waits(["lock", "run", "build"], ["lock", "acquire", "-w", "1m", "build"], line, after=[r"\d+"])


def waits_run_name(options):
    line = r"waiting for 'x' \(pid \d+ [a-z-]+, \d+ s\), place 1; Ctrl-C gives up"
    waits(["run", "x"], ["run", "x", "-w", "--", "echo", "DONE"], line)
    waits(["run", "x"], ["run", "-w", "1m", "x", "--", "echo", "DONE"], line, status=130)


def waits_run_group(options):
    line = r"waiting for a place in 'g' \(all 1 taken, \d+ s\), place 1; Ctrl-C gives up"
    waits(["run", "h", "--group", "g", "--max-active", "1"],
          ["run", "y", "--group", "g", "--max-active", "1", "-w", "--", "echo", "DONE"], line)
    waits(["run", "h", "--group", "g", "--max-active", "1"],
          ["run", "y", "--group", "g", "--max-active", "1", "-w", "--", "echo", "DONE"], line, status=130)


def waits_run_detached(options):
    line = r"waiting for a place in 'g' \(all 1 taken, \d+ s\), place 1; Ctrl-C leaves .*"
    waits(["run", "h", "--group", "g", "--max-active", "1"],
          ["run", "-d", "y", "--group", "g", "--max-active", "1", "-w", "--", "true"], line,
          after=["y runs in the background: pid \\d+, attempt 1"])


globals()[sys.argv[1]](sys.argv[2:])
