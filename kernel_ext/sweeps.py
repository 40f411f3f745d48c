"""Sweeps from a notebook: `wb.sweep(…)` and `%workbench sweep …`, with progress in the cell.

An interrupt of the cell stops the sweep; a second one ends its kernels at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import click
from IPython.display import display, publish_display_data

from kernel_ext.panels import has_frontend
from workbench.cli.output import Shown
from workbench.cli.sweeps.request import SweepRequest, of_options, require_begun, sweep_options
from workbench.errors import Interrupted, WorkbenchError
from workbench.inert import as_html, inert_line
from workbench.rules.sweeps import specification
from workbench.tables import Table

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from workbench.cli.sweeps.running import Show
    from workbench.settings import Settings
    from workbench.sweeps.progress import Progress

Values = Mapping[str, Any]
_OPTIONS = {
    "--name another": "another name",
    "with --name": "with a name",
    "--resume": "resume=True",
    "--retry-failed": "retry_failed=True",
}


class Notebook(Protocol):
    """A notebook's session."""

    @property
    def host(self) -> KernelHost:
        """The servers' host.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the project."""
        ...


def request_of(
    largest: int,
    notebook: str | Path | None,
    parameters: Values,
    over: Values,
    repeat: int,
    resume: bool,
    retry_failed: bool,
    dry_run: bool,
    **others: Any,
) -> SweepRequest:
    """The request of a call of `wb.sweep`; see there.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``BAD_SWEEP``, ``SWEEP_TOO_LARGE``.
    """
    chosen = {name: value for name, value in others.items() if value is not None}
    if "memory" in chosen:
        chosen["memory"] = specification.parse_size(str(chosen["memory"]))
    made = SweepRequest(
        "" if notebook is None else str(notebook),
        Path.cwd(),
        specification.from_values(parameters, largest),
        specification.from_names(over, largest),
        repeat,
        chosen,
        resume,
        retry_failed,
        dry_run,
    )
    return made if made.notebook else require_begun(made)


def run(session: Notebook, request: SweepRequest) -> Shown:
    """Run a sweep on the notebook's project, and show its progress in the cell.

    Raises:
        WorkbenchError: see `run_sweep`. Interrupted: see there; how it stands is shown.
    """
    from workbench.cli.sweeps.running import run_sweep

    host = session.host
    try:
        return run_sweep(host.settings, request, lambda: nullcontext(host.call), _showing)
    except Interrupted as interrupted:
        if interrupted.shown is not None:
            display(interrupted.shown)
        raise


@click.command("sweep")
@sweep_options
@click.pass_obj
def sweep_command(session: Notebook, /, **options: Any) -> Shown:
    """Run a notebook once for each combination of values, several at a time, and record each run.

    VALUES are separated by commas; 1..50 and 0..1:0.25 are ranges. `wb.sweep` takes the same as Python values.
    """
    return run(session, of_options(session.settings.max_sweep_runs, Path.cwd(), **options))


def in_python(shown: Shown) -> Shown:
    """What a sweep came to, with arguments of `wb.sweep` in place of the options that its notes name."""
    return replace(shown, note=_arguments(shown.note)) if isinstance(shown, Table) else shown


@contextmanager
def errors_in_python() -> Iterator[None]:
    """The same for errors."""
    try:
        yield
    except WorkbenchError as error:
        raise type(error)(error.code, _arguments(error.message), **error.details) from None


def _arguments(text: str) -> str:
    for option, argument in _OPTIONS.items():
        text = text.replace(option, argument)
    return text


@contextmanager
def _showing() -> Iterator[Show]:
    """Show the progress in one output of the cell, which changes; in a batch run only the result is shown."""
    if not has_frontend():
        yield lambda _: None
        return
    shown: list[str] = []
    identity = uuid4().hex

    def show(progress: Progress) -> None:
        page = _page(progress)
        if shown[-1:] != [page]:
            data = {"text/plain": inert_line(progress.line()), "text/html": page}
            publish_display_data(data, transient={"display_id": identity}, update=bool(shown))
            shown[:] = [page]

    yield show


def _page(progress: Progress) -> str:
    from workbench.sweeps.progress import described

    counts = progress.counts()
    ended = sum(counts.values())
    lines = [
        f"<li>{as_html(described(one.run))}" + (f": cell {one.done} of {one.cells}" if one.cells else "") + "</li>"
        for one in progress.under_way()
    ]
    parts = [f"{counts[state]} {state}" for state in ("completed", "failed", "cancelled") if counts.get(state)]
    said = f"{ended} of {progress.total}" + (f": {', '.join(parts)}" if parts else "")
    bar = f'<progress value="{ended}" max="{progress.total}" aria-label="Progress of the sweep"></progress>'
    return f"<p><b>{as_html(progress.name)}</b> {bar} {said}</p><ul>{''.join(lines)}</ul>"


def strings(names: str | Sequence[str] | None) -> Sequence[str]:
    """Names as a list: one may be given alone."""
    return [names] if isinstance(names, str) else list(names or ())
