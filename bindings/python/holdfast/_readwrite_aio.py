"""ReadWriteLock for asyncio. The tasks of one process agree among themselves; one of them then takes the lock for all."""
from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections import deque
from concurrent.futures import Executor, ThreadPoolExecutor
from types import TracebackType
from typing import Any, AsyncGenerator, Callable, Deque, Dict, Optional, Tuple, Type, Union

from ._filelock import Timeout
from ._filelock_aio import finish
from ._readwrite import ReadWriteLock, wait_of
from ._time import Deadline

SLICE_NS = 250_000_000  # a cancelled task leaves its wait for another process after that time at the latest


class Tasks:
    """The tasks that share one ReadWriteLock. Each has its own counted hold; a waiting writer goes before new readers."""

    def __init__(self) -> None:
        self.mode = ""
        self.depths: Dict[Any, int] = {}
        self.changing = False
        self.waiting: Deque[Tuple[str, asyncio.Future[None]]] = deque()

    def may_enter(self, mode: str) -> bool:
        if self.changing:
            return False
        return not self.depths or mode == self.mode == "read" and not any(wants == "write" for wants, _ in self.waiting)

    def wake(self) -> None:
        """All check again, in their order."""
        waiting, self.waiting = self.waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.get_loop().call_soon_threadsafe(_answer, future)


def _answer(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class AsyncAcquireReadWriteReturnProxy:
    """The result of `await acquire_read()` and `await acquire_write()`: releases at the end of an `async with`."""

    def __init__(self, lock: AsyncReadWriteLock) -> None:
        self.lock = lock

    async def __aenter__(self) -> AsyncReadWriteLock:
        return self.lock

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.lock.release()


class AsyncReadWriteLock:
    """As ReadWriteLock, for tasks: a task that wants to write waits for the other tasks, too.

    executor   where the calls of SQLite run; None: a thread of its own, which `close` ends
    loop       accepted for compatibility: the calls belong to the running loop
    """

    def __init__(self, lock_file: Union[str, "os.PathLike[str]"], timeout: float = -1, *, blocking: bool = True, is_singleton: bool = True,
                 loop: Optional[asyncio.AbstractEventLoop] = None, executor: Optional[Executor] = None) -> None:
        self._lock: ReadWriteLock = ReadWriteLock(lock_file, timeout, blocking=blocking, is_singleton=is_singleton)
        if self._lock.tasks is None:
            self._lock.tasks = Tasks()
        self._tasks: Tasks = self._lock.tasks
        self._own = None if executor else ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-rw")
        self.executor: Executor = executor or self._own  # type: ignore[assignment]
        self.loop = loop

    @property
    def lock_file(self) -> str:
        return self._lock.lock_file

    @property
    def timeout(self) -> float:
        return self._lock.timeout

    @property
    def blocking(self) -> bool:
        return self._lock.blocking

    async def acquire_read(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> AsyncAcquireReadWriteReturnProxy:
        """Shares the lock with other readers, or raises Timeout."""
        return await self._acquire("read", timeout, blocking)

    async def acquire_write(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> AsyncAcquireReadWriteReturnProxy:
        """Takes the lock for this task alone, or raises Timeout."""
        return await self._acquire("write", timeout, blocking)

    @contextlib.asynccontextmanager
    async def read_lock(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> AsyncGenerator[None, None]:
        async with await self.acquire_read(timeout, blocking=blocking):
            yield

    @contextlib.asynccontextmanager
    async def write_lock(self, timeout: Optional[float] = None, *, blocking: Optional[bool] = None) -> AsyncGenerator[None, None]:
        async with await self.acquire_write(timeout, blocking=blocking):
            yield

    async def _acquire(self, mode: str, timeout: Optional[float], blocking: Optional[bool]) -> AsyncAcquireReadWriteReturnProxy:
        deadline = Deadline(wait_of(self._lock, timeout, blocking))
        self._lock._check_usable()
        tasks, me = self._tasks, asyncio.current_task()
        if me in tasks.depths:
            if tasks.mode != mode:
                raise RuntimeError(f"Cannot acquire {mode} lock on {self.lock_file} (lock id: {id(self)}): already holding a {tasks.mode} lock "
                                   f"({'downgrade' if mode == 'read' else 'upgrade'} not allowed)")
            tasks.depths[me] += 1
            return AsyncAcquireReadWriteReturnProxy(self)
        while not tasks.may_enter(mode):
            await self._wait_for_tasks(mode, deadline)
        if not tasks.depths:
            await self._begin(mode, deadline)
            tasks.mode = mode
        tasks.depths[me] = 1
        tasks.wake()
        return AsyncAcquireReadWriteReturnProxy(self)

    async def _wait_for_tasks(self, mode: str, deadline: Deadline) -> None:
        left = deadline.left()
        if left == 0:
            raise Timeout(self.lock_file)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks.waiting.append((mode, future))
        try:
            await asyncio.wait_for(future, None if left < 0 else left / 1e9)
        except BaseException as error:
            if (mode, future) in self._tasks.waiting:
                self._tasks.waiting.remove((mode, future))
            self._tasks.wake()
            if isinstance(error, asyncio.TimeoutError):
                raise Timeout(self.lock_file) from None
            raise

    async def _begin(self, mode: str, deadline: Deadline) -> None:
        take: Callable[..., Any] = self._lock.acquire_read if mode == "read" else self._lock.acquire_write
        self._tasks.changing = True
        try:
            while True:
                left = deadline.left(SLICE_NS)
                try:
                    return await finish(functools.partial(take, left / 1e9), self.executor)  # type: ignore[no-any-return]
                except Timeout:
                    if deadline.is_over():
                        raise
        except BaseException:
            self._tasks.changing = False
            if self._lock._mode and not self._tasks.depths:
                await finish(functools.partial(self._lock.release, force=True), self.executor)
            self._tasks.wake()
            raise
        finally:
            self._tasks.changing = False

    async def release(self, *, force: bool = False) -> None:
        """Gives one hold of this task back, or with `force` all of them. RuntimeError when the task has none."""
        tasks, me = self._tasks, asyncio.current_task()
        if me not in tasks.depths:
            if force:
                return
            raise RuntimeError(f"Cannot release a lock on {self.lock_file} (lock id: {id(self)}) that is not held by this task")
        if tasks.depths[me] > 1 and not force:
            tasks.depths[me] -= 1
            return
        if len(tasks.depths) > 1:
            del tasks.depths[me]
            return
        tasks.changing = True
        try:
            await finish(functools.partial(self._lock.release, force=True), self.executor)
        finally:
            tasks.changing = False
            if not self._lock._mode:
                tasks.depths.pop(me, None)
            tasks.wake()

    async def close(self) -> None:
        """Gives it back when it is held. The object cannot be used afterwards."""
        try:
            await finish(self._lock.close, self.executor)
        finally:
            self._tasks.depths.clear()
            self._tasks.wake()
            if self._own is not None:
                self._own.shutdown(wait=False)

    def __del__(self) -> None:
        own = getattr(self, "_own", None)
        if own is not None:
            own.shutdown(wait=False)
