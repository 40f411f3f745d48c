"""Tasks and plans: `tasks`, `plan`."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.shown import Shown, pass_door
from workbench.door import Door
from workbench.errors import BadInput
from workbench.tables import Table

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


@click.command()
@click.option("--status", "state", default=None, help="Only tasks in this state.")
@click.option("--plan", "plan_name", default=None, help="Only tasks of this plan.")
@click.option("--limit", default=100, show_default=True, help="At most so many.")
@pass_door
def tasks(door: Door, state: str | None, plan_name: str | None, limit: int) -> Shown:
    """List the tasks."""
    found = door.call("list_tasks", status=state, plan=plan_name, limit=limit)["tasks"]
    return Table.of(found, COLUMNS, "There are no tasks. Create some with a plan.")


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--name", default=None, help="Use this name instead of the plan's own.")
@pass_door
def plan(door: Door, file: Any, name: str | None) -> Shown:
    """Create the tasks of a YAML plan, all or none."""
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{file.name} is not text in UTF-8: {error.reason}.") from None
    return planned(door.call("create_plan", text=text, name=name))


def planned(made: dict[str, Any]) -> Table:
    """A created plan as a table."""
    rows = [[task_id, name] for name, task_id in made["tasks"].items()]
    return Table(["task", "name in the plan"], rows, data=made)
