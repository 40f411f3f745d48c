"""Running one command: its output as it comes, how it ended, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from workbench.confinement import Limits
from workbench.process import MARK
from workbench.worker.family import Family, Usage

DRAIN_SECONDS = 5.0
"""How long output is read on when the command has ended and something keeps it open."""
LINE_LIMIT = 1_000_000
SAMPLE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Command:
    """What is to run, and where.

    Args:
        argv: the program and its arguments, the box's launcher in front.
        cwd: the directory it runs in.
        environment: its whole environment, to which a mark is added.
        stdin: what it can read.
        limits: processor seconds, bytes of memory and seconds of the command with all it starts.
    """

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    stdin: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit status (minus the signal's number), and the limit that ended it, in words."""

    status: int
    limit: str | None = None


async def run(command: Command, hear: Callable[[str], None], *, grace: float, alone: bool) -> Ended:
    """Run a command to its end; cancelling ends it. None of its family is left in either case.

    Args:
        hear: told each line of its output (standard output and error together).
        grace: seconds between SIGTERM and SIGKILL.
        alone: see `Family`.

    Raises:
        OSError, ValueError: it cannot be started.
    """
    async with _started(command, grace, alone) as (process, family, output):
        listening = asyncio.create_task(_listen(output, hear))
        watching = asyncio.create_task(_watch(family, command.limits))
        waiting = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({waiting, watching}, return_when=asyncio.FIRST_COMPLETED)
            over = watching.result() if watching.done() and not waiting.done() else None
            if over:
                await family.end(grace)
            await waiting
            await family.kill()  # what it left behind would keep its output open
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(listening, DRAIN_SECONDS)
        finally:
            for task in (listening, watching, waiting):
                task.cancel()
        return Ended(await process.wait(), over)


async def _watch(family: Family, limits: Limits) -> str:
    """Return when a limit is passed; which, in words."""
    began, most = time.monotonic(), 0.0
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        elapsed = time.monotonic() - began
        if limits.wall_seconds is not None and elapsed > limits.wall_seconds:
            return f"it took longer than {limits.wall_seconds:g} s"
        if limits.cpu_seconds is None and limits.memory_bytes is None:
            continue
        usage: Usage = await asyncio.to_thread(family.usage)
        most = max(most, usage.cpu_seconds)
        if limits.cpu_seconds is not None and most > limits.cpu_seconds:
            return f"it used {most:.1f} s of processor time, more than {limits.cpu_seconds:g} s"
        if limits.memory_bytes is not None and usage.memory_bytes > limits.memory_bytes:
            return f"it used {usage.memory_bytes:,} bytes of memory, more than {limits.memory_bytes:,}"


@contextlib.asynccontextmanager
async def _started(
    command: Command, grace: float, alone: bool
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Family, asyncio.StreamReader]]:
    """A process in a session of its own, and its output; leaving the block ends its whole family."""
    mark = uuid4().hex
    marks = ":".join(filter(None, (os.environ.get(MARK), mark)))
    async with _pipe() as (output, stdout):
        with stdout, _file(command.stdin) as stdin:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                cwd=command.cwd,
                env={**command.environment, MARK: marks},
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        family = Family(process.pid, mark, alone=alone)
        try:
            yield process, family, output
        finally:
            await _whole(_end(process, family, grace))


async def _end(process: asyncio.subprocess.Process, family: Family, grace: float) -> None:
    if process.returncode is None:
        await family.end(grace)
    else:
        await family.kill()
    await process.wait()


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Finish what has been begun, however often this is cancelled meanwhile; then be cancelled."""
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    task.result()


@contextlib.asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[asyncio.StreamReader, IO[bytes]]]:
    """A pipe of our own: unlike asyncio's, it is not waited for when the process has ended."""
    source, sink = os.pipe()
    reader = asyncio.StreamReader(LINE_LIMIT)
    with os.fdopen(sink, "wb", 0) as stdout:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
        )
        try:
            yield reader, stdout
        finally:
            transport.close()


@contextlib.contextmanager
def _file(text: str) -> Iterator[IO[bytes]]:
    """A file without a name: unlike a pipe, it never waits for its reader.

    In memory where that is possible: the box lets nobody open a file of the supervisor's again, as `/dev/stdin`.
    """
    with os.fdopen(os.memfd_create("stdin"), "r+b") if hasattr(os, "memfd_create") else _temporary() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile()


async def _listen(output: asyncio.StreamReader, hear: Callable[[str], None]) -> None:
    async for line in _lines(output):
        hear(line)


async def _lines(stdout: asyncio.StreamReader) -> AsyncIterator[str]:
    while True:
        try:
            raw = await stdout.readline()
        except ValueError:  # a line over the limit: skip what has been read of it
            yield "[a line too long to keep]"
            continue
        if not raw:
            return
        yield raw.decode("utf-8", "replace").rstrip("\r\n")
