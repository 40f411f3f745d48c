"""The progress of a sweep in a terminal: one line that changes; in a pipe, a line for each run that ends."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from workbench.cli.sweeps.running import Show
from workbench.present.inert import inert_line
from workbench.sweeps.execution import RunOutcome
from workbench.sweeps.progress import SweepProgress, described

_ERASE = "\r\x1b[K"


@contextmanager
def showing() -> Iterator[Show]:
    """Show the progress on standard error."""
    shown = 0
    is_terminal = sys.stderr.isatty()

    def show(progress: SweepProgress) -> None:
        nonlocal shown
        new, shown = progress.outcomes[shown:], len(progress.outcomes)
        lines = "".join(f"{_line(one)}\n" for one in new if one.state == "failed" or not is_terminal)
        if is_terminal:
            lines = f"{_ERASE}{lines}{progress.line()[: shutil.get_terminal_size().columns - 1]}"
        if lines:
            click.echo(lines, nl=False, err=True)

    try:
        yield show
    finally:
        if is_terminal:
            click.echo(_ERASE, nl=False, err=True)


def _line(outcome: RunOutcome) -> str:
    why = f": {outcome.error}" if outcome.error else ""
    name = f"number {outcome.run.number}" if outcome.id is None else f"run {outcome.id}"
    return inert_line(f"{name} ({described(outcome.run)}) {outcome.state}{why}")
