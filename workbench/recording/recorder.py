"""The runs of a process: those that it begins, and the one that it was started for."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 (see Recorder._open)
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, WorkbenchError, first_within
from workbench.process import process_identity
from workbench.recording import surroundings, values
from workbench.recording.active_run import VARIABLE, ActiveRun, Call, OnRecord
from workbench.recording.connection import RecorderConnection

ERROR_LETTERS = 10_000


class Recorder:
    """Records runs of this process.

    Records go into the innermost `run` that is open, else into the run that the environment variable `WORKBENCH_RUN`
    names, else into a run named after the notebook or script, which begins with its first value and ends with the
    process.

    Args:
        call: runs operations; by default through the project's server, or else in its store.
        project: finds the root of the project.
        on_record: called with every record.
    """

    def __init__(
        self,
        call: Call | None = None,
        project: Callable[[], Path] | None = None,
        on_record: OnRecord = lambda *_: None,
    ) -> None:
        self._connection = RecorderConnection()
        self._call = call or self._connection.call
        self._project = project or (lambda: self._connection.settings.project)
        self._on_record = on_record
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._open_runs: list[ActiveRun] = []
        self._own: ActiveRun | None = None
        self._outer: ContextVar[ActiveRun | None] = ContextVar("outer", default=None)
        """The innermost open run of this thread or task: those of others do not surround its blocks."""

    @property
    def connection(self) -> RecorderConnection:
        """The way to a project that this process does not serve."""
        return self._connection

    @property
    def current(self) -> ActiveRun:
        """The run that records go into; it begins if there is none.

        Raises:
            BadInput: ``BAD_RUN_VARIABLE``. WorkbenchError: what `start_run` raises.
        """
        with self._lock:
            if self._open_runs:
                return self._open_runs[-1]
            if (assigned := self._assigned_run()) is not None:
                return assigned
            if self._own is None:
                source = surroundings.notebook(self._project())
                self._own = self._start(Path(source).stem if source else "notebook", {}, [], [])
                # atexit is too late: the executors that recording needs are closed by then. Callbacks run last in,
                # first out, so the executors' own, registered by their import, has to come first.
                threading._register_atexit(self._end_own)  # type: ignore[attr-defined]
            return self._own

    @contextmanager
    def run(
        self, name: str, /, *, tags: Sequence[str] = (), definitions: Sequence[str] = (), **parameters: Any
    ) -> Iterator[ActiveRun]:
        """A run for a block. An error in the block makes it `failed`, an interrupt `cancelled`.

        One within the block of another is linked to that: `parent_id`.

        In a process to which `WORKBENCH_RUN` assigned a run, it is that one, which ends with the process.

        Raises:
            WorkbenchError: what `start_run` raises.
        """
        if (assigned := self._assigned_run()) is not None and not self._open_runs:
            yield assigned
            return
        outer = self._outer.get()
        run = self._start(name, parameters, tags, definitions, outer)
        with self._lock:
            self._open_runs.append(run)
        self._outer.set(run)
        try:
            yield run
        except KeyboardInterrupt:
            run.end("cancelled", error_code="INTERRUPTED", error="It was interrupted.")
            raise
        except BaseException as error:
            code = error.code if isinstance(error, WorkbenchError) else type(error).__name__
            run.end("failed", error_code=code[:100], error=_describe(error)[:ERROR_LETTERS])
            raise
        else:
            run.end()
        finally:
            self._outer.set(outer)
            with self._lock:
                self._open_runs.remove(run)

    def record(self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
        """Record values of the current run; see `ActiveRun.record`."""
        if self._begins_run:
            self._check("record_metrics", metrics=values.metrics(metrics, more), step=values.step(step))
        self.current.record(metrics, step=step, **more)

    def artifact(
        self, path: str | os.PathLike[str], name: str | None = None, media_type: str | None = None
    ) -> dict[str, Any]:
        """Record a file that the current run made; see `ActiveRun.artifact`."""
        if self._begins_run:
            from workbench.services.runs.artifacts import locate_file

            place = str(Path(path).absolute())
            self._check("add_run_artifact", path=place, name=name, media_type=media_type)
            locate_file(self._project(), place)
        return self.current.artifact(path, name, media_type)

    def end_run(self, state: str = "completed") -> None:
        """End the run that began by itself; the next value begins another. Without one, nothing changes."""
        with self._lock:
            run, self._own = self._own, None
        if run is not None:
            run.end(state)

    def close(self) -> None:
        """End the run that began by itself, and the connection."""
        try:
            self.end_run()
        finally:
            self._connection.close()

    def _assigned_run(self) -> ActiveRun | None:
        """The run that this process was started for, if any."""
        text = os.environ.get(VARIABLE)
        if not text:
            return None
        number, _, tries = text.partition(":")
        if re.fullmatch(r"[0-9]{1,18}(:[0-9]{1,18})?", text) is None:
            raise BadInput("BAD_RUN_VARIABLE", f"{VARIABLE} has to be the id of a run, such as 7, and is {text!r}.")
        record = {"id": int(number), "name": f"run {number}"}
        return ActiveRun(self._call, record, int(tries) if tries else None, self._on_record)

    @property
    def _begins_run(self) -> bool:
        """Whether the next value begins a run; one that will be refused must not."""
        with self._lock:
            return not self._open_runs and self._own is None and self._assigned_run() is None

    def _check(self, operation: str, **arguments: Any) -> None:
        from workbench.ops import collect  # imported here, as it takes time that few processes need
        from workbench.services import SERVICES

        collect(SERVICES)[operation].validate({"run_id": 1, **arguments})

    def _start(
        self,
        name: str,
        parameters: Mapping[str, Any],
        tags: Sequence[str],
        definitions: Sequence[str],
        outer: ActiveRun | None = None,
    ) -> ActiveRun:
        record = self._call(
            "start_run",
            name=name,
            parent_id=outer and outer.id,
            notebook=surroundings.notebook(self._project()),
            parameters=values.parameters(parameters),
            environment=surroundings.environment(),
            tags=list(tags),
            definitions=list(definitions),
            process=process_identity(),
        )
        return ActiveRun(self._call, record, record["tries"], self._on_record)

    def _end_own(self) -> None:
        if os.getpid() != self._pid:  # the run goes on in the process that this one was forked from
            self._connection.close()
            return
        with suppress(WorkbenchError):  # nobody is left to read it, and a lost run is found by its process
            self.close()


def _describe(error: BaseException) -> str:
    """The text of an error; for a group, which says little itself, also the first error within it."""
    cause = first_within(error)
    return str(error) if cause is error else f"{error}: {type(cause).__name__}: {cause}"
