"""The state directory and what is opened from it."""
from __future__ import annotations

import ctypes
import functools
import os
import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Dict, Generator, List, Optional, Set, Tuple, Type, TypeVar, Union

from . import _abi
from ._abi import Kind
from ._library import check, encode, failure, lib
from .errors import Forked

Path = Union[str, bytes, "os.PathLike[Any]"]
T = TypeVar("T")

#: Rises in each forked child: what was opened before belongs to the parent.
generation = 0


class State:
    """An open state directory: the one given, else $HOLDFAST_DIR, else $XDG_STATE_HOME/holdfast, else ~/.local/state/holdfast.

    Functions take one as `state=`; without it they share one that is opened when it is needed first. It may be shared by
    threads. A forked child opens its own: what it inherited raises Forked.
    """

    _is_deleted = False

    def __init__(self, path: Optional[Path] = None, *, create: bool = True) -> None:
        self.generation = generation
        self._state, self._journal, self._locks, self._plans = c_void_p(), c_void_p(), c_void_p(), c_void_p()
        self._mutex = threading.Lock()
        self._kinds: Dict[int, int] = {}
        self.users: Set[int] = set()  # holds whose handles need the state: in a cycle of garbage it may be deleted before them
        err = _abi.hf_err()
        raw = None if path is None else encode(path, "path")
        check(lib.hf_state_open(raw, 0 if create else _abi.HF_STATE_NO_CREATE, byref(self._state), byref(err)), err)
        # Work goes on where nothing can be written down; what is lost is counted by the library where it can be.
        lib.hf_journal_open(self._state, None, byref(self._journal), None)
        check(lib.hf_locks_open(self._state, self._journal, byref(self._locks), byref(err)), err)

    def _check(self) -> None:
        if self.generation != generation:
            raise Forked("opened by the parent process; a forked child opens its own")

    @property
    def handle(self) -> c_void_p:
        self._check()
        return self._state

    @property
    def journal(self) -> c_void_p:
        self._check()
        return self._journal

    def locks(self, kind: Kind = Kind.NAME) -> int:
        self._check()
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = lib.hf_locks_kind(self._locks, kind)
        return found

    def plans(self) -> c_void_p:
        self._check()
        with self._mutex:
            if not self._plans:
                err = _abi.hf_err()
                check(lib.hf_plans_open(self._state, self._journal, byref(self._plans), byref(err)), err)
        return self._plans

    @property
    def path(self) -> str:
        return os.fsdecode(lib.hf_state_path(self._state))

    def __repr__(self) -> str:
        return f"State({self.path!r})"

    def _leave(self, user: int) -> None:
        """A hold has freed its handle."""
        self.users.discard(user)
        if self._is_deleted:
            self._free()

    def _free(self, lib: Any = lib) -> None:
        # Freeing is all that a forked child may do, too.
        if self._state and not self.users:
            lib.hf_plans_free(self._plans)
            lib.hf_locks_free(self._locks)
            lib.hf_journal_free(self._journal)
            lib.hf_state_free(self._state)
            self._state.value = None

    def __del__(self) -> None:
        self._is_deleted = True
        if hasattr(self, "users"):
            self._free()


_defaults: Dict[Tuple[Optional[str], ...], State] = {}
_mutex = threading.Lock()


def current(given: Optional[State] = None) -> State:
    """The state that was given, or the one of the environment."""
    if given is not None:
        given._check()
        return given
    env = os.environ
    key = (env.get("HOLDFAST_DIR"), env.get("XDG_STATE_HOME"), env.get("HOME"))
    found = _defaults.get(key)
    if found is None:
        with _mutex:
            found = _defaults.get(key)
            if found is None:
                found = _defaults[key] = State()
    return found


def _after_fork() -> None:
    global generation, _mutex
    generation += 1
    _mutex = threading.Lock()
    _defaults.clear()


os.register_at_fork(after_in_child=_after_fork)


class Collector:
    """A callback of the library's that turns each struct it is called with into an object, and keeps what goes wrong.

    A signal handler may raise at the first instruction of a Python function, where no `try` of it is entered yet, and an exception that leaves a callback is
    lost. So C calls no function here: it resumes a generator, inside of its `try`. `arg` is what it calls for that, and goes with `callback`.
    """

    def __init__(self, struct: Type[Any], read: Callable[[Any], T], returns: Any = None) -> None:
        self.found: List[Any] = []
        self._errors: List[BaseException] = []
        reader = self._reader(read)
        next(reader)
        self._send = functools.partial(reader.send)
        self.arg = c_void_p(id(self._send))
        self.callback = ctypes.CFUNCTYPE(returns, ctypes.py_object, ctypes.POINTER(struct))(functools.partial.__call__)

    def _reader(self, read: Callable[[Any], T]) -> Generator[int, Any, None]:
        while True:
            try:
                info = yield 0
                self.found.append(read(info[0]))
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: B902 (C cannot pass it on; `check` does)
                self._errors.append(error)

    def check(self, code: int, err: Any) -> int:
        if self._errors:
            raise self._errors[0]
        if code < 0:
            raise failure(code, err)
        return code
