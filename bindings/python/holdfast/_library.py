"""Finds libholdfast, loads it, and turns what its functions return into exceptions.

Looked for, in this order: $HOLDFAST_LIBRARY (an absolute path), the library that a wheel carries beside this
package, that of the build tree which this package lies in, the installed one.
"""
from __future__ import annotations

import ctypes
import errno
import glob
import os
from ctypes import byref
from typing import Any, Iterator, Optional

from . import _abi, errors
from ._base import HoldfastError

VERSION = "0.1.0"
SONAME = "libholdfast.so.0"

_HERE = os.path.dirname(os.path.abspath(__file__))


def _candidates() -> Iterator[str]:
    yield os.path.join(_HERE, "lib", SONAME)
    tree = os.path.join(_HERE, "..", "..", "..")
    if os.path.exists(os.path.join(tree, "src", "holdfast.map")):
        built = glob.glob(os.path.join(glob.escape(os.path.normpath(tree)), "build", "*", "src", SONAME))
        # The flavours with sanitizers cannot be loaded into an interpreter; of the others, the newest.
        usable = [path for path in built if path.split(os.sep)[-3] in ("release", "bench", "gcc", "clang", "ndebug")]
        yield from sorted(usable, key=os.path.getmtime, reverse=True)


def _find() -> str:
    given = os.environ.get("HOLDFAST_LIBRARY")
    if given:
        if not os.path.isabs(given):
            raise ImportError(f"HOLDFAST_LIBRARY is not an absolute path: {given}")
        return given
    return next((path for path in _candidates() if os.path.exists(path)), SONAME)


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path, use_errno=False)
    except OSError as error:
        raise ImportError(f"{path}: {error}; install libholdfast, or set HOLDFAST_LIBRARY to its absolute path") from error
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path}: it has no {name}; install library and module from one build") from None
        function.restype = result
        function.argtypes = parameters
    version = library.hf_version().decode()
    if version != VERSION:
        raise ImportError(f"{path}: it is of version {version}, and this module of {VERSION}; install both from one build")
    return library


lib = _load()
path: str = lib._name


def failure(code: int, err: Optional[Any] = None) -> Exception:
    """The exception of a return value, with what the library said about it."""
    text, detail = "", ""
    if err is not None and err.code == code:
        out = ctypes.create_string_buffer(_abi.HF_ERR_TEXT_MAX)
        lib.hf_err_format(byref(err), out, len(out))
        text, detail = os.fsdecode(out.value), os.fsdecode(err.detail)
    kind = errors.BY_CODE.get(code)
    if kind is None:
        if not text:
            return OSError(-code, os.strerror(-code))
        # Without the errno's own text, which OSError adds again.
        return OSError(-code, f"{os.strerror(-code)}: {detail or os.fsdecode(err.op)}", os.fsdecode(err.subject) or None)  # type: ignore[union-attr]
    error: HoldfastError = kind(text or (kind.__doc__ or kind.__name__).rstrip("."))
    if err is not None and err.code == code:
        error.op, error.subject, error.detail, error.errno = os.fsdecode(err.op), os.fsdecode(err.subject), detail, err.sys
    return error


def check(code: int, err: Optional[Any] = None) -> int:
    """`code` if it is a success."""
    if code < 0:
        raise failure(code, err)
    return code


def encode(text: object, what: str = "name") -> bytes:
    """A name or path as the library takes it: bytes without NUL."""
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} must be str, bytes or os.PathLike, not {type(text).__name__}")
    raw = os.fsencode(text)
    if b"\0" in raw:
        raise ValueError(f"{what} has a NUL byte in it")
    return raw


def decode(raw: Optional[bytes]) -> Optional[str]:
    return None if raw is None else os.fsdecode(raw)


def new(struct: Any, **fields: Any) -> Any:
    """A struct of options with its size set."""
    return struct(size=ctypes.sizeof(struct), **fields)


EINVAL = -errno.EINVAL
EINTR = -errno.EINTR
