"""Ends the processes of sweeps that were killed, and removes their sockets.

A sweep that runs holds the lock in its directory, and removes it at its end: a lock that nobody holds is that of a
sweep that was killed. The agents that its runs started are ended by the project's server; see `services.runs.ending`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from workbench.errors import Conflict, Unavailable
from workbench.ops.duties import duty
from workbench.process import MARK, process_identity, process_named
from workbench.rules.sweeps.grid import sweep_mark
from workbench.state.settings import Settings
from workbench.sweeps.watch import end_marked
from workbench.system import atomic_file, file_lock

if TYPE_CHECKING:
    from workbench.ops import Ctx

LOCK = ".lock"
WORKERS = ".workers"
"""A directory of files, one for each worker of the sweep's own Dask cluster. Dask starts them, so without a mark."""
LOCK_SECONDS = 2.0
"""How long a sweep waits for its lock, which `end_leftovers` may have."""
END_SECONDS = 5.0


@contextmanager
def only_one(settings: Settings, name: str) -> Iterator[None]:
    """Keep other processes from running the same sweep, and end the processes that a killed one left.

    Raises:
        Conflict: ``SWEEP_RUNNING``. Unavailable: ``PROJECT_UNWRITABLE``.
    """
    place = settings.runs / name
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{place} cannot be written: {error.strerror}.") from error
    with file_lock.held(place / LOCK, LOCK_SECONDS) as is_held:
        if not is_held:
            raise Conflict("SWEEP_RUNNING", f"The sweep {name} is running. Wait for it, or choose another --name.")
        _end_processes(settings, place)
        try:
            yield
        finally:
            _end_processes(settings, place)
            _remove(place / LOCK)


def end_leftovers(settings: Settings) -> None:
    """End the processes that killed sweeps of this project left, and remove the sockets of their kernels.

    Sweeps that run are left alone, and so is a sweep that this process is part of.
    """
    from workbench.sweeps import sockets  # imports zmq, which a server does not need

    sockets.remove_left()
    own_marks = os.environ.get(MARK, "").split(":")
    for lock in settings.runs.glob(f"*/{LOCK}"):
        if sweep_mark(lock.parent.name, str(settings.project)) not in own_marks:
            with suppress(Unavailable), file_lock.held(lock) as is_held:
                if is_held:
                    _end_processes(settings, lock.parent)
                    _remove(lock)


@duty("ending what killed sweeps left", 5.0, share=0.05)
async def end_killed(ctx: Ctx) -> None:
    """Call `end_leftovers` if a sweep runs or was killed; the project's server does this regularly."""
    settings = ctx.settings
    if any(settings.runs.glob(f"*/{LOCK}")):
        await asyncio.to_thread(end_leftovers, settings)


def note_worker(outputs: Path) -> None:
    """Note this process as a worker of the sweep with a directory.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    place = outputs / WORKERS
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = place / f"{os.getpid()}-{place.stat().st_ino}"
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{place} cannot be written: {error.strerror}.") from error
    atomic_file.replace(note, process_identity())


def _end_processes(settings: Settings, place: Path) -> None:
    """End all processes of a sweep, whose lock is held."""
    _end_workers(place / WORKERS)
    end_marked(sweep_mark(place.name, str(settings.project)))


def _end_workers(place: Path) -> None:
    """End the workers that are noted in a directory, and remove it. Copied notes name the workers of the original."""
    processes = []
    for note in place.glob("[0-9]*"):
        with suppress(OSError, UnicodeDecodeError, psutil.Error):
            is_own = note.name.endswith(f"-{place.stat().st_ino}")
            worker = process_named(atomic_file.read(note)) if is_own else None
            if worker is not None and (process := worker.find()) is not None:
                process.kill()
                processes.append(process)
        _remove(note)
    psutil.wait_procs(processes, timeout=END_SECONDS)
    with suppress(OSError):
        place.rmdir()


def _remove(file: Path) -> None:
    """Remove a file; one that stays, such as on a disk that became read-only, does not fail the sweep."""
    with suppress(OSError):
        file.unlink()
