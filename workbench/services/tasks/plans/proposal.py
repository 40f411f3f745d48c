"""What the text of a plan would change, compared with the tasks as they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import Conflict
from workbench.model import TaskState, Wire
from workbench.ops import Ctx
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.plan import PlanDiff
from workbench.services.tasks.creation import session_for
from workbench.services.tasks.plans.standing import Standing, read_standing
from workbench.store.base import Reader


class PlanMade(Wire):
    """The tasks of a plan, by the names they have in it, and whether and how they were changed just now.

    After a plan was created, `diff` is empty: everything is new.
    """

    plan: str
    tasks: dict[str, int]
    worktrees: list[str]
    changed: bool
    diff: PlanDiff


@dataclass(frozen=True)
class Proposal:
    """What a text says, with nothing left unsaid, and what it would change."""

    plan: rules.Plan
    sha256: str
    found: Standing
    diff: PlanDiff

    def answer(self) -> PlanMade:
        """What it comes to, as long as nothing is changed."""
        plan, changed = self.plan, bool(self.diff.text) or not self.found.exists
        return PlanMade(plan=plan.plan, tasks=self.found.ids, worktrees=plan.worktrees, changed=changed, diff=self.diff)


def propose(tx: Reader, ctx: Ctx, plan: rules.Plan, defaults: rules.Defaults) -> Proposal:
    """What a plan would change.

    Raises:
        Conflict: ``PLAN_EXISTS`` (out of the caller's sight).
        NotFound: ``SESSION_NOT_FOUND``. Refused: ``FORBIDDEN`` (another's session).
    """
    found, sha256 = read_standing(tx, ctx.caller, plan.plan), rules.digest(plan)
    if not found.visible:
        raise already_exists(plan, f"a plan {plan.plan!r}", "Please")
    if found.sha256 == sha256:
        return Proposal(plan, sha256, found, PlanDiff())
    done = {t.name for t in plan.ticked if t.name in found.rows and found.rows[t.name]["status"] == TaskState.COMPLETED}
    settled = plan.model_copy(update={"tasks": _settled(tx, ctx, plan, done, found, defaults)})
    diff = rules.compare([task for task in found.tasks if task.name not in done], settled.tasks)
    return Proposal(settled, sha256, found, diff)


def _settled(
    tx: Reader, ctx: Ctx, plan: rules.Plan, done: set[str], found: Standing, defaults: rules.Defaults
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


def require_changeable(proposal: Proposal) -> None:
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


def already_exists(plan: rules.Plan, what: str, otherwise: str) -> Conflict:
    return Conflict("PLAN_EXISTS", f"There is {what} already. {otherwise} give this one another name.")
