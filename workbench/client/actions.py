"""Actions that the pure parts of the client request; `Agent` does them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import WorkbenchError


@dataclass(frozen=True, slots=True)
class Send:
    """Send a text; `number` is the request_id in it."""

    text: str
    number: int


@dataclass(frozen=True, slots=True)
class KeepToken:
    """Hand the token of a new registration to the program."""

    token: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The agent is admitted and authenticated."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """A call has a result."""

    number: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fail:
    """A call has failed."""

    number: int
    error: WorkbenchError


@dataclass(frozen=True, slots=True)
class Wake:
    """A subscription has something for its reader."""

    number: int


@dataclass(frozen=True, slots=True)
class Reconnect:
    """This connection is useless; try another."""

    error: WorkbenchError


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No connection will be useful."""

    error: WorkbenchError


Outcome = KeepToken | Ready | ActionResult | Fail | Wake
"""Actions that concern the program, not the connection."""
Instructions = Sequence[Send | Reconnect | GiveUp | Outcome]
Outcomes = Sequence[Outcome]
