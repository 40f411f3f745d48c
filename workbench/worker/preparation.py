"""What comes before an attempt in a worktree: its GPU can be opened, and its set-up has run.

The set-up runs once for a worktree, and again when its text or a lock file changes. It is a command like any other, in
the box. Nothing that it writes is trusted; that it has run is recorded where no command may write.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from workbench.confinement import BoxLimits, environments, surroundings
from workbench.confinement.editable import preceded
from workbench.confinement.refusals import TellingLines, explanation
from workbench.confinement.told import Translation
from workbench.errors import Unavailable
from workbench.rules.secrets.mask import LineMask, Mask
from workbench.system import atomic_file
from workbench.worker import command, scratch
from workbench.worker.attempt import AttemptOutcome, Worker, secrets_of
from workbench.worker.command import CommandResult, WorkerCommand
from workbench.worker.startup import Preparation, WorkerConfig

LOCK_FILES = (
    *("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "pixi.lock", "conda-lock.yml"),
    *("requirements.txt", "environment.yml", "pyproject.toml", "package-lock.json", "yarn.lock", "pnpm-lock.yaml"),
    *("Cargo.lock", "go.sum", "Gemfile.lock", "Manifest.toml", "renv.lock", "flake.lock"),
)
"""Files at the top of a worktree that say what a set-up installs."""
_LARGEST_LOCK = 64 << 20
_LOG_LIMIT = 16 << 20
_LAST_LINE = 300
_OPENING = "import os, sys\nfor path in sys.argv[1:]: os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))"
_GPU_SECONDS = 30.0


async def prepare(worker: Worker) -> AttemptOutcome | None:
    """Prepare the worktree of an attempt; the attempt's outcome if that fails.

    Raises:
        Unavailable: ``PROCESS_SURVIVED``.
    """
    return await asyncio.to_thread(_refuse_without_gpu, worker.config) or await _set_up(worker)


def changed_environment(preparation: Preparation) -> str:
    """A line about an environment that has changed since the agent was started; empty if it has not. Blocks."""
    environment = preparation.environment
    if environment is None or environments.stamp(environment) == preparation.stamp:
        return ""
    return f"[the environment {environment} has changed since this agent was started: results may differ]"


def _refuse_without_gpu(config: WorkerConfig) -> AttemptOutcome | None:
    """Refuse a box whose GPU it cannot open: a program would fall back to the processor and say nothing. Blocks."""
    devices = [path for path in config.box.devices if path not in surroundings.DEVICES and "-caps" not in str(path)]
    if not devices:
        return None
    with scratch.directory(config.scratch, "gpu") as home:
        box = replace(config.box, scratch=home)
        argv = box.guarded([sys.executable, "-I", "-S", "-c", _OPENING, *map(str, devices)])
        try:
            run = subprocess.run(
                argv,
                cwd=config.worktree.path if config.worktree else home,
                env=box.environment(os.environ),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_GPU_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            why = f"it takes longer than {_GPU_SECONDS:g} s"
        else:
            if run.returncode == 0:
                return None
            why = run.stderr.strip().rpartition("\n")[2]
    error = (
        f"GPU_UNAVAILABLE: The GPU of this agent cannot be opened in its box: {why}. The task was not run on the "
        "processor instead. Look whether your user may open the device, and whether its driver works (`nvidia-smi`)."
    )
    return AttemptOutcome(False, error=error, error_class="GPU_UNAVAILABLE", retryable=False)


class SetupLog:
    """The log of a set-up: its output without secrets, and with the paths of this side."""

    def __init__(self, output: TextIO, mask: Mask, translation: Translation) -> None:
        self._output = output
        self._mask = LineMask(mask.text)
        self._translation = translation
        self._written = 0
        self.telling = TellingLines()
        self.last = ""
        """Its last line that is not empty."""

    def add(self, line: str) -> None:
        """Write a line, unless the log has become too long."""
        line = self._translation.text(self._mask(line))
        self.telling.add(line)
        self.last = line.strip()[:_LAST_LINE] or self.last
        self._written += len(line)
        if self._written < _LOG_LIMIT:
            self._output.write(f"{line}\n")


@contextmanager
def setup_log(path: Path, mask: Mask, translation: Translation) -> Iterator[SetupLog]:
    """Write the log of a set-up, in place of an earlier one. Blocks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace") as output:
        path.chmod(0o600)
        yield SetupLog(output, mask, translation)


def due_setup(setup: str, record: Path, worktree: Path) -> bool:
    """Whether a set-up has not run in a worktree, or its text or a lock file has changed since. Blocks."""
    return bool(setup) and _read(record) != _key(setup, worktree)


def record_setup(setup: str, record: Path, worktree: Path) -> None:
    """Record that a worktree is ready. Blocks."""
    record.parent.mkdir(parents=True, exist_ok=True)
    atomic_file.replace(record, f"{_key(setup, worktree)}\n")


def setup_failed(ending: str, last: str, log: Path) -> Unavailable:
    """The error of a set-up: how it ended, and its last line."""
    reason = f"{ending}: {last}" if last else ending
    return Unavailable(
        "SETUP_FAILED",
        f"The set-up of the worktree failed: {reason}. Its output is in {log}. Nothing else was run; the work in the "
        "worktree is as it was. Correct setup of the workplace, or raise setup_seconds; then try again.",
        log=str(log),
    )


async def _set_up(worker: Worker) -> AttemptOutcome | None:
    config, preparation = worker.config, worker.config.preparation
    log, record, place = preparation.log, preparation.record, config.worktree
    if log is None or record is None or place is None:
        return None
    if not await asyncio.to_thread(due_setup, preparation.setup, record, place.path):
        return None
    result, refusals, last = await _run(worker, preparation, log, place.path)
    if result.status == 0 and result.exceeded is None:
        await asyncio.to_thread(record_setup, preparation.setup, record, place.path)
        return None
    ending = result.exceeded or f"it ended with status {result.status}"
    error = setup_failed(ending, "" if result.exceeded else last, log)
    lines = "\n".join(filter(None, (str(error), refusals)))
    return AttemptOutcome(False, error=lines, error_class=error.code, retryable=False)


async def _run(worker: Worker, preparation: Preparation, log: Path, cwd: Path) -> tuple[CommandResult, str, str]:
    """Run the set-up; how it ended, what its box may have refused, and its last line."""
    config = worker.config
    with (
        setup_log(log, Mask(set(secrets_of(worker))), config.box.translation) as output,
        scratch.directory(config.scratch, "setup") as home,
    ):
        box = replace(config.box, scratch=home)
        result = await command.run(
            WorkerCommand(
                argv=["/bin/sh", "-c", preparation.setup],
                box=box,
                backstop=BoxLimits(),
                cwd=cwd,
                environment=preceded(box.environment(os.environ) | dict(config.environment), worker.python_path),
                stdin="",
                limits=BoxLimits(wall_seconds=preparation.seconds),
            ),
            output.add,
            grace=config.grace_seconds,
            adopts_orphans=worker.adopts_orphans,
        )
        return result, explanation(output.telling.lines, box, cwd, result.refused), output.last


def _key(setup: str, worktree: Path) -> str:
    """What a set-up depends on: its text, and the lock files of the worktree. No link is followed."""
    digest = hashlib.sha256(setup.encode())
    for name in LOCK_FILES:
        digest.update(b"\0" + name.encode() + b"\0")
        for part in _content(worktree / name):
            digest.update(part)
    return digest.hexdigest()


def _content(path: Path) -> Iterator[bytes]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield file.read(_LARGEST_LOCK)


def _read(record: Path) -> str:
    try:
        return record.read_text("utf-8").strip()
    except OSError:
        return ""
