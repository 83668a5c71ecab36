"""Named locks with a proven owner, fencing tokens, leases and a fair queue."""
from __future__ import annotations

import ctypes
import os
import warnings
from ctypes import byref, c_void_p
from threading import get_ident
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from . import _abi, _renewal, _state
from ._abi import Kind, Mode
from ._info import Holder, LockInfo
from ._library import check, encode, failure, lib, new
from ._state import Collector, State, current
from ._time import Deadline, Duration, nanoseconds, waiting
from ._wait import Interruptible
from .errors import Forked, HoldfastError, NotHeld, Stale
from .process import ProcessId

_acquire = lib.hf_lock_acquire
_release = lib.hf_lock_release
_free = lib.hf_lock_free
_token = lib.hf_lock_token


class Hold:
    """One acquisition: the library's handle, and what renews it."""

    __slots__ = ("handle", "token", "count", "generation", "released", "lost", "ttl", "renewed", "lock", "state", "name", "on_lost")

    def __init__(self, lock: Lock) -> None:
        self.handle = c_void_p()  # filled by the library, and freed with this object alone
        self.token = 0
        self.count = 1
        self.generation = _state.generation
        self.released = False
        self.lost: Optional[Exception] = None
        self.renewed: float = 0.0
        self.ttl: float = lock._ttl_ns / 1e9
        self.state = lock._state
        self.state.users.add(id(self))
        self.lock = lock._locks
        self.name = lock._raw
        self.on_lost = lock._on_lost

    def renew(self) -> None:
        # By the token, not by the handle: that is another thread's.
        if self.generation != _state.generation:
            raise Forked("taken by the parent process")
        err = _abi.hf_err()
        check(lib.hf_lock_renew_token(self.lock, self.name, self.token, 0, byref(err)), err)

    def lose(self, error: Exception) -> None:
        self.lost = error
        if self.on_lost is not None:
            try:
                self.on_lost(error)
            except Exception as failed:  # a thread of ours: there is nobody to tell but the user
                warnings.warn(f"on_lost raised {failed!r}", RuntimeWarning, stacklevel=2)

    def __del__(self, free: Any = _free, release: Any = _release) -> None:
        # In a cycle of garbage the order of finalizers is arbitrary: the lock's and the state's may run first, or last.
        handle = getattr(self, "handle", None)
        if handle:
            if not self.released and self.generation == _state.generation:
                self.released = True
                release(handle, None)
            free(handle)
            handle.value = None
        if hasattr(self, "state"):
            self.state._leave(id(self))


class Lock:
    """A named lock. Each `acquire` has its `release`; `with` does both.

    wait       seconds to wait for it; None: for ever; 0: not at all (then Busy, else Timeout, both with `.holder`)
    ttl        a lease: how long a holder may be silent before the next waiter gets the lock. None: no lease
    renew      with a ttl: a thread renews the lease while this process runs. False: call `renew` yourself
    on_lost    called, in that thread, with the exception when the lease could not be renewed
    shared     together with other shared holders; `slots=N`: at most N at once
    reentrant  the same thread may take it again; counted
    owner      another process that the lock is taken for (it is freed when that one dies)

    The owner is this process and thread; two threads are two contenders, and an object may be shared by them: each has
    its own hold. If the process dies, the next waiter gets the lock at once. After os.fork() the child has no
    share in it: its handles raise Forked.
    """

    def __init__(self, name: str, *, wait: Optional[Duration] = None, ttl: Optional[Duration] = None, renew: bool = True,
                 on_lost: Optional[Callable[[Exception], object]] = None, shared: bool = False, slots: int = 0, reentrant: bool = False,
                 owner: Optional[ProcessId] = None, kind: Kind = Kind.NAME, state: Optional[State] = None) -> None:
        if shared and slots:
            raise ValueError("shared and slots exclude each other")
        self._raw = encode(name)
        self._given = state
        self._kind = kind
        self._wait_ns = -1 if wait is None else waiting(wait)
        self._ttl_ns: int = 0 if ttl is None else nanoseconds(ttl)
        self._renew = renew and self._ttl_ns > 0
        self._on_lost = on_lost
        self._owner = owner
        self._mode = Mode.SHARED if shared else Mode.SLOTS if slots else Mode.EXCLUSIVE
        self._slots = slots
        self._flags = _abi.HF_LOCK_REENTRANT if reentrant else 0
        self._holds: Dict[int, List[Hold]] = {}
        self._open()

    def _open(self) -> None:
        self._state = current(self._given)
        self._locks = self._state.locks(self._kind)
        self._generation = _state.generation
        self._at_once = self._options(0)
        self._at_once_ref = byref(self._at_once)

    def _options(self, wait_ns: int, cancel_fd: int = 0, go_on: Optional[int] = None) -> Any:
        opts = new(_abi.hf_lock_opts, mode=self._mode, slots=self._slots, wait_ns=wait_ns, ttl_ns=self._ttl_ns, flags=self._flags,
                   cancel_fd=cancel_fd, go_on=go_on)
        if self._owner is not None:
            opts.owner = ctypes.pointer(self._owner._raw)
        return opts

    @property
    def name(self) -> str:
        return os.fsdecode(self._raw)

    @property
    def state(self) -> State:
        return self._state

    # -- taking and giving back ----------------------------------------------------

    def acquire(self, wait: Optional[Duration] = None, *, blocking: bool = True) -> Lock:
        """Takes the lock; `wait` instead of that of the object. Raises Busy, Timeout, Deadlock, …; Ctrl-C ends the wait."""
        wait_ns = self._wait_ns if wait is None else waiting(wait)
        self._take(wait_ns if blocking else 0, 0)
        return self

    def _take(self, wait_ns: int, cancel_fd: int) -> Hold:
        if self._generation != _state.generation:
            if self._holds:
                raise Forked(f"{self.name}: taken by the parent process before the fork")
            self._open()
        hold, ident = Hold(self), get_ident()
        handle = hold.handle
        try:
            if _acquire(self._locks, self._raw, self._at_once_ref, byref(handle), None, None) < 0:
                self._take_slowly(wait_ns, cancel_fd, handle)
            hold.token = _token(handle)
            if ident in self._holds:
                self._holds[ident].append(hold)
            else:
                self._holds[ident] = [hold]
            if self._renew:
                _renewal.add(hold)
            return hold
        except BaseException:
            # A signal handler may raise at any instruction; what the library has given is given back.
            hold.released = True
            self._forget(ident, hold)
            if handle:
                _release(handle, None)
            raise

    def _take_slowly(self, wait_ns: int, cancel_fd: int, handle: c_void_p) -> None:
        """Waits, with what is needed to tell why it failed."""
        err, blocker, deadline = _abi.hf_err(), _abi.hf_holder(), Deadline(wait_ns)
        while True:
            if wait_ns == 0 or cancel_fd:
                opts = self._options(deadline.left(), cancel_fd)
                code = _acquire(self._locks, self._raw, byref(opts), byref(handle), byref(blocker), byref(err))
            else:
                with Interruptible() as wait:
                    opts = self._options(deadline.left(), wait.fd, wait.go_on_pointer)
                    code = _acquire(self._locks, self._raw, byref(opts), byref(handle), byref(blocker), byref(err))
            if code == 0:
                return
            if code == _abi.HF_E_BUSY and wait_ns != 0:
                code = err.code = _abi.HF_E_TIMEOUT
            # While another process changed the record, the library had no time for go_on.
            if code != _abi.HF_E_CANCELLED or cancel_fd:
                raise busy(code, err, blocker)

    def _forget(self, ident: int, hold: Hold) -> None:
        holds = self._holds.get(ident)
        if holds and hold in holds:
            holds.remove(hold)
            if not holds:
                self._holds.pop(ident, None)

    def _hold(self) -> Hold:
        """Of this thread; else the only one, whose handle was passed on."""
        holds = self._holds.get(get_ident())
        if not holds:  # an empty one is what an interrupted release can leave
            every = [found for found in list(self._holds.values()) if found]
            if len(every) != 1:
                raise NotHeld(f"{self.name}: not held by this thread" if every else f"{self.name}: not held")
            holds = every[0]
        hold = holds[-1]
        if hold.generation != _state.generation:
            raise Forked(f"{self.name}: taken by the parent process before the fork")
        return hold

    def release(self) -> None:
        """Gives it back. Raises Stale when it was lost meanwhile (the successor is untouched), NotHeld, Forked."""
        hold = None
        try:
            hold = self._hold()
            hold.released = True
            code = _release(hold.handle, None)
            self._forget_all(hold)
        except HoldfastError:
            raise
        except BaseException:
            self._give_back(hold)
            raise
        if code < 0:
            err = _abi.hf_err()
            again = lib.hf_lock_check_token(self._locks, self._raw, hold.token, byref(err))
            raise failure(code, err if again == code else None)

    def _forget_all(self, hold: Hold) -> None:
        for ident, holds in list(self._holds.items()):
            if hold in holds:
                self._forget(ident, hold)

    def _give_back(self, hold: Optional[Hold]) -> None:
        """After a signal handler raised during a release, at whatever instruction: the lock is given back all the same."""
        try:
            hold = hold or self._hold()
        except HoldfastError:
            return
        # By its token: doing it twice is harmless, but for a hold that is counted.
        if hold.handle and (not hold.released or not self._flags):
            hold.released = True
            _release(hold.handle, None)
        self._forget_all(hold)

    # -- while it is held ------------------------------------------------------------

    @property
    def token(self) -> int:
        """The fencing token of this thread's hold: strictly rising for each name, for ever."""
        return self._hold().token

    def held(self) -> bool:
        """Whether this thread (or the only one that has it) holds it, as far as this process knows; `check` asks the record."""
        try:
            return self._hold().lost is None
        except (NotHeld, Forked):
            return False

    def check(self) -> None:
        """Raises Stale when the lock was lost."""
        hold = self._hold()
        if hold.lost is not None:
            raise hold.lost
        err = _abi.hf_err()
        check(lib.hf_lock_check_token(self._locks, self._raw, hold.token, byref(err)), err)

    def renew(self, ttl: Optional[Duration] = None) -> None:
        """Prolongs the lease by `ttl` from now, or by its own length. Raises Stale."""
        hold, err = self._hold(), _abi.hf_err()
        check(lib.hf_lock_renew_token(self._locks, self._raw, hold.token, 0 if ttl is None else nanoseconds(ttl), byref(err)), err)

    def __enter__(self) -> Lock:
        hold = None
        try:
            hold = self._take(self._wait_ns, 0)
            return self
        except BaseException:
            if hold is not None and not hold.released:
                self.release()
            raise

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        hold = None
        try:
            hold = self._hold()
            self.release()
        except (Stale, Forked):
            # What went wrong inside tells more.
            if error is None:
                raise
        except HoldfastError:
            raise
        except BaseException:
            if hold is None or not hold.released:
                self._give_back(hold)
            raise

    def __repr__(self) -> str:
        return f"<holdfast.Lock {self.name!r}{' held' if self.held() else ''}>"

    def __del__(self) -> None:
        for holds in list(getattr(self, "_holds", {}).values()):
            for hold in holds:
                if not hold.released and hold.generation == _state.generation:
                    hold.released = True
                    _release(hold.handle, None)
                    warnings.warn(f"lock {self.name!r} was not released", ResourceWarning, stacklevel=2, source=self)


def busy(code: int, err: Any, blocker: Any) -> Exception:
    """The exception of a lock that was refused, with its holder."""
    error = failure(code, err)
    if code in (_abi.HF_E_BUSY, _abi.HF_E_TIMEOUT):
        error.holder = Holder.read(blocker)  # type: ignore[attr-defined]
    return error


def lock(name: str, wait: Optional[Duration] = None, ttl: Optional[Duration] = None, **options: Any) -> Lock:
    """`with holdfast.lock("build", wait=5, ttl=30) as l:` — see Lock, which has all the options."""
    return Lock(name, wait=wait, ttl=ttl, **options)


def lock_fd(fd: Any, wait: Optional[Duration] = None, *, shared: bool = False) -> None:
    """flock(2) on an open file (a descriptor, or what has fileno()), with a deadline that flock itself does not know.

    It keeps out every process that uses flock(2) on that file. The lock belongs to the open file and ends when that is closed.
    Raises Busy or Timeout, with `.holder`.
    """
    number = fd if isinstance(fd, int) else fd.fileno()
    flock(number, waiting(wait), Mode.SHARED if shared else Mode.EXCLUSIVE, 0)


def flock(fd: int, wait_ns: int, mode: Mode, cancel_fd: int) -> None:
    err, blocker, deadline = _abi.hf_err(), _abi.hf_holder(), Deadline(wait_ns)

    def attempt(wait_ns: int, cancel_fd: int, go_on: Optional[int]) -> int:
        opts = new(_abi.hf_lock_opts, mode=mode, wait_ns=wait_ns, cancel_fd=cancel_fd, go_on=go_on)
        return int(lib.hf_lock_fd(fd, byref(opts), byref(blocker), byref(err)))

    code = attempt(0, 0, None) if not cancel_fd else attempt(wait_ns, cancel_fd, None)
    while code == _abi.HF_E_BUSY and wait_ns != 0 and not cancel_fd:
        with Interruptible() as wait:
            code = attempt(deadline.left(), wait.fd, wait.go_on_pointer)
        if code == _abi.HF_E_BUSY and deadline.is_over():
            code = _abi.HF_E_TIMEOUT
    if code < 0:
        raise busy(code, err, blocker)


# -- without a hold: by name ------------------------------------------------------------


def look(name: str, *, kind: Kind = Kind.NAME, state: Optional[State] = None) -> Optional[LockInfo]:
    """The lock with its holders and waiters; None: it never existed."""
    err, found = _abi.hf_err(), Collector(_abi.hf_lock_info, LockInfo.read)
    code = lib.hf_lock_look(current(state).locks(kind), encode(name), found.callback, found.arg, byref(err))
    if code == _abi.HF_E_NOT_HELD:
        return None
    found.check(code, err)
    return found.found[0] if found.found else None


def locks(*, kind: Kind = Kind.NAME, state: Optional[State] = None) -> List[LockInfo]:
    """Every lock of that kind, in no particular order."""
    err, found = _abi.hf_err(), Collector(_abi.hf_lock_info, LockInfo.read)
    found.check(lib.hf_lock_list(current(state).locks(kind), found.callback, found.arg, byref(err)), err)
    return found.found


def check_token(name: str, token: int, *, kind: Kind = Kind.NAME, state: Optional[State] = None) -> None:
    """Raises Stale when that token is no longer current: for a process that was given one."""
    err = _abi.hf_err()
    check(lib.hf_lock_check_token(current(state).locks(kind), encode(name), token, byref(err)), err)


def release_token(name: str, token: int, *, kind: Kind = Kind.NAME, state: Optional[State] = None) -> None:
    """Releases what that token holds. Raises NotHeld, Stale."""
    err = _abi.hf_err()
    check(lib.hf_lock_release_as(current(state).locks(kind), encode(name), token, None, byref(err)), err)


def release_as(name: str, owner: ProcessId, *, kind: Kind = Kind.NAME, state: Optional[State] = None) -> None:
    """Releases what that process holds. Raises NotHeld, NotOwner (nothing is changed)."""
    err = _abi.hf_err()
    check(lib.hf_lock_release_as(current(state).locks(kind), encode(name), 0, byref(owner._raw), byref(err)), err)


def break_lock(name: str, reason: str, *, kind: Kind = Kind.NAME, state: Optional[State] = None) -> int:
    """Takes the lock away from its holders, journalled with the reason; their tokens are refused from then on. Returns how many lost it."""
    err = _abi.hf_err()
    return check(lib.hf_lock_break(current(state).locks(kind), encode(name), encode(reason, "reason"), byref(err)), err)


