"""Operating-system processes that are started and ended as a whole: none of a family survives.

A family is a process, its group and session, and all its descendants, also those that made a
session of their own or whose parents ended. Descendants are known by their ancestry while it
stands, and else by a variable that every process inherits from `ProcessTable.start`; only one that
both cut its ancestry and wiped its environment before `terminate` was called cannot be found.

Everything blocks; call it from a thread.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import IO
from uuid import uuid4

import psutil

from workbench.errors import Unavailable

MARK = "WORKBENCH_PROCESS_MARKS"
"""The variable that descendants are known by: the marks of all starts above them, by ``:``."""

_CLOCK_SECONDS = 2.0
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """A process for good: `pid` may be used again, but not by one that `started` then.

    `started` is what psutil calls `create_time`, in seconds since the epoch. The system derives it
    from the wall clock in whole seconds, so that it may differ a little from one look to another.
    """

    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a family."""

    pid: int
    name: str
    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a family uses: processor seconds so far, percent of one processor, bytes of memory now; who is below it.

    Memory is the sum of what is resident: pages that are shared count for each.
    """

    cpu_seconds: float
    cpu_percent: float
    memory_bytes: int
    members: Sequence[Member]


class ProcessTable:
    """The processes that were started here; of others it knows what their `ProcessRef` tells."""

    def __init__(self) -> None:
        self._children: dict[ProcessRef, subprocess.Popen[bytes]] = {}
        self._marks: dict[ProcessRef, str] = {}
        self._looked: dict[ProcessRef, tuple[float, float]] = {}
        self._ending: set[ProcessRef] = set()

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin_text: str | None = None,
        log: Path,
    ) -> ProcessRef:
        """Start a command in a session and process group of its own.

        It reads `stdin_text` (UTF-8; None: nothing) and then the end of the file. What it writes is
        appended to `log`, made with mode 0600. `env` is its whole environment, to which `MARK` is
        added.

        Raises:
            Unavailable: ``COMMAND_NOT_FOUND``, ``SPAWN_FAILED``.
        """
        mark = uuid4().hex
        marks = ":".join(filter(None, (os.environ.get(MARK), mark)))
        try:
            with _input(stdin_text) as stdin, _output(log) as stdout:
                child = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env={**env, MARK: marks},
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, ValueError, IndexError) as error:
            raise _not_started(argv, cwd, error) from error
        # A child that has already ended keeps its pid until it is asked for its exit code.
        ref = ProcessRef(child.pid, psutil.Process(child.pid).create_time())
        self._children[ref], self._marks[ref] = child, mark
        return ref

    def alive(self, ref: ProcessRef) -> bool:
        """Whether the process itself still runs; one that ended and was not waited for does not."""
        if child := self._children.get(ref):
            return child.poll() is None
        found = _find(ref)
        return found is not None and _runs(found)

    @contextmanager
    def ending(self, ref: ProcessRef) -> Iterator[None]:
        """While somebody ends a process, until that is noted, it has not ended by itself."""
        first = ref not in self._ending
        self._ending.add(ref)
        try:
            yield
        finally:
            if first:
                self._ending.discard(ref)

    def ended(self, ref: ProcessRef) -> bool:
        """Whether the process has ended by itself."""
        return ref not in self._ending and not self.alive(ref)

    def exit_code(self, ref: ProcessRef) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs or if not ours.

        Asking ends a zombie.
        """
        child = self._children.get(ref)
        return child.poll() if child else None

    def forget(self, ref: ProcessRef) -> None:
        """Forget a process that has ended."""
        for known in (self._children, self._marks, self._looked):
            known.pop(ref, None)

    def usage(self, refs: Sequence[ProcessRef]) -> dict[ProcessRef, Usage]:
        """What processes use with all that is below them; nothing, of those that have ended.

        `cpu_percent` is since the last look at the same process, or else since it began.
        """
        below: dict[int, list[psutil.Process]] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                below.setdefault(process.ppid(), []).append(process)
        return {ref: self._used(ref, below) for ref in refs}

    def _used(self, ref: ProcessRef, below: Mapping[int, Sequence[psutil.Process]]) -> Usage:
        leader = _find(ref)
        if leader is None:
            return Usage(0.0, 0.0, 0, ())
        family, waiting = list[Member](), [leader]
        while waiting:
            process = waiting.pop()
            waiting += below.get(process.pid, ())
            with suppress(psutil.Error):
                times = sum(process.cpu_times()[:4])
                family.append(Member(process.pid, process.name(), times, process.memory_info().rss))
        seconds = sum(member.cpu_seconds for member in family)
        now = time.time()
        then, before = self._looked.get(ref, (ref.started, 0.0))
        self._looked[ref] = (now, seconds)
        percent = max(0.0, 100 * (seconds - before) / (now - then)) if now > then else 0.0
        return Usage(seconds, percent, sum(m.memory_bytes for m in family), family[1:])

    def terminate(self, ref: ProcessRef, grace: float) -> bool:
        """End a process with its whole family: SIGTERM, up to `grace` seconds, SIGKILL.

        Its own group is told first, and has half of that time to end the others as it sees fit: a supervisor
        must not take the end of its command for that command's failure. True if there was something to
        end. A process that only has the same pid is never touched.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``: the system does not let go of `details.pids`.
        """
        family = _Family(ref, self._marks.get(ref))
        if not family.look():
            self.exit_code(ref)
            return False
        if family.signal_group(SIGTERM):
            family.wait(grace / 2)
        if family.look():
            family.signal(SIGTERM)
            family.wait(grace / 2)
        deadline = time.monotonic() + _KILL_SECONDS
        while family.look():
            if time.monotonic() > deadline:
                raise _survived(family.pids)
            family.signal(SIGKILL)
            family.wait(_KILL_SECONDS / 10)
        self.exit_code(ref)
        return True


@dataclass(frozen=True, slots=True)
class _Row:
    """What is to be known of a running process."""

    process: psutil.Process
    parent: int
    session: int
    marks: Sequence[str]


class _Family:
    """The living members of a family, as far as they were found by the last look.

    Once a member is known, so is its session: whoever is in it descends from the family.
    """

    def __init__(self, ref: ProcessRef, mark: str | None) -> None:
        leader = _find(ref)
        self._pid = ref.pid
        self._sessions = {ref.pid} if leader else set[int]()
        self._known = {leader} if leader else set[psutil.Process]()
        self._mark = mark or _own_mark(leader)
        # Of a leader that is gone no start time can be compared. Its session may even be another's
        # of the same number, if the system has been using numbers again.
        self._orphaned = not psutil.pid_exists(ref.pid) and ref.started > psutil.boot_time()
        self._living: list[psutil.Process] = []

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._living]

    def look(self) -> bool:
        """Find who lives now; whether anybody does."""
        outside, self._living = list(_running()), []
        while found := [row for row in outside if self._includes(row)]:
            self._living += [row.process for row in found]
            self._known.update(row.process for row in found)
            self._sessions.update(row.session for row in found)
            self._sessions -= {0, os.getsid(0)}  # 0: one outside this container
            outside = [row for row in outside if row not in found]
        return bool(self._living)

    def _includes(self, row: _Row) -> bool:
        return (
            row.session in self._sessions
            or row.process in self._known
            or row.parent in self.pids
            or self._mark in row.marks
            or (self._orphaned and row.session == self._pid and bool(row.marks))
        )

    def signal_group(self, number: int) -> bool:
        """Send to the group, which leaves nobody in it the time to fork; whether there is anybody in it."""
        if not any(_group(pid) == self._pid for pid in self.pids):
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
        return True

    def signal(self, number: int) -> None:
        """Send to the group, and to all who left it."""
        self.signal_group(number)
        for process in self._living:
            with suppress(psutil.Error):
                if _group(process.pid) != self._pid:
                    process.send_signal(number)  # not if the pid has become another's

    def wait(self, seconds: float) -> None:
        """Wait until all who were found have ended, but not longer."""
        deadline = time.monotonic() + seconds
        while any(map(_runs, self._living)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def marked(mark: str) -> list[psutil.Process]:
    """All running processes that inherited a mark, whoever started them."""
    return [row.process for row in _running() if mark in row.marks]


def _running() -> Iterator[_Row]:
    """All other processes; those too that were made while they were looked at."""
    seen = {os.getpid()}
    for _ in range(_LOOKS):
        fresh = set(psutil.pids()) - seen
        for pid in fresh:
            with suppress(psutil.Error, ProcessLookupError, PermissionError):
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    yield _Row(process, process.ppid(), os.getsid(pid), _marks(process))
        seen |= fresh


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _find(ref: ProcessRef) -> psutil.Process | None:
    """The process itself, even if it has ended and nobody has asked how."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(ref.pid)
        if abs(process.create_time() - ref.started) < _CLOCK_SECONDS:
            return process
    return None


def _marks(process: psutil.Process) -> Sequence[str]:
    with suppress(psutil.Error, OSError):
        return [mark for mark in process.environ().get(MARK, "").split(":") if mark]
    return ()


def _own_mark(leader: psutil.Process | None) -> str | None:
    """The mark that a leader was started with; it is the last one of its own."""
    mark = _marks(leader)[-1:] if leader else ()
    return mark[0] if mark and mark[0] not in os.environ.get(MARK, "") else None


def _group(pid: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return None


@contextmanager
def _input(text: str | None) -> Iterator[int | IO[bytes]]:
    """A file without a name that holds the text: unlike a pipe, it never waits for its reader."""
    if text is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


@contextmanager
def _output(log: Path) -> Iterator[int]:
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(log, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _not_started(argv: Sequence[str], cwd: Path, error: Exception) -> Unavailable:
    command = argv[0] if argv else ""
    if isinstance(error, FileNotFoundError) and cwd.is_dir():
        return Unavailable(
            "COMMAND_NOT_FOUND",
            f"There is no command {command!r}, or none to interpret it. Install it or correct it.",
            command=command,
        )
    return Unavailable("SPAWN_FAILED", f"{command!r} cannot be started in {cwd}: {error}.", command=command)


def _survived(pids: Sequence[int]) -> Unavailable:
    listed = ", ".join(map(str, pids))
    return Unavailable(
        "PROCESS_SURVIVED",
        f"The system does not end {listed}. See what they wait for with `ps -o pid,stat,wchan`.",
        pids=list(pids),
    )
