"""Editing a task that is in no plan: its text, its command, and how it is done."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint
from workbench.model import Day, Level, OnFailure, TaskState
from workbench.ops import Command, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules import access
from workbench.rules.secrets.executed import warnings_about
from workbench.rules.tasks import lifecycle
from workbench.services.access.personas import require_persona
from workbench.services.resources import leases
from workbench.services.tasks.creation import note_on_needs
from workbench.services.tasks.rows import recount, require_own_row, require_task, waits_of
from workbench.services.tasks.task import (
    Check,
    ContextRef,
    Description,
    Needed,
    Place,
    Retries,
    Run,
    TaskInfo,
    Title,
)
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

EDITABLE = frozenset({TaskState.PENDING}) | lifecycle.DEAD


class Edited(TaskInfo):
    """A task after a change. `warnings` are about secrets in what was changed, which stay in it, and about needs that
    are not there."""

    warnings: list[str]


@op(
    allow=Level.PLANNER,
    command=Command("edit TASK_ID", "Changed task {task_id}: {changed}.", names={"target_worktree": "worktree"}),
)
async def edit_task(
    ctx: Ctx,
    task_id: TaskId,
    title: Title | None = None,
    description: Description | None = None,
    run: Run = None,
    check: Check = None,
    needs: Needed = None,
    persona_id: Annotated[str | None, Field(description="The persona that it is for.")] = None,
    target_worktree: Place = None,
    max_retries: Retries = None,
    context_ref: ContextRef = None,
    on_failure: Annotated[OnFailure | None, Field(description="When a dependency fails or is cancelled.")] = None,
    due: Annotated[
        Day | Literal["none"] | None,
        Field(description="The day by which it is due, or none."),
    ] = None,
) -> Edited:
    """Change a task of yours that waits, has failed or is cancelled, and is in no plan; null: as it is.

    One of a plan is changed by `create_plan`, with `update`.
    """
    changes = {
        "title": title,
        "description": description,
        "run": run,
        "check": check,
        "needs": needs,
        "persona_id": persona_id,
        "target_worktree": target_worktree,
        "max_retries": max_retries,
        "context_ref": context_ref,
        "on_failure": on_failure,
        "due": due,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    if not changes:
        raise BadInput("INVALID_ARGUMENTS", "No changes were given: name at least one field.", problems=[])
    texts = ("title", "description", "run", "check")
    warnings = [text for name in texts if name in changes for text in warnings_about(name, changes[name])]

    def change(tx: Tx) -> Edited:
        row = require_own_row(tx, ctx.caller, task_id)
        _require_editable(row)
        _apply(tx, row, changes)
        tx.emit("task.changed", f"task:{task_id}", session=row["session_id"], fields=list(changes))
        notes = [*warnings, *filter(None, [note_on_needs(tx, [task_id]) if needs else None])]
        return Edited.model_construct(**dict(require_task(tx, task_id)), warnings=notes)

    return await ctx.write(change)


def _require_editable(row: Row) -> None:
    if row["plan"] is not None:
        raise Conflict(
            "IN_PLAN",
            f"Task {row['id']} is in the plan {row['plan']!r}, whose text says what it is.",
            Hint("export_plan", "{} gives the text; change it there, and update the plan."),
            plan=row["plan"],
        )
    if row["status"] not in EDITABLE:
        text = f"Task {row['id']} is {row['status']}; only one that is pending, failed or cancelled can be edited."
        raise Conflict("WRONG_STATE", text, status=row["status"])


def _apply(tx: Tx, row: Row, changes: dict[str, Any]) -> None:
    kept = ("title", "description", "max_retries", "context_ref", "on_failure", "due")
    values = {name: row[name] for name in kept}
    values |= {"persona_id": row["persona_id"], "target_worktree": row["worktree"] or None, **changes}
    if "persona_id" in changes:
        values["persona_id"] = require_persona(tx, changes["persona_id"]).id
    if "target_worktree" in changes:
        access.check_worktree_name(changes["target_worktree"])
    if "on_failure" in changes:
        waits = {one["depends_on"]: one["status"] for one in waits_of(tx, row["id"])}
        lifecycle.require_alive(changes["on_failure"], waits)
    for name, column in (("run", "run"), ("check", "check_stated")):
        values[name] = (json.dumps(changes[name]) if changes[name] else None) if name in changes else row[column]
    values["due"] = None if values["due"] == "none" else values["due"]
    tx.run(SQL.set_task, values, id=row["id"])
    needs = leases.stored(changes["needs"]) if "needs" in changes else row["needs"]
    place = {"persona_id": values["persona_id"], "worktree": values["target_worktree"] or ""}
    tx.run(SQL.set_status, place, id=row["id"], needs=needs)
    recount(tx, row["id"])
