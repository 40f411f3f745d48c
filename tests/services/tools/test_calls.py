"""Calls of tools: found, permitted, recorded, run. The tools are operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, WorkbenchError
from workbench.ops import OPERATOR
from workbench.services.tools import calls
from workbench.services.tools.tool import Scope
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

CHAT = Scope(OPERATOR, conversation_id="c1")
"""The model of a conversation."""
ALL = Query("all", "SELECT * FROM tool_calls ORDER BY id")


async def rows(workbench: Workbench) -> list[dict[str, Any]]:
    return [dict(row) for row in await workbench.store.read(lambda tx: tx.all(ALL))]


async def events(workbench: Workbench, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    found = (await workbench.call("list_events", kinds=list(kinds)))["events"]
    return [(event["kind"], event["data"]) for event in found]


def model_calls(workbench: Workbench, name: str, **arguments: Any) -> Awaitable[calls.Finished]:
    return calls.call(workbench._ctx, CHAT, name, arguments)


async def test_a_call_is_recorded_with_its_arguments_and_its_result(workbench: Workbench) -> None:
    done = await workbench.call("call_tool", name="create_project", arguments={"name": "Atlas"})
    assert (done["tool_name"], done["source"], done["server"], done["is_error"]) == (
        *("create_project", "local", None, False),
    )
    assert done["result"]["name"] == "Atlas"
    [row] = await rows(workbench)
    assert (row["id"], row["caller"], row["state"], row["error_code"]) == (
        *(done["call_id"], "operator", "completed", None),
    )
    assert json.loads(row["arguments"]) == {"name": "Atlas"}
    assert json.loads(row["result"]) == done["result"]
    [(_, started), (_, completed)] = await events(workbench, "tool.*")
    assert json.loads(started["tool_input"]) == {"name": "Atlas"}
    assert started["call_id"] == completed["call_id"] == done["call_id"]
    assert (completed["is_error"], completed["source"]) == (False, "local")
    assert completed["duration_ms"] >= 0


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [("creat_project", {}, "UNKNOWN_TOOL"), ("create_project", {"nam": 1}, "INVALID_ARGUMENTS")],
)
async def test_a_call_that_fails_says_why(
    workbench: Workbench, name: str, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises((NotFound, BadInput)) as failure:
        await workbench.call("call_tool", name=name, arguments=arguments)
    assert failure.value.code == code
    assert "create_project" in failure.value.message
    assert [row["error_code"] for row in await rows(workbench)] == ([code] if code == "INVALID_ARGUMENTS" else [])


async def test_an_agent_calls_tools_that_it_was_granted(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    with pytest.raises(Refused, match="no tools"):
        await workbench.dispatch(ada.caller, "list_tools", {})
    await workbench.call("update_agent", agent_id="ada", changes={"tools": ["notebook", "github"]})
    granted = await workbench.identify(ada.token)
    assert granted.tools == {"notebook", "github"}
    names = {tool["name"] for tool in (await workbench.dispatch(granted, "list_tools", {}))["tools"]}
    assert "claim_task" in names
    assert "approve" not in names
    await workbench.call("update_agent", agent_id="ada", changes={"tools": None})
    with pytest.raises(Refused, match="no tools"):
        await workbench.dispatch(await workbench.identify(ada.token), "call_tool", {"name": "whoami"})


async def test_the_model_of_a_conversation_asks_before_it_changes_anything(workbench: Workbench) -> None:
    await model_calls(workbench, "list_tasks")
    for decision, state, code in (("approve", "completed", None), ("reject", "failed", "TOOL_DENIED")):
        calling = asyncio.ensure_future(model_calls(workbench, "create_task", title=decision, persona_id="implementer"))
        [question] = await asked(workbench)
        assert question["payload"]["arguments"]["title"] == decision
        await workbench.call(decision, approval_id=question["id"])
        await asyncio.wait([calling])
        assert getattr(calling.exception(), "code", None) == code
        assert (await rows(workbench))[-1]["state"] == state
    assert [task["title"] for task in (await workbench.call("list_tasks"))["tasks"]] == ["approve"]


async def asked(workbench: Workbench) -> list[dict[str, Any]]:
    """The questions about calls, when there are any."""
    return await until(workbench, lambda: workbench.call("list_approvals", kind="tool_call"))


async def until(workbench: Workbench, read: Callable[[], Awaitable[dict[str, Any]]]) -> list[dict[str, Any]]:
    async with workbench.feed.subscribe("approval.*") as news:
        while not (found := (await read())["approvals"]):
            await anext(news)
    return found


async def test_a_question_is_withdrawn_when_the_caller_is_cancelled(workbench: Workbench) -> None:
    calling = asyncio.ensure_future(model_calls(workbench, "create_task", title="Atlas", persona_id="implementer"))
    [question] = await asked(workbench)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    with pytest.raises(WorkbenchError, match="ALREADY_DECIDED"):
        await workbench.call("approve", approval_id=question["id"])
    assert [row["state"] for row in await rows(workbench)] == ["cancelled"]


async def test_a_model_cannot_do_what_only_the_operator_may(workbench: Workbench) -> None:
    with pytest.raises(NotFound, match="UNKNOWN_TOOL"):
        await model_calls(workbench, "approve", approval_id=1)
