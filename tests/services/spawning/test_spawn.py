"""Agents spawned as processes: admitted or not, with a worktree, a task, a profile or limits; what is refused."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, ended, git
from tests.services.processes.running import agent, confinement, crowded, over, process, spawn
from tests.worker.working import done, output_of, ran
from workbench.errors import Conflict, Refused
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


@pytest.mark.parametrize("mcp", [False, True], ids=["http", "mcp"])
async def test_a_spawned_worker_does_a_task_in_its_worktree_and_its_token_is_seen_nowhere(
    served: Served, repository: Path, mcp: bool
) -> None:
    await given.worktree(served.workbench)
    made = await spawn(served, assigned_worktree="lab", name="walt", mcp=mcp, environment={"COLOUR": "blue"})
    assert (made["agent_id"], made["status"], made["worktree"]) == ("walt", "assigned", "lab")
    run = "pwd; env; cat /proc/$PPID/cmdline /proc/$PPID/environ | tr '\\0' '\\n'; touch made"
    task = await ran(served, run, target_worktree="lab")
    assert (task["status"], task["attempts"][0]["agent_id"]) == ("completed", "walt")
    commit = git("rev-parse", "wb/lab/main", cwd=repository)
    assert task["artifacts"] == [f"commit:{commit}"]
    assert git("show", "--format=", "--name-only", commit, cwd=repository) == "made"

    seen = await output_of(served, task["id"])
    assert seen[0] == str(repository / ".aiswarm" / "worktrees" / "lab")
    assert {"COLOUR=blue", f"WORKBENCH_URL={served.info.url}", f"WORKBENCH_PROJECT={seen[0]}"} <= set(seen)
    assert any("environ" in line and "Permission denied" in line for line in seen)

    details = await process(served, "walt")
    assert (details["pid"], details["running"], details["exit_code"]) == (made["pid"], True, None)
    log = Path(details["log"])
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "admitted as walt" in log.read_text()
    assert "wba_" not in log.read_text() + "\n".join(seen)

    ended_agent = await served.workbench.call("terminate_agent", agent_id="walt", reason="Enough.")
    assert ended_agent["registration_status"] == "inactive"
    assert (await process(served, "walt"))["running"] is False
    await ended(made["pid"])
    await given.refuses("NOT_RUNNING", served.workbench.call("terminate_agent", agent_id="walt"))


async def test_a_planners_worker_waits_for_the_person(served: Served, admit: Admit, repository: Path) -> None:
    paula = await admit("paula", "planner")
    made = await spawn(served, paula, name="walt")
    assert (made["status"], made["agent_id"][:8]) == ("pending", "pending_")
    (question,) = (await served.workbench.call("list_approvals"))["approvals"]
    payload = question["payload"]
    assert (question["id"], question["requester"]) == (made["approval_id"], "paula")
    assert (payload["spawned_by"], payload["profile"], payload["suggested_id"]) == ("paula", "script", "walt")
    task_id = await given.task(served.workbench, run="true")
    await served.workbench.call("approve", approval_id=made["approval_id"])
    assert (await given.reached(served.workbench, task_id, "completed"))["attempts"][0]["agent_id"] == "walt"
    assert (await agent(served, "walt"))["parent"] == "paula"


async def test_a_worker_that_the_operator_starts_is_admitted_as_it_registers_so_nobody_sees_a_question(
    served: Served,
) -> None:
    await spawn(served)
    (decided,) = (await served.workbench.call("list_decided_approvals"))["approvals"]
    assert (decided["decided_by"], decided["decided_at"]) == ("spawn", decided["created_at"])  # in one transaction


async def test_a_worker_whose_registration_is_rejected_ends(served: Served) -> None:
    made = await spawn(served, approve="ask")
    assert made["status"] == "pending"
    await served.workbench.call("reject", approval_id=made["approval_id"], reason="Full house.")
    details = await over(served, made["agent_id"])
    assert details["exit_code"] == 1
    assert "REJECTED: Your registration was rejected: Full house." in Path(details["log"]).read_text()
    assert (await agent(served, made["agent_id"]))["registration_status"] == "rejected"


async def test_a_worker_that_dies_while_it_waits_leaves_no_question(served: Served) -> None:
    made = await spawn(served, approve="ask")
    os.kill(made["pid"], signal.SIGKILL)
    details = await over(served, made["agent_id"])
    assert details["exit_code"] == -signal.SIGKILL
    assert (await served.workbench.call("list_approvals"))["approvals"] == []
    assert (await agent(served, made["agent_id"]))["registration_status"] == "rejected"
    await given.refuses("ALREADY_DECIDED", served.workbench.call("approve", approval_id=made["approval_id"]))


async def test_a_spawn_whose_caller_is_cancelled_is_finished(served: Served) -> None:
    async with served.workbench.feed.subscribe("agent.registered") as events:
        spawning = asyncio.create_task(spawn(served, name="walt"))
        await anext(events)
        spawning.cancel()
        with suppress(asyncio.CancelledError):
            await spawning

    async def runs() -> bool:
        (found,) = (await served.workbench.call("get_managed_agents"))["agents"]
        return bool(found["process"]["state"] == "running")

    await given.until(runs, seconds=30)


# With a worktree, a task, a profile or limits


async def test_a_worker_is_given_a_worktree_of_its_own(served: Served, admit: Admit) -> None:
    paula = await admit("paula", "planner")
    names = [(await spawn(served, name="Wilma Walt", new_worktree=True))["worktree"] for _ in range(2)]
    names.append((await spawn(served, new_worktree=True, assigned_worktree="nest"))["worktree"])
    names.append((await spawn(served, paula, new_worktree=True))["worktree"])
    assert names == ["wilma-walt", "wilma-walt-2", "nest", "implementer"]
    worktrees = (await served.workbench.call("get_worktree_status"))["worktrees"]
    assert [(worktree["name"], worktree["created_by"]) for worktree in worktrees][-1] == ("implementer", "paula")
    await given.refuses("WORKTREE_EXISTS", spawn(served, new_worktree=True, assigned_worktree="nest"))


async def test_a_spawned_agent_keeps_its_worktree(served: Served) -> None:
    await given.worktree(served.workbench, "other")
    made = await spawn(served, name="Wilma", new_worktree=True)
    with pytest.raises(Conflict, match=r"WORKTREE_FIXED: Workbench started .* in its worktree. Spawn another agent"):
        await served.workbench.call("update_agent", agent_id=made["agent_id"], changes={"worktree": "other"})


async def test_a_worker_for_one_task_does_it_in_the_tasks_worktree_and_ends(served: Served, lab: Path) -> None:
    other, mine = [await given.task(served.workbench, run="true", target_worktree=name) for name in (None, "lab")]
    made = await spawn(served, name="walt", task_id=mine)
    assert made["worktree"] == "lab"
    await given.reached(served.workbench, mine, "completed")
    details = await over(served, "walt")
    assert (details["exit_code"], details["mode"], details["task_id"]) == (0, "task", mine)
    assert (await served.workbench.call("get_task_status", task_id=other))["status"] == "pending"
    await given.refuses("WRONG_STATE", spawn(served, task_id=mine))
    await given.refuses("TASK_DOES_NOT_FIT", spawn(served, task_id=other, persona_id="tester"))


async def test_a_function_of_the_worktrees_project_is_a_worker(served: Served, lab: Path) -> None:
    (lab / "penguins.py").write_text("def count(task):\n    return {'of': task['title'], 'n': 344}\n")
    await spawn(served, profile="python", function="penguins:count", assigned_worktree="lab", limits={"tasks": 1})
    task_id = await given.task(served.workbench, run=None, title="Adelie", target_worktree="lab")
    task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert task["result_data"] == {"of": "Adelie", "n": 344}


async def test_a_profile_of_the_projects_own_goes_before_a_shipped_one(served: Served, lab: Path) -> None:
    own = served.workbench.settings.home / "profiles"
    own.mkdir()
    (own / "script.yaml").write_text("summary: Says what it would do.\ncommand: [echo, 'would do {title}']\n")
    (own / "broken.yaml").write_text("command: {}\n")
    (own / "absent.yaml").write_text("summary: x\ncommand: [no-such-program]\nneeds: [no-such-program, $NO_SUCH]\n")
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    profiles = {profile["name"]: profile for profile in (await served.workbench.call("list_profiles"))["profiles"]}
    assert {"script", "python", "claude", "codex", "gemini"} <= set(profiles)
    assert (profiles["script"]["source"], profiles["script"]["command"]) == ("project", ["echo", "would do {title}"])
    assert (profiles["broken"]["available"], profiles["absent"]["needs"]) == (False, ["no-such-program", "$NO_SUCH"])
    for code, name in (("PROFILE_INVALID", "broken"), ("PROFILE_UNAVAILABLE", "absent")):
        await given.refuses(code, spawn(served, profile=name))
    await spawn(served, assigned_worktree="lab")
    task = await done(served, "touch done")
    assert await output_of(served, task["id"]) == ["would do t"]


async def test_a_profile_that_the_user_has_not_trusted_is_not_used(served: Served, lab: Path, tmp_path: Path) -> None:
    own, mark = served.workbench.settings.home / "profiles", tmp_path / "ran"
    own.mkdir()
    for name in ("script", "new"):
        (own / f"{name}.yaml").write_text(f"summary: x\ncommand: [touch, {mark}]\n")
    profiles = {profile["name"]: profile for profile in (await served.workbench.call("list_profiles"))["profiles"]}
    assert profiles["script"]["source"] == "shipped"
    assert (profiles["new"]["available"], profiles["new"]["needs"]) == (False, ["`workbench trust`"])
    assert "touch" not in str(profiles)
    await given.refuses("PROFILE_NOT_TRUSTED", spawn(served, profile="new"))
    await spawn(served, assigned_worktree="lab")
    await done(served)
    assert not mark.exists()
    trust(served.workbench.settings.project, withheld(served.workbench.settings.project))
    (own / "new.yaml").write_text(f"summary: x\ncommand: [touch, {mark}, again]\n")
    await given.refuses("PROFILE_NOT_TRUSTED", spawn(served, profile="new"))


async def test_a_worker_whose_command_exceeds_a_limit_fails_the_task_and_goes_on(served: Served, lab: Path) -> None:
    await spawn(served, name="walt", assigned_worktree="lab", limits={"cpu_seconds": 0.5})
    task_id = await given.task(served.workbench, run="while :; do :; done", max_retries=0)
    assert "more than 0.5 s" in (await given.reached(served.workbench, task_id, "failed"))["error_message"]
    await done(served)


async def test_a_worker_without_a_worktree_leaves_no_file(served: Served, repository: Path) -> None:
    (repository / ".env").write_text("SECRET=1")
    await spawn(served)
    run = "cat $WORKBENCH_PROJECT/README.md; echo x > here; for f in .env .git/config .aiswarm/server.json new; do"
    run += " cat $WORKBENCH_PROJECT/$f || echo refused; echo x > $WORKBENCH_PROJECT/$f || echo refused; done"
    task = await ran(served, run)
    said = await output_of(served, task["id"])
    assert said[0] == "# A project"
    if (await confinement(served))["enforced"]:
        assert said.count("refused") == 8
        assert (repository / ".env").read_text() == "SECRET=1"
    assert not (repository / "here").exists()


async def test_a_worker_that_is_not_confined_is_reported_as_such(settings: Settings) -> None:
    async with crowded(settings, confinement="off") as served:
        said = {"enforced": False, "missing": ["disabled by the setting confinement"]}
        made = await spawn(served, name="walt")
        assert made["confinement"] == said
        await done(served)
        details = await process(served, "walt")
        assert details["confinement"] == said
        assert "not confined in all: disabled" in Path(details["log"]).read_text()


async def test_a_setting_requires_a_worktree_of_every_agent(settings: Settings) -> None:
    async with crowded(settings, spawn_outside_worktrees=False) as served:
        await given.refuses("WORKTREE_REQUIRED", spawn(served))
        await spawn(served, new_worktree=True)


async def test_dangerous_variables_of_the_server_do_not_reach_a_worker(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORKBENCH_TOKEN", "GIT_DIR", "PYTHONSTARTUP", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "hostile")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    await spawn(served)
    task = await ran(served, "env")
    env = dict(line.partition("=")[::2] for line in await output_of(served, task["id"]))
    assert [name for name, value in env.items() if value == "hostile"] == []
    assert env["OMP_NUM_THREADS"] == "3"


# Refusals


REFUSED: list[tuple[str, dict[str, Any]]] = [
    *[
        ("BAD_ENVIRONMENT", {"environment": {name: "x"}})
        for name in ("WORKBENCH_URL", "workbench_x", "LD_PRELOAD", "GIT_DIR", "PYTHONPATH", "", "A=B", "a b", "1A")
    ],
    ("BAD_ENVIRONMENT", {"environment": {"A": "x"}, "secret": ["B"]}),
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


async def test_a_refused_spawn_starts_nothing(served: Served) -> None:
    await given.worktree(served.workbench, "old")
    await served.workbench.call("discard_worktree", worktree_name="old")
    for code, more in REFUSED:
        await given.refuses(code, spawn(served, **more))
    assert (await served.workbench.call("list_approvals"))["approvals"] == []
    assert (await served.workbench.call("list_agents", status="assigned"))["agents"] == []
    assert (await served.workbench.call("get_managed_agents"))["agents"] == []


async def test_an_agent_that_cannot_be_started_is_not_left_waiting(served: Served) -> None:
    served.workbench.settings.logs.write_text("in the way")
    for approve in ("auto", "ask"):
        await given.refuses("SPAWN_FAILED", spawn(served, approve=approve))
    states = [a["registration_status"] for a in (await served.workbench.call("list_agents"))["agents"]]
    assert states == ["inactive", "rejected"]
    assert (await served.workbench.call("list_approvals"))["approvals"] == []


async def test_a_planners_agent_gets_no_more_tools_than_the_planner(served: Served, admit: Admit) -> None:
    call = served.workbench.call
    offered = [{"name": name, "description": "", "parameters": {"type": "object"}} for name in ("mail", "notes")]
    await call("offer_tools", host_id="k", name="kernel 1", tools=offered)
    paula = await admit("paula", "planner", tools=["notes", "notebook"])
    with pytest.raises(Refused, match=r"FORBIDDEN.*: mail is not granted to you"):
        await spawn(served, paula, tools=["mail", "notes"])
    environment = {"ZONE": "secret", "ANTHROPIC_BASE_URL": "https://mine.example"}
    made = await spawn(served, paula, persona_id="tester", tools=["notes"], new_worktree=True, environment=environment)
    approval = await call("get_approval", approval_id=made["approval_id"])
    assert (approval["payload"]["tools"], approval["payload"]["environment"]) == (
        ["notes"],
        ["ANTHROPIC_BASE_URL", "ZONE"],
    )
    assert "secret" not in str(approval)
    decided = await call("approve", approval_id=made["approval_id"], choices={"agent_id": "walt"})
    assert decided["outcome"]["granted"]["tools"] == ["notes"]
    assert (await call("get_agent", agent_id="walt"))["tools"] == ["notes"]
    paul = await admit("paul", "planner", tools=["*"])
    assert (await spawn(served, paul, tools=["mail"]))["approval_id"] is not None
    own = await spawn(served, tools=["mail", "mail", "*"])
    assert (await call("get_agent", agent_id=own["agent_id"]))["tools"] == ["*", "mail"]


async def test_a_planner_spawns_only_in_its_own_worktrees_and_a_worker_not_at_all(served: Served, admit: Admit) -> None:
    paula, walt = await admit("paula", "planner"), await admit("walt")
    await given.worktree(served.workbench)
    with pytest.raises(Refused, match=r"FORBIDDEN.*belongs to operator"):
        await spawn(served, paula, assigned_worktree="lab")
    await given.refuses("FORBIDDEN", spawn(served, walt))
