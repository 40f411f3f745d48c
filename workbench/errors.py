"""Every failure that reaches a user, an agent or a log, as one tree with stable codes.

    WorkbenchError
    ├── BadInput        400  the request itself is wrong; sending it again cannot help
    ├── Unauthenticated 401  nobody is known to be asking
    ├── Refused         403  the caller is known and may not do this
    ├── NotFound        404  what the request names is not there
    ├── WrongMethod     405  the address is right, what is to be done there is not (HTTP only)
    ├── Conflict        409  the request is fine, the state of the world is not
    ├── TooMany         429  the caller asks too often; later the same request is fine
    └── Unavailable     503  a resource outside the request failed (disk, port, git, peer)

`code` is the contract: it never changes meaning, and every shell carries it as it is. `message`
is for a person or a model and says what to do next. `details` is JSON-ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class WorkbenchError(Exception):
    """The root of the tree; raise one of its subclasses.

    Args:
        code: stable upper-case identifier, such as ``TASK_NOT_FOUND``.
        message: one or two sentences: what is wrong, and the next step.
        details: JSON-ready facts about this occurrence.
    """

    status: ClassVar[int] = 500

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = details

    def as_dict(self) -> dict[str, Any]:
        """The form shells send: ``{"code", "message", "details", "status"}``."""
        return {"code": self.code, "message": self.message, "details": self.details, "status": self.status}


class BadInput(WorkbenchError):
    """The request itself is wrong."""

    status = 400


class Unauthenticated(WorkbenchError):
    """No valid credential came with the request."""

    status = 401


class Refused(WorkbenchError):
    """The caller is known and may not do this."""

    status = 403


class NotFound(WorkbenchError):
    """What the request names does not exist, or not for this caller."""

    status = 404


class WrongMethod(WorkbenchError):
    """The address is right and the method is not; `details.allowed` names those that are."""

    status = 405


class Conflict(WorkbenchError):
    """The request contradicts the present state."""

    status = 409


class TooMany(WorkbenchError):
    """The caller asks too often; `details.retry_after_seconds` says when to ask again."""

    status = 429


class Unavailable(WorkbenchError):
    """Something outside the request failed."""

    status = 503


def from_dict(error: Mapping[str, Any]) -> WorkbenchError:
    """Rebuild the error that `as_dict` described, so that a client raises what the server raised.

    Whatever is missing or of another type, from a peer that is no Workbench, is left out.
    """
    family = {cls.status: cls for cls in WorkbenchError.__subclasses__()}
    status, details = error.get("status"), error.get("details")
    cls = family.get(status, WorkbenchError) if isinstance(status, int) else WorkbenchError
    made = cls(str(error.get("code", "UNKNOWN_ERROR")), str(error.get("message", "The server gave no reason.")))
    made.details = dict(details) if isinstance(details, dict) else {}
    return made
