"""Runs a sweep as it was asked for, and shows what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.cli.output import PartialFailure, Shown, counted
from workbench.cli.sweeps.request import SweepRequest
from workbench.errors import Interrupted
from workbench.present.tables import Table
from workbench.rules.sweeps.specification import LOCAL_CLUSTER, SweepLimits
from workbench.state.settings import Settings
from workbench.sweeps import begin, plan
from workbench.sweeps.job import SweepCall, SweepJob
from workbench.sweeps.progress import SweepProgress, described

if TYPE_CHECKING:
    from workbench.sweeps.executor import Executor

LISTED = 50
Executing = Callable[[SweepCall, SweepJob], AbstractContextManager["Executor"]]
Connect = Callable[[], AbstractContextManager[SweepCall]]
Show = Callable[[SweepProgress], None]


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
    begun: list[SweepJob] = []
    try:
        if not request.goes_on:
            return _run(settings, request, connect, showing, begun)
        with connect() as call:
            known = _begun(request, begin.find(call, request.name), settings)
            return _run(settings, known, lambda: nullcontext(call), showing, begun)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise _interrupted(bool(begun) or request.goes_on) from None


def _run(
    settings: Settings,
    request: SweepRequest,
    connect: Connect,
    showing: Callable[[], AbstractContextManager[Show]],
    begun: list[SweepJob],
) -> Shown:
    """Run a sweep to its end. Once it is recorded, its job is in `begun`."""
    limits = request.limits
    made = plan.make(request.specification, request.base, settings)
    how = begin.How(request.name, limits, request.resume, request.retry_failed, request.share)
    if request.dry_run:
        return _planned(made, how)
    from workbench.sweeps.leftovers import end_leftovers, only_one
    from workbench.sweeps.sweep import execute_sweep

    end_leftovers(settings)
    with connect() as call, only_one(settings, how.name), executors(request.dask, limits) as executing:
        plan.require_over(made.specification, call)
        begun.append(job := begin.begin(call, made, how, settings))
        runs, before = begin.left(call, job, made, how)
        with executing(call, job) as executor, showing() as show:
            result = execute_sweep(executor, runs, SweepProgress(how.name, len(made.runs), before), show)
        shown = _shown(job, result.progress)
    if result.interrupted:
        raise _interrupted(True, shown)
    return shown


def _interrupted(is_recorded: bool, shown: Table | None = None) -> Interrupted:
    """The error for a sweep that was interrupted. `shown` says how it stands."""
    if not is_recorded:
        return Interrupted("SWEEP_INTERRUPTED", "The sweep was interrupted before it began. Run it again.")
    return Interrupted(
        "SWEEP_INTERRUPTED",
        "The sweep was interrupted. Run it again with --resume, in a notebook with resume=True.",
        shown,
    )


def _begun(request: SweepRequest, found: Mapping[str, Any], settings: Settings) -> SweepRequest:
    """A request with the notebook and the values with which its sweep was begun, if it names no notebook."""
    if request.notebook:
        return request
    parameters, over = ({name: tuple(some) for name, some in found[part].items()} for part in ("parameters", "over"))
    begun = replace(request, notebook=found["notebook"], base=settings.project, repeat=found["repeat"])
    return replace(begun, parameters=parameters, over=over)


@contextmanager
def executors(dask: str | None, limits: SweepLimits) -> Iterator[Executing]:
    """What makes the executor of a sweep: see `SweepRequest.dask`.

    Raises:
        Unavailable: ``DASK_NOT_INSTALLED``, ``DASK_UNREACHABLE``.
    """
    if dask is None:
        from workbench.sweeps.executor import in_this_process

        yield in_this_process
        return
    from workbench.sweeps.dask.cluster import connected

    with connected(dask, limits.workers) as client:
        from workbench.sweeps.dask.executor import on_cluster

        yield partial(on_cluster, client, is_own=dask == LOCAL_CLUSTER)


def _planned(made: plan.SweepPlan, how: begin.How) -> Table:
    rows = [[run.number, described(run)] for run in made.runs[:LISTED]]
    more = len(made.runs) - len(rows)
    data = {
        "name": how.name,
        "runs": [
            {"number": run.number, "parameters": run.arguments, "repetition": run.repetition} for run in made.runs
        ],
    }
    note = f"… and {more:,} more" if more else ""
    lead = f"The sweep {how.name} has {counted(len(made.runs), 'run')}, {how.limits.workers} at a time."
    return Table(["number", "parameters"], rows, data=data, note=note, lead=lead)


def _shown(job: SweepJob, progress: SweepProgress) -> Table:
    outcomes = sorted(progress.outcomes, key=lambda one: (one.state == "completed", one.run.number))
    rows = [
        [one.id, one.run.number, described(one.run), one.state, round(one.seconds, 1), str(one.error or "")]
        for one in outcomes[:LISTED]
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
            "run_id": one.id,
            "number": one.run.number,
            "parameters": one.run.arguments,
            "repetition": one.run.repetition,
            "state": one.state,
            "error": one.error.as_dict() if one.error else None,
            "output": one.output,
        }
        for one in progress.outcomes
    ]
    counts = {"total": progress.total, "before": sum(progress.before.values()), **progress.counts()}
    return {"sweep": job.name, "sweep_id": job.id, "counts": counts, "runs": runs}


@contextmanager
def showing_nothing() -> Iterator[Show]:
    """Shows no progress."""
    yield lambda _: None
