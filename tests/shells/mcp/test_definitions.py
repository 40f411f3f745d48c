"""The scenarios of the specification of definitions, by MCP clients: over HTTP, and with `workbench mcp`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
from mcp.client import Client

from tests.conftest import Admit, Served
from tests.shells.mcp.sessions import data, session, stdio_session, tokens

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

Connect = Callable[..., AbstractAsyncContextManager[Client]]

RULE = {
    "name": "be-polite",
    "description": "Always be polite",
    "text": "Always use polite language...",
    "priorityLevel": 1,
    "include": "always",
}
REFERENCE = {
    "name": "api-docs",
    "description": "API documentation",
    "text": "GET /penguins lists them.",
    "priorityLevel": 1,
    "include": "manual",
}
TARGET = {"agentTarget": "./agents/my-new-agent"}
CREATED: dict[str, dict[str, Any]] = {
    "agent_create": {
        "agentPath": "./agents/my-new-agent",
        "name": "My New Agent",
        "description": "A helpful assistant",
        "mode": "interactive",
    },
    "agent_set_system_prompt": {**TARGET, "prompt": "You are a helpful assistant..."},
    "agent_add_rule": {**TARGET, "rule": RULE},
    "agent_install_provider": {
        **TARGET,
        "providerType": "openai",
        "config": {"OPENAI_API_KEY": "op://vault/item/field"},
    },
}
"""The first scenario, word for word."""


@pytest.fixture(params=["http", pytest.param("stdio", marks=pytest.mark.long)])
def connect(request: pytest.FixtureRequest, served: Served) -> Connect:
    """`async with connect(token, era) as client`."""
    if request.param == "http":
        return partial(session, served)
    return partial(stdio_session, served.workbench.settings.project)


async def use_tool(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool, which the client has compared with its output schema."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return data(result)


async def test_an_agent_is_created_and_configured(served: Served, connect: Connect, admit: Admit, era: str) -> None:
    planner = await admit("pam", role="planner", definitions=True)
    async with connect(planner.token, era) as client:
        for name, arguments in CREATED.items():
            assert (await use_tool(client, name, arguments))["success"] is True
        info = await use_tool(client, "agent_get_info", {"agentTarget": "My New Agent"})
    assert (info["path"], info["mode"], info["ruleCount"]) == ("./agents/my-new-agent", "interactive", 1)
    assert info["installedProviders"] == ["openai"]
    place = served.workbench.settings.home / "agents" / "my-new-agent"
    assert (place / "prompt.md").read_text() == "You are a helpful assistant...\n"
    assert "Always use polite language..." in (place / "rules" / "be-polite.md").read_text()
    assert "OPENAI_API_KEY: op://vault/item/field" in (place / "agent.yaml").read_text()


async def test_a_planner_changes_the_definition_of_another_agent(
    served: Served, connect: Connect, admit: Admit
) -> None:
    planner = await admit("pam", role="planner", definitions=True)
    await served.workbench.call("agent_create", agentPath="./agents/agent-b", name="Agent B")
    added = {"agentTarget": "./agents/agent-b", "reference": REFERENCE}
    async with connect(planner.token) as client:
        assert (await use_tool(client, "agent_add_reference", added))["success"] is True
        again = await client.call_tool("agent_add_reference", added)
        assert again.is_error
        assert data(again)["success"] is False
        assert data(again)["error"]["code"] == "ALREADY_EXISTS"
    page = await served.workbench.call("agent_list_references", agentTarget="Agent B")
    assert page["references"] == [REFERENCE]


async def test_an_agent_changes_itself(served: Served, connect: Connect, admit: Admit) -> None:
    definition = await served.workbench.call("agent_create", agentPath="./agents/agent-a", name="Agent A")
    ada = await admit("ada", definition=definition["agentId"], self_tools="write")
    async with connect(ada.token) as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert {"add_reference", "list_rules"} <= offered
        assert not any(name.startswith("agent_") for name in offered)
        assert (await use_tool(client, "add_reference", {"reference": REFERENCE}))["success"] is True
        assert (await use_tool(client, "get_reference", {"reference_name": "api-docs"}))["reference"] == REFERENCE
        refused = await client.call_tool("agent_list", {})
        assert data(refused)["error"]["code"] == "FORBIDDEN"
    page = await served.workbench.call("agent_list_references", agentTarget="Agent A")
    assert page["references"] == [REFERENCE]


async def test_the_tools_are_offered_as_the_grant_says(served: Served, admit: Admit) -> None:
    definition = await served.workbench.call("agent_create", agentPath="./agents/agent-a", name="Agent A")
    planner = await admit("pam", role="planner", definition=definition["agentId"])

    async def offered(**changes: Any) -> set[str]:
        await served.workbench.call("update_agent", agent_id="pam", changes=changes)
        async with session(served, planner.token) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    plain = await offered(self_tools="off", definitions=False)
    reading, writing = await offered(self_tools="read"), await offered(self_tools="write")
    defining = await offered(self_tools="off", definitions=True)
    assert reading - plain == {"list_rules", "get_rule", "list_references", "get_reference"}
    assert writing - reading == {
        f"{verb}_{noun}" for verb in ("add", "update", "delete") for noun in ("rule", "reference")
    }
    assert len(defining - plain) >= 37
    assert all(name.startswith("agent_") for name in defining - plain)


@pytest.mark.parametrize(
    ("choices", "limit"),
    [
        ({"role": "worker", "self_tools": "write"}, 8_000),
        ({"role": "planner", "self_tools": "write"}, 15_000),
        ({"role": "planner", "self_tools": "off", "definitions": True}, 20_000),
    ],
    ids=["worker with a definition", "planner with a definition", "planner of definitions"],
)
async def test_the_list_of_tools_takes_a_limited_number_of_tokens(
    served: Served, admit: Admit, choices: dict[str, Any], limit: int
) -> None:
    definition = await served.workbench.call("agent_create", agentPath="./agents/agent-a", name="Agent A")
    ada = await admit("ada", definition=definition["agentId"], **choices)
    async with session(served, ada.token) as client:
        assert 1_000 < tokens(await client.list_tools(), client.instructions) < limit
