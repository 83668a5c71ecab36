"""The SandboxManager of cleveragents over Holdfast's plans: many sandboxes, one commit, from any thread or process."""
import contextlib
import enum
import os
from dataclasses import dataclass
from typing import List, Optional, Union

import holdfast
from holdfast import PlanState, Strategy

Path = Union[str, "os.PathLike[str]"]


class SandboxStatus(str, enum.Enum):
    CREATED = "created"
    ACTIVE = "active"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    ERRORED = "errored"
    CLEANED_UP = "cleaned_up"


_STATUS = {
    PlanState.CREATED: SandboxStatus.CREATED, PlanState.ACTIVE: SandboxStatus.ACTIVE, PlanState.PREPARED: SandboxStatus.ACTIVE,
    PlanState.COMMITTED: SandboxStatus.COMMITTED, PlanState.ROLLED_BACK: SandboxStatus.ROLLED_BACK, PlanState.ERRORED: SandboxStatus.ERRORED,
    PlanState.CLEANED: SandboxStatus.CLEANED_UP,
}

_STRATEGY = {"git_worktree": Strategy.COPY, "copy_on_write": Strategy.CLONE, "overlay": Strategy.OVERLAY, "transaction": Strategy.COPY}


@dataclass(frozen=True)
class Sandbox:
    plan_id: str
    resource_id: str
    original_path: str
    path: str  #: where it is worked in; an overlay is seen by `run` only, at the original path
    strategy: str
    status: SandboxStatus


@dataclass(frozen=True)
class CommitResult:
    plan_id: str
    success: bool
    committed_by_other: bool  #: another thread or process has done it; its outcome is this one's
    added: int
    changed: int
    deleted: int


class SandboxManager:
    """Sandboxes by plan and resource. The registry is on disk: another process, or this one after a crash, finds the same."""

    def __init__(self, state: Optional[holdfast.State] = None) -> None:
        self._state = state

    def _plan(self, plan_id: str) -> holdfast.Plan:
        return holdfast.Plan(plan_id, state=self._state)

    def get_or_create_sandbox(self, plan_id: str, resource_id: str, path: Path, strategy: str = "transaction") -> Sandbox:
        """The sandbox of a resource, made when there is none. Strategy "none" is refused: what it writes could not be taken back."""
        if strategy not in _STRATEGY:
            raise ValueError(f"{strategy}: not a strategy that can be rolled back")
        plan = self._plan(plan_id)
        with contextlib.suppress(holdfast.errors.PlanState):  # another caller has made it
            plan.create()
        for attempt in (0, 1):
            found = self._find(plan_id, resource_id)
            if found is not None:
                return found
            try:
                try:
                    plan.add(resource_id, path, _STRATEGY[strategy])
                except holdfast.errors.NoOverlay:
                    plan.add(resource_id, path, Strategy.COPY)
            except holdfast.errors.PlanState:
                if attempt or self._find(plan_id, resource_id) is None:
                    raise
        found = self._find(plan_id, resource_id)
        assert found is not None
        return found

    def _find(self, plan_id: str, resource_id: str) -> Optional[Sandbox]:
        return next((box for box in self.list_sandboxes(plan_id) if box.resource_id == resource_id), None)

    def list_sandboxes(self, plan_id: str) -> List[Sandbox]:
        try:
            info = self._plan(plan_id).info()
        except holdfast.errors.NoPlan:
            return []
        return [Sandbox(plan_id, box.name, box.target, box.path, box.strategy.name.lower(), _STATUS[info.state]) for box in info.sandboxes]

    def status(self, plan_id: str) -> SandboxStatus:
        try:
            return _STATUS[self._plan(plan_id).state]
        except holdfast.errors.NoPlan:
            return SandboxStatus.CLEANED_UP

    def run(self, plan_id: str, argv: List[str]) -> int:
        """A command inside all sandboxes of the plan; its exit status."""
        return self._plan(plan_id).run(argv)

    def commit_all(self, plan_id: str, wait: float = 60) -> CommitResult:
        """All changes of all sandboxes reach their targets, once, or none does. Raises holdfast.Conflict, with `.paths`: nothing has changed then."""
        report = self._plan(plan_id).commit(wait=wait)
        if self.status(plan_id) is not SandboxStatus.COMMITTED:  # success is what is on disk
            raise holdfast.HoldfastError(f"{plan_id}: the commit was taken back meanwhile")
        return CommitResult(plan_id, True, report.by_other, report.added, report.changed, report.deleted)

    def rollback_all(self, plan_id: str) -> None:
        self._plan(plan_id).rollback()

    def cleanup_all(self, plan_id: str, discard: bool = False) -> None:
        """Removes the sandboxes. Raises holdfast.Dirty when they hold work that was not committed, unless `discard`."""
        with contextlib.suppress(holdfast.errors.NoPlan):
            self._plan(plan_id).remove(discard=discard)
