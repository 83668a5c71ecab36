"""Holdfast: runs of autonomous coding agents made transactional on one machine. A module over libholdfast.

    with holdfast.lock("build", wait=5, ttl=30) as l:            # named locks: fair, fenced, freed if the owner dies
        deploy(token=l.token)
    holdfast.edit_block("CLAUDE.md", "rules", "Run the tests.")  # shared files: old or new at every instant
    with holdfast.transaction("app") as t:                       # directories: all changes land, or none
        Path(t.path, "file").write_text("new")
    session = holdfast.run("fix-160", ["claude", "-p", "fix it"], deadline="1h", verify="make test")
    assert session.wait().succeeded                              # agents: supervised, ended as a whole, verified

Failures are exceptions of holdfast.errors (made from the library's list) or OSError. Waits release the interpreter's lock,
and Ctrl-C ends them. After os.fork() the child's handles raise Forked. Durations are seconds, or texts ("5m"); wait=None waits for ever.
asyncio: holdfast.aio. Instead of the package filelock: holdfast.filelock.
"""
from . import errors, filelock, journal
from ._abi import ChangeKind, Kind, LandState, Liveness, Mode, Outcome, PlanState, SessionState, Stop, Strategy, Style
from ._info import Change, CommitReport, Holder, KeptWork, LandInfo, LandReport, LockInfo, PathConflict, PlanInfo, SandboxInfo, SessionInfo, Waiter
from ._land import drop_landing, land, landings
from ._library import VERSION as __version__
from ._lock import Lock, break_lock, check_token, lock, lock_fd, locks, look, release_as, release_token
from ._plan import Plan, Transaction, plans, transaction
from ._session import Session, run, sessions
from ._state import State
from ._time import Duration
from .errors import (Busy, Cancelled, Changed, Conflict, Deadlock, Dirty, Forked, Gone, HoldfastError, NoSession, NotHeld, NotOwner, Recycled, Refused,
                     Stale, Timeout)
from .filelock import FileLock
from .files import SharedFile, edit_block, edit_file, file_lock
from .names import key, sanitize, unkey
from .process import ProcessId

__all__ = [
    "Busy", "Cancelled", "Change", "ChangeKind", "Changed", "CommitReport", "Conflict", "Deadlock", "Dirty", "Duration", "FileLock", "Forked", "Gone",
    "HoldfastError", "Holder", "KeptWork", "Kind", "LandInfo", "LandReport", "LandState", "Liveness", "Lock", "LockInfo", "Mode", "NoSession", "NotHeld", "NotOwner", "Outcome", "PathConflict", "Plan",
    "PlanInfo", "PlanState", "ProcessId", "Recycled", "Refused", "SandboxInfo", "Session", "SessionInfo", "SessionState", "SharedFile", "Stale",
    "State", "Stop", "Strategy", "Style", "Timeout", "Transaction", "Waiter", "__version__", "break_lock", "check_token", "edit_block", "edit_file",
    "drop_landing", "errors", "file_lock", "filelock", "journal", "key", "land", "landings", "lock", "lock_fd", "locks", "look", "plans", "release_as", "release_token", "run", "sanitize",
    "sessions", "transaction", "unkey",
]
