"""Tasks and plans: `tasks`, `task`, `graph`, `plan`, `export-plan`, `cancel`, `retry`, `priority`, `assign`, …"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, Text, counted, drop_none, pass_client, raw_option, size, without_empty
from workbench.errors import BadInput, NotFound
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
EVENTS_PAGE = 1_000
NEAR = 20
"""The most other tasks on one line."""
NO_MATCH = "No task matches."
FACTS = {
    ("failed", "completed_at"): "ended_at",
    ("cancelled", "completed_at"): "ended_at",
    ("cancelled", "error_message"): "reason",
}
"""What a field of a task means when the task is not completed."""
_SHOWN_ELSEWHERE = {"id", "title", "attempts", "blocked"}


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
@click.option("--sort", type=click.Choice(["id", "newest", "priority"]), default="id", show_default=True, help="Order.")
@click.option("--limit", default=100, show_default=True, help="At most this many.")
@click.option("--cursor", default=None, help="The next page, from the note below a list.")
@pass_client
def tasks(client: OperatorClient, sort: str, limit: int, **filters: Any) -> Shown:
    """List the tasks."""
    chosen = drop_none(**filters)
    page = client.call("list_tasks", sort=sort, limit=limit, **chosen)
    note = f"… more: --cursor {page['next_cursor']}" if page["next_cursor"] else ""
    return task_table(page["tasks"], NO_MATCH if chosen else NO_TASKS, note)


def task_table(found: Sequence[Mapping[str, Any]], empty: str, note: str = "") -> Table:
    """A table of tasks with their states."""
    shown = [{**task, "status": StateCell.of(task["status"], task["blocked"])} for task in found]
    return Table.of(shown, COLUMNS, empty, found, note)


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
        return artifact_shown(client.call("get_task_artifact", task_id=task_id, name=artifact), raw)
    if attempt is not None:
        diff = client.call("get_attempt_diff", task_id=task_id, attempt=attempt)
        return Text(patch_text(diff["files"]), diff, raw)
    found = client.call("get_task", task_id=task_id)
    return _task_page(found, _near(client, found), _end_of_log(client, task_id, lines + 1) if lines else [], lines)


def artifact_shown(found: Mapping[str, Any], raw: bool) -> Shown:
    """The rows or the text of a file; of other files, where they are."""
    where = f"{found['path']} at {found['commit'][:12]}" if found["commit"] else found["path"]
    if found["form"] == "table":
        note = f"{where}: this is its beginning." if found["cut"] else where
        return Table(found["columns"], found["rows"], "It has no rows.", data=dict(found), note=note)
    if found["text"] is not None:
        return Text(found["text"], dict(found), raw)
    return Note(f"{where}, {found['bytes']:,} bytes, {found['media_type']}: it cannot be shown here.", dict(found))


def _task_page(
    found: Mapping[str, Any], near: Mapping[str, str], log: Sequence[Mapping[str, Any]], lines: int
) -> TablePage:
    """The details of a task, with the states of related tasks and the last lines of its log."""
    facts = Table(["", ""], [[name.replace("_", " "), value] for name, value in _facts({**found, **near})])
    parts = [(f"{found['id']} {found['title']}", facts)]
    parts.append(("Attempts", _attempts_table(found["attempts"])))
    if lines:
        note = f"the last {lines:,} lines; --log shows more" if len(log) > lines else ""
        parts.append(("Log", Table.of(log[-lines:], LOG, "The log is empty.", note=note)))
    return TablePage(parts, {"task": found, "log": log[-lines:] if lines else []})


def _attempts_table(attempts: Sequence[Mapping[str, Any]]) -> Table:
    columns = without_empty(ATTEMPTS, "definition_hash", attempts)
    last = {one["error_message"]: one["attempt"] for one in attempts}
    rows = [_attempt(one, last[one["error_message"]]) for one in attempts]
    return Table.of(rows, columns, "It has not been claimed yet.")


def _attempt(one: Mapping[str, Any], last: int) -> dict[str, Any]:
    """An attempt, with what it waits for, how its command has ended it, or what is kept of it.

    Args:
        last: the last attempt with its error, which is shown once.
    """
    if kept := one["kept"]:
        work = f"kept: {counted(kept['commits'], 'commit')}, {counted(kept['files'], 'file')}, {size(kept['bytes'])}"
    else:
        work = (
            one["problem"] or one["waits_for"] or (one["finishing"] and f"{one['finishing']}; its command still runs")
        )
    error = one["error_message"] or ""
    shown = CellOutput(error) if one["attempt"] == last else f"the same as that of attempt {last}"
    return {**one, "work": work, "error_message": shown if error else None}


def _near(client: OperatorClient, found: Mapping[str, Any]) -> dict[str, str]:
    """The dependencies that block a task and its subtasks, with their states."""
    waits = [_standing(client, other) for other in found["blocked_by"][:NEAR]]
    under = client.call("list_tasks", parent_task_id=found["id"], limit=NEAR)
    parts = [f"{one['id']} ({StateCell.of(one['status'], one['blocked'])})" for one in under["tasks"]]
    return {
        "blocked_by": _some(waits, len(found["blocked_by"]) > NEAR),
        "subtasks": _some(parts, under["next_cursor"] is not None),
    }


def _standing(client: OperatorClient, task_id: int) -> str:
    try:
        found = client.call("get_task", task_id=task_id)
    except NotFound:  # it is in another session, and the caller an agent
        return str(task_id)
    hint = "; retry it" if found["status"] in lifecycle.DEAD else ""
    return f"{task_id} ({StateCell.of(found['status'], found['blocked'])}{hint})"


def _some(words: Sequence[str], more: bool) -> str:
    return ", ".join([*words, *(["…"] if more else [])])


def _facts(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    error = found["error_message"]
    is_shown = any(one["error_message"] == error for one in found["attempts"])
    shown = {
        **found,
        "status": StateCell.of(found["status"], found["blocked"]),
        "error_message": CellOutput(error) if error and not is_shown else None,
    }
    return [
        (FACTS.get((found["status"], name), name), _brief(value))
        for name, value in shown.items()
        if name not in _SHOWN_ELSEWHERE and value not in (None, "", [], {})
    ]


def _brief(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(one, str | int) for one in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _end_of_log(client: OperatorClient, task_id: int, wanted: int) -> list[dict[str, Any]]:
    """The last lines of a task's log, oldest first."""
    lines: list[dict[str, Any]] = []
    while len(lines) < wanted:
        at = {"cursor": lines[-1]["id"] if lines else 0, "limit": min(wanted - len(lines), LOG_PAGE)}
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
        note = f"There are more than {LIMIT} tasks, too many to draw. Choose a plan with --plan, or use the panel."
        return Note(note, {"limit": LIMIT})
    edges = client.call("get_task_graph", **drop_none(plan=plan))["dependencies"]
    return Graph(page["tasks"], edges, NO_TASKS if plan is None else NO_MATCH)


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.option("--reason", default="", help="Sent to its agent.")
@pass_client
def cancel(client: OperatorClient, task_id: int, reason: str) -> Shown:
    """Cancel a task and its unfinished subtasks."""
    before = client.call("list_events", after=None)["next_after"]
    made = client.call("cancel_task", task_id=task_id, reason=reason)
    others = _cancelled_with(client, made, before)
    with_it = f", and with it {_some(others[:NEAR], len(others) > NEAR)}" if others else ""
    return Note(f"Cancelled task {task_id}{with_it}.", made)


def _cancelled_with(client: OperatorClient, made: Mapping[str, Any], after: int) -> list[str]:
    """The other tasks that the same change cancelled: all its events have the time of the task's end."""
    found = client.call("list_events", after=after, kinds=["task.cancelled"], limit=EVENTS_PAGE)["events"]
    ids = [event["subject"].removeprefix("task:") for event in found if event["at"] == made["completed_at"]]
    return [one for one in ids if one != str(made["id"])]


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.option("--reason", default="", help="Recorded in the history.")
@click.option("--max-retries", type=click.IntRange(0, 100), default=None, help="How many retries it has from now on.")
@click.option("--recreate", is_flag=True, help="If its worktree is closed, create it anew from its branch first.")
@pass_client
def retry(client: OperatorClient, task_id: int, reason: str, max_retries: int | None, recreate: bool) -> Shown:
    """Retry a failed or cancelled task."""
    if recreate:
        _recreate_worktree(client, task_id)
    made = client.call("retry_task", task_id=task_id, reason=reason, **drop_none(max_retries=max_retries))
    return Note(f"Task {task_id} is retried.", made)


def _recreate_worktree(client: OperatorClient, task_id: int) -> None:
    """Create the worktree of a task anew from its branch, if it was closed."""
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
    made = client.call("reassign_task", task_id=task_id, assigned_agent_id=agent, reason=reason)
    return Note(f"Task {task_id} is reserved for {agent}." if agent else f"Any agent may claim task {task_id}.", made)


@root.command()
@click.argument("task_id", type=int, shell_complete=offers.tasks)
@click.argument("others", metavar="ON...", type=int, nargs=-1, required=True, shell_complete=offers.tasks)
@click.option("--remove", is_flag=True, help="Remove these dependencies.")
@pass_client
def depend(client: OperatorClient, task_id: int, others: tuple[int, ...], remove: bool) -> Shown:
    """Make a task depend on others."""
    made: dict[str, Any] = {}
    for on in others:
        made = client.call("remove_dependency" if remove else "add_dependency", task_id=task_id, depends_on=on)
    ids = ", ".join(map(str, made["dependencies"])) or "no task"
    return Note(f"Task {task_id} depends on {ids}.", made)


@root.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--name", default=None, help="Its name, instead of the one in the file.")
@click.option("--update", is_flag=True, help="Change the existing plan; failed tasks that change are retried.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@pass_client
def plan(client: OperatorClient, file: Any, name: str | None, update: bool, dry_run: bool) -> Shown:
    """Create or change a plan. FILE is YAML or a Markdown checklist; either all tasks are created or none."""
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{file.name} is not UTF-8 text: {error.reason}.") from None
    if not dry_run:
        client.create_project()
    return planned(client.call("create_plan", text=text, name=name, update=update, dry_run=dry_run), dry_run)


def planned(made: Mapping[str, Any], dry_run: bool = False) -> Table:
    """The tasks of a plan, below what happened, or would happen, to it and its changes."""
    rows = [[task_id, name] for name, task_id in made["tasks"].items()]
    summary = f"Plan {plain(made['plan'])}: {_happened(made, dry_run)}."
    lead = "\n".join(filter(None, [summary, made["diff"]["text"]]))
    return Table(
        ["task", "name in the plan"],
        rows,
        "",
        made,
        note="\n".join(filter(None, (made["note"], *made["warnings"]))),
        lead=lead,
    )


def _happened(made: Mapping[str, Any], dry_run: bool) -> str:
    if not made["changed"]:
        return "unchanged"
    if dry_run:
        return f"would be {'changed' if made['tasks'] else 'created'}; nothing was changed"
    if made["diff"]["text"]:
        return "changed"
    count = len(made["tasks"])
    return f"created, {count:,} {'task' if count == 1 else 'tasks'}"
