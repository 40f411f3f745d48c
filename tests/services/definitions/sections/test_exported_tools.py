"""The tools that a definition in mode `tools` exports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.definitions.rows import TOOL
from tests.services.definitions.test_lifecycle import create
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict

pytestmark = pytest.mark.anyio


async def call(workbench: Workbench, name: str, **arguments: Any) -> dict[str, Any]:
    """Call an operation on the definition."""
    return await workbench.call(name, agentTarget="reviewer", **arguments)


async def test_only_an_agent_in_mode_tools_gets_tools(workbench: Workbench) -> None:
    await create(workbench)
    with pytest.raises(Conflict, match=r"WRONG_MODE.*agent_update_metadata"):
        await call(workbench, "agent_add_tool", tool=TOOL)
    await call(workbench, "agent_update_metadata", metadata={"mode": "tools"})
    await call(workbench, "agent_add_tool", tool=TOOL)
    await call(workbench, "agent_update_metadata", metadata={"mode": "interactive"})
    with pytest.raises(Conflict, match="WRONG_MODE"):
        await call(workbench, "agent_update_tool", toolName=TOOL["name"], tool={"description": "x"})
    assert (await call(workbench, "agent_list_tools"))["tools"] == [TOOL], "its tools are kept"
    await call(workbench, "agent_delete_tool", toolName=TOOL["name"])
    assert (await call(workbench, "agent_list_tools"))["count"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameters": {"type": "array"}},
        {"parameters": {"type": "object", "properties": {"text": {"type": "words"}}}},
        {"prompt": "Translate {text} to {language}."},
        {"prompt": " "},
        {"name": "two words"},
    ],
)
async def test_a_tool_that_could_not_be_called_is_refused(workbench: Workbench, wrong: dict[str, Any]) -> None:
    await create(workbench)
    await call(workbench, "agent_update_metadata", metadata={"mode": "tools"})
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(workbench, "agent_add_tool", tool=TOOL | wrong)
    await call(workbench, "agent_add_tool", tool=TOOL)
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(workbench, "agent_update_tool", toolName=TOOL["name"], tool=wrong)
    assert (await call(workbench, "agent_list_tools"))["tools"] == [TOOL]


async def test_a_parameter_that_the_prompt_uses_is_not_removed(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_update_metadata", metadata={"mode": "tools"})
    await call(workbench, "agent_add_tool", tool=TOOL)
    with pytest.raises(BadInput, match=r"\{text\}"):
        await call(workbench, "agent_update_tool", toolName=TOOL["name"], tool={"parameters": {"type": "object"}})
    changes = {"parameters": {"type": "object"}, "prompt": "Summarise everything."}
    await call(workbench, "agent_update_tool", toolName=TOOL["name"], tool=changes)
    assert (await call(workbench, "agent_get_tool", toolName=TOOL["name"]))["tool"] == TOOL | changes
