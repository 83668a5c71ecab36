"""What the library tells about locks, sessions and plans, as plain Python objects."""
from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any, List, Optional, Tuple

from ._abi import ChangeKind, Kind, LandState, Liveness, Mode, Outcome, PlanState, SessionState, Strategy
from ._library import decode
from ._time import moment, seconds
from .process import ProcessId


def _text(raw: Optional[bytes]) -> str:
    return decode(raw) or ""


def _identity(raw: Any) -> Optional[ProcessId]:
    return ProcessId(raw) if raw.pid > 0 else None


@dataclass(frozen=True)
class Holder:
    """One holder of a lock, as others see it."""

    id: ProcessId
    thread: int  #: 0: the process as a whole
    token: int
    since: Optional[datetime]
    lease_left: Optional[float]  #: seconds; None: no lease; 0: expired
    mode: Mode
    count: int
    liveness: Liveness
    evidence: str

    @property
    def pid(self) -> int:
        return self.id.pid

    @classmethod
    def read(cls, raw: Any) -> Optional[Holder]:
        if raw.id.pid <= 0:
            return None
        return cls(ProcessId(raw.id), raw.thread, raw.token, moment(raw.since), seconds(raw.lease_left_ns), Mode(raw.mode), raw.count,
                   Liveness(raw.liveness or Liveness.UNKNOWN), os.fsdecode(raw.evidence))


@dataclass(frozen=True)
class Waiter:
    """A process queued for a lock."""

    id: ProcessId
    thread: int
    mode: Mode
    waited: float

    @property
    def pid(self) -> int:
        return self.id.pid


@dataclass(frozen=True)
class LockInfo:
    """A lock with its holders, and its waiters in their order."""

    kind: Kind
    name: str
    token: int  #: the last one given
    slots: int
    holders: Tuple[Holder, ...]
    waiters: Tuple[Waiter, ...]

    @classmethod
    def read(cls, raw: Any) -> LockInfo:
        holders = (Holder.read(raw.holders[i]) for i in range(raw.n_holders))
        waiters = (raw.waiters[i] for i in range(raw.n_waiters))
        return cls(Kind(raw.kind), os.fsdecode(raw.name), raw.token, raw.slots, tuple(h for h in holders if h is not None),
                   tuple(Waiter(ProcessId(w.id), w.thread, Mode(w.mode), w.waited_ns / 1e9) for w in waiters))


@dataclass(frozen=True)
class SessionInfo:
    """A session as others see it. What is not known is None."""

    name: str
    state: SessionState
    outcome: Outcome
    exit_status: int
    cause: str
    argv: Optional[List[str]]
    cwd: Optional[str]
    group: Optional[str]
    command: str
    token: int
    attempt: int
    failures: int
    loop: bool
    pid: Optional[int]
    supervisor: Optional[ProcessId]
    keeper: Optional[ProcessId]
    leader: Optional[ProcessId]
    started: Optional[datetime]
    ended: Optional[datetime]
    ran: Optional[float]
    deadline_left: Optional[float]
    output_age: Optional[float]
    processes: Optional[int]
    memory_bytes: Optional[int]
    cpu: Optional[float]
    evidence: str

    @property
    def has_ended(self) -> bool:
        return self.outcome is not Outcome.NONE or self.state in (SessionState.DEAD_UNREAPED, SessionState.DONE, SessionState.FAILED)

    @property
    def succeeded(self) -> bool:
        """Exit 0 of the command, and of the verifier where there is one; nothing else."""
        return self.outcome is Outcome.SUCCEEDED

    @classmethod
    def read(cls, raw: Any) -> SessionInfo:
        argv: Optional[List[str]] = None
        if raw.argv:
            argv = []
            while raw.argv[len(argv)] is not None:
                argv.append(os.fsdecode(raw.argv[len(argv)]))
        return cls(os.fsdecode(raw.name), SessionState(raw.state), Outcome(raw.outcome), raw.exit_status, _text(raw.cause), argv, decode(raw.cwd),
                   decode(raw.group), _text(raw.command), raw.token, raw.attempt, raw.failures, bool(raw.loop), raw.pid or None,
                   _identity(raw.supervisor), _identity(raw.keeper), _identity(raw.leader), moment(raw.started), moment(raw.ended), seconds(raw.ran_ns),
                   seconds(raw.deadline_left_ns), seconds(raw.output_age_ns), raw.processes if raw.processes >= 0 else None,
                   raw.memory_bytes if raw.memory_bytes >= 0 else None, seconds(raw.cpu_ns), os.fsdecode(raw.evidence))


@dataclass(frozen=True)
class SandboxInfo:
    """A private view of one target."""

    name: str
    target: str
    path: str  #: where it is worked in: the target's own path inside Plan.run (overlay), or that of the copy
    strategy: Strategy
    why: str
    dirty: Optional[bool]
    in_use: bool
    files: Optional[int]  #: changed files, links and deletions; None: not counted, see Plan.diff
    bytes: Optional[int]  #: of those files

    @property
    def is_copy(self) -> bool:
        """It can be worked in from this process, at `path`."""
        return self.strategy in (Strategy.CLONE, Strategy.COPY)


@dataclass(frozen=True)
class PlanInfo:
    """A plan with its sandboxes in the order of adding."""

    name: str
    state: PlanState
    reason: str
    session: str
    created: Optional[datetime]
    changed: Optional[datetime]
    token: int
    dirty: Optional[bool]
    in_use: bool
    sandboxes: Tuple[SandboxInfo, ...]

    @classmethod
    def read(cls, raw: Any) -> PlanInfo:
        boxes = (raw.sandboxes[i] for i in range(raw.n_sandboxes))
        return cls(os.fsdecode(raw.name), PlanState(raw.state), _text(raw.reason), _text(raw.session), moment(raw.created),
                   moment(raw.changed), raw.token, None if raw.dirty < 0 else bool(raw.dirty), bool(raw.in_use),
                   tuple(SandboxInfo(os.fsdecode(b.name), os.fsdecode(b.target), os.fsdecode(b.path), Strategy(b.strategy), _text(b.why),
                                     None if b.dirty < 0 else bool(b.dirty), bool(b.in_use), b.files if b.files >= 0 else None,
                                     b.bytes if b.bytes >= 0 else None) for b in boxes))


@dataclass(frozen=True)
class Change:
    """One changed entry of one sandbox."""

    sandbox: str
    path: str  #: below the target
    kind: ChangeKind
    old_mode: int
    new_mode: int
    old_bytes: Optional[int]
    new_bytes: Optional[int]

    @classmethod
    def read(cls, raw: Any) -> Change:
        return cls(os.fsdecode(raw.sandbox), os.fsdecode(raw.path), ChangeKind(raw.kind), raw.old_mode, raw.new_mode,
                   raw.old_bytes if raw.old_bytes >= 0 else None, raw.new_bytes if raw.new_bytes >= 0 else None)


@dataclass(frozen=True)
class PathConflict:
    """Why one path of a plan cannot be committed."""

    sandbox: str
    path: str
    kind: str
    by: str  #: the plan whose commit made the change, where that is known


@dataclass(frozen=True)
class CommitReport:
    """What a commit or an undo did."""

    added: int
    changed: int
    deleted: int
    same: int
    bytes: int
    by_other: bool  #: another thread or process has committed it
    conflicts: Tuple[PathConflict, ...]

    @classmethod
    def read(cls, raw: Any) -> CommitReport:
        conflicts = (raw.conflicts[i] for i in range(raw.n_conflicts))
        return cls(raw.added, raw.changed, raw.deleted, raw.same, raw.bytes, bool(raw.by_other),
                   tuple(PathConflict(os.fsdecode(c.sandbox), os.fsdecode(c.path), _text(c.kind), _text(c.by)) for c in conflicts))


def _land_conflicts(raw: Any) -> Tuple[PathConflict, ...]:
    paths = (raw.paths[i] for i in range(raw.n_paths))
    return tuple(PathConflict("", os.fsdecode(p.path), _text(p.kind), "") for p in paths)


def _unlanded(raw: Any) -> Tuple[str, ...]:
    return tuple(os.fsdecode(raw.unlanded[i].path) for i in range(raw.n_unlanded))


@dataclass(frozen=True)
class KeptWork:
    """Work that HEAD of the sandbox did not have, such as a stash or another branch: it did not land, and a ref keeps it."""

    ref: str  #: "refs/holdfast/NAME+stash-1"; "": only the sandbox has it
    commit: str
    text: str  #: in words
    commits: int


def _kept(raw: Any) -> Tuple[KeptWork, ...]:
    rows = (raw.kept[i] for i in range(raw.n_kept))
    return tuple(KeptWork(os.fsdecode(row.ref), os.fsdecode(row.commit), os.fsdecode(row.text), row.commits) for row in rows)


@dataclass(frozen=True)
class LandReport:
    """How a landing ended: LANDED, REJECTED or CONFLICT."""

    state: LandState
    branch: str
    commit: str  #: what is the branch's now, or part of it; else the tip that is kept
    text: str  #: in words: why, what was done
    commits: int
    files: int
    rebased: bool  #: onto commits that came meanwhile
    already: bool  #: the branch had the change before
    unsigned: bool  #: commit.gpgSign is set, but no key could be used
    also_unmatched: Tuple[str, ...]  #: globs without a match
    verify_time: Optional[float]
    conflicts: Tuple[PathConflict, ...]
    unlanded: Tuple[str, ...]  #: files that the agent changed and that did not land; the plan is kept for them
    kept: Tuple[KeptWork, ...]  #: of this candidate and those of its name before it; `drop_landing` removes the refs

    @property
    def landed(self) -> bool:
        """The commit was read back as part of the branch; nothing else is success."""
        return self.state is LandState.LANDED

    @classmethod
    def read(cls, raw: Any) -> LandReport:
        return cls(LandState(raw.state), os.fsdecode(raw.branch), os.fsdecode(raw.commit), os.fsdecode(raw.text), raw.commits, raw.files,
                   bool(raw.rebased), bool(raw.is_there), bool(raw.is_unsigned),
                   tuple(os.fsdecode(raw.also_unmatched[i]) for i in range(raw.n_also_unmatched)), seconds(raw.verify_ns), _land_conflicts(raw),
                   _unlanded(raw), _kept(raw))


@dataclass(frozen=True)
class LandInfo:
    """A candidate: a change that is to become part of a branch."""

    name: str
    state: LandState
    top: str  #: of the work tree
    branch: str
    base: str
    tip: str
    commit: str
    text: str
    alive: bool  #: a process works on it
    place: int  #: in the branch's queue: 1 is next or under way; 0: not in it
    since: Optional[datetime]
    changed: Optional[datetime]
    conflicts: Tuple[PathConflict, ...]
    unlanded: Tuple[str, ...]  #: as in LandReport
    kept: Tuple[KeptWork, ...]

    @classmethod
    def read(cls, raw: Any) -> LandInfo:
        return cls(os.fsdecode(raw.name), LandState(raw.state), _text(raw.top), _text(raw.branch), _text(raw.base), _text(raw.tip), _text(raw.commit),
                   _text(raw.text), bool(raw.alive), raw.place, moment(raw.since), moment(raw.changed), _land_conflicts(raw), _unlanded(raw), _kept(raw))
