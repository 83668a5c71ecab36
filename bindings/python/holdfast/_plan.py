"""Plans: private views of directories, and one commit for all of them."""
from __future__ import annotations

import contextlib
import ctypes
import os
import uuid
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, Callable, Iterator, List, Optional, Sequence, Type

from . import _abi
from ._abi import PlanState, Strategy
from ._info import Change, CommitReport, PlanInfo, SandboxInfo
from ._library import check, encode, failure, lib, new
from ._lock import Lock
from ._state import Collector, Path, State, current
from ._time import Deadline, Duration, waiting
from .errors import Conflict, NoOverlay, NoPlan, NoSandbox

# A wait for a plan's lock is done in slices, so that a signal is noticed. All that wait for a commit learn its outcome
# when it ends, so their order does not matter.
_SLICE_NS = 100_000_000

_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = (c_void_p,), None


def _waiting(wait: Optional[Duration], call: Callable[[int], int]) -> int:
    deadline = Deadline(waiting(wait))
    while True:
        code = call(deadline.left(_SLICE_NS))
        if code not in (_abi.HF_E_BUSY, _abi.HF_E_TIMEOUT) or deadline.is_over():
            return code


def _strings(items: Optional[Sequence[Path]], what: str) -> Any:
    """A NULL-ended array, or None."""
    if items is None:
        return None
    return (ctypes.c_char_p * (len(items) + 1))(*(encode(item, what) for item in items), None)


def _argv(argv: Sequence[Path]) -> Any:
    if isinstance(argv, (str, bytes)) or not argv:
        raise ValueError("a command is a list of words; for a shell: ['sh', '-c', …]")
    return _strings(argv, "argv")


class Plan:
    """A named set of sandboxes that are committed together: all changes reach their targets, or none does.

        with Plan("fix-160", "/home/user/app") as plan:
            plan.run(["make", "fix"])       # sees the sandbox at the target's own path (overlay), or is in its copy
        # here it is committed; after an exception it was rolled back

    The plan is on disk: it survives this process, and any process may go on with it. All functions may be called from many
    threads and processes; of many commits exactly one is done, and the others learn its outcome (`by_other`).

    keep   the plan is left when the block ends; else it is removed after a commit or a roll back
    """

    def __init__(self, name: Optional[str] = None, *targets: Path, strategy: Strategy = Strategy.AUTO, session: Optional[str] = None, keep: bool = False,
                 state: Optional[State] = None) -> None:
        self._state = current(state)
        self.name = name or f"py-{uuid.uuid4().hex[:12]}"
        self._raw = encode(self.name)
        self._targets = targets
        self._strategy = strategy
        self._session = session
        self._keep = keep

    @classmethod
    def open(cls, name: str, *, state: Optional[State] = None) -> Plan:
        """A plan that exists. Raises NoPlan."""
        plan = cls(name, state=state)
        plan.info()
        return plan

    # -- making ----------------------------------------------------------------------

    def create(self) -> Plan:
        """Makes the plan, empty. Raises PlanState when there is one of that name."""
        opts, err = new(_abi.hf_plan_new_opts, session=None if self._session is None else encode(self._session)), _abi.hf_err()
        check(lib.hf_plan_new(self._state.plans(), self._raw, byref(opts), byref(err)), err)
        return self

    def add(self, sandbox: str, directory: Path, strategy: Strategy = Strategy.AUTO, *, git_outside: bool = False,
            wait: Optional[Duration] = None) -> SandboxInfo:
        """Adds a sandbox over a directory. Raises Target (with the way out), NoOverlay, errors.PlanState."""
        added, err = _abi.hf_plan_added(), _abi.hf_err()

        def call(ns: int) -> int:
            opts = new(_abi.hf_plan_add_opts, strategy=strategy, flags=_abi.HF_PLAN_ADD_GIT_OUTSIDE if git_outside else 0, wait_ns=ns)
            return int(lib.hf_plan_add(self._state.plans(), self._raw, encode(sandbox), encode(directory, "directory"), byref(opts), byref(added),
                                       byref(err)))

        check(_waiting(wait, call), err)
        return self.sandbox(sandbox)

    # -- looking ---------------------------------------------------------------------

    def info(self) -> PlanInfo:
        found, err = Collector(_abi.hf_plan_info, PlanInfo.read), _abi.hf_err()
        found.check(lib.hf_plan_look(self._state.plans(), self._raw, found.callback, found.arg, byref(err)), err)
        return found.found[0]  # type: ignore[no-any-return]

    @property
    def state(self) -> PlanState:
        return self.info().state

    def sandbox(self, name: str) -> SandboxInfo:
        for box in self.info().sandboxes:
            if box.name == name:
                return box
        raise NoSandbox(f"{self.name}: the plan has no such sandbox: {name}")

    def path(self, sandbox: str) -> str:
        """Where the sandbox is worked in: the copy (clone, copy), or the target's own path, which shows it inside `run` only (overlay)."""
        out, err = c_void_p(), _abi.hf_err()
        check(lib.hf_plan_path(self._state.plans(), self._raw, encode(sandbox), byref(out), byref(err)), err)
        try:
            return os.fsdecode(ctypes.string_at(out.value or 0))
        finally:
            _free(out)

    def diff(self, *, ignore: Optional[Sequence[str]] = None, wait: Optional[Duration] = None) -> List[Change]:
        """What the sandboxes changed."""
        err = _abi.hf_err()
        found = Collector(_abi.hf_change, Change.read, ctypes.c_int)

        def call(ns: int) -> int:
            found.found.clear()
            opts = new(_abi.hf_plan_diff_opts, ignore=_strings(ignore, "ignore"), wait_ns=ns)
            return int(lib.hf_plan_diff(self._state.plans(), self._raw, byref(opts), found.callback, found.arg, byref(err)))

        found.check(_waiting(wait, call), err)
        return found.found

    # -- working -----------------------------------------------------------------------

    def run(self, argv: Sequence[Path], *, rename: bool = True, wait: Optional[Duration] = None) -> int:
        """Runs a command inside all sandboxes and returns its exit status: 128 + N for signal N; 126 or 127 when it could not be executed."""
        entered, err, words = _abi.hf_plan_entered(), _abi.hf_err(), _argv(argv)

        def call(ns: int) -> int:
            opts = new(_abi.hf_plan_enter_opts, argv=words, wait_ns=ns, flags=0 if rename else _abi.HF_PLAN_ENTER_NO_RENAME)
            return int(lib.hf_plan_enter(self._state.plans(), self._raw, byref(opts), byref(entered), byref(err)))

        check(_waiting(wait, call), err)
        return int(entered.exit_status)

    # -- the end -------------------------------------------------------------------------

    def commit(self, *, force: Optional[Sequence[str]] = None, depends: Optional[Sequence[str]] = None, ignore: Optional[Sequence[str]] = None,
               strict: bool = False, torn: bool = False, merge: bool = False, fences: Sequence[Lock] = (), wait: Optional[Duration] = None) -> CommitReport:
        """Applies all changes of all sandboxes, durably, or none. Raises Conflict (`.paths`), InUse, Stale (a fence was lost), …

        merge merges text files that both sides changed. fences are locks that must still be held when the targets are changed. Safe from many threads and processes: one commits.
        """
        return self._finish(lib.hf_plan_commit, force, depends, ignore, self._flags(strict, torn, merge), fences, wait)

    def undo(self, *, force: Optional[Sequence[str]] = None, wait: Optional[Duration] = None) -> CommitReport:
        """Takes a commit back while its old versions are kept; conflicts as for a commit."""
        return self._finish(lib.hf_plan_undo, force, None, None, 0, (), wait)

    @staticmethod
    def _flags(strict: bool, torn: bool, merge: bool) -> int:
        return ((_abi.HF_PLAN_COMMIT_STRICT if strict else 0) | (_abi.HF_PLAN_COMMIT_TORN if torn else 0)
                | (_abi.HF_PLAN_COMMIT_MERGE if merge else 0))

    def _finish(self, function: Any, force: Optional[Sequence[str]], depends: Optional[Sequence[str]], ignore: Optional[Sequence[str]], flags: int,
                fences: Sequence[Lock], wait: Optional[Duration]) -> CommitReport:
        err, report = _abi.hf_err(), _abi.hf_plan_report()
        opts = new(_abi.hf_plan_commit_opts, force=_strings(force, "force"), depends=_strings(depends, "depends"), ignore=_strings(ignore, "ignore"),
                   flags=flags)
        opts.fences = (_abi.hf_plan_fence * max(len(fences), 1))(*(_abi.hf_plan_fence(lock._raw, lock.token) for lock in fences))
        opts.n_fences = len(fences)

        def call(ns: int) -> int:
            lib.hf_plan_report_done(byref(report))
            ctypes.memset(byref(report), 0, ctypes.sizeof(report))
            opts.wait_ns = ns
            return int(function(self._state.plans(), self._raw, byref(opts), byref(report), byref(err)))

        try:
            code = _waiting(wait, call)
            found = CommitReport.read(report)
        finally:
            lib.hf_plan_report_done(byref(report))
        if code < 0:
            error = failure(code, err)
            if isinstance(error, Conflict):
                error.conflicts = found.conflicts
            raise error
        return found

    def rollback(self, wait: Optional[Duration] = None) -> None:
        """Drops the changes. The targets are not touched."""
        err = _abi.hf_err()
        check(_waiting(wait, lambda ns: int(lib.hf_plan_rollback(self._state.plans(), self._raw, ns, byref(err)))), err)

    def recover(self, wait: Optional[Duration] = None) -> bool:
        """Finishes or undoes what a process that died has left. True: there was something to do."""
        err = _abi.hf_err()
        return check(_waiting(wait, lambda ns: int(lib.hf_plan_recover(self._state.plans(), self._raw, ns, byref(err)))), err) == 1

    def remove(self, *, discard: bool = False) -> None:
        """Removes the plan; the targets are not touched. Raises Dirty when it holds work that was not committed, unless `discard`."""
        err = _abi.hf_err()
        check(lib.hf_plan_rm(self._state.plans(), self._raw, _abi.HF_PLAN_RM_DISCARD if discard else 0, byref(err)), err)

    def __enter__(self) -> Plan:
        self.create()
        try:
            for number, target in enumerate(self._targets):
                self.add(os.path.basename(os.path.realpath(os.fsdecode(os.fspath(target))))[:40] or str(number) if len(self._targets) == 1 else str(number),
                         target, self._strategy)
        except BaseException:
            self._discard()
            raise
        return self

    def _discard(self) -> None:
        with contextlib.suppress(NoPlan):
            self.remove(discard=True)

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if error is not None:
            # The targets are as they were, whatever becomes of this.
            with contextlib.suppress(Exception):
                self.rollback()
                if not self._keep:
                    self._discard()
            return
        self.commit()
        if not self._keep:
            self._discard()

    def __repr__(self) -> str:
        return f"Plan({self.name!r})"


def plans(*, state: Optional[State] = None) -> List[PlanInfo]:
    """Every plan there is, in the order of their names."""
    found, err = Collector(_abi.hf_plan_info, PlanInfo.read), _abi.hf_err()
    found.check(lib.hf_plan_list(current(state).plans(), found.callback, found.arg, byref(err)), err)
    return found.found


class Transaction:
    """What `transaction` gives: `path` to work in, `run` for commands, `plan` for the rest."""

    committed = False  #: the changes are in the directory; also to be asked after Ctrl-C at the end of the block

    def __init__(self, plan: Plan, box: SandboxInfo) -> None:
        self.plan = plan
        self._box = box

    @property
    def strategy(self) -> Strategy:
        return self._box.strategy

    @property
    def path(self) -> str:
        """The private copy. There is none with an overlay, which only the commands of `run` see: ValueError."""
        if not self._box.is_copy:
            raise ValueError("an overlay is seen by the commands of run() only; this process would write to the target itself")
        return self._box.path

    def run(self, argv: Sequence[Path], **options: Any) -> int:
        return self.plan.run(argv, **options)

    def diff(self) -> List[Change]:
        return self.plan.diff()


@contextlib.contextmanager
def transaction(directory: Path, *, name: Optional[str] = None, strategy: Optional[Strategy] = None, fences: Sequence[Lock] = (),
                wait: Optional[Duration] = None, state: Optional[State] = None) -> Iterator[Transaction]:
    """All changes of a block reach `directory`, or none: committed at its end, rolled back after an exception.

        with holdfast.transaction("/home/user/app") as t:
            Path(t.path, "file").write_text("new")

    `t.path` is a private copy: a clone where the file system can make one, else a copy. strategy=Strategy.OVERLAY makes it in an
    instant, for work that is done by `t.run([...])` alone. Raises Conflict when the directory changed meanwhile; nothing is changed then.
    Ctrl-C during the commit is raised when that is done or was not begun; `t.committed` says which.
    """
    plan = Plan(name, state=state).create()
    try:
        if strategy is None:
            try:
                box = plan.add("0", directory, Strategy.CLONE, wait=wait)
            except NoOverlay:
                box = plan.add("0", directory, Strategy.COPY, wait=wait)
        else:
            box = plan.add("0", directory, strategy, wait=wait)
        made = Transaction(plan, box)
        yield made
        try:
            plan.commit(fences=fences, wait=wait)
            made.committed = True
        except BaseException:
            # What the disk says counts, whatever was raised meanwhile.
            with contextlib.suppress(Exception):
                made.committed = plan.state is PlanState.COMMITTED
            raise
    finally:
        # Committed, or not wanted: the targets are not touched by this.
        plan._discard()
