"""Sends a project's files to workers that do not see it, and records here what their runs measured and left.

Only this side reaches the project's store. A run is recorded as started when a worker says that it begins, and as ended
once everything that it left has arrived: exactly once, whichever worker it was.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from workbench.errors import Unavailable, WorkbenchError
from workbench.rules.sweeps.grid import PlannedRun
from workbench.sweeps import execution
from workbench.sweeps.dask import project_copy, worker
from workbench.sweeps.dask.copied import PIECE, NeededArchive, Returned, ReturnedFile, damaged
from workbench.sweeps.execution import RunOutcome, make_mask
from workbench.sweeps.job import SweepCall, SweepJob
from workbench.system.atomic_file import replacing

ARCHIVE = ".files"
VALUES_AT_ONCE = 10_000
"""As many values of a name as one call records."""
NAMES_AT_ONCE = 1_000

AskWorker = Callable[..., Any]
"""`ask(address, function, *arguments)` calls a function in a worker."""


class WorkerGone(Exception):
    """A worker does not answer any more."""


class Carrier:
    """See the module.

    Args:
        ask: raises `WorkerGone`.
        name: of the sweep's plugin in the workers.
    """

    def __init__(self, ask: AskWorker, job: SweepJob, name: str) -> None:
        self._ask = ask
        self._job = job
        self._name = name
        self._lock = threading.Lock()
        self._sending: dict[str, threading.Lock] = {}
        self._path = job.outputs / ARCHIVE
        self.archive: NeededArchive | None = None
        """The project's files; None: each worker sees the project."""

    def pack(self) -> None:
        """Make the archive, unless it is there.

        Raises:
            WorkbenchError: see `project_copy.pack`.
        """
        with self._lock:
            if self.archive is None:
                packed = project_copy.pack(self._job.project, self._job.files_bytes, self._path)
                self.archive = NeededArchive(packed.sha256, packed.bytes)

    def send(self, address: str) -> None:
        """Send the project's files to a worker: what it does not have of them.

        Raises:
            WorkerGone. Unavailable: ``DASK_FILES_DAMAGED``.
        """
        archive = self.archive
        assert archive is not None
        with self._lock:
            sending = self._sending.setdefault(address, threading.Lock())
        with sending, self._path.open("rb") as file:
            there = self._ask(address, worker.receive, self._name, archive, 0, b"")
            while there < archive.bytes:
                file.seek(there)
                there = self._ask(address, worker.receive, self._name, archive, there, file.read(PIECE))

    def fetch(self, returned: Returned, file: ReturnedFile, path: Path) -> None:
        """Write a file that a run left.

        Raises:
            WorkerGone. Unavailable: ``DASK_FILES_DAMAGED``, ``PROJECT_UNWRITABLE``.
        """
        digest, size, number = hashlib.sha256(), 0, returned.outcome.run.number
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(path) as temporary, temporary.open("wb") as stream:
                while size < file.bytes and (data := self._piece(returned, number, file, size)):
                    size += stream.write(data)
                    digest.update(data)
                if (size, digest.hexdigest()) != (file.bytes, file.sha256):
                    raise damaged("The files of a run", returned.worker)
        except OSError as error:
            raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error

    def forget(self, returned: Returned) -> None:
        """Let the worker remove the files of a run."""
        with suppress(WorkerGone):
            self._ask(returned.worker, worker.forget, self._name, returned.outcome.run.number)

    def close(self) -> None:
        """Remove the archive."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _piece(self, returned: Returned, number: int, file: ReturnedFile, offset: int) -> bytes:
        data = self._ask(returned.worker, worker.read, self._name, number, file.sha256, offset)
        if not isinstance(data, bytes) or len(data) > PIECE:
            raise damaged("The files of a run", returned.worker)
        return data


class CopiedRun:
    """The record of a run that a worker executes in a copy of the project.

    Args:
        job: the sweep, whose runs in copies have their sessions there.
    """

    def __init__(self, call: SweepCall, job: SweepJob, run: PlannedRun, carrier: Carrier) -> None:
        self.job = job
        self._call = call
        self._run = run
        self._carrier = carrier
        self._begun = 0
        self._record: Mapping[str, Any] | None = None
        self._refusal: WorkbenchError | None = None

    def begin(self, times: int) -> None:
        """Record that a worker has begun. If one had begun before, that has died.

        Args:
            times: how many workers have begun it so far.
        """
        if times <= self._begun or self._refusal is not None:
            return
        self._begun = times
        try:
            if self._record is not None:
                self._call("end_run", run_id=self._record["id"], state="lost", tries=self._record["tries"])
            self._record = execution.start(self._call, self.job, self._run)
        except WorkbenchError as refusal:
            self._refusal = refusal

    def end(self, returned: Returned) -> RunOutcome:
        """Record what came of it. Raises nothing but `WorkerGone`: a failure concerns only this run."""
        self.begin(max(1, self._begun))
        record, output, error = self._record, None, self._refusal
        if record is not None and record["already"]:
            return RunOutcome(self._run, record["id"], "completed", 0.0, output=record["output"], again=True)
        if record is not None and error is None:
            try:
                failure = self._take(record, returned)
                error = returned.outcome.error or failure
                output = execution.end(self._call, self.job, self._run, record, error, returned.environment)
            except WorkbenchError as refusal:
                error = refusal
        self._carrier.forget(returned)
        run_id = record["id"] if record is not None else None
        return RunOutcome(self._run, run_id, execution.state_of(error), returned.outcome.seconds, error, output)

    def cancel(self) -> RunOutcome | None:
        """Record that the sweep has ended before it; None: it was not begun."""
        if self._record is None:
            return None
        error = Unavailable("RUN_CANCELLED", "The sweep ended before the run did. Run it again with --resume.")
        with suppress(WorkbenchError):
            execution.end(self._call, self.job, self._run, self._record, error, {})
        return RunOutcome(self._run, self._record["id"], "cancelled", 0.0, error)

    def _take(self, record: Mapping[str, Any], returned: Returned) -> WorkbenchError | None:
        """Write the files and record the values of a run; why that was not possible.

        Raises:
            WorkerGone.
        """
        about = {"run_id": record["id"], "tries": record["tries"]}
        path = self.job.output(self._run, record["tries"])
        try:
            if sum(file.bytes for file in returned.all_files) > self.job.files_bytes:
                raise damaged("The files of a run", returned.worker)
            if returned.notebook is not None:
                self._carrier.fetch(returned, returned.notebook, path)
                _mask_notebook(path, returned.worker)
            if returned.log is not None:
                self._carrier.fetch(returned, returned.log, path.with_suffix(".log"))
                _mask_log(path.with_suffix(".log"))
            for file in returned.artifacts:
                place = path.with_suffix(execution.FILES) / below(file.path, returned.worker)
                self._carrier.fetch(returned, file, place)
                self._call("add_run_artifact", path=str(place), name=file.name, media_type=file.media_type, **about)
            for step, metrics in batches(returned.series):
                self._call("record_metrics", metrics=metrics, step=step, **about)
            if returned.tags or returned.notes:
                notes = returned.notes or None
                self._call("update_run", run_id=record["id"], notes=notes, add_tags=list(returned.tags))
        except WorkbenchError as error:
            return error
        return None


def below(path: str, worker_address: str) -> PurePosixPath:
    """The path of an artifact, which leads nowhere but down."""
    place = PurePosixPath(path)
    if place.is_absolute() or ".." in place.parts or not place.parts or "\0" in path:
        raise damaged("The files of a run", worker_address)
    return place


def _mask_notebook(path: Path, worker_address: str) -> None:
    """Mask the secrets that this machine knows in a notebook that has arrived.

    Raises:
        Unavailable: ``DASK_FILES_DAMAGED``: it is none.
    """
    import nbformat

    from workbench.sweeps import outputs

    try:
        document = nbformat.reads(path.read_text("utf-8"), as_version=4)
        outputs.without_secrets(document, make_mask())
    except Exception:  # nbformat raises anything
        path.unlink()
        raise damaged("The files of a run", worker_address) from None
    outputs.save(document, path)


def _mask_log(path: Path) -> None:
    from workbench.sweeps import outputs

    outputs.mask_log(path, make_mask())


def batches(series: Mapping[str, Sequence[Sequence[Any]]]) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """The values as calls record them: a step, and by name the values from there on.

    Series with equal steps, as those of one loop have, go together.
    """
    groups: dict[tuple[int, int], dict[str, list[Any]]] = {}
    for name, points in series.items():
        for first, values in _consecutive(points):
            groups.setdefault((first, len(values)), {})[name] = values
    for (first, length), group in groups.items():
        names, size = [*group], min(NAMES_AT_ONCE, max(1, VALUES_AT_ONCE // length))
        for start in range(0, len(names), size):
            yield first, {name: group[name] for name in names[start : start + size]}


def _consecutive(points: Sequence[Sequence[Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Runs of values whose steps follow each other, each with its first step."""
    first, values = 0, list[Any]()
    for step, value in points:
        if values and (step != first + len(values) or len(values) == VALUES_AT_ONCE):
            yield first, values
            values = []
        if not values:
            first = step
        values.append(value)
    if values:
        yield first, values
