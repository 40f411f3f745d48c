"""The coroutines of a program that wait for the server: for the reply to a call, or for events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from workbench.client.actions import ActionResult, Fail, Wake


class WaitingRequests:
    """The waiting callers by the number of their request, and their deadlines.

    Args:
        timeout: seconds that the server may take to reply.
        expired: called with the number of a request that was not replied to in time.
    """

    def __init__(self, timeout: float, expired: Callable[[int], None]) -> None:
        self._timeout = timeout
        self._expired = expired
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._wakes: dict[int, asyncio.Event] = {}
        self._deadlines: dict[int, asyncio.TimerHandle] = {}

    def for_answer(self, number: int) -> asyncio.Future[dict[str, Any]]:
        """A future for the caller to await."""
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        return answer

    def for_events(self, number: int) -> asyncio.Event:
        """An event that is set whenever a subscription has something for its reader."""
        wake = self._wakes[number] = asyncio.Event()
        return wake

    def sent(self, number: int) -> None:
        """A request was sent: the server has to reply to it in time."""
        self._disarm(number)
        if number in self._answers or number in self._wakes:
            loop = asyncio.get_running_loop()
            self._deadlines[number] = loop.call_later(self._timeout, self._expired, number)

    def settle(self, outcome: ActionResult | Fail | Wake) -> None:
        """Hand an outcome to its waiting caller."""
        self._disarm(outcome.number)
        answer = self._answers.get(outcome.number)
        match outcome:
            case ActionResult(data=data) if answer is not None and not answer.done():
                answer.set_result(data)
            case Fail(error=error) if answer is not None and not answer.done():
                answer.set_exception(error)
            case Wake(number) if number in self._wakes:
                self._wakes[number].set()

    def end(self, number: int) -> None:
        """Drop a call or subscription."""
        self._disarm(number)
        self._answers.pop(number, None)
        self._wakes.pop(number, None)

    def _disarm(self, number: int) -> None:
        if deadline := self._deadlines.pop(number, None):
            deadline.cancel()
