"""The tasks in the panel: found, opened, steered, drawn as a graph; ten thousand of them too."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk_lab import OpenDesk, Project, expect_fitting, expect_readable, shot, type_letters, view
from tests.browser.scenes import admitted, busy, eventful, repository, worktree


def row(desk: Locator, title: str) -> Locator:
    return desk.get_by_role("row").filter(has_text=title)


@pytest.fixture
def desk(open_bare: OpenDesk) -> Locator:
    """The desk, with its tasks shown."""
    desk = open_bare()
    view(desk, "Tasks")
    return desk


def open_task(desk: Locator, title: str) -> Locator:
    row(desk, title).click()
    return desk.get_by_role("region", name=title)


def task_id_of(project: Project, name: str) -> int:
    """The id of a task of the plan."""
    (found,) = [task["id"] for task in project.operate("list_tasks")["tasks"] if task["name"] == name]
    return int(found)


def test_a_task_is_opened_with_everything_about_it_and_stays_live(desk: Locator, project: Project) -> None:
    made = eventful(project)
    task = open_task(desk, "Model body mass")
    expect(task).to_contain_text("In progress · held by ada · 20 %")
    expect(task).to_contain_text("Leave out rows without sex")
    expect(task).to_contain_text("Subtasks · 0 of 2 tasks completed")
    expect(task).to_contain_text("penguins.csv has no column sex")
    expect(task).to_contain_text("python model.py --robust")
    expect(task.get_by_text("Log · the last 100 lines")).to_be_visible()
    task.get_by_role("log").scroll_into_view_if_needed()
    expect(task.get_by_text("Fold 130 of 130")).to_be_in_viewport()
    expect(task.get_by_text("Reading 344 rows")).to_have_count(0)
    shot(desk, "task")
    task.get_by_role("button", name="Show earlier").click()
    expect(task.get_by_text("Reading 344 rows")).to_have_count(1)
    expect(task.get_by_text("Log · 131 lines")).to_be_visible()
    expect(task.get_by_role("button", name="Show earlier")).to_have_count(0)
    token = project.operate("issue_token", agent_id="ada")["token"]
    project.call(
        "report_task_progress", token, task_id=made["model"], progress_note="Done with it", percent_complete=20
    )
    expect(task.get_by_text("Done with it")).to_have_count(1)
    result = {"r2": 0.87, "left_out": 11}
    (project.path / "r2.csv").write_text("fold,r2\n1,0.87\n")
    artifacts = ["r2.csv", "https://example.org/model"]
    project.call("complete_task", token, task_id=made["model"], result_data=json.dumps(result), artifacts=artifacts)
    expect(task).to_contain_text("Completed · by ada")
    expect(task).to_contain_text('"left_out": 11')
    expect(task.get_by_role("button", name="Copy https://example.org/model")).to_be_visible()
    task.get_by_role("button", name="Open r2.csv").click()
    expect(task.get_by_role("group", name="r2.csv").get_by_role("cell", name="0.87")).to_be_visible()
    shot(desk, "task-artifact")
    expect(task.get_by_role("spinbutton")).to_have_count(0)
    task.get_by_role("button", name="Write the report").click()
    after = desk.get_by_role("region", name="Write the report")
    expect(after).to_contain_text("Pending")
    expect(row(desk, "Write the report")).to_have_attribute("aria-selected", "true")


def test_a_task_is_created_by_hand_and_opened(desk: Locator, project: Project) -> None:
    expect(desk.get_by_text("let a planner agent create tasks, or create one yourself.")).to_be_visible()
    repository(project.path)
    worktree(project, "lab")
    desk.get_by_role("button", name="New task…").click()
    form = desk.get_by_role("form", name="New task")
    expect(form.get_by_label("Title")).to_be_focused()
    form.get_by_label("Title").fill("Weigh them")
    form.get_by_label("Persona").select_option("tester")
    form.get_by_label("Description").fill("All of them.")
    form.get_by_label("Command").fill("python weigh.py")
    expect_fitting(desk)
    expect_readable(desk)
    shot(desk, "task-new")
    form.get_by_label("Worktree").select_option("lab")
    form.get_by_role("button", name="Create").click()
    task = desk.get_by_role("region", name="Weigh them")
    expect(task).to_contain_text("python weigh.py")
    expect(task).to_contain_text("All of them.")
    expect(form).to_have_count(0)
    [made] = project.operate("list_tasks")["tasks"]
    assert (made["title"], made["persona_id"], made["worktree"]) == ("Weigh them", "tester", "lab")
    desk.get_by_role("button", name="New task…").press("Enter")
    form.get_by_label("Title").press("Escape")
    expect(form).to_have_count(0)
    expect(desk.get_by_role("button", name="New task…")).to_be_focused()


def test_a_task_is_reprioritised_after_a_refusal_reassigned_cancelled_and_retried(
    desk: Locator, project: Project
) -> None:
    project.operate("create_task", title="Count them", persona_id="tester")
    admitted(project, "tess", "tester")
    task = open_task(desk, "Count them")
    task.get_by_role("spinbutton").fill("99999999")
    task.get_by_role("spinbutton").press("Enter")
    expect(task).to_contain_text("INVALID_ARGUMENTS")
    shot(desk, "task-error")
    task.get_by_role("spinbutton").press("Escape")
    expect(task.get_by_role("spinbutton")).to_have_value("500")
    task.get_by_role("spinbutton").fill("900")
    task.get_by_role("spinbutton").press("Enter")
    expect(desk.get_by_role("status")).to_have_text("Task 1: priority 900. You can undo it for ten seconds.")
    expect(task.get_by_role("spinbutton")).to_have_value("900")
    task.get_by_role("button", name="Reassign…").click()
    task.get_by_label("Agent").select_option("tess")
    task.get_by_role("button", name="Reassign", exact=True).click()
    expect(desk.get_by_role("status")).to_have_text("Task 1: reserved for tess. You can undo it for ten seconds.")
    task.get_by_role("button", name="Cancel…").click()
    expect(task.get_by_label("Reason")).to_be_focused()
    task.get_by_label("Reason").fill("Not needed")
    shot(desk, "task-cancel")
    task.get_by_role("button", name="Cancel task 1", exact=True).click()
    expect(task).to_contain_text("Cancelled")
    task.get_by_role("button", name="Retry task 1").click()
    expect(task).to_contain_text("Pending")
    kinds = [event["kind"] for event in project.operate("list_events", subject="task:1")["events"]]
    assert kinds[1:] == ["task.prioritised", "task.reassigned", "task.cancelled", "task.revived"]


def test_tasks_are_filtered_by_persona_worktree_and_agent(desk: Locator, project: Project) -> None:
    busy(project)
    desk.get_by_label("All personas", exact=True).select_option("tester")
    expect(row(desk, "Fetch weather data")).to_be_visible()
    expect(row(desk, "Write the report")).to_be_hidden()
    desk.get_by_label("All personas", exact=True).select_option("All personas")
    desk.get_by_label("All worktrees", exact=True).select_option("mass")
    expect(row(desk, "Model body mass")).to_be_visible()
    expect(desk.get_by_role("treegrid").locator(".wb-row:visible")).to_have_count(1)
    desk.get_by_label("All agents", exact=True).select_option("grace")
    expect(desk.get_by_text("No task matches the filters.")).to_be_visible()
    desk.get_by_role("button", name="Show all").click()
    expect(row(desk, "Write the report")).to_be_visible()
    project.operate("set_priority", task_id=task_id_of(project, "report"), priority=900)
    desk.get_by_role("button", name="By priority").click()
    expect(desk.get_by_role("row").nth(1)).to_contain_text("Write the report")
    shot(desk, "tasks-list")


def test_the_graph_shows_what_waits_for_what_and_follows_it(desk: Locator, project: Project, page: Page) -> None:
    busy(project)
    desk.get_by_role("button", name="Graph").click()
    graph = desk.get_by_role("listbox", name=re.compile("^Dependency graph"))
    review = graph.get_by_role("option").filter(has_text="Review the models")
    expect(review).to_contain_text("Blocked")
    expect(desk.get_by_text("without dependencies are not drawn")).to_be_visible()
    shot(desk, "graph")
    token = project.operate("issue_token", agent_id="ada")["token"]
    project.call("complete_task", token, task_id=task_id_of(project, "bills"))
    bills = graph.get_by_role("option").filter(has_text="Compare bill shapes")
    expect(bills).to_contain_text("Completed")
    review.click()
    expect(desk.get_by_role("region", name="Review the models")).to_contain_text(
        f"waits for #{task_id_of(project, 'mass')}"
    )
    expect(review).to_have_attribute("aria-selected", "true")
    graph.focus()
    page.keyboard.press("ArrowRight")
    expect(desk.get_by_role("region", name="Write the report")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("-")
    page.keyboard.press("0")
    expect(review).to_have_attribute("aria-selected", "true")
    shot(desk, "graph-task")
    desk.get_by_label("Only around the selected task").check()
    project.operate("add_dependency", task_id=task_id_of(project, "islands"), depends_on=task_id_of(project, "clean"))
    expect(graph.get_by_role("option").filter(has_text="Map the islands")).to_be_visible()
    page.keyboard.press("Escape")
    expect(desk.get_by_role("region", name="Review the models")).to_be_hidden()


def test_the_graph_shows_the_300_tasks_around_one_of_too_many(desk: Locator, project: Project, page: Page) -> None:
    lines = [
        f"- {{name: t{n}, title: Task {n}, persona: tester, after: [t{n // 3}, t{n // 2}]}}" for n in range(1, 600)
    ]
    text = "\n".join(["plan: many", "tasks:", "- {name: t0, title: Task 0, persona: tester}", *lines])
    project.operate("create_plan", text=text.replace("[t0, t0]", "[t0]"))
    expect(desk.get_by_text("0 of 600 completed").last).to_be_visible()
    desk.get_by_role("button", name="Graph").click()
    expect(desk.get_by_text("600 tasks are too many to draw; these are the 300 around #1.")).to_be_visible()
    expect(desk.locator(".wb-node")).to_have_count(300)
    desk.get_by_role("button", name="Fit").click()
    shot(desk, "graph-many")
    desk.get_by_role("listbox", name=re.compile("^Dependency graph")).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(desk.locator(".wb-pane:visible")).to_contain_text("Waits for")


def test_everything_about_tasks_can_be_done_with_the_keyboard(desk: Locator, project: Project, page: Page) -> None:
    for title in ("First", "Second"):
        project.operate("create_task", title=title, persona_id="tester")
    expect(row(desk, "Second")).to_be_visible()
    desk.get_by_role("treegrid").focus()
    page.keyboard.press("Enter")
    expect(desk.get_by_role("region", name="First")).to_be_visible()
    page.keyboard.press("ArrowDown")
    task = desk.get_by_role("region", name="Second")
    expect(task).to_be_visible()
    expect(desk.get_by_role("treegrid")).to_be_focused()
    for control in ("Close the task", "Reassign… task 2", "Cancel… task 2"):
        task.get_by_role("button", name=control).focus()
        type_letters(page)
    task.get_by_role("button", name="Cancel… task 2").press("Enter")
    page.keyboard.press("Escape")
    expect(task.get_by_label("Reason")).to_be_hidden()
    expect(task.get_by_role("button", name="Cancel… task 2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(task).to_be_hidden()
    expect(desk.get_by_role("treegrid")).to_be_focused()
    type_letters(page)
    expect(row(desk, "Second")).to_contain_text("Pending")


def test_kept_work_of_an_attempt_is_shown_in_its_task(desk: Locator, project: Project) -> None:
    repository(project.path)
    worktree(project, "lab")
    run = "printf 'import pandas\\n' > model.py; git add .; git commit -qm Model; echo half > notes.txt; exit 1"
    new = {"title": "Fit the model", "persona_id": "implementer", "run": run, "target_worktree": "lab"}
    task_id = project.operate("create_task", **new, max_retries=0)["id"]
    project.operate("spawn_agent", persona_id="implementer", assigned_worktree="lab", task_id=task_id)
    task = open_task(desk, "Fit the model")
    expect(task).to_contain_text("Kept: 2 commits, 2 files.", timeout=20_000)
    task.get_by_role("button", name="Show the changes of attempt 1").click()
    expect(task.get_by_role("table", name="Changes in model.py")).to_contain_text("import pandas")
    expect(task.get_by_role("table", name="Changes in notes.txt")).to_contain_text("half")
    expect(task).to_contain_text(f"workbench adopt {task_id} 1")
    task.get_by_text("Kept: 2 commits").scroll_into_view_if_needed()
    shot(desk, "kept_work")
    task.get_by_role("button", name="Show the changes of attempt 1").click()
    expect(task.get_by_role("table", name="Changes in model.py")).to_be_hidden()
