"""From the registration to the merge, by a planner that has nothing but its list of tools, and a person who decides."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Served, followed, git
from tests.story.planner import Own, Planner, planner

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

Answer = dict[str, Any]


class Person:
    """Decides as a person does: while the planner waits."""

    def __init__(self, served: Served) -> None:
        self._workbench = served.workbench

    async def decides(
        self, operation: str, approval_id: int, waiting: Coroutine[Any, Any, Answer], **how: str
    ) -> Answer:
        """Approve or reject a request; what the planner that waits for the decision gets."""
        answer = asyncio.create_task(waiting)
        await followed(self._workbench)
        await self._workbench.call(operation, approval_id=approval_id, **how)
        return await answer


async def registered(person: Person, stranger: Planner) -> str:
    """The token of a planner that is rejected once, then admitted."""
    made = await stranger.use("register", name=Own("somebody"), persona_id="planner")
    waiting = stranger.use("registration_status", token=made["token"], wait_seconds=30)
    refused = await person.decides("reject", made["approval_id"], waiting, reason="Say whose planner you are.")
    assert (refused["status"], refused["reason"]) == ("rejected", "Say whose planner you are.")
    made = await stranger.use("register", name=Own("Ruth's planner"), persona_id="planner")
    waiting = stranger.use("registration_status", token=made["token"], wait_seconds=30)
    admitted = await person.decides("approve", made["approval_id"], waiting)
    assert (admitted["status"], admitted["role"]) == ("assigned", "planner")
    return str(made["token"])


PLAN = """
plan: welcome
tasks:
  - name: greet
    title: Greet
    persona: {persona}
    worktree: {worktree}
    run: echo Hello > greeting.txt
"""
"""As the description of `create_plan` has it."""


async def completed(pam: Planner, task_id: int) -> None:
    """Return once a worker has completed a task."""
    while (status := await pam.use("wait_for_task", task_id=task_id, wait_seconds=30))["status"] != "completed":
        assert status["status"] in ("pending", "claimed", "in_progress"), status


async def test_a_planner_with_its_list_of_tools_gets_from_the_registration_to_the_merge(
    served: Served, repository: Path
) -> None:
    person = Person(served)
    async with planner(served) as stranger:
        token = await registered(person, stranger)
    async with planner(served, token) as pam:
        assert (await pam.use("whoami"))["level"] == "planner"
        personas = (await pam.use("get_personas"))["personas"]
        persona = next(found["id"] for found in personas if found["role"] == "worker")
        lab = (await pam.use("create_worktree", name=Own("greeting")))["name"]
        spawned = await pam.use("spawn_agent", persona_id=persona, assigned_worktree=lab)
        waiting = pam.use("get_approval", approval_id=spawned["approval_id"], wait_seconds=30)
        assert (await person.decides("approve", spawned["approval_id"], waiting))["status"] == "approved"

        plan = await pam.use("create_plan", text=Own(PLAN.format(persona=persona, worktree=lab)))
        await completed(pam, plan["tasks"]["greet"])
        [changed] = (await pam.use("get_worktree_diff", worktree_name=lab))["files"]
        assert changed["path"] == "greeting.txt"

        asked = await pam.use("integrate_worktree", worktree_name=lab)
        waiting = pam.use("get_approval", approval_id=asked["approval_id"], wait_seconds=30)
        refused = await person.decides("reject", asked["approval_id"], waiting, reason="Greet the penguins.")
        assert (refused["status"], refused["reason"]) == ("rejected", "Greet the penguins.")
        assert git("ls-tree", "--name-only", "main", cwd=repository) == "README.md"

        better = {"title": Own("Greet better"), "run": Own("echo Hello penguins > greeting.txt")}
        where = {"persona_id": persona, "target_worktree": lab}
        task = await pam.use("create_task", **better, **where, description=refused["reason"])
        await completed(pam, task["id"])
        asked = await pam.use("integrate_worktree", worktree_name=lab)
        waiting = pam.use("get_approval", approval_id=asked["approval_id"], wait_seconds=30)
        decided = await person.decides("approve", asked["approval_id"], waiting)
        while not decided["settled"]:
            decided = await pam.use("get_approval", approval_id=asked["approval_id"], wait_seconds=30)
        assert decided["outcome"]["state"] == "integrated"
    assert git("show", "main:greeting.txt", cwd=repository) == "Hello penguins"
