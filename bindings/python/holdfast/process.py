"""Which process is meant, and is it still that one?

A pid is a number that the kernel gives away again. A ProcessId is the pid with what makes it unique: store its text, not the pid.

    agent = ProcessId.of(child.pid)         # while it is surely the right one
    Path("agent.id").write_text(str(agent))
    …
    ProcessId.parse(Path("agent.id").read_text()).signal(signal.SIGTERM)   # that process, or none
"""
from __future__ import annotations

import ctypes
import os
from ctypes import byref
from typing import Any

from . import _abi
from ._abi import Liveness
from ._library import check, lib


class ProcessId:
    """The identity of one process: constant, comparable, hashable, and a text that can be stored."""

    __slots__ = ("_raw", "_text")

    def __init__(self, raw: Any) -> None:
        """From the library's struct; use `of`, `self` or `parse`."""
        # A copy: the struct may live in memory of the library's.
        self._raw = _abi.hf_proc_id.from_buffer_copy(raw)
        out = ctypes.create_string_buffer(_abi.HF_PROC_TEXT_MAX)
        lib.hf_proc_format(byref(self._raw), out)
        self._text = out.value.decode()

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """The process that has `pid` now. Raises Gone."""
        raw, err = _abi.hf_proc_id(), _abi.hf_err()
        check(lib.hf_proc_identify(pid, byref(raw), byref(err)), err)
        return cls(raw)

    @classmethod
    def self(cls) -> ProcessId:
        """The calling process."""
        raw, err = _abi.hf_proc_id(), _abi.hf_err()
        check(lib.hf_proc_self(byref(raw), byref(err)), err)
        return cls(raw)

    @classmethod
    def parse(cls, text: str) -> ProcessId:
        """Reads what str() gave. Raises Syntax."""
        raw, err, data = _abi.hf_proc_id(), _abi.hf_err(), os.fsencode(text)
        check(lib.hf_proc_parse(data, len(data), byref(raw), byref(err)), err)
        return cls(raw)

    @property
    def pid(self) -> int:
        return int(self._raw.pid)

    def liveness(self) -> Liveness:
        return Liveness(lib.hf_proc_liveness(byref(self._raw), 0, None))

    def alive(self) -> bool:
        """False only when it is proven that this process has ended."""
        return self.liveness() is not Liveness.DEAD

    def evidence(self) -> str:
        """What the liveness rests on, in words."""
        out = ctypes.create_string_buffer(_abi.HF_EVIDENCE_MAX)
        lib.hf_proc_liveness(byref(self._raw), 0, out)
        return os.fsdecode(out.value)

    def signal(self, number: int) -> None:
        """Sends the signal to exactly this process. Raises Gone, Recycled, Unknown, Protected or Foreign, and has then sent none."""
        err = _abi.hf_err()
        check(lib.hf_proc_signal(byref(self._raw), int(number), 0, byref(err)), err)

    def open(self) -> int:
        """A pidfd of exactly this process, to be closed by the caller; poll it to see the exit."""
        fd, err = ctypes.c_int(-1), _abi.hf_err()
        check(lib.hf_proc_open(byref(self._raw), 0, byref(fd), byref(err)), err)
        return fd.value

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"ProcessId({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessId) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Any:
        return ProcessId.parse, (self._text,)
