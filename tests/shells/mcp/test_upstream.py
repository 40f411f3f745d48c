"""The tools of the project's MCP servers through Workbench's endpoint: progress, questions and cancellation."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import Any

import pytest

from tests.conftest import Admit, Admitted, Served
from tests.shells.mcp.sessions import session
from tests.shells.mcp.test_questions import said
from tests.shells.mcp.test_tools import code_of
from tests.shells.mcp.watching import notified
from tests.upstream.servers import SERVER
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A project with the tests' server as a file; starting it may take long on a busy machine."""
    shutil.copy(SERVER, settings.project / "server.py")
    return settings.model_copy(update={"tool_server_start_seconds": 60.0})


@pytest.fixture
async def ada(served: Served, admit: Admit, settings: Settings) -> Admitted:
    """An agent that may call the tools of the server without asking."""
    config = {"command": sys.executable, "args": [str(settings.project / "server.py")]}
    added = await served.workbench.call("add_tool_server", name="small", config=config)
    assert added["state"] == "ready", added
    for name in added["tools"]:
        await served.workbench.call("set_tool_permission", name=name, permission="always")
    agent: Admitted = await admit("ada", tools=["small"])
    return agent


async def listed(served: Served, ada: Admitted, era: str) -> set[str]:
    """The tools of the server that the agent is offered."""
    async with session(served, ada.token, era) as client:
        return {tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("small__")}


async def test_results_progress_and_questions_pass_through(served: Served, ada: Admitted, era: str) -> None:
    heard: list[float] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async def answer(ctx: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        assert params.message == "The tool small__paint asks: Which colour for the fence?"
        return ElicitResult(action="accept", content={"colour": "green"})

    async with session(served, ada.token, era, elicitation_callback=answer) as client:
        await client.list_tools()
        assert (await client.call_tool("small__add", {"a": 1, "b": 2})).structured_content == {"result": 3}
        assert said(await client.call_tool("small__count", {"to": 3}, progress_callback=note)) == "done"
        assert said(await client.call_tool("small__paint", {"what": "the fence"})) == "green"
        assert code_of(await client.call_tool("small__add", {"a": "one"})) == "INVALID_ARGUMENTS"
    assert heard == sorted(set(heard))


async def logged(served: Served, text: str) -> None:
    """Wait until the server has written a text to its log."""
    while text not in (await served.workbench.call("list_tool_servers"))["servers"][0]["log"]:
        await asyncio.sleep(0.05)


async def test_cancelling_reaches_the_server(served: Served, ada: Admitted, era: str) -> None:
    async with session(served, ada.token, era) as client:
        async with served.workbench.feed.subscribe("tool.started", "tool.completed") as events:
            call = asyncio.create_task(client.call_tool("small__hang", {}))
            assert (await anext(events)).kind == "tool.started"
            await logged(served, "hang began")  # a call that has not reached the server is not cancelled there
            call.cancel()
            completed = await anext(events)
        assert (completed.kind, completed.data["state"]) == ("tool.completed", "cancelled")
        await logged(served, "hang was cancelled")
        assert not (await client.call_tool("small__add", {"a": 1, "b": 2})).is_error


async def test_an_agent_is_notified_of_what_a_server_offers(served: Served, ada: Admitted, era: str) -> None:
    before = await listed(served, ada, era)
    async with notified(served, ada.token, era) as following, session(served, ada.token, era) as client:

        async def offers(expected: set[str]) -> None:
            """Wait for notices until a list is as expected: the start of the server may be announced as late as now."""
            while await listed(served, ada, era) != expected:
                assert await following() == "tools"

        await client.call_tool("small__grow", {})
        await offers(before | {"small__more"})
        assert code_of(await client.call_tool("small__exit_now", {})) == "TOOL_SERVER_DOWN"
        await offers(before)
