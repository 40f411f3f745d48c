"""What a tool may use of its caller while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.rules.tools.progress import ProgressReceiver

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
