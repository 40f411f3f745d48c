"""`workbench account PLAN` says what has become of a plan by task and by hour; `workbench run` ends with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.approvals import how_to_decide
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import PartialFailure, Shown, counted, pass_client
from workbench.execution.account import account_of
from workbench.present.tables import CellLines, CommandCell, Table, TablePage

if TYPE_CHECKING:
    from workbench.execution.account import Account
    from workbench.execution.execution import Standing

COLUMNS = ["task", "title", "state", "worktree", "attempts", "check", "took", "cost", "outcome", "next"]
HOUR_COLUMNS = ["from", "until", "worked on", "why not", "happened"]
STATUS = {"completed": 0, "failed": 1, "questions": 3, "stuck": 3}
"""Exit statuses by verdict."""
ENDINGS = {
    "completed": "All tasks are completed.",
    "failed": "Tasks have failed, or were cancelled.",
    "questions": "Only your decisions are waited for.",
    "stuck": "Nobody is left to do what is open.",
    None: "The time is over.",
}
NAMED = 10
"""Questions that are named at most."""
UNEXPLAINED = "agents ran, and none had a task of this plan"


@root.command()
@click.argument("plan", shell_complete=offers.plans)
@pass_client
def account(client: OperatorClient, plan: str) -> Shown:
    """Say what has become of a plan: its tasks with their outcomes, what waits for what, and what happened when.

    The hours are those since work began, at most the last 24 before the plan ended, or now.
    """
    return account_page(account_of(client.call, plan))


def account_page(account: Account) -> TablePage:
    """What has become of a plan, task by task and hour by hour."""
    tasks = Table(COLUMNS, _rows(account), "It has no tasks.", note="\n".join(account.notes), lead=account.headline)
    return TablePage([("", tasks), ("Hours", hours_table(account.hours))], {"plan": account.plan, **account.as_data()})


def hours_table(hours: Sequence[Mapping[str, Any]]) -> Table:
    """What was worked on when, why at other times nothing was, and what happened."""
    return Table(HOUR_COLUMNS, [_hour(hour) for hour in hours], "Work has not begun.", hours)


def account_table(account: Account, standing: Standing, expected: Mapping[str, Any]) -> Table:
    """What has become of a plan when its execution ends, task by task, and what to do now.

    Args:
        expected: what was estimated before it began, for programs.
    """
    verdict = None if standing.verdict is None else str(standing.verdict)
    notes = [ENDINGS[verdict], *standing.notes, *account.notes, *_next(account, standing)]
    if account.cost_usd is not None:
        notes.append(f"It has cost {_cost(account.cost_usd)}, as far as that is known.")
    notes.append(f"`workbench account {account.plan}` says what happened when.")
    data = {"plan": account.plan, "verdict": verdict, **account.as_data(), "expected": expected}
    common: dict[str, Any] = {"data": data, "note": "\n".join(notes), "lead": account.headline}
    status = 3 if verdict is None else STATUS[verdict]
    if status == 0:
        return Table(COLUMNS, _rows(account), "It has no tasks.", **common)
    return PartialFailure(COLUMNS, _rows(account), "It has no tasks.", **common, status=status)


def _rows(account: Account) -> list[list[Any]]:
    return [
        [
            *(task.id, task.title, task.state, task.worktree, task.attempts, task.check),
            *(_took(task.seconds), _cost(task.cost_usd), task.outcome, CommandCell(task.next and f"`{task.next}`")),
        ]
        for task in account.tasks
    ]


def _hour(hour: Mapping[str, Any]) -> list[Any]:
    worked = f"{', '.join(map(str, hour['tasks']))} ({_took(hour['worked_seconds'])})" if hour["tasks"] else ""
    idle = [
        *hour["idle"],
        *([f"{UNEXPLAINED} ({_took(hour['unexplained_seconds'])})"] if hour["unexplained_seconds"] else []),
    ]
    return [hour["start"], hour["end"], worked, CellLines("\n".join(idle)), CellLines("\n".join(hour["happened"]))]


def _next(account: Account, standing: Standing) -> list[str]:
    """What to do now: a sentence and a command each."""
    numbers = dict.fromkeys([*account.ready, *(one for one in standing.questions if one not in account.waiting)])
    questions = [account.pending[number] for number in numbers if number in account.pending]
    steps = [how_to_decide(question) for question in questions[:NAMED]]
    if (others := len(questions) - NAMED) > 0:
        steps.append(f"{counted(others, 'other question')} for you: `workbench approvals`.")
    if account.failed:
        steps.append(f"`workbench task {account.failed[0]}` shows why it failed; then run this again.")
    return steps


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _cost(usd: float | None) -> str:
    return "" if usd is None else f"${usd:.2f}" if usd >= 0.01 else f"${usd:.4f}"
