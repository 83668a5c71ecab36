"""A drop-in for the package filelock: the same names, over flock(2) on the same file, so that both exclude each other.

    from holdfast.filelock import FileLock, Timeout          # instead of: from filelock import …

What is better: waiters of this package are served in order and wake at once, a Timeout names the holder, two locks of one file
in one thread are a Deadlock instead of an endless wait, and a forked child neither holds nor frees the lock of its parent.
"""
from __future__ import annotations

import contextlib
import os
import threading
import warnings
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, Optional, Type, Union

from . import _abi, _state
from ._abi import Kind, Mode
from ._info import Holder
from ._library import encode, lib, new
from ._lock import Lock, flock
from ._state import State, current
from ._time import Deadline, waiting
from .errors import Busy, Deadlock, Forked, HoldfastError
from .errors import Timeout as _Timeout

__all__ = ["AcquireReturnProxy", "BaseFileLock", "FileLock", "SoftFileLock", "Timeout", "UnixFileLock"]


class Timeout(_Timeout):
    """The lock was not free in time; `lock_file` is its path, `holder` the process that has it, where that is known."""

    def __init__(self, lock_file: str, holder: Optional[Holder] = None) -> None:
        super().__init__(f"The file lock '{lock_file}' could not be acquired" + (f": pid {holder.pid} has it." if holder else "."))
        self.lock_file = lock_file
        self.holder = holder

    def __reduce__(self) -> Any:
        return Timeout, (self.lock_file,)


class AcquireReturnProxy:
    """What `acquire` returns: releases at the end of a `with`."""

    def __init__(self, lock: BaseFileLock) -> None:
        self.lock = lock

    def __enter__(self) -> BaseFileLock:
        return self.lock

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.lock.__exit__(kind, error, trace)


class _Context:
    """What is held: by the object, or by one thread of it."""

    def __init__(self) -> None:
        self.counter = 0
        self.fd: Optional[int] = None
        self.place: Optional[Lock] = None
        self.generation = -1

    @property
    def is_held(self) -> bool:
        return self.fd is not None and self.generation == _state.generation


class _ThreadContext(_Context, threading.local):
    pass


class BaseFileLock(contextlib.ContextDecorator):
    """A lock on `lock_file`. Negative timeout: wait for ever; 0: try once. Reentrant: counted.

    thread_local: each thread has its own hold; with False all threads that use the object share one.
    """

    def __init__(self, lock_file: Union[str, "os.PathLike[Any]"], timeout: float = -1, mode: int = 0o644, thread_local: bool = True, *,
                 blocking: bool = True, state: Optional[State] = None) -> None:
        self._lock_file = os.fspath(lock_file)
        self._timeout = float(timeout)
        self._mode = mode
        self._blocking = blocking
        self._thread_local = thread_local
        self._given = state
        self._context: _Context = _ThreadContext() if thread_local else _Context()
        self._mutex = threading.Lock()

    @property
    def lock_file(self) -> str:
        return self._lock_file

    @property
    def timeout(self) -> float:
        return self._timeout

    @timeout.setter
    def timeout(self, value: Union[float, str]) -> None:
        self._timeout = float(value)

    @property
    def blocking(self) -> bool:
        return self._blocking

    @blocking.setter
    def blocking(self, value: bool) -> None:
        self._blocking = value

    @property
    def is_locked(self) -> bool:
        return self._context.is_held

    @property
    def lock_counter(self) -> int:
        return self._context.counter if self._context.is_held else 0

    def is_thread_local(self) -> bool:
        return self._thread_local

    def acquire(self, timeout: Optional[float] = None, poll_interval: float = 0.05, *, poll_intervall: Optional[float] = None,
                blocking: Optional[bool] = None) -> AcquireReturnProxy:
        """Takes the lock, or raises Timeout. Nothing is polled in step with poll_interval; it is accepted and not used."""
        if poll_intervall is not None:
            warnings.warn("use poll_interval instead of poll_intervall", DeprecationWarning, stacklevel=2)
        wait_ns = waiting(self._timeout if timeout is None else timeout)
        if not (self._blocking if blocking is None else blocking):
            wait_ns = 0
        context = self._context
        if context.is_held:
            context.counter += 1
            return AcquireReturnProxy(self)
        try:
            if self._thread_local:
                self._take(context, wait_ns)
            else:
                self._take_for_all(context, wait_ns)
        except (Busy, _Timeout) as error:
            raise Timeout(self._lock_file, error.holder) from None
        except Deadlock:
            if wait_ns < 0:
                raise
            raise Timeout(self._lock_file) from None
        return AcquireReturnProxy(self)

    def _take_for_all(self, context: _Context, wait_ns: int) -> None:
        deadline = Deadline(wait_ns)
        if not self._mutex.acquire(wait_ns != 0, -1 if wait_ns <= 0 else wait_ns / 1e9):
            raise Busy(self._lock_file)
        try:
            if context.is_held:
                context.counter += 1
            else:
                self._take(context, deadline.left())
        finally:
            self._mutex.release()

    def _queue(self, wait_ns: int) -> Optional[Lock]:
        """A place among the processes that use this package; without a state directory there is none, and flock(2) decides alone."""
        try:
            state = current(self._given)
            name = _entry(state, self._lock_file)
        except (HoldfastError, OSError):
            return None
        place = Lock(name, kind=Kind.FILE, state=state)
        place._take(wait_ns, 0)
        return place

    def _take(self, context: _Context, wait_ns: int) -> None:
        directory = os.path.dirname(self._lock_file)
        if directory and not os.path.isdir(directory):
            os.makedirs(directory, exist_ok=True)
        deadline, fd = Deadline(wait_ns), -1
        place = self._queue(wait_ns)
        try:
            while True:
                fd = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, self._mode)
                flock(fd, deadline.left(), Mode.EXCLUSIVE, 0)
                if _is_named(fd, self._lock_file):
                    break
                os.close(fd)  # unlinked while we waited, by a tool that does so: that lock is nobody's
                fd = -1
            context.generation, context.counter, context.place, context.fd = _state.generation, 1, place, fd
        except BaseException:
            context.fd = None
            if fd >= 0:
                os.close(fd)
            if place is not None and place.held():
                place.release()
            raise

    def release(self, force: bool = False) -> None:
        """Gives it back when it was released as often as it was taken, or at once with `force`. Nothing happens when it is not held."""
        context = self._context
        if context.fd is None:
            return
        if not context.is_held:
            raise Forked(f"{self._lock_file}: locked by the parent process before the fork")
        context.counter -= 1
        if context.counter > 0 and not force:
            return
        fd, place = context.fd, context.place
        context.fd, context.place, context.counter = None, None, 0
        try:
            os.close(fd)
        finally:
            if place is not None:
                place.release()

    def __enter__(self) -> BaseFileLock:
        self.acquire()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        before = self._context.counter
        try:
            self.release()
        except HoldfastError:
            raise
        except BaseException:  # a signal handler raised, before the release began or when it was done
            if self._context.is_held and self._context.counter == before:
                self.release()
            raise

    def __del__(self) -> None:
        context = getattr(self, "_context", None)
        if context is not None and context.is_held:
            self.release(force=True)


def _is_named(fd: int, path: str) -> bool:
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def _entry(state: State, path: str) -> str:
    """The name that the library gives to this directory entry."""
    handle = c_void_p()
    opts = new(_abi.hf_file_opts, flags=_abi.HF_FILE_CREATE | _abi.HF_FILE_REPLACE_SYMLINK | _abi.HF_FILE_BREAK_LINKS)
    if lib.hf_file_open(state.locks(), encode(path, "path"), byref(opts), byref(handle), None) < 0:
        raise OSError("no entry")
    try:
        return os.fsdecode(lib.hf_file_lock_name(handle))
    finally:
        lib.hf_file_close(handle, None)


class UnixFileLock(BaseFileLock):
    """flock(2) on the lock file."""


FileLock = UnixFileLock
SoftFileLock = UnixFileLock
