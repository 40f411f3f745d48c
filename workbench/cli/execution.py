"""`workbench run PLAN` carries out a plan, from worktrees to account; `workbench budgets` says what may be spent."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import NounGroup, PartialFailure, Shown, counted, pass_client
from workbench.errors import BadInput
from workbench.present.inert import inert_line
from workbench.present.tables import Table

if TYPE_CHECKING:
    from workbench.execution.account import Account, Call
    from workbench.execution.execution import Execution, Standing

COLUMNS = ["task", "title", "state", "worktree", "took", "cost", "outcome"]
STATUS = {"completed": 0, "failed": 1, "questions": 3, "stuck": 3}
"""Exit statuses by verdict."""
ENDINGS = {
    "completed": "All tasks are completed.",
    "failed": "Tasks have failed, or were cancelled.",
    "questions": "Only your decisions are waited for.",
    "stuck": "Nobody is left to do what is open.",
    None: "The time is over.",
}
_ERASE = "\r\x1b[K"


@root.command()
@click.argument("plan", shell_complete=offers.plans)
@click.option("--staff", default="", metavar="PERSONA=N:PROFILE,…", help="Who works, such as implementer=2:claude.")
@click.option(
    "--integrate",
    type=click.Choice(["ask", "auto-if-checked"]),
    default="ask",
    show_default=True,
    help="Ask for each merge, or merge at once what is checked.",
)
@click.option(
    "--budget", metavar="AMOUNTS", default=None, help="What the plan may spend, such as 20usd,500k tokens,8h."
)
@click.option("--until", metavar="HH:MM", default=None, help="Stop then; run it again to go on.")
@pass_client
def run(client: OperatorClient, plan: str, staff: str, integrate: str, budget: str | None, until: str | None) -> Shown:
    """Carry out a plan: make its worktrees, start agents, wait, ask for the merges, and say what came of it.

    PLAN is a file, or the name of a plan that there is. Run again, it goes on with what is left. Without --staff, one
    worker for each worktree runs the commands of the tasks. Without a server it runs its own until the end.

    Its exit status is 0 if all tasks are completed, 1 if one has failed, 3 if nothing can go on.
    """
    from workbench.cli.sweeps.running import connected
    from workbench.execution import staff as staffing
    from workbench.execution.account import account_of
    from workbench.execution.carry_out import carry_out, only_one
    from workbench.execution.execution import Execution, Integrate
    from workbench.rules.budgets import parse

    client.require_operator("run")
    limits = None if budget is None else parse(budget)
    crew, is_over = staffing.parse(staff) if staff else (), _when(until)
    client.create_project()
    with connected(client.settings) as call:
        name = _made(call, plan)
        if limits is not None:
            set_budget(call, name, limits)
        execution = Execution(call, name, crew, Integrate(integrate))
        with only_one(client.settings, name), _showing() as show:
            standing = carry_out(execution, show, is_over=is_over, goes_on=lambda now: _ask(execution, now))
        account = account_of(call, name)
    return account_table(account, standing)


def _made(call: Call, plan: str) -> str:
    """The name of the plan, which is made or changed if it is a file.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``. BadInput: ``PLAN_INVALID``.
    """
    if not Path(plan).is_file():
        call("export_plan", plan=plan)
        return plan
    try:
        text = Path(plan).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{plan} is not UTF-8 text: {error.reason}.") from None
    return str(call("create_plan", text=text, update=True)["plan"])


def set_budget(call: Call, plan: str, limits: Mapping[str, Any]) -> None:
    """Set what a plan may spend, unless the same was said before: it may have been raised since."""
    scope = f"plan:{plan}"
    if not any(one["scope"] == scope and one["stated"] == limits for one in call("list_budgets")["budgets"]):
        call("set_budget", scope=scope, **limits)


def _when(until: str | None) -> Callable[[], bool]:
    """Whether a time of day is over that comes next after now.

    Raises:
        UsageError: it is no time of day.
    """
    if until is None:
        return lambda: False
    try:
        time = datetime.strptime(until, "%H:%M").time()
    except ValueError:
        raise click.UsageError(f"--until {until}: write a time of day, such as 07:00.") from None
    end = datetime.combine(datetime.now(), time)
    end += timedelta(days=1) if end <= datetime.now() else timedelta()
    return lambda: datetime.now() >= end


@contextmanager
def _showing() -> Iterator[Callable[[Standing], None]]:
    """Show the progress on standard error: one line that changes; in a pipe, a line for each change."""
    shown, is_terminal = "", sys.stderr.isatty()

    def show(standing: Standing) -> None:
        nonlocal shown
        line = inert_line(standing.line)
        if is_terminal:
            click.echo(f"{_ERASE}{line[: shutil.get_terminal_size().columns - 1]}", nl=False, err=True)
        elif line != shown:
            click.echo(line, err=True)
        shown = line

    try:
        yield show
    finally:
        if is_terminal:
            click.echo(_ERASE, nl=False, err=True)


def _ask(execution: Execution, standing: Standing) -> bool:
    """At a terminal, ask for the merges that wait; whether any was decided."""
    waiting = [(name, number) for name, number in execution.merges.items() if number in standing.questions]
    if not (waiting and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    click.echo(_ERASE, nl=False, err=True)
    for name, number in waiting:
        approval = execution.call("get_approval", approval_id=number)
        lines = [f"{name} into {approval['payload']['target']}", *approval["payload"].get("decides", ())]
        click.echo("\n  ".join(map(inert_line, lines)), err=True)
        if click.confirm(f"Merge {name} now?", err=True):
            execution.call("approve", approval_id=number)
            return True
    return False


def account_table(account: Account, standing: Standing) -> Table:
    """What has become of a plan, task by task, and what to do now."""
    rows = [
        [task.id, task.title, task.state, task.worktree, _took(task.seconds), _cost(task.cost_usd), task.outcome]
        for task in account.tasks
    ]
    verdict = None if standing.verdict is None else str(standing.verdict)
    notes = [ENDINGS[verdict], *standing.notes, *account.notes, *_next(account, standing)]
    if account.cost_usd is not None:
        notes.append(f"It has cost {_cost(account.cost_usd)}, as far as that is known.")
    data = {"plan": account.plan, "verdict": verdict, **account.as_data()}
    common: dict[str, Any] = {"data": data, "note": "\n".join(notes), "lead": account.headline}
    status = 3 if verdict is None else STATUS[verdict]
    if status == 0:
        return Table(COLUMNS, rows, "It has no tasks.", **common)
    return PartialFailure(COLUMNS, rows, "It has no tasks.", **common, status=status)


def _next(account: Account, standing: Standing) -> list[str]:
    """What to do now: a sentence and a command each."""
    steps = [f"`workbench approve {number}` merges it." for number in account.waiting[:3]]
    others = [number for number in standing.questions if number not in account.waiting]
    if others:
        steps.append(f"{counted(len(others), 'other question')} for you: `workbench approvals`.")
    if account.failed:
        steps.append(f"`workbench task {account.failed[0]}` shows why it failed; then run this again.")
    return steps


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _cost(usd: float | None) -> str:
    return "" if usd is None else f"${usd:.2f}" if usd >= 0.01 else f"${usd:.4f}"


@root.group(cls=NounGroup)
def budgets() -> None:
    """What the project, plans, sessions, personas, runs and tasks may spend."""
