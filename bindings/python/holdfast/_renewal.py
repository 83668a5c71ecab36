"""One thread that renews the leases of all locks of this process.

A lease is renewed after a third of it. A renewal that fails is tried again every tenth, until the lease, counted from the last
renewal that worked, has run out: from then on the lock may be another's, whatever the error was. (As lock/lease/renewal.h does it.)
"""
from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING, List, Tuple

from . import _state
from .errors import Stale

if TYPE_CHECKING:
    from ._lock import Hold


class Renewer:
    def __init__(self) -> None:
        self._due: List[Tuple[float, int, Hold]] = []
        self._changed = threading.Condition()
        self._number = itertools.count()
        self._thread: "threading.Thread | None" = None
        self._generation = _state.generation

    def add(self, hold: Hold) -> None:
        hold.renewed = time.monotonic()
        with self._changed:
            heapq.heappush(self._due, (hold.renewed + hold.ttl / 3, next(self._number), hold))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="holdfast-renewal", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _next(self) -> Hold:
        with self._changed:
            while True:
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(left)

    def _run(self) -> None:
        while True:
            hold = self._next()
            pause = self._step(hold)
            if pause is not None:
                with self._changed:
                    heapq.heappush(self._due, (time.monotonic() + pause, next(self._number), hold))
            del hold

    @staticmethod
    def _step(hold: Hold) -> "float | None":
        """When to come again; None: never."""
        begun = time.monotonic()
        if hold.released:
            return None
        try:
            hold.renew()
        except Exception as error:
            if hold.released:
                return None
            if not isinstance(error, Stale) and begun < hold.renewed + hold.ttl:
                return hold.ttl / 10
            hold.lose(error)
            return None
        hold.renewed = begun
        return hold.ttl / 3


_renewer = Renewer()


def add(hold: Hold) -> None:
    global _renewer
    if _renewer._generation != _state.generation:  # after a fork the thread is the parent's
        _renewer = Renewer()
    _renewer.add(hold)
