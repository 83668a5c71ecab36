"""The drop-in for the package filelock: its options and messages, threads at one gate, asyncio, readers and writers."""
import errno
import gc
import inspect
import logging
import os
import pickle
import signal
import sqlite3
import stat
import sys
import threading

import pytest
from conftest import BOUND, in_threads, wait_until

import holdfast
from holdfast import _gate
from holdfast import filelock as ours
from holdfast.filelock import BaseFileLock, FileLock, Timeout

OPTIONS = {"lock_file", "timeout", "mode", "thread_local", "blocking", "is_singleton", "poll_interval", "lifetime", "context_error_policy",
           "close_error_policy", "fallback_to_soft", "preserve_lock_file", "on_acquired"}


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


# -- options ----------------------------------------------------------------------------


def test_every_option_of_the_package_is_accepted_and_can_be_read(tmp_path):
    assert set(inspect.signature(FileLock.__init__).parameters) - {"self", "state"} == OPTIONS
    assert set(inspect.signature(ours.AsyncFileLock.__init__).parameters) - {"self", "state"} == OPTIONS | {"loop", "run_in_executor", "executor"}
    assert set(inspect.signature(FileLock.acquire).parameters) == {"self", "timeout", "poll_interval", "poll_intervall", "blocking", "cancel_check"}
    given = dict(timeout=3, mode=0o600, thread_local=False, blocking=False, is_singleton=True, poll_interval=0.5, context_error_policy="chain",
                 close_error_policy="raise", fallback_to_soft=False, preserve_lock_file=True, on_acquired=print)
    for cls in (FileLock, ours.AsyncFileLock):
        lock = cls(tmp_path / "a.lock", **given)
        assert {name: getattr(lock, name) for name in given if name != "thread_local"} == {n: v for n, v in given.items() if n != "thread_local"}
        assert not lock.is_thread_local() and lock.has_explicit_mode
    plain = FileLock(tmp_path / "b.lock")
    assert (plain.mode, plain.has_explicit_mode, plain.poll_interval, plain.lifetime, plain.is_singleton) == (0o644, False, 0.05, None, False)
    for bad in (dict(poll_interval=-1), dict(poll_interval=float("inf")), dict(lifetime=-1), dict(mode=0o1777), dict(context_error_policy="x"),
                dict(close_error_policy="x")):
        with pytest.raises(ValueError):
            FileLock("a", **bad)
    for bad in (dict(timeout="1"), dict(blocking=1), dict(mode="644"), dict(lifetime=True), dict(poll_interval=None)):
        with pytest.raises(TypeError):
            FileLock("a", **bad)
    with pytest.raises(ValueError, match="timeout must be a number"):
        plain.acquire(timeout=float("nan"))


def test_a_lifetime_is_ignored_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="lifetime is ignored for UnixFileLock"):
        lock = FileLock(tmp_path / "a.lock", lifetime=1)
    assert lock.lifetime is None


def test_a_singleton_is_one_counted_lock_for_all_spellings_of_a_path(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    first = FileLock("a.lock", is_singleton=True, timeout=2)
    with first:
        for path in ("./a.lock", tmp_path / "a.lock", str(tmp_path / "link" / "a.lock")):
            again = FileLock(path, is_singleton=True, timeout=2)
            assert again is first
        with again:
            assert first.lock_counter == 2
    assert FileLock("b.lock", is_singleton=True) is not first and FileLock("a.lock") is not first

    class Other(FileLock):
        pass

    assert Other("a.lock", is_singleton=True) is not first
    with pytest.raises(ValueError, match="Singleton lock instances cannot be initialized with differing arguments\nNon-matching arguments: "
                                         "\n\tmode \\(existing lock has -1 but 384 was passed\\)"):
        FileLock("a.lock", 2, 0o600, is_singleton=True)
    del first, again
    gc.collect()
    assert FileLock("a.lock", is_singleton=True).timeout == -1
    made, errors = in_threads(8, lambda: FileLock("c.lock", is_singleton=True))
    assert not errors and len({id(lock) for lock in made}) == 1


def test_a_subclass_may_have_other_options_and_is_made_once(tmp_path):
    made = []

    class Narrow(FileLock):
        def __init__(self, path, my_own=0, **options):
            made.append(my_own)
            super().__init__(path + ".lock", **options)

    assert Narrow(str(tmp_path / "a"), my_own=1).lock_file.endswith("a.lock")
    one = Narrow(str(tmp_path / "b"), is_singleton=True)
    assert Narrow(str(tmp_path / "b"), is_singleton=True) is one and made == [1, 0]


class Switch(BaseFileLock):
    """A lock of another kind: held by whoever set the switch."""

    free = True

    def _acquire(self):
        if Switch.free:
            Switch.free, self._context.lock_file_fd = False, 0

    def _release(self):
        Switch.free, self._context.lock_file_fd = True, None


def test_a_subclass_that_has_only_attempts_is_polled(tmp_path):
    assert inspect.isabstract(BaseFileLock)
    with pytest.raises(NotImplementedError):
        ours.WindowsFileLock("a").acquire()
    first, second = Switch("a"), Switch("a", poll_interval=0.001)
    with first:
        with pytest.raises(Timeout):
            second.acquire(timeout=0.01)
        with pytest.raises(Timeout):
            second.acquire(blocking=False)
    with second:
        assert second.is_locked and not first.is_locked
    assert Switch.free


def test_options_of_a_thread_local_lock_are_those_of_the_thread(tmp_path):
    for thread_local, seen in ((True, 0.05), (False, 0.5)):
        lock = FileLock(tmp_path / "a.lock", thread_local=thread_local)
        lock.poll_interval = 0.5
        assert in_threads(1, lambda: lock.poll_interval) == ([seen], [])


def test_on_acquired_gets_the_locked_descriptor_once_and_its_error_frees_the_lock(tmp_path):
    path, seen = tmp_path / "a.lock", []

    def write(fd):
        seen.append(fd)
        os.write(fd, b"me")

    lock = FileLock(path, on_acquired=write)
    path.write_text("the text of an earlier holder")
    with lock, lock:
        assert path.read_text() == "me" and len(seen) == 1

    def fail(fd):
        raise KeyError

    lock = FileLock(path, on_acquired=fail)
    with pytest.raises(KeyError):
        lock.acquire()
    assert not lock.is_locked and lock.lock_counter == 0
    FileLock(path, timeout=0).acquire().lock.release()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no groups of exceptions before 3.11")
def test_the_errors_of_the_block_and_of_the_release_come_together(tmp_path, monkeypatch):
    close = os.close
    lock = FileLock(tmp_path / "b.lock", context_error_policy="group")
    with pytest.raises(ExceptionGroup) as raised, monkeypatch.context() as patch, lock:  # noqa: F821
        patch.setattr(lock, "release", lambda: 1 / 0)
        raise KeyError("block")
    assert [type(error) for error in raised.value.exceptions] == [KeyError, ZeroDivisionError]
    for policy, kind in (("group", ExceptionGroup), ("chain", OSError)):  # noqa: F821
        lock = FileLock(tmp_path / "a.lock", context_error_policy=policy, close_error_policy="raise")
        with monkeypatch.context() as patch:
            with pytest.raises(kind) as raised, lock:
                held = lock._context.lock_file_fd

                def fail(fd):
                    close(fd)
                    if fd == held:
                        raise OSError(errno.EIO, "close failed")

                patch.setattr(os, "close", fail)
                raise KeyError("block")
        assert not lock.is_locked
        errors = raised.value.exceptions if policy == "group" else (raised.value.__context__, raised.value)
        assert [type(error) for error in errors] == [KeyError, OSError]


# -- the file ---------------------------------------------------------------------------


def test_the_mode_is_that_which_was_asked_for_whatever_the_umask(tmp_path, umask):
    with FileLock("m1", mode=0o666):
        assert mode_of("m1") == 0o666
    with FileLock("m1", mode=0o600), pytest.raises(Timeout):
        FileLock("m1", mode=0o644, timeout=0).acquire()  # a contender changes nothing
    assert mode_of("m1") == 0o600
    with FileLock("m2"):
        assert mode_of("m2") == 0o644
    os.umask(0o002)
    with FileLock("m1"), FileLock("m3"):
        assert (mode_of("m1"), mode_of("m3")) == (0o600, 0o664)


def test_the_winner_empties_the_file_and_a_contender_does_not(tmp_path):
    path = tmp_path / "a.lock"
    path.write_text("old")
    with FileLock(path):
        assert path.read_text() == ""
        path.write_text("holder")
        with pytest.raises(Timeout):
            FileLock(path, timeout=0).acquire()
        assert path.read_text() == "holder"


@pytest.mark.parametrize("made_meanwhile", [False, True])
def test_another_users_file_in_a_sticky_directory_is_opened_without_o_creat(tmp_path, monkeypatch, made_meanwhile):
    path, real = tmp_path / "a.lock", os.open
    if not made_meanwhile:
        path.touch()

    def protected(name, flags, mode=0o777, **more):  # as with fs.protected_regular: O_CREAT is refused when the file exists
        if name == str(path) and flags & os.O_CREAT:
            path.touch()
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real(name, flags, mode, **more)

    monkeypatch.setattr(os, "open", protected)
    with FileLock(str(path), timeout=0):
        pass


def test_a_directory_that_may_not_be_written_is_told_as_such(tmp_path, monkeypatch):
    real = os.open

    def refused(name, flags, mode=0o777, **more):
        if name == "a.lock" and flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real(name, flags, mode, **more)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(PermissionError, match="Permission denied"):
        FileLock("a.lock").acquire(timeout=1)


def test_a_file_system_without_flock_is_refused(tmp_path, monkeypatch):
    def missing(fd, operation):
        raise OSError(errno.ENOSYS, "no flock")

    monkeypatch.setattr("fcntl.flock", missing)
    lock = FileLock("a.lock")
    with pytest.raises(OSError, match="no flock"):
        lock.acquire()
    assert not lock.is_locked


# -- words ------------------------------------------------------------------------------


def test_the_logger_filelock_gets_the_messages_of_the_package(tmp_path, log):
    path = str(tmp_path / "a.lock")
    first, second = FileLock(path), FileLock(path, poll_interval=0.01)
    with first:
        for options, last in ((dict(timeout=0.02), "Timeout on acquiring lock {} on {}"), (dict(blocking=False), "Failed to immediately acquire lock {} on {}"),
                              (dict(timeout=5, cancel_check=lambda: True), "Cancellation requested for lock {} on {}")):
            log.clear()
            with pytest.raises(Timeout):
                second.acquire(**options)
            assert log.messages[0] == f"Attempting to acquire lock {id(second)} on {path}"
            assert log.messages[-1] == last.format(id(second), path)
            if options.get("timeout") == 0.02:
                assert f"Lock {id(second)} not acquired on {path}, waiting 0.01 seconds ..." in log.messages
        log.clear()
    assert log.messages == [f"Attempting to release lock {id(first)} on {path}", f"Lock {id(first)} released on {path}"]
    log.clear()
    first.acquire()
    assert log.messages == [f"Attempting to acquire lock {id(first)} on {path}", f"Lock {id(first)} acquired on {path}"]
    assert {(record.name, record.levelno) for record in log.records} == {("filelock", logging.DEBUG)}
    assert logging.getLogger("filelock").level == logging.NOTSET


def test_the_errors_read_as_those_of_the_package(tmp_path):
    error = Timeout("/path/to/lock")
    assert (str(error), repr(error)) == ("The file lock '/path/to/lock' could not be acquired.", "Timeout('/path/to/lock')")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.lock_file) == (Timeout, str(error), "/path/to/lock")
    with pytest.raises(ValueError, match="embedded null byte"):
        FileLock("a\0b").acquire()
    with FileLock("a.lock"), pytest.raises(RuntimeError, match="Deadlock: lock 'a.lock' is already held by a different FileLock instance in this thread"):
        FileLock("a.lock").acquire()


def test_cancel_check_ends_a_wait_and_is_not_asked_when_the_lock_is_free(tmp_path):
    asked = []

    def check():
        asked.append(1)
        return len(asked) == 3

    with FileLock("a.lock").acquire(cancel_check=check):
        assert not asked
        results, errors = in_threads(1, lambda: FileLock("a.lock", poll_interval=0.001).acquire(cancel_check=check))
    assert len(asked) == 3 and [type(error) for error in errors] == [Timeout]


# -- threads ----------------------------------------------------------------------------


def gate(lock):
    return lock._find_gate()


def test_threads_wait_inside_the_process_and_a_timeout_names_it(tmp_path):
    lock, taken = FileLock("a.lock"), []
    with lock:
        thread = threading.Thread(target=lambda: taken.append(FileLock("a.lock").acquire()))
        thread.start()
        wait_until(lambda: len(gate(lock)._waiters) == 1)
        assert [len(info.waiters) for info in holdfast.locks(kind=holdfast.Kind.FILE)] == [0]
        results, errors = in_threads(1, lambda: FileLock("a.lock").acquire(timeout=0.01))
        assert errors[0].holder.pid == os.getpid() and len(gate(lock)._waiters) == 1
    thread.join(BOUND)
    assert len(taken) == 1 and gate(lock).owner is None  # the lock of a thread ends with it


def test_a_thread_that_returns_at_once_does_not_keep_others_out(tmp_path):
    stop, done = threading.Event(), []

    def busy():
        lock = FileLock("a.lock")
        while not stop.is_set():
            with lock:
                pass

    def once():
        with FileLock("a.lock"):
            done.append(threading.get_ident())

    threads = [threading.Thread(target=busy) for _ in range(2)] + [threading.Thread(target=once) for _ in range(10)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(done) == 10)
    finally:
        stop.set()
        for thread in threads:
            thread.join(BOUND)


def test_after_its_turn_the_gate_goes_to_the_longest_waiter(tmp_path, monkeypatch):
    monkeypatch.setattr(_gate, "TURN_NS", 0)
    lock, order = FileLock("a.lock"), []

    def work(number):
        with FileLock("a.lock"):
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    with lock:
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(lambda: len(gate(lock)._waiters) == number + 1)
    with lock:
        order.append("back")
    for thread in threads:
        thread.join(BOUND)
    assert order[:8] == list(range(8)) and order[8] == "back"


def test_a_cycle_of_threads_is_a_deadlock(tmp_path):
    first, errors, both = FileLock("a.lock"), [], threading.Barrier(2)

    def work(mine, other):
        with FileLock(mine):
            both.wait(BOUND)
            try:
                with FileLock(other):
                    pass
            except RuntimeError as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=names) for names in (("a.lock", "b.lock"), ("b.lock", "a.lock"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert 1 <= len(errors) <= 2 and all(isinstance(error, holdfast.Deadlock) for error in errors)
    first.acquire(timeout=0).lock.release()


def test_a_cycle_over_a_named_lock_is_a_deadlock(tmp_path):
    errors, both = [], threading.Barrier(2)

    def work(mine, other):
        with mine:
            both.wait(BOUND)
            try:
                with other:
                    pass
            except holdfast.Deadlock as error:
                errors.append(error)

    locks = [(FileLock("a.lock"), holdfast.Lock("x")), (holdfast.Lock("x"), FileLock("a.lock"))]
    threads = [threading.Thread(target=work, args=pair) for pair in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert len(errors) == 1 and not any(thread.is_alive() for thread in threads)


def test_a_shared_object_is_counted_over_threads_and_another_thread_may_release_it(tmp_path):
    lock = FileLock("a.lock", thread_local=False)
    for _ in range(2):
        assert in_threads(1, lambda: lock.acquire(timeout=2))[1] == []
    assert lock.lock_counter == 2
    lock.release()
    lock.release()
    assert not lock.is_locked
    FileLock("a.lock", timeout=0).acquire().lock.release()


def test_the_lock_of_a_thread_that_ended_is_free(tmp_path):
    lock = FileLock("a.lock")
    assert in_threads(1, lambda: lock.acquire() and None) == ([None], [])
    lock.acquire(timeout=BOUND).lock.release()


def test_a_lock_that_is_deleted_is_free_at_once_for_the_others(tmp_path):
    lock, other = FileLock("a.lock"), FileLock("a.lock")
    lock.acquire()
    with pytest.raises(Timeout):
        other.acquire(timeout=0.01)
    del lock
    other.acquire(timeout=0).lock.release()


def test_processes_and_threads_take_turns(tmp_path, script):
    count = tmp_path / "count"
    count.write_text("0")
    text = """
def work():
    for _ in range(20):
        with holdfast.FileLock("a.lock"):
            n = int(open("count").read())
            open("count", "w").write(str(n + 1))
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
"""
    assert [(code, err) for code, _, err in [one.end() for one in [script(text) for _ in range(3)]]] == [(0, "")] * 3
    assert count.read_text() == "240"


def test_the_lock_of_a_killed_process_is_free_while_its_forked_child_lives(tmp_path, script):
    one = script("""
lock = holdfast.FileLock("a.lock").acquire()
if os.fork() == 0:
    os.close(2)
    print(os.getpid())
    signal.pause()
signal.pause()
""")
    child = int(one.line())
    try:
        with pytest.raises(Timeout):
            FileLock("a.lock").acquire(timeout=0)
        one.process.kill()
        FileLock("a.lock").acquire(timeout=BOUND).lock.release()
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_waits_for_its_parent_also_where_threads_wait(tmp_path):
    lock = FileLock("a.lock")
    with lock:
        threads = [threading.Thread(target=lambda: FileLock("a.lock").acquire(timeout=BOUND).lock.release()) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(gate(lock)._waiters) == 3)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                FileLock("a.lock").acquire(timeout=0)
            except Timeout:
                os.write(write, b"x")
                try:
                    FileLock("a.lock").acquire(timeout=BOUND)
                    os._exit(7)
                except BaseException:
                    os._exit(8)
            os._exit(9)
        os.close(write)
        assert os.read(read, 1) == b"x"
        os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    for thread in threads:
        thread.join(BOUND)


# -- readers and writers ----------------------------------------------------------------


def test_readers_share_and_a_writer_is_alone(tmp_path):
    lock = ours.ReadWriteLock("rw.db")
    one, two = (ours.ReadWriteLock("rw.db", is_singleton=False) for _ in range(2))
    with lock.read_lock(), one.read_lock():
        with pytest.raises(Timeout):
            two.acquire_write(timeout=0)
        with pytest.raises(Timeout):
            two.acquire_write(timeout=0.02)
    with lock.write_lock(), lock.write_lock():
        for take in (one.acquire_read, one.acquire_write):
            with pytest.raises(Timeout):
                take(blocking=False)
        with pytest.raises(RuntimeError, match="downgrade not allowed"):
            lock.acquire_read()
        results, errors = in_threads(1, lock.acquire_write)
        assert isinstance(errors[0], RuntimeError)
    with lock.read_lock(), pytest.raises(RuntimeError, match="upgrade not allowed"):
        lock.acquire_write()
    with pytest.raises(RuntimeError, match="is not held|that is not held"):
        lock.release()
    lock.release(force=True)
    with one.acquire_write():
        pass
    one.close()
    with pytest.raises(sqlite3.ProgrammingError, match="Cannot operate on a closed database"):
        one.acquire_read()


def test_a_read_write_lock_is_a_singleton_unless_told_otherwise(tmp_path):
    lock = ours.ReadWriteLock("rw.db", timeout=3)
    assert ours.ReadWriteLock(tmp_path / "rw.db", 3) is lock is ours.ReadWriteLock.get_lock("./rw.db", 3)
    assert ours.ReadWriteLock("rw.db", is_singleton=False) is not lock
    with pytest.raises(ValueError, match="Singleton lock created with timeout=3, blocking=True, cannot be changed to timeout=4, blocking=True"):
        ours.ReadWriteLock("rw.db", 4)
    with pytest.raises(ValueError, match="non-negative number or -1"):
        lock.acquire_read(timeout=-2)


@pytest.mark.parametrize("mine, theirs, free", [("read", "SELECT name FROM sqlite_master", True), ("read", "BEGIN EXCLUSIVE", False),
                                                ("write", "SELECT name FROM sqlite_master", False), ("write", "BEGIN EXCLUSIVE", False)])
def test_read_write_locks_are_transactions_as_those_of_the_package(tmp_path, script, mine, theirs, free):
    lock = ours.ReadWriteLock("rw.db")
    other = f"import sqlite3\ntry:\n sqlite3.connect('rw.db', timeout=0).execute({theirs!r})\n print('free')\nexcept sqlite3.OperationalError as e:\n print(e)"
    with getattr(lock, mine + "_lock")():
        assert script(other).end()[1] == ("free" if free else "database is locked")
    assert script(other).end()[1] == "free"


def test_what_is_no_lock_database_is_refused(tmp_path):
    sqlite3.connect("wal.db").execute("PRAGMA journal_mode=WAL").connection.execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(ValueError, match="WAL"):
        ours.ReadWriteLock("wal.db").acquire_read()
    (tmp_path / "target").touch()
    os.symlink("target", "link.db")
    with pytest.raises(OSError, match="symbolic link"):
        ours.ReadWriteLock("link.db")


RW = "from holdfast.filelock import ReadWriteLock\nlock = ReadWriteLock('rw.db')\n"


def test_ctrl_c_ends_the_wait_of_a_writer(tmp_path, script):
    reader = script(RW + "with lock.read_lock():\n print('held')\n sys.stdin.readline()")
    assert reader.line() == "held"
    writer = script(RW + "try:\n print('go')\n lock.acquire_write()\nexcept KeyboardInterrupt:\n print('interrupted')\nsys.stdin.readline()")
    assert writer.line() == "go"
    probe = ours.ReadWriteLock("rw.db")

    def waits():  # a waiting writer lets no new reader in
        try:
            probe.acquire_read(timeout=0).lock.release()
        except Timeout:
            return True
        return False

    wait_until(waits)
    writer.process.send_signal(signal.SIGINT)
    assert writer.line() == "interrupted"
    wait_until(lambda: not waits())
    reader.tell()
    writer.tell()
    assert (reader.end()[0], writer.end()[0]) == (0, 0)


def test_a_forked_child_does_not_use_the_read_write_lock_of_its_parent(tmp_path):
    lock = ours.ReadWriteLock("rw.db")
    with lock.write_lock():
        pid = os.fork()
        if pid == 0:
            try:
                lock.release()
            except holdfast.Forked:
                os._exit(7)
            os._exit(8)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert ours.ReadWriteLock("rw.db", is_singleton=False)
        with pytest.raises(Timeout):
            ours.ReadWriteLock("rw.db", is_singleton=False).acquire_read(timeout=0)


def test_nothing_of_asyncio_or_sqlite_is_loaded_before_it_is_needed(script):
    text = "import holdfast.filelock\nprint('asyncio' in sys.modules, 'sqlite3' in sys.modules)\nfrom holdfast.filelock import *\nprint(ReadWriteLock.__name__)"
    assert script(text).end()[1] == "False False\nReadWriteLock"
    with pytest.raises(AttributeError):
        ours.nothing
    assert all(hasattr(ours, name) for name in ours.__all__)
