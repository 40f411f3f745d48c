"""Types that every layer shares: times, identifiers, enums, events and the base class of wire models.

Contains no I/O, no SQL and no rules.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, date, datetime
from enum import IntEnum, StrEnum
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

MICROSECOND = 1
SECOND = 1_000_000

__version__ = "0.1.0"


def iso(at: int) -> str:
    """ISO 8601 in UTC with a ``Z`` for integer microseconds since the epoch."""
    return f"{_to_the_second(at // SECOND)}.{at % SECOND // 1_000:03}Z"


@lru_cache(maxsize=1_024)
def _to_the_second(at: int) -> str:
    """Cached, because many rows of a result are from the same second."""
    return datetime.fromtimestamp(at, UTC).isoformat()[:-6]


Micros = Annotated[int, PlainSerializer(iso, return_type=str, when_used="json")]
"""Microseconds UTC since the epoch internally, an ISO 8601 string in JSON."""


def _day(text: str) -> str:
    try:
        if text == date.fromisoformat(text).isoformat():
            return text
    except ValueError:
        pass
    raise ValueError("must be a day, such as 2026-12-31")


Day = Annotated[str, AfterValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
"""A day of the calendar, as in ISO 8601."""


END_OF_TIMES = 253_402_300_799
"""The last second of the year 9999, since the epoch: no later time can be written."""


def _moment(at: datetime) -> datetime:
    if 0 <= at.timestamp() < END_OF_TIMES:
        return at
    raise ValueError("must be between 1970 and 9999")


Moment = Annotated[AwareDatetime, AfterValidator(_moment)]
"""A time that can be stored, in microseconds since the epoch, and shown."""


LARGEST_INT = 2**63 - 1
"""The largest whole number that both databases hold."""

Int64 = Annotated[int, Field(ge=-LARGEST_INT - 1, le=LARGEST_INT), WithJsonSchema({"type": "integer"})]
"""A whole number that both databases hold. Its JSON Schema omits the bounds, because agents pay for every byte."""

_JSON_TYPES = ("object", "array", "string", "number", "boolean", "null")
Json = Annotated[Any, WithJsonSchema({"anyOf": [{"type": name} for name in _JSON_TYPES]})]
"""Any JSON value. Its JSON Schema names the types, because some clients refuse a schema that says nothing."""


def wall_clock() -> int:
    """The current time, in microseconds UTC since the epoch."""
    return time.time_ns() // 1_000


def uuid7(now: int) -> UUID:
    """A UUID version 7 (RFC 9562 §5.7) for a time in microseconds; sorts by its microsecond (§6.2, method 3)."""
    milliseconds, microseconds = divmod(now, 1_000)
    high = milliseconds << 80 | 0x7 << 76 | (microseconds << 12) // 1_000 << 64
    random = int.from_bytes(os.urandom(8), "big") & (1 << 62) - 1
    return UUID(int=high | 0b10 << 62 | random)


class Wire(BaseModel):
    """Base of everything an operation takes or returns: immutable, no unknown fields.

    Validators are built when a model is first used: there are hundreds, and a start would wait for all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Level(IntEnum):
    """How much a caller may do; each level includes the ones before it."""

    ANONYMOUS = 0
    READ = 1
    WORKER = 2
    PLANNER = 3
    OPERATOR = 4


class GrantedAccess(StrEnum):
    """What an approval grants (spec 1): reading, or reading and writing."""

    READ = "read"
    WRITE = "write"


class Role(StrEnum):
    """What an agent does in a team: a worker takes tasks, a planner also creates them."""

    WORKER = "worker"
    PLANNER = "planner"


class Capability(StrEnum):
    """What a caller may do besides what its level allows.

    An agent with a definition may read its own, and may also change its rules and references. `TOOLS`: it may call some
    of the tools in the catalogue. `OWN_PERSONALITY`: it may change the traits of its profile on a KOI network.
    """

    DEFINITIONS = "definitions"
    OWN_DEFINITION = "own_definition"
    CHANGE_OWN_DEFINITION = "change_own_definition"
    TOOLS = "tools"
    OWN_PERSONALITY = "own_personality"


class SelfTools(StrEnum):
    """What an agent may do with its own definition."""

    OFF = "off"
    READ = "read"
    WRITE = "write"


class Access(StrEnum):
    """Whose rows an agent sees (spec 1): its own, its team's, or its session's."""

    SELF_ONLY = "self_only"
    TEAM_LEVEL = "team_level"
    SESSION_LEVEL = "session_level"


class TaskState(StrEnum):
    """Where a task stands (spec 3, task lifecycle)."""

    PENDING = "pending"
    CLAIMED = "claimed"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ShownState = Literal["pending", "blocked", "claimed", "in_progress", "completed", "failed", "cancelled"]
"""The states of tasks as people see them: blocked are the pending ones that wait for others."""


class OnFailure(StrEnum):
    """What the failure or cancellation of a dependency does to a task."""

    BLOCK = "block"
    CANCEL = "cancel"
    IGNORE = "ignore"


class Registration(StrEnum):
    """Where an agent's registration stands (spec 1, with rejected and revoked)."""

    PENDING = "pending"
    ASSIGNED = "assigned"
    ACTIVE = "active"
    INACTIVE = "inactive"
    REJECTED = "rejected"
    REVOKED = "revoked"


class FeedEvent(Wire):
    """One row of the feed: what happened, written in the transaction that made it happen."""

    id: int
    at: Micros
    kind: str
    actor: str
    subject: str
    session: str | None
    data: dict[str, Any]

    @cached_property
    def as_json(self) -> str:
        """It as JSON text, written once for all who follow the feed."""
        return self.model_dump_json()


class ServerInfo(Wire):
    """The running server, as described in `.aiswarm/server.json`, without the operator's token."""

    pid: int
    started: float
    nonce: str
    url: str
    ws_url: str
    mcp_url: str
