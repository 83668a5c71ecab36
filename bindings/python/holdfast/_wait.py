"""Waits in C that Ctrl-C ends.

Python runs signal handlers only in the main thread and only between two instructions, and libholdfast returns to Python only
when its wait is over. So, while the main thread waits, each signal also writes a byte into a pipe (signal.set_wakeup_fd) whose
other end is the library's cancel_fd. The library then calls `go_on`, in which the handlers run. If one raises, as that of
SIGINT does, the wait ends and the exception goes to the caller; if none does, the waiter keeps its place in the queue.
"""
from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import threading
from types import TracebackType
from typing import Any, Generator, List, Optional, Type

_GO_ON = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def pipe() -> List[int]:
    """Both ends, neither of them descriptor 0, which means "none" to the library."""
    ends = []
    for fd in os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK):
        ends.append(fd)
        if fd == 0:
            ends[-1] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(fd)
    return ends


class Interruptible:
    """Around one wait: `fd` and `go_on` go into the library's options.

    with Interruptible() as wait:
        r = lib.…(cancel_fd=wait.fd, go_on=wait.go_on)
    # what a signal handler raised is raised at the end of the block
    """

    def __init__(self) -> None:
        self.fd = 0
        self.go_on: Any = None
        self.error: Optional[BaseException] = None
        self._read = self._write = self._before = -1
        self._seen = bytearray()
        self._watch: Optional[Generator[int, Any, None]] = None

    def _handlers(self) -> Generator[int, Any, None]:
        # A generator, because a signal handler may raise at the very first instruction of a function that C calls, where
        # no `try` of that function is entered yet. This one is resumed inside of its `try`.
        answer = 0
        while True:
            try:
                yield answer
                answer = 0
                self._seen += os.read(self._read, 512)
                answer = 1
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: B902 (it is raised when the wait has ended)
                self.error = error
                answer = 0

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._read, self._write = pipe()
        try:
            self._before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        except ValueError:  # the main thread of a sub-interpreter has no signals
            self._close()
            return self
        self._watch = self._handlers()
        next(self._watch)
        self.go_on = _GO_ON(self._watch.send)
        self.fd = self._read
        return self

    @property
    def go_on_pointer(self) -> Optional[int]:
        return None if self.go_on is None else ctypes.cast(self.go_on, ctypes.c_void_p).value

    def _close(self) -> None:
        for fd in (self._read, self._write):
            if fd >= 0:
                os.close(fd)
        self._read = self._write = -1

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._watch is None:
            return
        watch, self._watch = self._watch, None
        signal.set_wakeup_fd(self._before)
        watch.close()
        try:
            while True:
                more = os.read(self._read, 512)
                if not more:
                    break
                self._seen += more
        except BlockingIOError:
            pass
        self._close()
        # Another reader of signals, asyncio for example, gets what came meanwhile.
        if self._before >= 0 and self._seen:
            try:
                os.write(self._before, bytes(self._seen))
            except OSError:
                pass
        if self.error is not None and error is None:
            raise self.error
