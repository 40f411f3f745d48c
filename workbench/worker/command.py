"""Runs one command: passes on its output line by line, reports how it ended, and leaves no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from workbench.confinement import Box, BoxLimits
from workbench.confinement.gate import Gate
from workbench.process import ProcessRef, ProcessTree, marked, new_mark, open_input
from workbench.rules.hosts import HostRefusal

DRAIN_SECONDS = 20.0
"""How long to read output after the command has ended, if another process holds it open."""
LINE_LIMIT = 1_000_000
HEARD_LINE_LIMIT = 10_000_000
"""Bytes of a line of a program that is heard: it may hold a picture, or a change that the program asks about."""
TOO_LONG = "[a line too long to keep]"
TURN_SECONDS = 0.01
"""How long available lines are read before other work, such as a heartbeat, gets its turn."""
SAMPLE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """A command to run.

    Args:
        argv: the program and its arguments.
        box: that it runs in.
        backstop: limits that the system enforces.
        cwd: the directory it runs in.
        environment: its whole environment, to which a mark is added.
        stdin: its standard input, unless it is talked to.
        limits: processor seconds, bytes of memory and seconds of the command with all it starts.
        began_at: since when its seconds count, on the monotonic clock; None: since it is started.
        on_error: called with each line of its standard error; None: that is part of its output.
        verdict: why the command is to be ended now, asked several times a second; None: it may go on.
        say: what is written to its standard input at first, after each line of its output, and when it is about to be
            ended (`True`); None: nothing more, it is closed. Without it, the command is not talked to.
        news: set when there is more to say.
    """

    argv: Sequence[str]
    box: Box
    backstop: BoxLimits
    cwd: Path
    environment: Mapping[str, str]
    stdin: str
    limits: BoxLimits
    on_error: Callable[[str], None] | None = None
    verdict: Callable[[], str | None] = lambda: None
    say: Callable[[bool], str | None] | None = None
    news: asyncio.Event | None = None
    began_at: float | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended: its exit status (minus the signal's number), the limit it exceeded, or why its `verdict`
    ended it, in words, and the hosts that it did not reach."""

    status: int
    exceeded: str | None = None
    ended: str | None = None
    refused: Sequence[HostRefusal] = ()


async def run(
    command: WorkerCommand, on_line: Callable[[str], None], *, grace: float, adopts_orphans: bool
) -> CommandResult:
    """Run a command to its end; cancelling ends it. None of its processes is left in either case.

    Args:
        on_line: called with each line of its output (standard output and error together, unless it has an `on_error`).
        grace: seconds between SIGTERM and SIGKILL.
        adopts_orphans: see `ProcessTree`.

    Raises:
        OSError, ValueError: it cannot be started. Unavailable: ``PROCESS_SURVIVED``.
    """
    async with Gate(command.box) as gate, contextlib.AsyncExitStack() as pipes:
        talk = await pipes.enter_async_context(_talk(command.say)) if command.say else None
        limit = HEARD_LINE_LIMIT if command.on_error else LINE_LIMIT
        opened = [await pipes.enter_async_context(_pipe(limit)) for _ in range(2 if command.on_error else 1)]
        outputs, sinks = [output for output, _ in opened], [sink for _, sink in opened]
        process, tree = await _start(command, gate, talk, sinks, adopts_orphans)
        readers = [_read(outputs[0], on_line, talk)]
        if command.on_error:
            readers.append(_read(outputs[1], command.on_error))
        reading = asyncio.gather(*readers)
        talking = asyncio.create_task(talk.go_on_at(command.news)) if talk and command.news else None
        try:
            try:
                result = await _wait_for_end(process, tree, command)
            finally:
                if talk:
                    talk.end()
                await _complete_work(_end(process, tree, grace))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reading, DRAIN_SECONDS)
        finally:
            reading.cancel()
            if talking:
                talking.cancel()
        return dataclasses.replace(result, status=await process.wait(), refused=gate.refused)


async def _start(
    command: WorkerCommand, gate: Gate, talk: _Talk | None, sinks: Sequence[IO[bytes]], adopts_orphans: bool
) -> tuple[asyncio.subprocess.Process, ProcessTree]:
    """A process in a session of its own.

    Args:
        sinks: of its standard output and, if that is apart, of its standard error; they are closed.
    """
    mark = new_mark()
    with contextlib.ExitStack() as opened:
        stdout, *rest = map(opened.enter_context, sinks)
        stdin = opened.enter_context(talk.source if talk else open_input(command.stdin))
        process = await asyncio.create_subprocess_exec(
            *command.box.argv(command.argv, command.backstop, way_out=gate.way_out),
            cwd=command.cwd,
            env=marked({**command.environment, **gate.environment}, mark),
            pass_fds=gate.pass_fds,
            stdin=stdin,
            stdout=stdout,
            stderr=rest[0] if rest else asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    return process, ProcessTree(ProcessRef.of_new(process.pid, mark), adopts_orphans=adopts_orphans)


async def _wait_for_end(
    process: asyncio.subprocess.Process, tree: ProcessTree, command: WorkerCommand
) -> CommandResult:
    """Wait until the command ends, exceeds a limit, or is to be ended; why, without its status."""
    waiting, watching = asyncio.create_task(process.wait()), asyncio.create_task(_watch(tree, command))
    judging = asyncio.create_task(_judge(command.verdict))
    tasks = {waiting, watching, judging}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return CommandResult(0)
        return CommandResult(0, watching.result()) if watching.done() else CommandResult(0, None, judging.result())
    finally:
        for task in tasks:
            task.cancel()


async def _judge(verdict: Callable[[], str | None]) -> str:
    """Wait until a command is to be ended; return why."""
    while (reason := verdict()) is None:
        await asyncio.sleep(SAMPLE_SECONDS)
    return reason


async def _watch(tree: ProcessTree, command: WorkerCommand) -> str:
    """Wait until a limit is exceeded; return it, in words."""
    limits, cpu_seconds = command.limits, 0.0
    began_at = time.monotonic() if command.began_at is None else command.began_at
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        elapsed = time.monotonic() - began_at
        if limits.wall_seconds is not None and elapsed > limits.wall_seconds:
            return f"it took longer than {limits.wall_seconds:g} s"
        if limits.cpu_seconds is None and limits.memory_bytes is None:
            continue
        usage = await asyncio.to_thread(tree.usage)
        cpu_seconds = max(cpu_seconds, usage.cpu_seconds)  # that of a member that ends is missing for a moment
        if limits.cpu_seconds is not None and cpu_seconds > limits.cpu_seconds:
            return f"it used {cpu_seconds:.1f} s of processor time, more than {limits.cpu_seconds:g} s"
        if limits.memory_bytes is not None and usage.memory_bytes > limits.memory_bytes:
            return f"it used {usage.memory_bytes:,} bytes of memory, more than {limits.memory_bytes:,}"


async def _end(process: asyncio.subprocess.Process, tree: ProcessTree, grace: float) -> None:
    """End the command if it runs, and the processes it left behind, which would keep its output open."""
    if process.returncode is None:
        await asyncio.to_thread(tree.terminate, grace)
    else:
        await asyncio.to_thread(tree.kill)
    await process.wait()


async def _complete_work(work: Coroutine[Any, Any, None]) -> None:
    """Complete `work`, however often this is cancelled meanwhile; then raise the cancellation."""
    task, cancellation = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancellation = error
    task.result()
    if cancellation:
        raise cancellation


@contextlib.asynccontextmanager
async def _pipe(limit: int) -> AsyncIterator[tuple[asyncio.StreamReader, IO[bytes]]]:
    """A pipe that, unlike asyncio's, nothing waits for once the process has ended."""
    source, sink = os.pipe()
    reader = asyncio.StreamReader(limit)
    with os.fdopen(sink, "wb", 0) as stdout:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
        )
        try:
            yield reader, stdout
        finally:
            transport.close()


@dataclass(frozen=True, slots=True)
class _Talk:
    """What a command is told on its standard input while it runs.

    Args:
        source: the end of a pipe that the command reads.
    """

    source: IO[bytes]
    _writer: asyncio.StreamWriter
    _say: Callable[[bool], str | None]

    async def go_on(self) -> None:
        """Write what is to be said, as fast as the command reads it."""
        if self._writer.is_closing():
            return
        while said := self._say(False):
            self._writer.write(said.encode())
        if said is None:
            self._writer.close()
        with contextlib.suppress(OSError):  # the command has ended
            await self._writer.drain()

    async def go_on_at(self, news: asyncio.Event) -> None:
        """Go on whenever there is more to say."""
        while True:
            await news.wait()
            news.clear()
            await self.go_on()

    def end(self) -> None:
        """Write the last words, and close the pipe."""
        if not self._writer.is_closing():
            self._writer.write((self._say(True) or "").encode())
            self._writer.close()


@contextlib.asynccontextmanager
async def _talk(say: Callable[[bool], str | None]) -> AsyncIterator[_Talk]:
    source, sink = os.pipe()
    reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
    with os.fdopen(source, "rb", 0) as input_of_command:
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(sink, "wb", 0)
        )
        try:
            yield _Talk(input_of_command, asyncio.StreamWriter(transport, protocol, reader, loop), say)
        finally:
            if not transport.is_closing():
                transport.abort()


async def _read(output: asyncio.StreamReader, on_line: Callable[[str], None], talk: _Talk | None = None) -> None:
    deadline = time.monotonic() + TURN_SECONDS
    if talk:
        await talk.go_on()
    async for line in _lines(output):
        on_line(line)
        if talk:
            await talk.go_on()
        if time.monotonic() > deadline:
            await asyncio.sleep(0)
            deadline = time.monotonic() + TURN_SECONDS


async def _lines(output: asyncio.StreamReader) -> AsyncIterator[str]:
    is_rest = False
    while True:
        try:
            raw = await output.readuntil()
        except asyncio.IncompleteReadError as error:
            if error.partial and not is_rest:
                yield as_text(error.partial).rstrip("\r\n")
            return
        except asyncio.LimitOverrunError as error:  # a line over the limit: skip it, however long it is
            await output.readexactly(error.consumed)
            if not is_rest:
                yield TOO_LONG
            is_rest = True
            continue
        if not is_rest:
            yield as_text(raw).rstrip("\r\n")
        is_rest = False


def as_text(raw: bytes) -> str:
    """A program's output as text that can be stored and sent: invalid UTF-8 and NUL are replaced."""
    return raw.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
