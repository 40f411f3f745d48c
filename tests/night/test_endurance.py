"""What ends no execution of a plan: an agent that ends again and again, and a disk that is full for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.conftest import Admit
from tests.services.processes.running import crowded
from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.execution import carry_out as carrying
from workbench.execution.carry_out import carry_out
from workbench.execution.execution import MOST_STARTS, Execution, Verdict
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]

PLAN = """\
plan: tidy
tasks:
  - {name: a, title: A, persona: implementer, run: "true"}
  - {name: b, title: B, persona: implementer, run: "true"}
"""


@pytest.fixture
async def workbench(settings: Settings) -> AsyncIterator[Workbench]:
    """A served project, whose agents stay in the queue."""
    async with crowded(settings, max_agents_running=0) as served:
        yield served.workbench


def calling(workbench: Workbench) -> Callable[..., Any]:
    """Calls operations from another thread."""
    loop = asyncio.get_running_loop()
    return lambda name, /, **more: asyncio.run_coroutine_threadsafe(workbench.call(name, **more), loop).result()


async def test_an_agent_that_ends_again_and_again_is_given_up_until_its_work_gets_on(
    workbench: Workbench, admit: Admit
) -> None:
    await workbench.call("create_plan", text=PLAN)
    execution = Execution(calling(workbench), "tidy")

    async def start_and_end() -> list[str]:
        standing = await asyncio.to_thread(execution.step)
        for agent in standing.agents.values():
            await workbench.call("terminate_agent", agent_id=agent)
        return list(standing.agents.values())

    assert [len(await start_and_end()) for _ in range(MOST_STARTS + 1)] == [1] * MOST_STARTS + [0]
    standing = await asyncio.to_thread(execution.step)
    assert standing.verdict is Verdict.STUCK
    assert "is not started again" in " ".join(standing.notes)
    ada = (await admit("ada")).caller
    task = (await workbench.dispatch(ada, "claim_task", {}))["task"]["id"]
    await workbench.dispatch(ada, "complete_task", {"task_id": task})
    assert len(await start_and_end()) == 1


async def test_a_disk_that_is_full_for_a_while_ends_no_execution(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "WAIT_SECONDS", 0.01)
    await workbench.call("create_plan", text=PLAN)
    call, failures = calling(workbench), 2 * MOST_STARTS

    def on_a_full_disk(name: str, /, **more: Any) -> Any:
        nonlocal failures
        if name == "spawn_agent" and failures:
            failures -= 1
            raise Unavailable("STORE_FULL", "The disk is full.")
        return call(name, **more)

    execution = Execution(on_a_full_disk, "tidy")
    seen: list[int] = []
    await asyncio.to_thread(
        carry_out, execution, lambda standing: seen.append(len(standing.agents)), is_over=lambda: bool(seen)
    )
    assert (failures, seen) == (0, [1])
