"""Compares the text of a plan with its current tasks: what would change, and whether it may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput, Conflict, Hint, Refused
from workbench.model import Level, TaskState, Wire
from workbench.ops import Caller, Ctx
from workbench.rules.secrets.executed import as_given
from workbench.rules.tasks import plan as rules
from workbench.rules.tasks.plan import PlanDiff
from workbench.services.access.personas import require_persona
from workbench.services.tasks import checks
from workbench.services.tasks.creation import session_for
from workbench.services.tasks.plans.standing import PlanStanding, read_standing
from workbench.services.tasks.rows import is_own_name, require_own_row
from workbench.store.base import Reader


class PlanMade(Wire):
    """The ids of a plan's tasks by name, and what this call changed.

    `version` is that of its text now. `diff` is empty for a plan that was just created. `note` says who can do the new
    tasks that have no command, and whether a person decides first, about `approval_id`. `warnings` name the secrets in
    new and changed tasks, which stay in them, and closed worktrees of an updated plan.
    """

    plan: str
    version: str
    tasks: dict[str, int]
    worktrees: list[str]
    changed: bool
    diff: PlanDiff
    note: str | None = None
    warnings: list[str] = []
    approval_id: int | None = None


@dataclass(frozen=True)
class Proposal:
    """A plan with all defaults filled in, and what it would change."""

    plan: rules.Plan
    sha256: str
    standing: PlanStanding
    diff: PlanDiff

    @property
    def workplace(self) -> Mapping[str, Any]:
        """The keys of a workplace that it states."""
        return self.plan.workplace or {}

    @property
    def changes(self) -> bool:
        """Whether a plan that exists would change."""
        is_same = (self.workplace, self.plan.budget) == (self.standing.workplace, self.standing.budget)
        return bool(self.diff.text) or not is_same

    def trusted(self, caller: Caller, trust_workplace: bool) -> bool:
        """Whether what its workplace opens is trusted: by the operator, now or when the same was applied."""
        by_operator = trust_workplace and caller.level is Level.OPERATOR
        return by_operator or (self.standing.workplace_trusted and self.workplace == self.standing.workplace)

    def answer(self) -> PlanMade:
        """The answer if nothing is applied."""
        plan, changed = self.plan, self.changes or not self.standing.exists
        return PlanMade(
            plan=plan.plan,
            version=version_of(self.standing.sha256),
            tasks=self.standing.ids,
            worktrees=plan.worktrees,
            changed=changed,
            diff=self.diff,
        )


def version_of(sha256: str) -> str:
    """The version of a plan: the beginning of the hash of its text."""
    return sha256[:12]


def propose(tx: Reader, ctx: Ctx, plan: rules.Plan, defaults: rules.Defaults) -> Proposal:
    """What a plan would change.

    Raises:
        Conflict: ``PLAN_EXISTS`` (a plan that the caller does not see has this name).
        NotFound: ``SESSION_NOT_FOUND``. Refused: ``FORBIDDEN`` (another session).
    """
    standing = read_standing(tx, ctx.caller, plan.plan)
    if standing.visible:
        plan = rules.with_secrets(plan, standing.tasks)
        stored = dict(standing.workplace)
        stated = stored if plan.workplace is None else as_given(plan.workplace, stored)
        plan = plan.model_copy(update={"workplace": stated})
    sha256 = rules.digest(plan)
    if not standing.visible:
        raise Conflict("PLAN_EXISTS", f"A plan {plan.plan!r} already exists. Give this one another name.")
    if standing.sha256 == sha256:
        return Proposal(plan, sha256, standing, PlanDiff())
    completed = {name for name, row in standing.rows.items() if row["status"] == TaskState.COMPLETED}
    done = completed & {item.name for item in plan.ticked}
    filled = plan.model_copy(update={"tasks": _fill_in(tx, ctx, plan, done, standing, defaults)})
    failed = {name for name, row in standing.rows.items() if row["status"] == TaskState.FAILED}
    diff = rules.compare([task for task in standing.tasks if task.name not in done], filled.tasks, failed)
    return Proposal(filled, sha256, standing, diff)


def _fill_in(
    tx: Reader, ctx: Ctx, plan: rules.Plan, done: set[str], standing: PlanStanding, defaults: rules.Defaults
) -> list[rules.PlannedTask]:
    """The tasks with defaults filled in, and without dependencies on ticked items that never were tasks."""
    names = done | {task.name for task in plan.tasks}
    sessions = {
        ref: session_for(tx, ctx.caller, ref) for ref in {task.session for task in plan.tasks} if ref is not None
    }

    def settle(task: rules.PlannedTask) -> rules.PlannedTask:
        row = standing.rows.get(task.name)
        default_session = row["session_id"] if row else ctx.caller.session
        update: dict[str, Any] = {
            "after": [other for other in task.after if other in names],
            "parent": task.parent if task.parent in names else None,
            "session": sessions[task.session] if task.session is not None else default_session,
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
    plan, states = proposal.plan, {name: TaskState(row["status"]) for name, row in proposal.standing.rows.items()}
    lines = {task.name: task.line for task in plan.tasks} | {item.name: item.line for item in plan.ticked}
    if problems := rules.obstacles(proposal.diff, states, lines):
        raise Conflict("PLAN_CONFLICT", _refusal(plan, problems), problems=problems, diff=proposal.diff.text)
    if problems := rules.dead_ends(proposal.diff, plan.tasks, states, lines):
        dead = {name: proposal.standing.ids[name] for name in sorted({p["depends_on"] for p in problems})}
        named = ", ".join(f"{task_id} ({name})" for name, task_id in dead.items())
        text = (
            f"{_refusal(plan, problems)}\nRetry {named} first, or use `on_failure: block` (wait until it is retried) "
            "or `ignore`."
        )
        raise Conflict("DEPENDENCY_DEAD", text, dead=[*dead.values()], problems=problems, diff=proposal.diff.text)


def require_checks(tx: Reader, proposal: Proposal) -> None:
    """Refuse new and changed tasks that are to be checked, without a check.

    Raises:
        BadInput: ``NO_CHECK``.
    """
    for task in proposal.plan.tasks:
        if task.name in proposal.diff.added or task.name in proposal.diff.changed:
            try:
                checks.require_terms(tx, require_persona(tx, task.persona).id, task.done_when, task.check)
            except BadInput as error:
                raise error.with_message(f"Line {task.line}, {task.name}: {error.message}") from None


def require_version(proposal: Proposal, based_on: str | None) -> None:
    """Refuse a text that was made from another version than the plan has now, unless it says what the plan is already.

    Raises:
        Conflict: ``PLAN_CHANGED``.
    """
    now = proposal.standing.sha256
    if based_on is None or now in ("", proposal.sha256) or version_of(now) == based_on:
        return
    raise Conflict(
        "PLAN_CHANGED",
        f"The plan {proposal.plan.plan!r} was changed since version {based_on}: it is at {version_of(now)} now.",
        Hint("export_plan", "{} gives its text. Make your changes there."),
        version=version_of(now),
        diff=proposal.diff.text,
    )


def require_own(tx: Reader, caller: Caller, proposal: Proposal) -> None:
    """Refuse changes to another's plan, or to tasks in it that another added; the operator may change all.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    standing, diff = proposal.standing, proposal.diff
    if caller.level is Level.OPERATOR or not (standing.exists and proposal.changes):
        return
    if not is_own_name(tx, caller, standing.created_by):
        owner = standing.created_by
        raise Refused("FORBIDDEN", f"The plan {proposal.plan.plan!r} belongs to {owner}. Give yours another name.")
    for name in [*diff.changed, *diff.removed]:
        require_own_row(tx, caller, standing.ids[name])


def _refusal(plan: rules.Plan, problems: Sequence[Mapping[str, Any]]) -> str:
    lines = "\n".join(f"  {_place(p['line'])}: {p['reason']}" for p in problems[:20])
    return f"The plan {plan.plan!r} cannot be changed to match the text; nothing was changed.\n{lines}"


def _place(line: int | None) -> str:
    return "not in the text" if line is None else f"line {line}"
