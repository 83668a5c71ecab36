"""The blocking half of holdfast.filelock."""
from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import logging
import math
import os
import sys
import threading
import time
import warnings
from abc import ABCMeta, abstractmethod
from types import TracebackType
from typing import Any, Callable, Dict, NoReturn, Optional, Type, TypeVar, Union
from weakref import WeakValueDictionary

from . import _state, errors
from ._abi import Mode
from ._gate import Gate, Hold, gate_of, keep
from ._info import Holder
from ._lock import flock
from ._state import State, current
from ._time import Deadline, waiting
from .errors import Busy, Forked, HoldfastError
from .errors import Timeout as _Timeout

LOG = logging.getLogger("filelock")
UNSET_MODE = -1  # no mode given: 0666 cut by the umask, or by the directory's default ACL

#: The options that two uses of one singleton must agree on, with their defaults.
OPTIONS: Dict[str, Any] = {
    "timeout": -1, "mode": UNSET_MODE, "thread_local": True, "blocking": True, "poll_interval": 0.05, "lifetime": None,
    "context_error_policy": "chain", "close_error_policy": "default", "fallback_to_soft": True, "preserve_lock_file": False, "on_acquired": None,
}
POSITIONAL = ("timeout", "mode", "thread_local")

L = TypeVar("L")
B = TypeVar("B", bound="BaseFileLock")


class Timeout(_Timeout):
    """The lock was not free in time; `lock_file` is its path, `holder` the process that has it, if it is known."""

    def __init__(self, lock_file: str, holder: Optional[Holder] = None) -> None:
        super().__init__(f"The file lock '{lock_file}' could not be acquired" + (f": pid {holder.pid} has it." if holder else "."))
        self.lock_file = lock_file
        self.holder = holder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.lock_file!r})"

    def __reduce__(self) -> Any:
        return type(self), (self.lock_file,)


class Deadlock(errors.Deadlock, RuntimeError):
    """This thread, or task, would wait without a limit for a lock that it has itself. The package filelock raises RuntimeError."""


class FileLockMeta(ABCMeta):
    """Makes the instances, of which a path has one for each class when they are singletons."""

    _instances: WeakValueDictionary[Any, Any]

    def __call__(cls: Type[L], lock_file: Any, *args: Any, is_singleton: bool = False, **options: Any) -> L:
        if not is_singleton:
            return super().__call__(lock_file, *args, **options)  # type: ignore[misc, no-any-return]
        with _singletons:
            path = os.fspath(lock_file)
            directory, name = os.path.split(path)
            key = os.path.join(os.path.realpath(directory or os.curdir), name) if isinstance(path, str) else path
            instances = cls._instances  # type: ignore[attr-defined]
            instance = instances.get(key)
            if instance is None:
                instance = instances[key] = super().__call__(lock_file, *args, is_singleton=True, **options)  # type: ignore[misc]
            else:
                instance._compare({**instance._defaults, **dict(zip(POSITIONAL, args)), **options})
            return instance  # type: ignore[no-any-return]


class AcquireReturnProxy:
    """The result of `acquire`: releases at the end of a `with`."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> Any:
        return self.lock

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.lock.__exit__(kind, error, trace)


class Wait:
    """How long one acquisition waits, and what ends it."""

    __slots__ = ("ns", "blocking", "poll_interval", "cancel_check", "deadline")

    def __init__(self, context: Context, timeout: Optional[float], poll_interval: Optional[float], blocking: Optional[bool],
                 cancel_check: Optional[Callable[[], bool]]) -> None:
        self.blocking = context.blocking if blocking is None else blocking
        timeout = context.timeout if timeout is None else timeout
        if self.blocking and timeout != timeout:
            raise ValueError("timeout must be a number of seconds, not nan")
        self.ns = waiting(timeout) if self.blocking else 0
        self.poll_interval = context.poll_interval if poll_interval is None else poll_interval
        self.cancel_check = cancel_check
        self.deadline = Deadline(self.ns)

    def give_up(self, lock: BaseFileLock, holder: Optional[Holder] = None) -> None:
        """Raises Timeout when the wait is over."""
        if not self.blocking:
            LOG.debug("Failed to immediately acquire lock %s on %s", id(lock), lock.lock_file)
        elif self.cancel_check is not None and self.cancel_check():
            LOG.debug("Cancellation requested for lock %s on %s", id(lock), lock.lock_file)
        elif self.deadline.is_over():
            LOG.debug("Timeout on acquiring lock %s on %s", id(lock), lock.lock_file)
        else:
            return
        raise Timeout(lock.lock_file, holder)

    def interval(self) -> float:
        """Seconds until the next attempt."""
        left = self.deadline.left()
        return self.poll_interval if left < 0 else min(self.poll_interval, left / 1e9)


class Context:
    """The options and the hold of an object, or of one thread of it."""

    def __init__(self, lock_file: str, **options: Any) -> None:
        self.lock_file = lock_file
        self.timeout: float = options["timeout"]
        self.mode: int = options["mode"]
        self.blocking: bool = options["blocking"]
        self.poll_interval: float = options["poll_interval"]
        self.lifetime: Optional[float] = options["lifetime"]
        self.lock_counter = 0
        self.lock_file_fd: Optional[int] = None
        self.hold: Optional[Hold] = None
        self.scope: Any = None
        self.generation = _state.generation

    @property
    def is_held(self) -> bool:
        return self.lock_file_fd is not None and self.generation == _state.generation


class ThreadContext(Context, threading.local):
    pass


class BaseFileLock(contextlib.ContextDecorator, metaclass=FileLockMeta):
    """A lock on `lock_file`. A subclass provides `_acquire` (one attempt, which sets `_context.lock_file_fd`) and `_release`.

    timeout               seconds to wait; negative: without a limit; 0: one attempt
    mode                  permissions of the lock file whatever the umask is; not given: the umask decides
    thread_local          each thread has its own hold and its own options; with False all threads that use the object share them
    blocking              False: one attempt, whatever the timeout is
    is_singleton          one instance for each path, so that equal locks are one counted lock
    poll_interval         seconds between two attempts where the lock is polled, and between two calls of `cancel_check`
    lifetime              accepted for compatibility: a lock of the system cannot be taken away by the age of a file
    context_error_policy  "group": raise the errors of the block and of the release together (Python 3.11)
    close_error_policy    "raise" or "suppress" an error of close(2), which comes after the unlock
    preserve_lock_file, fallback_to_soft  accepted: the file always stays, and without flock(2) the acquisition fails
    on_acquired           called with the locked descriptor once for each acquisition that is not nested
    """

    _instances: WeakValueDictionary[Any, Any] = WeakValueDictionary()
    _defaults = OPTIONS
    _scope_words = "FileLock instance in this thread"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._instances = WeakValueDictionary()

    def __init__(self, lock_file: Union[str, "os.PathLike[Any]"], timeout: float = -1, mode: int = UNSET_MODE, thread_local: bool = True, *,
                 blocking: bool = True, is_singleton: bool = False, poll_interval: float = 0.05, lifetime: Optional[float] = None,
                 context_error_policy: str = "chain", close_error_policy: str = "default", fallback_to_soft: bool = True,
                 preserve_lock_file: bool = False, on_acquired: Optional[Callable[[int], object]] = None, state: Optional[State] = None) -> None:
        if context_error_policy not in ("chain", "group"):
            raise ValueError(f"context_error_policy must be 'chain' or 'group', got {context_error_policy!r}")
        if context_error_policy == "group" and sys.version_info < (3, 11):
            raise ValueError("context_error_policy='group' needs Python 3.11")
        if close_error_policy not in ("default", "raise", "suppress"):
            raise ValueError(f"close_error_policy must be 'default', 'raise', or 'suppress', got {close_error_policy!r}")
        self._thread_local = thread_local
        self._is_singleton = is_singleton
        self._context_error_policy = context_error_policy
        self._close_error_policy = close_error_policy
        self._fallback_to_soft = fallback_to_soft
        self._preserve_lock_file = preserve_lock_file
        self._on_acquired = on_acquired
        self._given = state
        self._mutex = threading.Lock()
        make = ThreadContext if thread_local else Context
        self._context: Context = make(os.fspath(lock_file), timeout=_seconds("timeout", timeout), mode=_checked_mode(mode), blocking=_bool(blocking),
                                      poll_interval=_interval(poll_interval), lifetime=_lifetime(lifetime, type(self).__name__))

    def _compare(self, given: Dict[str, Any]) -> None:
        differ = ""
        for name, value in given.items():
            if name not in OPTIONS:
                continue
            mine = self._thread_local if name == "thread_local" else self._context.mode if name == "mode" else getattr(self, name)
            if value is not mine if name == "on_acquired" else value != mine:
                differ += f"\n\t{name} (existing lock has {mine} but {value} was passed)"
        if differ:
            raise ValueError("Singleton lock instances cannot be initialized with differing arguments\nNon-matching arguments: " + differ)

    lock_file = property(lambda self: self._context.lock_file, doc="Path of the lock file.")
    is_singleton = property(lambda self: self._is_singleton)
    context_error_policy = property(lambda self: self._context_error_policy)
    close_error_policy = property(lambda self: self._close_error_policy)
    fallback_to_soft = property(lambda self: self._fallback_to_soft)
    preserve_lock_file = property(lambda self: self._preserve_lock_file)
    on_acquired = property(lambda self: self._on_acquired)

    @property
    def timeout(self) -> float:
        return self._context.timeout

    @timeout.setter
    def timeout(self, value: Union[float, str]) -> None:
        self._context.timeout = float(value)

    @property
    def blocking(self) -> bool:
        return self._context.blocking

    @blocking.setter
    def blocking(self, value: bool) -> None:
        self._context.blocking = _bool(value)

    @property
    def poll_interval(self) -> float:
        return self._context.poll_interval

    @poll_interval.setter
    def poll_interval(self, value: float) -> None:
        self._context.poll_interval = _interval(value)

    @property
    def lifetime(self) -> Optional[float]:
        return self._context.lifetime

    @lifetime.setter
    def lifetime(self, value: Optional[float]) -> None:
        self._context.lifetime = _lifetime(value, type(self).__name__)

    @property
    def mode(self) -> int:
        return self._context.mode if self.has_explicit_mode else 0o644

    @property
    def has_explicit_mode(self) -> bool:
        return self._context.mode != UNSET_MODE

    @property
    def is_locked(self) -> bool:
        return self._context.is_held

    @property
    def lock_counter(self) -> int:
        return self._context.lock_counter if self._context.is_held else 0

    def is_thread_local(self) -> bool:
        return self._thread_local

    @abstractmethod
    def _acquire(self) -> Any:
        """One attempt. When it succeeds, it sets `_context.lock_file_fd`."""
        raise NotImplementedError

    @abstractmethod
    def _release(self) -> Any:
        """Unlocks, and sets `_context.lock_file_fd` to None."""
        raise NotImplementedError

    def acquire(self, timeout: Optional[float] = None, poll_interval: Optional[float] = None, *, poll_intervall: Optional[float] = None,
                blocking: Optional[bool] = None, cancel_check: Optional[Callable[[], bool]] = None) -> Any:
        """Takes the lock, or raises Timeout. `cancel_check` returns True to end the wait, also with Timeout."""
        if poll_intervall is not None:
            warnings.warn("use poll_interval instead of poll_intervall", DeprecationWarning, stacklevel=2)
            poll_interval = poll_intervall
        wait = Wait(self._context, timeout, poll_interval, blocking, cancel_check)
        if self._thread_local:
            self._acquire_counted(wait)
            return AcquireReturnProxy(self)
        if not self._mutex.acquire(wait.ns != 0, -1 if wait.ns <= 0 else min(wait.ns / 1e9, threading.TIMEOUT_MAX)):
            raise Timeout(self.lock_file)
        try:
            self._acquire_counted(wait)
        finally:
            self._mutex.release()
        return AcquireReturnProxy(self)

    def _acquire_counted(self, wait: Wait) -> None:
        context = self._context
        if context.is_held:
            context.lock_counter += 1
            LOG.debug("Lock %s acquired on %s", id(self), context.lock_file)
            return
        context.generation, context.lock_counter = _state.generation, 0
        LOG.debug("Attempting to acquire lock %s on %s", id(self), context.lock_file)
        self._wait_for(context, wait)
        context.lock_counter = 1
        LOG.debug("Lock %s acquired on %s", id(self), context.lock_file)
        if self._on_acquired is not None:
            self._call_on_acquired(context)

    def _wait_for(self, context: Context, wait: Wait) -> None:
        """Polls, for subclasses that have nothing better."""
        while True:
            self._acquire()
            if context.is_held:
                return
            wait.give_up(self)
            self._say_waiting(wait)
            time.sleep(wait.interval())

    def _say_waiting(self, wait: Wait) -> None:
        LOG.debug("Lock %s not acquired on %s, waiting %s seconds ...", id(self), self.lock_file, wait.poll_interval)

    def _call_on_acquired(self, context: Context) -> None:
        try:
            self._on_acquired(context.lock_file_fd)  # type: ignore[misc, arg-type]
        except BaseException as error:
            try:
                self._release()
            except BaseException as failed:
                raise_both("the callback on_acquired and the release failed", error, failed)
            context.lock_counter = 0
            raise

    def release(self, force: bool = False) -> Any:
        """Undoes one acquisition, or all of them with `force`. Does nothing when the lock is not held."""
        context = self._context
        if context.lock_file_fd is None:
            return
        if context.generation != _state.generation:
            raise Forked(f"{context.lock_file}: locked by the parent process before the fork")
        if self._thread_local:
            self._release_counted(context, force)
        else:
            with self._mutex:
                self._release_counted(context, force)

    def _release_counted(self, context: Context, force: bool) -> None:
        if context.lock_counter > 1 and not force:
            context.lock_counter -= 1
        elif context.lock_file_fd is not None:
            LOG.debug("Attempting to release lock %s on %s", id(self), context.lock_file)
            try:
                self._release()
            finally:
                if context.lock_file_fd is None:
                    context.lock_counter = 0
            LOG.debug("Lock %s released on %s", id(self), context.lock_file)

    def __enter__(self: B) -> B:
        self.acquire()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        before = self._context.lock_counter
        try:
            self.release()
        except HoldfastError:
            raise
        except BaseException as failed:
            # A signal handler raised, before the release began or when it was done.
            if self._context.is_held and self._context.lock_counter == before:
                with contextlib.suppress(Exception):
                    self.release()
            if error is not None and self._context_error_policy == "group":
                raise_both("the block and the release of the lock failed", error, failed)
            raise

    def __del__(self) -> None:
        context = getattr(self, "_context", None)
        if context is not None and context.is_held:
            self.release(force=True)


class UnixFileLock(BaseFileLock):
    """flock(2) on the lock file, in the queue of all processes that use this package."""

    _parts: Optional[Any] = None
    _gate: Optional[Gate] = None  # kept, because the next acquisition needs it again

    def _acquire(self) -> None:
        try:
            self._take(self._context, 0, _nothing)
        except (Busy, _Timeout):
            pass

    def _wait_for(self, context: Context, wait: Wait) -> None:
        if type(self)._acquire is not UnixFileLock._acquire:
            return super()._wait_for(context, wait)
        waits = functools.partial(self._say_waiting, wait)
        ns = 0 if wait.cancel_check is not None else wait.ns
        while True:
            try:
                return self._take(context, ns, waits)
            except (Busy, _Timeout) as error:
                wait.give_up(self, error.holder)
            except errors.Deadlock as error:
                if wait.ns < 0:
                    self._refuse_own()
                    raise Deadlock(f"Deadlock: lock '{context.lock_file}': {error}") from None
                raise Timeout(context.lock_file) from None
            ns = wait.deadline.left(int(max(wait.poll_interval, 0.001) * 1e9))

    def _refuse_own(self) -> None:
        owner = self._find_gate().owner
        if owner is not None and owner.scope == self._scope(self._context):
            raise Deadlock(f"Deadlock: lock '{self.lock_file}' is already held by a different {self._scope_words}. "
                           f"Use is_singleton=True to enable reentrant locking across instances.")

    def _find_gate(self) -> Gate:
        if self._parts is None:
            path = self._context.lock_file
            if b"\0" in os.fsencode(path):
                raise ValueError("embedded null byte")
            self._parts = os.path.split(path)
        self._gate = gate_of(*self._parts)
        return self._gate

    def _scope(self, context: Context) -> Any:
        return threading.get_ident() if context.scope is None else context.scope

    def _take(self, context: Context, wait_ns: int, waits: Callable[[], None]) -> None:
        path, deadline, gate = context.lock_file, Deadline(wait_ns), self._find_gate()
        hold = Hold(gate, self._scope(context), self._thread_local)
        try:
            try:
                state: Optional[State] = current(self._given)
            except (HoldfastError, OSError):
                state = None  # without a state directory flock(2) decides alone
            probe = functools.partial(gate.probe, state, path) if state is not None and self._thread_local else None
            if not gate.enter(hold.ticket, wait_ns, waits, probe):
                busy = Busy(path)
                busy.holder = gate.holder(state, path)
                raise busy
            if state is not None:
                hold.place = gate.place(state, path, self._thread_local)
            if hold.place is not None:
                hold.place.take(deadline.left(), waits)
            while True:
                fd = hold.fd = keep(_open(path, 0o666 if context.mode == UNSET_MODE else context.mode))
                _flock(fd, deadline, waits)
                if _make_ours(fd, path, context.mode):
                    break
                os.close(hold.take_fd())  # unlinked during the wait, by a tool that does so: this lock protects nothing
            context.hold, context.lock_file_fd = hold, fd
        except BaseException:
            context.hold = context.lock_file_fd = None
            hold.end()
            raise

    def _release(self) -> None:
        context = self._context
        fd, hold = context.lock_file_fd, context.hold
        if fd is None or hold is None:
            raise NotImplementedError
        # A child that was forked by C code may have the descriptor too, so closing it is not enough.
        fcntl.flock(fd, fcntl.LOCK_UN)
        context.hold = context.lock_file_fd = None
        try:
            os.close(hold.take_fd())
        except OSError:
            if self._close_error_policy == "raise":
                raise
        finally:
            hold.end()


class WindowsFileLock(BaseFileLock):
    """There for its name: it raises NotImplementedError on this system."""

    def _acquire(self) -> None:
        raise NotImplementedError

    def _release(self) -> None:
        raise NotImplementedError


def _open(path: Union[str, bytes], mode: int) -> int:
    # Without O_CREAT first: in a sticky directory the kernel refuses O_CREAT on another user's file (fs.protected_regular).
    flags, made_meanwhile = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, False
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            return os.open(path, flags | os.O_CREAT, mode)
        except PermissionError:
            if made_meanwhile:
                raise
            made_meanwhile = True


def _flock(fd: int, deadline: Deadline, waits: Callable[[], None]) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
    waits()
    flock(fd, deadline.left(), Mode.EXCLUSIVE, 0)


def _make_ours(fd: int, path: Union[str, bytes], mode: int) -> bool:
    """Empties the locked file and gives it its mode. False: the path names another file by now."""
    mine = os.fstat(fd)
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if (mine.st_dev, mine.st_ino) != (named.st_dev, named.st_ino):
        return False
    if mine.st_size:
        os.ftruncate(fd, 0)
    if mode not in (UNSET_MODE, mine.st_mode & 0o7777):
        with contextlib.suppress(PermissionError):  # another user's file
            os.fchmod(fd, mode)
    return True


def _nothing() -> None:
    pass


def raise_both(message: str, first: BaseException, second: BaseException) -> NoReturn:
    if sys.version_info >= (3, 11):
        raise BaseExceptionGroup(message, [first, second]) from None
    raise second from first


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}") from None


def _interval(value: Any) -> float:
    seconds = _seconds("poll_interval", value)
    if seconds < 0 or not math.isfinite(seconds):
        raise ValueError(f"poll_interval must be finite and non-negative, not {seconds!r}")
    return seconds


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"blocking must be a bool, not {type(value).__name__}")
    return value


def _checked_mode(mode: Any) -> int:
    if isinstance(mode, bool) or not isinstance(mode, int):
        raise TypeError(f"mode must be an int, not {type(mode).__name__}")
    if mode != UNSET_MODE and not 0 <= mode <= 0o777:
        raise ValueError(f"mode={mode:#o} must be within 0o000-0o777")
    return mode


def _lifetime(value: Any, name: str) -> Optional[float]:
    if value is None:
        return None
    seconds = _seconds("lifetime", value)
    if seconds < 0 or not math.isfinite(seconds):
        raise ValueError(f"lifetime must be finite and non-negative, not {value!r}")
    warnings.warn(f"lifetime is ignored for {name}: a lock of the system cannot be taken away by the age of its file", stacklevel=4)
    return None


_singletons = threading.RLock()


def _after_fork() -> None:
    global _singletons
    _singletons = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
