"""How tools report their progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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
