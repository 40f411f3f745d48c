"""Starts processes, keeps their exit codes, and ends processes, including those that an earlier server started."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import psutil

from workbench.errors import Unavailable
from workbench.process.marks import is_owned, marked, marks_of, new_mark
from workbench.process.reference import ProcessRef, is_running
from workbench.process.streams import open_input, open_log
from workbench.process.tree import KILL_SECONDS, ProcessTree, RunningProcess, TreeUsage, running_processes


class _Child(subprocess.Popen[bytes]):
    """A process that may outlive this object; a plain `Popen` warns when it does."""

    def __del__(self) -> None:
        super().__del__(_warn=lambda *_, **__: None)  # type: ignore[call-arg]


class ProcessTable:
    """Starts processes, knows their exit codes, and ends any process with all its descendants.

    Args:
        owner: the owner of these processes. Those of another owner count as ended: a copy of a store names the
            processes of the original.
    """

    def __init__(self, owner: str = "") -> None:
        self._owner = owner
        self._children: dict[ProcessRef, subprocess.Popen[bytes]] = {}
        self._samples: dict[ProcessRef, tuple[float, float]] = {}
        """When the usage of a process was last measured, and its processor seconds then."""
        self._ending: Counter[ProcessRef] = Counter()

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin_text: str | None = None,
        log: Path,
        pass_fds: Collection[int] = (),
    ) -> ProcessRef:
        """Start a command in its own session and process group.

        Its standard input is `stdin_text` (UTF-8; None: empty). Its output is appended to `log`, which is created with
        mode 0600. `env` is its whole environment, to which a mark is added. It inherits the open files `pass_fds`.

        Raises:
            Unavailable: ``COMMAND_NOT_FOUND``, ``SPAWN_FAILED``.
        """
        mark = new_mark(self._owner)
        opened_input = nullcontext(subprocess.DEVNULL) if stdin_text is None else open_input(stdin_text)
        try:
            with opened_input as stdin, open_log(log) as stdout:
                child = _Child(
                    argv,
                    cwd=cwd,
                    env=marked(env, mark),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=pass_fds,
                )
        except (OSError, ValueError, IndexError) as error:
            raise _explain_failure(argv, cwd, error) from error
        ref = ProcessRef.of_new(child.pid, mark)
        self._children[ref] = child
        return ref

    def alive(self, ref: ProcessRef) -> bool:
        """Whether the process itself still runs; a zombie does not."""
        if child := self._children.get(ref):
            return child.poll() is None
        process = self._find(ref)
        return process is not None and is_running(process)

    def recognises(self, ref: ProcessRef) -> bool:
        """Whether the process runs, with its pid, its start time and its mark, which an earlier server gave it."""
        process = self._find(ref)
        return process is not None and is_running(process) and ref.mark is not None and ref.mark in marks_of(process)

    def _find(self, ref: ProcessRef) -> psutil.Process | None:
        return ref.find() if is_owned(ref.mark, self._owner) else None

    @contextmanager
    def ending(self, ref: ProcessRef) -> Iterator[None]:
        """Within the block, the process does not count as having ended by itself."""
        self._ending[ref] += 1
        try:
            yield
        finally:
            self._ending[ref] -= 1
            if not self._ending[ref]:
                del self._ending[ref]

    def ended_by_itself(self, ref: ProcessRef) -> bool:
        """Whether the process has ended and nothing here is ending it."""
        return ref not in self._ending and not self.alive(ref)

    def exit_code(self, ref: ProcessRef) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs or if it was not started here.

        Reaps a zombie.
        """
        child = self._children.get(ref)
        return child.poll() if child else None

    def release(self) -> None:
        """Forget all processes; those that run go on. Python reaps them when it starts another process."""
        self._children.clear()
        self._samples.clear()

    def forget(self, ref: ProcessRef) -> None:
        """Forget a process that has ended, or that cannot be ended."""
        self._children.pop(ref, None)
        self._samples.pop(ref, None)

    def usage(self, refs: Sequence[ProcessRef]) -> dict[ProcessRef, TreeUsage]:
        """The usage of processes with their descendants.

        `cpu_percent` is since the previous call for the same process or, for the first one, since the process began.
        """
        running = list(running_processes())
        return {ref: self._usage(ref, running) if is_owned(ref.mark, self._owner) else TreeUsage() for ref in refs}

    def _usage(self, ref: ProcessRef, running: Sequence[RunningProcess]) -> TreeUsage:
        usage, now = ProcessTree(ref).usage(running), time.time()
        measured_at, cpu_seconds = self._samples.get(ref, (ref.started, 0.0))
        self._samples[ref] = (now, usage.cpu_seconds)
        percent = 100 * (usage.cpu_seconds - cpu_seconds) / (now - measured_at) if now > measured_at else 0.0
        return replace(usage, cpu_percent=max(0.0, percent))

    def terminate(self, ref: ProcessRef, grace: float, kill_seconds: float = KILL_SECONDS) -> bool:
        """End a process with all its descendants; see `ProcessTree.terminate`. Another owner's is left alone.

        Raises:
            Unavailable: ``PROCESS_SURVIVED``.
        """
        if not is_owned(ref.mark, self._owner):
            return False
        try:
            return ProcessTree(ref).terminate(grace, kill_seconds)
        finally:
            self.exit_code(ref)


def _explain_failure(argv: Sequence[str], cwd: Path, error: Exception) -> Unavailable:
    command = argv[0] if argv else ""
    if isinstance(error, FileNotFoundError) and cwd.is_dir():
        return Unavailable(
            "COMMAND_NOT_FOUND",
            f"The command {command!r} or its interpreter is not installed. Install it or correct the name.",
            command=command,
        )
    return Unavailable("SPAWN_FAILED", f"{command!r} cannot be started in {cwd}: {error}.", command=command)
