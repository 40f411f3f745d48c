"""Sweeps from a notebook: `wb.sweep(…)` and `%workbench sweep …`, with progress in the cell.

An interrupt of the cell stops the sweep; a second one ends its kernels at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import click
from IPython.core.getipython import get_ipython
from IPython.display import display, publish_display_data

from kernel_ext.panels import has_frontend
from workbench.cli.output import PartialFailure, Shown
from workbench.cli.sweeps.request import SweepRequest, of_options, require_begun, sweep_options
from workbench.errors import Interrupted, WorkbenchError
from workbench.present.inert import as_html, inert_line
from workbench.present.tables import Table
from workbench.recording.values import parameter
from workbench.rules.sweeps import specification

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost
    from workbench.cli.sweeps.running import Show
    from workbench.state.settings import Settings
    from workbench.sweeps.progress import SweepProgress

Values = Mapping[str, Any]
_OPTIONS = {
    "--name another": "another name",
    "with --name": "with a name",
    "--resume": "resume=True",
    "--retry-failed": "retry_failed=True",
    "--changed": "changed=True",
    "--kernel python3": 'kernel="python3"',
}


class SweepNotebook(Protocol):
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
    changed: bool,
    **others: Any,
) -> SweepRequest:
    """The request of a call of `wb.sweep`; see there.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``BAD_SWEEP``, ``SWEEP_TOO_LARGE``.
    """
    options = specification.check_options(others)
    if not isinstance(parameters, Mapping):
        raise specification.bad_sweep(f"parameters is {parameters!r}. It is a dict, such as {{'seed': [1, 2]}}")
    request = SweepRequest(
        "" if notebook is None else str(notebook),
        Path.cwd(),
        specification.from_values({name: _plain(name, values) for name, values in parameters.items()}, largest),
        specification.from_names(over, largest),
        repeat,
        options,
        resume,
        retry_failed,
        dry_run,
        changed,
    )
    return request if request.notebook else require_begun(request)


def _plain(name: Any, values: Any) -> Any:
    """The values of a parameter as JSON; a range stays one, which may be longer than any sweep."""
    return values if isinstance(values, range) else parameter(str(name), values)


def run(session: SweepNotebook, request: SweepRequest, worded: Callable[[Shown], Shown] = lambda shown: shown) -> Shown:
    """Run a sweep on the notebook's project, and show its progress in the cell, in one output that ends as the table.

    Args:
        worded: rewords the outcome.

    Raises:
        WorkbenchError: see `run_sweep`. Interrupted: see there; how it stands is shown.
    """
    from workbench.cli.sweeps.running import run_sweep

    host, live = session.host, _Live()
    try:
        return live.end(worded(run_sweep(host.settings, request, lambda: nullcontext(host.call), live.showing)))
    except Interrupted as interrupted:
        if isinstance(interrupted.shown, Table):
            display(live.end(worded(interrupted.shown)))
        raise


@click.command("sweep")
@sweep_options
@click.pass_obj
def sweep_command(session: SweepNotebook, /, **options: Any) -> Shown:
    """Run a notebook once for each combination of values, several at a time, and record each run.

    VALUES are separated by commas; 1..50 and 0..1:0.25 are ranges. `wb.sweep` takes the same as Python values.
    """
    return run(session, of_options(session.settings.max_sweep_runs, Path.cwd(), **options))


def in_python(shown: Shown) -> Shown:
    """The outcome of a sweep; its notes name arguments of `wb.sweep` in place of options."""
    return replace(shown, note=_arguments(shown.note)) if isinstance(shown, Table) else shown


@contextmanager
def errors_in_python() -> Iterator[None]:
    """The same for errors."""
    try:
        yield
    except WorkbenchError as error:
        raise error.with_message(_arguments(error.message)) from None


def _arguments(text: str) -> str:
    for option, argument in _OPTIONS.items():
        text = text.replace(option, argument)
    return text


@dataclass(frozen=True, repr=False)
class _InPlace(Table):
    """A table that the cell with this number shows already, in place of the progress: there it is not shown twice."""

    cell: int = 0

    def _ipython_display_(self) -> None:
        if self.cell != _cell():
            publish_display_data(_data(self))


@dataclass(frozen=True, repr=False)
class _FailureInPlace(_InPlace, PartialFailure):
    """The same of a sweep of which runs failed."""


class _Live:
    """The progress in one output of the cell, which becomes the table; in a batch run only the table is shown."""

    def __init__(self) -> None:
        self._page = ""
        self._identity = uuid4().hex

    @contextmanager
    def showing(self) -> Iterator[Show]:
        """Show the progress while the block runs."""
        yield self._show if has_frontend() else lambda _: None

    def end(self, shown: Shown) -> Shown:
        """Show the outcome in place of the progress, if that was shown. Returns the outcome."""
        if not self._page or not isinstance(shown, Table):
            return shown
        self._publish(_data(shown))
        shape = _FailureInPlace if isinstance(shown, PartialFailure) else _InPlace
        return shape(**vars(shown), cell=_cell())

    def _show(self, progress: SweepProgress) -> None:
        page = _page(progress)
        if page != self._page:
            self._publish({"text/plain": inert_line(progress.line()), "text/html": page})
            self._page = page

    def _publish(self, data: Mapping[str, str]) -> None:
        publish_display_data({**data}, transient={"display_id": self._identity}, update=bool(self._page))


def _data(table: Table) -> dict[str, str]:
    return {"text/plain": table.text(), "text/html": table.html()}


def _cell() -> int:
    """The number of the cell that runs."""
    return int(getattr(get_ipython(), "execution_count", 0))


def _page(progress: SweepProgress) -> str:
    from workbench.sweeps.progress import described

    counts = progress.counts()
    ended = sum(counts.values())
    lines = [
        f"<li>{as_html(described(run.run))}" + (f": cell {run.done} of {run.cells}" if run.cells else "") + "</li>"
        for run in progress.under_way()
    ]
    parts = [f"{counts[state]} {state}" for state in ("completed", "failed", "cancelled") if counts.get(state)]
    summary = f"{ended} of {progress.total}" + (f": {', '.join(parts)}" if parts else "")
    bar = f'<progress value="{ended}" max="{progress.total}" aria-label="Progress of the sweep"></progress>'
    return f"<p><b>{as_html(progress.name)}</b> {bar} {summary}</p><ul>{''.join(lines)}</ul>"


def strings(names: str | Sequence[str] | None) -> Sequence[str]:
    """Names as a list: one may be given alone."""
    return [names] if isinstance(names, str) else list(names or ())
