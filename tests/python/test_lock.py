"""Locks: owners, tokens, leases, the queue, signals, threads, forks."""
import os
import signal
import threading
import time

import pytest
from conftest import BOUND, wait_until, waiters

import holdfast


def test_tokens_rise_and_the_lock_is_free_after_the_block_L1_L2():
    with holdfast.lock("x", wait=5, ttl=30) as first:
        token = first.token
        first.check()
    with holdfast.lock("x") as second:
        assert second.token > token
        with pytest.raises(holdfast.Stale):
            holdfast.check_token("x", token)
    assert holdfast.look("x").holders == ()


def test_busy_and_timeout_name_the_holder_L1(holder):
    other = holder()
    with pytest.raises(holdfast.Busy) as busy:
        holdfast.Lock("x", wait=0).acquire()
    assert busy.value.holder.pid == other.process.pid
    assert busy.value.code == -8014 and str(other.process.pid) in str(busy.value)
    with pytest.raises(holdfast.Timeout) as late:
        holdfast.Lock("x").acquire(0.05)
    assert late.value.holder.pid == other.process.pid
    assert isinstance(late.value, TimeoutError)
    assert waiters() == 0


def test_a_killed_holder_is_followed_at_once_L4(holder):
    other = holder()
    lock, got = holdfast.Lock("x"), threading.Event()
    thread = threading.Thread(target=lambda: (lock.acquire(), got.set(), lock.release()))
    thread.start()
    wait_until(lambda: waiters() == 1)
    other.process.kill()
    thread.join(BOUND)
    assert got.is_set()


def test_only_the_owner_releases_L3(holder):
    other = holder()
    with pytest.raises(holdfast.NotOwner):
        holdfast.release_as("x", holdfast.ProcessId.self())
    assert holdfast.look("x").holders[0].pid == other.process.pid
    with pytest.raises(holdfast.NotHeld):
        holdfast.Lock("x").release()


def test_a_hundred_increments_by_ten_processes_and_by_ten_threads_lose_none_L1(script, tmp_path):
    number = tmp_path / "number"
    number.write_text("0")
    text = f"for _ in range(10):\n with holdfast.lock('n', wait=60):\n  n = int(open({str(number)!r}).read()); open({str(number)!r}, 'w').write(str(n + 1))"
    others = [script(text) for _ in range(10)]
    lock = holdfast.Lock("n", wait=60)

    def work():
        for _ in range(10):
            with lock:
                number.write_text(str(int(number.read_text()) + 1))

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert [other.end()[0] for other in others] == [0] * 10
    assert number.read_text() == "200"


def test_waiting_releases_the_interpreter(holder):
    other, lock = holder(), holdfast.Lock("x")
    thread = threading.Thread(target=lambda: lock.acquire().release())
    thread.start()
    wait_until(lambda: waiters() == 1)  # this thread runs while that one waits in C
    other.tell()
    thread.join(BOUND)
    assert not thread.is_alive()


def test_reentrant_locks_are_counted():
    lock = holdfast.Lock("x", reentrant=True)
    with lock, lock:
        pass
    assert not lock.held()
    assert holdfast.look("x").holders == ()
    with lock:
        with pytest.raises(holdfast.Deadlock):
            holdfast.Lock("x", wait=5).acquire()


def test_shared_and_slots():
    with holdfast.lock("s", shared=True):
        assert _in_thread(lambda: holdfast.Lock("s", shared=True, wait=0).acquire().release()) is None
        assert isinstance(_in_thread(lambda: holdfast.Lock("s", wait=0).acquire()), holdfast.Busy)
    with holdfast.lock("n", slots=2):
        assert _in_thread(lambda: holdfast.Lock("n", slots=2, wait=0).acquire().release()) is None


def _in_thread(call):
    result = []

    def work():
        try:
            call()
            result.append(None)
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(BOUND)
    return result[0]


def test_a_lease_is_renewed_by_itself_and_its_loss_is_told_L5():
    lost = []
    with pytest.raises(holdfast.Stale):
        with holdfast.lock("x", ttl=0.3, on_lost=lost.append) as lock:
            end = time.monotonic() + 1.2
            while time.monotonic() < end:
                lock.check()
                time.sleep(0.05)
            assert holdfast.break_lock("x", "test") == 1
            wait_until(lambda: lost)
            assert isinstance(lost[0], holdfast.Stale)
            assert not lock.held()
            with pytest.raises(holdfast.Stale):
                lock.check()


def test_without_renewal_a_hung_holder_is_replaced_L4_L5():
    lock = holdfast.Lock("x", ttl=0.2, renew=False).acquire()
    assert _in_thread(lambda: holdfast.Lock("x", wait=BOUND).acquire().release()) is None
    with pytest.raises(holdfast.Stale):
        lock.release()


def test_ctrl_c_ends_a_wait_and_leaves_the_queue(holder, script):
    holder()
    other = script("try:\n print('go'); holdfast.Lock('x').acquire()\nexcept KeyboardInterrupt:\n print('interrupted')")
    assert other.line() == "go"
    wait_until(lambda: waiters() == 1)
    other.process.send_signal(signal.SIGINT)
    assert other.line() == "interrupted"
    assert other.end()[0] == 0
    assert waiters() == 0


def test_a_signal_whose_handler_raises_nothing_costs_no_place_in_the_queue(holder, script):
    first = holder()
    second = script("""
signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
with holdfast.lock("x"):
    print("second")
""")
    wait_until(lambda: waiters() == 1)
    third = script("with holdfast.lock('x'):\n print('third', holdfast.journal.append('note', text='third'))")
    wait_until(lambda: waiters() == 2)
    for _ in range(3):
        second.process.send_signal(signal.SIGUSR1)
        assert second.line() == "handled"
    assert [w.pid for w in holdfast.look("x").waiters] == [second.process.pid, third.process.pid]
    first.tell()
    assert second.line() == "second"
    assert third.line().startswith("third")


def test_signals_reach_another_reader_of_them(holder, script):
    holder()
    other = script("""
r, w = os.pipe2(os.O_NONBLOCK)
signal.set_wakeup_fd(w)
try:
    print("go"); holdfast.Lock("x").acquire()
except KeyboardInterrupt:
    print(list(os.read(r, 10)), signal.set_wakeup_fd(-1) == w)
""")
    assert other.line() == "go"
    wait_until(lambda: waiters() == 1)
    other.process.send_signal(signal.SIGINT)
    assert other.line() == "[2] True"


def test_a_storm_of_ctrl_c_leaves_nothing_in_the_queue_and_takes_nothing(holder, script):
    first = holder()
    other = script("""
inside, n = False, 0

def handle(*_):
    global inside
    if inside:
        inside = False
        raise KeyboardInterrupt

# One lock for all: an interrupt that comes while the one before is freed is Python's to swallow, and then none is left for the wait.
lock = holdfast.Lock("x", wait=60)
signal.signal(signal.SIGINT, handle)
print("go")
while n < 200:
    try:
        inside = True
        lock.acquire()
    except KeyboardInterrupt:
        n += 1
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("done", flush=True)
""")
    assert other.line() == "go"
    done = threading.Thread(target=lambda: other.line())
    done.start()
    end = time.monotonic() + BOUND
    while done.is_alive() and time.monotonic() < end:
        other.process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    code, _, err = other.end()
    assert code == 0, err
    assert waiters() == 0
    assert [h.pid for h in holdfast.look("x").holders] == [first.process.pid]


def test_a_forked_child_has_no_share_L13():
    lock = holdfast.Lock("x").acquire()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for call in (lock.release, lock.check, lock.renew, lambda: lock.token, lock.acquire):
                try:
                    call()
                    os._exit(2)
                except holdfast.Forked:
                    pass
            assert not lock.held()
            try:
                holdfast.Lock("x", wait=0).acquire()  # its own state, and another owner
            except holdfast.Busy as busy:
                status = 0 if busy.holder.pid == os.getppid() else 3
            with holdfast.lock("child", ttl=5):
                pass
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    lock.check()
    lock.release()


def test_lock_fd_excludes_flock_and_names_it(tmp_path):
    import fcntl

    with open(tmp_path / "f", "w") as mine, open(tmp_path / "f") as other:
        holdfast.lock_fd(mine)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(holdfast.Busy) as busy:
            holdfast.lock_fd(other, 0)
        assert busy.value.holder.pid == os.getpid()
        with pytest.raises(holdfast.Timeout):
            holdfast.lock_fd(other.fileno(), 0.05)


def test_a_lock_that_is_dropped_is_given_back_with_a_warning():
    with pytest.warns(ResourceWarning):
        lock = holdfast.Lock("x").acquire()
        del lock
    assert holdfast.look("x").holders == ()


def test_names_and_durations_that_cannot_be_used():
    for wrong in ("", "a" * 81):
        with pytest.raises(holdfast.errors.Name):
            holdfast.Lock(wrong, wait=0).acquire()
    with pytest.raises(ValueError):
        holdfast.Lock("a\0b")
    with pytest.raises(ValueError):
        holdfast.Lock("x", wait="soon")
    with holdfast.lock("a/b\n", wait="250ms", ttl="1m"):
        assert [info.name for info in holdfast.locks()] == ["a/b\n"]


@pytest.mark.parametrize("make", ["holdfast.Lock(name)", "holdfast.Lock(name, state=holdfast.State())", "holdfast.FileLock(name)",
                                  "holdfast.FileLock(name, thread_local=False, state=holdfast.State())"])
def test_a_lock_in_a_cycle_of_garbage_is_given_back(script, make):
    one = script(f"""
import gc, os, warnings
warnings.simplefilter("ignore")
gc.disable()
for turn in range(60):
    for name in [f"a{{n}}" for n in range(5)]:
        lock = {make}
        lock.acquire()
        lock.me = lock
        del lock
    gc.collect()
    assert not [i for kind in (holdfast.Kind.NAME, holdfast.Kind.FILE) for i in holdfast.locks(kind=kind) if i.holders]
    assert len(os.listdir("/proc/self/fd")) < 60
print("done")
""")
    assert one.end() == (0, "done", "")
