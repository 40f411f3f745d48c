"""Begins or resumes a sweep: its record, and the runs that remain."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import Conflict, NotFound
from workbench.rules.naming import similar
from workbench.rules.sweeps.grid import PlannedRun
from workbench.rules.sweeps.specification import SweepLimits
from workbench.state.settings import Settings
from workbench.sweeps.execution import PAGE, recorded
from workbench.sweeps.job import SweepCall, SweepJob
from workbench.sweeps.plan import SweepPlan

NAMED = 5
"""The most sweeps that an error names."""


@dataclass(frozen=True)
class How:
    """The way a sweep is run.

    Args:
        resume: go on with the sweep of this name.
        retry_failed: the same, and run failed runs again.
        changed: the same, although the notebook has changed since the sweep began.
        share: runs coordinate in the session that starts the sweep, instead of one of their own.
    """

    name: str
    limits: SweepLimits
    resume: bool = False
    retry_failed: bool = False
    share: bool = False
    changed: bool = False


def begin(call: SweepCall, plan: SweepPlan, how: How, settings: Settings) -> SweepJob:
    """Record a sweep, or find the one to resume.

    Raises:
        Conflict: ``SWEEP_EXISTS``, ``SWEEP_CHANGED``.
    """
    record = call(
        "start_sweep",
        name=how.name,
        notebook=plan.shown_path(settings.project),
        notebook_sha256=plan.content,
        specification=plan.as_data(settings.project),
        resume=how.resume or how.retry_failed,
        changed=how.changed,
    )
    return SweepJob(
        id=record["id"],
        name=how.name,
        project=settings.project,
        notebook=plan.shown_path(settings.project),
        text=plan.text,
        content=plan.content,
        directory=plan.path.parent,
        limits=how.limits,
        output_bytes=settings.max_sweep_output_bytes,
        files_bytes=settings.max_sweep_files_bytes,
        space=None if how.share else create_space(call, how.name),
        session=os.environ.get("WORKBENCH_SESSION") if how.share else None,
    )


def find(call: SweepCall, name: str) -> Mapping[str, Any]:
    """The sweep with a name, as it was recorded.

    Raises:
        NotFound: ``SWEEP_NOT_FOUND``.
    """
    for sweep in _sweeps(call, search=name):
        if sweep["name"] == name:
            return sweep
    raise _not_found_error(name, [sweep["name"] for sweep in _sweeps(call)])


def _sweeps(call: SweepCall, search: str | None = None) -> Iterator[Mapping[str, Any]]:
    """The sweeps, newest first: those whose name has a text, or all."""
    page: Mapping[str, Any] = {"next_cursor": None}
    while True:
        page = call("list_sweeps", search=search, limit=PAGE, cursor=page["next_cursor"])
        yield from page["sweeps"]
        if page["next_cursor"] is None:
            return


def _not_found_error(name: str, names: Sequence[str]) -> NotFound:
    suggestion = similar(name, names)
    newest = f"The newest are {', '.join(names[:NAMED])}; `workbench runs sweeps` lists them."
    overview = newest if names else "The project has none."
    hint = f"Did you mean {suggestion}?" if suggestion else overview
    advice = "To begin it, name its notebook, and do not resume it."
    return NotFound("SWEEP_NOT_FOUND", f"There is no sweep {name} to go on with. {hint} {advice}")


def left(call: SweepCall, job: SweepJob, plan: SweepPlan, how: How) -> tuple[list[PlannedRun], Mapping[str, int]]:
    """The runs to execute, and the number of the others by their final state.

    Failed runs are not executed again unless `how` says so.
    """
    states = {str(run["key"]): str(run["state"]) for run in recorded(call, job)}
    final_states = {"completed"} if how.retry_failed else {"completed", "failed"}
    runs = [run for run in plan.runs if states.get(job.key(run)) not in final_states]
    run_states = [states.get(job.key(run)) for run in plan.runs]
    return runs, Counter(state for state in run_states if state in final_states)


def create_space(call: SweepCall, name: str) -> str:
    """The project in whose sessions the runs of a sweep coordinate."""
    title = f"sweep {name}"
    try:
        return str(call("create_project", name=title, description=f"The runs of the sweep {name}.")["id"])
    except Conflict:
        projects = call("list_projects", search=title, limit=PAGE)["projects"]
        return next(str(project["id"]) for project in projects if project["name"] == title)
