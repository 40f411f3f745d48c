"""Agents as real processes: spawned, seen, ended, and nothing of them left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Admit, Admitted, Served, ended, git
from tests.services.worktrees.lab import finished
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound, Refused, Unavailable, WorkbenchError
from workbench.process import ProcessTable
from workbench.services.spawning import request
from workbench.settings import Settings
from workbench.shells.serve import Servers

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


async def spawn(served: Served, by: Admitted | None = None, **more: Any) -> dict[str, Any]:
    """Spawn an agent, as the operator or as a planner."""
    arguments = {"persona_id": "implementer", **more}
    if by is None:
        return await served.workbench.call("spawn_agent", **arguments)
    return await served.workbench.dispatch(by.caller, "spawn_agent", arguments)


@pytest.fixture
async def lab(served: Served) -> Path:
    """A worktree; its directory."""
    return Path((await served.workbench.call("create_worktree", name="lab"))["path"])


async def make(served: Served, run: str, **more: Any) -> int:
    """Create a task; its id."""
    arguments = {"title": "Do it", "persona_id": "implementer", "run": run, **more}
    return int((await served.workbench.call("create_task", **arguments))["id"])


async def reached(served: Served, task_id: int, *states: str) -> dict[str, Any]:
    """The task, once it is in one of some states."""
    async with served.workbench.feed.subscribe("task.*") as events:
        while (task := await served.workbench.call("get_task", task_id=task_id))["status"] not in states:
            await anext(events)
    return task


async def process(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent."""
    return await served.workbench.call("get_agent_process_info", agent_id=agent_id)


async def over(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent, once it has been noted that it ended."""
    while (found := await process(served, agent_id))["running"]:
        await asyncio.sleep(0.02)
    return found


async def agent(served: Served, agent_id: str) -> dict[str, Any]:
    """An agent by its id."""
    found = (await served.workbench.call("list_agents"))["agents"]
    return next(a for a in found if a["agent_id"] == agent_id)


async def appeared(path: Path) -> str:
    """What is in a file, once there is something."""
    while not path.exists() or not path.read_text():
        await asyncio.sleep(0.01)
    return path.read_text()


# Working


@pytest.mark.parametrize("mcp", [False, True], ids=["http", "mcp"])
async def test_a_spawned_worker_does_a_task_in_its_worktree_and_its_token_is_seen_nowhere(
    served: Served, repository: Path, mcp: bool
) -> None:
    await served.workbench.call("create_worktree", name="lab")
    made = await spawn(served, assigned_worktree="lab", name="walt", mcp=mcp, environment={"COLOUR": "blue"})
    assert (made["agent_id"], made["status"], made["worktree"]) == ("walt", "assigned", "lab")
    run = "pwd; env; cat /proc/$PPID/cmdline /proc/$PPID/environ | tr '\\0' '\\n'; touch made"
    task = await reached(served, await make(served, run, target_worktree="lab"), "completed", "failed")
    assert (task["status"], task["attempts"][0]["agent_id"]) == ("completed", "walt")
    commit = git("rev-parse", "wb/lab/main", cwd=repository)
    assert task["artifacts"] == [f"commit:{commit}"]
    assert git("show", "--format=", "--name-only", commit, cwd=repository) == "made"

    lines = (await served.workbench.call("get_task_logs", task_id=task["id"]))["lines"]
    seen = "\n".join(line["message"] for line in lines).split("\n")
    assert seen[0] == str(repository / ".aiswarm" / "worktrees" / "lab")
    assert {"COLOUR=blue", f"WORKBENCH_URL={served.info.url}", f"WORKBENCH_PROJECT={repository}"} <= set(seen)
    assert any("environ" in line and "Permission denied" in line for line in seen)

    found = await process(served, "walt")
    assert (found["pid"], found["running"], found["exit_code"]) == (made["pid"], True, None)
    log = Path(found["log"])
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "admitted as walt" in log.read_text()
    assert "wba_" not in log.read_text() + "\n".join(seen)

    ended_agent = await served.workbench.call("terminate_agent", agent_id="walt", reason="Enough.")
    assert ended_agent["registration_status"] == "inactive"
    assert (await process(served, "walt"))["running"] is False
    await ended(made["pid"])
    with pytest.raises(Conflict, match="NOT_RUNNING"):
        await served.workbench.call("terminate_agent", agent_id="walt")


async def test_a_planners_worker_waits_for_the_person(served: Served, admit: Admit, repository: Path) -> None:
    paula = await admit("paula", "planner")
    made = await spawn(served, paula, name="walt")
    assert (made["status"], made["agent_id"][:8]) == ("pending", "pending_")
    (question,) = (await served.workbench.call("list_approvals"))["approvals"]
    payload = question["payload"]
    assert (question["id"], question["requester"]) == (made["approval_id"], "paula")
    assert (payload["spawned_by"], payload["profile"], payload["suggested_id"]) == ("paula", "script", "walt")
    task_id = await make(served, "true")
    await served.workbench.call("approve", approval_id=made["approval_id"])
    assert (await reached(served, task_id, "completed"))["attempts"][0]["agent_id"] == "walt"
    assert (await agent(served, "walt"))["parent"] == "paula"


async def test_a_worker_whose_registration_is_rejected_ends(served: Served) -> None:
    made = await spawn(served, approve="ask")
    assert made["status"] == "pending"
    await served.workbench.call("reject", approval_id=made["approval_id"], reason="Full house.")
    found = await over(served, made["agent_id"])
    assert found["exit_code"] == 1
    assert "REJECTED: The registration was turned down. Full house." in Path(found["log"]).read_text()
    assert (await agent(served, made["agent_id"]))["registration_status"] == "rejected"


async def test_a_worker_that_dies_while_it_waits_leaves_no_question(served: Served) -> None:
    made = await spawn(served, approve="ask")
    os.kill(made["pid"], signal.SIGKILL)
    found = await over(served, made["agent_id"])
    assert found["exit_code"] == -signal.SIGKILL
    assert (await served.workbench.call("list_approvals"))["approvals"] == []
    assert (await agent(served, made["agent_id"]))["registration_status"] == "rejected"
    with pytest.raises(Conflict, match="ALREADY_DECIDED"):
        await served.workbench.call("approve", approval_id=made["approval_id"])


# With orders


async def test_a_worker_is_given_a_worktree_of_its_own(served: Served, admit: Admit) -> None:
    paula = await admit("paula", "planner")
    names = [(await spawn(served, name="Wilma Walt", new_worktree=True))["worktree"] for _ in range(2)]
    names.append((await spawn(served, new_worktree=True, assigned_worktree="nest"))["worktree"])
    names.append((await spawn(served, paula, new_worktree=True))["worktree"])
    assert names == ["wilma-walt", "wilma-walt-2", "nest", "implementer"]
    found = (await served.workbench.call("get_worktree_status"))["worktrees"]
    assert [(one["name"], one["created_by"]) for one in found][-1] == ("implementer", "paula")
    with pytest.raises(Conflict, match="WORKTREE_EXISTS"):
        await spawn(served, new_worktree=True, assigned_worktree="nest")


async def test_a_worker_for_one_task_does_it_in_the_tasks_worktree_and_ends(served: Served, lab: Path) -> None:
    other, mine = await make(served, "true"), await make(served, "true", target_worktree="lab")
    made = await spawn(served, name="walt", task_id=mine)
    assert made["worktree"] == "lab"
    await reached(served, mine, "completed")
    found = await over(served, "walt")
    assert (found["exit_code"], found["mode"], found["task_id"]) == (0, "task", mine)
    assert (await served.workbench.call("get_task_status", task_id=other))["status"] == "pending"
    for code, more in (
        ("WRONG_STATE", {"task_id": mine}),
        ("TASK_DOES_NOT_FIT", {"task_id": other, "persona_id": "tester"}),
    ):
        with pytest.raises(Conflict, match=code):
            await spawn(served, **more)


async def test_a_function_of_the_worktrees_project_is_a_worker(served: Served, lab: Path) -> None:
    (lab / "penguins.py").write_text("def count(task):\n    return {'of': task['title'], 'n': 344}\n")
    await spawn(served, profile="python", function="penguins:count", assigned_worktree="lab", limits={"tasks": 1})
    task_id = await make(served, None, title="Adelie", target_worktree="lab")  # type: ignore[arg-type]
    assert (await reached(served, task_id, "completed", "failed"))["result_data"] == {"of": "Adelie", "n": 344}


async def test_a_profile_of_the_projects_own_goes_before_a_shipped_one(served: Served, lab: Path) -> None:
    own = served.workbench.settings.home / "profiles"
    own.mkdir()
    (own / "script.yaml").write_text("summary: Says what it would do.\ncommand: [echo, 'would do {title}']\n")
    (own / "broken.yaml").write_text("command: {}\n")
    (own / "absent.yaml").write_text("summary: x\ncommand: [no-such-program]\nneeds: [no-such-program, $NO_SUCH]\n")
    found = {one["name"]: one for one in (await served.workbench.call("list_profiles"))["profiles"]}
    assert {"script", "python", "claude", "codex", "gemini"} <= set(found)
    assert (found["script"]["source"], found["script"]["command"]) == ("project", ["echo", "would do {title}"])
    assert (found["broken"]["available"], found["absent"]["needs"]) == (False, ["no-such-program", "$NO_SUCH"])
    for code, name in (("PROFILE_INVALID", "broken"), ("PROFILE_UNAVAILABLE", "absent")):
        with pytest.raises(WorkbenchError, match=code):
            await spawn(served, profile=name)
    await spawn(served, assigned_worktree="lab")
    task = await reached(served, await make(served, "touch done"), "completed")
    lines = (await served.workbench.call("get_task_logs", task_id=task["id"]))["lines"]
    assert [line["message"] for line in lines] == ["would do Do it"]


async def test_the_usage_of_a_worker_is_known_while_it_works(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab", limits={"memory_bytes": 900_000_000, "tasks": 5})
    assert made["confinement"] == await confinement(served)
    task_id = await make(served, "echo hello; echo $$ > pid; (setsid sleep 600 &); while :; do :; done")
    command = int(await appeared(lab / "pid"))
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
    await reached(served, task_id, "pending")


async def confinement(served: Served) -> dict[str, Any]:
    """What is said of how far this machine confines workers."""
    told = await served.workbench.call("get_confinement")
    return {"enforced": bool(told["enforced"]), "missing": told["missing"]}


async def test_a_worker_whose_command_exceeds_a_limit_fails_the_task_and_goes_on(served: Served, lab: Path) -> None:
    await spawn(served, name="walt", assigned_worktree="lab", limits={"wall_seconds": 0.5})
    task = await reached(served, await make(served, "sleep 600", max_retries=0), "failed")
    assert "it took longer than 0.5 s" in task["error_message"]
    await reached(served, await make(served, "true"), "completed")


async def test_a_worker_without_a_worktree_writes_nothing_that_stays(served: Served, repository: Path) -> None:
    (repository / ".env").write_text("SECRET=1")
    await spawn(served)
    run = "cat $WORKBENCH_PROJECT/README.md; echo x > here; for f in .env .git/config .aiswarm/server.json new; do"
    run += " cat $WORKBENCH_PROJECT/$f || echo refused; echo x > $WORKBENCH_PROJECT/$f || echo refused; done"
    task = await reached(served, await make(served, run), "completed", "failed")
    said = "\n".join(
        line["message"] for line in (await served.workbench.call("get_task_logs", task_id=task["id"]))["lines"]
    )
    assert said.startswith("# A project\n")
    if (await confinement(served))["enforced"]:
        assert said.count("refused") == 8
        assert (repository / ".env").read_text() == "SECRET=1"
    assert not (repository / "here").exists()


async def test_a_worker_that_is_not_confined_is_reported_as_such(settings: Settings) -> None:
    async with crowded(settings, confinement="off") as served:
        said = {"enforced": False, "missing": ["switched off by the setting confinement"]}
        made = await spawn(served, name="walt")
        assert made["confinement"] == said
        await reached(served, await make(served, "true"), "completed")
        found = await process(served, "walt")
        assert found["confinement"] == said
        assert "not confined in all: switched off" in Path(found["log"]).read_text()


async def test_a_setting_requires_a_worktree_of_every_agent(settings: Settings) -> None:
    async with crowded(settings, spawn_outside_worktrees=False) as served:
        with pytest.raises(Refused, match="WORKTREE_REQUIRED"):
            await spawn(served)
        await spawn(served, new_worktree=True)


# Starting again


async def test_a_worker_is_started_again_with_the_same_identity(served: Served, lab: Path) -> None:
    made = await spawn(
        served, name="walt", assigned_worktree="lab", environment={"KEY": "s3cret"}, limits={"wall_seconds": 60}
    )
    first = await make(served, "[ $WORKBENCH_ATTEMPT = 2 ] || { echo $$ > pid; sleep 600; }; echo key of ${#KEY}")
    command = int(await appeared(lab / "pid"))
    again = await served.workbench.call("restart_agent", agent_id="walt")
    assert (again["agent_id"], again["state"], again["worktree"]) == ("walt", "running", "lab")
    await ended(made["pid"], command)
    task = await reached(served, first, "completed")
    assert [(a["agent_id"], a["outcome"]) for a in task["attempts"]] == [("walt", "released"), ("walt", "completed")]
    lines = (await served.workbench.call("get_task_logs", task_id=first))["lines"]
    assert "key of 6" in lines[-1]["message"]
    assert (await process(served, "walt"))["limits"]["wall_seconds"] == 60
    os.kill(again["pid"], signal.SIGKILL)
    await over(served, "walt")
    third = await served.workbench.call("restart_agent", agent_id="walt")
    await reached(served, await make(served, "true"), "completed")
    assert len({made["pid"], again["pid"], third["pid"]}) == 3
    kinds = [e["kind"] for e in (await served.workbench.call("list_events", kinds=["agent.*"]))["events"]]
    assert kinds.count("agent.restarted") == 2
    files = [path for path in served.workbench.settings.home.rglob("*") if path.is_file()]
    (kept,) = [path for path in files if b"s3cret" in path.read_bytes()]
    assert (kept.parent.name, stat.S_IMODE(kept.stat().st_mode)) == ("environments", 0o600)


async def test_an_agent_is_started_again_only_by_its_spawner_and_not_when_it_was_rejected(
    served: Served, admit: Admit
) -> None:
    paula, pete = await admit("paula", "planner"), await admit("pete", "planner")
    made = await spawn(served, paula)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await served.workbench.dispatch(pete.caller, "restart_agent", {"agent_id": made["agent_id"]})
    again = await served.workbench.dispatch(paula.caller, "restart_agent", {"agent_id": made["agent_id"]})
    assert (again["status"], again["state"]) == ("pending", "running")
    await served.workbench.call("reject", approval_id=made["approval_id"])
    await over(served, made["agent_id"])
    with pytest.raises(Conflict, match="WRONG_STATE"):
        await served.workbench.dispatch(paula.caller, "restart_agent", {"agent_id": made["agent_id"]})
    with pytest.raises(NotFound, match="PROCESS_NOT_FOUND"):
        await served.workbench.call("restart_agent", agent_id="paula")


async def test_without_its_environment_or_its_worktree_nothing_is_started_again(served: Served, lab: Path) -> None:
    await spawn(served, name="walt", assigned_worktree="lab", environment={"KEY": "x"})
    (kept,) = (served.workbench.settings.home / "environments").iterdir()
    kept.unlink()
    with pytest.raises(Unavailable, match="ENVIRONMENT_LOST"):
        await served.workbench.call("restart_agent", agent_id="walt")
    assert (await process(served, "walt"))["running"]
    await spawn(served, name="wilma", assigned_worktree="lab")
    await served.workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(NotFound, match="WORKTREE_NOT_FOUND"):
        await served.workbench.call("restart_agent", agent_id="wilma")


async def test_revoking_forgets_the_environment(served: Served) -> None:
    await spawn(served, name="walt", environment={"KEY": "x"})
    await served.workbench.call("revoke_agent", agent_id="walt")
    assert list((served.workbench.settings.home / "environments").iterdir()) == []


# Ending


async def test_a_killed_worker_is_noticed_and_takes_its_command_along(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab")
    task_id = await make(served, "echo $$ > pid; trap '' TERM; setsid sleep 600 & sleep 600")
    command = int(await appeared(lab / "pid"))
    os.kill(made["pid"], signal.SIGKILL)
    task = await reached(served, task_id, "pending")
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


async def test_a_terminated_worker_gives_its_task_back_and_the_next_one_does_it(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab")
    task_id = await make(served, "[ $WORKBENCH_ATTEMPT = 2 ] || { echo $$ > pid; exec sleep 600; }")
    command = int(await appeared(lab / "pid"))
    await served.workbench.call("terminate_agent", agent_id="walt")
    await ended(made["pid"], command)
    await spawn(served, name="wilma", assigned_worktree="lab")
    task = await reached(served, task_id, "completed", "failed")
    assert [(a["agent_id"], a["outcome"]) for a in task["attempts"]] == [("walt", "released"), ("wilma", "completed")]


async def test_only_the_planner_that_spawned_it_or_the_person_ends_an_agent(served: Served, admit: Admit) -> None:
    paula, pete = await admit("paula", "planner"), await admit("pete", "planner")
    worker = await admit("ada")
    made = [(await spawn(served, paula))["agent_id"], (await spawn(served))["agent_id"]]
    for who, whom in ((pete, made[0]), (pete, made[1]), (paula, made[1]), (worker, made[0]), (paula, "ada")):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await served.workbench.dispatch(who.caller, "terminate_agent", {"agent_id": whom})
        with pytest.raises(Refused, match="FORBIDDEN"):
            await served.workbench.dispatch(who.caller, "get_agent_process_info", {"agent_id": whom})
    mine = await served.workbench.dispatch(paula.caller, "get_managed_agents", {})
    assert [a["agent_id"] for a in mine["agents"]] == made[:1]
    assert (await served.workbench.dispatch(pete.caller, "get_managed_agents", {}))["agents"] == []
    assert [a["agent_id"] for a in (await served.workbench.call("get_managed_agents"))["agents"]] == made
    await served.workbench.dispatch(paula.caller, "terminate_agent", {"agent_id": made[0]})
    await served.workbench.call("terminate_agent", agent_id=made[1])
    assert [(await process(served, agent_id))["running"] for agent_id in made] == [False, False]
    assert (await agent(served, made[0]))["registration_status"] == "rejected"
    assert (await served.workbench.call("list_approvals"))["approvals"] == []


async def test_an_agent_that_was_not_spawned_has_no_process(served: Served, admit: Admit) -> None:
    await admit("ada")
    with pytest.raises(Conflict, match="NOT_RUNNING"):
        await served.workbench.call("terminate_agent", agent_id="ada")
    with pytest.raises(NotFound, match="PROCESS_NOT_FOUND"):
        await process(served, "ada")
    for name in ("terminate_agent", "get_agent_process_info"):
        with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
            await served.workbench.call(name, agent_id="nobody")


async def test_revoking_ends_the_process_too(served: Served, lab: Path) -> None:
    made = await spawn(served, name="walt", assigned_worktree="lab")
    task_id = await make(served, "echo $$ > pid; exec sleep 600")
    command = int(await appeared(lab / "pid"))
    revoked = await served.workbench.call("revoke_agent", agent_id="walt")
    assert revoked["registration_status"] == "revoked"
    await ended(made["pid"], command)
    assert (await reached(served, task_id, "pending"))["attempts"][0]["outcome"] == "released"


@pytest.mark.parametrize("how", ["integrate", "discard"])
async def test_with_its_worktree_a_worker_ends(served: Served, repository: Path, how: str) -> None:
    await served.workbench.call("create_worktree", name="lab")
    inside = await spawn(served, assigned_worktree="lab", name="inside")
    outside = await spawn(served, name="outside")
    await reached(served, await make(served, "touch new.txt", target_worktree="lab"), "completed")
    status = (await served.workbench.call("get_worktree_status"))["worktrees"][0]
    assert (status["agents"], status["open_tasks"]) == (["inside"], 0)
    if how == "integrate":
        asked = await served.workbench.call("integrate_worktree", worktree_name="lab")
        await served.workbench.call("approve", approval_id=asked["approval_id"])
        await finished(served.workbench, asked["approval_id"])
        assert (repository / "new.txt").exists()
    else:
        await served.workbench.call("discard_worktree", worktree_name="lab")
    await ended(inside["pid"])
    while (repository / ".aiswarm" / "worktrees" / "lab").exists():  # removed after its agents have ended
        await asyncio.sleep(0.01)
    assert (await agent(served, "inside"))["registration_status"] == "inactive"
    assert psutil.pid_exists(outside["pid"])
    assert (await process(served, "outside"))["running"]


async def test_when_the_servers_stop_all_workers_end(served: Served) -> None:
    pids = [(await spawn(served, name=f"w{n}"))["pid"] for n in range(2)]
    await served.servers.stop()
    await ended(*pids)
    assert {(await process(served, f"w{n}"))["running"] for n in range(2)} == {False}
    with pytest.raises(Unavailable, match="NO_SERVER"):
        await spawn(served)


# Refusals


@asynccontextmanager
async def crowded(settings: Settings, **limits: Any) -> AsyncIterator[Served]:
    """A served project in which few agents may run."""
    async with Workbench.open(settings.model_copy(update=limits)) as workbench, Servers(workbench) as servers:
        yield Served(workbench, await servers.start(0), servers)


async def begun(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent, once it has one."""
    while (found := await process(served, agent_id))["state"] == "queued":
        await asyncio.sleep(0.02)
    return found


async def test_agents_wait_for_room_in_the_order_they_were_asked_for(settings: Settings) -> None:
    async with crowded(settings, max_agents_running=1, max_agents_queued=2) as served:
        made = [await spawn(served, name=name) for name in ("first", "second", "third")]
        assert [(one["state"], one["pid"] is None) for one in made] == [
            ("running", False),
            ("queued", True),
            ("queued", True),
        ]
        assert [(await process(served, name))["queue_place"] for name in ("first", "second", "third")] == [None, 1, 2]
        with pytest.raises(Unavailable, match="TOO_MANY_AGENTS"):
            await spawn(served, name="fourth")
        assert [a["agent_id"] for a in (await served.workbench.call("list_agents"))["agents"]] == [
            "first",
            "second",
            "third",
        ]
        await served.workbench.call("terminate_agent", agent_id="first")
        assert (await begun(served, "second"))["state"] == "running"
        assert (await process(served, "third"))["queue_place"] == 1
        os.kill((await process(served, "second"))["pid"], signal.SIGKILL)
        assert (await begun(served, "third"))["state"] == "running"
        task = await reached(served, await make(served, "true"), "completed")
        assert task["attempts"][0]["agent_id"] == "third"
        kinds = [e["kind"] for e in (await served.workbench.call("list_events", kinds=["agent.queued"]))["events"]]
        assert kinds == ["agent.queued"] * 2


async def test_an_agent_that_waits_for_room_can_be_ended(settings: Settings) -> None:
    async with crowded(settings, max_agents_running=1) as served:
        await spawn(served, name="first")
        await spawn(served, name="second", environment={"KEY": "secret"})
        await served.workbench.call("terminate_agent", agent_id="second", reason="Enough.")
        found = await process(served, "second")
        assert (found["state"], found["reason"], found["queue_place"]) == ("ended", "Enough.", None)
        assert (await agent(served, "second"))["registration_status"] == "inactive"
        await served.workbench.call("terminate_agent", agent_id="first")
        await over(served, "first")
        assert (await process(served, "second"))["pid"] is None
        with pytest.raises(Conflict, match="NOT_RUNNING"):
            await served.workbench.call("terminate_agent", agent_id="second")


async def test_a_planner_has_only_its_share_of_the_room(settings: Settings) -> None:
    async with crowded(settings, max_agents_per_planner=1) as served:
        planners = []
        for name in ("paula", "pete"):
            made = await served.workbench.call("register", name=name, persona_id="planner")
            await served.workbench.call("approve", approval_id=made["approval_id"])
            caller = await served.workbench.identify(made["token"])
            planners.append(Admitted(name, made["token"], caller))
        paula, pete = planners
        states = [(await spawn(served, who))["state"] for who in (paula, paula, pete)]
        assert states == ["running", "queued", "running"]
        assert (await spawn(served))["state"] == "running"


REFUSED: list[tuple[str, dict[str, Any]]] = [
    *[
        ("BAD_ENVIRONMENT", {"environment": {name: "x"}})
        for name in ("WORKBENCH_URL", "workbench_x", "LD_PRELOAD", "GIT_DIR", "PYTHONPATH", "", "A=B", "a b", "1A")
    ],
    ("INVALID_ARGUMENTS", {"environment": {"A": 1}}),
    ("INVALID_ARGUMENTS", {"environment": {"A": "x\0y"}}),
    ("PERSONA_NOT_FOUND", {"persona_id": "wizard"}),
    ("WORKTREE_NOT_FOUND", {"assigned_worktree": "gone"}),
    ("WORKTREE_NOT_FOUND", {"assigned_worktree": "old"}),
    ("BAD_WORKTREE_NAME", {"assigned_worktree": "../x"}),
    ("PROFILE_NOT_FOUND", {"profile": "wizard"}),
    ("PROFILE_NOT_FOUND", {"profile": "../script"}),
    ("BAD_FUNCTION", {"profile": "python"}),
    ("BAD_FUNCTION", {"profile": "python", "function": "no colon"}),
    ("BAD_FUNCTION", {"function": "a:b"}),
    ("TASK_NOT_FOUND", {"task_id": 77}),
    ("INVALID_ARGUMENTS", {"limits": {"cpu_seconds": 0}}),
    ("INVALID_ARGUMENTS", {"limits": {"patience": 1}}),
]


async def test_what_cannot_be_spawned_is_refused_and_nothing_runs(served: Served) -> None:
    await served.workbench.call("create_worktree", name="old")
    await served.workbench.call("discard_worktree", worktree_name="old")
    for code, more in REFUSED:
        with pytest.raises(WorkbenchError, match=f"^{code}"):
            await spawn(served, **more)
    assert (await served.workbench.call("list_approvals"))["approvals"] == []
    assert (await served.workbench.call("list_agents", status="assigned"))["agents"] == []
    assert (await served.workbench.call("get_managed_agents"))["agents"] == []


async def test_an_agent_that_cannot_be_started_is_not_left_waiting(served: Served) -> None:
    served.workbench.settings.logs.write_text("in the way")
    for approve in ("auto", "ask"):
        with pytest.raises(Unavailable, match="SPAWN_FAILED"):
            await spawn(served, approve=approve)
    states = [a["registration_status"] for a in (await served.workbench.call("list_agents"))["agents"]]
    assert states == ["inactive", "rejected"]
    assert (await served.workbench.call("list_approvals"))["approvals"] == []


async def test_a_planner_spawns_only_in_its_own_worktrees_and_a_worker_not_at_all(served: Served, admit: Admit) -> None:
    paula, walt = await admit("paula", "planner"), await admit("walt")
    await served.workbench.call("create_worktree", name="lab")
    with pytest.raises(Refused, match=r"FORBIDDEN.*belongs to operator"):
        await spawn(served, paula, assigned_worktree="lab")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await spawn(served, walt)


# After a crash


async def test_what_a_crashed_server_left_running_is_ended_and_nothing_else(settings: Settings, tmp_path: Path) -> None:
    table = ProcessTable()
    left = tmp_path / "left"
    left.mkdir()
    sleeper = table.start(["sleep", "600"], cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log")
    async with Workbench.open(settings) as workbench:
        for name, pid, started in (("left", sleeper.pid, sleeper.started), ("reused", os.getpid(), 1.0)):
            made = await workbench.call("register", name=name, persona_id="implementer")
            await workbench.call("approve", approval_id=made["approval_id"])
            caller = await workbench.identify(made["token"])
            await workbench.call("create_task", title="t", persona_id="implementer")
            await workbench.dispatch(caller, "claim_task", {})
            row = {
                "agent": caller.agent,
                "pid": pid,
                "started": started,
                "profile": "script",
                "log": "",
                "now": 1,
                "mark": None,
            }
            spawn_ = {"agent": caller.agent, "profile": "script", "request": "{}", "parent": None, "now": 1}
            await workbench.store.write(lambda tx, spawn_=spawn_: tx.run(request.SQL.add, spawn_))
            await workbench.store.write(lambda tx, row=row: tx.run(request.SQL.process, row))
            began = {"agent": caller.agent, "scratch": str(left), "confinement": '{"enforced": false, "missing": []}'}
            await workbench.store.write(lambda tx, began=began: tx.run(request.SQL.starting, began))
            await workbench.store.write(lambda tx, began=began: tx.run(request.SQL.started, began))
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        served = Served(workbench, await servers.start(0), servers)
        await ended(sleeper.pid)
        assert [(await process(served, name))["running"] for name in ("left", "reused")] == [False, False]
        tasks = (await workbench.call("list_tasks"))["tasks"]
        assert [task["status"] for task in tasks] == ["pending", "pending"]
        agents = (await workbench.call("list_agents"))["agents"]
        assert [a["registration_status"] for a in agents] == ["inactive", "inactive"]
        assert not left.exists()
    table.terminate(sleeper, 0)


async def test_variables_of_the_server_that_could_steer_a_worker_do_not_reach_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORKBENCH_TOKEN", "GIT_DIR", "PYTHONSTARTUP", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "hostile")
    monkeypatch.setenv("HARMLESS", "yes")
    await spawn(served)
    task = await reached(served, await make(served, "env"), "completed", "failed")
    lines = (await served.workbench.call("get_task_logs", task_id=task["id"]))["lines"]
    env = dict(line.partition("=")[::2] for entry in lines for line in entry["message"].split("\n"))
    assert [name for name, value in env.items() if value == "hostile"] == []
    assert env["HARMLESS"] == "yes"
