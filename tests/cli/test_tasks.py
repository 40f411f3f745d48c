"""The commands about tasks and plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.cli.conftest import PLAN, Type, cut_data, data
from tests.conftest import Command, Served, admitted
from workbench.cli.tasks import NEAR
from workbench.present.graph import LIMIT


def test_plan_says_what_was_created_or_would_be(run: Type, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)

    def said(*options: str) -> list[str]:
        return run("plan", str(file), *options).out.splitlines()

    new = ["+ count: Count them", "+ judge: Judge the count"]
    table = ["task  name in the plan", "1     count", "2     judge"]
    assert said("--dry-run") == ["Plan penguins: would be created; nothing was changed.", *new]
    note = "Tasks 1, 2 have no command (run): only an LLM agent or a person can do them."
    assert said() == ["Plan penguins: created, 2 tasks.", *table, note]
    assert said() == said("--dry-run") == said("--update") == ["Plan penguins: unchanged.", *table]
    file.write_text(PLAN.replace("Count them", "Count all"))
    change = "~ count: title Count them → Count all"
    assert said("--update", "--dry-run") == [
        "Plan penguins: would be changed; nothing was changed.",
        change,
        *table[:2],
    ]
    assert said("--update") == ["Plan penguins: changed.", change, *table[:2]]
    file.write_text("plan: one\ntasks:\n  - {name: a, title: A, persona: tester}\n")
    assert said()[0] == "Plan one: created, 1 task."
    assert data(run("--json", "plan", str(file), "--dry-run"))["changed"] is False


@pytest.mark.usefixtures("penguins")
def test_a_task_is_shown_steered_and_made_to_wait(run: Type) -> None:
    run("call", "register", "name=Ada", "persona_id=implementer")
    run("approve", "1")
    assert run("priority", "1", "-5").out == "Task 1 has priority -5.\n"
    assert run("assign", "1", "Ada").out == "Task 1 is reserved for Ada.\n"
    assert run("assign", "1", "none").out == "Any agent may claim task 1.\n"
    assert run("depend", "2", "1", "--remove").out == "Task 2 depends on no task.\n"
    assert run("depend", "1", "2").out == "Task 1 depends on 2.\n"
    assert run("depend", "2", "1").err.startswith("DEPENDENCY_CYCLE: ")
    assert run("cancel", "2", "--reason", "Not needed").out == "Cancelled task 2.\n"
    shown = run("task", "1").out
    assert shown.startswith("1 Count them\n")
    assert "blocked" in shown
    assert "It has not been claimed yet." in shown
    assert run("retry", "2", "--max-retries", "5").out == "Task 2 is retried.\n"
    told = data(run("--json", "task", "2"))
    assert (told["task"]["max_retries"], told["task"]["status"], told["log"]) == (5, "pending", [])


def create(run: Type, *tasks: dict[str, Any]) -> None:
    """Create tasks at once."""
    new = [{"title": "Part", "persona_id": "tester", **task} for task in tasks]
    assert run("call", "create_tasks", f"tasks={json.dumps(new)}").status == 0


@pytest.mark.long
def test_task_shows_the_status_of_its_dependencies_and_subtasks(run: Type) -> None:
    create(run, {})
    create(run, *[{"parent_task_id": 1}] * 2)
    run("depend", "1", "2", "3")
    run("cancel", "2")
    facts = {" ".join(line.split()) for line in run("task", "1").out.splitlines()}
    assert {"blocked by 2 (cancelled; retry it), 3 (pending)", "subtasks 2 (cancelled), 3 (pending)"} <= facts
    assert "subtasks" not in run("task", "2").out
    assert "blocked by" not in run("task", "2").out
    assert data(run("--json", "task", "1"))["task"]["blocked_by"] == [2, 3]
    create(run, *[{"parent_task_id": 3}] * (NEAR + 1))
    run("depend", "3", *map(str, range(4, NEAR + 5)))
    facts = {" ".join(line.split()) for line in run("task", "3").out.splitlines()}
    told = ", ".join(f"{number} (pending)" for number in range(4, NEAR + 4))
    assert {f"blocked by {told}, …", f"subtasks {told}, …"} <= facts


def test_cancelling_a_task_names_the_tasks_cancelled_with_it(run: Type) -> None:
    create(run, {}, {})
    create(run, {"parent_task_id": 2})
    create(run, {"dependencies": [3], "on_failure": "cancel"})
    assert run("cancel", "1").out == "Cancelled task 1.\n"
    assert run("cancel", "2").out == "Cancelled task 2, and with it 3, 4.\n"
    create(run, *[{"parent_task_id": 2}] * (NEAR + 1))
    assert run("retry", "2").out == (
        "Task 2 is retried. Tasks 3, 4, cancelled with it, stay cancelled. `workbench retry 3 4` retries them.\n"
    )
    told = ", ".join(map(str, range(5, NEAR + 5)))
    assert run("cancel", "2").out == f"Cancelled task 2, and with it {told} and 1 more.\n"


def test_what_was_cancelled_with_a_task_is_retried_with_it_or_by_name(run: Type) -> None:
    create(run, {}, {"parent_task_id": 1}, {"parent_task_id": 1})
    run("cancel", "1")
    assert run("retry", "1", "--also-cancelled").out == "Task 1 is retried, and with it 2, 3.\n"
    run("cancel", "1")
    assert run("retry", "2", "3").out == (
        "Task 2 is retried. Its parent, task 1, is cancelled.\nTask 3 is retried. Its parent, task 1, is cancelled.\n"
    )
    assert run("cancel", "1").out == "Cancelled task 1, and with it 2, 3.\n"
    assert run("retry", "1", "2").status == 0
    partial = run("retry", "3", "99", "2")
    assert partial.status == 1
    assert "Task 3 is retried." in partial.out
    assert "TASK_NOT_FOUND" in partial.out
    assert "2     It was not tried." in partial.out
    assert run("edit", "1", "--title", "Other").out == "Changed task 1: title.\n"
    assert run("reopen", "1").status == 1
    assert "tasks blocked" not in run("status").out


@pytest.mark.usefixtures("penguins")
def test_graph_shows_dependencies_up_to_a_number_of_tasks(run: Type) -> None:
    assert run("graph", "--plan", "penguins").out.splitlines() == [
        "id  title            status   after",
        "1   Count them       pending",
        "2   Judge the count  blocked  1",
    ]
    assert data(run("--json", "graph"))["dependencies"] == [[2, 1]]
    create(run, *[{}] * LIMIT)
    assert run("graph").out.startswith(f"There are more than {LIMIT} tasks")
    assert len(run("graph", "--plan", "penguins").out.splitlines()) == 3


@pytest.mark.usefixtures("penguins")
def test_tasks_are_listed_by_what_they_belong_to_and_in_any_order(run: Type) -> None:
    run("priority", "2", "900")

    def listed(*options: str) -> list[int]:
        return [task["id"] for task in data(run("--json", "tasks", *options))]

    assert listed("--sort", "priority") == listed("--sort", "newest") == [2, 1]
    assert listed("--persona", "reviewer") == [2]
    assert listed("--worktree", "island") == [1]
    assert listed("--search", "judge") == [2]
    assert listed("--parent", "1") == []
    for ghost in (("--agent", "ada"), ("--session", "none"), ("--plan", "ghost")):
        assert "_NOT_FOUND" in run("tasks", *ghost).err
    assert run("tasks").out.splitlines()[2].split()[:5] == ["2", "Judge", "the", "count", "blocked"]
    for order, ids in (("id", [1, 2]), ("priority", [2, 1])):
        more = run("tasks", "--sort", order, "--limit", "1").out.splitlines()[-1]
        assert more.startswith("… more: --cursor ")
        cut = run("--json", "tasks", "--sort", order, "--limit", "1")
        assert ([task["id"] for task in cut_data(cut)], cut.err) == (ids[:1], f"{more}\n")
        assert listed("--sort", order, "--limit", "1", "--cursor", more.split()[-1]) == ids[1:]


def test_no_tasks_and_no_matching_tasks_are_worded_differently(run: Type) -> None:
    for command in ("tasks", "graph"):
        assert run(command).out == "There are no tasks. Create some with a plan.\n"
        assert "There is no plan 'penguins'." in run(command, "--plan", "penguins").err
    assert run("tasks", "--sort", "newest", "--limit", "5").out == run("tasks").out
    assert run("tasks", "--status", "failed").out == "No task matches.\n"


def test_the_help_and_the_error_of_a_wrong_state_list_the_states(run: Type) -> None:
    for told in (run("tasks", "--help").out, run("tasks", "--status", "lost").err):
        assert "in_progress" in told
        assert "cancelled" in told


@pytest.mark.long
@pytest.mark.anyio
async def test_task_shows_the_end_of_a_long_log_or_as_many_lines_as_asked(served: Served, command: Command) -> None:
    ada, task_id = await admitted(served.workbench, "ada"), await given.task(served.workbench)
    await given.done_by(served.workbench, ada, "claim_task", task_id)
    for number in range(1, 31):
        await given.done_by(served.workbench, ada, "report_task_progress", task_id, progress_note=f"note-{number}")
    for options, first in (((), 11), (("--log", "3"), 28), (("--log", "30"), 1), (("--log", "500"), 1)):
        out = (await command("task", "1", *options)).out
        assert [word for word in out.split() if word.startswith("note-")] == [f"note-{n}" for n in range(first, 31)]
        assert ("lines; --log shows more" in out) == (first > 1)
    assert len(data(await command("--json", "task", "1", "--log", "3"))["log"]) == 3
    assert "note-" not in (await command("task", "1", "--log", "0")).out


@pytest.mark.anyio
async def test_an_error_is_shown_once_with_its_lines_and_a_task_that_failed_has_ended(
    served: Served, command: Command
) -> None:
    workbench, output = served.workbench, [f"  at step {number}" for number in range(7)]
    ada = await admitted(workbench, "ada")
    task = await given.task(workbench, max_retries=1)
    for _ in range(2):
        await given.until(lambda: given.claim(workbench, ada))
        error = "\n".join(["It ended with 1: KeyError: 'mass'", *output])
        await given.done_by(workbench, ada, "fail_task", task, error_message=error)
    shown = (await command("task", str(task))).out
    rows = [line.strip() for line in shown.splitlines()]
    assert [row.count("KeyError") for row in rows if "KeyError" in row] == [1]
    assert [row for row in rows if row.startswith("at step")] == [line.strip() for line in output[:5]]
    assert "… 2 more lines: --json" in rows
    assert any(row.endswith("the same as that of attempt 2") for row in rows)
    assert [row.split()[0] for row in rows if "ended at" in row or "completed at" in row] == ["ended"]
    cancelled = await given.task(workbench)
    await workbench.call("cancel_task", task_id=cancelled, reason="a mistake")
    facts = (await command("task", str(cancelled))).out
    assert any(line.split() == ["reason", "a", "mistake"] for line in facts.splitlines())
    assert "error message" not in facts


def test_lists_and_details_show_the_day_a_task_is_due_and_that_it_is_overdue(run: Type) -> None:
    create(run, {"title": "Late", "due": "2020-02-29"}, {"title": "Soon", "due": "9999-12-31"}, {"title": "Any time"})
    overdue = run("tasks", "--due", "overdue").out.splitlines()
    assert "due" in overdue[0].split()
    assert "2020-02-29, overdue" in overdue[1]
    assert len(overdue) == 2
    first = [line.split()[0] for line in run("tasks", "--sort", "due").out.splitlines()[1:]]
    assert first == ["1", "2", "3"]
    assert "due" not in run("tasks", "--search", "Any").out.split()
    assert run("edit", "1", "--due", "9999-12-30").out == "Changed task 1: due.\n"
    assert "9999-12-30\n" in run("task", "1").out
    assert run("tasks", "--due", "soon").err.startswith("INVALID_ARGUMENTS: ")
