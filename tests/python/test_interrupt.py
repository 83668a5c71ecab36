"""Ctrl-C at the end of a block: a lock is given back, a commit is whole, and what is told is what there is."""
import dis
import os
import signal
import subprocess
import sys
import threading

import pytest
from conftest import BOUND, in_threads, wait_until

import holdfast

class Interrupt:
    """Raises KeyboardInterrupt before the instruction number `at` of the module that has the locks, as a signal handler could."""

    CHECKS = ("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE")  # instructions after which Python looks for signals, since 3.10

    def __init__(self, at, *modules):
        self.left, self.raised, self.before_this = at, False, {}
        self.files = [os.path.join(os.path.dirname(holdfast.__file__), name) for name in modules or ("_lock.py",)]

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename not in self.files or frame.f_code.co_name == "__del__":
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and not self.raised and self.is_checked(frame):
            self.left -= 1
            if self.left < 0:
                self.raised = True
                raise KeyboardInterrupt
        return self

    def is_checked(self, frame):
        """A `with` over a lock of Python's is safe only because no signal is seen between its instructions."""
        if len(self.files) == 1:
            return True
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        last, self.before_this[frame] = self.before_this.get(frame, ""), name
        return last.startswith(self.CHECKS) and name != "PUSH_EXC_INFO"  # there the call has raised

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)

    def __exit__(self, *error):
        sys.settrace(self.before)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("where", ["all", "release", "method"])
def test_an_interrupt_at_any_instruction_gives_the_lock_back(where):
    at, lock, raised = 0, holdfast.Lock("x"), True

    def block():
        with interrupt:
            with holdfast.lock("x"):
                pass

    def end_of_block():
        lock.__enter__()
        with interrupt:
            lock.__exit__(None, None, None)

    def method():
        lock.acquire()
        with interrupt:
            lock.release()

    call = {"all": block, "release": end_of_block, "method": method}[where]
    while raised:
        interrupt = Interrupt(at)
        try:
            call()
        except KeyboardInterrupt:
            pass
        if lock.held():  # before the first `try` nothing has begun, and the caller knows it
            assert at < 5
            lock.release()
        info = holdfast.look("x")
        assert info is None or info.holders == (), at
        raised, at = interrupt.raised, at + 1
    assert at > 20


@pytest.mark.parametrize("waits", [False, True])
def test_an_interrupt_at_any_instruction_gives_a_file_lock_back(tmp_path, monkeypatch, waits):
    at, raised, started = 0, True, []

    def release_in_a_thread(wait):
        started.append(threading.Thread(target=other.release))
        started[-1].start()

    while raised:
        lock, other, interrupt = holdfast.FileLock("a.lock"), holdfast.FileLock("a.lock", thread_local=False), Interrupt(at, "_gate.py", "_filelock.py")
        if waits:
            assert in_threads(1, other.acquire)[1] == []
            monkeypatch.setattr(lock, "_say_waiting", release_in_a_thread)
        try:
            with interrupt:
                with lock:
                    pass
        except KeyboardInterrupt:
            pass
        interrupt.before_this.clear()
        if lock.is_locked:  # as in a block whose last instruction was interrupted
            lock.release()
        for thread in started:
            thread.join(BOUND)
        other.release()
        assert not any(info.holders for info in holdfast.locks(kind=holdfast.Kind.FILE)), at
        # Other threads are not kept out.
        assert in_threads(1, lambda: holdfast.FileLock("a.lock").acquire(timeout=BOUND) and None) == ([None], []), at
        raised, at = interrupt.raised, at + 1
    assert at > 50 and bool(started) is waits


STORM = """
import random, warnings
warnings.simplefilter("ignore")
target = {target!r}
chance, armed, hits = random.Random({seed}), False, 0

def handle(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, handle)

def lock():
    with holdfast.lock("x", wait=60):
        pass

def file():
    with holdfast.file_lock(target + "/file", wait=60):
        pass

flock = holdfast.FileLock(target + "/l.lock")
def filelock():
    with flock:
        pass

def free():
    assert not [l for kind in (holdfast.Kind.NAME, holdfast.Kind.FILE) for l in holdfast.locks(kind=kind) if l.holders]

for turn in range(240):
    call = (lock, file, filelock)[turn % 3]
    begun = time.monotonic()
    call()
    once = time.monotonic() - begun
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, chance.random() * once + 1e-6)
        call()
        armed = False
    except KeyboardInterrupt:
        hits += 1
    if flock.is_locked:  # it came at the first instruction of __exit__, which no Python function can be saved from
        flock.release()
    free()
print("done")
"""


def test_a_storm_of_ctrl_c_over_blocks_leaves_nothing_locked(script, tmp_path):
    (tmp_path / "file").write_text("x")
    code, out, err = script(STORM.format(target=str(tmp_path), seed=160)).end()
    assert (code, out) == (0, "done"), err


COMMIT = """
import random
chance, armed = random.Random({seed}), False

def handle(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, handle)
file, once = {target!r} + "/file", 0.02
for turn in range(25):
    new, t = str(turn), None
    old = open(file).read()
    try:
        with holdfast.transaction({target!r}) as t:
            open(t.path + "/file", "w").write(new)
            armed, begun = True, time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, chance.random() * once + 1e-6)
        armed = False
        assert t.committed
        once = time.monotonic() - begun
    except KeyboardInterrupt:
        pass
    armed = False
    signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm while the interpreter ends would kill it: the handler is gone by then
    assert open(file).read() == (new if t.committed else old), (turn, t.committed)
print("done")
"""


def test_ctrl_c_during_a_commit_tells_whether_it_was_done_L10(script, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("old")
    code, out, err = script(COMMIT.format(target=str(target), seed=160)).end()
    assert (code, out) == (0, "done"), err


def test_ctrl_c_ends_a_landing_that_waits_for_its_verifier_and_keeps_the_candidate(script, tmp_path):
    repo = tmp_path / "app"
    repo.mkdir()
    subprocess.run("git init -q -b main . && git config user.name u && git config user.email u@example.org && echo old >f && git add f && git commit -qm first",
                   shell=True, cwd=repo, check=True, env=dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null"))
    try:
        session = holdfast.run("c", ["sh", "-c", "echo new >f"], in_=[repo], land="HEAD", cwd=repo, verify="exit 1")
    except (holdfast.errors.NoOverlay, holdfast.errors.Target) as error:
        pytest.skip(f"no sandbox over a git work tree here: {error}")
    session.wait(BOUND)
    if not holdfast.landings():
        pytest.skip("the candidate was not kept")
    begun = tmp_path / "begun"
    other = script(f"""
try:
    print("go")
    holdfast.land("c", verify="touch {begun}; exec sleep 600")
except KeyboardInterrupt:
    print("interrupted", [c.state.name for c in holdfast.landings()])
""")
    assert other.line() == "go"
    wait_until(begun.exists)
    other.process.send_signal(signal.SIGINT)
    assert other.line().startswith("interrupted")
    assert (repo / "f").read_text() == "old\n" and holdfast.landings()[0].state is not holdfast.LandState.LANDED
    assert holdfast.land("c", verify="grep -q new f").landed and (repo / "f").read_text() == "new\n"
