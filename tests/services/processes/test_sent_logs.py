"""Logs of workers on machines without a clone: each line once, within the limit, without the person's secrets."""

from __future__ import annotations

import logging
from itertools import count
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, admitted
from workbench.client import HttpClient
from workbench.client.messages import no_server
from workbench.worker import own_log
from workbench.worker.own_log import LogSender

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
async def token(served: Served) -> str:
    """The token of a worker that a machine has enlisted."""
    token = (await served.workbench.call("add_machine", name="gpu"))["token"]
    async with HttpClient(served.info.url, token) as machine:
        made = await machine.call("enlist_elsewhere", key="k" * 43, persona_id="implementer", name="far")
    return str(made["token"])


async def lines_of(served: Served) -> list[str]:
    """Its log, as the person sees it."""
    process = await served.workbench.call("get_agent_process_info", agent_id="far", log_lines=1_000)
    lines: list[str] = process["log_tail"]
    return lines


async def has_arrived(served: Served, line: str) -> bool:
    """Whether a line is in its log."""
    return line in await lines_of(served)


async def test_each_line_of_a_log_arrives_once_although_the_link_is_cut_before_or_after_its_piece(
    served: Served, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_log, "SECONDS", 0.01)
    monkeypatch.setattr(own_log, "PIECE", 30)
    secret = "Tn4kQ8wZr2LxVb7"
    served.workbench._ctx.secrets.add([secret])
    lines, calls = [f"line {number}" for number in range(20)] + ["x" * 100, f"key {secret}", "last"], count()
    async with HttpClient(served.info.url, token) as client:

        async def call(name: str, **arguments: Any) -> dict[str, Any]:
            number = next(calls)
            if number % 3 == 1:
                raise no_server(ConnectionError("cut"))
            answer = await client.call(name, **arguments)
            if number % 3 == 2:
                raise no_server(ConnectionError("cut"))
            return answer

        sender = LogSender(call)
        async with sender.sending():
            for line in lines:
                sender.handle(logging.makeLogRecord({"msg": line}))
            await given.until(lambda: has_arrived(served, "last"))
    shown = await lines_of(served)
    assert secret not in str(shown)
    assert [*shown[:-2], shown[-1]] == [*lines[:-2], lines[-1]]


async def test_a_log_keeps_within_its_limit_and_nobody_else_sends_one(served: Served, token: str) -> None:
    served.workbench.settings.__dict__["max_sent_log_bytes"] = 100
    offset = 0
    async with HttpClient(served.info.url, token) as client:
        for number in range(30):
            text = f"line {number}\n"
            sent = await client.call("send_process_log", offset=offset, text=text)
            assert sent["taken"]
            assert sent["received"] <= 100
            again = await client.call("send_process_log", offset=offset, text=text)  # its answer was lost
            assert again["received"] <= 100
            offset = sent["received"]
        assert await client.call("send_process_log") == {"received": offset, "taken": False}
    lines = await lines_of(served)
    assert lines[-3:] == ["line 27", "line 28", "line 29"]
    assert len(lines) < 12
    local = (await admitted(served.workbench, "near")).token
    async with HttpClient(served.info.url, local) as client:
        await given.refuses("FORBIDDEN", client.call("send_process_log", text="x\n"))
