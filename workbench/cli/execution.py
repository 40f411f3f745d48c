"""`workbench run PLAN` carries out a plan, from worktrees to account; `workbench budgets` says what may be spent."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.account import account_table
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import NounGroup, Shown, pass_client
from workbench.errors import BadInput
from workbench.present.inert import inert_line

if TYPE_CHECKING:
    from workbench.execution.account import Call
    from workbench.execution.execution import Execution, Standing
    from workbench.rules.budgets import Budget

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
@click.option("--budget", metavar="AMOUNTS", default=None, help="What the plan may spend, such as 20usd,500k tokens.")
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
    from workbench.execution.carry_out import carry_out, only_one, record_of
    from workbench.execution.execution import Execution, Integrate
    from workbench.rules.budgets import parse

    client.require_operator("run")
    limits = None if budget is None else parse(budget)
    crew, is_over = staffing.parse(staff) if staff else (), _when(until)
    client.create_project()
    with connected(client.settings) as call, _ended_by_signals():
        name, text = _named(call, plan)
        with only_one(client.settings, name), _showing() as show:
            if text is not None:
                call("create_plan", text=text, update=True)
            if limits is not None:
                set_budget(call, name, limits)
            execution = Execution(call, name, crew, Integrate(integrate), record_of(client.settings, name))
            standing = carry_out(execution, show, is_over=is_over, goes_on=lambda now: _ask(execution, now))
        account = account_of(call, name)
    return account_table(account, standing)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have SIGTERM, and SIGHUP unless it is ignored, end the command as Ctrl-C does: with the agents it has started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ending = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in ending:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _named(call: Call, plan: str) -> tuple[str, str | None]:
    """The name of the plan, and its text if it is a file.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``. BadInput: ``PLAN_INVALID``.
    """
    if not Path(plan).is_file():
        call("export_plan", plan=plan)
        return plan, None
    try:
        text = Path(plan).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{plan} is not UTF-8 text: {error.reason}.") from None
    return str(call("create_plan", text=text, update=True, dry_run=True)["plan"]), text


def set_budget(call: Call, plan: str, budget: Budget) -> None:
    """Set what a plan may spend, unless the same was said before: it may have been raised since."""
    limits, scope = budget.model_dump(exclude_none=True), f"plan:{plan}"
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


@root.group(cls=NounGroup)
def budgets() -> None:
    """What the project, plans and tasks may spend."""
