"""Failures of agents' programs have consequences by their kind: they wait together, ask once, or stop.

Shell scripts stand for the programs: they print what Claude Code prints.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.drivers.days import RESULT, failed, retry
from tests.services.processes.running import over, serving, spawn
from tests.worker.working import working
from workbench.cli.approvals import approval_page, failure_text, waiting_table
from workbench.errors import Conflict
from workbench.rules.failures import FailureKind
from workbench.rules.profile import Profile
from workbench.services import holds
from workbench.services.agents.rows import require_agent
from workbench.services.spawning import spawn as spawning
from workbench.services.spawning.request import SpawnRequest, check_profile
from workbench.state.settings import Settings
from workbench.trust.withheld import trust, withheld

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

AGENTS, TASKS, FAILING = 20, 60, 50
ACCOUNT = "account:claude-1a2b3c4d"


class Program:
    """A program, and what it is told to answer: the lines of `now` and its exit status."""

    def __init__(self, place: Path) -> None:
        self.now, self.requests = place / "answer.jsonl", place / "requests"
        self.requests.touch()
        script = f'echo x >> {self.requests}; cat {self.now}; ! grep -q \'"is_error": true\\|"error"\' {self.now}'
        self.command = ["/bin/sh", "-c", script]
        self.profile = Profile(name="p", summary="A script.", command=self.command, driver="claude")

    def answers(self, *lines: Any) -> None:
        """Answer with these lines from now on."""
        self.now.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")

    @property
    def asked(self) -> int:
        """How often it was run."""
        return len(self.requests.read_text().split())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program that succeeds, until it is told otherwise."""
    made = Program(tmp_path)
    made.answers(RESULT)
    return made


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Waits whose end no provider tells are short."""
    return settings.model_copy(update={"hold_base_seconds": 1.0})


@pytest.fixture
def team(served: Served, admit: Admit, program: Program) -> Any:
    """`async with team(3)`: as many agents that work with one key."""

    @asynccontextmanager
    async def working_agents(number: int, first: int = 0) -> AsyncIterator[list[str]]:
        async with AsyncExitStack() as stack:
            names = [f"agent-{one}" for one in range(first, first + number)]
            for name in names:
                agent = await admit(name)

                def enlist(tx: Any, name: str = name) -> None:
                    holds.enlist(tx, require_agent(tx, name)["id"], "p", ACCOUNT.removeprefix("account:"))

                await served.workbench.store.write(enlist, actor="test")
                await stack.enter_async_context(working(served, agent.token, None, profile=program.profile))
            yield names

    return working_agents


async def questions(served: Served) -> list[dict[str, Any]]:
    """The questions about failures that wait for an answer."""
    return list((await served.workbench.call("list_approvals", kind="failure"))["approvals"])


async def held(served: Served) -> dict[str, Any]:
    """The one hold, once there is one."""
    while not (found := (await served.workbench.call("list_holds"))["holds"]):
        await asyncio.sleep(0.02)
    [hold] = found
    return dict(hold)


async def attempts_at(served: Served, task_ids: list[int]) -> list[dict[str, Any]]:
    """All attempts that were made."""
    tasks = [await served.workbench.call("get_task", task_id=task_id) for task_id in task_ids]
    return [attempt for task in tasks for attempt in task["attempts"]]


@pytest.mark.long
async def test_agents_of_a_limited_key_wait_together_until_its_reset_and_use_up_no_retry(
    served: Served, program: Program, team: Any
) -> None:
    resets = int(time.time()) + 8
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets}}
    program.answers(event, failed("You've hit your limit"))
    tasks = [await given.task(served.workbench, max_retries=0) for _ in range(TASKS)]
    async with team(1):
        hold = await held(served)
        assert (hold["scope"], hold["failure"], hold["approval_id"]) == (ACCOUNT, "limit", None)
        async with team(AGENTS - 1, first=1) as others:
            shown = {one["agent_id"]: one for one in (await served.workbench.call("list_agents"))["agents"]}
            assert {shown[name]["held_until"] for name in others} == {hold["until"]}
            assert shown["agent-0"]["presence"] == "held"
            waiting = await served.workbench.call("get_task", task_id=tasks[0])
            assert (waiting["status"], waiting["not_before"]) == ("pending", hold["until"])
            assert program.asked == 1, "no request before the reset but that which learnt of it"
            program.answers(RESULT)
            done = [await given.reached(served.workbench, one, "completed", "failed") for one in tasks]
    assert time.time() >= resets
    assert {(task["status"], task["retry_count"]) for task in done} == {("completed", 0)}
    assert program.asked == TASKS + 1


@pytest.mark.long
async def test_a_key_that_is_refused_asks_once_and_its_tasks_go_on_after_the_answer(
    served: Served, program: Program, team: Any
) -> None:
    program.answers(retry(401, "authentication_failed"), failed("Invalid API key"))
    tasks = [await given.task(served.workbench, max_retries=0) for _ in range(6)]
    async with team(3):
        assert (await held(served))["until"] is None
        [question] = await questions(served)
        assert (question["payload"]["scope"], question["payload"]["failure"]) == (ACCOUNT, "auth")
        while {task["status"] for task in (await served.workbench.call("list_tasks"))["tasks"]} != {"pending"}:
            await asyncio.sleep(0.02)
        assert program.asked <= 3
        program.answers(RESULT)
        outcome = (await served.workbench.call("approve", approval_id=question["id"]))["outcome"]
        assert outcome["state"] == "resumed"
        done = [await given.reached(served.workbench, one, "completed", "failed") for one in tasks]
    assert {(task["status"], task["retry_count"]) for task in done} == {("completed", 0)}
    assert await questions(served) == []


@pytest.mark.long
async def test_the_same_failure_three_times_opens_the_breaker_and_stopping_ends_the_agent(
    served: Served, program: Program
) -> None:
    settings = served.workbench.settings
    profile = {"summary": "A script.", "command": ["/bin/sh", "-c", "echo It broke at line $$. >&2; exit 3"]}
    (settings.home / "profiles").mkdir()
    (settings.home / "profiles" / "broken.yaml").write_text(json.dumps(profile), "utf-8")
    trust(settings.project, withheld(settings.project))
    tasks = [await given.task(served.workbench) for _ in range(FAILING)]
    agent = (await spawn(served, profile="broken"))["agent_id"]
    hold = await held(served)
    assert (hold["scope"], hold["failure"], hold["until"]) == ("profile:broken", "failed", None)
    [question] = await questions(served)
    assert len(question["payload"]["attempts"]) == len(await attempts_at(served, tasks)) == 3
    assert "It broke at line" in question["payload"]["message"]
    await served.workbench.call("reject", approval_id=question["id"])
    assert (await over(served, agent))["reason"] == "What it works with fails, and you stopped it."
    assert (await served.workbench.call("list_holds"))["holds"] == []
    assert len(await attempts_at(served, tasks)) == 3


async def test_a_held_agent_is_told_why_it_can_claim_nothing_until_a_person_ends_the_hold(
    served: Served, admit: Admit
) -> None:
    ada = await admit("ada")
    task_id = await given.task(served.workbench)
    scope = await served.workbench.store.write(lambda tx: f"agent:{require_agent(tx, 'ada')['id']}", actor="test")
    settings = served.workbench.settings

    def hold(tx: Any) -> int:
        return holds.hold(tx, settings, scope, FailureKind.OVERLOADED, "It is overloaded.")

    first = await served.workbench.store.write(hold, actor="test")
    assert await served.workbench.store.write(hold, actor="test") == first, "those under way tell the same"
    work = await served.workbench.dispatch(ada.caller, "heartbeat_and_get_tasks", {})
    assert work["available"] == []
    with pytest.raises(Conflict, match=r"you claim nothing until .*: It is overloaded") as refused:
        await served.workbench.dispatch(ada.caller, "claim_task", {"task_id": task_id})
    assert refused.value.details["reasons"] == ["hold"]
    await served.workbench.call("end_hold", scope=scope)
    work = await served.workbench.dispatch(ada.caller, "heartbeat_and_get_tasks", {})
    assert [one["id"] for one in work["available"]] == [task_id]


@pytest.mark.long
async def test_after_a_hold_whose_end_was_not_known_one_agent_tries_before_the_others(
    served: Served, program: Program, team: Any
) -> None:
    program.answers(failed("API Error: 529 overloaded"))
    tasks = [await given.task(served.workbench, max_retries=0) for _ in range(6)]
    async with team(3):
        hold = await held(served)
        assert (hold["scope"], hold["failure"]) == (ACCOUNT, "overloaded")
        while {task["status"] for task in (await served.workbench.call("list_tasks"))["tasks"]} != {"pending"}:
            await asyncio.sleep(0.02)
        asked = program.asked

        while (again := (await served.workbench.call("list_holds"))["holds"]) in ([], [hold]):
            await asyncio.sleep(0.02)
        assert (again[0]["since"] > hold["since"], program.asked) == (True, asked + 1), "the others have asked nothing"
        program.answers(RESULT)
        done = [await given.reached(served.workbench, one, "completed", "failed") for one in tasks]
    assert {(task["status"], task["retry_count"]) for task in done} == {("completed", 0)}


async def test_a_success_between_failures_keeps_the_breaker_closed(served: Served, program: Program, team: Any) -> None:
    async with team(1):
        for _ in range(2):
            program.answers(failed("Something else went wrong"))
            for _ in range(2):
                task_id = await given.task(served.workbench, max_retries=0)
                task = await given.reached(served.workbench, task_id, "completed", "failed")
                assert (task["status"], task["attempts"][0]["error_class"]) == ("failed", "failed")
            program.answers(RESULT)
            task_id = await given.task(served.workbench, max_retries=0)
            await given.reached(served.workbench, task_id, "completed")
    assert await questions(served) == []


@pytest.mark.long
async def test_an_agent_falls_back_to_the_next_profile_that_works_and_returns_once_its_own_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(ctx: Any, request: SpawnRequest, *more: Any) -> Any:
        if request.profile == "broken":
            raise OSError("the disk is out of order")
        return await check_profile(ctx, request, *more)

    monkeypatch.setattr(spawning, "check_profile", check)
    program = Program(settings.project)  # its box may read that
    resets = int(time.time()) + 3_600
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets}}
    program.answers(event, failed("You've hit your limit"))
    own = {"summary": "A script.", "command": program.command, "driver": "claude"}
    other = {"summary": "Another.", "command": ["echo", "By the other."], "answer": "output"}
    (settings.home / "profiles").mkdir(parents=True)
    for name, profile in {"own": own, "broken": other, "other": other}.items():
        (settings.home / "profiles" / f"{name}.yaml").write_text(json.dumps(profile), "utf-8")
    trust(settings.project, withheld(settings.project))
    async with serving(settings.model_copy(update={"agent_fallback": "own, broken, other"})) as served:
        first = await given.task(served.workbench, max_retries=0)
        await spawn(served, profile="own")
        done = await given.reached(served.workbench, first, "completed", "failed")
        assert done["result_data"] == {"answer": "By the other."}
        assert [one["profile"] for one in done["attempts"]] == ["own", "other"]
        program.answers(RESULT)
        await served.workbench.call("end_hold", scope="profile:own")
        while len((await served.workbench.call("list_events", kinds=["agent.fell_back"]))["events"]) < 2:
            await asyncio.sleep(0.1)
        second = await given.task(served.workbench, max_retries=0)
        done = await given.reached(served.workbench, second, "completed", "failed")
        assert [one["profile"] for one in done["attempts"]] == ["own"]


async def test_the_question_is_read_in_a_terminal_and_in_the_panel(served: Served, program: Program, team: Any) -> None:
    program.answers(failed("Invalid API key"))
    await given.task(served.workbench, max_retries=0)
    async with team(1):
        await held(served)
        [question] = await questions(served)
    [row] = waiting_table([question], "").rows
    assert "the account claude-1a2b3c4d fails (auth): Invalid API key; 1 agent may claim" in row[2]
    assert row[2] == failure_text(question["payload"])
    assert "the account claude-1a2b3c4d" in str(approval_page(question))
