"""Transactional runs and landings: run(in_=[...], land=...), land, and what is raised when they do not succeed."""
import asyncio
import os
import subprocess
import threading

import pytest
from conftest import BOUND, wait_until

import holdfast
import holdfast.aio
from holdfast import LandState, Outcome, Strategy

QUIET = dict(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "target"
    path.mkdir()
    (path / "file").write_text("old\n")
    return path


@pytest.fixture
def repo(target, monkeypatch):
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    git(target, "git init -q -b main . && git config user.name u && git config user.email u@example.org && git add file && git commit -qm first")
    return target


def git(where, command):
    subprocess.run(command, shell=True, cwd=where, check=True, env=dict(os.environ, **QUIET))


def begin(name, words, where, **options):
    try:
        return holdfast.run(name, ["sh", "-c", words], in_=[where], cwd=where, **options)
    except holdfast.errors.NoOverlay as error:
        pytest.skip(f"no overlay here: {error}")


def test_a_run_commits_when_it_succeeds_and_only_then_L10(target):
    begin("ok", "echo new >file", target, strategy=Strategy.COPY, verify="grep -q new file").wait(BOUND, check=True)
    assert (target / "file").read_text() == "new\n"
    session = begin("bad", "echo worse >file", target, strategy=Strategy.COPY, verify="false")
    with pytest.raises(holdfast.HoldfastError, match="verify-failed"):
        session.wait(BOUND, check=True)
    assert (target / "file").read_text() == "new\n"
    assert [change.path for change in session.plan.diff()] == ["file"]
    session.plan.remove(discard=True)
    assert begin("never", "echo newer >file", target, strategy=Strategy.COPY, commit="never", keep="always").wait(BOUND).outcome is Outcome.SUCCEEDED
    assert (target / "file").read_text() == "new\n"
    for wrong in (dict(keep="sometimes"), dict(commit="perhaps"), dict(land_merge="squash")):
        with pytest.raises(ValueError):
            begin("x", "true", target, **wrong)


def test_a_conflict_of_a_run_is_raised_with_its_paths_L11(target, tmp_path):
    session = begin("c", f"echo mine >file; touch {tmp_path}/in; until [ -e {tmp_path}/go ]; do sleep 0.02; done", target, strategy=Strategy.COPY)
    wait_until((tmp_path / "in").exists)
    (target / "file").write_text("theirs\n")
    (tmp_path / "go").touch()
    with pytest.raises(holdfast.Conflict) as conflict:
        session.wait(BOUND, check=True)
    assert conflict.value.paths == ["file"] and session.outcome is Outcome.CONFLICT
    with pytest.raises(holdfast.Conflict) as conflict:
        session.plan.commit()
    assert conflict.value.paths == ["file"] and (target / "file").read_text() == "theirs\n"


def test_a_change_lands_or_is_kept_and_landed_later_L14(repo, tmp_path):
    begin("ok", "echo new >file", repo, land="HEAD", verify="grep -q new file", message="Make it new").wait(BOUND, check=True)
    assert (repo / "file").read_text() == "new\n"
    assert [(one.name, one.state, one.branch) for one in holdfast.landings()] == [("ok", LandState.LANDED, "main")]
    session = begin("c", f"echo mine >file; touch {tmp_path}/in; until [ -e {tmp_path}/go ]; do sleep 0.02; done", repo, land="HEAD")
    wait_until((tmp_path / "in").exists)
    git(repo, "echo theirs >file && git commit -qam theirs")
    (tmp_path / "go").touch()
    with pytest.raises(holdfast.Conflict) as conflict:
        session.wait(BOUND, check=True)
    assert conflict.value.paths == ["file"] and conflict.value.conflicts[0].kind == "content"
    with pytest.raises(holdfast.Conflict) as conflict:
        holdfast.land("c", wait=BOUND)
    assert conflict.value.paths == ["file"]
    git(repo, "git checkout -q HEAD~1 -- file && git commit -qm back")
    refused = holdfast.land("c", verify="false", wait=BOUND)
    assert not refused.landed and refused.state is LandState.REJECTED and (repo / "file").read_text() == "new\n"
    landed = holdfast.land("c", verify="grep -q mine file", wait=BOUND)
    assert landed.landed and landed.rebased and (repo / "file").read_text() == "mine\n"
    with pytest.raises(holdfast.errors.Finished):
        holdfast.land("c")
    with pytest.raises(holdfast.errors.NoLanding):
        holdfast.drop_landing("none")


def test_a_landing_that_a_task_cancels_ends_with_its_verifier_and_lands_later_L14(repo, tmp_path):
    begin("c", "echo new >file", repo, land="HEAD", verify="false").wait(BOUND)
    verifier = f"echo $$ >{tmp_path}/verifying; exec sleep 600"

    async def main():
        task = asyncio.ensure_future(holdfast.aio.land("c", verify=verifier, wait=BOUND))
        await asyncio.get_running_loop().run_in_executor(None, wait_until, lambda: (tmp_path / "verifying").exists() and (tmp_path / "verifying").read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not os.path.exists(f"/proc/{(tmp_path / 'verifying').read_text().strip()}")
        assert (repo / "file").read_text() == "old\n" and holdfast.landings()[0].state is not LandState.LANDED
        refused = await holdfast.aio.land("c", verify="false", wait=BOUND)
        assert not refused.landed
        assert (await holdfast.aio.land("c", verify="grep -q new file", wait=BOUND)).landed
        with pytest.raises(holdfast.errors.Finished):
            await holdfast.aio.land("c")

    asyncio.run(main())
    assert (repo / "file").read_text() == "new\n"
    wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name == "holdfast-aio"])


def test_handles_of_the_parent_are_refused_after_a_fork_L13(target):
    state = holdfast.State()
    plan, file = holdfast.Plan("p", state=state).create(), holdfast.SharedFile(target / "file", state=state)
    session = holdfast.run("s", ["sleep", "600"], state=state)
    calls = (plan.info, plan.commit, lambda: plan.add("t", target), lambda: plan.run(["true"]), session.info, session.stop, lambda: session.wait(0), session.logs,
             file.read, lambda: file.token, lambda: holdfast.landings(state=state), lambda: holdfast.land("x", state=state),
             lambda: holdfast.journal.append("note", text="x", state=state), lambda: holdfast.lock("x", state=state))
    pid = os.fork()
    if pid == 0:
        for number, call in enumerate(calls):
            try:
                call()
                os._exit(10 + number)
            except holdfast.Forked:
                pass
            except BaseException:
                os._exit(100 + number)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert file.read() == b"old\n" and session.running and plan.info().name == "p"
    file.close()
    session.stop(0)


def test_a_lease_is_prolonged_by_hand():
    lock = holdfast.Lock("x", ttl=60, renew=False).acquire()
    lock.renew(3000)
    assert 2000 < holdfast.look("x").holders[0].lease_left <= 3000
    lock.release()


def test_a_run_is_refused_while_the_last_one_left_work_and_discard_drops_it(target):
    assert begin("x", "echo new >file; exit 3", target).wait(BOUND).outcome == Outcome.FAILED
    with pytest.raises(holdfast.Dirty, match="the last run left 1 file changed, not committed"):
        begin("x", "true", target)
    assert begin("x", "echo newer >file", target, discard=True).wait(BOUND).succeeded
    assert (target / "file").read_text() == "newer\n"
