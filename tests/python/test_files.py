"""Shared files, and the drop-in for the package filelock."""
import fcntl
import os
import signal
import threading

import pytest
from conftest import BOUND, wait_until

import holdfast
from holdfast.filelock import FileLock, Timeout


def test_edit_file_and_edit_block(tmp_path):
    path = tmp_path / "f.md"
    assert holdfast.edit_file(path, lambda old: old + "one\n", create=True)
    assert not holdfast.edit_file(path, lambda old: old)
    assert not holdfast.edit_file(path, lambda old: None)
    assert holdfast.edit_file(path, lambda old: old + b"\xff\r\n", encoding=None)
    assert holdfast.edit_block(path, "rules", "Run \\g<0> tests.")
    assert b"Run \\g<0> tests." in path.read_bytes()
    assert holdfast.edit_block(path, "rules", None)
    assert path.read_bytes() == b"one\n\xff\r\n"
    with pytest.raises(ZeroDivisionError):
        holdfast.edit_file(path, lambda old: 1 / 0, encoding=None)
    assert sorted(os.listdir(tmp_path)) == ["f.md", "state"]


def test_markers_that_make_no_sense_are_refused(tmp_path):
    path = tmp_path / "f.md"
    path.write_text("<!-- holdfast:a:start -->\n")
    with pytest.raises(holdfast.errors.Markers):
        holdfast.edit_block(path, "a", "x")
    with pytest.raises(holdfast.Refused):
        holdfast.edit_block(path, "a", "x", root=tmp_path / "state")


def test_increments_by_processes_and_threads_lose_none_L1_L9(tmp_path, script):
    path = tmp_path / "n"
    path.write_text("0")
    others = [script(f"for _ in range(5): holdfast.edit_file({str(path)!r}, lambda old: str(int(old) + 1), wait=60)") for _ in range(6)]
    threads = [threading.Thread(target=lambda: [holdfast.edit_file(path, lambda old: str(int(old) + 1), wait=60) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert [other.end()[0] for other in others] == [0] * 6
    assert path.read_text() == "50"


def test_what_an_editor_saved_meanwhile_is_not_lost(tmp_path):
    path, calls = tmp_path / "f", []
    path.write_text("old")

    def change(old):
        calls.append(old)
        if len(calls) == 1:
            path.write_text("editor")
        return old + "+"

    assert holdfast.edit_file(path, change)
    assert calls == ["old", "editor"] and path.read_text() == "editor+"


def test_an_edit_fails_if_its_path_leads_to_another_directory_by_then(tmp_path):
    path, old = tmp_path / "d" / "f", tmp_path / "old"
    path.parent.mkdir()
    path.write_text("a")

    def change(text):
        path.parent.rename(old)
        path.parent.mkdir()
        path.write_text("other")
        return text + "b"

    with pytest.raises(holdfast.errors.Moved):
        holdfast.edit_file(path, change)
    assert path.read_text() == "other" and (old / "f").read_text() == "a"
    assert os.listdir(path.parent) == os.listdir(old) == ["f"]


def test_file_lock_excludes_flock_and_tells_what_it_did_without_L8(tmp_path):
    path = tmp_path / "CLAUDE.md"
    with holdfast.file_lock(path) as file:
        assert file.token > 0
        with open(tmp_path / ".CLAUDE.md.lock") as sidecar, pytest.raises(BlockingIOError):
            fcntl.flock(sidecar, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(tmp_path / ".CLAUDE.md.lock") as sidecar:
        fcntl.flock(sidecar, fcntl.LOCK_EX)
        with pytest.raises(holdfast.Timeout):
            with holdfast.file_lock(path, wait=0.05):
                pass
        with holdfast.file_lock(path, wait=0, on_timeout="proceed") as nothing:
            assert nothing is None
    records = holdfast.journal.query("lock_fail_open")
    assert len(records) == 1 and records[0]["name"] == str(path) and f"pid {os.getpid()}" in records[0]["holder"]


def test_a_fence_that_was_lost_keeps_the_old_file_L5(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    lock = holdfast.Lock("build").acquire()
    assert holdfast.edit_file(path, lambda old: "new", fence=lock)
    with pytest.raises(holdfast.Stale):
        holdfast.edit_file(path, lambda old: (holdfast.break_lock("build", "test"), "late")[1], fence=lock)
    assert path.read_text() == "new"
    with pytest.raises(holdfast.Stale):
        lock.release()


@pytest.mark.parametrize("take", ["holdfast.file_lock({path!r}, wait=60).__enter__()", "holdfast.FileLock({path!r} + '.lock').acquire()"])
def test_ctrl_c_ends_the_wait_for_a_file(tmp_path, script, take):
    path = str(tmp_path / "f")
    with open(tmp_path / ".f.lock", "w") as first, open(tmp_path / "f.lock", "w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)
        other = script("try:\n print('go'); " + take.format(path=path) + "\nexcept KeyboardInterrupt:\n print('interrupted')")
        assert other.line() == "go"
        wait_until(lambda: any(info.holders for info in holdfast.locks(kind=holdfast.Kind.FILE)))
        other.process.send_signal(signal.SIGINT)
        assert other.line() == "interrupted"
    assert not any(info.holders for info in holdfast.locks(kind=holdfast.Kind.FILE))


# -- filelock ---------------------------------------------------------------------------


def test_file_lock_makes_its_directory_and_refuses_what_is_no_file_as_the_package_does(tmp_path):
    with FileLock(tmp_path / "new" / "deep" / "a.lock") as lock:
        assert lock.is_locked
    (tmp_path / "file").touch()
    for path, error in (("", FileNotFoundError), ("\0", ValueError), (".", IsADirectoryError), (tmp_path / "file" / "a", (NotADirectoryError, FileExistsError))):
        with pytest.raises(error):
            FileLock(path).acquire()


def test_filelock_names_counts_and_timeouts(tmp_path):
    lock = FileLock(tmp_path / "a.lock", timeout=0)
    assert lock.lock_file == str(tmp_path / "a.lock") and lock.timeout == 0.0 and not lock.is_locked
    with lock, lock.acquire(poll_interval=1):
        assert lock.is_locked and lock.lock_counter == 2
        with pytest.raises(Timeout) as late:
            FileLock(lock.lock_file).acquire(timeout=0.05)
        assert late.value.lock_file == lock.lock_file
        with pytest.raises(TimeoutError):
            FileLock(lock.lock_file).acquire(blocking=False)
        with pytest.raises(holdfast.Deadlock):
            FileLock(lock.lock_file).acquire()
    assert not lock.is_locked
    lock.acquire()
    lock.acquire()
    lock.release(force=True)
    assert not lock.is_locked
    lock.release()

    @lock
    def decorated():
        return lock.is_locked

    assert decorated()


def test_filelock_excludes_the_package_of_that_name(tmp_path):
    theirs = pytest.importorskip("filelock")
    path = str(tmp_path / "a.lock")
    with theirs.FileLock(path), pytest.raises(Timeout):
        FileLock(path, timeout=0.05).acquire()
    with FileLock(path), pytest.raises(theirs.Timeout):
        theirs.FileLock(path, timeout=0.05).acquire()


def test_filelock_of_threads_and_of_a_forked_child(tmp_path):
    lock, inside, most = FileLock(tmp_path / "a.lock"), [0], [0]

    def work():
        for _ in range(5):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert most[0] == 1
    with lock:
        pid = os.fork()
        if pid == 0:
            try:
                lock.release()
            except holdfast.Forked:
                os._exit(7 if not lock.is_locked else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        with open(tmp_path / "a.lock") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


