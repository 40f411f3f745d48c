"""Tools over HTTP: the REST endpoints, and a client that leaves while its call waits or runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.conftest import Admit, Served
from tests.services.tools.conftest import Hanging, Shelf, question, rows

pytestmark = pytest.mark.anyio


@pytest.fixture
async def agent(served: Served, admit: Admit) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client of an agent that was granted the tools of the server `hub`."""
    headers = {"Authorization": f"Bearer {(await admit('ada', tools=['hub'])).token}"}
    async with httpx2.AsyncClient(base_url=served.info.url, headers=headers, trust_env=False, verify=False) as made:
        yield made


async def test_the_catalogue_and_calls_have_endpoints(served: Served, shelf: Shelf, agent: httpx2.AsyncClient) -> None:
    shelf.put("hub__post")
    tools = {one["name"]: one for one in (await agent.get("/api/tools")).json()["data"]["tools"]}
    assert (tools["hub__post"]["source"], tools["whoami"]["source"]) == ("mcp", "local")
    assert (await agent.get("/api/tools/hub__post")).json()["data"]["parameters"] == {"type": "object"}
    assert (await agent.get("/api/tools/hub__none")).status_code == 404
    await served.workbench.call("set_tool_permission", name="hub__post", permission="always")
    made = (await agent.post("/api/tools/hub__post/call", json={"x": [1]})).json()["data"]
    assert made["result"] == {"x": [1]}
    [call] = (await agent.get("/tool-calls?state=completed")).json()
    assert (await agent.get(f"/api/tool-calls/{call['call_id']}")).json()["data"]["arguments"] == {"x": [1]}
    assert (await agent.get("/api/tool-permissions")).status_code == 403


@pytest.mark.parametrize("runs", [False, True])
async def test_who_leaves_ends_the_call(served: Served, shelf: Shelf, agent: httpx2.AsyncClient, runs: bool) -> None:
    hanging = Hanging()
    shelf.put("hub__wait", hanging)
    calling = asyncio.create_task(agent.post("/api/tools/hub__wait/call", json={}))
    asked = await question(served.workbench)
    async with served.workbench.feed.subscribe("tool.completed", "tool.abandoned") as ends:
        if runs:
            await served.workbench.call("approve", approval_id=asked["id"])
            await hanging.begun.wait()
        calling.cancel()
        await asyncio.wait([calling])
        ended = await anext(ends)
    assert ended.data["state"] == "cancelled"
    assert hanging.cancelled.is_set() == runs
    assert [row["state"] for row in await rows(served.workbench)] == ["cancelled"]
    status = (await served.workbench.call("get_approval", approval_id=asked["id"]))["status"]
    assert status == ("approved" if runs else "failed")
