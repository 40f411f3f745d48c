"""Applying a plan: its tasks are added, changed and cancelled in one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping

from workbench.errors import Refused
from workbench.model import SECOND, Level
from workbench.ops import Ctx
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.approval import SpendingLimit, limit_of
from workbench.rules.tasks.plan import PlanDiff
from workbench.rules.workplace import opening
from workbench.services.resources import leases
from workbench.services.spending import budgets, spent
from workbench.services.tasks import approval
from workbench.services.tasks import dependencies as graph
from workbench.services.tasks.changes import closed_worktree, require_alive, revive
from workbench.services.tasks.creation import add_task, joined, note_on_missing, note_on_needs
from workbench.services.tasks.plans.proposal import PlanMade, Proposal, version_of
from workbench.services.tasks.rows import recount, require_row
from workbench.services.tasks.task import TaskToCreate, bounded_json, warnings_of
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)


def apply_proposal(tx: Tx, ctx: Ctx, proposal: Proposal, trust_workplace: bool = False) -> PlanMade:
    """Apply a proposal in the caller's transaction, and emit the events."""
    plan, standing, diff = proposal.plan, proposal.standing, proposal.diff
    trusted = proposal.trusted(ctx.caller, trust_workplace)
    stated = {"name": plan.plan, "workplace": json.dumps(proposal.workplace), "trusted": int(trusted)}
    notes = _warnings_of_workplace(proposal, trusted)
    if standing.sha256 == proposal.sha256:
        if trusted and not standing.workplace_trusted:
            tx.run(SQL.set_workplace, stated)
        asked = approval.of_plan(tx, plan.plan)
        waits = {"approval_id": asked, "note": approval.note_on_waiting(asked)}
        return proposal.answer().model_copy(update={"warnings": notes, **waits})
    if standing.exists:
        tx.run(SQL.remember, name=plan.plan, sha256=proposal.sha256, now=tx.now)
    else:
        tx.run(SQL.add, name=plan.plan, sha256=proposal.sha256, by=tx.actor, now=tx.now)
    if proposal.workplace or standing.workplace:
        tx.run(SQL.set_workplace, stated)
    for name in diff.retried:  # before all else: ended tasks take no dependencies
        revive(tx, require_row(tx, standing.ids[name]), f"corrected in the plan {plan.plan}")
    ids = _add_tasks(tx, ctx, proposal)
    _change_tasks(tx, ctx, proposal, ids)
    for name in diff.retried:
        require_alive(tx, require_row(tx, ids[name]))
    _cancel_removed(tx, proposal)
    _state_budgets(tx, ctx, proposal, ids)
    asked = approval.ask_first(tx, ctx, [ids[name] for name in diff.added], plan.plan, _new_limit(proposal))
    sessions = {task.session for task in plan.tasks}
    session = sessions.pop() if len(sessions) == 1 else None
    new_needs = [ids[task.name] for task in plan.tasks if task.name in diff.added or task.name in diff.changed]
    touched = {name: ids[name] for name in [*diff.added, *diff.changed, *diff.removed]}
    if not standing.exists:
        tx.emit("plan.created", f"plan:{plan.plan}", session=session, tasks=touched)
    elif proposal.changes:
        data = {"added": diff.added, "changed": list(diff.changed), "removed": diff.removed, "retried": diff.retried}
        tx.emit("plan.updated", f"plan:{plan.plan}", session=session, tasks=touched, **data)
    return PlanMade(
        plan=plan.plan,
        version=version_of(proposal.sha256),
        tasks={name: task_id for name, task_id in ids.items() if name not in diff.removed},
        worktrees=plan.worktrees,
        changed=proposal.changes or not standing.exists,
        diff=diff if standing.exists else PlanDiff(),
        warnings=[
            warning
            for task in plan.tasks
            if task.name in diff.added or task.name in diff.changed
            for warning in (
                *warnings_of(_new(ctx, plan.plan, task, ids), task.name),
                *_warning_of_closed_worktree(tx, task, standing.exists),
            )
        ]
        + notes
        + list(filter(None, [note_on_needs(tx, sorted(new_needs))])),
        note=joined(
            note_on_missing(sorted(ids[t.name] for t in plan.tasks if t.name in diff.added and t.run is None)),
            approval.note_on_waiting(asked),
        ),
        approval_id=asked,
    )


def _warnings_of_workplace(proposal: Proposal, trusted: bool) -> list[str]:
    """What to do for a plan whose workplace opens something and is not trusted."""
    names = ", ".join(opening(proposal.workplace))
    if trusted or not names:
        return []
    return [
        f"The workplace of the plan ({names}) opens no more than your settings do, because it is not trusted: apply "
        "the plan with --trust-workplace (trust_workplace=true)."
    ]


def _warning_of_closed_worktree(tx: Tx, task: rules.PlannedTask, is_update: bool) -> list[str]:
    """What to do for a task of an updated plan whose worktree was closed; it waits for a new one of that name."""
    closed = closed_worktree(tx, task.worktree) if is_update else None
    if closed is None:
        return []
    again = f"create it anew to go on, from its branch {closed['branch_name']}"
    return [f"{task.name}: the worktree {task.worktree} is {closed['status']}: {again}."]


def _add_tasks(tx: Tx, ctx: Ctx, proposal: Proposal) -> dict[str, int]:
    """Create the new tasks, dependencies first; return the ids of all tasks, old and new, by name."""
    ids, added = proposal.standing.ids, set(proposal.diff.added)
    parent_later = []
    for task in rules.in_order(proposal.plan):
        if task.name in added:
            if task.parent and task.parent not in ids:
                parent_later.append(task)
            ids[task.name] = add_task(tx, ctx, _new(ctx, proposal.plan.plan, task, ids))
    for task in parent_later:
        tx.run(SQL.set_parent, id=ids[task.name], parent=ids[task.parent or ""])
    for task in parent_later:
        recount(tx, ids[task.name])
    return ids


def _new(ctx: Ctx, plan: str, task: rules.PlannedTask, ids: Mapping[str, int]) -> TaskToCreate:
    return TaskToCreate(
        title=task.title,
        description=task.description,
        persona_id=task.persona,
        priority=task.priority,
        due=task.due,
        dependencies=[ids[other] for other in task.after],
        parent_task_id=ids.get(task.parent) if task.parent else None,
        target_worktree=task.worktree,
        run=task.run,
        check=task.check,
        done_when=task.done_when,
        needs=task.needs,
        max_retries=task.max_retries,
        lease_seconds=task.lease_seconds,
        context_ref=task.context_ref,
        metadata=task.metadata,
        session_id=None if task.session == ctx.caller.session else task.session,
        on_failure=task.on_failure,
        no_retry=task.no_retry,
        plan=plan,
        name=task.name,
    )


def _change_tasks(tx: Tx, ctx: Ctx, proposal: Proposal, ids: Mapping[str, int]) -> None:
    """Change pending tasks, and failed ones, which are retried.

    Old dependencies are removed before new ones are added, so that an edge may be reversed.
    """
    new = {task.name: task for task in proposal.plan.tasks if task.name in proposal.diff.changed}
    for name, task in new.items():
        _set(tx, ctx, ids[name], task, ids)
    waited = {task.name: set(task.after) for task in proposal.standing.tasks}
    for name, task in new.items():
        for other in sorted(waited[name] - set(task.after)):
            tx.run(graph.SQL.remove, task_id=ids[name], on=ids[other])
    for name, task in new.items():
        recount(tx, ids[name])
        for other in dict.fromkeys(task.after):
            if other not in waited[name]:
                graph.add(tx, require_row(tx, ids[name]), ids[other])
        fields = [change.field for change in proposal.diff.changed[name]]
        tx.emit("task.changed", f"task:{ids[name]}", session=task.session, fields=fields)


def _set(tx: Tx, ctx: Ctx, task_id: int, task: rules.PlannedTask, ids: Mapping[str, int]) -> None:
    assert task.lease_seconds is not None
    persona = task.persona.lower()
    tx.run(
        SQL.set_task,
        id=task_id,
        title=task.title,
        description=task.description,
        persona=persona,
        worktree=task.worktree,
        run=None if task.run is None else json.dumps(task.run),
        check=None if task.check is None else json.dumps(task.check),
        done_when=task.done_when,
        context_ref=task.context_ref,
        metadata=bounded_json(task.metadata, ctx.settings),
        max_retries=task.max_retries,
        lease_us=round(task.lease_seconds * SECOND),
        session=task.session,
        on_failure=task.on_failure,
        no_retry=json.dumps(task.no_retry),
        due=task.due,
    )
    worktree, session = task.worktree or "", task.session or ""
    place = {"persona": persona, "worktree": worktree, "session": session, "priority": task.priority}
    tx.run(SQL.set_status, place, id=task_id, needs=leases.stored(task.needs))
    parent, before = ids[task.parent] if task.parent else None, require_row(tx, task_id)["parent_id"]
    if parent != before:
        tx.run(SQL.set_parent, id=task_id, parent=parent)
        budgets.follow(tx, spent.move(tx, [before, parent]))


def _state_budgets(tx: Tx, ctx: Ctx, proposal: Proposal, ids: Mapping[str, int]) -> None:
    """State the budgets that are new or changed.

    Raises:
        Refused: ``FORBIDDEN``: an agent may not change one that there is.
    """
    plan, before = proposal.plan, {task.name: task.budget for task in proposal.standing.tasks}
    stated = {f"plan:{plan.plan}": (plan.budget, proposal.standing.budget)}
    stated |= {f"task:{ids[task.name]}": (task.budget, before.get(task.name)) for task in plan.tasks}
    for scope, (budget, old) in stated.items():
        if budget == old:
            continue
        if ctx.caller.level is not Level.OPERATOR and budgets.is_stated(tx, scope):
            text = f"Only a person may change the budget of {scope.replace(':', ' ')}. Leave it as it is."
            raise Refused("FORBIDDEN", text)
        budgets.state(tx, scope, budget, "plan")


def _new_limit(proposal: Proposal) -> SpendingLimit:
    """What is newly stated that may be spent: by the plan, or else by its new tasks."""
    plan, added = proposal.plan, {*proposal.diff.added}
    whole = plan.budget if plan.budget != proposal.standing.budget else None
    return limit_of([(task.name, task.parent, task.budget) for task in plan.tasks if task.name in added], whole)


def _cancel_removed(tx: Tx, proposal: Proposal) -> None:
    """Cancel the tasks that the plan no longer has, and detach them, so that their names are free again."""
    ids = [proposal.standing.rows[name]["id"] for name in proposal.diff.removed]
    for task_id in ids:
        tx.run(SQL.detach, id=task_id)
    graph.cancel(tx, [(task_id, f"removed from the plan {proposal.plan.plan}") for task_id in ids])
