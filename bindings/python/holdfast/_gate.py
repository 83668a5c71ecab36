"""Threads of one process that want the same lock file meet at a gate before they join the queue of all processes.

A thread that comes back at once may pass the gate again, without a switch of threads, until its turn of TURN_NS is over. Then the gate is
handed to the thread that has waited longest. Between processes each acquisition still takes its place in the queue.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections import deque
from ctypes import byref, c_void_p
from time import monotonic_ns
from typing import Any, Callable, Deque, Dict, Optional, Set, Tuple, Union
from weakref import WeakValueDictionary

from . import _abi, _state
from ._abi import Kind
from ._info import Holder
from ._library import encode, lib, new
from ._lock import Lock, look
from ._state import State
from .errors import Busy, Deadlock, Timeout
from .process import ProcessId

TURN_NS = 5_000_000
QUIET_NS = 1_000_000  # after a wake-up that came too late, the waiter is left to its own clock for this long
PROBE_S = 1.0  # how often a wait without a limit is shown to the library, which finds cycles with locks of other kinds
PROBE_WAIT_NS = 250_000_000

Key = Tuple[int, int, Union[str, bytes]]  # device and inode of the directory, and the name in it: one directory entry


class Ticket:
    """One contender. `scope` is the thread or task that it works for; `bound`: only that one gives the lock back."""

    __slots__ = ("scope", "bound", "event", "woken")

    def __init__(self, scope: object, bound: bool) -> None:
        self.scope = scope
        self.bound = bound
        self.event: Any = None
        self.woken = False

    def wake(self) -> None:
        if not self.woken:
            self.woken = True
            self.event.release()


class Place(Lock):
    """A place in the queue of all processes; `waits` is called when the place is not free at once."""

    waits: Optional[Callable[[], None]] = None

    def take(self, wait_ns: int, waits: Callable[[], None]) -> None:
        self.waits = waits
        try:
            self._take(wait_ns, 0)
        finally:
            self.waits = None  # it knows the object that waits, which may be deleted before this place

    def _take_slowly(self, wait_ns: int, cancel_fd: int, handle: Any) -> None:
        if self.waits is not None:
            self.waits()
        super()._take_slowly(wait_ns, cancel_fd, handle)

    def give_back(self) -> None:
        """Whatever is held of it: one acquisition at most, because only the owner of the gate takes it."""
        for holds in list(self._holds.values()):
            for hold in list(holds):
                self._give_back(hold)


class Gate:
    """One per directory entry and process. `owner` has passed it."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.generation = _state.generation
        self.owner: Optional[Ticket] = None
        self._mutex = threading.Lock()
        self._waiters: Deque[Ticket] = deque()
        self._turn = 0
        self._quiet_until = 0
        self._places: Dict[bool, Place] = {}

    def place(self, state: State, path: Union[str, bytes], bound: bool) -> Optional[Place]:
        """Of the thread, or, where another thread may give it back, of the process. Only the owner of the gate uses it."""
        place = self._places.get(bound)
        if place is None or place.state is not state:
            name = _entry(state, path)
            if name is None:
                return None
            place = self._places[bound] = Place(name, kind=Kind.FILE, state=state, owner=None if bound else ProcessId.of(os.getpid()))
        if place._holds:  # a release that a second signal interrupted
            place.give_back()
        return place

    def holder(self, state: Optional[State], path: Union[str, bytes]) -> Optional[Holder]:
        """The process that has the place, this one, as others see it."""
        name = None if state is None else _entry(state, path)
        info = None if name is None else look(name, kind=Kind.FILE, state=state)
        return info.holders[0] if info and info.holders else None

    def probe(self, state: State, path: Union[str, bytes]) -> None:
        """Joins the queue of all processes for an instant, so that the library sees this thread's wait. Raises Deadlock."""
        name = _entry(state, path)
        if name is not None:
            lock = Lock(name, kind=Kind.FILE, state=state)
            try:
                lock._take(PROBE_WAIT_NS, 0)
            except (Busy, Timeout):
                return
            lock.release()

    def enter(self, ticket: Ticket, wait_ns: int, waits: Callable[[], None], probe: Optional[Callable[[], None]]) -> bool:
        """Whether it passed in time; less than 0: wait without a limit, with a probe now and then. After an exception the caller leaves."""
        with self._mutex:
            if self.owner is None:
                self.owner = ticket
                return True
            if wait_ns == 0:
                return False
            ticket.event = threading.Lock()
            ticket.event.acquire()
            self._waiters.append(ticket)
        until = monotonic_ns() + wait_ns
        try:
            _waiting[ticket.scope] = self
            if wait_ns < 0 and self.is_cycle(ticket.scope):
                raise Deadlock("the thread that has it waits for a lock of this thread")
            waits()
            while True:
                left = self._left(ticket, until if wait_ns > 0 else 0)
                woken = ticket.event.acquire(True, PROBE_S if left < 0 else left)
                with self._mutex:
                    if self._passes(ticket, woken):
                        return True
                    if 0 < wait_ns and until <= monotonic_ns():
                        self._forget(ticket)
                        return False
                if left < 0 and not woken and probe is not None:
                    probe()
        finally:
            _waiting.pop(ticket.scope, None)

    def _left(self, ticket: Ticket, until: int) -> float:
        """Seconds to sleep: -1 without a limit."""
        ends = until
        if self._waiters and self._waiters[0] is ticket and self._quiet_until:
            ends = min(until, self._quiet_until) if until else self._quiet_until
        if not ends:
            return -1
        return min(max(ends - monotonic_ns(), 0) / 1e9, threading.TIMEOUT_MAX)

    def _passes(self, ticket: Ticket, woken: bool) -> bool:
        if self.owner is ticket:
            return True
        late, ticket.woken = ticket.woken, False
        if late and not woken:  # both at once, its own clock and the wake-up
            ticket.event.acquire(False)
        if self.owner is None and self._waiters[0] is ticket:
            self._waiters.popleft()
            self.owner, self._turn = ticket, monotonic_ns()
            self._quiet_until = 0
            return True
        if self._waiters[0] is ticket:
            self._quiet_until = monotonic_ns() + QUIET_NS if late else 0
        return False

    def _forget(self, ticket: Ticket) -> None:
        try:
            self._waiters.remove(ticket)
        except ValueError:
            return
        self._quiet_until = 0
        if self.owner is None and self._waiters:
            self._waiters[0].wake()

    def leave(self, ticket: Ticket) -> None:
        """Gives the gate or the place before it back; nothing when it has neither."""
        with self._mutex:
            if self.owner is not ticket:
                if ticket.event is not None:
                    self._forget(ticket)
                return
            if not self._waiters:
                self.owner = None
                return
            now = monotonic_ns()
            if now - self._turn >= TURN_NS:
                self.owner, self._turn = self._waiters.popleft(), now
                self._quiet_until = 0
                self.owner.wake()
                return
            self.owner = None
            if now >= self._quiet_until:
                self._waiters[0].wake()

    def is_cycle(self, scope: object) -> bool:
        """Whether the owner waits, over other gates, for this thread itself. It cannot answer for other processes."""
        gate: Optional[Gate] = self
        seen = set()
        while gate is not None and gate not in seen:
            seen.add(gate)
            owner = gate.owner
            if owner is None:
                return False
            if owner.scope == scope:
                return owner.bound or gate is self
            if not owner.bound:
                return False
            gate = _waiting.get(owner.scope)
        return False


class Hold:
    """One acquisition: the gate, a place in the queue, the locked descriptor. The object gives back the rest when it is deleted."""

    __slots__ = ("gate", "ticket", "place", "fd", "generation")

    def __init__(self, gate: Gate, scope: object, bound: bool) -> None:
        self.generation = -1  # nothing to give back before the ticket is complete
        self.gate = gate
        self.place: Optional[Place] = None
        self.fd = -1
        self.ticket = Ticket(scope, bound)
        self.generation = gate.generation

    def take_fd(self) -> int:
        """The descriptor, which the caller closes."""
        fd, self.fd = self.fd, -1
        _descriptors.discard(fd)
        return fd

    def end(self) -> None:
        """Gives back all of it. A forked child has no share in it."""
        if self.generation != _state.generation:
            return
        # A signal handler may raise at any instruction. Each step can be done twice, and the gate is last: behind it comes the next thread.
        try:
            if self.fd >= 0:
                with contextlib.suppress(OSError):
                    fcntl.flock(self.fd, fcntl.LOCK_UN)
                os.close(self.take_fd())
        finally:
            try:
                self._end_place()
            except BaseException:
                self._end_place()
                raise
            finally:
                self.gate.leave(self.ticket)
        self.generation = -1

    def _end_place(self) -> None:
        if self.place is not None:
            self.place.give_back()
            self.place = None

    def __del__(self) -> None:
        self.end()


def keep(fd: int) -> int:
    """A descriptor that a forked child closes: while it is open there, the lock outlives its owner."""
    _descriptors.add(fd)
    return fd


def gate_of(directory: Union[str, bytes], name: Union[str, bytes]) -> Gate:
    """The gate of that directory entry; the directory is made when it does not exist."""
    try:
        found = os.stat(directory or ".")
    except FileNotFoundError:
        os.makedirs(directory, exist_ok=True)
        found = os.stat(directory)
    key = (found.st_dev, found.st_ino, name)
    gate = _gates.get(key)
    if gate is None:
        with _mutex:
            gate = _gates.get(key)
            if gate is None:
                gate = _gates[key] = Gate(key)
    return gate


def _entry(state: State, path: Union[str, bytes]) -> Optional[str]:
    """The name that the library gives to this directory entry; None: it has none, so flock(2) decides alone."""
    handle = c_void_p()
    opts = new(_abi.hf_file_opts, flags=_abi.HF_FILE_CREATE | _abi.HF_FILE_REPLACE_SYMLINK | _abi.HF_FILE_BREAK_LINKS)
    if lib.hf_file_open(state.locks(), encode(path, "path"), byref(opts), byref(handle), None) < 0:
        return None
    try:
        return os.fsdecode(lib.hf_file_lock_name(handle))
    finally:
        lib.hf_file_close(handle, None)


_gates: WeakValueDictionary[Key, Gate] = WeakValueDictionary()
_waiting: Dict[Any, Gate] = {}
_descriptors: Set[int] = set()
_mutex = threading.Lock()


def _after_fork() -> None:
    global _gates, _mutex
    _gates, _mutex = WeakValueDictionary(), threading.Lock()
    _waiting.clear()
    while _descriptors:
        try:
            os.close(_descriptors.pop())
        except OSError:
            pass


os.register_at_fork(after_in_child=_after_fork)
