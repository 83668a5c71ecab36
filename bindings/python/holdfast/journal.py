"""The journal: the record of every decision, append-only JSON lines from many processes.

    journal.append("note", "fix-160", text="started")
    for record in journal.query(event="lock_fail_open", since="1h"): print(record["name"], record["waited_ms"])

The events are a closed list (`events`): a misspelt one, a missing or an unknown field raises errors.Event.
"""
from __future__ import annotations

import json
from ctypes import byref, c_void_p
from datetime import datetime
from typing import Any, Dict, Iterator, List, Optional, Union

from . import _abi
from ._library import EINTR, check, encode, failure, lib
from ._state import State, current
from ._time import Deadline, Duration, nanoseconds, waiting
from .errors import Event

#: A record as it is stored: "seq", "ts", "pid", "event", "name", and the event's own fields.
Record = Dict[str, Any]

_SLICE_NS = 500_000_000  # a signal that comes just before the wait in C is noticed after so long


def events() -> Dict[str, str]:
    """Every event there is, with its meaning."""
    rows = (lib.hf_event_info(number) for number in range(_abi.HF_EVENT_COUNT))
    return {row[0].name.decode(): row[0].summary.decode() for row in rows}


def append(event: str, name: Optional[str] = None, *, durable: bool = False, state: Optional[State] = None, **fields: Union[str, int, bool, None]) -> int:
    """Appends one record and returns its number. Raises Event, or Lost when it could not be written in time."""
    raw = encode(event, "event")
    info = lib.hf_event_find(raw, len(raw))
    if not info:
        raise Event(f"{event}: not an event of the journal's table")
    array = (_abi.hf_field * max(len(fields), 1))()
    for at, (key, value) in zip(array, fields.items()):
        at.key = encode(key, "field")
        if isinstance(value, bool):
            at.type, at.number = _abi.HF_BOOL, int(value)
        elif isinstance(value, int):
            at.type, at.number = _abi.HF_INT, value
        else:
            at.type, at.text = _abi.HF_TEXT, None if value is None else encode(value, key)
    handle, err = current(state).journal, _abi.hf_err()
    if not handle:
        raise failure(_abi.HF_E_LOST)
    check(lib.hf_journal_append(handle, info[0].event, None if name is None else encode(name), array, len(fields),
                                _abi.HF_JOURNAL_DURABLE if durable else 0, byref(err)), err)
    return int(lib.hf_journal_last_seq(handle))


class _Reader:
    def __init__(self, state: State) -> None:
        self._state, self._handle, err = state, c_void_p(), _abi.hf_err()
        check(lib.hf_journal_read(state.handle, byref(self._handle), byref(err)), err)
        self._raw, self._err = _abi.hf_record(), err

    def next(self) -> Optional[Record]:
        self._state._check()
        if check(lib.hf_journal_next(self._handle, byref(self._raw), byref(self._err)), self._err) == 0:
            return None
        record: Record = json.loads(self._raw.line[: self._raw.line_len])
        record["_ns"] = self._raw.time.ns
        return record

    def wait(self, ns: int) -> None:
        code = lib.hf_journal_wait(self._handle, ns, byref(self._err))
        if code != EINTR:
            check(code, self._err)

    def __del__(self, free: Any = lib.hf_journal_reader_free) -> None:
        if getattr(self, "_handle", None):
            free(self._handle)


def _earliest(since: Union[Duration, datetime, None]) -> int:
    if since is None:
        return 0
    if isinstance(since, datetime):
        return int(since.timestamp() * 1e9)
    return int(lib.hf_wall_now().ns - nanoseconds(since))


def _fits(record: Record, event: Optional[str], name: Optional[str], earliest: int) -> bool:
    at = record.pop("_ns")
    return at >= earliest and (event is None or record["event"] == event) and (name is None or record.get("name") == name)


def query(event: Optional[str] = None, name: Optional[str] = None, since: Union[Duration, datetime, None] = None, limit: Optional[int] = None, *,
          state: Optional[State] = None) -> List[Record]:
    """The records that fit, oldest first; `limit`: the last so many. `since` is a moment, or how long ago ("1h")."""
    found: List[Record] = []
    reader, earliest = _Reader(current(state)), _earliest(since)
    while True:
        record = reader.next()
        if record is None:
            return found if limit is None else found[len(found) - min(limit, len(found)):]
        if _fits(record, event, name, earliest):
            found.append(record)


def follow(event: Optional[str] = None, name: Optional[str] = None, since: Union[Duration, datetime, None] = 0, *, timeout: Optional[Duration] = None,
           state: Optional[State] = None) -> Iterator[Record]:
    """The records as they come, without polling; from now on, or from `since`. Ends after `timeout` without one that fits; None: never."""
    reader, earliest, limit = _Reader(current(state)), _earliest(since), waiting(timeout)
    return _following(reader, event, name, earliest, limit)


def _following(reader: _Reader, event: Optional[str], name: Optional[str], earliest: int, limit: int) -> Iterator[Record]:
    deadline = Deadline(limit)
    while True:
        record = reader.next()
        if record is None:
            if deadline.is_over():
                return
            reader.wait(deadline.left(_SLICE_NS))
        elif _fits(record, event, name, earliest):
            yield record
            deadline = Deadline(limit)
