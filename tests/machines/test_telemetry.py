"""Two machines that share a project tell its collector of each span once."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import admitted
from tests.machines.conftest import NewMachine, serving
from tests.services.telemetry.collector import collecting
from tests.services.telemetry.test_export import DUTY, told_at, worked
from workbench.app import Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.postgres, pytest.mark.long]


async def begun(workbench: Workbench) -> bool:
    """Whether the project tells a collector what happens from now on."""
    return bool(await given.rows(workbench, "SELECT seed FROM telemetry"))


async def caught_up(workbench: Workbench) -> bool:
    """Whether the collector has been told of all that has ended."""
    (only,) = (await workbench.call("get_telemetry"))["collectors"]
    assert only["error_code"] is None, only["error"]
    return not only["behind"]


async def test_each_span_is_sent_once_by_whichever_server_has_the_turn(machine: NewMachine) -> None:
    async with collecting() as collector:
        one, other = (
            told_at(machine(name), collector, telemetry_seconds=0.05, max_telemetry_spans=3)
            for name in ("alpha", "beta")
        )
        async with serving(other) as beta:
            async with serving(one) as alpha:
                await given.until(lambda: begun(alpha))
                agents = [await admitted(alpha, "ada"), await admitted(beta, "bob")]
                tasks = [
                    await worked(workbench, agent, requests=3)
                    for workbench, agent in zip((alpha, beta), agents, strict=True)
                ]
                await given.until(lambda: caught_up(alpha))
                assert [each._may_perform(each.duties[DUTY]) for each in (alpha, beta)].count(True) == 1
            tasks.append(await worked(beta, agents[1], requests=3))  # the turn may have been the other's
            await given.until(lambda: beta._ctx.has_turn)
            await given.until(lambda: caught_up(beta))
    names = [span.name for span in collector.spans]
    assert len({span.id for span in collector.spans}) == len(names) == len(tasks) * 6
    assert [names.count(f"task {task_id}") for task_id in tasks] == [1] * len(tasks)
