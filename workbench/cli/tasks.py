"""Tasks and plans: `tasks`, `task`, `graph`, `plan`, `export-plan`, `cancel`, `retry`, `priority`, `assign`, …"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import (
    Note,
    PartialFailure,
    Shown,
    Text,
    counted,
    drop_none,
    pass_client,
    raw_option,
    size,
    without_empty,
)
from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.model import ShownState
from workbench.present.graph import LIMIT, NO_TASKS, Graph
from workbench.present.tables import CellOutput, StateCell, Table, TablePage, plain
from workbench.rules.tasks import lifecycle
from workbench.rules.wire.patch import patch_text

COLUMNS = {
    "id": "id",
    "title": "title",
    "status": "status",
    "persona_id": "persona",
    "priority": "priority",
    "due": "due",
    "worktree": "worktree",
    "assigned_agent_id": "agent",
    "attempt": "attempt",
    "progress": "%",
}
ATTEMPTS = {
    "attempt": "attempt",
    "agent_id": "agent",
    "definition_hash": "definition",
    "claimed_at": "claimed",
    "ended_at": "ended",
    "outcome": "outcome",
    "error_class": "class",
    "work": "work",
    "error_message": "error",
}
LOG = {"logged_at": "at", "level": "level", "agent_id": "agent", "message": "message"}
LOG_LINES = 20
LOG_PAGE = 500
NEAR = 20
"""The most other tasks on one line."""
NO_MATCH = "No task matches."
FACTS = {
    ("failed", "completed_at"): "ended_at",
    ("cancelled", "completed_at"): "ended_at",
    ("cancelled", "error_message"): "reason",
    ("pending", "approval_id"): "waits_for_your_approval",
}
"""What a field of a task means when the task is not completed."""
CHECKS = {
    "attempt": "attempt",
    "state": "state",
    "commit": "commit",
    "tries": "tries",
    "exit_code": "status",
    "metrics": "metrics",
    "output": "output",
}
_SHOWN_ELSEWHERE = {"id", "title", "attempts", "blocked", "overdue"}


@root.command()
@click.option(
    "--status",
    type=click.Choice(get_args(ShownState)),
    default=None,
    help="Only tasks in this state; blocked: pending ones that wait for others.",
)
@click.option(
    "--persona", "persona_id", default=None, help="Only tasks of this persona.", shell_complete=offers.personas
)
@click.option(
    "--agent",
    "assigned_agent_id",
    default=None,
    help="Only tasks that this agent holds or held last.",
    shell_complete=offers.agents,
)
@click.option(
    "--session", "session_id", default=None, help="Only tasks of this session.", shell_complete=offers.sessions
)
@click.option("--worktree", default=None, help="Only tasks of this worktree.", shell_complete=offers.worktrees)
@click.option(
    "--parent", "parent_task_id", type=int, default=None, help="Only subtasks of this one.", shell_complete=offers.tasks
)
@click.option("--plan", default=None, help="Only tasks of this plan.", shell_complete=offers.plans)
@click.option("--search", default=None, help="Only tasks whose title, description or name contains this.")
@click.option(
    "--due", metavar="DAY|overdue", default=None, help="Only open tasks due on this day or before; or overdue."
)
@click.option(
    "--sort", type=click.Choice(["id", "newest", "priority", "due"]), default="id", show_default=True, help="Order."
)
@click.option("--limit", default=100, show_default=True, help="At most this many.")
@click.option("--cursor", default=None, help="The next page, from the note below a list.")
@pass_client
def tasks(client: OperatorClient, sort: str, limit: int, **filters: Any) -> Shown:
    """List the tasks."""
    filters = drop_none(**filters)
    page = client.call("list_tasks", sort=sort, limit=limit, **filters)
    note = f"… more: --cursor {page['next_cursor']}" if page["next_cursor"] else ""
    return task_table(page["tasks"], NO_MATCH if filters else NO_TASKS, note)


def task_table(tasks: Sequence[Mapping[str, Any]], empty: str, note: str = "") -> Table:
    """A table of tasks with their states."""
    rows = [
        {**task, "status": StateCell.of(task["status"], task["blocked"], task["evidence"]), "due": _due(task)}
        for task in tasks
    ]
    return Table.of(rows, without_empty(COLUMNS, "due", rows), empty, tasks, note)


def _due(task: Mapping[str, Any]) -> str | None:
    """The day by which a task is due, and whether that is over."""
    return f"{task['due']}, overdue" if task["overdue"] else task["due"]


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.option(
    "--log", "lines", type=click.IntRange(0), default=LOG_LINES, show_default=True, help="How many log lines."
)
@click.option("--diff", "attempt", type=int, default=None, help="Print what this attempt made, if it is kept.")
@click.option("--artifact", metavar="NAME", default=None, help="Print what this file among its artifacts contains.")
@raw_option
@pass_client
def task(
    client: OperatorClient, task_id: int, lines: int, attempt: int | None, artifact: str | None, raw: bool
) -> Shown:
    """Show one task. Its state and why, its attempts and what is kept of them, log, result and artifacts."""
    if artifact is not None:
        return _show_artifact(client.call("get_task_artifact", task_id=task_id, name=artifact), raw)
    if attempt is not None:
        diff = client.call("get_attempt_diff", task_id=task_id, attempt=attempt)
        return Text(patch_text(diff["files"]), diff, raw, is_diff=True)
    info = client.call("get_task", task_id=task_id)
    return _task_page(info, _related(client, info), _end_of_log(client, task_id, lines + 1) if lines else [], lines)


def _show_artifact(content: Mapping[str, Any], raw: bool) -> Shown:
    """The rows or the text of a file; of other files, where they are."""
    where = f"{content['path']} at {content['commit'][:12]}" if content["commit"] else content["path"]
    if content["form"] == "table":
        note = f"{where}: this is its beginning." if content["cut"] else where
        return Table(content["columns"], content["rows"], "It has no rows.", data=dict(content), note=note)
    if content["text"] is not None:
        return Text(content["text"], dict(content), raw)
    about = f"{where}, {content['bytes']:,} bytes, {content['media_type']}"
    return Note(f"{about}: it cannot be shown here.", dict(content))


def _task_page(
    task: Mapping[str, Any], near: Mapping[str, str], log: Sequence[Mapping[str, Any]], lines: int
) -> TablePage:
    """The details of a task, with the states of related tasks and the last lines of its log."""
    facts = Table(["", ""], [[name.replace("_", " "), value] for name, value in _facts({**task, **near})])
    sections = [(f"{task['id']} {task['title']}", facts)]
    sections.append(("Attempts", _attempts_table(task["attempts"])))
    if checks := [_check_row(attempt) for attempt in task["attempts"] if attempt["check"]]:
        sections.append(("Checks", Table.of(checks, CHECKS, "None was run.")))
    if lines:
        note = f"the last {lines:,} lines; --log shows more" if len(log) > lines else ""
        sections.append(("Log", Table.of(log[-lines:], LOG, "The log is empty.", note=note)))
    return TablePage(sections, {"task": task, "log": log[-lines:] if lines else []})


def _attempts_table(attempts: Sequence[Mapping[str, Any]]) -> Table:
    columns = without_empty(ATTEMPTS, "definition_hash", attempts)
    last = {attempt["error_message"]: attempt["attempt"] for attempt in attempts}
    rows = [_attempt_row(attempt, last[attempt["error_message"]]) for attempt in attempts]
    return Table.of(rows, columns, "It has not been claimed yet.")


def _attempt_row(attempt: Mapping[str, Any], last: int) -> dict[str, Any]:
    """An attempt, with what it waits for, how its command has ended it, or what is kept of it.

    Args:
        last: the last attempt with its error, which is shown once.
    """
    if kept := attempt["kept"]:
        work = f"kept: {counted(kept['commits'], 'commit')}, {counted(kept['files'], 'file')}, {size(kept['bytes'])}"
    else:
        finishing = attempt["finishing"] and f"{attempt['finishing']}; its command still runs"
        work = attempt["problem"] or attempt["waits_for"] or finishing
    error = attempt["error_message"] or ""
    message = CellOutput(error) if attempt["attempt"] == last else f"the same as that of attempt {last}"
    return {**attempt, "work": work, "error_message": message if error else None}


def _check_row(attempt: Mapping[str, Any]) -> dict[str, Any]:
    check = attempt["check"]
    metrics = ", ".join(f"{name} {value:g}" for name, value in (check["metrics"] or {}).items())
    commit, output = (check["commit"] or "")[:10], CellOutput(check["output"]) if check["output"] else None
    return {**check, "attempt": attempt["attempt"], "commit": commit, "metrics": metrics, "output": output}


def _related(client: OperatorClient, task: Mapping[str, Any]) -> dict[str, str]:
    """The dependencies that block a task and its subtasks, with their states."""
    blockers = [_state_of(client, blocker) for blocker in task["blocked_by"][:NEAR]]
    page = client.call("list_tasks", parent_task_id=task["id"], limit=NEAR)
    subtasks = [f"{subtask['id']} ({StateCell.of(subtask['status'], subtask['blocked'])})" for subtask in page["tasks"]]
    return {
        "blocked_by": _join(blockers, len(task["blocked_by"]) > NEAR),
        "subtasks": _join(subtasks, page["next_cursor"] is not None),
    }


def _state_of(client: OperatorClient, task_id: int) -> str:
    try:
        task = client.call("get_task", task_id=task_id)
    except NotFound:  # it is in another session, and the caller an agent
        return str(task_id)
    hint = "; retry it" if task["status"] in lifecycle.DEAD else ""
    return f"{task_id} ({StateCell.of(task['status'], task['blocked'])}{hint})"


def _join(words: Sequence[str], is_cut: bool) -> str:
    return ", ".join([*words, *(["…"] if is_cut else [])])


def _facts(task: Mapping[str, Any]) -> list[tuple[str, Any]]:
    error = task["error_message"]
    is_shown = any(attempt["error_message"] == error for attempt in task["attempts"])
    fields = {
        **task,
        "status": StateCell.of(task["status"], task["blocked"], task["evidence"]),
        "error_message": CellOutput(error) if error and not is_shown else None,
        "due": _due(task),
    }
    return [
        (FACTS.get((task["status"], name), name), _brief(value))
        for name, value in fields.items()
        if name not in _SHOWN_ELSEWHERE and value not in (None, "", [], {})
    ]


def _brief(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _end_of_log(client: OperatorClient, task_id: int, count: int) -> list[dict[str, Any]]:
    """The last lines of a task's log, oldest first."""
    lines: list[dict[str, Any]] = []
    while len(lines) < count:
        at = {"cursor": lines[-1]["id"] if lines else 0, "limit": min(count - len(lines), LOG_PAGE)}
        page = client.call("get_task_logs", task_id=task_id, newest_first=True, **at)["lines"]
        lines += page
        if len(page) < at["limit"]:
            break
    return lines[::-1]


@root.command()
@click.option("--plan", default=None, help="Only tasks of this plan.", shell_complete=offers.plans)
@pass_client
def graph(client: OperatorClient, plan: str | None) -> Shown:
    """Show the graph of dependencies. Drawn in a notebook, as a table elsewhere."""
    page = client.call("list_tasks", limit=LIMIT, **drop_none(plan=plan))
    if page["next_cursor"]:
        which = "tasks" if plan is None else f"tasks in the plan {plain(plan)}"
        choice = "Choose a plan with --plan, or use the panel." if plan is None else "Use the panel."
        note = f"There are more than {LIMIT} {which}, too many to draw. {choice}"
        return Note(note, {"limit": LIMIT})
    edges = client.call("get_task_graph", **drop_none(plan=plan))["dependencies"]
    return Graph(page["tasks"], edges, NO_TASKS if plan is None else NO_MATCH)


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.option("--reason", default="", help="Sent to its agent.")
@pass_client
def cancel(client: OperatorClient, task_id: int, reason: str) -> Shown:
    """Cancel a task and its unfinished subtasks."""
    task = client.call("cancel_task", task_id=task_id, reason=reason)
    others = task["also_cancelled"]
    if task["status"] != "cancelled":
        return Note(f"Task {task_id} is {task['status']}. Cancelled its subtasks {_some(others)}.", task)
    return Note(f"Cancelled task {task_id}{f', and with it {_some(others)}' if others else ''}.", task)


def _some(ids: Sequence[int]) -> str:
    """The first of many ids, and how many more there are."""
    more = f" and {len(ids) - NEAR:,} more" if len(ids) > NEAR else ""
    return f"{', '.join(map(str, ids[:NEAR]))}{more}"


@root.command()
@click.argument("task_ids", metavar="TASK_ID...", type=int, nargs=-1, required=True, shell_complete=offers.tasks)
@click.option("--reason", default="", help="Recorded in the history.")
@click.option("--max-retries", type=click.IntRange(0, 100), default=None, help="How many retries it has from now on.")
@click.option("--recreate", is_flag=True, help="If its worktree is closed, create it anew from its branch first.")
@click.option("--also-cancelled", is_flag=True, help="Retry also its subtasks and others that were cancelled with it.")
@pass_client
def retry(
    client: OperatorClient, task_ids: tuple[int, ...], reason: str, max_retries: int | None, recreate: bool, **more: Any
) -> Shown:
    """Retry failed or cancelled tasks; one that pauses before its retry, now."""
    retried: list[dict[str, Any]] = []
    for number, task_id in enumerate(task_ids, 1):
        try:
            if recreate:
                _recreate_worktree(client, task_id)
            options = drop_none(max_retries=max_retries, **more)
            retried.append(client.call("retry_task", task_id=task_id, reason=reason, **options))
        except WorkbenchError as error:
            if not retried:
                raise
            rows = [[task["id"], _retried_text(task)] for task in retried]
            rows += [[task_id, str(error)], *([later, "It was not tried."] for later in task_ids[number:])]
            return PartialFailure(["task", "outcome"], rows, data=[*retried, {"id": task_id, "error": error.as_dict()}])
    return Note("\n".join(map(_retried_text, retried)), retried[0] if len(retried) == 1 else retried)


def _retried_text(task: Mapping[str, Any]) -> str:
    also, stay = task["also_retried"], task["stay_cancelled"]
    parts = [f"Task {task['id']} is retried{f', and with it {_some(also)}' if also else ''}.", task["note"]]
    if stay:
        parts.append(f"`workbench retry {' '.join(map(str, stay[:NEAR]))}` retries {_it_or_them(stay)}.")
    return " ".join(filter(None, parts))


def _it_or_them(ids: Sequence[int]) -> str:
    if len(ids) == 1:
        return "it"
    return "them" if len(ids) <= NEAR else f"the first {NEAR}"


def _recreate_worktree(client: OperatorClient, task_id: int) -> None:
    """If the worktree of a task is closed, create it anew from its branch."""
    name = client.call("get_task", task_id=task_id)["worktree"]
    if name is None:
        return
    (closed,) = client.call("get_worktree_status", worktree_name=name)["worktrees"]
    if closed["status"] in ("integrated", "discarded"):
        client.call("create_worktree", name=name, branch_name=closed["branch_name"])


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.argument("agent_id", metavar="AGENT|none", shell_complete=offers.agents)
@click.option("--reason", default="", help="Recorded in the history.")
@pass_client
def assign(client: OperatorClient, task_id: int, agent_id: str, reason: str) -> Shown:
    """Reserve a task for an agent, or for none. The agent that holds it loses it."""
    agent = None if agent_id == "none" else agent_id
    task = client.call("reassign_task", task_id=task_id, assigned_agent_id=agent, reason=reason)
    return Note(f"Task {task_id} is reserved for {agent}." if agent else f"Any agent may claim task {task_id}.", task)


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.argument("others", metavar="ON...", type=int, nargs=-1, required=True, shell_complete=offers.tasks)
@click.option("--remove", is_flag=True, help="Remove these dependencies.")
@pass_client
def depend(client: OperatorClient, task_id: int, others: tuple[int, ...], remove: bool) -> Shown:
    """Make a task depend on others."""
    task: dict[str, Any] = {}
    for on in others:
        task = client.call("remove_dependency" if remove else "add_dependency", task_id=task_id, depends_on=on)
    ids = ", ".join(map(str, task["dependencies"])) or "no task"
    return Note(f"Task {task_id} depends on {ids}.", task)


@root.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--name", default=None, help="Its name, instead of the one in the file.")
@click.option("--update", is_flag=True, help="Change the existing plan; failed tasks that change are retried.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option(
    "--based-on", metavar="VERSION", default=None, help="Refuse the update if the plan has another version by now."
)
@click.option(
    "--trust-workplace", is_flag=True, default=None, help="Trust what the plan's workplace opens to its agents."
)
@pass_client
def plan(client: OperatorClient, file: Any, update: bool, dry_run: bool, **options: Any) -> Shown:
    """Create or change a plan. FILE is YAML or a Markdown checklist; either all tasks are created or none."""
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{file.name} is not UTF-8 text: {error.reason}.") from None
    if not dry_run:
        client.create_project()
    plan = client.call("create_plan", text=text, update=update, dry_run=dry_run, **drop_none(**options))
    return plan_table(plan, dry_run)


def plan_table(plan: Mapping[str, Any], dry_run: bool = False) -> Table:
    """The tasks of a plan, or those that changed, below what happened, or would happen, to it and its changes."""
    changes = plan["diff"]
    shown = {*changes["added"], *changes["changed"]} if changes["text"] else plan["tasks"].keys()
    rows = [[task_id, name] for name, task_id in plan["tasks"].items() if name in shown]
    summary = f"Plan {plain(plan['plan'])}: {_summarise(plan, dry_run)}."
    lead = "\n".join(filter(None, [summary, plan["diff"]["text"]]))
    return Table(
        ["task", "name in the plan"],
        rows,
        "",
        plan,
        note="\n".join(filter(None, (plan["note"], *plan["warnings"]))),
        lead=lead,
    )


def _summarise(plan: Mapping[str, Any], dry_run: bool) -> str:
    if not plan["changed"]:
        return "unchanged"
    if dry_run:
        return f"would be {'changed' if plan['tasks'] else 'created'}; nothing was changed"
    if plan["diff"]["text"]:
        return "changed"
    count = len(plan["tasks"])
    return f"created, {count:,} {'task' if count == 1 else 'tasks'}"
