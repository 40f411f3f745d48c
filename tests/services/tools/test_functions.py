"""Functions of kernels in the catalogue: permission to call them, and calls whose kernel answers or not."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from tests.conftest import Admit, Served
from tests.services.tools.conftest import question
from workbench.app import Workbench
from workbench.errors import NotFound, Unavailable, WorkbenchError
from workbench.model import SECOND
from workbench.rules.secrets.forms import MASK

pytestmark = pytest.mark.anyio

ADD = {"name": "add", "description": "Add.", "parameters": {"type": "object"}, "version": "1"}
LOOK = {**ADD, "name": "look", "read_only": True}


@pytest.fixture
async def workbench(served: Served) -> Workbench:
    """A served project, in which a kernel offers two functions."""
    await served.workbench.call("offer_tools", host_id="k", name="kernel 1", tools=[ADD, LOOK])
    return served.workbench


async def answer_next(workbench: Workbench, value: Any) -> None:
    """Run the next call as its kernel."""
    batch = await workbench.call("take_tool_calls", host_id="k", wait_seconds=30)
    [call] = batch["calls"]
    done = await workbench.call("finish_tool_call", host_id="k", call_id=call["call_id"], answer={"value": value})
    assert done == {"delivered": True}


async def test_an_agent_needs_permission_unless_a_function_only_reads(workbench: Workbench, admit: Admit) -> None:
    ada = (await admit("ada", tools=["notebook"])).caller
    call = workbench.dispatch(ada, "call_tool", {"name": "look", "arguments": {}})
    assert (await asyncio.gather(call, answer_next(workbench, "seen")))[0]["result"] == "seen"
    asking = asyncio.create_task(workbench.dispatch(ada, "call_tool", {"name": "add", "arguments": {}}))
    approval = await question(workbench)
    assert await workbench.call("take_tool_calls", host_id="k") == {"calls": [], "cancelled": []}
    await workbench.call("approve", approval_id=approval["id"])
    await answer_next(workbench, 3)
    assert (await asking)["result"] == "3"
    bob = (await admit("bob", tools=["network"])).caller
    with pytest.raises(NotFound, match="UNKNOWN_TOOL"):
        await workbench.dispatch(bob, "call_tool", {"name": "look", "arguments": {}})


async def test_a_failure_is_that_of_the_call_and_in_its_record(workbench: Workbench) -> None:
    calling = asyncio.create_task(workbench.call("call_tool", name="add"))
    [call] = (await workbench.call("take_tool_calls", host_id="k", wait_seconds=30))["calls"]
    error = {"code": "TOOL_FAILED", "message": "ValueError: no", "status": 503}
    await workbench.call("finish_tool_call", host_id="k", call_id=call["call_id"], error=error)
    with pytest.raises(Unavailable, match="TOOL_FAILED"):
        await calling
    record = await workbench.call("get_tool_call", call_id=call["call_id"])
    assert (record["state"], record["error_code"], record["version"]) == ("failed", "TOOL_FAILED", "1")


async def test_names_of_operations_are_taken_and_changes_of_the_functions_are_events(workbench: Workbench) -> None:
    tools = [{**ADD, "name": "approve"}]
    offer = await workbench.call("offer_tools", host_id="k", name="kernel 1", tools=tools, add=True)
    assert offer == {"taken": {"approve": "Workbench"}}
    assert (await workbench.call("get_tool", name="approve"))["kind"] == "operation"
    before = len((await workbench.call("list_events", kinds=["tools.changed"]))["events"])
    await workbench.call("withdraw_tools", host_id="k", names=["add"])
    assert len((await workbench.call("list_events", kinds=["tools.changed"]))["events"]) == before + 1
    with pytest.raises(WorkbenchError, match="UNKNOWN_TOOL"):
        await workbench.call("call_tool", name="add")


async def test_a_second_kernel_is_told_which_kernel_offers_a_name(workbench: Workbench) -> None:
    other: dict[str, Any] = {"host_id": "l", "name": "b.ipynb (kernel 2)"}
    assert await workbench.call("offer_tools", **other, tools=[ADD]) == {"taken": {"add": "kernel 1"}}
    for replaces, runs in ((False, "kernel 1"), (True, "b.ipynb (kernel 2)")):
        await workbench.call("offer_tools", **other, tools=[{**ADD, "replaces": replaces}])
        assert (await workbench.call("get_tool", name="add"))["offerer_name"] == runs
        calling = asyncio.create_task(workbench.call("call_tool", name="add"))
        host = "l" if replaces else "k"
        [call] = (await workbench.call("take_tool_calls", host_id=host, wait_seconds=30))["calls"]
        await workbench.call("finish_tool_call", host_id=host, call_id=call["call_id"], answer={"value": 3})
        await calling
        record = await workbench.call("get_tool_call", call_id=call["call_id"])
        assert (record["offered_by"], record["offerer_name"]) == ("notebook", runs)


async def test_logs_of_functions_are_deleted_after_their_days(workbench: Workbench) -> None:
    duty, settings = workbench.duties["pruning logs of tools"], workbench.settings
    await duty.perform(workbench._ctx)  # nothing was printed yet
    settings.tool_logs.mkdir(parents=True)
    now = workbench.store.now() / SECOND
    for call, days in (("old", settings.keep_tool_logs_days + 1), ("new", settings.keep_tool_logs_days - 1)):
        (log := settings.tool_logs / f"{call}.log").write_text("printed")
        os.utime(log, (now - days * 86_400,) * 2)
    await duty.perform(workbench._ctx)
    assert [path.name for path in settings.tool_logs.iterdir()] == ["new.log"]


async def test_the_log_of_a_function_is_masked_with_the_servers_secrets(
    workbench: Workbench,
) -> None:
    call_id, logs = "0" * 36, workbench.settings.tool_logs
    workbench._ctx.secrets.add(["hunter2-of-the-person"])
    logs.mkdir(parents=True)
    (logs / f"{call_id}.log").write_text("one\nit is hunter2-of-the-person\n")
    await workbench.call("finish_tool_call", host_id="k", call_id=call_id)
    assert (logs / f"{call_id}.log").read_text() == f"one\nit is {MASK}\n"
