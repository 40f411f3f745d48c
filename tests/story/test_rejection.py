"""A rejected agent gets `REJECTED` with the operator's reason from every client; `test_story` has the shells."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from workbench.client import Agent, HttpClient, McpClient, SyncAgent
from workbench.errors import Refused
from workbench.model import ServerInfo

if TYPE_CHECKING:
    from tests.conftest import Served, Talks

pytestmark = pytest.mark.anyio

TOLD = {
    "code": "REJECTED",
    "message": "Your registration was rejected: Full house. Ask the operator before you register again.",
    "details": {"reason": "Full house"},
    "status": 403,
}


async def agent(server: ServerInfo, token: str) -> None:
    async with Agent(server.url, token=token):
        pass


async def agent_without_a_loop(server: ServerInfo, token: str) -> None:
    await asyncio.to_thread(SyncAgent(server.url, token=token).__enter__)


async def http_client(server: ServerInfo, token: str) -> None:
    async with HttpClient(server.url, token) as client:
        await client.call("claim_task")


async def mcp_client(server: ServerInfo, token: str) -> None:
    async with McpClient(server.mcp_url, token) as client:
        await client.call("claim_task")


@pytest.fixture
async def rejected(served: Served) -> str:
    """The token of a rejected agent."""
    registration = await served.workbench.call("register", name="Eve")
    await served.workbench.call("reject", approval_id=registration["approval_id"], reason="Full house")
    return str(registration["token"])


@pytest.mark.parametrize("use", [agent, agent_without_a_loop, http_client, mcp_client])
async def test_a_client_raises_the_rejection(
    use: Callable[[ServerInfo, str], Awaitable[None]], served: Served, rejected: str
) -> None:
    with pytest.raises(Refused) as caught:
        await use(served.info, rejected)
    assert caught.value.as_dict() == TOLD


async def test_an_agent_that_waits_gets_the_rejection_when_it_is_made(served: Served) -> None:
    waiting = asyncio.create_task(agent_that_registers(served.info))
    async with served.workbench.feed.subscribe("approval.requested", after=0) as asked:
        approval = int((await anext(asked)).subject.partition(":")[2])
    await served.workbench.call("reject", approval_id=approval, reason="Full house")
    with pytest.raises(Refused) as caught:
        await waiting
    assert caught.value.as_dict() == TOLD


async def agent_that_registers(server: ServerInfo) -> None:
    async with Agent(server.url, name="Eve"):
        pass


async def test_a_connection_with_its_token_gets_the_rejection_first(served: Served, talk: Talks, rejected: str) -> None:
    line = await talk("eve", subprotocols=["wb.v1", f"bearer.{rejected}"])
    message: dict[str, Any] = await line.hear()
    known = {key: TOLD[key] for key in ("code", "message", "status")}
    assert message == {"type": "registration_rejected", "reason": "Full house", **known}
