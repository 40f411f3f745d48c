"""The tools of conversations over `/ws/chat`: local ones, those of MCP servers, both, and those that ask first."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from tests.conftest import Served
from tests.shells.websocket.test_chat import Begin, Client, Clients, begin, client, of, text
from tests.upstream.servers import SERVER
from workbench.state.settings import Settings

__all__ = ["begin", "client"]

pytestmark = [pytest.mark.anyio, pytest.mark.long]

LOCAL = {"tool": "list_tasks"}
REMOTE = {"tool": "small__add", "input": {"a": 1, "b": 2}}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A project with the tests' MCP server as a file; starting it may take long on a busy machine."""
    shutil.copy(SERVER, settings.project / "server.py")
    return settings.model_copy(update={"tool_server_start_seconds": 60.0})


@pytest.fixture
async def small(served: Served, settings: Settings) -> None:
    """The server `small` runs."""
    config = {"command": sys.executable, "args": [str(settings.project / "server.py")]}
    added = await served.workbench.call("add_tool_server", name="small", config=config)
    assert added["state"] == "ready"


@pytest.mark.usefixtures("small")
async def test_tools_of_both_sources_are_called_in_one_answer_and_told_apart(
    client: Clients, begin: Begin, served: Served
) -> None:
    await served.workbench.call("set_tool_permission", name="small__add", permission="always")
    conversation = await begin([{"calls": [LOCAL, REMOTE]}, {"say": "Done."}], tools=["*", "workbench"])
    heard = await (await client()).ask(conversation)
    for kind in ("tool_start", "tool_complete"):
        found = {(message["tool_name"], message["source"], message["server"]) for message in of(heard, kind)}
        assert found == {("list_tasks", "local", None), ("small__add", "mcp", "small")}
    [result] = [message for message in of(heard, "tool_complete") if message["source"] == "mcp"]
    assert (json.loads(result["tool_result"]), result["is_error"]) == ({"result": 3}, False)
    assert text(heard) == "Done."


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("decision", "is_error"), [("approve", False), ("reject", True)])
async def test_a_tool_that_needs_permission_waits_and_the_answer_goes_on(
    client: Clients, begin: Begin, served: Served, decision: str, is_error: bool
) -> None:
    await served.workbench.call("set_tool_permission", name="small__add", permission="ask")
    conversation = await begin([{"calls": [REMOTE]}, {"say": "Done."}])
    line: Client = await client()
    await line.send(type="message", conversation_id=conversation, content="Hello")
    waiting = (await line.until("tool_waiting"))[-1]
    await served.workbench.call(decision, approval_id=waiting["approval_id"])
    heard = await line.until("complete", "error")
    [done] = of(heard, "tool_complete")
    assert (done["call_id"], done["is_error"], text(heard)) == (waiting["call_id"], is_error, "Done.")


@pytest.mark.usefixtures("small")
async def test_a_tool_server_that_ends_in_mid_call_fails_the_call_and_not_the_answer(
    client: Clients, begin: Begin, served: Served
) -> None:
    await served.workbench.call("set_tool_permission", name="small__exit_now", permission="always")
    conversation = await begin(
        [{"calls": [{"tool": "small__exit_now"}, LOCAL]}, {"say": "Done."}], tools=["*", "workbench"]
    )
    heard = await (await client()).ask(conversation)
    outcomes = {message["tool_name"]: message["is_error"] for message in of(heard, "tool_complete")}
    assert outcomes == {"small__exit_now": True, "list_tasks": False}
    assert text(heard) == "Done."
