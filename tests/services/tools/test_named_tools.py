"""Words for tools in choices and grants: an unknown one is refused with the nearest."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.conversations.conftest import define
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

MEAN = {"name": "mean", "description": "The mean.", "parameters": {"type": "object"}, "version": "1"}
KNOWN = [
    "*",
    "notebook",
    "workbench",
    "network",
    "update_traits",
    "mean",
    "list_tasks",
    "network:eve",
    "mail",
    "mail__send",
]
"""`mail` is a server of a definition or of the project that does not run, so that its tools are not known."""


@pytest.fixture
async def workbench(served: Served) -> Workbench:
    """A served project, in which a kernel offers a function."""
    await served.workbench.call("offer_tools", host_id="k", name="kernel 1", tools=[MEAN])
    return served.workbench


async def test_an_unknown_tool_is_refused_wherever_tools_are_named(
    workbench: Workbench, settings: Settings, admit: Admit
) -> None:
    target = define(settings, [{"say": "Hi."}], more="mcpServers:\n  mail: {command: none}\n")
    chat = (await workbench.call("create_conversation", definition=target, tools=KNOWN))["id"]
    await admit("ada")
    waiting = (await workbench.call("register", name="eve"))["approval_id"]
    ways: list[tuple[str, dict[str, Any]]] = [
        ("create_conversation", {"model": "test:echo", "tools": ["*", "maen"]}),
        ("update_conversation", {"conversation_id": chat, "tools": ["maen"]}),
        ("spawn_agent", {"persona_id": "tester", "tools": ["maen"]}),
        ("enlist_worker", {"scratch": str(settings.project), "persona_id": "tester", "tools": ["maen"]}),
        ("update_agent", {"agent_id": "ada", "changes": {"tools": ["maen"]}}),
        ("approve", {"approval_id": waiting, "choices": {"agent_id": "eve", "tools": ["maen"]}}),
        ("add_admission_rule", {"name": "r", "pattern": "*", "grants": {"tools": ["maen"]}}),
    ]
    for operation, arguments in ways:
        error = await given.refusal(workbench.call(operation, **arguments))
        assert (error.code, "Did you mean mean?" in error.message) == ("UNKNOWN_TOOL", True), (operation, error)
    await workbench.call("update_conversation", conversation_id=chat, tools=["mean", "mail__send"])


async def test_a_granted_tool_stays_granted_when_it_is_withdrawn(workbench: Workbench, admit: Admit) -> None:
    await admit("ada", tools=["mean"])
    await workbench.call("withdraw_tools", host_id="k")
    kept = await workbench.call("update_agent", agent_id="ada", changes={"tools": ["mean", "notebook"]})
    assert kept["tools"] == ["mean", "notebook"]
    await admit("bob")
    error = await given.refusal(workbench.call("update_agent", agent_id="bob", changes={"tools": ["mean"]}))
    assert error.code == "UNKNOWN_TOOL"
