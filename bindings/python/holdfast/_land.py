"""Landing on git: the change that was made in a sandbox becomes the branch.

The library lands in a process with one thread, because it starts git and the verifier and passes signals on. A Python program may have
threads, so each landing has an interpreter of its own, which is told to give up when the caller is interrupted or dies.
"""
from __future__ import annotations

import contextlib
import os
import pickle
import select
import subprocess
import sys
from ctypes import byref, c_void_p
from typing import Any, Dict, Iterator, List, Optional, Sequence

from . import _abi, _library
from ._abi import LandState
from ._info import LandInfo, LandReport
from ._library import check, encode, lib, new
from ._lock import Lock
from ._plan import _strings
from ._state import Collector, State, current
from ._time import Duration, optional, waiting
from ._wait import pipe
from .errors import Cancelled, Conflict

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from holdfast._land import _child; _child()"


@contextlib.contextmanager
def _landings(state: State) -> Iterator[c_void_p]:
    handle, err = c_void_p(), _abi.hf_err()
    check(lib.hf_landings_open(state.handle, state.journal, state.plans(), byref(handle), byref(err)), err)
    try:
        yield handle
    finally:
        lib.hf_landings_free(handle)


def merge_of(word: Optional[str]) -> int:
    """The number of "rebase", "merge" or "ff-only"; None: as before."""
    if word is None:
        return int(_abi.HF_LAND_MERGE_AS_BEFORE)
    number = int(lib.hf_land_merge_of(encode(word, "merge")))
    if number < 0:
        raise ValueError(f"merge is 'rebase', 'merge' or 'ff-only', not {word!r}")
    return number


def land(name: str, *, verify: Optional[str] = None, verify_limit: Optional[Duration] = None, merge: Optional[str] = None, message: Optional[str] = None,
         also: Optional[Sequence[str]] = None, fence: Optional[Lock] = None, keep_plan: bool = False, branch: Optional[str] = None, sign: bool = False,
         wait: Optional[Duration] = None, state: Optional[State] = None, _cancel_fd: int = 0) -> LandReport:
    """Makes the work of a candidate part of its branch: rebased onto it as it is now, verified in that form, and read back.

        run("fix-160", [...], in_=["."], land="HEAD", verify="make test").wait()
        holdfast.land("fix-160", verify="make test")        # once more, after a conflict was dealt with

    `merge` is "rebase", "merge" or "ff-only"; None: as it was last landed, else "rebase". `branch` replaces the candidate's branch.
    `sign` signs each commit that lands, or refuses. With `keep_plan` a later call lands later work in the plan.
    `landed` of the report is the only success; what the verifier refused is kept. Raises Conflict, with `.paths`, and the candidate is kept; NoLanding,
    Finished, Busy, Timeout, errors.Land (the repository cannot be landed on), Stale (the fence was lost). Ctrl-C ends it: nothing has landed then,
    or `landings` says that it did.
    """
    found = current(state)
    request: Dict[str, Any] = {"state": found.path, "name": encode(name), "merge": merge_of(merge), "keep_plan": keep_plan, "sign": sign, "wait_ns": waiting(wait),
                               "verify_ns": optional(verify_limit), "also": None if also is None else [encode(one, "also") for one in also]}
    for key, value in (("verify", verify), ("message", message), ("branch", branch)):
        request[key] = None if value is None else encode(value, key)
    if fence is not None:
        request.update(session=fence._raw, token=fence.token)
    answer = _in_a_process(request, _cancel_fd)
    if isinstance(answer, BaseException):
        raise answer
    assert isinstance(answer, LandReport)
    if answer.state is LandState.CONFLICT:
        conflict = Conflict(f"{name}: {answer.text}")
        conflict.conflicts = answer.conflicts
        raise conflict
    return answer


def _in_a_process(request: Dict[str, Any], cancel_fd: int) -> object:
    read, write = pipe()
    try:
        request["cancel_fd"] = read
        env = dict(os.environ, HOLDFAST_LIBRARY=_library.path) if os.path.isabs(_library.path) else None
        child = subprocess.Popen([sys.executable, "-c", _CHILD, _PACKAGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(read,), env=env)
        try:
            out = _talk(child, pickle.dumps(request), cancel_fd)
        except BaseException:
            # It ends its wait, or its verifier, and has then landed or not; never half.
            os.close(write)
            write = -1
            child.terminate()
            child.communicate()
            raise
        if not out:
            raise OSError(f"the landing ended with status {child.returncode} and without an answer; 'holdfast land list' shows how it stands")
        return pickle.loads(out)  # from our own child, through a pipe that nothing else has
    finally:
        for fd in (read, write):
            if fd >= 0:
                os.close(fd)


def _talk(child: subprocess.Popen[bytes], request: bytes, cancel_fd: int) -> bytes:
    """What the child answers. With a cancel_fd: Cancelled, as soon as that is readable."""
    if not cancel_fd:
        return child.communicate(request)[0]
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(request)
    child.stdin.close()
    child.stdin = None  # else communicate() would flush it
    pieces: List[bytes] = []
    poll = select.poll()
    poll.register(child.stdout, select.POLLIN)
    poll.register(cancel_fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == cancel_fd:
                raise Cancelled("the landing was cancelled; 'landings' says how it stands")
            pieces.append(os.read(fd, 65536))
            if not pieces[-1]:
                child.communicate()
                return b"".join(pieces)


def _child() -> None:
    # What git's hooks print goes where the verifier's output goes.
    answer = os.dup(1)
    os.dup2(2, 1)
    request = pickle.loads(sys.stdin.buffer.read())
    result: object
    try:
        result = _land(request)
    except Exception as error:
        result = error
    with open(answer, "wb") as out:
        pickle.dump(result, out)


def _land(request: Dict[str, Any]) -> LandReport:
    err, report = _abi.hf_err(), _abi.hf_land_report()
    opts = new(_abi.hf_land_opts, merge=request["merge"], verify=request["verify"], branch=request["branch"],
               flags=(_abi.HF_LAND_KEEP_PLAN if request["keep_plan"] else 0) | (_abi.HF_LAND_SIGN if request["sign"] else 0),
               verify_ns=request["verify_ns"], message=request["message"], wait_ns=request["wait_ns"], cancel_fd=request["cancel_fd"],
               session=request.get("session"), token=request.get("token", 0), also=_strings(request["also"], "also"))
    with _landings(State(request["state"])) as landings:
        check(lib.hf_land(landings, request["name"], byref(opts), byref(report), byref(err)), err)
    try:
        return LandReport.read(report)
    finally:
        lib.hf_land_report_done(byref(report))


def landings(*, state: Optional[State] = None) -> List[LandInfo]:
    """Every candidate there is, in the order of their names."""
    found, err = Collector(_abi.hf_land_info, LandInfo.read), _abi.hf_err()
    with _landings(current(state)) as handle:
        found.check(lib.hf_land_list(handle, found.callback, found.arg, byref(err)), err)
    return found.found


def drop_landing(name: str, *, state: Optional[State] = None) -> None:
    """Gives a candidate up: its ref and its sandbox are removed. Raises NoLanding, Busy, InUse."""
    err = _abi.hf_err()
    with _landings(current(state)) as handle:
        check(lib.hf_land_drop(handle, encode(name), byref(err)), err)
