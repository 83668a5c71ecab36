"""Names from outside, made harmless."""
from __future__ import annotations

import ctypes
import os
from ctypes import byref
from typing import Optional, Union

from . import _abi
from ._library import check, lib

Name = Union[str, bytes]


def sanitize(name: Optional[Name]) -> str:
    """Keeps A-Z a-z 0-9 _ - and turns every other byte into "_"; None or nothing gives "unknown". For showing, not for paths."""
    raw = None if name is None else os.fsencode(name)
    size = len(raw) if raw else 0
    out = ctypes.create_string_buffer(max(size, len("unknown")) + 1)
    lib.hf_name_sanitize(raw, size, out, len(out))
    return out.value.decode("ascii")


def key(name: Name) -> str:
    """The file name of a name: different names have different keys, always. Raises errors.Name."""
    raw, err = os.fsencode(name), _abi.hf_err()
    out = ctypes.create_string_buffer(_abi.HF_NAME_KEY_MAX)
    check(lib.hf_name_key(raw, len(raw), out, byref(err)), err)
    return out.value.decode("ascii")


def unkey(key: str) -> str:
    """The name of a key: the exact inverse. Raises StoredId."""
    raw, err = os.fsencode(key), _abi.hf_err()
    out = ctypes.create_string_buffer(_abi.HF_NAME_MAX + 1)
    size = check(lib.hf_name_unkey(raw, len(raw), out, byref(err)), err)
    return os.fsdecode(out.raw[:size])
