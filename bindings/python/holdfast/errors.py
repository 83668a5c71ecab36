"""The error codes of libholdfast as exceptions. Made from HF_ERR_LIST (tools/errlist.c); do not edit."""
from typing import Dict, Type

from ._base import HoldfastError as HoldfastError
from ._base import Refused as Refused
from ._base import Usage as Usage


class Gone(HoldfastError):
    """The process has ended."""

    code = -8001
    exit_status = 1


class Recycled(Refused):
    """That pid now belongs to another process."""

    code = -8002
    exit_status = 3


class Foreign(Refused):
    """The process belongs to another user."""

    code = -8003
    exit_status = 3


class Protected(Refused):
    """The process is protected."""

    code = -8004
    exit_status = 3


class Unknown(Refused):
    """The process cannot be judged from here."""

    code = -8005
    exit_status = 3


class Name(Usage):
    """Not usable as a name."""

    code = -8006
    exit_status = 2


class StoredId(Refused):
    """Not an id that Holdfast writes."""

    code = -8007
    exit_status = 3


class Untrusted(Refused):
    """Not trusted."""

    code = -8008
    exit_status = 3


class Format(Refused):
    """Damaged, or not in a format this version reads."""

    code = -8009
    exit_status = 3


class Syntax(Usage):
    """Cannot be read."""

    code = -8010
    exit_status = 2


class Event(Usage):
    """Not an event of the journal's table."""

    code = -8011
    exit_status = 2


class Lost(HoldfastError):
    """The record could not be written; the loss is counted."""

    code = -8012
    exit_status = 4


class Forked(HoldfastError):
    """The handle belongs to the process that opened it."""

    code = -8013
    exit_status = 4


class Busy(HoldfastError):
    """Already held."""

    code = -8014
    exit_status = 1


class Timeout(HoldfastError, TimeoutError):
    """Timed out, still held."""

    code = -8015
    exit_status = 1


class NotHeld(HoldfastError):
    """Not held."""

    code = -8016
    exit_status = 1


class NotOwner(Refused):
    """Held by another owner."""

    code = -8017
    exit_status = 3


class Stale(Refused):
    """Lost: the token is no longer current."""

    code = -8018
    exit_status = 3


class Deadlock(HoldfastError):
    """Deadlock."""

    code = -8019
    exit_status = 1


class Mode(Usage):
    """Held with another number of slots."""

    code = -8020
    exit_status = 2


class NoSession(HoldfastError):
    """No such session."""

    code = -8021
    exit_status = 1


class Finished(HoldfastError):
    """It has finished."""

    code = -8022
    exit_status = 1


class Limit(HoldfastError):
    """A limit is reached."""

    code = -8023
    exit_status = 1


class Remains(HoldfastError):
    """Processes of an earlier run still exist."""

    code = -8024
    exit_status = 1


class Store(HoldfastError):
    """The store of locks failed."""

    code = -8025
    exit_status = 4


class NoTerminal(HoldfastError):
    """It has no terminal."""

    code = -8026
    exit_status = 1


class Cancelled(HoldfastError):
    """The wait was cancelled."""

    code = -8030
    exit_status = 1


class NoDirectory(Refused):
    """Its directory does not exist."""

    code = -8031
    exit_status = 3


class Outside(Refused):
    """Outside its allowed directory."""

    code = -8041
    exit_status = 3


class Kind(Refused):
    """Not a file that may be replaced."""

    code = -8042
    exit_status = 3


class Markers(Refused):
    """The markers do not match; nothing is written."""

    code = -8043
    exit_status = 3


class Changed(HoldfastError):
    """Changed by another process; nothing is overwritten."""

    code = -8044
    exit_status = 1


class Moved(HoldfastError):
    """Moved; the path leads to another file now."""

    code = -8045
    exit_status = 1


class NoPlan(HoldfastError):
    """No such plan."""

    code = -8061
    exit_status = 1


class NoSandbox(HoldfastError):
    """The plan has no such sandbox."""

    code = -8062
    exit_status = 1


class PlanState(HoldfastError):
    """The plan's state does not allow that."""

    code = -8063
    exit_status = 1


class Target(Refused):
    """Cannot be a target."""

    code = -8064
    exit_status = 3


class NoOverlay(HoldfastError):
    """Cannot make this kind of sandbox."""

    code = -8065
    exit_status = 4


class Dirty(HoldfastError):
    """Has changes that were not committed."""

    code = -8066
    exit_status = 1


class InUse(HoldfastError):
    """Processes are still in the sandbox."""

    code = -8067
    exit_status = 1


class Conflict(HoldfastError):
    """The target has changed since the sandbox was made."""

    code = -8068
    exit_status = 1


class Torn(Refused):
    """In use when power failed, so it may be torn."""

    code = -8069
    exit_status = 3


class NoConfine(Refused):
    """The command cannot be confined as requested."""

    code = -8070
    exit_status = 3


class Stdio(Refused):
    """Its input or output would lead past the sandbox."""

    code = -8071
    exit_status = 3


class NoLanding(HoldfastError):
    """No such candidate."""

    code = -8081
    exit_status = 1


class Land(Refused):
    """Cannot be landed on."""

    code = -8082
    exit_status = 3


BY_CODE: Dict[int, Type[HoldfastError]] = {
    -8001: Gone,
    -8002: Recycled,
    -8003: Foreign,
    -8004: Protected,
    -8005: Unknown,
    -8006: Name,
    -8007: StoredId,
    -8008: Untrusted,
    -8009: Format,
    -8010: Syntax,
    -8011: Event,
    -8012: Lost,
    -8013: Forked,
    -8014: Busy,
    -8015: Timeout,
    -8016: NotHeld,
    -8017: NotOwner,
    -8018: Stale,
    -8019: Deadlock,
    -8020: Mode,
    -8021: NoSession,
    -8022: Finished,
    -8023: Limit,
    -8024: Remains,
    -8025: Store,
    -8026: NoTerminal,
    -8030: Cancelled,
    -8031: NoDirectory,
    -8041: Outside,
    -8042: Kind,
    -8043: Markers,
    -8044: Changed,
    -8045: Moved,
    -8061: NoPlan,
    -8062: NoSandbox,
    -8063: PlanState,
    -8064: Target,
    -8065: NoOverlay,
    -8066: Dirty,
    -8067: InUse,
    -8068: Conflict,
    -8069: Torn,
    -8070: NoConfine,
    -8071: Stdio,
    -8081: NoLanding,
    -8082: Land,
}
