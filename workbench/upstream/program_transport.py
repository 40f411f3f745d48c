"""Messages to and from a program on its standard input and output.

Unlike the transport of the MCP package, it limits the length of a message, the rate of progress reports and the size of
the log, and it ends the program with everything that it started.
"""

from __future__ import annotations

import asyncio
import json
import logging
from asyncio import to_thread
from asyncio.subprocess import PIPE, Process
from codecs import BOM_UTF8
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.confinement.box import Box, WayOut
from workbench.confinement.gate import Gate
from workbench.errors import Unavailable
from workbench.process import ProcessRef, ProcessTree, marked, new_mark
from workbench.rules.token_bucket import TokenBucket
from workbench.upstream.errors import TOO_LARGE
from workbench.upstream.lines import LineSplitter, TooLong

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

CHUNK = 1 << 16
REPORTS_PER_SECOND = 100
"""Reports of progress and messages of a log that are read; further ones are dropped before they are decoded."""
LOG_CHUNKS = 8
LOG_CHUNK = 1 << 10
LEAVE_SECONDS = 2.0
"""How long a program may take to end after its input was closed; then it gets SIGTERM."""
TERMINATE_SECONDS = 2.0
"""How long it may take after SIGTERM; then it is killed."""

_REPORTS = (b'"notifications/progress"', b'"notifications/message"')
_METHOD_WITHIN = 200
"""Bytes at the start of a message in which the name of its method is searched for."""
_PARSE_ERROR = -32700
_INTERNAL_ERROR = -32603

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class ServerProgram:
    """A program that speaks MCP on its standard input and output. It has no representation that shows its secrets.

    Args:
        command: the program with its arguments.
        box: that it runs in; None: none.
        environment: the program's, whole.
        roots: the directories that it is told to work in, if it asks.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    roots: Sequence[Path] = ()
    box: Box | None = None

    def argv(self, way_out: WayOut = WayOut()) -> Sequence[str]:
        """What is executed. Without a way out, its box reaches what the machine's network allows to it."""
        return self.command if self.box is None else self.box.argv(self.command, guarded=True, way_out=way_out)


class LogTail:
    """The end of a program's standard error."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque(maxlen=LOG_CHUNKS)

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Read until the program closes it."""
        while chunk := await stream.read(LOG_CHUNK):
            self._chunks.append(chunk)

    @property
    def text(self) -> str:
        """The last bytes that it wrote, as text."""
        return b"".join(self._chunks).decode("utf-8", "replace")


@asynccontextmanager
async def program_streams(
    program: ServerProgram,
    largest: int,
    tail: LogTail,
    ended: Callable[[], None],
    started: Callable[[ProcessRef], None] = lambda process: None,
) -> AsyncGenerator[TransportStreams]:
    """Start a program, and end it with all that it started.

    Args:
        largest: bytes of a message from it.
        ended: called when it closes its output.
        started: called with its process.

    Raises:
        OSError: it cannot be started.
    """
    async with AsyncExitStack() as stack:
        gate = await stack.enter_async_context(Gate(program.box)) if program.box else None
        process, ref = await _start(program, gate)
        started(ref)
        yield await stack.enter_async_context(_streams(process, ref, largest, tail, ended))


async def _start(program: ServerProgram, gate: Gate | None) -> tuple[Process, ProcessRef]:
    mark = new_mark()
    environment = {**program.environment, **(gate.environment if gate else {})}
    process = await asyncio.create_subprocess_exec(
        *program.argv(gate.way_out if gate else WayOut()),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=program.directory,
        env=marked(environment, mark),
        start_new_session=True,
        pass_fds=gate.pass_fds if gate else (),
    )
    return process, ProcessRef.of_new(process.pid, mark)


@asynccontextmanager
async def _streams(
    process: Process, ref: ProcessRef, largest: int, tail: LogTail, ended: Callable[[], None]
) -> AsyncGenerator[TransportStreams]:
    """The messages to and from a process, which is ended with all that it started."""
    import anyio

    incoming_send, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream["SessionMessage"](0)
    tree = ProcessTree(ref)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    tasks = [
        asyncio.create_task(_read(process.stdout, incoming_send, largest, ended)),
        asyncio.create_task(_write(process.stdin, outgoing_receive, incoming_send)),
        asyncio.create_task(tail.follow(process.stderr)),
    ]
    try:
        yield incoming, outgoing
    finally:
        try:  # a second cancellation does not stop the end
            await asyncio.shield(asyncio.create_task(_end(process, tree, tasks)))
        finally:
            for stream in (incoming, incoming_send, outgoing, outgoing_receive):
                stream.close()


async def _read(
    stream: asyncio.StreamReader,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    largest: int,
    ended: Callable[[], None],
) -> None:
    import anyio

    lines, clock = LineSplitter(largest), asyncio.get_running_loop().time
    reports = TokenBucket(REPORTS_PER_SECOND, 1.0, clock())
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with incoming:
            while chunk := await stream.read(CHUNK):
                for line in lines.feed(chunk):
                    if isinstance(line, bytes) and _is_report(line) and not reports.take(clock()):
                        continue
                    if (message := _decode(line, largest)) is not None:
                        await incoming.send(message)
    ended()
    while await stream.read(CHUNK):  # it must not wait for a reader while it ends
        pass


def _is_report(line: bytes) -> bool:
    return any(method in line[:_METHOD_WITHIN] for method in _REPORTS)


def _decode(line: bytes | TooLong, largest: int) -> SessionMessage | None:
    """The message in a line; None if it holds none, such as a program's own output."""
    from mcp.shared.message import SessionMessage
    from mcp.types import ErrorData, JSONRPCError, jsonrpc_message_adapter

    def refused(id_: int | None, reason: str) -> SessionMessage:
        error = ErrorData(code=_PARSE_ERROR, message=reason)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id_, error=error))

    if isinstance(line, TooLong):
        return refused(line.answers, f"{TOO_LARGE} {largest} bytes")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        log.debug("a line that is no message: %.200r", line)
    if (answer := _mended_answer(line)) is None:
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(answer, by_name=False))
    except ValueError:
        return refused(answer["id"], "its answer is not as the protocol says")


def _mended_answer(line: bytes) -> dict[str, Any] | None:
    """The answer in an invalid line, with what is off the protocol around its result mended; None if it holds none."""
    try:
        message = json.loads(line.removeprefix(BOM_UTF8).decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not message.keys() & {"result", "error"}:
        return None
    id_, error = message.get("id"), message.get("error")
    if not isinstance(id_, int) and not (isinstance(id_, str) and id_.isdecimal()):
        return None
    answer = {"jsonrpc": "2.0", "id": int(id_)}
    if error is None:
        return answer | {"result": message.get("result")}
    return answer | {"error": {"code": _INTERNAL_ERROR, "message": error} if isinstance(error, str) else error}


async def _write(
    stream: asyncio.StreamWriter,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stream.write(text.encode() + b"\n")
            await stream.drain()
    except OSError:
        incoming.close()  # so that the session sees the end, instead of waiting for answers
    finally:
        stream.close()


async def _end(process: Process, tree: ProcessTree, tasks: list[asyncio.Task[None]]) -> None:
    assert process.stdin
    process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(LEAVE_SECONDS):
            await process.wait()
    try:
        await to_thread(tree.terminate, TERMINATE_SECONDS)
    except Unavailable as error:
        log.warning("cannot end the program of an MCP server: %s: %s", error.code, error.message)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    process._transport.close()  # type: ignore[attr-defined]  # a survivor may hold its pipes
