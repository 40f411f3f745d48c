"""Hosts of tools: what they offer, and how calls reach them and are answered, whatever is lost in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.given import refused
from workbench.errors import BadInput, NotFound, Unavailable
from workbench.functions.hosts import SILENT_TICKS, HostCalls, HostedCall, OfferedTool, ToolHosts
from workbench.process import process_identity

pytestmark = pytest.mark.anyio

NOW, SOON = 0.0, 30.0


def tool(name: str, version: str = "1", **more: Any) -> OfferedTool:
    return OfferedTool(name=name, description="", parameters={"type": "object"}, version=version, **more)


def call(number: int, name: str = "add") -> HostedCall:
    return HostedCall(call_id=f"c{number}", tool=name, arguments={"n": number})


@pytest.fixture
def hosts() -> ToolHosts:
    made = ToolHosts()
    made.offer("a", "kernel a", [tool("add")], add=False)
    return made


def start_call(hosts: ToolHosts, number: int) -> asyncio.Task[Any]:
    return asyncio.create_task(hosts.run("a", call(number), None))


def offers_of(hosts: ToolHosts) -> dict[str, tuple[str, str, bool]]:
    """Version, host, and whether it can be called, by tool."""
    return {one.name: (one.version, host, problem is None) for one, _, host, problem in hosts.tools()}


async def failure(waiting: Awaitable[Any], code: str) -> None:
    with pytest.raises(Unavailable, match=code):
        await waiting


def fall_silent(hosts: ToolHosts) -> None:
    for _ in range(SILENT_TICKS):
        hosts.tick()


async def test_a_call_reaches_the_waiting_host_and_its_result_or_failure_the_caller(
    hosts: ToolHosts,
) -> None:
    waiting = asyncio.create_task(hosts.take("a", [], SOON))
    running = start_call(hosts, 1)
    assert await waiting == HostCalls(calls=[call(1)])
    assert hosts.finish("a", "c1", {"sum": 3})
    assert await running == {"sum": 3}
    assert await hosts.take("a", [], NOW) == HostCalls()
    failing = start_call(hosts, 2)
    await hosts.take("a", [], SOON)
    hosts.finish("a", "c2", BadInput("TOOL_FAILED", "No."))
    with pytest.raises(BadInput, match="TOOL_FAILED"):
        await failing


async def test_an_answer_that_was_lost_is_given_again_and_no_call_runs_twice(hosts: ToolHosts) -> None:
    running = [start_call(hosts, 1), start_call(hosts, 2)]
    assert [call.call_id for call in (await hosts.take("a", [], SOON)).calls] == ["c1", "c2"]
    assert [call.call_id for call in (await hosts.take("a", ["c1"], SOON)).calls] == ["c2"]
    assert await hosts.take("a", ["c1", "c2"], NOW) == HostCalls()
    for one in ("c2", "c1"):
        hosts.finish("a", one, one)
    assert await asyncio.gather(*running) == ["c1", "c2"]


async def test_a_call_whose_caller_leaves_is_interrupted_once(hosts: ToolHosts) -> None:
    running = start_call(hosts, 1)
    await hosts.take("a", [], SOON)
    waiting = asyncio.create_task(hosts.take("a", ["c1"], SOON))
    running.cancel()
    assert await waiting == HostCalls(cancelled=["c1"])
    assert not hosts.finish("a", "c1", "too late")
    assert await hosts.take("a", ["c1"], NOW) == HostCalls()


async def test_a_call_whose_caller_left_before_the_host_asked_is_never_started(hosts: ToolHosts) -> None:
    running = start_call(hosts, 1)
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await hosts.take("a", [], NOW) == HostCalls()
    assert await hosts.take("a", ["c1"], NOW) == HostCalls()


async def test_progress_reaches_the_caller(hosts: ToolHosts) -> None:
    reported: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        reported.append((done, total, message))

    running = asyncio.create_task(hosts.run("a", call(1), note))
    await hosts.take("a", [], SOON)
    await hosts.report("a", "c1", 1, 2, "half")
    hosts.finish("a", "c1", None)
    await hosts.report("a", "c1", 2, 2, "too late")
    await running
    assert reported == [(1, 2, "half")]


async def test_a_host_that_asks_no_more_is_gone_and_its_calls_fail(hosts: ToolHosts) -> None:
    running = start_call(hosts, 1)
    await hosts.take("a", [], SOON)
    fall_silent(hosts)
    await failure(running, "TOOL_HOST_GONE")
    assert offers_of(hosts) == {"add": ("1", "kernel a", False)}
    await failure(hosts.run("a", call(2), None), "TOOL_HOST_GONE")
    assert await hosts.take("a", ["c1"], NOW) == HostCalls(cancelled=["c1"])
    assert offers_of(hosts)["add"] == ("1", "kernel a", True)


async def test_a_host_that_waits_for_calls_is_not_gone(hosts: ToolHosts) -> None:
    waiting = asyncio.create_task(hosts.take("a", [], SOON))
    await asyncio.sleep(0)
    for _ in range(2 * SILENT_TICKS):
        hosts.tick()
    running = start_call(hosts, 1)
    await waiting
    hosts.finish("a", "c1", 1)
    assert await running == 1


async def test_a_name_that_another_host_has_is_offered_only_by_one_that_replaces_it(hosts: ToolHosts) -> None:
    assert hosts.offer("b", "kernel b", [tool("add", "2"), tool("more")], add=False) == {"add": "kernel a"}
    assert offers_of(hosts) == {"add": ("1", "kernel a", True), "more": ("1", "kernel b", True)}
    assert hosts.offer("b", "kernel b", [tool("add", "2", replaces=True)], add=True) == {}
    assert offers_of(hosts)["add"] == ("2", "kernel b", True)
    assert hosts.offer("a", "kernel a", [tool("add", "3")], add=True) == {"add": "kernel b"}
    assert offers_of(hosts)["add"] == ("2", "kernel b", True)


async def test_a_kernel_that_has_ended_leaves_its_names_to_the_next() -> None:
    hosts = ToolHosts()
    hosts.offer("a", "kernel a", [tool("add")], add=False, process=process_identity().rpartition("/")[0] + "/1:1.0")
    assert hosts.offer("b", "kernel b", [tool("add", "2")], add=False, process=process_identity()) == {}
    assert hosts.offer("c", "kernel c", [tool("add", "3")], add=False) == {"add": "kernel b"}
    assert offers_of(hosts)["add"] == ("2", "kernel b", True)


async def test_the_tool_offered_last_is_called_while_its_host_answers(hosts: ToolHosts) -> None:
    hosts.offer("b", "kernel b", [tool("add", "2", replaces=True), tool("more")], add=False)
    assert offers_of(hosts) == {"add": ("2", "kernel b", True), "more": ("1", "kernel b", True)}
    await hosts.take("b", [], NOW)
    waiting = asyncio.create_task(hosts.take("a", [], SOON))
    await asyncio.sleep(0)
    fall_silent(hosts)
    assert offers_of(hosts) == {"add": ("1", "kernel a", True), "more": ("1", "kernel b", False)}
    hosts.withdraw("b")
    assert offers_of(hosts) == {"add": ("1", "kernel a", True)}
    waiting.cancel()


async def test_tools_are_added_replaced_and_withdrawn(hosts: ToolHosts) -> None:
    hosts.offer("a", "kernel a", [tool("add", "2"), tool("more")], add=True)
    assert set(offers_of(hosts)) == {"add", "more"}
    hosts.withdraw("a", ["add"])
    assert set(offers_of(hosts)) == {"more"}
    hosts.offer("a", "kernel a", [tool("only")], add=False)
    assert set(offers_of(hosts)) == {"only"}


async def test_a_host_that_is_withdrawn_fails_its_calls(hosts: ToolHosts) -> None:
    running = start_call(hosts, 1)
    await hosts.take("a", [], SOON)
    waiting = asyncio.create_task(hosts.take("a", ["c1"], SOON))
    await asyncio.sleep(0)
    hosts.withdraw("a")
    await failure(running, "TOOL_HOST_GONE.*was stopped")
    with pytest.raises(NotFound, match="UNKNOWN_TOOL_HOST"):
        await waiting
    await failure(hosts.run("a", call(2), None), "TOOL_HOST_GONE")


async def test_a_host_that_the_server_does_not_know_is_to_offer_its_tools_again() -> None:
    hosts = ToolHosts()
    refused("UNKNOWN_TOOL_HOST", hosts.offer, "a", "kernel a", [tool("add")], add=True)
    refused("UNKNOWN_TOOL_HOST", hosts.finish, "a", "c1", None)
    with pytest.raises(NotFound, match="UNKNOWN_TOOL_HOST"):
        await hosts.take("a", [], NOW)


async def test_every_change_of_the_callable_tools_is_noted(hosts: ToolHosts) -> None:
    for change, is_noted in (
        (lambda: hosts.offer("a", "kernel a", [tool("more")], add=True), True),
        (lambda: hosts.withdraw("a", ["more"]), True),
        (lambda: fall_silent(hosts), True),
        (lambda: hosts.take("a", [], NOW), True),
        (lambda: hosts.withdraw("a"), True),
        (lambda: hosts.withdraw("a"), False),
    ):
        hosts.has_changed = False
        if isinstance(done := change(), Awaitable):
            await done
        assert hosts.has_changed is is_noted


async def test_the_traits_of_an_agent_are_the_tools_that_name_it() -> None:
    hosts, names = ToolHosts(), {"add": None, "mean": "", "draw": "ada"}
    tools = [tool(name).model_copy(update={"trait": agent}) for name, agent in names.items()]
    hosts.offer("a", "kernel a", tools, add=False)
    assert [trait.tool.name for trait in hosts.traits("ada")] == ["draw"]
    assert [trait.tool.name for trait in hosts.traits("lab", is_default=True)] == ["mean"]
    assert [trait.tool.name for trait in hosts.traits("lab")] == []
