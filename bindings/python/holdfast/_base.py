"""What every exception of this package has. The classes themselves are in errors.py, made from the library's list."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, List, Optional, Tuple

if TYPE_CHECKING:
    from ._info import Holder, PathConflict


class HoldfastError(Exception):
    """A failure that libholdfast reported. Plain -errno values are raised as OSError."""

    code: ClassVar[int] = 0
    exit_status: ClassVar[int] = 4

    op: str = ""  #: the step that failed, for example "openat"
    subject: str = ""  #: what it was done to: a path, a pid, a name
    detail: str = ""  #: why, and what to do next
    errno: Any = 0  #: the errno behind it, an int, or 0; type checkers disagree about that of TimeoutError
    holder: Optional[Holder] = None  #: Busy, Timeout: the process that has the lock, where it is known
    conflicts: Tuple[PathConflict, ...] = ()  #: Conflict: what changed in the targets meanwhile

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    @property
    def paths(self) -> List[str]:
        """The paths of a Conflict, below their targets."""
        return [conflict.path for conflict in self.conflicts]


class Refused(HoldfastError):
    """Refused for safety: not the owner, a stale token, another process, an untrusted file."""

    exit_status = 3


class Usage(HoldfastError, ValueError):
    """An argument that cannot be used: a name, an event, a duration."""

    exit_status = 2
