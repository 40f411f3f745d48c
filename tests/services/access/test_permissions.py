"""The tools register, read and write: their permissions, and switching them off."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused

pytestmark = pytest.mark.anyio


async def tools(workbench: Workbench) -> dict[str, dict[str, Any]]:
    """The tools by id."""
    return {tool["id"]: tool for tool in (await workbench.call("list_agent_tools"))["agent_tools"]}


async def test_agents_may_list_but_not_change_the_three_tools(workbench: Workbench, admit: Admit) -> None:
    found = await tools(workbench)
    assert sorted(found) == ["read", "register", "write"]
    assert all(tool["enabled"] for tool in found.values())
    assert (found["read"]["permissions"]["write"], found["write"]["permissions"]["write"]) == ([], ["contexts"])
    assert found["read"]["permissions"]["read"] == ["contexts", "sessions", "projects", "teams", "agents", "tasks"]
    ada = await admit("ada", tool="read")
    listed = await workbench.dispatch(ada.caller, "list_agent_tools", {})
    assert [tool["id"] for tool in listed["agent_tools"]] == sorted(found)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "update_agent_tool", {"tool_id": "read", "enabled": True})


async def test_an_update_of_a_tool_changes_only_the_given_fields(workbench: Workbench) -> None:
    before = (await tools(workbench))["write"]
    assert await workbench.call("update_agent_tool", tool_id="write") == before
    changed = await workbench.call("update_agent_tool", tool_id="write", permissions={"read": ["contexts"]})
    permissions = {"read": ["contexts"], "write": []}
    assert changed == before | {"permissions": permissions, "updated_at": changed["updated_at"]}
    said = {"enabled": False, "description": "Not now."}
    off = await workbench.call("update_agent_tool", tool_id="write", **said)
    assert {key: off[key] for key in (*said, "permissions")} == said | {"permissions": permissions}
    assert (await tools(workbench))["write"] == off
    events = (await workbench.call("list_events", kinds=["agent_tool.*"]))["events"]
    assert {(event["kind"], event["subject"]) for event in events} == {("agent_tool.updated", "agent_tool:write")}
    assert [event["data"] for event in events] == [{"permissions": permissions}, said]


NONSENSE = [{"read": ["secrets"]}, {"read": "contexts"}, {"delete": ["contexts"]}, ["contexts"], {"read": None}]


async def test_invalid_permissions_and_unknown_tools_are_refused(workbench: Workbench) -> None:
    before = await tools(workbench)
    for permissions in NONSENSE:
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await workbench.call("update_agent_tool", tool_id="read", permissions=permissions)
    with pytest.raises(NotFound, match=r"There is no tool 'admin'. list_agent_tools lists them.") as refused:
        await workbench.call("update_agent_tool", tool_id="admin", enabled=True)
    assert refused.value.code == "TOOL_NOT_FOUND"
    assert await tools(workbench) == before


@pytest.mark.parametrize("noun", ["project", "session", "team"])
async def test_a_resource_that_the_tool_may_not_read_is_refused_to_list_and_get(
    workbench: Workbench, admit: Admit, noun: str
) -> None:
    ada = await admit("ada")
    others = [name for name in ("projects", "sessions", "teams") if name != f"{noun}s"]
    await workbench.call("update_agent_tool", tool_id="write", permissions={"read": others})
    for name, arguments in ((f"list_{noun}s", {}), (f"get_{noun}", {f"{noun}_id": "x"})):
        with pytest.raises(Refused, match=f"NOT_PERMITTED: The tool write may not read {noun}s") as refused:
            await workbench.dispatch(ada.caller, name, arguments)
    assert refused.value.details == {"tool": "write", "permissions": {"read": others, "write": []}}
    for name in others:
        await workbench.dispatch(ada.caller, f"list_{name}", {})


async def test_a_tool_that_may_not_read_tasks_may_not_read_plans(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    await workbench.call("create_plan", text="plan: p\ntasks:\n- {name: a, title: Secret, persona: implementer}")
    await workbench.call("update_agent_tool", tool_id="write", permissions={"read": ["contexts"]})
    for name, arguments in (("list_tasks", {}), ("list_plans", {}), ("export_plan", {"plan": "p"})):
        with pytest.raises(Refused, match="NOT_PERMITTED: The tool write may not read tasks"):
            await workbench.dispatch(ada.caller, name, arguments)
