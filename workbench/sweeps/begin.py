"""Begins a sweep, or resumes it: its record, and which of its runs are left."""

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
    """How a sweep is run.

    Args:
        resume: go on with the sweep of this name.
        retry_failed: the same, and run again what failed.
        share: runs coordinate in the session of whoever starts the sweep, instead of one of their own.
    """

    name: str
    limits: SweepLimits
    resume: bool = False
    retry_failed: bool = False
    share: bool = False


def begin(call: SweepCall, plan: SweepPlan, how: How, settings: Settings) -> SweepJob:
    """Record a sweep, or find the one to resume.

    Raises:
        Conflict: ``SWEEP_EXISTS``, ``SWEEP_CHANGED``.
    """
    found = call(
        "start_sweep",
        name=how.name,
        notebook=plan.shown_path(settings.project),
        notebook_sha256=plan.content,
        specification=plan.as_data(settings.project),
        resume=how.resume or how.retry_failed,
    )
    return SweepJob(
        id=found["id"],
        name=how.name,
        project=settings.project,
        notebook=plan.shown_path(settings.project),
        text=plan.text,
        directory=plan.path.parent,
        limits=how.limits,
        output_bytes=settings.max_sweep_output_bytes,
        space=None if how.share else _space(call, how.name),
        session=os.environ.get("WORKBENCH_SESSION") if how.share else None,
    )


def find(call: SweepCall, name: str) -> Mapping[str, Any]:
    """The specification of the sweep with a name, as it was recorded.

    Raises:
        NotFound: ``SWEEP_NOT_FOUND``.
    """
    for sweep in _sweeps(call, search=name):
        if sweep["name"] == name:
            found: Mapping[str, Any] = sweep["specification"]
            return found
    raise _not_found(name, [sweep["name"] for sweep in _sweeps(call)])


def _sweeps(call: SweepCall, search: str | None = None) -> Iterator[Mapping[str, Any]]:
    """The sweeps, newest first: those whose name has a text, or all."""
    page: Mapping[str, Any] = {"next_cursor": None}
    while True:
        page = call("list_sweeps", search=search, limit=PAGE, cursor=page["next_cursor"])
        yield from page["sweeps"]
        if page["next_cursor"] is None:
            return


def _not_found(name: str, names: Sequence[str]) -> NotFound:
    meant = similar(name, names)
    newest = f"The newest are {', '.join(names[:NAMED])}; `workbench runs sweeps` lists them."
    known = newest if names else "The project has none."
    hint = f"Did you mean {meant}?" if meant else known
    begin = "To begin it, name its notebook, and do not resume it."
    return NotFound("SWEEP_NOT_FOUND", f"There is no sweep {name} to go on with. {hint} {begin}")


def left(call: SweepCall, job: SweepJob, plan: SweepPlan, how: How) -> tuple[list[PlannedRun], Mapping[str, int]]:
    """The runs that are to be executed, and how many of the others ended how.

    Failed ones are left as they are unless they are to be tried again.
    """
    states = {str(run["key"]): str(run["state"]) for run in recorded(call, job)}
    kept = {"completed"} if how.retry_failed else {"completed", "failed"}
    wanted = [run for run in plan.runs if states.get(job.key(run)) not in kept]
    ended = [states.get(job.key(run)) for run in plan.runs]
    return wanted, Counter(state for state in ended if state in kept)


def _space(call: SweepCall, name: str) -> str:
    """The project in whose sessions the runs of a sweep coordinate."""
    wanted = f"sweep {name}"
    try:
        return str(call("create_project", name=wanted, description=f"The runs of the sweep {name}.")["id"])
    except Conflict:
        found = call("list_projects", search=wanted, limit=PAGE)["projects"]
        return next(str(one["id"]) for one in found if one["name"] == wanted)
