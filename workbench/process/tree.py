"""A process with all its descendants, including those that created their own session or whose parents ended.

Descendants are found by their ancestry while their parents live, by the sessions that the tree is known to have
created, and by the mark they inherit. One is missed only if it left its ancestry and cleared its environment before the
first search; a process that adopts orphans finds that one too.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from signal import SIGKILL, SIGTERM

import psutil

from workbench.errors import Unavailable
from workbench.process.marks import marks_of, own_mark
from workbench.process.reference import ProcessRef, is_running

KILL_SECONDS = 5.0
"""How long processes may take to end after SIGKILL."""

_POLL_SECONDS = 0.02
_SCANS = 5
"""How often the list of processes is read, to include those that were started meanwhile."""


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a tree."""

    pid: int
    name: str
    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """The usage of a tree: processor seconds so far, percent of one processor, bytes of memory, and its descendants.

    Memory is the sum of the resident sizes: shared pages count for each process.
    """

    cpu_seconds: float = 0.0
    cpu_percent: float = 0.0
    memory_bytes: int = 0
    descendants: Sequence[Member] = ()


@dataclass(frozen=True)
class RunningProcess:
    """The facts that decide whether a process belongs to a tree."""

    process: psutil.Process
    parent: int
    session: int

    @cached_property
    def marks(self) -> Sequence[str]:
        """See `marks_of`; read on first use, because that costs more than the rest."""
        return marks_of(self.process)


def running_processes() -> Iterator[RunningProcess]:
    """All processes except this one and zombies, including those started while the list is read."""
    seen_pids = {os.getpid()}
    for _ in range(_SCANS):
        new_pids = set(psutil.pids()) - seen_pids
        for pid in new_pids:
            with suppress(psutil.Error, ProcessLookupError, PermissionError):
                process = psutil.Process(pid)
                with process.oneshot():
                    if process.status() != psutil.STATUS_ZOMBIE:
                        yield RunningProcess(process, process.ppid(), os.getsid(pid))
        seen_pids |= new_pids


class ProcessTree:
    """A process with its descendants.

    It remembers each process that `find` returned and its session, because all processes of that session belong here.

    Args:
        root: the process. It may have ended.
        adopts_orphans: this process is a subreaper (`adopt_orphans`), and `root` is the only child that it has started,
            so that everything below this process belongs to the tree.
    """

    def __init__(self, root: ProcessRef, *, adopts_orphans: bool = False) -> None:
        process = root.find()
        self._root = root
        self._known = {process} if process else set[psutil.Process]()
        self._sessions = {root.pid} if process else set[int]()
        self._foreign_sessions = {0, os.getsid(0)}  # 0: one from outside this container
        self._mark = root.mark or (own_mark(process) if process else None)
        self._adopter = os.getpid() if adopts_orphans else None
        self._reaped_seconds = reaped_cpu_seconds() if adopts_orphans else 0.0
        # The start time of an ended root cannot be compared, so its session id may have been reused. It has been if a
        # process in that session has no mark, or if the system has been rebooted since.
        self._root_ended = not psutil.pid_exists(root.pid) and root.started > psutil.boot_time()

    def find(self, running: Iterable[RunningProcess] | None = None) -> Sequence[psutil.Process]:
        """The members that run now.

        Args:
            running: all processes, if they are already listed.
        """
        members: dict[int, psutil.Process] = {}
        outside, count = self._take(running_processes() if running is None else running, members), 0
        while len(members) > count:
            count = len(members)
            outside = self._take(outside, members)
        return list(members.values())

    def _take(self, rows: Iterable[RunningProcess], members: dict[int, psutil.Process]) -> list[RunningProcess]:
        """Add the processes of the tree to its members, and return the others.

        Each is checked as soon as it is listed: it may end a moment later, which would hide its child.
        """
        outside = []
        for row in rows:
            if self._includes(row, members):
                members[row.process.pid] = row.process
                self._known.add(row.process)
                self._sessions |= {row.session} - self._foreign_sessions
            else:
                outside.append(row)
        return outside

    def _includes(self, row: RunningProcess, members: Mapping[int, psutil.Process]) -> bool:
        if row.session in self._sessions or row.process in self._known or row.parent in members:
            return True
        if self._adopter is not None:
            return row.parent == self._adopter
        if self._root_ended and row.session == self._root.pid:
            return bool(row.marks)
        return self._mark is not None and self._mark in row.marks

    def terminate(self, grace: float, kill_seconds: float = KILL_SECONDS) -> bool:
        """End all: SIGTERM, up to `grace` seconds, then SIGKILL. False if nothing was running.

        The root's group gets SIGTERM first, and half of the grace to end the others itself, so that a supervisor does
        not mistake the end of its command for a failure.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``: `details.pids` did not end within `kill_seconds` of SIGKILL.
        """
        started_at = time.monotonic()
        members = self.find()
        if not members:
            return False
        if group := self._group(members):
            self._signal_group(SIGTERM)
            _wait(group, grace / 2)
        if members := self.find():
            self._signal(members, SIGTERM)
            _wait(members, grace - (time.monotonic() - started_at))
        self.kill(kill_seconds)
        return True

    def kill(self, seconds: float = KILL_SECONDS) -> None:
        """Kill all, until none is left.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``.
        """
        deadline = time.monotonic() + seconds
        while members := self.find():
            if time.monotonic() > deadline:
                raise _survival_error(members)
            self._signal(members, SIGKILL)
            _wait(members, seconds / 10)
        if self._adopter is not None:
            reap_orphans(except_pid=self._root.pid)

    def usage(self, running: Iterable[RunningProcess] | None = None) -> TreeUsage:
        """The present usage of the members, plus the processor time of adopted orphans that have ended.

        Args:
            running: see `find`.
        """
        members = list(_measure(self.find(running)))
        return TreeUsage(
            cpu_seconds=self._orphan_seconds() + sum(member.cpu_seconds for member in members),
            memory_bytes=sum(member.memory_bytes for member in members),
            descendants=[member for member in members if member.pid != self._root.pid],
        )

    def _orphan_seconds(self) -> float:
        """Processor seconds of adopted orphans that have ended."""
        if self._adopter is None:
            return 0.0
        reap_orphans(except_pid=self._root.pid)
        return reaped_cpu_seconds() - self._reaped_seconds

    def _group(self, members: Sequence[psutil.Process]) -> Sequence[psutil.Process]:
        """The members that are in the root's process group."""
        return [process for process in members if _group_of(process.pid) == self._root.pid]

    def _signal_group(self, number: int) -> None:
        """Signal the whole group at once, so that nothing in it has time to fork."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._root.pid, number)

    def _signal(self, members: Sequence[psutil.Process], number: int) -> None:
        """Signal the group, and each member that is not in it."""
        group = set(self._group(members))
        if group:
            self._signal_group(number)
        for process in set(members) - group:
            with suppress(psutil.Error):
                process.send_signal(number)  # psutil does not signal another process that reuses the pid


def _wait(processes: Sequence[psutil.Process], seconds: float) -> None:
    """Wait until all processes have ended, for at most `seconds`."""
    deadline = time.monotonic() + seconds
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _measure(processes: Iterable[psutil.Process]) -> Iterator[Member]:
    for process in processes:
        with suppress(psutil.Error):
            seconds = sum(process.cpu_times()[:4])  # including reaped children
            yield Member(process.pid, process.name(), seconds, process.memory_info().rss)


def _group_of(pid: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return None


def _survival_error(processes: Sequence[psutil.Process]) -> Unavailable:
    pids = sorted(process.pid for process in processes)
    text = ", ".join(map(str, pids))
    return Unavailable(
        "PROCESS_SURVIVED",
        f"SIGKILL did not end {text}. `ps -o pid,stat,wchan -p {','.join(map(str, pids))}` shows what they wait for.",
        pids=pids,
    )


_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parents end; False where the system does not support that."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap_orphans(*, except_pid: int) -> None:
    """Reap the children that have ended.

    Args:
        except_pid: a child that was started here, not adopted; the code that started it waits for it.
    """
    for child in psutil.Process().children():
        with suppress(ChildProcessError, psutil.Error):
            if child.pid != except_pid and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def reaped_cpu_seconds() -> float:
    """Processor seconds of all reaped children of this process."""
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)
