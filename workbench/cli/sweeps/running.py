"""Runs a sweep as requested, shows its progress in a terminal, and what came of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.output import PartialFailure, Shown, counted
from workbench.cli.sweeps.request import SweepRequest
from workbench.errors import Interrupted, WorkbenchError
from workbench.present.inert import inert_line
from workbench.present.tables import Table
from workbench.rules.sweeps.specification import LOCAL_CLUSTER, SweepLimits, check_dask
from workbench.state.machine import SlurmMachine
from workbench.state.settings import Settings
from workbench.sweeps import begin, plan
from workbench.sweeps.execution import RunOutcome
from workbench.sweeps.job import SweepCall, SweepJob
from workbench.sweeps.progress import SweepProgress, described

if TYPE_CHECKING:
    from workbench.sweeps.executor import Executor

LISTED = 50
Executing = Callable[[SweepCall, SweepJob], AbstractContextManager["Executor"]]
Connect = Callable[[], AbstractContextManager[SweepCall]]
Show = Callable[[SweepProgress], None]
_ERASE = "\r\x1b[K"


def run_sweep(
    settings: Settings, request: SweepRequest, connect: Connect, showing: Callable[[], AbstractContextManager[Show]]
) -> Shown:
    """Run a sweep to its end.

    Args:
        connect: enters a connection to the project.
        showing: enters what shows the progress.

    Raises:
        BadInput: see `plan.make`. NotFound: ``SWEEP_NOT_FOUND``.
        Conflict: ``SWEEP_EXISTS``, ``SWEEP_CHANGED``, ``SWEEP_RUNNING``.
        Unavailable: ``DASK_NOT_INSTALLED``, ``DASK_UNREACHABLE``, ``DASK_WORKER_UNFIT``; see also `Executor.check`.
        Interrupted: ``SWEEP_INTERRUPTED``: everything has ended, and what was done is recorded.
    """
    jobs: list[SweepJob] = []
    try:
        if not request.goes_on:
            return _run(settings, request, connect, showing, jobs)
        with connect() as call:
            sweep = begin.find(call, request.name)
            continued = _continued(request, sweep["specification"], settings)
            begun = sweep["notebook_sha256"] if request.changed else None
            return _run(settings, continued, lambda: nullcontext(call), showing, jobs, begun)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise _interruption(bool(jobs) or request.goes_on) from None


def _run(
    settings: Settings,
    request: SweepRequest,
    connect: Connect,
    showing: Callable[[], AbstractContextManager[Show]],
    jobs: list[SweepJob],
    begun: str | None = None,
) -> Shown:
    """Run a sweep to its end. Once it is recorded, its job is in `jobs`.

    Args:
        begun: the hash of the notebook that the sweep began with, if it may have changed.
    """
    limits = request.limits
    if request.dask is not None and request.dask not in settings.clusters:
        check_dask(request.dask, settings.clusters)
    kernel = request.others.get("kernel")
    sweep_plan = plan.make(request.specification, request.base, settings, begun=begun, kernel=kernel)
    resume = request.resume or request.changed
    terms = begin.How(request.name, limits, resume, request.retry_failed, request.share, request.changed)
    if request.dry_run:
        return _plan_table(sweep_plan, terms)
    from workbench.sweeps.leftovers import end_leftovers, only_one
    from workbench.sweeps.sweep import execute_sweep

    _say_if_commits_are_unknown(settings)
    end_leftovers(settings)
    with connect() as call, only_one(settings, terms.name), executors(settings, request.dask, limits) as executing:
        plan.require_over(sweep_plan.specification, call)
        jobs.append(job := begin.begin(call, sweep_plan, terms, settings))
        runs, before = begin.left(call, job, sweep_plan, terms)
        with executing(call, job) as executor, showing() as show:
            result = execute_sweep(executor, runs, SweepProgress(terms.name, len(sweep_plan.runs), before), show)
        table = _result_table(job, result.progress)
    if result.interrupted:
        raise _interruption(True, table)
    return table


def _say_if_commits_are_unknown(settings: Settings) -> None:
    """Say why runs are recorded without a commit, such as in a container in which git refuses others' repositories."""
    from workbench.git.repository import Repository

    try:
        Repository.open(settings.project)
    except WorkbenchError as error:
        if error.code != "NOT_A_REPOSITORY":
            click.echo(f"The runs are recorded without a commit: {inert_line(error.message)}", err=True)


def _interruption(is_recorded: bool, table: Table | None = None) -> Interrupted:
    """The error for a sweep that was interrupted. `table` shows its runs."""
    if not is_recorded:
        return Interrupted("SWEEP_INTERRUPTED", "The sweep was interrupted before it began. Run it again.")
    return Interrupted(
        "SWEEP_INTERRUPTED",
        "The sweep was interrupted. Run it again with --resume, in a notebook with resume=True.",
        table,
    )


def _continued(request: SweepRequest, sweep: Mapping[str, Any], settings: Settings) -> SweepRequest:
    """A request with the notebook and the values with which its sweep was begun, if it names no notebook."""
    if request.notebook:
        return request
    parameters, over = (
        {name: tuple(values) for name, values in sweep[part].items()} for part in ("parameters", "over")
    )
    continued = replace(request, notebook=sweep["notebook"], base=settings.project, repeat=sweep["repeat"])
    return replace(continued, parameters=parameters, over=over)


@contextmanager
def executors(settings: Settings, dask: str | None, limits: SweepLimits) -> Iterator[Executing]:
    """What makes the executor of a sweep: see `SweepRequest.dask`.

    Raises:
        Unavailable: see `clusters.dask.connected`, `clusters.slurm.connected`.
    """
    if dask is None:
        from workbench.sweeps.executor import in_this_process

        yield in_this_process
        return
    from workbench.shells.meanwhile import connected as serve

    cluster = settings.clusters.get(dask)
    with ExitStack() as stack:
        if isinstance(cluster, SlurmMachine):
            from workbench.clusters import slurm

            client = stack.enter_context(slurm.connected(dask, cluster))
        else:
            from workbench.clusters.dask import connected

            address = dask if cluster is None else cluster.address
            client = stack.enter_context(connected(address, limits.workers))
        from workbench.clusters.dask import WORKERLESS_SECONDS
        from workbench.sweeps.dask.executor import on_cluster

        patience = cluster.patience_seconds if isinstance(cluster, SlurmMachine) else WORKERLESS_SECONDS
        yield partial(on_cluster, client, is_own=dask == LOCAL_CLUSTER, serve=serve, patience=patience)


def _plan_table(sweep_plan: plan.SweepPlan, terms: begin.How) -> Table:
    rows = [[run.number, described(run)] for run in sweep_plan.runs[:LISTED]]
    more = len(sweep_plan.runs) - len(rows)
    data = {
        "name": terms.name,
        "runs": [
            {"number": run.number, "parameters": run.arguments, "repetition": run.repetition} for run in sweep_plan.runs
        ],
    }
    note = f"… and {more:,} more" if more else ""
    lead = f"The sweep {terms.name} has {counted(len(sweep_plan.runs), 'run')}, {terms.limits.workers} at a time."
    return Table(["number", "parameters"], rows, data=data, note=note, lead=lead)


def _result_table(job: SweepJob, progress: SweepProgress) -> Table:
    outcomes = sorted(progress.outcomes, key=lambda outcome: (outcome.state == "completed", outcome.run.number))
    rows = [
        [
            outcome.id,
            outcome.run.number,
            described(outcome.run),
            outcome.state,
            round(outcome.seconds, 1),
            str(outcome.error or ""),
        ]
        for outcome in outcomes[:LISTED]
    ]
    failed = progress.counts().get("failed", 0) > 0
    more = [f"… and {len(outcomes) - LISTED:,} more"] if len(outcomes) > LISTED else []
    place = f"The executed notebooks are in {job.outputs.relative_to(job.project)}/."
    columns = ["run", "number", "parameters", "state", "seconds", "error"]
    shape = PartialFailure if failed else Table
    note = "\n".join([*more, *([place] if outcomes else []), *_next(progress, failed)])
    lead, empty = progress.line(), "Nothing was left to run."
    return shape(columns, rows, empty, _data(job, progress), note=note, lead=lead)


def _next(progress: SweepProgress, failed: bool) -> Sequence[str]:
    counts = progress.counts()
    if counts.get("cancelled") or sum(counts.values()) < progress.total:
        return ["It is not complete. Run it again with --resume."]
    return ["To run again what failed, repeat this with --retry-failed."] if failed else []


def _data(job: SweepJob, progress: SweepProgress) -> dict[str, Any]:
    runs = [
        {
            "run_id": outcome.id,
            "number": outcome.run.number,
            "parameters": outcome.run.arguments,
            "repetition": outcome.run.repetition,
            "state": outcome.state,
            "error": outcome.error.as_dict() if outcome.error else None,
            "output": outcome.output,
        }
        for outcome in progress.outcomes
    ]
    counts = {"total": progress.total, "before": sum(progress.before.values()), **progress.counts()}
    return {"sweep": job.name, "sweep_id": job.id, "counts": counts, "runs": runs}


@contextmanager
def showing() -> Iterator[Show]:
    """Show the progress on standard error: one line that changes; in a pipe, a line for each run that ends."""
    shown = 0
    is_terminal = sys.stderr.isatty()

    def show(progress: SweepProgress) -> None:
        nonlocal shown
        outcomes, shown = progress.outcomes[shown:], len(progress.outcomes)
        lines = "".join(f"{_line(outcome)}\n" for outcome in outcomes if outcome.state == "failed" or not is_terminal)
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
