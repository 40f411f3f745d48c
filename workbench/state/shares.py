"""The processes that use a project's server: each holds a share, a locked file in `.aiswarm/shares/`.

The server of a project belongs to all of them. When the one that serves leaves, another one serves; the last one to
leave may end the agents' processes. A share is lost with its process, however that ends.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import Unavailable
from workbench.system import file_lock

CHECK_SECONDS = 0.1
"""How long to wait before a lock that is held counts as a share: another process may only be checking it."""
TAKE_SECONDS = 5.0
"""How long to wait for the lock of a new share, which another process may be checking."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The consequences when a process leaves a project.

    Args:
        served: it served the project.
        others: the processes that still use the project.
        end_workers: it was asked to end the agents' processes.
    """

    served: bool
    others: tuple[int, ...]
    end_workers: bool

    @property
    def hands_over(self) -> bool:
        """Whether another process serves the project from now on."""
        return self.served and bool(self.others)

    @property
    def ends_workers(self) -> bool:
        """Whether the agents' processes end; they never do while others use the project."""
        return self.end_workers and not self.others

    @property
    def needs_server(self) -> bool:
        """Whether it has to serve the project before it leaves: its server ended before it could end the workers."""
        return self.ends_workers and not self.served

    @property
    def note(self) -> str:
        """A sentence about the others that use the project; empty if there are none."""
        if not self.others:
            return ""
        if len(self.others) == 1:
            return f"Process {self.others[0]} uses the project too, so its server goes on."
        *most, last = map(str, self.others)
        return f"Processes {', '.join(most)} and {last} use the project too, so its server goes on."


class Share:
    """One process's share, from `held` until it is dropped.

    Each drops its share before it looks for others: when two leave at the same time, at least one finds none.
    """

    def __init__(self, directory: Path, lock: ExitStack) -> None:
        self._directory = directory
        self._lock = lock

    def drop(self) -> None:
        """Give the share up. May be called twice, and in any thread."""
        self._lock.close()

    def leave(self, *, served: bool, end_workers: bool) -> Departure:
        """Drop the share, and find the processes that remain."""
        self.drop()
        return Departure(served, tuple(holders(self._directory)), end_workers)


@contextmanager
def held(directory: Path) -> Iterator[Share]:
    """Hold a share until the block ends, or until it is dropped.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``.
    """
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{directory} cannot be created: {error.strerror}.") from error
    with ExitStack() as lock:
        path = directory / f"{os.getpid()}-{secrets.token_hex(8)}.lock"
        lock.enter_context(file_lock.held(path, TAKE_SECONDS, remove=True))
        yield Share(directory, lock)


def holders(directory: Path) -> Sequence[int]:
    """The process ids of all that hold a share, sorted. Removes the shares of ended processes."""
    return sorted(_process_id(path) for path in directory.glob("*-*.lock") if _is_held(path))


def _process_id(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _is_held(path: Path) -> bool:
    try:
        with file_lock.held(path, CHECK_SECONDS, remove=True) as is_free:
            return not is_free
    except Unavailable:  # it cannot be locked, so its holder is not known to have ended
        return True
