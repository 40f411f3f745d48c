"""`await wb.carry_out("penguins")`: carries out a plan, with its progress in the cell, and ends with the account."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import click
from IPython.display import DisplayHandle

from kernel_ext.decisions import WAKE_SECONDS, WaitInterrupted
from kernel_ext.hosting.host import KernelHost
from kernel_ext.panels import has_frontend
from kernel_ext.wording import worded
from workbench.cli.account import account_table
from workbench.cli.execution import set_budget
from workbench.errors import BadInput
from workbench.execution.account import account_of
from workbench.execution.carry_out import carry_out, only_one, record_of
from workbench.execution.execution import Execution, Standing
from workbench.present.inert import as_html, inert
from workbench.present.tables import Table
from workbench.rules.budgets import parse
from workbench.rules.execution import Integrate, parse_staff


async def carry_out_plan(host: KernelHost, plan: str, staff: str, integrate: str, budget: str, partly: bool) -> Table:
    """Carry out a plan in a thread, and show its progress meanwhile.

    Raises:
        WaitInterrupted: the cell was interrupted. WorkbenchError: see `carry_out`.
    """
    if integrate not in [*Integrate]:
        raise BadInput("INVALID_ARGUMENTS", f"integrate is {' or '.join(Integrate)}, not {integrate!r}.")
    crew, record = parse_staff(staff) if staff else (), record_of(host.settings, plan)
    execution = Execution(host.call, plan, crew, Integrate(integrate), partly, record)
    limits = parse(budget) if budget else None
    host.call("export_plan", plan=plan)  # there is one
    stop, latest = threading.Event(), _Latest()
    with only_one(host.settings, plan):
        if limits is not None:
            set_budget(host.call, plan, limits)
        execution.require_staff()
        expected = host.call("estimate_costs", plan=plan, staff=staff)
        click.echo(inert(expected["sentence"]))

        def work() -> Table:
            standing = carry_out(execution, latest.note, is_over=stop.is_set)
            return account_table(account_of(host.call, plan), standing, expected)

        with ThreadPoolExecutor(1, "workbench-execution") as thread:  # which ends with the cell
            working = asyncio.get_running_loop().run_in_executor(thread, work)
            try:
                while not working.done():
                    await asyncio.wait({working}, timeout=WAKE_SECONDS)
                    latest.show()
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait({working})
                raise WaitInterrupted(
                    f'Its agents have ended; `await wb.carry_out("{plan}")` goes on with what is left.'
                ) from None
            table: Table = worded(working.result())
            return table


class _Latest:
    """The latest standing, noted by one thread and shown by the cell's."""

    def __init__(self) -> None:
        self._standing: Standing | None = None
        self._shown: Standing | None = None
        self._handle: DisplayHandle | None = None

    def note(self, standing: Standing) -> None:
        self._standing = standing

    def show(self) -> None:
        """Show it in place of the one before, if there is a place."""
        standing = self._standing
        if standing is None or standing is self._shown or not has_frontend():
            return
        self._shown, bar = standing, _Bar(standing)
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(bar)
        else:
            self._handle.update(bar)


class _Bar:
    """How far a plan is: a bar, and a line of words."""

    def __init__(self, standing: Standing) -> None:
        self._line = standing.line
        self._done, self._total = standing.counts.get("completed", 0), sum(standing.counts.values())

    def __repr__(self) -> str:
        return self._line

    def _repr_html_(self) -> str:
        return f'<progress value="{self._done}" max="{max(self._total, 1)}"></progress> {as_html(self._line)}'
