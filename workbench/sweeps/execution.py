"""One run of a sweep, from the start of its record to its end."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal
from uuid import uuid4

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.process import process_identity
from workbench.rules.secrets.forms import has_form, is_secret_under
from workbench.rules.secrets.mask import Mask
from workbench.rules.sweeps.grid import PlannedRun
from workbench.state import database_url
from workbench.sweeps.job import SweepCall, SweepJob, facts
from workbench.sweeps.watch import Kernel, Watch, end_marked

State = Literal["completed", "failed", "cancelled"]
OnCell = Callable[[int, int], None]
PAGE = 500
FILES = ".files"
"""The suffix of the directory beside an executed notebook with the files that a run on another machine sent back."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

    Args:
        id: of its record; None: there is none, because the server could not be reached.
        output: path of the executed notebook, relative to the project; None: there is none.
        again: it was completed before, and was not executed.
    """

    run: PlannedRun
    id: int | None
    state: State
    seconds: float
    error: WorkbenchError | None = None
    output: str | None = None
    again: bool = False


def execute_run(call: SweepCall, job: SweepJob, run: PlannedRun, watch: Watch, on_cell: OnCell) -> RunOutcome:
    """Execute one run, unless its record is completed. Raises nothing: a failure concerns only this run."""
    started_at = time.monotonic()
    started: Mapping[str, Any] | None = None
    output: str | None = None
    on_cell(0, 0)
    try:
        started = start(call, job, run)
        if started["already"]:
            return RunOutcome(run, started["id"], "completed", 0.0, output=started["output"], again=True)
        try:
            error, packages = _execute_or_report(job, run, started, watch, on_cell)
        finally:
            if job.space is not None:
                _end_agents(call, started["session_id"])
        output = end(call, job, run, started, error, {"packages": packages} if packages else {})
    except WorkbenchError as failure:
        error = failure
    except Exception as defect:  # it must not end the other runs
        error = Unavailable("RUN_FAILED", f"The run failed: {defect!r}")
    return RunOutcome(
        run, started["id"] if started else None, state_of(error), time.monotonic() - started_at, error, output
    )


def fail_run(call: SweepCall, job: SweepJob, run: PlannedRun, error: WorkbenchError, seconds: float) -> RunOutcome:
    """Record the failure of a run whose executor ended first. Raises nothing; see `execute_run`."""
    try:
        record = next((row for row in recorded(call, job) if row["key"] == job.key(run)), None)
        if record is None:
            record = start(call, job, run)
        if record["state"] not in ("running", "lost"):  # only the news of it was lost
            why = None if record["state"] == "completed" else error
            return RunOutcome(run, record["id"], record["state"], seconds, why, record["output"])
        call("end_run", run_id=record["id"], state="failed", error_code=error.code, error=error.message)
        return RunOutcome(run, record["id"], "failed", seconds, error)
    except WorkbenchError as failure:
        return RunOutcome(run, None, "failed", seconds, failure)


def recorded(call: SweepCall, job: SweepJob) -> Sequence[Mapping[str, Any]]:
    """All runs of a sweep that are recorded."""
    rows: list[Mapping[str, Any]] = []
    for is_archived in (False, True):
        page = call("list_runs", sweep=str(job.id), archived=is_archived, limit=PAGE)
        rows += page["runs"]
        while page["next_cursor"] is not None:
            page = call("list_runs", sweep=str(job.id), archived=is_archived, limit=PAGE, cursor=page["next_cursor"])
            rows += page["runs"]
    return rows


def state_of(error: WorkbenchError | None) -> State:
    """The state in which a run ends that has failed with an error, or has not."""
    if error is None:
        return "completed"
    return "cancelled" if error.code == "RUN_CANCELLED" else "failed"


def start(call: SweepCall, job: SweepJob, run: PlannedRun) -> Mapping[str, Any]:
    """Record that a run starts. A copy of the project knows neither the sweep nor all definitions.

    Raises:
        WorkbenchError: see `start_run`.
    """
    definition = run.over.get("definition")
    return call(
        "start_run",
        name=job.title(run),
        key=job.key(run),
        sweep_id=None if job.copy_of else job.id,
        notebook=job.notebook,
        parameters=run.arguments,
        definitions=[definition] if definition and not job.copy_of else [],
        environment=facts(run) | {"notebook_sha256": job.content},
        session_id=job.session if job.space is None else _create_session(call, job.space, job.title(run)),
        process=process_identity(),
    )


def end(
    call: SweepCall,
    job: SweepJob,
    run: PlannedRun,
    started: Mapping[str, Any],
    error: WorkbenchError | None,
    environment: Mapping[str, Any],
) -> str | None:
    """Record how a try ended, and keep its files alone; the path of its notebook, if that was saved.

    Args:
        environment: what was found of it.

    Raises:
        WorkbenchError: what `end_run` raises, such as ``RUN_RESTARTED``: then a later try has the run.
    """
    path = job.output(run, started["tries"])
    output = str(path.relative_to(job.project)) if path.is_file() else None
    why: dict[str, Any] = {} if error is None else {"error_code": error.code, "error": error.message}
    if environment:
        why["environment"] = environment
    try:
        call("end_run", run_id=started["id"], state=state_of(error), output=output, tries=started["tries"], **why)
    except Conflict as conflict:
        if conflict.code == "RUN_RESTARTED":
            _remove(path)
        raise
    for earlier in range(1, started["tries"]):
        _remove(job.output(run, earlier))
    return output


def _remove(output: Path) -> None:
    """Remove the executed notebook of a try that does not count, its log, and the files that it sent back."""
    for path in (output, output.with_suffix(".log")):
        with suppress(OSError):
            path.unlink()
    shutil.rmtree(output.with_suffix(FILES), ignore_errors=True)


def _create_session(call: SweepCall, space: str, name: str) -> str:
    """A new session for a run. Each try gets its own, so that remains of an earlier try do not disturb it."""
    try:
        return str(call("create_session", project_id=space, name=name)["id"])
    except Conflict:
        name_pattern = re.compile(re.escape(name) + "( [0-9a-f]{8})?")
        for session in call("list_sessions", project_id=space, search=name, limit=PAGE)["sessions"]:
            if name_pattern.fullmatch(session["name"]):  # its sweep may have been killed
                _end_agents(call, session["id"])
        return str(call("create_session", project_id=space, name=f"{name} {uuid4().hex[:8]}")["id"])


def _end_agents(call: SweepCall, session: str) -> None:
    """End the agents that a run has started in its own session. One that cannot be ended does not fail the run."""
    with suppress(WorkbenchError):
        for agent in call("list_agents", session_id=session, limit=PAGE)["agents"]:
            with suppress(WorkbenchError):  # most often it has no process any more
                call("terminate_agent", agent_id=agent["agent_id"], reason="The run that started it has ended.")


def _execute_or_report(
    job: SweepJob, run: PlannedRun, started: Mapping[str, Any], watch: Watch, on_cell: OnCell
) -> tuple[WorkbenchError | None, Mapping[str, str]]:
    """Execute the notebook and save it if possible; why the run did not complete, and its packages."""
    try:
        return _execute(job, run, started, watch, on_cell)
    except Unavailable as unwritable:  # such as a full disk: it is recorded like another failure
        return unwritable, {}


def _execute(
    job: SweepJob, run: PlannedRun, started: Mapping[str, Any], watch: Watch, on_cell: OnCell
) -> tuple[WorkbenchError | None, Mapping[str, str]]:
    """Execute the notebook and save the result.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    import nbformat

    from workbench.sweeps import engine, failures, outputs

    kernel = Kernel(job.limits.timeout, job.limits.memory)
    path = job.output(run, started["tries"])
    raised: Exception | None = None
    marks = job.marks(run)
    if started["tries"] > 1:  # what an earlier try left, if that was killed
        end_marked(marks[-1])
    with _log(path) as log:
        environment = kernel.environment(_environment(job, started), *marks)
        execution = engine.Execution(
            kernel, environment, job.directory, outputs.OutputLimit(job.output_bytes), log.fileno(), on_cell
        )
        watch.add(kernel)
        try:
            engine.execute(nbformat.reads(job.text, as_version=4), run.arguments, execution)
        except Exception as error:  # papermill, nbclient and zmq raise anything
            raised = error
        finally:
            watch.remove(kernel)
        mask = make_mask()
        failure = failures.of(raised, kernel, execution.document, execution.source)
        if failure is not None:
            failure.message = mask.text(failure.message)
        if execution.document is not None:
            if failure is not None and failure.code not in ("CELL_FAILED", "INPUT_REQUESTED"):
                outputs.add_failure(execution.document, failure.code, failure.message)
            outputs.without_secrets(execution.document, mask)
            outputs.save(execution.document, path)
    if failure is None:
        path.with_suffix(".log").unlink(missing_ok=True)
    else:
        outputs.mask_log(path.with_suffix(".log"), mask)
    return failure, execution.packages


def make_mask() -> Mask:
    """A mask for the kernel's variables that are secret by name or form, which its outputs must not show."""
    secret = (value for name, value in os.environ.items() if is_secret_under(name, value) or has_form(value))
    return Mask([*secret, *database_url.secrets_of()])


def _environment(job: SweepJob, started: Mapping[str, Any]) -> dict[str, str]:
    """The kernel's variables: it belongs to its run, and coordinates in the run's session."""
    variables = {
        **os.environ,
        "WORKBENCH_PROJECT": str(job.project),
        "WORKBENCH_RUN": f"{started['id']}:{started['tries']}",
    }
    variables.pop("WORKBENCH_SESSION", None)
    if started["session_id"] is not None:
        variables["WORKBENCH_SESSION"] = started["session_id"]
    return variables


@contextmanager
def _log(path: Path) -> Iterator[IO[bytes]]:
    """The file beside an executed notebook for the output of the kernel's process itself.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    place = path.with_suffix(".log")
    log: IO[bytes]
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = place.open("wb")
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{place} cannot be written: {error.strerror}.") from error
    try:
        yield log
    finally:
        with suppress(OSError):
            log.close()
