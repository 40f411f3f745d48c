"""Agents' processes: their records, and their ends on request, with their worktree or servers, after a crash."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.conftest import Admit, Served, ended
from tests.services.processes.running import agent, confinement, process, serving, spawn
from tests.services.worktrees.lab import finished
from workbench.app import Workbench
from workbench.process import ProcessTable
from workbench.rules.secrets.forms import MASK
from workbench.services.spawning import request
from workbench.state.root import identity
from workbench.state.settings import Settings
from workbench.store.base import Tx

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


async def test_a_killed_worker_is_noticed_and_its_command_ends(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab")
    task_id = await given.task(served.workbench, run="echo $$ > pid; trap '' TERM; setsid sleep 600 & sleep 600")
    command = int(await given.written(lab / "pid"))
    os.kill(made["pid"], signal.SIGKILL)
    task = await given.reached(served.workbench, task_id, "pending")
    assert [(a["agent_id"], a["outcome"], a["error_message"]) for a in task["attempts"]] == [
        ("walt", "released", "the agent's process ended"),
    ]
    assert task["retry_count"] == 0
    assert (await process(served, "walt"))["exit_code"] == -signal.SIGKILL
    assert (await agent(served, "walt"))["registration_status"] == "inactive"
    await ended(command)
    left = [p.info for p in psutil.process_iter(["cwd", "cmdline", "status"]) if p.info["cwd"] == str(lab)]
    assert [info for info in left if info["status"] != psutil.STATUS_ZOMBIE] == []
    kinds = [e["kind"] for e in (await served.workbench.call("list_events", kinds=["agent.*"]))["events"]]
    assert kinds[-2:] == ["agent.exited", "agent.deactivated"]


@pytest.mark.parametrize("how", ["terminate_agent", "revoke_agent"])
async def test_the_next_worker_does_the_task_of_an_ended_one(served: Served, lab: Path, how: str) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab")
    task_id = await given.task(served.workbench, run="[ $WORKBENCH_ATTEMPT = 2 ] || { echo $$ > pid; exec sleep 600; }")
    command = int(await given.written(lab / "pid"))
    await served.workbench.call(how, agent_id="walt")
    state = (await agent(served, "walt"))["registration_status"]
    assert state == ("revoked" if how == "revoke_agent" else "inactive")
    await ended(made["pid"], command)
    await spawn(served, name="wilma", assigned_worktree="lab")
    task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert [(a["agent_id"], a["outcome"]) for a in task["attempts"]] == [("walt", "released"), ("wilma", "completed")]


async def test_only_the_planner_that_spawned_it_or_the_person_ends_an_agent(served: Served, admit: Admit) -> None:
    paula, pete = await admit("paula", "planner"), await admit("pete", "planner")
    worker = await admit("ada")
    made = [(await spawn(served, paula))["agent_id"], (await spawn(served))["agent_id"]]
    for who, whom in ((pete, made[0]), (pete, made[1]), (paula, made[1]), (worker, made[0]), (paula, "ada")):
        for name in ("terminate_agent", "get_agent_process_info"):
            await given.refuses("FORBIDDEN", served.workbench.dispatch(who.caller, name, {"agent_id": whom}))
    mine = await served.workbench.dispatch(paula.caller, "get_managed_agents", {})
    assert [a["agent_id"] for a in mine["agents"]] == made[:1]
    assert (await served.workbench.dispatch(pete.caller, "get_managed_agents", {}))["agents"] == []
    assert [a["agent_id"] for a in (await served.workbench.call("get_managed_agents"))["agents"]] == made
    await served.workbench.dispatch(paula.caller, "terminate_agent", {"agent_id": made[0]})
    await served.workbench.call("terminate_agent", agent_id=made[1])
    assert [(await process(served, agent_id))["running"] for agent_id in made] == [False, False]
    assert (await agent(served, made[0]))["registration_status"] == "rejected"
    assert (await served.workbench.call("list_approvals"))["approvals"] == []


async def test_a_worker_ends_with_its_worktree(served: Served, repository: Path) -> None:
    call = served.workbench.call
    outside = await spawn(served, name="outside")
    places = ("lab", "annex")
    agents = [await spawn(served, assigned_worktree=n, new_worktree=True, name=f"in-{n}") for n in places]
    task = await given.task(served.workbench, run="touch new.txt", target_worktree="lab")
    await given.reached(served.workbench, task, "completed")
    status = {worktree["name"]: worktree for worktree in (await call("get_worktree_status"))["worktrees"]}
    assert (status["lab"]["agents"], status["lab"]["open_tasks"]) == (["in-lab"], 0)
    asked = await call("integrate_worktree", worktree_name="lab")
    await call("approve", approval_id=asked["approval_id"])
    await finished(served.workbench, asked["approval_id"])
    assert (repository / "new.txt").exists()
    assert (await process(served, "in-annex"))["running"]
    await call("discard_worktree", worktree_name="annex")
    await ended(*(agent["pid"] for agent in agents))
    while any((repository / ".aiswarm" / "worktrees").iterdir()):  # removed after their agents have ended
        await asyncio.sleep(0.01)
    assert [(await agent(served, f"in-{n}"))["registration_status"] for n in places] == ["inactive", "inactive"]
    assert psutil.pid_exists(outside["pid"])
    assert (await process(served, "outside"))["running"]


async def test_when_the_servers_stop_all_workers_end(served: Served) -> None:
    pids = [(await spawn(served, name=f"w{n}"))["pid"] for n in range(2)]
    await served.servers.stop()
    await ended(*pids)
    assert {(await process(served, f"w{n}"))["running"] for n in range(2)} == {False}
    await given.refuses("NO_SERVER", spawn(served))


async def test_the_next_server_ends_only_processes_that_a_crashed_one_left(settings: Settings, tmp_path: Path) -> None:
    table = ProcessTable()
    (left := tmp_path / f"workbench-{identity(settings.home)}-left").mkdir()
    sleeper = table.start(["sleep", "600"], cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log")
    async with Workbench.open(settings) as workbench:
        for name, pid, started in (("left", sleeper.pid, sleeper.started), ("reused", os.getpid(), 1.0)):
            registration = await workbench.call("register", name=name, persona_id="implementer")
            await workbench.call("approve", approval_id=registration["approval_id"])
            caller = await workbench.identify(registration["token"])
            await given.task(workbench)
            await workbench.dispatch(caller, "claim_task", {})
            spawned = {"agent": caller.agent, "profile": "script", "request": "{}", "parent": None, "now": 1}
            spawned |= {"machine": workbench._ctx.local.machine.name}
            spawned |= {"scratch": str(left), "confinement": '{"enforced": false, "missing": []}'}
            spawned |= {"pid": pid, "started": started, "mark": None}
            spawned |= dict.fromkeys(("definition_hash", "prompt_hash", "include"))

            def note(tx: Tx, spawned: dict[str, Any] = spawned) -> None:
                for query in (request.SQL.add, request.SQL.process, request.SQL.starting, request.SQL.started):
                    tx.run(query, spawned)

            await workbench.store.write(note)
    async with serving(settings) as served:
        await ended(sleeper.pid)
        assert [(await process(served, name))["running"] for name in ("left", "reused")] == [False, False]
        tasks = (await served.workbench.call("list_tasks"))["tasks"]
        assert [task["status"] for task in tasks] == ["pending", "pending"]
        agents = (await served.workbench.call("list_agents"))["agents"]
        assert [a["registration_status"] for a in agents] == ["inactive", "inactive"]
        assert not left.exists()
    table.terminate(sleeper, 0)


async def test_reading_on_in_a_log_neither_loses_nor_repeats_a_line(served: Served) -> None:
    await spawn(served, name="walt")
    found = await process(served, "walt")
    while not any("admitted as walt" in line for line in found["log_tail"]):
        found = await process(served, "walt")
    served.workbench._ctx.secrets.add(["blue-moon-17"])

    async def written(text: str) -> list[str]:
        nonlocal found
        with Path(found["log"]).open("a") as log:
            log.write(text)
        how = {"log_lines": 1_000, "log_after": found["log_after"]}
        found = await served.workbench.call("get_agent_process_info", agent_id="walt", **how)
        return [line for line in found["log_tail"] if "blue" in line or line.startswith("#")]

    assert await written("# one\n# it is blue-") == ["# one"]
    assert await written("moon-17\n") == [f"# it is {MASK}"]
    many = [f"# {number}" for number in range(1_500)]
    assert await written("\n".join([*many, ""])) == many[:1_000]
    assert await written("# last") == many[1_000:]
    await served.workbench.call("terminate_agent", agent_id="walt")
    assert [line[:6] for line in await written("")] == ["# last"]


async def test_the_usage_of_a_worker_is_known_while_it_works(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab", limits={"memory_bytes": 900_000_000, "tasks": 5})
    assert made["confinement"] == await confinement(served)
    run = "echo hello; echo $$ > pid; (setsid sleep 600 &); while :; do :; done"
    task_id = await given.task(served.workbench, run=run)
    command = int(await given.written(lab / "pid"))
    details = await process(served, "walt")
    while details["cpu_seconds"] < 1 or "sleep" not in {child["name"] for child in details["children"]}:
        details = await process(served, "walt")
    assert (details["state"], details["mode"], details["profile"], details["worktree"]) == (
        "running",
        "queue",
        "script",
        "lab",
    )
    assert details["limits"] == {"cpu_seconds": None, "memory_bytes": 900_000_000, "wall_seconds": None, "tasks": 5}
    assert command in {child["pid"] for child in details["children"]}
    assert details["memory_bytes"] > 20_000_000
    assert details["cpu_percent"] > 0
    assert any("hello" in line for line in details["log_tail"])
    assert len((await served.workbench.call("get_agent_process_info", agent_id="walt", log_lines=1))["log_tail"]) == 1
    (managed,) = (await served.workbench.call("get_managed_agents"))["agents"]
    assert (managed["agent_id"], managed["process"]["pid"], managed["process"]["log_tail"]) == ("walt", made["pid"], [])
    await served.workbench.call("terminate_agent", agent_id="walt", reason="Enough.")
    details = await process(served, "walt")
    assert (details["state"], details["reason"], details["children"], details["cpu_seconds"]) == (
        "ended",
        "Enough.",
        [],
        0,
    )
    await given.reached(served.workbench, task_id, "pending")


async def test_an_agent_that_was_not_spawned_has_no_process(served: Served, admit: Admit) -> None:
    await admit("ada")
    await given.refuses("NOT_RUNNING", served.workbench.call("terminate_agent", agent_id="ada"))
    await given.refuses("PROCESS_NOT_FOUND", process(served, "ada"))
    for name in ("terminate_agent", "get_agent_process_info"):
        await given.refuses("AGENT_NOT_FOUND", served.workbench.call(name, agent_id="nobody"))
