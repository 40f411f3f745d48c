"""Imports of tasks: what has ended stays ended, and what is open waits for somebody to claim it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Admit, NewDatabase, admitted
from tests.given import claim, done_by, end, session, task
from tests.given import project as new_project
from workbench.app import Workbench
from workbench.errors import BadInput
from workbench.services.sharing import import_file
from workbench.services.sharing.import_file import TaskRow
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

PLAN = """plan: trees
tasks:
  - {name: plant, title: Plant, persona: implementer}
  - {name: water, title: Water, persona: implementer, after: [plant]}
"""
OF_A_PROCESS = {"status": "pending", "progress": 0, "assigned_agent_id": None, "started_at": None}
"""What a task has that nobody works on."""


@pytest.fixture
async def other(tmp_path: Path, new_database: NewDatabase) -> AsyncIterator[Workbench]:
    (tmp_path / "other").mkdir()
    async with Workbench.open(Settings(project=tmp_path / "other", port=0, **new_database())) as opened:
        yield opened


async def export_text(workbench: Workbench, format: str = "json", resource: str = "tasks") -> str:
    return str((await workbench.call("export", resource=resource, format=format))["content"])


async def rows(workbench: Workbench) -> list[dict[str, Any]]:
    return list(json.loads(await export_text(workbench)))


async def import_text(workbench: Workbench, content: str, resource: str = "tasks", **how: Any) -> dict[str, Any]:
    return await workbench.call("import_records", resource=resource, content=content, **{"dry_run": False, **how})


async def import_all_but_tasks(source: Workbench, target: Workbench) -> None:
    for resource in ("projects", "sessions", "teams", "agents"):
        await import_text(target, await export_text(source, resource=resource), resource)


@pytest.fixture
async def filled(workbench: Workbench, admit: Admit) -> Workbench:
    """A project with tasks in every state, and with everything that can be said of one."""
    await new_project(workbench)
    await session(workbench, "one")
    ada = await admit("ada", session_id="one")
    done = await task(workbench, "=done", run="123", metadata={"=a": [1]}, session_id="one")
    await claim(workbench, ada, done)
    await done_by(workbench, ada, "complete_task", done, result_data={"cells": [1.5, None]}, artifacts=["a.csv"])
    failed = await task(workbench, "failed", check=["pytest", "-q"], max_retries=0)
    await end(workbench, ada, failed, "failed")
    above = await task(workbench, "above", due="2031-01-02", needs={"gpu": 1}, no_retry=["ValueError"])
    await task(workbench, "below", parent_task_id=above, dependencies=[failed], assigned_agent_id="ada")
    await task(workbench, "after", dependencies=[done, above], on_failure="ignore", target_worktree="lab")
    cancelled = await task(workbench, "cancelled")
    await end(workbench, ada, cancelled, "cancelled")
    await workbench.call("create_plan", text=PLAN)
    held = await task(workbench, "held", lease_seconds=77.5, priority=9)
    await claim(workbench, ada, held)
    await done_by(workbench, ada, "start_task", held)
    await done_by(workbench, ada, "report_task_progress", held, percent_complete=40)
    return workbench


@pytest.mark.parametrize("format", ["csv", "json"])
async def test_an_import_of_tasks_restores_what_was_exported(filled: Workbench, other: Workbench, format: str) -> None:
    await import_all_but_tasks(filled, other)
    exported, before = await export_text(filled, format), await rows(filled)
    made = await import_text(other, exported, format=format)
    assert (len(made["added"]), made["present"]) == (len(before), 0)
    assert made["notes"] == ["Tasks that were being done, and are pending here: 1."]
    expected = [row | (OF_A_PROCESS if row["status"] in ("claimed", "in_progress") else {}) for row in before]
    assert await rows(other) == expected
    again = await import_text(other, exported, format=format)
    assert (again["added"], again["present"]) == ([], len(before))
    assert (await import_text(filled, exported, format=format))["added"] == []
    counts = [(await one.call("count_tasks"))["blocked"] for one in (filled, other)]
    assert counts[0] == counts[1] > 0


async def test_an_imported_task_is_held_by_nobody_and_is_done_by_an_agent_of_this_project(
    filled: Workbench, other: Workbench
) -> None:
    await import_all_but_tasks(filled, other)
    await import_text(other, await export_text(filled))
    bob = await admitted(other, "bob")
    task_of = {row["title"]: row["id"] for row in await rows(other)}
    assert (await claim(other, bob, task_of["held"]))["attempt"] == 1
    assert (await other.call("get_task", task_id=task_of["Water"]))["blocked_by"] == [task_of["Plant"]]
    assert [plan["plan"] for plan in (await other.call("list_plans"))["plans"]] == ["trees"]
    updated = await other.call("create_plan", text=PLAN, update=True)
    assert (updated["tasks"], updated["diff"]["added"]) == (
        {"plant": task_of["Plant"], "water": task_of["Water"]},
        [],
    )


async def test_tasks_that_no_person_has_approved_are_not_imported_with_what_needs_them(
    workbench: Workbench, other: Workbench, admit: Admit
) -> None:
    object.__setattr__(workbench.settings, "plan_needs_approval", "always")
    pam = await admit("pam", role="planner", access_level="session_level")
    proposed = await task(workbench, "proposed", by=pam)
    await task(workbench, "needs it", dependencies=[proposed])
    free = await task(workbench, "goes on", dependencies=[proposed], on_failure="ignore")
    made = await import_text(other, await export_text(workbench))
    assert made["added"] == ["goes on"]
    assert "Tasks that no person has approved, or that depend on such, and are left out: 2." in made["notes"]
    assert free != (await rows(other))[0]["id"]
    assert (await rows(other))[0]["dependencies"] == []


BASE = {"persona_id": "implementer", "title": "t"}
PROBLEMS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "a circle": (
        [{"id": 1, "dependencies": [2]}, {"id": 2, "dependencies": [1]}],
        ["1 dependencies the tasks would wait for each other: 1 → 2 → 1"],
    ),
    "a circle of parts": (
        [{"id": 1, "parent_task_id": 2}, {"id": 2, "parent_task_id": 1}],
        ["1 parent_task_id the tasks are parts of each other: 1 → 2 → 1"],
    ),
    "a part that its whole waits for, by another": (
        [{"id": 1, "dependencies": [3]}, {"id": 2, "parent_task_id": 1}, {"id": 3, "dependencies": [2]}],
        ["3 dependencies the tasks would wait for each other: 3 → 2 → 3"],
    ),
    "itself": ([{"id": 1, "dependencies": [1]}], ["1 dependencies the tasks would wait for each other: 1 → 1"]),
    "a depth without end": (
        [{"id": n, "parent_task_id": n - 1 or None} for n in range(1, 60)],
        ["51 parent_task_id it has more than 49 tasks above it"],
    ),
    "what is not in the file": (
        [{"id": 1, "parent_task_id": 8, "dependencies": [9]}],
        ["1 parent_task_id no row of the file has the id 8", "1 dependencies no row of the file has the id 9"],
    ),
    "the same twice": (
        [{"id": 1, "plan": "p", "name": "n"}, {"id": 1, "plan": "p", "name": "n"}],
        ["2 id row 1 has the same", "2 name row 1 has the same"],
    ),
    "a newer version": ([{"colour": "red"}], ["1 colour unknown name"]),
    "a foreign file": ([{"persona_id": "wizard"}], ["1 PERSONA_NOT_FOUND There is no persona 'wizard'. Available: "]),
    "a lease": ([{"lease_expires_at": "2031-01-01T00:00:00Z"}], ["1 lease_expires_at unknown name"]),
    "an approval": ([{"approval_id": 1}], ["1 approval_id unknown name"]),
    "another place": ([{"target_worktree": "../x"}], ["1 BAD_WORKTREE_NAME "]),
    "an agent that is not here": ([{"reserved_for": "ada"}], ["1 AGENT_NOT_FOUND "]),
    "a session that is not here": ([{"session": "one"}], ["1 SESSION_NOT_FOUND "]),
    "a state": ([{"status": "approved"}], ["1 status must be "]),
    "what has failed": (
        [{"id": 1, "status": "failed"}, {"id": 2, "on_failure": "cancel", "dependencies": [1]}],
        ["2 DEPENDENCY_DEAD "],
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
async def test_a_task_that_cannot_be_here_is_named_and_none_is_added(workbench: Workbench, case: str) -> None:
    stated, problems = PROBLEMS[case]
    content = json.dumps([BASE | row for row in stated])
    for dry_run in (True, False):
        with pytest.raises(BadInput, match="IMPORT_INVALID") as caught:
            await import_text(workbench, content, dry_run=dry_run)
        found = [f"{one['row']} {one['field']} {one['reason']}" for one in caught.value.details["problems"]]
        assert [text[: len(problem)] for text, problem in zip(found, problems, strict=True)] == problems
        assert await rows(workbench) == []


async def test_a_task_that_an_absent_agent_created_is_of_the_person(workbench: Workbench) -> None:
    made = await import_text(workbench, json.dumps([BASE | {"created_by": name} for name in ("system", "eve")]))
    assert made["notes"] == ["Tasks whose creator is not here, and are yours: 2."]
    assert [row["created_by"] for row in await rows(workbench)] == ["operator", "operator"]


async def test_of_equal_tasks_only_those_that_are_not_here_yet_are_added(workbench: Workbench) -> None:
    row = BASE | {"created_at": "2026-01-01T00:00:00.001Z"}
    await import_text(workbench, json.dumps([row, row, row | {"title": "u"}]))
    made = await import_text(workbench, json.dumps([row, row | {"title": "v"}, row, row]))
    assert (made["added"], made["present"]) == (["v", "t"], 2)


async def test_a_secret_in_a_task_is_masked_in_the_export(workbench: Workbench) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    await task(workbench, "t", description=f"key {secret}", run=f"curl -H 'Authorization: Bearer {secret}'")
    assert secret not in await export_text(workbench)


WHOLE = json.dumps([BASE | {"id": 1, "run": ["a", "é"], "metadata": {"a": [1]}}, BASE | {"id": 2, "dependencies": [1]}])


@given(st.integers(0, len(WHOLE) - 1), st.text(max_size=3))
def test_a_file_that_is_cut_off_is_refused_whole(end: int, more: str) -> None:
    try:
        found = import_file.rows(TaskRow, "json", WHOLE[:end] + more)
    except BadInput as error:
        assert error.code == "IMPORT_INVALID"
    else:
        assert len(found) <= 2
