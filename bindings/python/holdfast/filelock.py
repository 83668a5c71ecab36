"""A drop-in for the package filelock: the same names and options, over flock(2) on the same file, so that both exclude each other.

    from holdfast.filelock import FileLock, Timeout          # instead of: from filelock import …

What is better: waiters of this package are served in order and wake at once, a Timeout names the holder, two locks of one file
in one thread are a Deadlock instead of an endless wait, and a forked child neither holds nor frees the lock of its parent.

Threads that want the same file meet inside the process first. AsyncFileLock and ReadWriteLock poll, as in that package. SoftFileLock is FileLock:
it excludes other locks of this package, not the SoftFileLock of that one.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._filelock import AcquireReturnProxy, BaseFileLock, Timeout, UnixFileLock, WindowsFileLock
from ._library import VERSION as __version__

if TYPE_CHECKING:
    from ._filelock_aio import AsyncAcquireReturnProxy, AsyncUnixFileLock, BaseAsyncFileLock
    from ._readwrite import ReadWriteLock
    from ._readwrite_aio import AsyncAcquireReadWriteReturnProxy, AsyncReadWriteLock

    AsyncFileLock = AsyncSoftFileLock = AsyncUnixFileLock

__all__ = [
    "AcquireReturnProxy", "AsyncAcquireReadWriteReturnProxy", "AsyncAcquireReturnProxy", "AsyncFileLock", "AsyncReadWriteLock", "AsyncSoftFileLock",
    "AsyncUnixFileLock", "BaseAsyncFileLock", "BaseFileLock", "FileLock", "ReadWriteLock", "SoftFileLock", "Timeout", "UnixFileLock",
    "WindowsFileLock", "__version__",
]

FileLock = SoftFileLock = UnixFileLock


def __getattr__(name: str) -> Any:
    """Loads asyncio and sqlite3 only for a program that needs them."""
    if name in ("AsyncFileLock", "AsyncSoftFileLock"):
        name = "AsyncUnixFileLock"
    from importlib import import_module

    for module in ("_filelock_aio", "_readwrite", "_readwrite_aio") if name in __all__ else ():
        found = getattr(import_module("holdfast." + module), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
