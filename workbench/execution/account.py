"""What has become of a plan: what is done, what is merged, what failed and why, and what waits for what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.model import TaskState
from workbench.present.tables import StateCell
from workbench.rules.integration import WorktreeState

COMMIT_LENGTH = 12
BATCH = 100
REASON_LENGTH = 160
CONFLICTS_SHOWN = 5
NO_COMMAND = "has no command"

Call = Callable[..., Mapping[str, Any]]
"""Runs an operation by its name, with named arguments, as the operator."""


@dataclass(frozen=True)
class TaskAccount:
    """A task, and what has become of it: where its work was merged, why it failed, or what it waits for.

    Args:
        check: what became of its last check; empty without one.
        next: the command that brings it on, as it is typed; empty if it needs none.
    """

    id: int
    title: str
    status: TaskState
    state: StateCell
    worktree: str | None
    attempts: int
    check: str
    outcome: str
    next: str
    seconds: float | None
    cost_usd: float | None


@dataclass(frozen=True)
class Account:
    """The account of a plan.

    Args:
        merged: the worktrees of the plan that are merged, and how, in words.
        empty: those that have nothing to merge.
        waiting: the ids of approvals about its worktrees that wait for a decision.
        ready: those of them that nothing is in the way of.
        pending: all approvals that wait for a decision, by id.
        notes: why they wait, in a sentence each.
        hours: the rows of `get_plan_hours`.
    """

    plan: str
    tasks: Sequence[TaskAccount]
    merged: Mapping[str, str]
    empty: Collection[str]
    waiting: Sequence[int]
    ready: Sequence[int]
    pending: Mapping[int, Mapping[str, Any]]
    notes: Sequence[str]
    hours: Sequence[Mapping[str, Any]]

    @property
    def done(self) -> list[int]:
        """The ids of the completed tasks."""
        return [task.id for task in self.tasks if task.status is TaskState.COMPLETED]

    @property
    def failed(self) -> list[int]:
        """The ids of the failed tasks."""
        return [task.id for task in self.tasks if task.status is TaskState.FAILED]

    @property
    def for_agents(self) -> list[int]:
        """The ids of the tasks that wait for an agent, because they have no command."""
        return [task.id for task in self.tasks if task.outcome.startswith(NO_COMMAND)]

    @property
    def unmerged(self) -> list[str]:
        """The worktrees of the plan that are not merged, and have something to merge."""
        names = dict.fromkeys(task.worktree for task in self.tasks if task.worktree)
        return [name for name in names if name not in self.merged and name not in self.empty]

    @property
    def is_done(self) -> bool:
        """Whether all tasks are completed and all worktrees merged."""
        return len(self.done) == len(self.tasks) and not self.unmerged

    @property
    def headline(self) -> str:
        """How many tasks are done and failed, and which worktrees are merged, in one sentence."""
        parts = [f"{len(self.done)} of {len(self.tasks)} tasks done"]
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        others = len(self.tasks) - len(self.done) - len(self.failed)
        parts += [f"{others} not done"] if others else []
        parts += [f"merged: {', '.join(self.merged)}"] if self.merged else []
        parts += [f"not merged: {', '.join(self.unmerged)}"] if self.unmerged else []
        return f"Plan {self.plan}: {'; '.join(parts)}."

    @property
    def rows(self) -> list[list[Any]]:
        """The tasks as rows of a table."""
        return [[task.id, task.title, task.state, task.worktree, task.outcome] for task in self.tasks]

    @property
    def cost_usd(self) -> float | None:
        """What the tasks cost together, as far as it is known; None: nothing is known to have cost anything."""
        known = [task.cost_usd for task in self.tasks if task.cost_usd is not None]
        return sum(known) if known else None

    def as_data(self) -> dict[str, Any]:
        """The account for programs."""
        return {
            "done": self.done,
            "tasks": {
                task.id: {
                    "state": str(task.state),
                    "attempts": task.attempts,
                    "check": task.check,
                    "seconds": task.seconds,
                    "cost_usd": task.cost_usd,
                    "next": task.next,
                }
                for task in self.tasks
            },
            "failed": {task.id: task.outcome for task in self.tasks if task.status is TaskState.FAILED},
            "waiting": {task.id: task.outcome for task in self.tasks if task.id not in {*self.done, *self.failed}},
            "merged": dict(self.merged),
            "unmerged": self.unmerged,
            "approvals": list(self.waiting),
            "hours": list(self.hours),
        }


def account_of(call: Call, plan: str) -> Account:
    """The account of a plan as it is now.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``.
    """
    hours = call("get_plan_hours", plan=plan)["hours"]
    tasks = _tasks(call, plan)
    places = {task["worktree"] for task in tasks if task["worktree"]}
    active = call("get_worktree_status")["worktrees"] if places else []
    merged = {name: how for name, how in _merged(call, active).items() if name in places} if places else {}
    empty = {one["name"] for one in active if one["name"] in places and not one["ahead"] and not one["dirty"]}
    pending = call("list_approvals", status="pending", limit=500)["approvals"]
    waiting = [one for one in pending if one["kind"] == "integration" and one["payload"]["worktree"] in places]
    costs = {one["name"]: one["cost_usd"] for one in call("list_costs", by="task", plan=plan, days=36_500)["costs"]}
    budgets = {one["scope"]: one["waiting"] for one in call("list_budgets")["budgets"]}
    questions = _Questions(plan, pending, budgets)
    return Account(
        plan=plan,
        tasks=[_task(task, merged | dict.fromkeys(empty, "nothing to merge"), costs, questions) for task in tasks],
        merged=merged,
        empty=empty,
        waiting=[approval["id"] for approval in waiting],
        ready=[approval["id"] for approval in waiting if not _is_refused(approval["payload"])],
        pending={approval["id"]: approval for approval in pending},
        notes=[_waits(approval) for approval in waiting],
        hours=hours,
    )


def _tasks(call: Call, plan: str) -> list[Mapping[str, Any]]:
    """The tasks of a plan, in full."""
    tasks: list[Mapping[str, Any]] = []
    cursor: Any = None
    while True:
        page = call("list_tasks", plan=plan, limit=BATCH, **({"cursor": cursor} if cursor else {}))
        tasks += call("get_tasks", task_ids=[task["id"] for task in page["tasks"]])["tasks"]
        cursor = page["next_cursor"]
        if cursor is None:
            return tasks


def _merged(call: Call, active: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The worktrees whose last use ended with a merge, and the commit it made; active ones are not merged."""
    in_use = {one["name"] for one in active}
    found: dict[str, str] = {}
    for one in call("list_closed_worktrees", limit=500)["worktrees"]:
        if one["name"] not in in_use and one["status"] == WorktreeState.INTEGRATED:
            commit = (one["integrated_commit"] or "")[:COMMIT_LENGTH]
            found.setdefault(one["name"], f"merged into {one['integration_target']} as {commit}")
    return found


@dataclass(frozen=True)
class _Questions:
    """What waits for the person, and which task waits for it."""

    plan: str
    pending: Sequence[Mapping[str, Any]]
    budgets: Mapping[str, Sequence[int]]

    def command(self, task: Mapping[str, Any], *, is_merged: bool) -> str:
        """The command that brings a task on; empty if it needs none, or waits for another task."""
        match task["status"]:
            case TaskState.FAILED | TaskState.CANCELLED:
                return f"workbench retry {task['id']}"
            case TaskState.COMPLETED if task["worktree"] is None or is_merged:
                return ""
            case TaskState.COMPLETED:
                name = task["worktree"]
                if self._asked("integration", lambda payload: payload["worktree"] == name and payload["conflicts"]):
                    return f"workbench worktrees resolve {name}"
                asked = self._asked("integration", lambda payload: payload["worktree"] == name)
                return f"workbench approve {asked}" if asked else f"workbench integrate {name}"
            case TaskState.PENDING if task["approval_id"]:
                return f"workbench approve {task['approval_id']}"
            case TaskState.PENDING:
                return "" if task["blocked"] else self._of_pending(task)
        asked = self._asked("agent_question", lambda payload: payload.get("task_id") == task["id"])
        return f"workbench answer {asked}" if asked else f"workbench logs {task['assigned_agent_id']}"

    def _of_pending(self, task: Mapping[str, Any]) -> str:
        used_up = {scope for scope, waiting in self.budgets.items() if task["id"] in waiting}
        held = {attempt["agent_id"] for attempt in task["attempts"]}
        asked = self._asked("budget", lambda payload: payload["scope"] in used_up) or self._asked(
            "failure",
            lambda payload: (
                payload["scope"].removeprefix("agent:") in held
                or any(one[0] == task["id"] for one in payload["attempts"])
            ),
        )
        if asked:
            return f"workbench approve {asked}"
        if task["waits_for"]:
            return "workbench resources"
        staff = "" if task["run"] is not None else f" --staff {task['persona_id']}=1:claude"
        return f"workbench run {self.plan}{staff}"

    def _asked(self, kind: str, concerns: Callable[[Mapping[str, Any]], bool]) -> int | None:
        return next((one["id"] for one in self.pending if one["kind"] == kind and concerns(one["payload"])), None)


def _task(
    task: Mapping[str, Any], merged: Mapping[str, str], costs: Mapping[str, float | None], questions: _Questions
) -> TaskAccount:
    ended = [one for one in task["attempts"] if one["ended_at"]]
    took = [_at(one["ended_at"]) - _at(one["claimed_at"]) for one in ended]
    return TaskAccount(
        id=task["id"],
        title=task["title"],
        status=TaskState(task["status"]),
        state=StateCell.of(task["status"], task["blocked"], task["evidence"]),
        worktree=task["worktree"],
        attempts=len(task["attempts"]),
        check=_check(task["attempts"]),
        outcome=_outcome(task, merged),
        next=questions.command(task, is_merged=task["worktree"] in merged),
        seconds=round(sum(took), 1) if took else None,
        cost_usd=costs.get(str(task["id"])),
    )


def _check(attempts: Sequence[Mapping[str, Any]]) -> str:
    """What became of the last check of a task's attempts."""
    checks = [one["check"] for one in attempts if one["check"]]
    failed = sum(one["state"] == "failed" for one in checks)
    state = checks[-1]["state"] if checks else ""
    return f"{state} after {failed} failed" if failed and state != "failed" else state


def _at(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _outcome(task: Mapping[str, Any], merged: Mapping[str, str]) -> str:
    error = _reason(task["error_message"]) if task["error_message"] else ""
    match task["status"]:
        case TaskState.COMPLETED:
            return merged.get(task["worktree"], "not merged" if task["worktree"] else "")
        case TaskState.FAILED:
            return error or "it gave no reason"
        case TaskState.PENDING if task["approval_id"]:
            return f"waits for your approval {task['approval_id']}"
        case TaskState.PENDING if task["blocked"]:
            return f"waits for {', '.join(map(str, task['blocked_by']))}"
        case TaskState.PENDING if task["run"] is None and not task["attempts"]:
            return f"{NO_COMMAND}, so an agent of the persona {task['persona_id']} has to do it"
        case TaskState.PENDING:
            return f"to be tried again: {error}" if error else ""
        case TaskState.CANCELLED:
            return error
    return f"{task['assigned_agent_id']} is at it"


def _reason(message: str) -> str:
    """The first line of an error, and the first explanation: what ended the attempt, and why."""
    first, _, rest = message.strip().partition("\n")
    why = [line.removeprefix("- ") for line in rest.splitlines() if line.startswith("- ")]
    text = " … ".join([first, *why[:1]])
    return text if len(text) <= REASON_LENGTH else f"{text[: REASON_LENGTH - 1]}…"


def _is_refused(payload: Mapping[str, Any]) -> bool:
    return bool(payload["refused"] or payload["conflicts"])


def _waits(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    if payload["refused"]:
        return f"{payload['worktree']} cannot be merged as it is. {payload['refused']['message']}"
    if payload["conflicts"]:
        files = ", ".join(payload["conflicts"][:CONFLICTS_SHOWN])
        return f"{payload['worktree']} cannot be merged as it is. It and {payload['target']} both changed {files}."
    return f"{payload['worktree']} waits for your approval {approval['id']} to be merged into {payload['target']}."
