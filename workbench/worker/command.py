"""Running a task's command: the task in, the outcome out, and no process left behind.

The contract with the command: the task as JSON on standard input; `WORKBENCH_TASK_ID`,
`WORKBENCH_ATTEMPT` and `WORKBENCH_RESULT` in the environment. Exit status 0 completes the task
with the JSON object found at `WORKBENCH_RESULT` (`result`, `artifacts`; both optional); 75
(EX_TEMPFAIL) asks for another attempt; anything else fails under the retry rule.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from workbench.rules import wire

EX_TEMPFAIL = 75
GRACE_SECONDS = 3.0
DRAIN_SECONDS = 5.0
"""How long output is read on when the command has ended and something that left its group keeps it open."""
LINE_LIMIT = 1_000_000
RESULT_LIMIT = 10_000_000
TAIL_LINES = 15


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    ok: bool
    result: Any = None
    artifacts: Sequence[str] = ()
    error: str = ""
    retryable: bool = True


@dataclass
class _Tail:
    """The last lines of an output, for the error message."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines = [*self.lines, line][-TAIL_LINES:]

    def __str__(self) -> str:
        return "\n".join(self.lines)


async def run_command(
    task: Mapping[str, Any], place: Path, on_line: Callable[[str], None], extra: Mapping[str, str]
) -> Outcome:
    """Run a task's command in `place`; cancelling ends the command with all its descendants' group.

    Args:
        task: the task as the server gave it.
        place: the directory it runs in.
        on_line: told each line of output (standard output and error together).
        extra: more environment variables, such as git's author.
    """
    if not task["run"]:
        return Outcome(False, error="This task has no command; a script worker cannot do it.", retryable=False)
    tail = _Tail()

    def hear(line: str) -> None:
        tail.add(line)
        on_line(line)

    with tempfile.TemporaryDirectory(prefix="workbench-task-", ignore_cleanup_errors=True) as scratch:
        answer = Path(scratch) / "result.json"
        try:
            status = await _run(task, place, _environment(task, answer, extra), hear)
        except (OSError, ValueError) as error:
            return Outcome(False, error=f"The command could not be started: {error}.", retryable=False)
        if status == 0:
            return _read_answer(answer)
    wish = " and asked to be tried again" if status == EX_TEMPFAIL else ""
    return Outcome(False, error=f"The command ended with status {status}{wish}.\n{tail}".rstrip())


async def _run(task: Mapping[str, Any], place: Path, env: Mapping[str, str], hear: Callable[[str], None]) -> int:
    async with _process(_argv(task["run"]), place, env, json.dumps(task)) as (process, output):
        listening = asyncio.create_task(_listen(output, hear))
        try:
            status = await process.wait()
            _signal_group(process.pid, signal.SIGKILL)  # what it left behind would keep its output open
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(listening, DRAIN_SECONDS)
        finally:
            listening.cancel()
        return status


def _argv(run: str | list[str]) -> list[str]:
    return ["/bin/sh", "-c", run] if isinstance(run, str) else run


def _environment(task: Mapping[str, Any], answer: Path, extra: Mapping[str, str]) -> dict[str, str]:
    return (
        os.environ
        | extra
        | {
            "WORKBENCH_TASK_ID": str(task["id"]),
            "WORKBENCH_ATTEMPT": str(task["attempt"]),
            "WORKBENCH_RESULT": str(answer),
        }
    )


@contextlib.asynccontextmanager
async def _process(
    argv: list[str], place: Path, env: Mapping[str, str], text: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    """A process in a group of its own, and its output; leaving the block ends the whole group."""
    async with _pipe() as (output, stdout):
        with stdout, _file(text) as stdin:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=place,
                env=env,
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process, output
        finally:
            await _end_group(process)


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
    """A file without a name: unlike a pipe, it never waits for its reader."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


async def _end_group(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


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


def _read_answer(answer: Path) -> Outcome:
    if not os.path.lexists(answer):
        return Outcome(True)
    try:
        if not answer.is_file():
            raise ValueError("it is not a file")
        if answer.stat().st_size > RESULT_LIMIT:
            raise ValueError(f"it has more than {RESULT_LIMIT:,} bytes")
        said = json.loads(answer.read_text("utf-8"))
        if not isinstance(said, dict):
            raise ValueError("it is not an object")
        artifacts = said.get("artifacts", [])
        if not (isinstance(artifacts, list) and all(isinstance(a, str) for a in artifacts)):
            raise ValueError("artifacts is not a list of strings")
        wire.check(said)
    except (OSError, ValueError, RecursionError) as error:
        return Outcome(False, error=f"The result file cannot be used: {error}.", retryable=False)
    return Outcome(True, said.get("result"), artifacts)
