"""The calls of tools that a program tells of are recorded as far as the server takes them, and all of them end."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.drivers.stream import ToolEnd, ToolStart
from workbench.errors import BadInput, Unavailable
from workbench.worker.progress import CALLS_LIMIT, CallReporter

pytestmark = pytest.mark.anyio

Calls = list[dict[str, Any]]


class Recorder:
    """A server that takes no more at once than it says, and fails as it is told."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.started: Calls = []
        self.ended: Calls = []

    async def __call__(self, started: Calls, ended: Calls) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if len(started) + len(ended) > 1_000:
            raise BadInput("BAD_MESSAGE", "There are too many.")
        self.started += started
        self.ended += ended


def begins(number: int) -> ToolStart:
    return ToolStart(call=str(number), tool="shell", arguments={}, server=None)


async def test_all_calls_that_are_open_when_the_program_ends_are_interrupted() -> None:
    server = Recorder()
    reporter = CallReporter(server)
    async with reporter.sending() as add:
        for batch in range(3):
            for number in range(CALLS_LIMIT):
                add(begins(batch * CALLS_LIMIT + number))
            await reporter._flush()
    assert len(server.started) == 3 * CALLS_LIMIT
    assert {call["call_id"] for call in server.ended} == {call["call_id"] for call in server.started}
    assert {call["state"] for call in server.ended} == {"interrupted"}


@pytest.mark.parametrize("failure", [Unavailable("NO_SERVER", "It stops."), ValueError("whatever")])
async def test_an_end_is_told_again_when_the_server_did_not_take_it(failure: Exception) -> None:
    server = Recorder()
    reporter = CallReporter(server)
    async with reporter.sending() as add:
        add(begins(1))
        await reporter._flush()
        server.failures = [failure]
        add(ToolEnd(call="1", result="whole", is_error=False))
        await reporter._flush()
        assert server.ended == []
    assert [(call["state"], call["result"]) for call in server.ended] == [("completed", None)]
