"""PACT's work on shared files, through Holdfast: the lock of a file, the managed block of CLAUDE.md, the session journal.

Each function fails open, as PACT's do: if the lock is not free in time, the operation is skipped, said, and leaves a lock_fail_open
event with the holder. The lock is flock(2) on PACT's own sidecar ".<leaf>.lock", so both keep each other out.
"""
import contextlib
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import holdfast

LOCK_TIMEOUT_SECONDS = 5.0
MANAGED_START_MARKER = "<!-- PACT_MANAGED_START: Managed by pact-plugin - do not edit this block -->"
MANAGED_END_MARKER = "<!-- PACT_MANAGED_END -->"
_START = "<!-- PACT_MANAGED_START"
EVENT_TYPES = frozenset({"session_start", "session_end", "phase_transition", "agent_dispatch", "agent_handoff", "checkpoint", "note"})


@contextlib.contextmanager
def file_lock(target: Path) -> Iterator[bool]:
    """The lock of `target` for a block of your own. False: it was not free within the limit; skip the work."""
    with holdfast.file_lock(target, wait=LOCK_TIMEOUT_SECONDS, on_timeout="proceed") as held:
        yield held is not None


def _open(what: str, path: Path, call: Callable[[], Optional[str]]) -> Optional[str]:
    """What `call` says, or why it was skipped. Never raises: a hook that fails must not end its client."""
    try:
        return call()
    except holdfast.errors.Markers as error:
        return f"{what} refused: {error}"
    except (holdfast.HoldfastError, OSError, ValueError) as error:
        if isinstance(error, (holdfast.Busy, holdfast.Timeout)):
            with contextlib.suppress(holdfast.HoldfastError, OSError):
                holder = f"pid {error.holder.pid}" if error.holder else "not known"
                holdfast.journal.append("lock_fail_open", str(path), waited_ms=int(LOCK_TIMEOUT_SECONDS * 1000), cause="TIMEOUT", kind="file", holder=holder)
        return f"{what} skipped: {error}"


def _start_marker(path: Path) -> str:
    """The start line that the file has: its text differs between versions of PACT."""
    with contextlib.suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.strip().startswith(_START) and line.strip().endswith("-->"):
                return line.strip()
    return MANAGED_START_MARKER


def update_managed_block(path: Path, text: Optional[str], project: Optional[Path] = None) -> Optional[str]:
    """Puts `text`, literally, between the markers; None takes the block out. Returns what was done, or None when nothing changed."""

    def change() -> Optional[str]:
        changed = holdfast.edit_block(path, "PACT", text, LOCK_TIMEOUT_SECONDS, sidecar=True, start=_start_marker(path), end=MANAGED_END_MARKER,
                                      root=project or path.parent, replace_symlink=True)
        return "Managed block updated." if changed else None

    return _open("Managed block", path, change)


def append_event(journal: Path, event: Dict[str, Any]) -> bool:
    """Appends one event to the session journal. True: it is there, whole, on a line of its own."""
    if event.get("type") not in EVENT_TYPES:
        raise ValueError(f"no such event type: {event.get('type')!r}")
    line = json.dumps({"v": 1, "ts": datetime.now(timezone.utc).isoformat(), **event}).encode() + b"\n"

    def append() -> Optional[str]:
        with file_lock(journal) as held:
            if not held:
                return "Journal entry skipped: the lock is taken"
            fd = os.open(journal, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "r+b", buffering=0) as file:
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                data = (b"\n" if torn else b"") + line
                if file.write(data) != len(data):
                    raise OSError("the entry was cut")
        return None

    why = _open("Journal entry", journal, append)
    if why:
        print(why, file=sys.stderr)
    return why is None


def read_events(journal: Path) -> List[Dict[str, Any]]:
    """Every whole event; a torn line is passed over."""
    found: List[Dict[str, Any]] = []
    with contextlib.suppress(FileNotFoundError):
        for line in journal.read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    found.append(event)
    return found
