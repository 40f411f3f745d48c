"""Compares the text of a plan with its current tasks: what would change, and whether it may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import Conflict, Refused
from workbench.model import Level, TaskState, Wire
from workbench.ops import Caller, Ctx
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.plan import PlanDiff
from workbench.services.tasks.creation import session_for
from workbench.services.tasks.plans.standing import PlanStanding, read_standing
from workbench.services.tasks.rows import is_own_name, require_own_row
from workbench.store.base import Reader


class PlanMade(Wire):
    """The ids of a plan's tasks by name, and what this call changed.

    `diff` is empty for a plan that was just created. `note` says who can do the new tasks that have no command, and
    `warnings` name the secrets in new and changed tasks, which stay in them.
    """

    plan: str
    tasks: dict[str, int]
    worktrees: list[str]
    changed: bool
    diff: PlanDiff
    note: str | None = None
    warnings: list[str] = []


@dataclass(frozen=True)
class Proposal:
    """A plan with all defaults filled in, and what it would change."""

    plan: rules.Plan
    sha256: str
    found: PlanStanding
    diff: PlanDiff

    def answer(self) -> PlanMade:
        """The answer if nothing is applied."""
        plan, changed = self.plan, bool(self.diff.text) or not self.found.exists
        return PlanMade(plan=plan.plan, tasks=self.found.ids, worktrees=plan.worktrees, changed=changed, diff=self.diff)


def propose(tx: Reader, ctx: Ctx, plan: rules.Plan, defaults: rules.Defaults) -> Proposal:
    """What a plan would change.

    Raises:
        Conflict: ``PLAN_EXISTS`` (a plan that the caller does not see has this name).
        NotFound: ``SESSION_NOT_FOUND``. Refused: ``FORBIDDEN`` (another session).
    """
    found = read_standing(tx, ctx.caller, plan.plan)
    if found.visible:
        plan = rules.with_secrets(plan, found.tasks)
    sha256 = rules.digest(plan)
    if not found.visible:
        raise already_exists(f"A plan {plan.plan!r}")
    if found.sha256 == sha256:
        return Proposal(plan, sha256, found, PlanDiff())
    done = {t.name for t in plan.ticked if t.name in found.rows and found.rows[t.name]["status"] == TaskState.COMPLETED}
    settled = plan.model_copy(update={"tasks": _settled(tx, ctx, plan, done, found, defaults)})
    failed = {name for name, row in found.rows.items() if row["status"] == TaskState.FAILED}
    diff = rules.compare([task for task in found.tasks if task.name not in done], settled.tasks, failed)
    return Proposal(settled, sha256, found, diff)


def _settled(
    tx: Reader, ctx: Ctx, plan: rules.Plan, done: set[str], found: PlanStanding, defaults: rules.Defaults
) -> list[rules.PlannedTask]:
    """The tasks with defaults filled in, and without dependencies on ticked items that never were tasks."""
    known = done | {task.name for task in plan.tasks}
    named = {ref: session_for(tx, ctx.caller, ref) for ref in {task.session for task in plan.tasks} if ref is not None}

    def settle(task: rules.PlannedTask) -> rules.PlannedTask:
        row = found.rows.get(task.name)
        default_session = row["session_id"] if row else ctx.caller.session
        update: dict[str, Any] = {
            "after": [other for other in task.after if other in known],
            "parent": task.parent if task.parent in known else None,
            "session": named[task.session] if task.session is not None else default_session,
        }
        if row and row["status"] != TaskState.PENDING:
            update["priority"] = row["priority"]  # it no longer matters, so a difference is not a change
        return defaults.filled(task.model_copy(update=update))

    return [settle(task) for task in plan.tasks]


def require_changeable(proposal: Proposal) -> None:
    """Refuse changes to tasks that have begun, and new dependencies that could never be met.

    Raises:
        Conflict: ``PLAN_CONFLICT``, ``DEPENDENCY_DEAD``; `details.problems` has line (null if the task is not in the
            text), task and reason.
    """
    plan, states = proposal.plan, {name: TaskState(row["status"]) for name, row in proposal.found.rows.items()}
    lines = {task.name: task.line for task in plan.tasks} | {item.name: item.line for item in plan.ticked}
    if problems := rules.obstacles(proposal.diff, states, lines):
        raise Conflict("PLAN_CONFLICT", _refusal(plan, problems), problems=problems, diff=proposal.diff.text)
    if problems := rules.dead_ends(proposal.diff, plan.tasks, states, lines):
        dead = {name: proposal.found.ids[name] for name in sorted({p["depends_on"] for p in problems})}
        named = ", ".join(f"{task_id} ({name})" for name, task_id in dead.items())
        text = (
            f"{_refusal(plan, problems)}\nRetry {named} first, or use `on_failure: block` (wait until it is retried) "
            "or `ignore`."
        )
        raise Conflict("DEPENDENCY_DEAD", text, dead=[*dead.values()], problems=problems, diff=proposal.diff.text)


def require_own(tx: Reader, caller: Caller, proposal: Proposal) -> None:
    """Refuse changes to another's plan, or to tasks in it that another added; the operator may change all.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    found, diff = proposal.found, proposal.diff
    if caller.level is Level.OPERATOR or not (found.exists and diff.text):
        return
    if not is_own_name(tx, caller, found.created_by):
        owner = found.created_by
        raise Refused("FORBIDDEN", f"The plan {proposal.plan.plan!r} belongs to {owner}. Give yours another name.")
    for name in [*diff.changed, *diff.removed]:
        require_own_row(tx, caller, found.ids[name])


def _refusal(plan: rules.Plan, problems: Sequence[Mapping[str, Any]]) -> str:
    listed = "\n".join(f"  {_place(p['line'])}: {p['reason']}" for p in problems[:20])
    return f"The plan {plan.plan!r} cannot be changed to match the text; nothing was changed.\n{listed}"


def _place(line: int | None) -> str:
    return "not in the text" if line is None else f"line {line}"


def already_exists(what: str, advice: str = "") -> Conflict:
    return Conflict("PLAN_EXISTS", f"{what} already exists. Give this one another name{advice}.")
