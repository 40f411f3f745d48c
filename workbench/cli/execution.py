"""`workbench run PLAN` carries out a plan, from worktrees to account; `workbench budgets` says what may be spent."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.account import account_table
from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.output import Note, NounGroup, PartialFailure, Shown, pass_client
from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.present.inert import inert_line
from workbench.present.tables import Table, plain
from workbench.rules.schedules import MOMENT, check_times, coming

if TYPE_CHECKING:
    from workbench.execution.account import Call
    from workbench.execution.execution import Execution, Standing

OUTCOME_LENGTH = 500
"""Characters of an error that is noted."""
BAR_LENGTH = 20
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
@click.option("--partly", is_flag=True, help="Leave what nobody is there to do, instead of refusing to begin.")
@click.option("--until", metavar="HH:MM", default=None, help="Stop then; run it again to go on.")
@click.option("--at", metavar="HH:MM", default=None, help="Have the server begin it then, local time.")
@click.option("--every", metavar="INTERVAL", default=None, help="day, weekday, or hours such as 6h: begin it again.")
@click.option(
    "--missed",
    type=click.Choice(["run", "skip"]),
    default="run",
    show_default=True,
    help="A start that was missed is made up for once, or left out.",
)
@click.option("--scheduled", is_flag=True, hidden=True, help="The server has started this.")
@pass_client
def run(
    client: OperatorClient, plan: str, at: str | None, every: str | None, missed: str, scheduled: bool, **options: Any
) -> Shown:
    """Carry out a plan: make its worktrees, start agents, wait, ask for the merges, and say what came of it.

    PLAN is a file, or the name of a plan that there is. Run again, it goes on with what is left. Without --staff, one
    worker for each worktree runs the commands of the tasks. Without a server it runs its own until the end. With --at
    or --every, the server does this later, see `workbench schedules`.

    Its exit status is 0 if all tasks are completed, 1 if one has failed, 3 if nothing can go on.
    """
    from workbench.system.interpreter import termination_interrupts

    client.require_operator("run")
    if at is not None or every is not None:
        return _scheduled(client, plan, {"at": at, "every": every, "missed": missed, **options})
    with termination_interrupts():
        return _carried_out(client, plan, scheduled=scheduled, **options)


def _scheduled(client: OperatorClient, plan: str, options: Mapping[str, Any]) -> Note:
    """Store when a plan is carried out, and say what starts it; refused now without those who are needed then."""
    from workbench.execution.execution import Execution
    from workbench.rules.budgets import parse
    from workbench.rules.execution import parse_staff

    crew = parse_staff(options["staff"]) if options["staff"] else ()
    check_times(options["at"], options["until"], every=options["every"])
    if options["budget"] is not None:
        parse(options["budget"])
    client.create_project()
    given = {name: value for name, value in options.items() if value is not None}
    name, text = _named(client.call, plan)
    if text is not None:
        _make(client.call, text)
    Execution(client.call, name, crew, partly=options["partly"]).require_staff()
    schedule = client.call("schedule_plan", plan=name, **given)
    again = f", then every {schedule['every']}" if schedule["every"] else ""
    says = f"The plan {schedule['plan']} is carried out at {plain(schedule['next_at'])}{again}, by the server."
    if client.find_server() is None:
        says += " No server runs: `workbench start --detach --on-boot` starts one, also when the machine starts."
    return Note(f"{says} `workbench schedules` shows what came of it.", schedule)


def _carried_out(
    client: OperatorClient,
    plan: str,
    *,
    scheduled: bool,
    staff: str,
    integrate: str,
    budget: str | None,
    partly: bool,
    until: str | None,
) -> Table:
    from workbench.execution.account import account_of
    from workbench.execution.carry_out import carry_out, only_one, record_of
    from workbench.execution.execution import Execution
    from workbench.rules.budgets import parse
    from workbench.rules.execution import Integrate, as_text, parse_staff
    from workbench.shells.meanwhile import connected
    from workbench.trust.withheld import notice

    limits = None if budget is None else parse(budget)
    crew, is_over = parse_staff(staff) if staff else (), _when(until)
    client.create_project()
    if untrusted := notice(client.settings.project):
        click.echo(untrusted, err=True)
    with connected(client.settings) as call, _noting_end(call, plan if scheduled else None) as note:
        name, text = (plan, None) if scheduled else _named(call, plan)  # a file of that name may be anyone's
        with only_one(client.settings, name):
            if text is not None:
                _make(call, text)
            if limits is not None:
                set_budget(call, name, limits)
            execution = Execution(call, name, crew, Integrate(integrate), partly, record_of(client.settings, name))
            _require_staff(execution)
            expected = call("estimate_costs", plan=name, staff=as_text(execution.staff))
            click.echo(inert_line(expected["sentence"]), err=True)
            with showing() as show:
                standing = carry_out(execution, show, is_over=is_over, goes_on=lambda now: _ask(execution, now))
        account = account_of(call, name)
        table = account_table(account, standing, expected)
        note(table, account.headline)
    return table


@contextmanager
def _noting_end(call: Call, plan: str | None) -> Iterator[Callable[[Table, str], None]]:
    """Have it noted what came of the execution of a plan that was scheduled; None: of none.

    What is interrupted leaves no note: the server starts it again.
    """

    def note(table: Table, outcome: str) -> None:
        status = table.status if isinstance(table, PartialFailure) else 0
        if plan is not None:
            call("note_schedule_end", plan=plan, status=status, outcome=outcome)

    try:
        yield note
    except WorkbenchError as error:
        if plan is not None:
            call("note_schedule_end", plan=plan, status=1, outcome=f"{error.code}: {error.message}"[:OUTCOME_LENGTH])
        raise


def _require_staff(execution: Execution) -> None:
    """Refuse to begin without staff; at a terminal, ask who works.

    Raises:
        WorkbenchError: see `Execution.require_staff`.
    """
    from workbench.rules.execution import Staff

    while True:
        try:
            return execution.require_staff()
        except BadInput as error:
            if error.code != "NO_STAFF" or not _is_attended():
                raise
            click.echo(inert_line(error.message.partition(" Say who")[0]), err=True)
            for persona in error.details["personas"]:
                question = f"With which profile of `workbench profiles` does the persona {persona} work?"
                profile = click.prompt(inert_line(question), default="claude", err=True)
                others = [one for one in execution.staff if one.persona != persona]
                execution.staff = [*others, Staff(persona, 1, profile)]


def _is_attended() -> bool:
    """Whether somebody is at the terminal who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _named(call: Call, plan: str) -> tuple[str, str | None]:
    """The name of the plan, and its text if it is a file.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``. BadInput: ``PLAN_INVALID``.
    """
    if not Path(plan).is_file():
        try:
            call("export_plan", plan=plan)
        except NotFound as error:
            raise NotFound(error.code, f"There is no file and no plan {plan!r}.", error.hint) from None
        return plan, None
    try:
        text = Path(plan).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("PLAN_INVALID", f"{plan} is not UTF-8 text: {error.reason}.") from None
    return str(call("create_plan", text=text, update=True, dry_run=True)["plan"]), text


def _make(call: Call, text: str) -> None:
    """Make the plan, or change it to the text, and say what is withheld from it or missing."""
    for warning in call("create_plan", text=text, update=True)["warnings"]:
        click.echo(inert_line(warning), err=True)


def set_budget(call: Call, plan: str, limits: Mapping[str, Any]) -> None:
    """Set what a plan may spend, unless the same was said before: it may have been raised since."""
    scope = f"plan:{plan}"
    if not any(one["scope"] == scope and one["stated"] == limits for one in call("list_budgets")["budgets"]):
        call("set_budget", scope=scope, **limits)


def _when(until: str | None) -> Callable[[], bool]:
    """Whether a time of day is over that comes next after now; also that of a day, as the server gives it.

    Raises:
        BadInput: ``BAD_SCHEDULE``.
    """
    if until is None:
        return lambda: False
    try:
        end = datetime.strptime(until, MOMENT).timestamp()
    except ValueError:
        end = coming(until, time.time())
    return lambda: time.time() >= end


@contextmanager
def showing() -> Iterator[Callable[[Standing], None]]:
    """Show the progress on standard error: a bar and a line that change, the line alone where both do not fit; where
    nothing can be erased, a line for each change."""
    shown, begun, is_live = "", time.monotonic(), sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(standing: Standing) -> None:
        nonlocal shown
        line = inert_line(standing.line)
        if is_live:
            columns = shutil.get_terminal_size().columns - 1
            whole = f"{_bar(standing)} {line}, {(time.monotonic() - begun) / 60:.0f} min"
            click.echo(f"{_ERASE}{whole if len(whole) <= columns else line[:columns]}", nl=False, err=True)
        elif line != shown:
            click.echo(line, err=True)
        shown = line

    try:
        yield show
    finally:
        if is_live:
            click.echo(_ERASE, nl=False, err=True)


def _bar(standing: Standing) -> str:
    done = round(BAR_LENGTH * standing.counts.get("completed", 0) / (sum(standing.counts.values()) or 1))
    return f"[{'#' * done}{'.' * (BAR_LENGTH - done)}]"


def _ask(execution: Execution, standing: Standing) -> bool:
    """At a terminal, ask for the merges that wait; whether any was decided."""
    waiting = [(name, number) for name, number in execution.merges.items() if number in standing.questions]
    if not (waiting and _is_attended()):
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
    """What the project, plans, sessions, personas, runs and tasks may spend."""


@root.group(cls=NounGroup)
def schedules() -> None:
    """Plans that the server carries out at a time of day or at intervals: `workbench run PLAN --at 22:00`."""
