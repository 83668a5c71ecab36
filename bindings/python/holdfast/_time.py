"""Durations and moments, as Python has them and as the library has them."""
from __future__ import annotations

import ctypes
import datetime
import math
import time
from ctypes import byref
from typing import Optional, Union

from . import _abi
from ._library import check, lib

#: Seconds, a timedelta, or a text as the command line takes it: "250ms", "30s", "5m", "1.5h", "2d".
Duration = Union[int, float, str, datetime.timedelta]

_MAX = 2**63 - 1


def nanoseconds(duration: Duration) -> int:
    """The duration in nanoseconds, cut to what fits."""
    if type(duration) is int:
        return min(duration * 1_000_000_000, _MAX)
    if isinstance(duration, str):
        raw, ns = duration.encode(), ctypes.c_int64()
        check(lib.hf_parse_duration(raw, len(raw), byref(ns)))
        return ns.value
    seconds = duration.total_seconds() if isinstance(duration, datetime.timedelta) else float(duration)
    if math.isnan(seconds):
        raise ValueError("a duration that is not a number")
    return int(seconds * 1e9) if seconds < _MAX / 1e9 else _MAX


def optional(duration: Optional[Duration]) -> int:
    """0 for None: the library's default."""
    return 0 if duration is None else nanoseconds(duration)


def waiting(wait: Optional[Duration]) -> int:
    """How long to wait: None, or less than 0, for ever (-1); 0 not at all."""
    if wait is None:
        return -1
    return max(nanoseconds(wait), -1)


class Deadline:
    """What is left of a wait that is done in several steps."""

    __slots__ = ("_until", "_ns")

    def __init__(self, ns: int) -> None:
        self._ns = ns
        self._until = time.monotonic_ns() + ns

    def left(self, at_most: int = _MAX) -> int:
        if self._ns < 0:
            return -1 if at_most == _MAX else at_most
        return max(0, min(self._until - time.monotonic_ns(), at_most))

    def is_over(self) -> bool:
        return self._ns >= 0 and self._until <= time.monotonic_ns()


def moment(wall: _abi.hf_wall) -> Optional[datetime.datetime]:
    """A time in UTC; None: not known."""
    if wall.ns == 0:
        return None
    return datetime.datetime.fromtimestamp(wall.ns // 1_000_000_000, datetime.timezone.utc).replace(microsecond=wall.ns % 1_000_000_000 // 1000)


def seconds(ns: int) -> Optional[float]:
    """None for what is negative: not known, or none."""
    return None if ns < 0 else ns / 1e9
