"""The locks of holdfast.filelock for many readers or one writer.

As in the package filelock, the lock is a transaction on an SQLite database, so that both exclude each other: BEGIN EXCLUSIVE to write, and a
transaction that has read the list of tables to read. Nothing is ever written into the database.
"""
from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from types import TracebackType
from typing import Any, Dict, Generator, Optional, Tuple, Type, Union
from weakref import WeakValueDictionary

from . import _filelock, _state
from ._filelock import AcquireReturnProxy, Timeout
from ._time import Deadline, waiting
from .errors import Forked

LONGEST_MS = 2_000_000_000
SLICE_MS = 500  # in the main thread: a signal handler runs after that time at the latest

BEGIN = {"read": "BEGIN; SELECT name FROM sqlite_master LIMIT 1;", "write": "BEGIN EXCLUSIVE;"}


class ReadWriteMeta(type):
    """One instance for each path, unless is_singleton=False."""

    _instances: WeakValueDictionary[str, ReadWriteLock]

    def __call__(cls, lock_file: Any, timeout: float = -1, *, blocking: bool = True, is_singleton: bool = True) -> Any:
        if not is_singleton:
            return super().__call__(lock_file, timeout, blocking=blocking, is_singleton=False)
        with _filelock._singletons:
            key = _database(lock_file)
            instance = cls._instances.get(key)
            if instance is None:
                instance = cls._instances[key] = super().__call__(lock_file, timeout, blocking=blocking, is_singleton=True)
            elif (instance.timeout, instance.blocking) != (timeout, blocking):
                raise ValueError(f"Singleton lock created with timeout={instance.timeout}, blocking={instance.blocking}, "
                                 f"cannot be changed to timeout={timeout}, blocking={blocking}")
            return instance


class Proxy(AcquireReturnProxy):
    """The result of `acquire_read` and `acquire_write`: releases at the end of a `with`."""

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.lock.release()


class ReadWriteLock(metaclass=ReadWriteMeta):
    """Many readers or one writer, over the SQLite database `lock_file`, which is made when it does not exist.

    A thread may nest holds of one mode. It cannot change the mode of what it holds: RuntimeError. One object coordinates processes; threads that
    shall wait for each other need objects of their own, made with is_singleton=False.
    """

    _instances: WeakValueDictionary[str, ReadWriteLock] = WeakValueDictionary()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._instances = WeakValueDictionary()

    def __init__(self, lock_file: Union[str, "os.PathLike[str]"], timeout: float = -1, *, blocking: bool = True, is_singleton: bool = True) -> None:
        self.lock_file: str = os.fspath(lock_file)
        self.timeout = timeout
        self.blocking = blocking
        self._path = _database(lock_file)
        self._changing = threading.Lock()
        self._mode = ""
        self._depths: Dict[int, int] = {}  # by thread
        self._connection: Optional[sqlite3.Connection] = None
        self._generation = _state.generation
        self._closed = False
        self.tasks: Any = None  # of the AsyncReadWriteLocks over this object
        _connect(self._path).close()

    @classmethod
    def get_lock(cls, lock_file: Union[str, "os.PathLike[str]"], timeout: float = -1, *, blocking: bool = True) -> ReadWriteLock:
        """The one instance of that path."""
        return cls(lock_file, timeout, blocking=blocking)

    def acquire_read(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> AcquireReturnProxy:
        """Shares the lock with other readers, or raises Timeout."""
        return self._acquire("read", timeout, blocking)

    def acquire_write(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> AcquireReturnProxy:
        """Takes the lock for this thread alone, or raises Timeout."""
        return self._acquire("write", timeout, blocking)

    @contextlib.contextmanager
    def read_lock(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> Generator[None, None, None]:
        with self.acquire_read(timeout, blocking=blocking):
            yield

    @contextlib.contextmanager
    def write_lock(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> Generator[None, None, None]:
        with self.acquire_write(timeout, blocking=blocking):
            yield

    def _acquire(self, mode: str, timeout: Optional[float], blocking: Optional[bool]) -> AcquireReturnProxy:
        wait_ns = wait_of(self, timeout, blocking)
        deadline = Deadline(wait_ns)
        self._check_usable()
        if not self._changing.acquire(wait_ns != 0, -1 if wait_ns <= 0 else min(wait_ns / 1e9, threading.TIMEOUT_MAX)):
            raise Timeout(self.lock_file)
        try:
            me = threading.get_ident()
            if self._mode:
                self._check_nesting(mode, me)
            else:
                self._begin(mode, deadline)
                self._mode = mode
            self._depths[me] = self._depths.get(me, 0) + 1
        finally:
            self._changing.release()
        return Proxy(self)

    def _check_usable(self) -> None:
        if self._generation != _state.generation:
            raise Forked(f"{self.lock_file}: opened by the parent process; make a new ReadWriteLock in this one")
        if self._closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")

    def _check_nesting(self, mode: str, me: int) -> None:
        if self._mode == mode and (mode == "read" or me in self._depths):
            return
        if self._mode == mode:
            why = f"from thread {me} while it is held by thread {next(iter(self._depths))}"
        elif me in self._depths:
            why = f"already holding a {self._mode} lock ({'downgrade' if mode == 'read' else 'upgrade'} not allowed)"
        else:
            why = f"another thread holds a {self._mode} lock on this instance; give each thread its own, made with is_singleton=False"
        raise RuntimeError(f"Cannot acquire {mode} lock on {self.lock_file} (lock id: {id(self)}): {why}")

    def _begin(self, mode: str, deadline: Deadline) -> None:
        while self._connection is None:
            before = _identity(self._path)
            connection = _connect(self._path)
            try:
                before = before or _identity(self._path)
                self._begin_on(connection, mode, deadline)
                if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                    raise ValueError(f"refusing a WAL-mode lock database: {self._path!r}: its readers do not wait for a writer")
                if before is not None and before == _identity(self._path):  # else it was replaced in the meantime
                    self._connection = connection
            finally:
                if self._connection is None:
                    connection.close()

    def _begin_on(self, connection: sqlite3.Connection, mode: str, deadline: Deadline) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        while True:
            left = deadline.left()
            ms = LONGEST_MS if left < 0 else min(-(-left // 1_000_000), LONGEST_MS)
            try:
                connection.executescript(f"PRAGMA busy_timeout={min(ms, SLICE_MS) if in_main else ms};" + BEGIN[mode]).close()
                return
            except sqlite3.OperationalError as error:
                if "database is locked" not in str(error):
                    raise
                if connection.in_transaction:
                    connection.rollback()
                if deadline.is_over():
                    raise Timeout(self.lock_file) from None

    def release(self, *, force: bool = False) -> None:
        """Gives one hold of this thread back, or with `force` those of all threads. RuntimeError when this thread has none."""
        if self._generation != _state.generation:
            raise Forked(f"{self.lock_file}: locked by the parent process before the fork")
        me = threading.get_ident()
        if not force and me not in self._depths:
            raise RuntimeError(f"Cannot release {self._mode or 'a'} lock on {self.lock_file} (lock id: {id(self)}) "
                               + (f"from thread {me}, which does not hold it" if self._mode else "that is not held"))
        if not self._depths:
            return
        with self._changing:
            if not force and self._depths.get(me, 0) > 1:
                self._depths[me] -= 1
                return
            left = {} if force else {thread: depth for thread, depth in self._depths.items() if thread != me}
            if not left:
                connection = self._connection
                self._connection, self._mode = None, ""
                if connection is not None:
                    connection.close()  # rolls the transaction back
            self._depths = left

    def close(self) -> None:
        """Gives it back when it is held. The object cannot be used afterwards."""
        self.release(force=True)
        self._closed = True

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


def wait_of(lock: Any, timeout: Optional[float], blocking: Optional[bool]) -> int:
    """Nanoseconds: -1 without a limit."""
    if not (lock.blocking if blocking is None else blocking):
        return 0
    timeout = lock.timeout if timeout is None else timeout
    if not (timeout >= 0 or timeout == -1):
        raise ValueError(f"timeout must be a non-negative number or -1, not {timeout!r}")
    return waiting(timeout)


def _database(lock_file: Union[str, "os.PathLike[str]"]) -> str:
    directory, name = os.path.split(os.fspath(lock_file))
    return os.path.join(os.path.realpath(directory or os.curdir), name)


def _identity(path: str) -> Optional[Tuple[int, int]]:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: str) -> sqlite3.Connection:
    # By its path, so that SQLite knows all descriptors of the file: closing another one would end this process's locks on it.
    if os.path.islink(path):
        raise OSError(f"refusing a symbolic link as lock database: {path!r}")
    return sqlite3.connect(path, check_same_thread=False, cached_statements=0, timeout=0, isolation_level=None)
