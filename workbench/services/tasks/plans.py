"""Plans: a checked list of tasks created whole or not at all, and changed by a new text of it.

What a plan says is kept as its tasks; of its text only a hash is, to know it again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound
from workbench.model import SECOND, Level, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules.access import free_id
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.plan import PlanDiff
from workbench.services.tasks import dependencies as graph
from workbench.services.tasks.creation import add_task, session_for
from workbench.services.tasks.new_task import PlannedTask, bounded_json
from workbench.services.tasks.rows import require_row, task_scope
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class PlanMade(Wire):
    """The tasks of a plan, by the names they have in it, and whether and how they were changed just now.

    After a plan was created, `diff` is empty: everything is new.
    """

    plan: str
    tasks: dict[str, int]
    worktrees: list[str]
    changed: bool
    diff: PlanDiff


class PlanText(Wire):
    """A plan as text."""

    plan: str
    format: rules.Format
    text: str


class PlanSummary(Wire):
    """How far a plan is."""

    plan: str
    tasks: int
    completed: int
    open: int


class Plans(Wire):
    """Plans, oldest first."""

    plans: list[PlanSummary]


@op(allow=Level.PLANNER)
async def create_plan(
    ctx: Ctx,
    text: Annotated[
        str, Field(max_length=2_000_000, description="YAML with `plan:` and `tasks:`, or a Markdown checklist.")
    ],
    name: Annotated[str | None, Field(description="Use this name instead of the plan's own.")] = None,
    number_if_taken: Annotated[bool, Field(description="When the name is taken, add a number to it.")] = False,
    format: Literal["auto", "yaml", "markdown"] = "auto",
    update: Annotated[bool, Field(description="When there is the plan already, change it to what the text says.")] = (
        False
    ),
    dry_run: Annotated[bool, Field(description="Change nothing; only tell in `diff` what would be.")] = False,
) -> PlanMade:
    """Create all tasks of a plan, or none: each problem is reported with its line. The same plan again changes nothing.

    An update adds tasks, changes pending ones and cancels those that the text no longer has; what has begun or ended
    must stay as it is. A task that names no session stays in the one it is in.
    """
    defaults = await ctx.read(lambda tx: _defaults(tx, ctx))
    plan = await asyncio.to_thread(rules.parse, text, personas=defaults.persona_lease_seconds.keys(), format=format)
    if name is not None:
        plan = rules.rename(plan, name)
    if len(plan.tasks) > ctx.settings.max_plan_tasks:
        raise BadInput("TOO_LARGE", f"A plan may have at most {ctx.settings.max_plan_tasks:,} tasks.")

    def proposed(tx: Reader) -> _Proposal:
        proposal = _proposal(tx, ctx, _numbered(tx, plan) if number_if_taken else plan, defaults)
        if proposal.found.exists and proposal.diff.text and not (update or dry_run):
            raise _exists(plan, f"another plan {plan.plan!r}", "Call with update=true to change it, or")
        _require_changeable(proposal)
        return proposal

    if dry_run:
        return (await ctx.read(proposed)).answer()
    return await ctx.write(lambda tx: _applied(tx, ctx, proposed(tx)))


@op(allow=Level.READ, reads=True)
async def list_plans(ctx: Ctx) -> Plans:
    """The plans of this project and how far they are."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list, task_scope(tx, ctx.caller)))
    return Plans(plans=[PlanSummary(**row) for row in rows])


@op(allow=Level.READ, reads=True, tool=False)
async def export_plan(
    ctx: Ctx,
    plan: Annotated[str, Field(description="Its name; list_plans names them.")],
    format: rules.Format = "yaml",
    tick: Annotated[bool, Field(description="In Markdown, tick what is completed; it is left out when read.")] = False,
) -> PlanText:
    """A plan as text, as its tasks are now, without comments; create_plan makes an equal one of it."""

    def question(tx: Reader) -> tuple[_Standing, rules.Defaults]:
        task_scope(tx, ctx.caller)
        return _standing(tx, ctx.caller, plan), _defaults(tx, ctx)

    found, defaults = await ctx.read(question)
    if not found.exists or not found.visible:
        raise NotFound("PLAN_NOT_FOUND", f"There is no plan {plan!r}. list_plans names them.")
    told = rules.Plan(plan=plan, tasks=[_spared(task, ctx.caller, defaults) for task in found.tasks])
    done = {name for name, row in found.rows.items() if tick and row["status"] == TaskState.COMPLETED}
    return PlanText(plan=plan, format=format, text=await asyncio.to_thread(rules.write, told, format, completed=done))


@dataclass(frozen=True)
class _Standing:
    """A plan as its tasks stand; one that does not exist has none."""

    exists: bool
    sha256: str
    visible: bool
    """No task of it is on another session's board than the caller's."""
    rows: Mapping[str, Row]
    tasks: list[rules.PlannedTask]

    @property
    def ids(self) -> dict[str, int]:
        """Of the tasks, by name."""
        return {name: row["id"] for name, row in self.rows.items()}


@dataclass(frozen=True)
class _Proposal:
    """What a text says, with nothing left unsaid, and what it would change."""

    plan: rules.Plan
    sha256: str
    found: _Standing
    diff: PlanDiff

    def answer(self) -> PlanMade:
        """What it comes to, as long as nothing is changed."""
        plan, changed = self.plan, bool(self.diff.text) or not self.found.exists
        return PlanMade(plan=plan.plan, tasks=self.found.ids, worktrees=plan.worktrees, changed=changed, diff=self.diff)


def _proposal(tx: Reader, ctx: Ctx, plan: rules.Plan, defaults: rules.Defaults) -> _Proposal:
    """What a plan would change.

    Raises:
        Conflict: ``PLAN_EXISTS`` (out of the caller's sight).
        NotFound: ``SESSION_NOT_FOUND``. Refused: ``FORBIDDEN`` (another's session).
    """
    found, sha256 = _standing(tx, ctx.caller, plan.plan), rules.digest(plan)
    if not found.visible:
        raise _exists(plan, f"a plan {plan.plan!r}", "Please")
    if found.sha256 == sha256:
        return _Proposal(plan, sha256, found, PlanDiff())
    done = {t.name for t in plan.ticked if t.name in found.rows and found.rows[t.name]["status"] == TaskState.COMPLETED}
    settled = plan.model_copy(update={"tasks": _settled(tx, ctx, plan, done, found, defaults)})
    diff = rules.compare([task for task in found.tasks if task.name not in done], settled.tasks)
    return _Proposal(settled, sha256, found, diff)


def _settled(
    tx: Reader, ctx: Ctx, plan: rules.Plan, done: set[str], found: _Standing, defaults: rules.Defaults
) -> list[rules.PlannedTask]:
    """The tasks with what they do not say; what is ticked and was never a task is not waited for."""
    known = done | {task.name for task in plan.tasks}
    named = {ref: session_for(tx, ctx.caller, ref) for ref in {task.session for task in plan.tasks} if ref is not None}

    def settle(task: rules.PlannedTask) -> rules.PlannedTask:
        row = found.rows.get(task.name)
        unsaid = row["session_id"] if row else ctx.caller.session
        said: dict[str, Any] = {
            "after": [other for other in task.after if other in known],
            "parent": task.parent if task.parent in known else None,
            "session": named[task.session] if task.session is not None else unsaid,
        }
        if row and row["status"] != TaskState.PENDING:
            said["priority"] = row["priority"]  # of no consequence any more, whoever has set it
        return defaults.filled(task.model_copy(update=said))

    return [settle(task) for task in plan.tasks]


def _require_changeable(proposal: _Proposal) -> None:
    """Refuse a change of what has begun, and a new link that nothing would ever open.

    Raises:
        Conflict: ``PLAN_CONFLICT``, ``DEPENDENCY_DEAD``; `details.problems` has line (null if the text is silent),
            task and reason.
    """
    plan, states = proposal.plan, {name: TaskState(row["status"]) for name, row in proposal.found.rows.items()}
    lines = {task.name: task.line for task in plan.tasks} | {item.name: item.line for item in plan.ticked}
    if problems := rules.obstacles(proposal.diff, states, lines):
        raise Conflict("PLAN_CONFLICT", _refusal(plan, problems), problems=problems, diff=proposal.diff.text)
    if problems := rules.dead_ends(proposal.diff, plan.tasks, states, lines):
        dead = {name: proposal.found.ids[name] for name in sorted({p["depends_on"] for p in problems})}
        named = ", ".join(f"{task_id} ({name})" for name, task_id in dead.items())
        told = (
            f"{_refusal(plan, problems)}\nRetry {named} first, or say `on_failure: block` (wait until it is retried) "
            "or `ignore`."
        )
        raise Conflict("DEPENDENCY_DEAD", told, dead=[*dead.values()], problems=problems, diff=proposal.diff.text)


def _refusal(plan: rules.Plan, problems: Sequence[Mapping[str, Any]]) -> str:
    listed = "\n".join(f"  {_place(p['line'])}: {p['reason']}" for p in problems[:20])
    return f"The plan {plan.plan!r} cannot become what the text says; nothing was changed.\n{listed}"


def _place(line: int | None) -> str:
    return "not in the text" if line is None else f"line {line}"


def _exists(plan: rules.Plan, what: str, otherwise: str) -> Conflict:
    return Conflict("PLAN_EXISTS", f"There is {what} already. {otherwise} give this one another name.")


def _applied(tx: Tx, ctx: Ctx, proposal: _Proposal) -> PlanMade:
    """Make the tasks what a proposal says, and tell."""
    plan, found, diff = proposal.plan, proposal.found, proposal.diff
    if found.sha256 == proposal.sha256:
        return proposal.answer()
    if found.exists:
        tx.run(SQL.remember, name=plan.plan, sha256=proposal.sha256, now=tx.now)
    else:
        tx.run(SQL.add, name=plan.plan, sha256=proposal.sha256, by=tx.actor, now=tx.now)
    ids = _added(tx, ctx, proposal)
    _changed(tx, ctx, proposal, ids)
    _removed(tx, proposal)
    sessions = {task.session for task in plan.tasks}
    session = sessions.pop() if len(sessions) == 1 else None
    touched = {name: ids[name] for name in [*diff.added, *diff.changed, *diff.removed]}
    if not found.exists:
        tx.emit("plan.created", f"plan:{plan.plan}", session=session, tasks=touched)
    elif diff.text:
        told = {"added": diff.added, "changed": list(diff.changed), "removed": diff.removed}
        tx.emit("plan.updated", f"plan:{plan.plan}", session=session, tasks=touched, **told)
    return PlanMade(
        plan=plan.plan,
        tasks={name: task_id for name, task_id in ids.items() if name not in diff.removed},
        worktrees=plan.worktrees,
        changed=bool(diff.text) or not found.exists,
        diff=diff if found.exists else PlanDiff(),
    )


def _added(tx: Tx, ctx: Ctx, proposal: _Proposal) -> dict[str, int]:
    """Create the new tasks, each after what it waits for; the ids of all that are, or were, in the plan."""
    ids, added = proposal.found.ids, set(proposal.diff.added)
    late = []
    for task in rules.in_order(proposal.plan):
        if task.name in added:
            if task.parent and task.parent not in ids:
                late.append(task)
            ids[task.name] = add_task(tx, ctx, _new(ctx, proposal.plan.plan, task, ids))
    for task in late:
        tx.run(SQL.set_parent, id=ids[task.name], parent=ids[task.parent or ""])
    return ids


def _new(ctx: Ctx, plan: str, task: rules.PlannedTask, ids: Mapping[str, int]) -> PlannedTask:
    return PlannedTask(
        title=task.title,
        description=task.description,
        persona_id=task.persona,
        priority=task.priority,
        dependencies=[ids[other] for other in task.after],
        parent_task_id=ids.get(task.parent) if task.parent else None,
        target_worktree=task.worktree,
        run=task.run,
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


def _changed(tx: Tx, ctx: Ctx, proposal: _Proposal, ids: Mapping[str, int]) -> None:
    """Change pending tasks; old dependencies go before new ones come, for these may turn around."""
    new = {task.name: task for task in proposal.plan.tasks if task.name in proposal.diff.changed}
    for name, task in new.items():
        _set(tx, ctx, ids[name], task, ids)
    waited = {task.name: set(task.after) for task in proposal.found.tasks}
    for name, task in new.items():
        for other in sorted(waited[name] - set(task.after)):
            tx.run(graph.SQL.remove, task_id=ids[name], on=ids[other])
    for name, task in new.items():
        tx.run(graph.SQL.recount, task_id=ids[name])
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
        context_ref=task.context_ref,
        metadata=bounded_json(task.metadata, ctx.settings),
        max_retries=task.max_retries,
        lease_us=round(task.lease_seconds * SECOND),
        session=task.session,
        on_failure=task.on_failure,
        no_retry=json.dumps(task.no_retry),
    )
    worktree, session = task.worktree or "", task.session or ""
    tx.run(SQL.set_status, id=task_id, persona=persona, worktree=worktree, session=session, priority=task.priority)
    tx.run(SQL.set_parent, id=task_id, parent=ids[task.parent] if task.parent else None)


def _removed(tx: Tx, proposal: _Proposal) -> None:
    """Cancel what the plan no longer has, and let go of it: its name is free again."""
    ids = [proposal.found.rows[name]["id"] for name in proposal.diff.removed]
    for task_id in ids:
        tx.run(SQL.detach, id=task_id)
    graph.cancel(tx, [(task_id, f"removed from the plan {proposal.plan.plan}") for task_id in ids])


def _standing(tx: Reader, caller: Caller, name: str) -> _Standing:
    """A plan as its tasks stand, whether the caller may know or not."""
    plan = tx.one(SQL.find, name=name)
    rows = tx.all(SQL.tasks, plan=name)
    names = {row["id"]: row["name"] for row in rows}
    after: dict[int, list[str]] = {}
    for edge in tx.all(SQL.edges, plan=name):
        after.setdefault(edge["task_id"], []).append(names[edge["depends_on"]])
    board = (None, caller.session)
    return _Standing(
        exists=plan is not None,
        sha256=plan["sha256"] if plan else "",
        visible=caller.level is Level.OPERATOR or all(row["session_id"] in board for row in rows),
        rows={row["name"]: row for row in rows},
        tasks=[_planned(row, names.get(row["parent_id"]), after.get(row["id"], [])) for row in rows],
    )


def _planned(row: Row, parent: str | None, after: list[str]) -> rules.PlannedTask:
    return rules.PlannedTask(
        name=row["name"],
        title=row["title"],
        persona=row["persona_id"],
        description=row["description"],
        parent=parent,
        priority=row["priority"],
        worktree=row["target_worktree"],
        session=row["session_id"],
        after=after,
        on_failure=row["on_failure"],
        run=json.loads(row["run"]) if row["run"] else None,
        max_retries=row["max_retries"],
        no_retry=json.loads(row["no_retry"]),
        lease_seconds=max(row["lease_us"], 1) / SECOND,
        context_ref=row["context_ref"],
        metadata=json.loads(row["metadata"]),
    )


def _spared(task: rules.PlannedTask, caller: Caller, defaults: rules.Defaults) -> rules.PlannedTask:
    """A task without what goes without saying when this caller says it."""
    session = None if task.session == caller.session else task.session
    return defaults.spared(task.model_copy(update={"session": session}))


def _defaults(tx: Reader, ctx: Ctx) -> rules.Defaults:
    leases = {row["id"]: row["lease_us"] for row in tx.all(SQL.personas)}
    return rules.Defaults(
        max_retries=ctx.settings.max_retries,
        lease_seconds=ctx.settings.lease_seconds,
        persona_lease_seconds={persona: None if us is None else us / SECOND for persona, us in leases.items()},
    )


def _numbered(tx: Reader, plan: rules.Plan) -> rules.Plan:
    taken = {row["name"] for row in tx.all(SQL.names)}
    return rules.rename(plan, free_id(plan.plan, taken))
