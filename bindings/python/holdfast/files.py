"""Shared files: read, change and replace under a lock that other tools respect.

    with holdfast.file_lock("CLAUDE.md", wait=5):
        …                                                    # your own tool, under the lock
    holdfast.edit_block("CLAUDE.md", "rules", "Run the tests.")
    holdfast.edit_file("agents.json", lambda old: json.dumps({**json.loads(old or "{}"), "runs": 1}))

The lock is that of the directory entry: a named lock with a fair queue, and flock(2) on ".<leaf>.lock" beside the file, which
other tools (PACT, flock(1)) use, too. `file_lock` makes that file; the others take it if it is there. The file is the old or the new one at every instant, and keeps its mode and owner. What a
process that does not lock saves meanwhile is noticed and never overwritten: then the change is made again, from the new content.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import time
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Type, Union, overload

from . import _abi, _state, journal
from ._abi import Style
from ._library import check, encode, lib, new
from ._lock import Lock, busy
from ._state import Path, State, current
from ._time import Deadline, Duration, waiting
from ._wait import Interruptible
from .errors import Busy, Changed, Forked, HoldfastError, Timeout

#: What is waited for a file's lock unless something else is said.
WAIT = _abi.HF_FILE_WAIT_NS / 1e9


class SharedFile:
    """A shared file under its lock. `file_lock`, `edit_file` and `edit_block` are the short ways to it.

    create           a missing file counts as an empty one
    root             the file must be inside this directory
    replace_symlink  a symlink is replaced; follow: it is followed, inside `root`, without one in its own directory; else it is refused
    sidecar          ".<leaf>.lock" is made and locked, too, for tools that lock by it; else it is locked if it is there, or if
                     other users may change the file
    mode             of a file that is made
    break_links      a file with several names is replaced; its other names keep the old content
    backups          keep that many earlier versions, "<leaf>.~1~" the newest
    fence            a lock that must still be held when the file is replaced; else Stale, and the old file stays
    """

    def __init__(self, path: Path, wait: Optional[Duration] = WAIT, *, create: bool = False, root: Optional[Path] = None, replace_symlink: bool = False,
                 follow: bool = False, break_links: bool = False, backups: int = 0, fence: Optional[Lock] = None,
                 sidecar: bool = False, mode: int = 0, state: Optional[State] = None) -> None:
        self._state = current(state)
        self._generation = _state.generation
        self._handle = c_void_p()
        self._raw = encode(path, "path")
        self._opts = new(_abi.hf_file_opts, root=None if root is None else encode(root, "root"), backups=backups, mode=mode, journal=self._state.journal)
        self._opts.flags = ((_abi.HF_FILE_CREATE if create else 0) | (_abi.HF_FILE_REPLACE_SYMLINK if replace_symlink else 0)
                            | (_abi.HF_FILE_FOLLOW if follow else 0) | (_abi.HF_FILE_BREAK_LINKS if break_links else 0)
                            | (_abi.HF_FILE_SIDECAR if sidecar else 0))
        if fence is not None:
            self._opts.fence_name, self._opts.fence_token, self._opts.fence_kind = fence._raw, fence.token, fence._kind
        self._open(waiting(wait), 0)

    def _open(self, wait_ns: int, cancel_fd: int) -> None:
        err, blocker, deadline = _abi.hf_err(), _abi.hf_holder(), Deadline(wait_ns)

        def attempt(wait_ns: int, cancel_fd: int, go_on: Optional[int]) -> int:
            self._opts.cancel_fd, self._opts.go_on = cancel_fd, go_on
            code = lib.hf_file_open(self._state.locks(), self._raw, byref(self._opts), byref(self._handle), byref(err))
            return int(code if code < 0 else lib.hf_file_lock(self._handle, wait_ns, byref(blocker), byref(err)))

        try:
            while True:
                if wait_ns == 0 or cancel_fd:
                    code = attempt(deadline.left(), cancel_fd, None)
                else:
                    with Interruptible() as wait:
                        code = attempt(deadline.left(), wait.fd, wait.go_on_pointer)
                if code != _abi.HF_E_CANCELLED or cancel_fd:
                    break
                self.close()
            if code < 0:
                raise busy(code, err, blocker)
        except BaseException:
            self.close()
            raise

    def _check(self) -> c_void_p:
        if self._generation != _state.generation:
            raise Forked(f"{os.fsdecode(self._raw)}: locked by the parent process before the fork")
        if not self._handle:
            raise ValueError("the file is closed")
        return self._handle

    @property
    def token(self) -> int:
        """The token of the file's lock."""
        return int(lib.hf_file_token(self._check()))

    @property
    def lock_name(self) -> str:
        """The name of the file's lock, of Kind.FILE."""
        return os.fsdecode(lib.hf_file_lock_name(self._check()))

    @property
    def kept(self) -> Optional[str]:
        """A version that another process saved during a commit and that was kept under this name, beside the file."""
        name = lib.hf_file_kept(self._check())
        return None if name is None else os.fsdecode(name)

    def read(self) -> Optional[bytes]:
        """What is there now; None: there is no file yet."""
        fd, err = ctypes.c_int(-1), _abi.hf_err()
        check(lib.hf_file_read(self._check(), byref(fd), byref(err)), err)
        if fd.value < 0:
            return None
        with open(fd.value, "rb", closefd=False) as file:
            return file.read()

    def write(self, content: bytes) -> bool:
        """Replaces what was read, all of it or nothing. False: it is the same. Raises Changed, Moved, Stale; the old file is then in place."""
        fd, err, handle = ctypes.c_int(-1), _abi.hf_err(), self._check()
        check(lib.hf_file_write(handle, byref(fd), byref(err)), err)
        try:
            with open(fd.value, "wb", closefd=False) as file:
                file.write(content)
        except BaseException:
            lib.hf_file_discard(handle)
            raise
        return check(lib.hf_file_commit(handle, byref(err)), err) == 1

    def block(self, block: Any) -> bool:
        """Reads, puts the block in, and replaces the file. False: nothing changes."""
        err, handle = _abi.hf_err(), self._check()
        if check(lib.hf_file_block(handle, byref(block), byref(err)), err) == 0:
            return False
        return check(lib.hf_file_commit(handle, byref(err)), err) == 1

    def close(self) -> None:
        """Gives the lock back. In a forked child it only frees."""
        handle, self._handle = self._handle, c_void_p()
        if handle:
            lib.hf_file_close(handle, None)

    def __enter__(self) -> SharedFile:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        forked = self._generation != _state.generation
        self.close()
        if forked and error is None:
            raise Forked(f"{os.fsdecode(self._raw)}: locked by the parent process before the fork")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


def _attempts(change: Callable[[], bool]) -> bool:
    """Again from the beginning while another process keeps saving the file, as often as hf_file_update does."""
    for left in reversed(range(_abi.HF_FILE_ATTEMPTS)):
        try:
            return change()
        except Changed:
            if left == 0:
                raise
    raise AssertionError


@contextlib.contextmanager
def file_lock(path: Path, wait: Optional[Duration] = WAIT, *, on_timeout: str = "fail", create: bool = True, **options: Any) -> Iterator[Optional[SharedFile]]:
    """The lock of a shared file, for a `with` around your own reading and writing.

    on_timeout="fail" raises Busy or Timeout. "proceed" goes on WITHOUT the lock, with a lock_fail_open event that has the holder,
    the time waited and the cause; the value is then None. If that event cannot be written, it is raised all the same.
    """
    if on_timeout not in ("fail", "proceed"):
        raise ValueError("on_timeout is 'fail' or 'proceed'")
    begun = time.monotonic()
    file: Optional[SharedFile] = None
    try:
        options.setdefault("sidecar", True)
        file = SharedFile(path, wait, create=create, **options)
    except (Busy, Timeout) as error:
        if on_timeout != "proceed":
            raise
        _fail_open(path, time.monotonic() - begun, error, options.get("state"))
    if file is None:
        yield None
        return
    with file:
        yield file


def _fail_open(path: Path, waited: float, error: HoldfastError, state: Optional[State]) -> None:
    holder = error.holder
    try:
        journal.append("lock_fail_open", os.fsdecode(os.fspath(path)), waited_ms=int(waited * 1000), cause=type(error).__name__.upper(), kind="file",
                       holder=f"pid {holder.pid}: {holder.evidence}" if holder else "not known", state=state)
    except HoldfastError:
        raise error from None


@overload
def edit_file(path: Path, change: Callable[[str], Optional[str]], wait: Optional[Duration] = ..., *, encoding: str = ..., **options: Any) -> bool: ...
@overload
def edit_file(path: Path, change: Callable[[bytes], Optional[bytes]], wait: Optional[Duration] = ..., *, encoding: None, **options: Any) -> bool: ...


def edit_file(path: Path, change: Callable[[Any], Any], wait: Optional[Duration] = WAIT, *, encoding: Optional[str] = "utf-8", **options: Any) -> bool:
    """Replaces the file with what `change` makes of its content. True: it was replaced; False: `change` gave the same, or None.

    `change` gets text (line ends as they are), or bytes with encoding=None; "" for a file that does not exist yet (create=True).
    It is called again when another program saved the file meanwhile. If it raises, the file stays as it is. Options: see SharedFile.
    """
    with SharedFile(path, wait, **options) as file:

        def attempt() -> bool:
            old = file.read() or b""
            made: Union[str, bytes, None] = change(old.decode(encoding) if encoding else old)
            if made is None:
                return False
            return file.write(made.encode(encoding or "utf-8") if isinstance(made, str) else made)

        return _attempts(attempt)


def edit_block(path: Path, id: str, text: Optional[str], wait: Optional[Duration] = WAIT, *, start: Optional[str] = None, end: Optional[str] = None,
               style: Style = Style.AUTO, create: bool = True, **options: Any) -> bool:
    """Puts `text` between the two marker lines of block `id`; None takes the block out. True: the file was changed.

    Everything outside of the block keeps every byte. `start` and `end` are marker lines of another tool. Markers that make no sense
    raise Markers, and nothing is written. Options: see SharedFile.
    """
    raw = None if text is None else os.fsencode(text)
    block = new(_abi.hf_block, id=encode(id, "id"), text=raw, len=len(raw or b""), style=style,
                start=None if start is None else encode(start, "start"), end=None if end is None else encode(end, "end"))
    with SharedFile(path, wait, create=create, **options) as file:
        return _attempts(lambda: file.block(block))


