"""Plans, sessions, processes, names, the journal, and the tables that must equal the headers."""
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import BOUND, PACKAGE, TOP, in_threads, wait_until

import holdfast
from holdfast import Outcome, Strategy, _abi, _library


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "target"
    path.mkdir()
    (path / "file").write_text("old")
    return path


def test_a_transaction_lands_or_does_not_L10(target):
    with holdfast.transaction(target) as t:
        Path(t.path, "file").write_text("new")
        Path(t.path, "more").write_text("1")
        assert (target / "file").read_text() == "old"
        assert sorted(change.path for change in t.diff()) == ["file", "more"]
    assert (target / "file").read_text() == "new" and (target / "more").read_text() == "1"
    with pytest.raises(ZeroDivisionError):
        with holdfast.transaction(target) as t:
            Path(t.path, "file").write_text("never")
            raise ZeroDivisionError
    assert (target / "file").read_text() == "new"
    assert holdfast.plans() == []


def test_a_conflict_names_its_paths_and_changes_nothing_L11(target):
    with pytest.raises(holdfast.Conflict) as conflict:
        with holdfast.transaction(target) as t:
            Path(t.path, "file").write_text("new")
            Path(t.path, "other").write_text("new")
            (target / "file").write_text("meanwhile")
    assert conflict.value.paths == ["file"] and conflict.value.conflicts[0].kind == "changed"
    assert (target / "file").read_text() == "meanwhile" and not (target / "other").exists()


def test_a_plan_runs_a_command_and_is_committed_once_by_many_threads_L11(target):
    plan = holdfast.Plan("p", keep=True).create()
    box = plan.add("t", target, Strategy.COPY)
    assert plan.path("t") == box.path and box.is_copy
    Path(box.path, "file").write_text("new")
    reports, errors = in_threads(8, lambda: plan.commit(wait=BOUND))
    assert errors == [] and [r.by_other for r in reports].count(False) == 1 and len(reports) == 8
    assert (target / "file").read_text() == "new" and plan.state is holdfast.PlanState.COMMITTED
    plan.undo()
    assert (target / "file").read_text() == "old"
    plan.remove(discard=True)


def test_a_plan_as_a_block(target):
    with holdfast.Plan("p", target) as plan:
        assert plan.run(["sh", "-c", f"cd {target} && echo new >file && mkdir sub"]) == 0
        assert (target / "file").read_text() == "old" and plan.run(["false"]) == 1
        assert {change.kind for change in plan.diff()} == {holdfast.ChangeKind.CHANGED, holdfast.ChangeKind.ADDED}
    assert (target / "file").read_text() == "new\n" and (target / "sub").is_dir()
    with pytest.raises(holdfast.errors.NoPlan):
        holdfast.Plan.open("p")


def test_a_commit_under_a_lost_lock_is_refused_L5(target):
    lock = holdfast.Lock("build").acquire()
    with pytest.raises(holdfast.Stale):
        with holdfast.transaction(target, fences=[lock]) as t:
            Path(t.path, "file").write_text("new")
            holdfast.break_lock("build", "test")
    assert (target / "file").read_text() == "old"
    with pytest.raises(holdfast.Stale):
        lock.release()


def test_a_session_from_start_to_end_L7(tmp_path):
    session = holdfast.run("s", ["sh", "-c", "echo out; echo $LEVEL; pwd; exit 3"], env={"LEVEL": "2"}, cwd=tmp_path, deadline="1m")
    info = session.wait(BOUND)
    assert info.outcome is Outcome.FAILED and info.exit_status == 3 and not info.succeeded
    assert session.logs() == f"out\n2\n{tmp_path}\n".encode() and session.logs(1) == f"{tmp_path}\n".encode()
    assert holdfast.run("v", ["true"], verify="test -e done").wait(BOUND).outcome is Outcome.VERIFY_FAILED
    assert holdfast.run("ok", ["true"], verify="true").wait(BOUND).succeeded
    assert [info.name for info in holdfast.sessions()] == ["ok", "s", "v"]
    with pytest.raises(FileNotFoundError):
        holdfast.run("none", ["/no/such/program"])
    with pytest.raises(holdfast.NoSession):
        holdfast.Session("never").info()


def test_a_second_session_of_the_name_is_refused_and_a_stop_ends_the_first():
    session = holdfast.run("s", ["sh", "-c", "echo begun; exec sleep 600"])
    follower = session.follow()
    assert next(follower) == b"begun\n"
    with pytest.raises(holdfast.Busy) as busy:
        holdfast.run("s", ["true"])
    assert busy.value.holder.pid in (session.info().keeper.pid, session.info().supervisor.pid)
    with pytest.raises(holdfast.Timeout):
        session.wait(0.05)
    assert session.running
    assert session.stop(grace=5) is holdfast.Stop.STOPPED
    assert session.outcome is Outcome.STOPPED and list(follower) == []


def test_ctrl_c_ends_the_wait_for_a_session_and_not_the_session(script):
    session = holdfast.run("s", ["sleep", "600"])
    other = script("try:\n print('go'); holdfast.Session('s').wait()\nexcept KeyboardInterrupt:\n print('interrupted')")
    assert other.line() == "go"
    wait_until(lambda: b"poll" in Path(f"/proc/{other.process.pid}/wchan").read_bytes() or _sleeps(other.process.pid))
    other.process.send_signal(signal.SIGINT)
    assert other.line() == "interrupted"
    assert session.running
    session.stop(0)


def _sleeps(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


def test_ctrl_c_while_a_run_waits_for_its_name_starts_nothing(script):
    first = holdfast.run("s", ["sleep", "600"])
    other = script("try:\n print('go'); holdfast.run('s', ['sleep', '601'], wait=None)\nexcept KeyboardInterrupt:\n print('interrupted')")
    assert other.line() == "go"
    wait_until(lambda: len(holdfast.look("s").waiters) == 1)
    other.process.send_signal(signal.SIGINT)
    assert other.line() == "interrupted"
    try:
        first.stop(0)
    except holdfast.Busy:
        pass  # it is gone, and the other one had the name at once
    assert other.end()[0] == 0
    # The one that was interrupted may have had the name for a moment; then it was ended, before its process did.
    assert not holdfast.Session("s").running


def test_a_process_is_signalled_by_its_identity_L6():
    child = subprocess.Popen(["sleep", "600"])
    identity = holdfast.ProcessId.of(child.pid)
    assert identity.alive() and identity.pid == child.pid and "runs" in identity.evidence()
    assert holdfast.ProcessId.parse(str(identity)) == identity and len({identity, holdfast.ProcessId.parse(str(identity))}) == 1
    identity.signal(signal.SIGTERM)
    assert child.wait(BOUND) == -signal.SIGTERM
    assert not identity.alive()
    with pytest.raises(holdfast.Gone):
        identity.signal(signal.SIGKILL)
    with pytest.raises(holdfast.errors.Protected):
        holdfast.ProcessId.self().signal(0)
    with pytest.raises(ValueError):
        holdfast.ProcessId.parse("4711")


@pytest.mark.parametrize("name, sanitized", [("my-session_01", "my-session_01"), ("../../etc/passwd", "______etc_passwd"), ("abc\nid=evil", "abc_id_evil"),
                                             ("   ", "___"), ("", "unknown"), (None, "unknown"), ("a\0b", "a_b")])
def test_names_are_made_harmless_L12(name, sanitized):
    assert holdfast.sanitize(name) == sanitized
    assert holdfast.sanitize(sanitized) == sanitized
    if name:
        assert holdfast.unkey(holdfast.key(name)) == name


def test_the_journal_is_written_read_and_followed_L8():
    assert holdfast.journal.append("note", "fix-160", text="one") == 1
    follower = holdfast.journal.follow("note", timeout=BOUND)
    holdfast.journal.append("note", text="two")
    thread = threading.Timer(0.05, lambda: holdfast.journal.append("note", text="three"))
    thread.start()
    assert [next(follower)["text"] for _ in range(2)] == ["two", "three"]
    assert [r["text"] for r in holdfast.journal.query(limit=2)] == ["two", "three"]
    assert holdfast.journal.query(name="fix-160")[0]["seq"] == 1
    assert len(holdfast.journal.query(since="1h")) == 3 and holdfast.journal.query(event="lock_broken") == []
    assert list(holdfast.journal.follow(timeout=0.01)) == []
    for call in (lambda: holdfast.journal.append("nothing"), lambda: holdfast.journal.append("note"), lambda: holdfast.journal.append("note", txt="x")):
        with pytest.raises(holdfast.errors.Event):
            call()
    assert "note" in holdfast.journal.events()


# -- tables ------------------------------------------------------------------------------


def test_the_exceptions_are_those_of_the_library():
    rows = []
    while _library.lib.hf_err_at(len(rows)):
        rows.append(_library.lib.hf_err_at(len(rows))[0])
    assert len(rows) == len(holdfast.errors.BY_CODE) > 30
    for row in rows:
        kind = holdfast.errors.BY_CODE[row.code]
        assert kind.__name__ == row.name.decode().title().replace("_", "")
        assert (kind.code, kind.exit_status) == (row.code, row.exit_status)
        assert kind.__doc__[0].lower() + kind.__doc__[1:-1] in (row.text.decode(), row.text.decode()[0].lower() + row.text.decode()[1:])
        assert issubclass(kind, holdfast.Refused) == (row.exit_status == 3)
    error = _library.failure(-2)
    assert isinstance(error, FileNotFoundError)


def test_layouts_and_constants_are_the_compilers(tmp_path):
    if not os.path.exists(os.path.join(TOP, "tools", "python-abi.py")):
        pytest.skip("no source tree here")
    program = subprocess.run([sys.executable, os.path.join(TOP, "tools", "python-abi.py"), "--layout"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "layout.c").write_text(program)
    subprocess.run(["gcc", "-I", os.path.join(TOP, "include"), str(tmp_path / "layout.c"), "-o", str(tmp_path / "layout")], check=True)
    lines = subprocess.run([str(tmp_path / "layout")], capture_output=True, text=True, check=True).stdout.splitlines()
    seen = 0
    for line in lines:
        name, value, *fields = line.split()
        found = getattr(_abi, name)
        if isinstance(found, int):
            assert found == int(value), name
            continue
        assert ctypes.sizeof(found) == int(value), name
        mine = [f"{field}={getattr(found, field).offset}+{getattr(found, field).size}" for field, _ in found._fields_]
        assert mine == fields, name
        seen += 1
    assert seen == len(_abi.STRUCTS) > 40


def test_the_library_is_found_or_the_reason_is_told(tmp_path):
    def load(**env):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
        return subprocess.run([sys.executable, "-c", "import holdfast"], env=dict(clean, PYTHONPATH=PACKAGE, **env), capture_output=True, text=True)

    assert "not an absolute path" in load(HOLDFAST_LIBRARY="lib.so").stderr
    assert "set HOLDFAST_LIBRARY" in load(HOLDFAST_LIBRARY=str(tmp_path / "none.so")).stderr
    assert load(HOLDFAST_LIBRARY=_library.path).returncode == 0


