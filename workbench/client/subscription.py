"""One subscription: the events that the server sent and the reader has not taken, in order and without gaps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from workbench.errors import WorkbenchError

UNREAD_LIMIT = 10_000
"""Events that are kept for a slow reader; later ones are requested when the reader has caught up."""

Event = dict[str, Any]


class SubscriptionState(Enum):
    """The state of a subscription."""

    REQUESTED = "requested"
    """The server will confirm; until then its events belong to an earlier request, and may leave a gap."""
    FOLLOWING = "following"
    """The server sends every event."""
    BEHIND = "behind"
    """Events were left out: the server must be asked again, from the last one on."""
    ENDED = "ended"
    """The server will send nothing more."""


class EventSubscription:
    """See the module.

    Args:
        kinds: of events, as the operation `list_events` takes them.
        after: the event to begin after; None: the last one, which the server names.
        mine: whether to include events that the agent itself causes.
    """

    def __init__(self, kinds: Sequence[str], after: int | None, *, mine: bool = True) -> None:
        self.kinds = list(kinds) or ["*"]
        self.last = after
        self.mine = mine
        self.state = SubscriptionState.REQUESTED
        self.error: WorkbenchError | None = None
        self._unread: deque[Event] = deque()

    def requested(self) -> Mapping[str, Any]:
        """Start a request (again); its arguments."""
        self.state = SubscriptionState.REQUESTED
        return {"kinds": self.kinds, "after": self.last, "mine": self.mine}

    def confirmed(self, after: int) -> None:
        """The server begins to send the events after `after`."""
        self.state = SubscriptionState.FOLLOWING
        self.last = after if self.last is None else self.last

    def received(self, event: Event) -> None:
        """An event has come; one that came before is dropped."""
        if self.state is not SubscriptionState.FOLLOWING or (self.last is not None and event["id"] <= self.last):
            return
        if len(self._unread) >= UNREAD_LIMIT:
            self.state = SubscriptionState.BEHIND
        else:
            self.last = event["id"]
            self._unread.append(event)

    def fall_behind(self) -> None:
        """The server has left events out."""
        if self.state is not SubscriptionState.ENDED:
            self.state = SubscriptionState.BEHIND

    def end(self, error: WorkbenchError) -> None:
        """Nothing more will come; the reader gets the error after the events."""
        self.state, self.error = SubscriptionState.ENDED, self.error or error

    def take(self) -> Event | None:
        """The next event; None when there is none now."""
        return self._unread.popleft() if self._unread else None
