"""The part of a sweep in a Dask worker that does not see the project: it executes runs in a copy of its files.

The copy is a project of its own, with a server that lasts as long as the sweep: what a run records, tasks and agents
are there, as on the machine of the sweep. What a run leaves is kept until the sweep has fetched it.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.rules.sweeps.grid import PlannedRun
from workbench.state.settings import Settings
from workbench.sweeps.begin import create_space
from workbench.sweeps.dask import project_copy
from workbench.sweeps.execution import OnCell, RunOutcome, execute_run, state_of
from workbench.sweeps.job import SweepCall, SweepJob
from workbench.sweeps.watch import Watch

PIECE = 4_000_000
"""Bytes of the pieces in which files are sent."""
MOST_POINTS = 1_000_000
"""As many values as a run may record."""

Connected = Callable[[Settings], AbstractContextManager[SweepCall]]
"""Serves a project meanwhile; see `workbench.shells.meanwhile.connected`."""


@dataclass(frozen=True)
class NeededArchive:
    """The archive with the project's files, which a worker needs: its SHA-256, and its size in bytes."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class LacksFiles:
    """The answer of a worker, at its address, that has to be sent the project's files first."""

    worker: str


@dataclass(frozen=True)
class ReturnedFile:
    """A file that a run left: its path in the copy, and for an artifact its name and type."""

    path: str
    bytes: int
    sha256: str
    name: str = ""
    media_type: str = ""


@dataclass(frozen=True)
class Returned:
    """What came of a run in a copy.

    Args:
        worker: the address of the worker that has the files.
        series: by name, pairs of a step and a value.
    """

    outcome: RunOutcome
    worker: str
    environment: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    notes: str = ""
    notebook: ReturnedFile | None = None
    log: ReturnedFile | None = None
    artifacts: Sequence[ReturnedFile] = ()

    @property
    def all_files(self) -> list[ReturnedFile]:
        """All files to fetch."""
        return [file for file in (self.notebook, self.log, *self.artifacts) if file is not None]


class CopiedProject:
    """The copy of a project in a worker, made when the first run needs it.

    Args:
        job: the sweep as its own machine knows it.
        place: a directory of the worker, which Dask removes with it.
        worker: its address.
    """

    def __init__(self, job: SweepJob, place: Path, worker: str, connected: Connected) -> None:
        self._of = job
        self._place = place
        self._worker = worker
        self._connected = connected
        self._opening = threading.Lock()
        self._stack = ExitStack()
        self._opened: tuple[SweepCall, SweepJob] | None = None
        self._returned = place / "returned"

    def received(self, archive: NeededArchive) -> int:
        """How many bytes of the archive are here."""
        for path in (self._archive(archive), self._part(archive)):
            if path.is_file():
                return path.stat().st_size
        return 0

    def receive(self, archive: NeededArchive, offset: int, data: bytes) -> int:
        """Take a piece of the archive; how many bytes of it are here then.

        Raises:
            Unavailable: ``DASK_FILES_DAMAGED``: it is whole, and another one; the next transfer begins anew.
        """
        if offset != self.received(archive):
            return self.received(archive)
        part = self._part(archive)
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with part.open("ab") as file:
            file.write(data)
        if offset + len(data) >= archive.bytes:
            with part.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 != archive.sha256:
                part.unlink()
                raise damaged("The project's files", self._worker)
            part.rename(self._archive(archive))
        return self.received(archive)

    def execute(self, archive: NeededArchive, run: PlannedRun, watch: Watch, on_cell: OnCell) -> Returned | LacksFiles:
        """Execute a run in the copy.

        Raises:
            Unavailable: ``DASK_WORKER_UNFIT``: the copy cannot be made.
        """
        if not self._archive(archive).is_file():
            return LacksFiles(self._worker)
        call, job = self._open(archive)
        outcome = execute_run(call, job, run, watch, on_cell)
        try:
            return self._gather(call, job, outcome)
        except WorkbenchError as error:
            return Returned(replace(outcome, state=state_of(error), error=error), self._worker)

    def read(self, number: int, sha256: str, offset: int) -> bytes:
        """A piece of a file that the run with a number left."""
        with (self._returned / f"{number}" / sha256).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE)

    def forget(self, number: int) -> None:
        """Remove the files of a run, which were fetched."""
        shutil.rmtree(self._returned / f"{number}", ignore_errors=True)

    def close(self) -> None:
        """End the server of the copy, and remove the copy; the archive stays for another sweep."""
        self._stack.close()
        shutil.rmtree(self._returned, ignore_errors=True)

    def _archive(self, archive: NeededArchive) -> Path:
        return self._place / archive.sha256

    def _part(self, archive: NeededArchive) -> Path:
        return self._place / f"{archive.sha256}.part"

    def _open(self, archive: NeededArchive) -> tuple[SweepCall, SweepJob]:
        """The copy's project, and the sweep in it."""
        with self._opening:
            if self._opened is None:
                try:
                    self._opened = self._make(archive)
                except (WorkbenchError, OSError, tarfile.TarError) as error:
                    self._stack.close()
                    why = error.message if isinstance(error, WorkbenchError) else str(error)
                    text = f"The Dask worker {self._worker} cannot make a copy of the project. {why.rstrip('.')}."
                    raise Unavailable("DASK_WORKER_UNFIT", text) from None
            return self._opened

    def _make(self, archive: NeededArchive) -> tuple[SweepCall, SweepJob]:
        place = Path(mkdtemp(prefix="copy-", dir=self._place)).resolve()
        self._stack.callback(shutil.rmtree, place, ignore_errors=True)
        project = place / self._of.project.name
        directory = project / self._of.directory.relative_to(self._of.project)
        directory.mkdir(parents=True)
        project_copy.unpack(self._archive(archive), project)
        call = self._stack.enter_context(self._connected(Settings(project=project, port=0, database_url=None)))
        there = replace(self._of, project=project, directory=directory, copy_of=self._of.project)
        return call, replace(there, space=create_space(call, there.name))

    def _gather(self, call: SweepCall, job: SweepJob, outcome: RunOutcome) -> Returned:
        """What a run has recorded and left, its files put aside.

        Raises:
            WorkbenchError: ``RUN_FILES_TOO_LARGE``, and what the copy's server raises.
        """
        if outcome.id is None:
            return Returned(outcome, self._worker)
        record = call("get_run", run_id=outcome.id)
        names = [each["name"] for each in record["series"]]
        recorded = (
            call("get_run_series", run_id=outcome.id, names=names, max_points=MOST_POINTS) if names else {"series": []}
        )
        output = job.output(outcome.run, record["tries"])
        left = _Left(job.project, self._returned / f"{outcome.run.number}", job.files_bytes)
        return Returned(
            outcome,
            self._worker,
            record["environment"],
            {each["name"]: each["points"] for each in recorded["series"]},
            record["tags"],
            record["notes"],
            left.put_aside(output),
            left.put_aside(output.with_suffix(".log")),
            [
                replace(file, name=each["name"], media_type=each["media_type"])
                for each in record["files"]
                if (file := left.put_aside(job.project / each["path"])) is not None
            ],
        )


@dataclass
class _Left:
    """Puts the files of one run aside, where the next run does not change them."""

    project: Path
    place: Path
    limit: int
    bytes: int = 0

    def put_aside(self, path: Path) -> ReturnedFile | None:
        """Copy a file under its SHA-256; None if there is none any more.

        Raises:
            BadInput: ``RUN_FILES_TOO_LARGE``. Unavailable: ``PROJECT_UNWRITABLE``.
        """
        if not path.is_file():
            return None
        self.bytes += path.stat().st_size
        if self.bytes > self.limit:
            raise BadInput(
                "RUN_FILES_TOO_LARGE",
                f"The files of the run have more than {self.limit:,} bytes (max_sweep_files_bytes). Record fewer or "
                "smaller artifacts, or raise the setting, and run it again with --retry-failed.",
            )
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self.place / "part"
            shutil.copyfile(path, temporary)
            with temporary.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
            temporary.rename(self.place / sha256)
        except OSError as error:
            raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be put aside: {error.strerror}.") from error
        return ReturnedFile(path.relative_to(self.project).as_posix(), size, sha256)


def damaged(what: str, worker: str) -> Unavailable:
    """The error for files that arrived as others than were sent."""
    return Unavailable(
        "DASK_FILES_DAMAGED",
        f"{what} did not arrive as they were sent, between here and the Dask worker {worker}: their SHA-256 is another "
        "one. Run the sweep again with --retry-failed.",
    )
