"""Sessions: a named lock plus a supervised process tree."""
from __future__ import annotations

import ctypes
import os
import select
import threading
import time
from ctypes import byref, c_void_p
from typing import Any, Iterator, List, Mapping, Optional, Sequence

from . import _abi, journal
from ._abi import Outcome, Stop, Strategy
from ._info import PathConflict, SessionInfo
from ._land import landings, merge_of
from ._library import check, encode, lib, new
from ._lock import busy
from ._plan import Plan, _argv, _strings
from ._state import Collector, Path, State, current
from ._time import Deadline, Duration, nanoseconds, optional, waiting
from ._wait import Interruptible
from .errors import Conflict, HoldfastError


class _Sessions:
    """A context for one call: the library's is used by one thread at a time."""

    def __init__(self, state: State) -> None:
        self.handle, err = c_void_p(), _abi.hf_err()
        check(lib.hf_sessions_open(state.handle, state.journal, byref(self.handle), byref(err)), err)

    def __enter__(self) -> c_void_p:
        return self.handle

    def __exit__(self, *error: object) -> None:
        lib.hf_sessions_free(self.handle)


class Session:
    """A session of a name; `run` starts one, `Session(name)` is one that may exist already."""

    def __init__(self, name: str, *, state: Optional[State] = None) -> None:
        self._state = current(state)
        self.name = name
        self._raw = encode(name)

    def info(self) -> SessionInfo:
        """How it stands now. Raises NoSession."""
        found, err = Collector(_abi.hf_session_info, SessionInfo.read), _abi.hf_err()
        with _Sessions(self._state) as sessions:
            found.check(lib.hf_session_look(sessions, self._raw, found.callback, found.arg, byref(err)), err)
        return found.found[0]  # type: ignore[no-any-return]

    @property
    def outcome(self) -> Outcome:
        """Outcome.NONE while it runs."""
        return self.info().outcome

    @property
    def running(self) -> bool:
        return not self.info().has_ended

    def wait(self, timeout: Optional[Duration] = None, *, check: bool = False) -> SessionInfo:
        """Sleeps until the session has ended, of a loop: all of it. Raises Timeout, NoSession; Ctrl-C ends the wait, not the session.

        With check=True every end but success is raised: Conflict, with `.paths`, when its changes met those of others; else HoldfastError.
        """
        info = self._wait(waiting(timeout), 0)
        if check and not info.succeeded:
            raise self._failure(info)
        return info

    @property
    def plan(self) -> Plan:
        """The sandbox of a run with in_=[...], as long as it is kept."""
        return Plan("run:" + self.name, state=self._state)

    def _failure(self, info: SessionInfo) -> HoldfastError:
        if info.outcome is not Outcome.CONFLICT:
            return HoldfastError(f"{self.name}: {info.outcome.name.lower().replace('_', '-')}: {info.cause}")
        error = Conflict(f"{self.name}: {info.cause}")
        for candidate in landings(state=self._state):
            if candidate.name == self.name:
                error.conflicts = candidate.conflicts
                return error
        # Of a commit of files the journal has the first path; a commit of `plan` lists all.
        for record in journal.query("run_conflict", self.name, state=self._state):
            if record.get("token") == info.token:
                error.conflicts = (PathConflict("", record["first"], record["kind"], ""),)
        return error

    def _wait(self, wait_ns: int, cancel_fd: int) -> SessionInfo:
        err, deadline = _abi.hf_err(), Deadline(wait_ns)
        while True:
            found = Collector(_abi.hf_session_info, SessionInfo.read)

            def call(cancel_fd: int) -> int:
                opts = new(_abi.hf_wait_opts, wait_ns=deadline.left(), cancel_fd=cancel_fd)
                with _Sessions(self._state) as sessions:
                    return int(lib.hf_session_wait(sessions, self._raw, byref(opts), found.callback, found.arg, byref(err)))

            if cancel_fd:
                code = call(cancel_fd)
            else:
                with Interruptible() as wait:
                    code = call(wait.fd)
            # There is no place to lose: a signal whose handler raised nothing only begins the wait anew.
            if code == _abi.HF_E_CANCELLED and not cancel_fd:
                continue
            found.check(code, err)
            return found.found[0] if found.found else self.info()  # type: ignore[no-any-return]

    def stop(self, grace: Optional[Duration] = None) -> Stop:
        """Ends it: TERM, the grace time (its own, if none is given; 0: none), KILL. Returns when its last process has exited."""
        err = _abi.hf_err()
        ns = 0 if grace is None else nanoseconds(grace) or -1
        with _Sessions(self._state) as sessions:
            return Stop(check(lib.hf_session_stop(sessions, self._raw, ns, byref(err)), err))

    def reap(self) -> int:
        """Ends what is left when its supervisor and keeper are both gone. Returns how many processes were killed."""
        err = _abi.hf_err()
        with _Sessions(self._state) as sessions:
            return check(lib.hf_session_reap(sessions, self._raw, byref(err)), err)

    # -- logs ----------------------------------------------------------------------

    def logs(self, lines: Optional[int] = None, *, run: int = 0) -> bytes:
        """The output of the last run, or what is kept of it; `lines`: the last so many; run=1: of the run before."""
        with _Log(self, run, lines) as log:
            return b"".join(log.read())

    def follow(self, lines: Optional[int] = None) -> Iterator[bytes]:
        """The output as it comes, in pieces, until the session has ended."""
        with _Log(self, 0, lines) as log:
            poll = select.poll()
            poll.register(log.fd(), select.POLLIN)
            while True:
                info = self.info()
                yield from log.read()
                if info.has_ended:
                    return
                watched = None
                for process in (info.keeper, info.supervisor):
                    try:
                        watched = process.open() if process and watched is None else watched
                    except HoldfastError:
                        pass
                if watched is None:  # it ends just now, or cannot be judged from here
                    time.sleep(0.02)
                    continue
                try:
                    poll.register(watched, select.POLLIN)
                    while True:
                        ready = [fd for fd, _ in poll.poll()]
                        yield from log.read()
                        if watched in ready:
                            break
                finally:
                    poll.unregister(watched)
                    os.close(watched)

    def __repr__(self) -> str:
        return f"Session({self.name!r})"


class _Log:
    def __init__(self, session: Session, run: int, lines: Optional[int]) -> None:
        self._err, self._handle = _abi.hf_err(), c_void_p()
        self._sessions = _Sessions(session._state)
        self._buffer = ctypes.create_string_buffer(65536)
        try:
            check(lib.hf_session_log(self._sessions.handle, session._raw, run, byref(self._handle), byref(self._err)), self._err)
            if lines is not None:
                check(lib.hf_log_tail(self._handle, lines, byref(self._err)), self._err)
        except BaseException:
            self.__exit__()
            raise

    def fd(self) -> int:
        return check(lib.hf_log_fd(self._handle, byref(self._err)), self._err)

    def read(self) -> Iterator[bytes]:
        while True:
            n = check(lib.hf_log_read(self._handle, self._buffer, len(self._buffer), byref(self._err)), self._err)
            if n == 0:
                return
            yield self._buffer.raw[:n]

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *error: object) -> None:
        lib.hf_log_free(self._handle)
        self._handle = c_void_p()
        self._sessions.__exit__()


def sessions(*, state: Optional[State] = None) -> List[SessionInfo]:
    """Every session there is, in the order of their names."""
    found, err = Collector(_abi.hf_session_info, SessionInfo.read), _abi.hf_err()
    with _Sessions(current(state)) as handle:
        found.check(lib.hf_session_list(handle, found.callback, found.arg, byref(err)), err)
    return found.found


def run(name: str, argv: Optional[Sequence[Path]] = None, *, cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
        deadline: Optional[Duration] = None, idle: Optional[Duration] = None, grace: Optional[Duration] = None, verify: Optional[str] = None,
        verify_limit: Optional[Duration] = None, wait: Optional[Duration] = 0, ttl: Optional[Duration] = None, resume: bool = False,
        leave_running: bool = False, loop: bool = False, every: Optional[Duration] = None, max_runs: int = 0, until: Optional[str] = None,
        notify: Optional[str] = None, notify_on: Optional[str] = None, group: Optional[str] = None, max_active: int = 0, max_depth: int = 0, log_max: int = 0,
        in_: Optional[Sequence[Path]] = None, land: Optional[str] = None, keep: Optional[str] = None, commit: Optional[str] = None, merge: bool = False,
        retry: int = 0, discard: bool = False, message: Optional[str] = None, land_merge: Optional[str] = None, base: str = "head",
        strategy: Strategy = Strategy.AUTO, require_change: bool = False, sign: bool = False, state: Optional[State] = None) -> Session:
    """Starts a supervised session in the background and returns when its command runs.

        session = holdfast.run("fix-160", ["claude", "-p", "fix it"], deadline="1h", verify="make test")
        assert session.wait().succeeded

    The name stays reserved until the last of its processes has exited, also after this process has ended. `wait` is for the name, if it is
    in use: then Busy or Timeout, with `.holder`. Options are those of `holdfast run`; what is not given with resume=True is as it was.
    A command that cannot be executed raises FileNotFoundError or PermissionError.

    in_         directories that it works in through sandboxes; its changes are committed when command and verifier have succeeded, all or none
    land        with one directory of a git work tree: the change lands on this branch ("HEAD": the one that is checked out); see `land`
    keep        "on-failure", "always", "never": when the sandbox is kept.  commit: "on-success" or "never"
    merge       merge text files that others changed meanwhile; retry: run it again, at most so often, after a conflict
    discard     drop the work that the last run of the name left and that did not land; without it the run is refused (Dirty)
    message     of the commit of what it left uncommitted; land_merge: "rebase" (the default), "merge", "ff-only"; base: "head", or "worktree" with the uncommitted edits
    require_change  fail if nothing was changed; sign: sign each commit that lands, or do not land
    """
    found = current(state)
    opts = new(_abi.hf_run_opts, deadline_ns=optional(deadline), idle_ns=optional(idle), verify_ns=optional(verify_limit), ttl_ns=optional(ttl),
               every_ns=optional(every), max_runs=max_runs, max_depth=max_depth, max_active=max_active, log_max=log_max)
    opts.grace_ns = 0 if grace is None else nanoseconds(grace) or -1
    opts.wait_ns = waiting(wait)
    opts.argv = None if argv is None else _argv(argv)
    opts.env = _strings([f"{key}={value}" for key, value in env.items()], "env") if env is not None else None
    for field, value in (("cwd", cwd), ("verify", verify), ("until", until), ("notify", notify), ("notify_on", notify_on), ("group", group)):
        if value is not None:
            setattr(opts, field, encode(value, field))
    opts.flags = ((_abi.HF_RUN_RESUME if resume else 0) | (_abi.HF_RUN_LEAVE_RUNNING if leave_running else 0)
                  | (_abi.HF_RUN_LOOP if loop or every is not None or max_runs or until is not None else 0))
    tx = new(_abi.hf_tx_opts, strategy=strategy, retry=retry, land_merge=merge_of(land_merge),
             flags=((_abi.HF_TX_MERGE if merge else 0) | (_abi.HF_TX_DISCARD if discard else 0)
                    | (_abi.HF_TX_REQUIRE_CHANGE if require_change else 0) | (_abi.HF_TX_SIGN if sign else 0)),
             dirs=_strings(None if in_ is None else [os.path.abspath(os.fspath(one)) for one in in_], "in_"),
             keep=_word(lib.hf_tx_keep_of, keep, "keep"), commit=_word(lib.hf_tx_commit_of, commit, "commit"), base=_BASES[base],
             land=None if land is None else encode(land, "land"), message=None if message is None else encode(message, "message"))
    session, starter = Session(name, state=found), _Starter(found, encode(name), opts, tx)
    starter.start()
    code, err, report = starter.code, starter.err, starter.report
    if code < 0:
        raise busy(code, err, report.blocker)
    if report.outcome == _abi.HF_OUTCOME_NOT_STARTED:
        import errno as numbers

        number = numbers.ENOENT if report.exit_status == 127 else numbers.EACCES
        raise OSError(number, os.fsdecode(report.cause), os.fsdecode(argv[0]) if argv else None)
    return session


_BASES = {"head": _abi.HF_LAND_BASE_HEAD, "worktree": _abi.HF_LAND_BASE_WORKTREE}


def _word(numbers: Any, word: Optional[str], what: str) -> int:
    number = 0 if word is None else int(numbers(encode(word, what)))
    if word is not None and number == 0:
        raise ValueError(f"{what}: no such word: {word!r}")
    return number


class _Starter:
    """Starts a session; one that is to wait for its name does so in a thread, so that Ctrl-C is noticed."""

    def __init__(self, state: State, raw: bytes, opts: Any, tx: Any) -> None:
        self._state, self._raw, self._opts, self._tx = state, raw, opts, tx
        self.err, self.report, self.code = _abi.hf_err(), _abi.hf_run_report(), 0
        self._done = threading.Event()
        self._mutex = threading.Lock()
        self._abandoned = False

    def _call(self) -> None:
        self.code = lib.hf_tx_start(self._state.handle, self._raw, byref(self._opts), byref(self._tx), byref(self.report), byref(self.err))

    def _thread(self) -> None:
        self._call()
        with self._mutex:
            self._done.set()
            if not self._abandoned or self.code < 0:
                return
        # Its caller has gone: nobody would look after it.
        with _Sessions(self._state) as sessions:
            lib.hf_session_stop(sessions, self._raw, 0, None)

    def start(self) -> None:
        if self._opts.wait_ns == 0 or threading.current_thread() is not threading.main_thread():
            self._call()
            return
        # Not a daemon: a process that ends waits until it is settled whether the session runs.
        worker = threading.Thread(target=self._thread, name="holdfast-run")
        try:
            # Also in here, where it waits for the thread, an interrupt may come.
            worker.start()
            # A signal between the interpreter's last look and its sleep would be noticed only when the sleep ends.
            while not self._done.wait(0.2):
                pass
        except BaseException:
            with self._mutex:
                self._abandoned = True
                stop = self._done.is_set() and self.code >= 0
            if stop:
                with _Sessions(self._state) as sessions:
                    lib.hf_session_stop(sessions, self._raw, 0, None)
            raise
