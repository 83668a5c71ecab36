"""holdfast.filelock for asyncio. These locks poll while they wait, as in the package filelock; holdfast.aio has locks with a fair queue."""
from __future__ import annotations

import asyncio
import os
from concurrent.futures import Executor
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, Callable, NoReturn, Optional, Type, TypeVar, Union

from . import _state
from ._filelock import LOG, OPTIONS, UNSET_MODE, BaseFileLock, Context, UnixFileLock, Wait, raise_both
from ._state import State
from .errors import Forked

A = TypeVar("A", bound="BaseAsyncFileLock")


class AsyncAcquireReturnProxy:
    """The result of `await acquire()`: releases at the end of an `async with`."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    async def __aenter__(self) -> Any:
        return self.lock

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.lock.__aexit__(kind, error, trace)


async def finish(call: Callable[[], Any], executor: Optional[Executor]) -> Any:
    """Runs the call in the executor to its end. If the task is cancelled in the meantime, CancelledError is raised when the call has ended."""
    future = asyncio.get_running_loop().run_in_executor(executor, call)
    cancelled: Optional[asyncio.CancelledError] = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from future.exception()
    return future.result()


class BaseAsyncFileLock(BaseFileLock):
    """BaseFileLock for tasks: `async with`, `await acquire()`, `await release()`. The tasks that use one object share its hold, which is counted.

    run_in_executor   each attempt runs in a thread, so that a slow file system does not stop the loop
    executor          the executor; None: the default executor of the running loop
    loop              accepted for compatibility: attempts belong to the running loop
    """

    _defaults = {**OPTIONS, "thread_local": False}
    _scope_words = "BaseAsyncFileLock instance in this task"

    def __init__(self, lock_file: Union[str, "os.PathLike[Any]"], timeout: float = -1, mode: int = UNSET_MODE, thread_local: bool = False, *,
                 blocking: bool = True, is_singleton: bool = False, poll_interval: float = 0.05, lifetime: Optional[float] = None,
                 context_error_policy: str = "chain", close_error_policy: str = "default", fallback_to_soft: bool = True,
                 preserve_lock_file: bool = False, on_acquired: Optional[Callable[[int], object]] = None,
                 loop: Optional[asyncio.AbstractEventLoop] = None, run_in_executor: bool = True, executor: Optional[Executor] = None,
                 state: Optional[State] = None) -> None:
        if thread_local and run_in_executor:
            raise ValueError("run_in_executor is not supported when thread_local is True")
        super().__init__(lock_file, timeout, mode, thread_local, blocking=blocking, is_singleton=is_singleton, poll_interval=poll_interval,
                         lifetime=lifetime, context_error_policy=context_error_policy, close_error_policy=close_error_policy,
                         fallback_to_soft=fallback_to_soft, preserve_lock_file=preserve_lock_file, on_acquired=on_acquired, state=state)
        self.loop = loop
        self.run_in_executor = run_in_executor
        self.executor = executor
        self._changing = False

    async def acquire(self, timeout: Optional[float] = None, poll_interval: Optional[float] = None, *, blocking: Optional[bool] = None,  # type: ignore[override]
                      cancel_check: Optional[Callable[[], bool]] = None) -> AsyncAcquireReturnProxy:
        """Takes the lock, or raises Timeout. A cancelled task does not hold the lock when it raises CancelledError."""
        context = self._context
        wait = Wait(context, timeout, poll_interval, blocking, cancel_check)
        while True:
            if context.is_held and not self._changing:
                context.lock_counter += 1
                break
            if not self._changing:
                self._changing = True
                try:
                    if await self._attempt(context, wait):
                        break
                finally:
                    self._changing = False
            wait.give_up(self)
            self._say_waiting(wait)
            await asyncio.sleep(wait.interval())
        LOG.debug("Lock %s acquired on %s", id(self), context.lock_file)
        return AsyncAcquireReturnProxy(self)

    async def _attempt(self, context: Context, wait: Wait) -> bool:
        context.scope = asyncio.current_task()
        if wait.ns < 0:
            self._refuse_own()
        context.generation, context.lock_counter = _state.generation, 0
        LOG.debug("Attempting to acquire lock %s on %s", id(self), context.lock_file)
        try:
            await self._run(self._acquire)
            if not context.is_held:
                return False
            if self._on_acquired is not None:
                await self._run(lambda: self._on_acquired(context.lock_file_fd))  # type: ignore[misc, arg-type]
            context.lock_counter = 1
            return True
        except BaseException as error:
            if context.is_held:
                try:
                    await self._run(self._release)
                except BaseException as failed:
                    raise_both("the acquisition and the release failed", error, failed)
            raise

    def _refuse_own(self) -> None:
        """Raises Deadlock when this task has the lock by another object."""

    async def _run(self, call: Callable[[], Any]) -> None:
        if iscoroutinefunction(call):
            await call()
        elif self.run_in_executor:
            await finish(call, self.executor)
        else:
            call()

    async def release(self, force: bool = False) -> None:
        """Undoes one acquisition, or all of them with `force`. A cancellation does not stop a release."""
        context = self._context
        if context.lock_file_fd is None or self._changing:
            return
        if context.generation != _state.generation:
            raise Forked(f"{context.lock_file}: locked by the parent process before the fork")
        if context.lock_counter > 1 and not force:
            context.lock_counter -= 1
            return
        LOG.debug("Attempting to release lock %s on %s", id(self), context.lock_file)
        self._changing = True
        try:
            await self._run(self._release)
        finally:
            self._changing = False
            if context.lock_file_fd is None:
                context.lock_counter = 0
        LOG.debug("Lock %s released on %s", id(self), context.lock_file)

    def __enter__(self) -> NoReturn:
        raise NotImplementedError("use `async with`: acquire and release are coroutines")

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        raise NotImplementedError("use `async with`: acquire and release are coroutines")

    async def __aenter__(self: A) -> A:
        await self.acquire()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        try:
            await self.release()
        except BaseException as failed:
            if error is not None and self._context_error_policy == "group":
                raise_both("the block and the release of the lock failed", error, failed)
            raise

    def __del__(self) -> None:
        """A hold ends with its object; there may be no loop left to await in."""


class AsyncUnixFileLock(UnixFileLock, BaseAsyncFileLock):
    """flock(2) on the lock file, for tasks."""
