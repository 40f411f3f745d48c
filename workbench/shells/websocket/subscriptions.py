"""The subscriptions of one connection. Each follows the feed in its own task until it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput, Conflict
from workbench.model import FeedEvent
from workbench.rules.wire import message

MAX_SUBSCRIPTIONS = 16


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """What a subscription follows, and the id of the request that its events carry.

    `mine`: whether it includes the events that the subscriber causes. `tool_messages`: events of tools come as the
    messages of spec 4.
    """

    kinds: list[str]
    after: int
    mine: bool
    request_id: Any
    tool_messages: bool = False

    def text(self, event: FeedEvent) -> str:
        """The message for an event, as JSON text."""
        tool_text = message.tool_message(event, self.request_id) if self.tool_messages else None
        return message.event(event, self.request_id) if tool_text is None else tool_text


class TaskSubscriptions:
    """The tasks of the subscriptions, with the ids of their requests.

    Args:
        begin: starts the task of a subscription.
    """

    def __init__(self, begin: Callable[[SubscriptionFilter], asyncio.Task[None]]) -> None:
        self._begin = begin
        self._tasks: dict[asyncio.Task[None], Any] = {}

    def require_room(self) -> None:
        """Refuse another subscription when the limit is reached.

        Raises:
            Conflict: ``TOO_MANY_SUBSCRIPTIONS``.
        """
        if len(self._tasks) >= MAX_SUBSCRIPTIONS:
            raise Conflict(
                "TOO_MANY_SUBSCRIPTIONS",
                f"A connection may have at most {MAX_SUBSCRIPTIONS} subscriptions. End one first.",
            )

    def add(self, event_filter: SubscriptionFilter) -> None:
        """Start a subscription; it replaces one with the same request id."""
        if event_filter.request_id is not None:
            self.end(event_filter.request_id)
        task = self._begin(event_filter)
        self._tasks[task] = event_filter.request_id
        task.add_done_callback(lambda ended_task: self._tasks.pop(ended_task, None))

    def end(self, request_id: Any = None) -> int:
        """End the subscription of a request, or all if None; how many were ended."""
        ending = [task for task, subscription in self._tasks.items() if request_id in (None, subscription)]
        for task in ending:
            task.cancel()
            del self._tasks[task]
        return len(ending)


def arguments(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a `subscribe`, as arguments of `list_events`. Without `after` it begins with what happens next.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    filters = {key: value for key, value in data.items() if key not in ("agent_id", "tool_messages")}
    is_flag = isinstance(data.get("tool_messages", False), bool)
    if filters.keys() - {"after", "kinds", "mine"} or filters.get("kinds") == [] or not is_flag:
        allowed = "kinds (at least one), after, mine and tool_messages (true or false)"
        raise BadInput("INVALID_ARGUMENTS", f"subscribe takes only {allowed}.")
    return {"after": None, **filters}
