"""The waits of Holdfast for asyncio.

    async with holdfast.aio.lock("build", wait=5) as l: …
    info = await holdfast.aio.wait(session)
    report = await holdfast.aio.land("fix-160", verify="make test")

A task that is cancelled while it waits leaves the queue before CancelledError goes on; a lock that was granted in that very moment
is given back. Tasks are contenders like threads. Each acquisition has a thread of its own for as long as it is held, because the
owner of a lock is a thread; cycles of tasks are not found by the deadlock detection, so give such waits a time.
"""
from __future__ import annotations

import asyncio
import os
import queue
import threading
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, Generic, Optional, Type, TypeVar

from ._info import LandReport, SessionInfo
from ._land import land as _land
from ._lock import Hold
from ._lock import Lock as _Lock
from ._session import Session
from ._time import Duration, waiting
from ._wait import pipe
from .errors import Cancelled, NotHeld

T = TypeVar("T")


class _Job(Generic[T]):
    """One call in a thread, whose result is either taken by the task or undone."""

    def __init__(self, call: Callable[[], T], undo: Callable[[T], object]) -> None:
        self._call, self._undo = call, undo
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()
        self._mutex = threading.Lock()
        self._abandoned = self._finished = False

    def __call__(self) -> None:
        result: Any = None
        error: Optional[BaseException] = None
        try:
            result = self._call()
        except BaseException as failed:  # noqa: B902 (it goes to the task)
            error = failed
        with self._mutex:
            self._finished = True
            abandoned = self._abandoned
        if abandoned and error is None:
            self._undo(result)
            error = Cancelled("the wait was cancelled")
        try:
            self._loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:  # the loop is closed
            if error is None:
                self._undo(result)

    def _deliver(self, result: Any, error: Optional[BaseException]) -> None:
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)

    def abandon(self) -> bool:
        """True: the thread undoes what it gets. False: it has finished, and what it got is ours."""
        with self._mutex:
            self._abandoned = not self._finished
            return self._abandoned


class _Thread:
    """A thread that makes calls one after the other until it is told to end."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="holdfast-aio", daemon=True).start()

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job()
            del job

    def end(self) -> None:
        self._jobs.put(None)

    async def call(self, call: Callable[[], T]) -> T:
        """To its end, whatever happens to the task meanwhile; a cancellation is passed on afterwards."""
        job = _Job(call, lambda result: None)
        self._jobs.put(job)
        return await _to_its_end(job.future)

    async def wait(self, call: Callable[[int], T], undo: Callable[[T], object]) -> T:
        """A call that ends with Cancelled when its descriptor is readable."""
        read, write = pipe()
        try:
            job = _Job(lambda: call(read), undo)
            self._jobs.put(job)
            try:
                return await asyncio.shield(job.future)
            except asyncio.CancelledError:
                if job.abandon():
                    os.write(write, b"x")
                try:
                    result = await _to_its_end(job.future, swallow=True)
                except Exception:
                    raise asyncio.CancelledError from None
                # It was granted before it could be abandoned.
                await self.call(lambda: undo(result))
                raise
        finally:
            os.close(read)
            os.close(write)


async def _to_its_end(future: Awaitable[T], swallow: bool = False) -> T:
    inner = asyncio.ensure_future(future)
    cancelled = False
    while not inner.done():
        try:
            await asyncio.shield(inner)
        except asyncio.CancelledError:
            cancelled = True
        except Exception:
            break
    result = inner.result()
    if cancelled and not swallow:
        raise asyncio.CancelledError
    return result


class Lock:
    """As holdfast.Lock, for tasks: `async with`, `await acquire()`, `await release()`. May be shared by tasks; each has its own hold."""

    def __init__(self, name: str, **options: Any) -> None:
        self._options = options
        self.name = name
        self._held: Dict[Any, Any] = {}

    async def acquire(self, wait: Optional[Duration] = None) -> Lock:
        lock = _Lock(self.name, **self._options)
        wait_ns = lock._wait_ns if wait is None else waiting(wait)
        thread = _Thread()

        def undo(hold: Hold) -> None:
            if not hold.released:
                lock.release()

        try:
            await thread.wait(lambda fd: lock._take(wait_ns, fd), undo)
        except BaseException:
            thread.end()
            raise
        self._held[asyncio.current_task()] = (thread, lock)
        return self

    def _mine(self) -> _Lock:
        found = self._held.get(asyncio.current_task())
        if found is None and len(self._held) == 1:
            found = next(iter(self._held.values()))
        if found is None:
            raise NotHeld(f"{self.name}: not held by this task")
        return found[1]  # type: ignore[no-any-return]

    async def release(self) -> None:
        """Gives it back, also when the task is cancelled meanwhile. Raises Stale when it was lost."""
        lock = self._mine()
        task, (thread, _) = next((item for item in self._held.items() if item[1][1] is lock))
        del self._held[task]
        try:
            await thread.call(lock.release)
        finally:
            thread.end()

    @property
    def token(self) -> int:
        return self._mine().token

    def held(self) -> bool:
        return any(lock.held() for _, lock in self._held.values())

    async def check(self) -> None:
        """Raises Stale when the lock was lost."""
        self._mine().check()

    async def renew(self, ttl: Optional[Duration] = None) -> None:
        self._mine().renew(ttl)

    async def __aenter__(self) -> Lock:
        return await self.acquire()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.release()


def lock(name: str, wait: Optional[Duration] = None, ttl: Optional[Duration] = None, **options: Any) -> Lock:
    """`async with holdfast.aio.lock("build", wait=5) as l:`; options as for holdfast.Lock."""
    return Lock(name, wait=wait, ttl=ttl, **options)


async def wait(session: Session, timeout: Optional[Duration] = None) -> SessionInfo:
    """As Session.wait. A task that is cancelled stops waiting; the session goes on."""
    thread = _Thread()
    try:
        return await thread.wait(lambda fd: session._wait(waiting(timeout), fd), lambda info: None)
    finally:
        thread.end()


async def land(name: str, **options: Any) -> LandReport:
    """As holdfast.land, with its options. A task that is cancelled ends the landing with its verifier before CancelledError goes on: then nothing
    has landed, unless it had in that very moment; `landings` says which.
    """
    thread = _Thread()
    try:
        return await thread.wait(lambda fd: _land(name, _cancel_fd=fd, **options), lambda report: None)
    finally:
        thread.end()
