"""What has become of a plan: what is done, what is merged, what failed and why, and what waits for what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.model import TaskState
from workbench.present.tables import StateCell
from workbench.rules.integration import WorktreeState

COMMIT_LENGTH = 12
REASON_LENGTH = 160
NO_COMMAND = "has no command"

Call = Callable[..., Mapping[str, Any]]
"""Runs an operation by its name, with named arguments, as the operator."""


@dataclass(frozen=True)
class TaskAccount:
    """A task, and what has become of it: where its work was merged, why it failed, or what it waits for."""

    id: int
    title: str
    status: TaskState
    state: StateCell
    worktree: str | None
    outcome: str
    seconds: float | None
    cost_usd: float | None


@dataclass(frozen=True)
class Account:
    """The account of a plan.

    Args:
        merged: the worktrees of the plan that are merged, and how, in words.
        waiting: the ids of approvals about its worktrees that wait for a decision.
        notes: why they wait, in a sentence each.
    """

    plan: str
    tasks: Sequence[TaskAccount]
    merged: Mapping[str, str]
    waiting: Sequence[int]
    notes: Sequence[str]

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
        """The worktrees of the plan that are not merged."""
        return [
            name for name in dict.fromkeys(task.worktree for task in self.tasks) if name and name not in self.merged
        ]

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
                task.id: {"state": str(task.state), "seconds": task.seconds, "cost_usd": task.cost_usd}
                for task in self.tasks
            },
            "failed": {task.id: task.outcome for task in self.tasks if task.status is TaskState.FAILED},
            "waiting": {task.id: task.outcome for task in self.tasks if task.id not in {*self.done, *self.failed}},
            "merged": dict(self.merged),
            "unmerged": self.unmerged,
            "approvals": list(self.waiting),
        }


def account_of(call: Call, plan: str) -> Account:
    """The account of a plan as it is now."""
    tasks = call("list_tasks", plan=plan, limit=500)["tasks"]
    places = {task["worktree"] for task in tasks if task["worktree"]}
    merged = {name: how for name, how in _merged(call).items() if name in places} if places else {}
    waiting = [
        approval
        for approval in call("list_approvals", status="pending", kind="integration")["approvals"]
        if approval["payload"]["worktree"] in places
    ]
    costs = {one["name"]: one["cost_usd"] for one in call("list_costs", by="task", plan=plan, days=36_500)["costs"]}
    return Account(
        plan=plan,
        tasks=[_task(call, task, merged, costs) for task in tasks],
        merged=merged,
        waiting=[approval["id"] for approval in waiting],
        notes=[_waits(approval) for approval in waiting],
    )


def _merged(call: Call) -> dict[str, str]:
    """The worktrees whose last use ended with a merge, and the commit it made; active ones are not merged."""
    active = {one["name"] for one in call("get_worktree_status")["worktrees"]}
    found: dict[str, str] = {}
    for one in call("list_closed_worktrees", limit=500)["worktrees"]:
        if one["name"] not in active and one["status"] == WorktreeState.INTEGRATED:
            commit = (one["integrated_commit"] or "")[:COMMIT_LENGTH]
            found.setdefault(one["name"], f"merged into {one['integration_target']} as {commit}")
    return found


def _task(
    call: Call, task: Mapping[str, Any], merged: Mapping[str, str], costs: Mapping[str, float | None]
) -> TaskAccount:
    whole = call("get_task", task_id=task["id"])
    state = StateCell.of(task["status"], task["blocked"], task["evidence"])
    status = TaskState(task["status"])
    ended = [one for one in whole["attempts"] if one["ended_at"]]
    took = [_at(one["ended_at"]) - _at(one["claimed_at"]) for one in ended]
    return TaskAccount(
        id=task["id"],
        title=task["title"],
        status=status,
        state=state,
        worktree=task["worktree"],
        outcome=_outcome(whole, merged),
        seconds=round(sum(took), 1) if took else None,
        cost_usd=costs.get(str(task["id"])),
    )


def _at(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _outcome(task: Mapping[str, Any], merged: Mapping[str, str]) -> str:
    match task["status"]:
        case TaskState.COMPLETED:
            return merged.get(task["worktree"], "not merged" if task["worktree"] else "")
        case TaskState.FAILED:
            return _reason(task["error_message"] or "it gave no reason")
        case TaskState.PENDING:
            if task["approval_id"]:
                return f"waits for your approval {task['approval_id']}"
            if task["blocked"]:
                return f"waits for {', '.join(map(str, task['blocked_by']))}"
            return "" if task["run"] else f"{NO_COMMAND}, so an agent of the persona {task['persona_id']} has to do it"
    return ""


def _reason(message: str) -> str:
    """The first line of an error, and the first explanation: what ended the attempt, and why."""
    first, _, rest = message.strip().partition("\n")
    why = [line.removeprefix("- ") for line in rest.splitlines() if line.startswith("- ")]
    text = " … ".join([first, *why[:1]])
    return text if len(text) <= REASON_LENGTH else f"{text[: REASON_LENGTH - 1]}…"


def _waits(approval: Mapping[str, Any]) -> str:
    payload = approval["payload"]
    return f"{payload['worktree']} waits for your approval {approval['id']} to be merged into {payload['target']}."
