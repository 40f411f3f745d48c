"""Reads a stored plan from its current tasks, and the defaults that its text may leave out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.model import SECOND, Level
from workbench.ops import Caller, Ctx
from workbench.rules.access import free_id
from workbench.rules.tasks import plan as rules
from workbench.services.spending import budgets
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True)
class PlanStanding:
    """A stored plan, read from its current tasks; one that does not exist has none."""

    exists: bool
    sha256: str
    created_by: str
    visible: bool
    """Whether the caller sees all its tasks."""
    rows: Mapping[str, Row]
    tasks: list[rules.PlannedTask]
    workplace: Mapping[str, Any]
    workplace_trusted: bool
    budget: Mapping[str, Any] | None

    @property
    def ids(self) -> dict[str, int]:
        """The ids of the tasks, by name."""
        return {name: row["id"] for name, row in self.rows.items()}


def read_standing(tx: Reader, caller: Caller, name: str) -> PlanStanding:
    """Read a plan from its tasks; check `visible` before showing it to the caller."""
    plan = tx.one(SQL.find, name=name)
    rows = tx.all(SQL.tasks, plan=name)
    names = {row["id"]: row["name"] for row in rows}
    after: dict[int, list[str]] = {}
    for edge in tx.all(SQL.edges, plan=name):
        after.setdefault(edge["task_id"], []).append(names[edge["depends_on"]])
    board = (None, caller.session)
    return PlanStanding(
        exists=plan is not None,
        sha256=plan["sha256"] if plan else "",
        created_by=plan["created_by"] if plan else "",
        visible=caller.level is Level.OPERATOR or all(row["session_id"] in board for row in rows),
        rows={row["name"]: row for row in rows},
        tasks=[_task_of(row, names.get(row["parent_id"]), after.get(row["id"], [])) for row in rows],
        workplace=json.loads((plan and plan["workplace"]) or "{}"),
        workplace_trusted=bool(plan and plan["workplace_trusted"]),
        budget=budgets.declared(tx, f"plan:{name}"),
    )


def _task_of(row: Row, parent: str | None, after: list[str]) -> rules.PlannedTask:
    return rules.PlannedTask(
        name=row["name"],
        title=row["title"],
        persona=row["persona_id"],
        description=row["description"],
        parent=parent,
        priority=row["priority"],
        due=row["due"],
        worktree=row["target_worktree"],
        session=row["session_id"],
        after=after,
        on_failure=row["on_failure"],
        run=json.loads(row["run"]) if row["run"] else None,
        check=json.loads(row["check_stated"]) if row["check_stated"] else None,
        done_when=row["done_when"],
        needs=json.loads(row["needs"]) if row["needs"] else None,
        budget=json.loads(row["budget"]) if row["budget"] else None,
        max_retries=row["max_retries"],
        no_retry=json.loads(row["no_retry"]),
        lease_seconds=max(row["lease_us"], 1) / SECOND,
        context_ref=row["context_ref"],
        metadata=json.loads(row["metadata"]),
    )


def without_defaults(task: rules.PlannedTask, caller: Caller, defaults: rules.Defaults) -> rules.PlannedTask:
    """A task without the values that are this caller's defaults."""
    session = None if task.session == caller.session else task.session
    return defaults.stripped(task.model_copy(update={"session": session}))


def defaults_of(tx: Reader, ctx: Ctx) -> rules.Defaults:
    leases = {row["id"]: row["lease_us"] for row in tx.all(SQL.personas)}
    return rules.Defaults(
        max_retries=ctx.settings.max_retries,
        lease_seconds=ctx.settings.lease_seconds,
        persona_lease_seconds={persona: None if us is None else us / SECOND for persona, us in leases.items()},
    )


def numbered(tx: Reader, plan: rules.Plan) -> rules.Plan:
    taken = {row["name"] for row in tx.all(SQL.names)}
    return rules.rename(plan, free_id(plan.plan, taken))
