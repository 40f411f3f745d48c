"""The protocol between an agent and the server over WebSocket (spec 1), without a socket and without waiting.

Each method takes an occurrence (a connection, a message, a break, a call of the program) and returns the actions that
follow, in order. `Agent` does them.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.client.actions import ActionResult, Fail, Instructions, Outcomes, Ready, Reconnect, Send, Wake
from workbench.client.handshake import STEP, Handshake, Phase
from workbench.client.messages import ServerMessage, bad_reply, decode, result
from workbench.client.subscription import EventSubscription, SubscriptionState
from workbench.errors import BadInput, WorkbenchError, from_dict

log = logging.getLogger(__name__)

MOST_SENDS = 5
"""The most sends of one request, so that one that always breaks the connection is not repeated for ever."""
_REPEATABLE = frozenset({"read", "whoami", "ping", "registration_status"})
_REPEATABLE_PREFIXES = ("get_", "list_", "search_")
_REPLIES_WITHOUT_NUMBER = frozenset({"BAD_MESSAGE", "INTERNAL_ERROR"})
"""Errors in reply to a request whose number the server could not read."""


@dataclass(slots=True)
class _Request:
    action: str
    data: Mapping[str, Any]
    is_sent: bool = False
    sends: int = 0

    @property
    def is_repeatable(self) -> bool:
        """Whether it only reads, so that it can be sent again after a break."""
        reads = self.action in _REPEATABLE or self.action.startswith(_REPEATABLE_PREFIXES)
        return reads and self.sends < MOST_SENDS


class AgentProtocol:
    """Calls and subscriptions of one agent, across connections.

    Args:
        client_id: names the agent to the server before it is authenticated.
        handshake: of the same agent.
    """

    def __init__(self, client_id: str, handshake: Handshake) -> None:
        self.handshake = handshake
        self.has_met_server = False
        self._client_id = client_id
        self._numbers = itertools.count(STEP + 1)
        self._requests: dict[int, _Request] = {}
        self._subscriptions: dict[int, EventSubscription] = {}

    @property
    def is_ready(self) -> bool:
        """Whether requests can be sent."""
        return self.handshake.phase is Phase.READY

    # The connection.

    def connected(self) -> Instructions:
        """A connection was opened."""
        return self.handshake.connected()

    def received(self, text: str | bytes) -> Instructions:
        """A message has come."""
        try:
            message = decode(text)
        except WorkbenchError as error:
            return self._reject_message(error)
        self.has_met_server = True
        number = message.request_id
        if number is None:
            return self._take_unnumbered(message)
        if number == STEP and self.handshake.awaits_reply:
            return self._continue_handshake(self.handshake.replied(message))
        if number in self._subscriptions:
            return self._take_event(number, message)
        if number in self._requests:
            return self._take_reply(number, message)
        return []  # the call was given up before the reply came

    def disconnected(self, error: WorkbenchError, *, too_large: bool = False) -> Outcomes:
        """The connection broke. Requests under way fail, except those that can be sent again.

        Args:
            too_large: the server closed it because of the size of a message.
        """
        self.handshake.disconnected()
        if too_large:
            return self._fail_sent(BadInput("TOO_LARGE", "The server does not take a message of this size."))
        numbers = self._sent_numbers()
        for number in numbers:
            self._requests[number].is_sent = False
        return [self._fail(number, error) for number in numbers if not self._requests[number].is_repeatable]

    def ended(self, error: WorkbenchError) -> Outcomes:
        """There will be no further connection: all calls and subscriptions fail."""
        self.handshake.disconnected()
        for subscription in self._subscriptions.values():
            subscription.end(error)
        failures = [self._fail(number, error) for number in list(self._requests)]
        return [*failures, *map(Wake, self._subscriptions)]

    # The program.

    def call(self, action: str, data: Mapping[str, Any]) -> tuple[int, Instructions]:
        """Run an operation; its number."""
        number = next(self._numbers)
        self._requests[number] = _Request(action, data)
        return number, [self._send(number)] if self.is_ready else []

    def subscribe(
        self, kinds: Sequence[str], after: int | None, *, mine: bool = True
    ) -> tuple[int, EventSubscription, Instructions]:
        """Follow events; the number of the subscription, and the subscription."""
        number, subscription = next(self._numbers), EventSubscription(kinds, after, mine=mine)
        self._subscriptions[number] = subscription
        return number, subscription, self._request_stream(number)

    def resume(self, number: int) -> Instructions:
        """The reader of a subscription has taken all events: request those that were left out meanwhile, if any."""
        return self._request_stream(number) if self._subscriptions[number].state is SubscriptionState.BEHIND else []

    def forget(self, number: int) -> Instructions:
        """The program has given up a call, or stopped reading a subscription."""
        self._requests.pop(number, None)
        if self._subscriptions.pop(number, None) is None or not self.is_ready:
            return []
        return [self._frame("unsubscribe", {"subscription": number}, number)]

    def expired(self, number: int, error: WorkbenchError) -> Outcomes:
        """The server has not replied to a request in time."""
        if not self.is_ready:  # it will be sent again
            return []
        if number in self._requests:
            return [self._fail(number, error)]
        subscription = self._subscriptions.get(number)
        if subscription is None or subscription.state is not SubscriptionState.REQUESTED:
            return []
        subscription.end(error)
        return [Wake(number)]

    # Messages.

    def _continue_handshake(self, instructions: Instructions) -> Instructions:
        """Once the handshake has succeeded, send all waiting requests."""
        if Ready() not in instructions:
            return instructions
        calls = [self._send(number) for number in self._requests]
        events = [frame for number in self._subscriptions for frame in self._request_stream(number)]
        return [*instructions, *calls, *events]

    def _take_reply(self, number: int, message: ServerMessage) -> Instructions:
        request = self._requests.pop(number)
        try:
            return [ActionResult(number, result(request.action, message))]
        except WorkbenchError as error:
            return [Fail(number, error)]

    def _take_unnumbered(self, message: ServerMessage) -> Instructions:
        """Take a message without the number of a request."""
        if message.type in ("agent_assigned", "registration_rejected"):
            return self.handshake.decided(message)
        if message.type == "error":
            return self._take_general_error(from_dict(message.body))
        if message.is_reply:
            return self._reject_message(bad_reply(f"{message.type!r} without a request_id"))
        if message.type != "tool_selection_prompt":
            log.info("a message of type %r is not for agents and is ignored", message.type)
        return []

    def _take_general_error(self, error: WorkbenchError) -> Instructions:
        if error.code == "FLOODING":  # the server closes the connection: sending it all again would flood it again
            return self._fail_sent(error)
        if error.code in _REPLIES_WITHOUT_NUMBER:
            return self._fail_oldest(error)
        log.warning("the server reports: %s", error)
        return [Reconnect(error)] if self.handshake.phase is Phase.WAITING else []

    def _reject_message(self, error: WorkbenchError) -> Instructions:
        """It may be a reply or an event: fail a call, rather than let it wait for ever, and request events again."""
        log.warning("a message of the server is not understood: %s", error.message)
        events = [frame for number in self._subscriptions for frame in self._request_stream(number)]
        return [*self._fail_oldest(error), *events]

    def _fail_oldest(self, error: WorkbenchError) -> Instructions:
        """Fail the oldest request: replies come in the order of requests, so one without a number answers it."""
        if self.handshake.awaits_reply:
            return self.handshake.failed(error)
        return [self._fail(number, error) for number in self._sent_numbers()[:1]]

    def _fail_sent(self, error: WorkbenchError) -> Outcomes:
        """Fail all requests under way, even repeatable ones, because they make the server close the connection."""
        return [self._fail(number, error) for number in self._sent_numbers()]

    def _fail(self, number: int, error: WorkbenchError) -> Fail:
        del self._requests[number]
        return Fail(number, error)

    def _sent_numbers(self) -> list[int]:
        """The numbers of the requests under way, the oldest first."""
        return [number for number, request in self._requests.items() if request.is_sent]

    # Events.

    def _take_event(self, number: int, message: ServerMessage) -> Instructions:
        subscription = self._subscriptions[number]
        try:
            if message.type == "event":
                subscription.received(_event(message))
            elif message.type == "subscribe_response":
                subscription.confirmed(_after(message))
            elif message.body.get("code") == "READER_TOO_SLOW":
                subscription.fall_behind()
            elif message.type == "error":
                subscription.end(from_dict(message.body))
            else:
                raise bad_reply(f"{message.type!r} in reply to 'subscribe'")
        except WorkbenchError as error:
            subscription.end(error)
        return [Wake(number)]

    def _request_stream(self, number: int) -> Instructions:
        subscription = self._subscriptions[number]
        if not self.is_ready or subscription.state is SubscriptionState.ENDED:
            return []
        return [self._frame("subscribe", subscription.requested(), number)]

    # Frames.

    def _send(self, number: int) -> Send:
        request = self._requests[number]
        request.is_sent, request.sends = True, request.sends + 1
        return self._frame(request.action, request.data, number)

    def _frame(self, action: str, data: Mapping[str, Any], number: int) -> Send:
        return Send(json.dumps([self._client_id, action, {**data, "request_id": number}]), number)


def _event(message: ServerMessage) -> dict[str, Any]:
    event: dict[str, Any] = message.field("data", dict)
    if type(event.get("id")) is not int:
        raise bad_reply("an event without an id")
    return event


def _after(message: ServerMessage) -> int:
    after = message.field("data", dict).get("after")
    if type(after) is not int:
        raise bad_reply("'subscribe_response' without after")
    return after
