"""What a tool may use of its caller while it runs, and how it reports its progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class ProgressReceiver(Protocol):
    """Receives the progress of a call."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """`progress` of `total`, if that is known, with a text."""
        ...


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """How far a call is: `progress` of `total`, if that is known, with a text."""

    progress: float
    total: float | None = None
    message: str | None = None


Elicit = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""`elicit(message, schema)`: what the caller answers, as an MCP `ElicitResult`."""


Follow = Callable[[str, int | None], None]
"""`follow(call_id, approval_id)`: the call waits for this approval; None: it runs."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a tool may use of its caller while it runs, and where the caller follows the call; None: the caller does not
    offer it."""

    progress: ProgressReceiver | None = None
    elicit: Elicit | None = None
    follow: Follow | None = None
