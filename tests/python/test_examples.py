"""examples/ that are written in Python: pact, cleveragents, sharedinbox."""
import fcntl
import importlib.util
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BOUND, PACKAGE, TOP, in_threads, wait_until

import holdfast


def example(path):
    name = path.replace("/", "_").replace(".py", "")
    spec = importlib.util.spec_from_file_location(name, os.path.join(TOP, "examples", path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# -- pact ------------------------------------------------------------------------------


@pytest.fixture
def pact(monkeypatch):
    module = example("pact/claude_md.py")
    monkeypatch.setattr(module, "LOCK_TIMEOUT_SECONDS", 30.0)
    return module


def test_pact_the_managed_block_is_replaced_literally_and_the_rest_stays(pact, tmp_path):
    path = tmp_path / "CLAUDE.md"
    before = "# Mine\r\n```\r\n<!-- PACT_MANAGED_START: in a fence -->\r\n```\r\n"
    path.write_bytes(before.encode())
    assert pact.update_managed_block(path, "\\g<0> \\n") == "Managed block updated."
    assert pact.update_managed_block(path, "\\g<0> \\n") is None
    assert path.read_bytes().startswith(before.encode()) and b"\\g<0> \\n\r\n" in path.read_bytes()
    assert pact.update_managed_block(path, None) == "Managed block updated."
    assert path.read_bytes() == before.encode()
    path.write_text("<!-- PACT_MANAGED_START: older words -->\nold\n<!-- PACT_MANAGED_END -->\n")
    assert pact.update_managed_block(path, "new") and path.read_text() == "<!-- PACT_MANAGED_START: older words -->\nnew\n<!-- PACT_MANAGED_END -->\n"
    path.write_text("<!-- PACT_MANAGED_END -->\n")
    assert pact.update_managed_block(path, "x").startswith("Managed block refused") and path.read_text() == "<!-- PACT_MANAGED_END -->\n"
    sidecar = tmp_path / ".CLAUDE.md.lock"
    assert stat.S_IMODE(sidecar.stat().st_mode) == 0o600 and sidecar.stat().st_size == 0


def test_pact_a_lock_that_is_taken_skips_the_work_with_an_event_L8(pact, tmp_path, monkeypatch):
    monkeypatch.setattr(pact, "LOCK_TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "CLAUDE.md"
    path.write_text("mine\n")
    for name in (".CLAUDE.md.lock", ".j.lock"):
        fcntl.flock(os.open(tmp_path / name, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
    assert pact.update_managed_block(path, "x").startswith("Managed block skipped")
    assert not pact.append_event(tmp_path / "j", {"type": "note"})
    with pact.file_lock(path) as held:
        assert not held
    assert path.read_text() == "mine\n" and not (tmp_path / "j").exists()
    assert [r["name"] for r in holdfast.journal.query("lock_fail_open")] == [str(path), str(tmp_path / "j"), str(path)]


def test_pact_the_journal_survives_a_torn_line_and_follows_no_symlink(pact, tmp_path):
    journal, victim = tmp_path / "session.jsonl", tmp_path / "victim"
    journal.write_bytes(b'{"type": "note", "torn')
    assert in_threads(4, lambda: [pact.append_event(journal, {"type": "note", "n": n}) for n in range(5)]) == ([[True] * 5] * 4, [])
    assert sorted(event["n"] for event in pact.read_events(journal)) == sorted(list(range(5)) * 4)
    with pytest.raises(ValueError):
        pact.append_event(journal, {"type": "nota"})
    (tmp_path / "link").symlink_to(victim)
    assert not pact.append_event(tmp_path / "link", {"type": "note"}) and not victim.exists()
    (tmp_path / "CLAUDE.md").symlink_to(victim)
    victim.write_text("victim")
    assert pact.update_managed_block(tmp_path / "CLAUDE.md", "x") and victim.read_text() == "victim"


def test_pact_without_a_state_directory_the_work_is_skipped_and_said(pact, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DIR", "/proc/self/none")
    assert pact.update_managed_block(tmp_path / "CLAUDE.md", "x").startswith("Managed block skipped")
    assert not pact.append_event(tmp_path / "j", {"type": "note"})


# -- cleveragents ----------------------------------------------------------------------


def test_cleveragents_commit_all_from_many_threads_commits_once_L11(tmp_path):
    module = example("cleveragents/sandbox_manager.py")
    manager, status = module.SandboxManager(), module.SandboxStatus
    targets = [tmp_path / name for name in ("a", "b")]
    for target in targets:
        target.mkdir()
        (target / "file").write_text("old")
    boxes = [manager.get_or_create_sandbox("p", target.name, target) for target in targets]
    assert manager.get_or_create_sandbox("p", "a", targets[0]) == boxes[0]
    for box in boxes:
        Path(box.path, "file").write_text("new")
    results, errors = in_threads(6, lambda: module.SandboxManager().commit_all("p", wait=BOUND))
    assert errors == [] and [r.committed_by_other for r in results].count(False) == 1 and len(results) == 6
    assert [(t / "file").read_text() for t in targets] == ["new", "new"]
    assert manager.status("p") is status.COMMITTED
    with pytest.raises(holdfast.errors.PlanState):
        manager.get_or_create_sandbox("p", "c", tmp_path / "a")
    manager.cleanup_all("p")
    assert manager.status("p") is status.CLEANED_UP
    manager.cleanup_all("p")


def test_cleveragents_a_conflict_changes_nothing_and_cleanup_drops_no_work(tmp_path):
    module = example("cleveragents/sandbox_manager.py")
    manager, target = module.SandboxManager(), tmp_path / "t"
    target.mkdir()
    (target / "file").write_text("old")
    box = manager.get_or_create_sandbox("p", "t", target, "git_worktree")
    assert manager.status("p") in (module.SandboxStatus.CREATED, module.SandboxStatus.ACTIVE)
    Path(box.path, "file").write_text("new")
    Path(box.path, "more").write_text("new")
    (target / "file").write_text("meanwhile")
    with pytest.raises(holdfast.Conflict) as conflict:
        manager.commit_all("p")
    assert conflict.value.paths == ["file"] and sorted(os.listdir(target)) == ["file"] and (target / "file").read_text() == "meanwhile"
    with pytest.raises(holdfast.Dirty):
        manager.cleanup_all("p")
    # Another manager, as after a crash, finds the same and rolls it back.
    other = module.SandboxManager()
    assert [b.path for b in other.list_sandboxes("p")] == [box.path]
    other.rollback_all("p")
    assert other.status("p") is module.SandboxStatus.ROLLED_BACK and (target / "file").read_text() == "meanwhile"
    with pytest.raises(ValueError):
        manager.get_or_create_sandbox("q", "t", target, "none")


# -- sharedinbox -----------------------------------------------------------------------


class Loop:
    """A repository, and ticks over it as cron would start them."""

    def __init__(self, path):
        self.path, self.repo, self.slot = path, path / "app", path / "slot.json"
        self.env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", REPO=str(self.repo), STATE_FILE=str(self.slot),
                        GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", NEXT_ISSUE_CMD="cat ../next 2>/dev/null || true",
                        CLOSE_CMD='echo "$ISSUE" >>../closed; rm ../next', NOTIFY_CMD="cat >>../notices", AGENT_CMD="true")
        for name in ("AUTHOR", "COMMITTER"):
            self.env.update({f"GIT_{name}_NAME": "A User", f"GIT_{name}_EMAIL": "user@example.org"})
        self.repo.mkdir()
        subprocess.run("git init -q -b main . && git commit -q --allow-empty -m first", shell=True, cwd=self.repo, env=self.env, check=True)
        (path / "next").write_text("5\n")

    def __call__(self, verb="tick", code=0):
        done = subprocess.run([sys.executable, os.path.join(TOP, "examples", "sharedinbox", "agent_loop.py"), verb], env=self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND)
        assert done.returncode == code, done.stdout
        return done.stdout

    def text(self, name):
        path = self.path / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path)
    yield made
    try:
        holdfast.Session("sharedinbox-agent").stop(0)
    except holdfast.NoSession:
        pass


WORK = 'git checkout -q -b "$BRANCH" && git commit -q --allow-empty -m "fix $ISSUE" && git checkout -q main'


def test_sharedinbox_an_issue_is_closed_when_its_branch_is_part_of_main_L14(loop):
    loop.env["AGENT_CMD"] = WORK
    assert "Started agent" in loop()
    assert holdfast.Session("sharedinbox-agent").wait(BOUND).succeeded
    assert "merged and closed" in loop()
    assert loop.text("closed") == "5\n" and loop.text("notices") == ""
    assert "Nothing to do" in loop()
    loop("health")
    # A merge that only claims to be one closes nothing.
    (loop.path / "next").write_text("6\n")
    loop.env["MERGE_CMD"] = "true"
    loop()
    holdfast.Session("sharedinbox-agent").wait(BOUND)
    assert "not part of the main branch" in loop(code=1)
    assert loop.text("closed") == "5\n"


def test_sharedinbox_one_agent_and_its_whole_tree_ends_at_the_limit_L7(loop):
    loop.env["AGENT_CMD"] = "setsid sh -c 'echo $$ >../daemon; exec sleep 600' & echo x >>../agents; exec sleep 600"
    assert in_threads(3, loop)[1] == []
    wait_until(lambda: loop.text("daemon").endswith("\n"))
    assert "is at work on issue 5" in loop() and loop.text("agents") == "x\n"
    session = holdfast.Session("sharedinbox-agent")
    assert 3000 < session.info().deadline_left <= 3600
    daemon = holdfast.ProcessId.of(int(loop.text("daemon")))
    session.stop(0)  # as the deadline does it
    assert not daemon.alive()
    assert "Issue 5" in loop(code=1)


def test_sharedinbox_a_damaged_slot_is_put_away_and_a_killed_tick_is_done_again(loop):
    for bad in ("[1, 2]", "{", '{"issue": "5", "pid": "4711", "started_at": 7, "notices": [], "failures": "x"}'):
        loop.slot.write_text(bad)
        loop()
        holdfast.Session("sharedinbox-agent").wait(BOUND)
        loop(code=1)
    assert loop.slot.with_name("slot.json.bad").exists()
    # As if the tick had been killed between the slot and the agent.
    slot = json.loads(loop.slot.read_text())
    loop.slot.write_text(json.dumps({**slot, "issue": 7}))
    assert "for issue 7" in loop()


def test_sharedinbox_the_same_notice_is_not_sent_each_time(loop):
    loop.env["AGENT_CMD"] = "exit 3"
    for _ in range(4):
        loop()
        holdfast.Session("sharedinbox-agent").wait(BOUND)
        loop(code=1)
    assert [line.split(" (")[0] for line in loop.text("notices").splitlines()] == ["Issue 5: the agent did not succeed: exit 3"] * 2
    assert "4 failures in a row" in loop("health", 1)
    loop.env["HOLDFAST_DIR"] = "/proc/self/none"
    assert "agent_loop:" in loop(code=4)
