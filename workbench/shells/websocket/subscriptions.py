"""The subscriptions of one connection: each follows the feed in a task of its own, until it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput, Conflict

MAX_SUBSCRIPTIONS = 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a subscription follows, and the id of the request that its events carry."""

    kinds: list[str]
    after: int
    request_id: Any


class Subscriptions:
    """Tasks by the request that began them.

    Args:
        begin: starts a task that follows what is wanted.
    """

    def __init__(self, begin: Callable[[Wanted], asyncio.Task[None]]) -> None:
        self._begin = begin
        self._tasks: dict[asyncio.Task[None], Any] = {}

    def require_room(self) -> None:
        """Refuse one more than there may be.

        Raises:
            Conflict: ``TOO_MANY_SUBSCRIPTIONS``.
        """
        if len(self._tasks) >= MAX_SUBSCRIPTIONS:
            raise Conflict("TOO_MANY_SUBSCRIPTIONS", f"A connection has at most {MAX_SUBSCRIPTIONS} subscriptions.")

    def add(self, wanted: Wanted) -> None:
        """Begin a subscription; one with the same request id is replaced."""
        if wanted.request_id is not None:
            self.end(wanted.request_id)
        task = self._begin(wanted)
        self._tasks[task] = wanted.request_id
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    def end(self, request_id: Any = None) -> int:
        """End the subscription of a request, or all without one; how many were ended."""
        ending = [task for task, made in self._tasks.items() if request_id in (None, made)]
        for task in ending:
            task.cancel()
            del self._tasks[task]
        return len(ending)


def arguments(data: dict[str, Any]) -> dict[str, Any]:
    """What a `subscribe` asks for, as arguments of `list_events`.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    wanted = {key: value for key, value in data.items() if key != "agent_id"}
    if wanted.keys() - {"after", "kinds"} or wanted.get("kinds") == []:
        raise BadInput("INVALID_ARGUMENTS", "subscribe takes kinds (at least one) and after, and nothing else.")
    return wanted
