"""What is known of agents' processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.services.processes.running import confinement, process, spawn

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


async def test_the_usage_of_a_worker_is_known_while_it_works(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab", limits={"memory_bytes": 900_000_000, "tasks": 5})
    assert made["confinement"] == await confinement(served)
    task_id = await given.task(
        served.workbench, run="echo hello; echo $$ > pid; (setsid sleep 600 &); while :; do :; done"
    )
    command = int(await given.written(lab / "pid"))
    found = await process(served, "walt")
    while found["cpu_seconds"] < 1 or "sleep" not in {one["name"] for one in found["children"]}:
        found = await process(served, "walt")
    assert (found["state"], found["mode"], found["profile"], found["worktree"]) == ("running", "queue", "script", "lab")
    assert found["limits"] == {"cpu_seconds": None, "memory_bytes": 900_000_000, "wall_seconds": None, "tasks": 5}
    assert command in {one["pid"] for one in found["children"]}
    assert found["memory_bytes"] > 20_000_000
    assert found["cpu_percent"] > 0
    assert any("hello" in line for line in found["log_tail"])
    assert len((await served.workbench.call("get_agent_process_info", agent_id="walt", log_lines=1))["log_tail"]) == 1
    (managed,) = (await served.workbench.call("get_managed_agents"))["agents"]
    assert (managed["agent_id"], managed["process"]["pid"], managed["process"]["log_tail"]) == ("walt", made["pid"], [])
    await served.workbench.call("terminate_agent", agent_id="walt", reason="Enough.")
    found = await process(served, "walt")
    assert (found["state"], found["reason"], found["children"], found["cpu_seconds"]) == ("ended", "Enough.", [], 0)
    await given.reached(served.workbench, task_id, "pending")


async def test_an_agent_that_was_not_spawned_has_no_process(served: Served, admit: Admit) -> None:
    await admit("ada")
    await given.refuses("NOT_RUNNING", served.workbench.call("terminate_agent", agent_id="ada"))
    await given.refuses("PROCESS_NOT_FOUND", process(served, "ada"))
    for name in ("terminate_agent", "get_agent_process_info"):
        await given.refuses("AGENT_NOT_FOUND", served.workbench.call(name, agent_id="nobody"))
