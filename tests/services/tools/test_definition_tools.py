"""Tools that definitions export: the prompt is filled in and sent to the definition's model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Admit, Served
from tests.providers.dialects import OLLAMA
from tests.providers.provider import provider
from tests.providers.wire import Step
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Unavailable, WorkbenchError
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

TOOLS = """\
metadata:
  id: text-tools
  name: Text tools
  mode: tools
{settings}
tools:
  - name: shorten
    description: Shorten a text.
    parameters:
      type: object
      properties:
        text: {type: string}
        words: {type: integer}
      required: [text]
      additionalProperties: false
    prompt: "{name} in {words} words: {text}"
"""
ECHO = "settings:\n  model: test:echo"
NAME = "Text-tools__shorten"


def write(settings: Settings, chosen: str = ECHO, name: str = "text-tools", text: str = TOOLS) -> None:
    """Write the definition."""
    path = settings.home / "agents" / name / "agent.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("{settings}", chosen))


async def listed_tools(workbench: Workbench) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = (await workbench.call("list_tools", kind="definition"))["tools"]
    return tools


async def test_an_exported_tool_asks_the_model_of_its_definition(workbench: Workbench, settings: Settings) -> None:
    write(settings)
    [tool] = await listed_tools(workbench)
    assert (tool["name"], tool["title"], tool["source"]) == (NAME, "Text tools: shorten", "local")
    done = await workbench.call("call_tool", name=NAME, arguments={"text": "A {long} one", "words": 2})
    assert (done["result"], done["is_error"]) == ("You said: shorten in 2 words: A {long} one", False)
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("call_tool", name=NAME, arguments={"text": 5})
    await workbench.call("agent_delete_tool", agentTarget="Text tools", toolName="shorten")
    with pytest.raises(NotFound, match="UNKNOWN_TOOL"):
        await workbench.call("call_tool", name=NAME, arguments={"text": "x"})


async def test_the_caller_of_a_tool_learns_that_a_limit_cut_the_answer(
    workbench: Workbench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(settings, f"settings:\n  model: {OLLAMA.model}")
    async with provider(OLLAMA.reply(Step(["One "], end="length", usage=(9, 5))), OLLAMA.reply(Step([]))) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        cut, empty = [await workbench.call("call_tool", name=NAME, arguments={"text": "x"}) for _ in range(2)]
    assert cut["result"].split("\n") == ["One ", "This answer is cut at 5 tokens."]
    assert empty["result"] == "This answer is empty."


async def test_without_a_model_or_in_another_mode_nothing_is_offered(workbench: Workbench, settings: Settings) -> None:
    write(settings, "")
    assert [tool["problem"] for tool in await listed_tools(workbench)] == ["its definition names no model"]
    with pytest.raises(Unavailable, match="TOOL_UNAVAILABLE"):
        await workbench.call("call_tool", name=NAME, arguments={"text": "x"})
    write(settings, text=TOOLS.replace("mode: tools", "mode: interactive"))
    assert await listed_tools(workbench) == []


async def test_definitions_of_one_name_offer_no_tools_and_an_unreadable_one_is_skipped(
    workbench: Workbench, settings: Settings
) -> None:
    write(settings)
    write(settings, name="broken", text="metadata: [")
    assert [tool["problem"] for tool in await listed_tools(workbench)] == [None]
    write(settings, name="copy", text=TOOLS.replace("name: Text tools", "name: text-Tools"))
    [tool] = await listed_tools(workbench)
    assert tool["problem"] == "the definitions ./agents/copy, ./agents/text-tools are called the same"
    with pytest.raises(Unavailable, match="TOOL_UNAVAILABLE"):
        await workbench.call("call_tool", name=tool["name"], arguments={"text": "x"})


async def test_a_definition_that_exports_tools_and_a_server_never_share_a_name(
    served: Served, settings: Settings
) -> None:
    workbench, server = served.workbench, {"command": "true"}
    write(settings)
    own = {"agentTarget": "Text tools", "serverName": "text-tools", "config": server}
    for operation, arguments in (
        ("add_tool_server", {"name": "text-TOOLS", "config": server}),
        ("agent_add_mcp_server", own),
    ):
        with pytest.raises(Conflict, match="TOOL_NAME_TAKEN"):
            await workbench.call(operation, **arguments)
    await workbench.call("add_tool_server", name="files", config=server)
    with pytest.raises(Conflict, match="TOOL_NAME_TAKEN"):
        await workbench.call("agent_create", agentPath="./agents/files", name="Files", mode="tools")
    await workbench.call("agent_create", agentPath="./agents/files", name="Files")
    for changes in ({"mode": "tools"}, {"mode": "tools", "name": "files"}):
        with pytest.raises(Conflict, match="TOOL_NAME_TAKEN"):
            await workbench.call("agent_update_metadata", agentTarget="./agents/files", metadata=changes)
    write(settings, text=TOOLS.replace("name: Text tools", "name: files"))
    [tool] = await listed_tools(workbench)
    assert tool["problem"] == "an MCP server is named files, too"


async def test_a_provider_that_is_not_trusted_is_not_used(workbench: Workbench, settings: Settings) -> None:
    write(settings, "settings:\n  model: openai:gpt-5\nproviders:\n  openai:\n    OPENAI_API_KEY: sk-theirs-12345")
    with pytest.raises(WorkbenchError, match="DEFINITION_NOT_TRUSTED"):
        await workbench.call("call_tool", name=NAME, arguments={"text": "x"})
    [call] = (await workbench.call("list_tool_calls"))["calls"]
    assert (call["tool_name"], call["state"], call["error_code"]) == (NAME, "failed", "DEFINITION_NOT_TRUSTED")


async def test_an_agent_calls_an_exported_tool_only_with_a_grant(
    workbench: Workbench, settings: Settings, admit: Admit
) -> None:
    write(settings)
    stranger, granted = (await admit("ada")).caller, (await admit("bob", tools=[NAME])).caller
    with pytest.raises(WorkbenchError, match="FORBIDDEN"):
        await workbench.dispatch(stranger, "call_tool", {"name": NAME, "arguments": {"text": "x"}})
    tools = await workbench.dispatch(granted, "list_tools", {"kind": "definition"})
    assert [tool["name"] for tool in tools["tools"]] == [NAME]
