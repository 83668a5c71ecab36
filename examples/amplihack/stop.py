#!/usr/bin/env python3
"""amplihack's stop hook: {"decision": "block", "reason": …} while .lock_active belongs to the session that stops, else approve. Exit 0 always."""
import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, Optional

import lock_tool

DEFAULT_CONTINUATION_PROMPT = "The objective is not reached yet. Look for open steps and go on with them, in parallel where that is possible."
APPROVE: Dict[str, Any] = {"decision": "approve"}


def age(path: Path, locked_at: Optional[str]) -> float:
    """Seconds since the lock was set. A time in the future, or none, is replaced by the file's own; one that is still ahead counts as over."""
    now, written = time.time(), path.stat().st_mtime
    try:
        stamp = datetime.fromisoformat(locked_at or "").timestamp()
    except (ValueError, OverflowError):
        stamp = written
    stamp = stamp if stamp <= now else written
    return now - stamp if stamp <= now + 60 else float("inf")


class StopHook:
    def __init__(self, raw: bytes = b"{}") -> None:
        self._raw = raw
        self.lock_flag = lock_tool.LOCK_FILE
        self.continuation_prompt_file = lock_tool.MESSAGE_FILE

    def read_continuation_prompt(self) -> str:
        try:
            text = self.continuation_prompt_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            text = ""
        return text if 1 <= len(text) <= 1000 else DEFAULT_CONTINUATION_PROMPT

    def process(self, input_data: Dict[str, Any]) -> Dict[str, Any]:
        if os.environ.get("AMPLIHACK_SHUTDOWN_IN_PROGRESS") == "1":
            return APPROVE
        try:
            found = lock_tool.read_lock(self.lock_flag)
        except OSError:
            return APPROVE  # there is none, or it cannot be read
        given = input_data.get("session_id")
        mine = lock_tool.sanitize(given if isinstance(given, str) and given else lock_tool.session_of_environment())
        owner = found.get("session_id", mine)
        if owner != mine:
            return APPROVE  # another session's lock is none of our business
        if age(self.lock_flag, found.get("locked_at")) >= lock_tool.number("AMPLIHACK_LOCK_TTL_SECONDS", 86400):
            lock_tool.clear_lock(owner)
            return APPROVE
        status = self._status(owner)
        if status is None:  # the lock file names no session, or another tool wrote it
            lock_tool.keep("on", "--session", owner, "--max", str(lock_tool.number("AMPLIHACK_MAX_LOCK_ITERATIONS", 50)))
        answer = lock_tool.holdfast("-q", "hook", "stop", "--session", owner, stdin=self._raw)
        if answer.stdout.strip():
            return {"decision": "block", "reason": self.read_continuation_prompt()}
        status = self._status(owner)
        if status is None or status.get("blocks_total", 0) >= status.get("max", 0):
            lock_tool.clear_lock(owner)
        return APPROVE

    @staticmethod
    def _status(owner: str) -> Optional[Dict[str, Any]]:
        done = lock_tool.holdfast("--json", "keep", "status", "--session", owner)
        if done.returncode not in (0, 1):
            raise OSError(done.stderr.decode(errors="replace").strip() or "holdfast cannot work here")
        return json.loads(done.stdout) if done.returncode == 0 else None


def main() -> int:
    answer = APPROVE
    try:
        raw = sys.stdin.buffer.read()
        data = json.loads(raw)
        answer = StopHook(raw).process(data if isinstance(data, dict) else {})
    except Exception as error:  # a hook that fails lets the client stop
        print(f"stop hook: {error}", file=sys.stderr)
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
