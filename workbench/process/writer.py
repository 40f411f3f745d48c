"""The lock of a worktree's one writer: the supervisor whose attempt is made there.

The system releases the lock when the supervisor ends, however it ends. A file beside it names the attempt and the
supervisor, so that processes that a killed supervisor left can be found and ended. Commands can write neither file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.errors import Unavailable
from workbench.process.marks import MARK
from workbench.process.reference import ProcessRef, is_running
from workbench.process.tree import KILL_SECONDS, ProcessTree
from workbench.system import atomic_file, file_lock

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Writer:
    """The attempt that is made in a worktree, and the supervisor that makes it."""

    task_id: int
    attempt: int
    process: ProcessRef

    @classmethod
    def of_this_process(cls, task_id: int, attempt: int) -> Writer:
        """An attempt that this process supervises."""
        mark = os.environ.get(MARK, "").rpartition(":")[2] or None
        return cls(task_id, attempt, ProcessRef(os.getpid(), psutil.Process().create_time(), mark))

    @property
    def alive(self) -> bool:
        """Whether the supervisor runs; a stopped one does."""
        process = self.process.find()
        return process is not None and is_running(process)


@dataclass(frozen=True, slots=True)
class WriterLock:
    """The lock of one worktree. Methods block.

    Args:
        path: the lock file, outside of what commands may write; the file beside it ends in ``.json``.
    """

    path: Path

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the lock; yields False if another process holds it.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock.held(self.path) as is_held:
            yield is_held

    def record(self, writer: Writer) -> None:
        """Record the holder of the lock. Call while holding it, after `end_rest`.

        Raises:
            Unavailable: ``PROJECT_UNWRITABLE``.
        """
        process = writer.process
        facts: dict[str, object] = {"task": writer.task_id, "attempt": writer.attempt}
        facts |= {"pid": process.pid, "started": process.started, "mark": process.mark, "place": self._place()}
        atomic_file.replace(self._facts, json.dumps(facts), PRIVATE)

    def writer(self) -> Writer | None:
        """The writer that holds the lock, or was ended while it did; none if the file was copied from elsewhere."""
        try:
            facts = json.loads(self._facts.read_text("utf-8"))
            if facts["place"] != self._place():
                return None
            process = ProcessRef(facts["pid"], facts["started"], facts["mark"])
            return Writer(facts["task"], facts["attempt"], process)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def forget(self) -> None:
        """Record that no process of the writer runs any more. Call while holding the lock."""
        with suppress(OSError):
            self._facts.unlink(missing_ok=True)

    def end_rest(self) -> None:
        """End the processes that an ended supervisor left. Call while holding the lock.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``: something cannot be ended, or that supervisor has not quite ended.
        """
        writer = self.writer()
        if writer is None or writer.process.pid == os.getpid():
            return
        if writer.alive:
            raise Unavailable("PROCESS_SURVIVED", f"The worker, process {writer.process.pid}, has not ended yet.")
        ProcessTree(writer.process).kill()

    def evict(self) -> None:
        """End the supervisor that holds the lock, with everything it started, even if it is stopped.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``.
        """
        holder = self.writer()
        if holder is not None and holder.process.pid != os.getpid():
            ProcessTree(holder.process).terminate(0.0, KILL_SECONDS)

    def _place(self) -> int:
        """The inode of the directory, which tells it from its copies."""
        return self.path.parent.stat().st_ino

    @property
    def _facts(self) -> Path:
        return self.path.with_suffix(".json")
