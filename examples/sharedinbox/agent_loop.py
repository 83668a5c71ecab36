#!/usr/bin/env python3
"""agent_loop.py tick | health: one agent at a time, from cron.

    tick    looks at the agent: still at work; ended, then merge what it made, prove it and close the issue; none, then start the next one
    health  exit 0 when a tick has run within two hours and the last three agents did not all fail

Settings, from the environment; each command is run by sh -c with $ISSUE and $BRANCH (issue-N-fix) set:
    AGENT_CMD       works on $ISSUE and commits to $BRANCH      NEXT_ISSUE_CMD  prints the number of the next issue, or nothing
    MERGE_CMD       merges $BRANCH into $MAIN                   CLOSE_CMD       closes $ISSUE
    NOTIFY_CMD      gets a notice on standard input             REPO, MAIN      the repository (.), its branch (main)
    STATE_FILE      the slot (~/.sharedinbox-agent-state.json)
"""
import contextlib
import json
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import holdfast
from holdfast import Outcome

MAX_AGENT_AGE_SECONDS = 3600
HEARTBEAT_SECONDS = 2 * 3600
COMMAND_SECONDS = 600
SESSION = "sharedinbox-agent"


def setting(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


class Slot:
    """What is to be remembered from tick to tick. Only a tick under its lock writes it, and each write is all or nothing."""

    def __init__(self) -> None:
        self.path = Path(setting("STATE_FILE", str(Path.home() / ".sharedinbox-agent-state.json")))
        self.data: Dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError):
            try:
                found = json.loads(self.path.read_text())
                if not isinstance(found, dict):
                    raise ValueError("not an object")
                self.data = found
            except ValueError:
                os.replace(self.path, f"{self.path}.bad")
                print(f"The state was not readable and is now {self.path}.bad")

    @property
    def issue(self) -> Optional[int]:
        value = self.data.get("issue")
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def number(self, key: str) -> float:
        value = self.data.get(key)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0

    def save(self, **changes: Any) -> None:
        self.data.update(changes)
        holdfast.edit_file(self.path, lambda old: json.dumps(self.data, indent=2) + "\n", create=True)


def sh(command: str, issue: int, text: str = "") -> "subprocess.CompletedProcess[str]":
    """Under the limit, as a session of its own would be: no command may hold the tick up for ever."""
    env = dict(os.environ, ISSUE=str(issue), BRANCH=branch(issue), MAIN=setting("MAIN", "main"))
    return subprocess.run(["timeout", "--kill-after=10", str(COMMAND_SECONDS), "sh", "-c", command], input=text, env=env, cwd=setting("REPO", "."),
                          stdout=subprocess.PIPE, text=True)


def branch(issue: int) -> str:
    return f"issue-{issue}-fix"


def notice(slot: Slot, text: str, issue: int = 0) -> None:
    """The same notice is sent the 1st, 3rd, 9th, 27th … time."""
    counts = slot.data.get("notices")
    counts = dict(list(counts.items())[-99:]) if isinstance(counts, dict) else {}
    count = counts.get(text, 0) + 1 if isinstance(counts.get(text, 0), int) else 1
    slot.save(notices={**counts, text: count})
    power = count
    while power % 3 == 0:
        power //= 3
    if power == 1 and setting("NOTIFY_CMD"):
        sh(setting("NOTIFY_CMD"), issue, text + (f" (for the {count}th time)" if count > 1 else "") + "\n")


def is_merged(issue: int) -> bool:
    """Read from the repository: there is such a branch, and its tip is part of the main branch. An empty answer proves nothing."""
    git = ["git", "-C", setting("REPO", "."), "-c", "core.hooksPath=/dev/null"]
    tip = subprocess.run([*git, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch(issue)}^{{commit}}"], stdout=subprocess.PIPE, text=True)
    if tip.returncode or not tip.stdout.strip():
        return False
    return subprocess.run([*git, "merge-base", "--is-ancestor", tip.stdout.strip(), f"refs/heads/{setting('MAIN', 'main')}"]).returncode == 0


def settle(slot: Slot, issue: int, info: holdfast.SessionInfo) -> int:
    """What became of the agent; the slot is freed only when that is dealt with, so that a killed tick does it again."""
    if info.outcome is Outcome.SUCCEEDED and not is_merged(issue):
        sh(setting("MERGE_CMD", "git merge --no-edit \"$BRANCH\""), issue)
    if info.outcome is Outcome.SUCCEEDED and is_merged(issue):
        if setting("CLOSE_CMD") and sh(setting("CLOSE_CMD"), issue).returncode:
            notice(slot, f"Issue {issue} is merged and could not be closed", issue)
            return 1
        print(f"Issue {issue}: merged and closed")
        slot.save(issue=None, settled=info.token, failures=0, notices={})
        return 0
    why = "its branch is not part of the main branch" if info.outcome is Outcome.SUCCEEDED else info.cause or info.outcome.name.lower()
    notice(slot, f"Issue {issue}: the agent did not succeed: {why}", issue)
    slot.save(issue=None, settled=info.token, failures=int(slot.number("failures")) + 1)
    print(f"Issue {issue}: {why}")
    return 1


def start(slot: Slot) -> int:
    answer = sh(setting("NEXT_ISSUE_CMD", "true"), 0).stdout.strip()
    if not answer:
        print("Nothing to do")
        return 0
    if not answer.isdecimal() or not 0 < int(answer) < 10**9:
        notice(slot, "NEXT_ISSUE_CMD printed something else than a number")
        return 1
    issue = int(answer)
    # Before the agent: if this tick is killed in between, the next one finds an issue without a run, and starts it.
    slot.save(issue=issue, pid=None, started_at=datetime.now(timezone.utc).isoformat(), type="issue", session_name=SESSION)
    return launch(slot, issue)


def launch(slot: Slot, issue: int) -> int:
    env = {"ISSUE": str(issue), "BRANCH": branch(issue)}
    session = holdfast.run(SESSION, ["sh", "-c", setting("AGENT_CMD", "false")], cwd=setting("REPO", "."), env=env, deadline=MAX_AGENT_AGE_SECONDS)
    info = session.info()
    slot.save(pid=info.pid)
    print(f"Started agent pid={info.pid} for issue {issue}; logs: holdfast logs {SESSION} -f")
    return 0


def tick() -> int:
    try:
        with holdfast.lock("sharedinbox-tick", wait=0):
            slot = Slot()
            result = look(slot)
            slot.save(ticked=time.time())
            return result
    except holdfast.Busy as busy:
        print(f"Another tick is at work: {busy}")
        return 0


def look(slot: Slot) -> int:
    session = holdfast.Session(SESSION)
    try:
        info: Optional[holdfast.SessionInfo] = session.info()
    except holdfast.NoSession:
        info = None
    if info is not None and not info.has_ended:
        left = "" if info.deadline_left is None else f", {info.deadline_left / 60:.0f} min left"
        print(f"Agent pid={info.pid} is at work on issue {slot.issue} ({info.state.name.lower()}{left})")
        return 0  # its own deadline ends it, and all that it started
    if slot.issue is None:
        return start(slot)
    if info is None or info.token == slot.number("settled"):
        return launch(slot, slot.issue)
    if info.outcome is Outcome.NONE:  # supervisor and keeper were killed: end what is left of the agent
        session.reap()
        info = session.info()
    return settle(slot, slot.issue, info)


def health() -> int:
    slot = Slot()
    age, failures = time.time() - slot.number("ticked"), int(slot.number("failures"))
    print(f"last tick {age:.0f} s ago, {failures} failures in a row")
    return 0 if age < HEARTBEAT_SECONDS and failures < 3 else 1


def main() -> int:
    verbs: Dict[str, Callable[[], int]] = {"tick": tick, "health": health}
    if len(sys.argv) != 2 or sys.argv[1] not in verbs:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return verbs[sys.argv[1]]()
    except (holdfast.HoldfastError, OSError) as error:
        print(f"agent_loop: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
