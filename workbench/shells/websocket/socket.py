"""One WebSocket as a stream of messages: limits their rate, and sends the replies in the order of the messages.

Independent of what messages mean. A handler turns its errors into replies; errors of background work are sent to the
client; any other error is logged and closes the connection with 1011.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json
from starlette.types import Receive, Send

from workbench.errors import Refused, WorkbenchError
from workbench.rules.token_bucket import TokenBucket
from workbench.rules.wire import message
from workbench.rules.wire.message import Message
from workbench.shells.batches import batch, portions
from workbench.state.settings import Settings

SETTLE_SECONDS = 5.0
"""How long messages may still be handled after their client has left."""
BURST_SECONDS = 10.0
FAREWELL_SECONDS = 1.0
"""How long a client that does not read may delay the close of its connection."""
CLOSE_FLOODING = 1008
CLOSE_INTERNAL_ERROR = 1011

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class Disconnected(Exception):
    """The connection has ended: nothing can be sent any more."""


@dataclass(frozen=True, slots=True)
class SocketReply:
    """A reply, a message to send before it, and what to do once both are sent.

    Args:
        message: an empty one is not sent.
    """

    message: Message
    then: Callable[[], object] | None = None
    close: tuple[int, str] | None = None
    before: Message | None = None


Handle = Callable[[str | None], Coroutine[Any, Any, SocketReply]]
"""Handles the text of a message (None for a binary one) and returns the reply. It never raises."""


class MessageSocket:
    """An accepted connection, until it is closed. Speaks ASGI (WebSocket, version 2.4) to the server below.

    Args:
        takes_batches: the server below has the extension of `batches`.
    """

    def __init__(self, receive: Receive, send: Send, settings: Settings, *, takes_batches: bool = False) -> None:
        self._receive = receive
        self._send = send
        self._takes_batches = takes_batches
        self._rate = settings.max_messages_per_second
        self._most = settings.max_in_flight
        self._room = asyncio.Event()
        self._handling: deque[asyncio.Task[SocketReply]] = deque()
        self._waiting: set[asyncio.Task[Any]] = set()
        self._answered = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._ended = asyncio.Event()
        self._is_open = False

    async def accept(self, subprotocol: str | None) -> None:
        """Accept the connection.

        Raises:
            Disconnected: the client has left meanwhile.
        """
        await self._receive()  # `websocket.connect`
        await self._transmit({"type": "websocket.accept", "subprotocol": subprotocol, "headers": []})
        self._is_open = True

    async def serve(self, handle: Handle) -> None:
        """Serve until either side ends the connection. Messages are handled concurrently: none waits for a commit."""
        loops = [asyncio.create_task(work) for work in (self._listen(handle), self._answer(), self._until_ended())]
        try:
            done, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await self._report(task)
        finally:
            await self._wind_up(loops)

    async def send(self, content: Message) -> None:
        """Send a message after those already being sent.

        Raises:
            Disconnected: the connection has ended.
        """
        await self.send_texts([to_json(content).decode()])

    async def send_texts(self, texts: Sequence[str]) -> None:
        """Send messages, as JSON text, together after those already being sent.

        Raises:
            Disconnected: the connection has ended.
        """
        async with self._sending:
            if not self._is_open:
                raise Disconnected
            if self._takes_batches and len(texts) > 1:
                for portion in portions(texts):
                    await self._transmit(batch(portion))
                return
            for text in texts:
                await self._transmit({"type": "websocket.send", "text": text})

    async def end(self, code: int, reason: str, last: Message | None = None) -> None:
        """Close after an optional last message, without waiting for a client that does not read."""
        with contextlib.suppress(TimeoutError, Disconnected):
            async with asyncio.timeout(FAREWELL_SECONDS):
                if last is not None:
                    await self.send(last)
                async with self._sending:
                    if self._is_open:
                        self._is_open = False
                        await self._transmit({"type": "websocket.close", "code": code, "reason": reason})
        self._ended.set()

    def begin(self, work: Work, action: str | None = None, request_id: Any = None) -> asyncio.Task[None]:
        """Start background work, which is cancelled when the connection ends; errors are sent as those of `action`."""
        task = asyncio.create_task(self.attempt(work, action, request_id))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def attempt(self, work: Work, action: str | None = None, request_id: Any = None) -> None:
        """Do some work; errors are sent to the client if it is still connected."""
        with contextlib.suppress(Disconnected):
            try:
                await work()
            except WorkbenchError as error:
                await self.send(message.reply(message.error(error, action), request_id))
            except Disconnected:
                raise
            except Exception:
                log.exception("background work of a connection failed")
                await self.send(message.reply(message.error(internal_error(), action), request_id))

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """What the message that is being handled waits for, within the block, is given up when the connection ends."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)

    async def _transmit(self, event: Message) -> None:
        try:
            await self._send(event)
        except OSError as error:  # raised by ASGI servers when the client has left
            self._is_open = False
            raise Disconnected from error

    async def _listen(self, handle: Handle) -> None:
        clock = asyncio.get_running_loop().time
        bucket = TokenBucket(self._rate, BURST_SECONDS, clock())
        while True:
            received = await self._receive()
            if received["type"] == "websocket.disconnect":
                self._is_open = False
                return
            if not bucket.take(clock()):
                await self._cut_off()
                return
            while len(self._handling) >= self._most:
                self._room.clear()
                await self._room.wait()
            task = asyncio.create_task(handle(received.get("text")))
            self._handling.append(task)
            task.add_done_callback(self._note_answer)

    def _note_answer(self, _: asyncio.Task[SocketReply]) -> None:
        self._answered.set()

    async def _cut_off(self) -> None:
        why = f"The limit is {self._rate} messages a second. Connect again and send fewer."
        await self.end(CLOSE_FLOODING, "FLOODING", message.error(Refused("FLOODING", why), None))

    async def _answer(self) -> None:
        """Send the replies in order."""
        while True:
            await self._answered.wait()
            self._answered.clear()
            while self._handling and self._handling[0].done():
                reply = self._handling.popleft().result()
                self._room.set()
                if reply.before is not None:
                    await self.send(reply.before)
                if reply.message:
                    await self.send(reply.message)
                if reply.then is not None:
                    reply.then()
                if reply.close is not None:
                    await self.end(*reply.close)
                    return

    async def _until_ended(self) -> None:
        await self._ended.wait()

    async def _report(self, task: asyncio.Task[None]) -> None:
        error = task.exception()
        if error is not None and not isinstance(error, Disconnected):
            log.error("a connection failed", exc_info=error)
            await self.end(CLOSE_INTERNAL_ERROR, "INTERNAL_ERROR", message.error(internal_error(), None))

    async def _wind_up(self, loops: list[asyncio.Task[None]]) -> None:
        """Cancel background work and what waits, and give other messages in progress some time to finish."""
        for task in (*loops, *self._background, *self._waiting):
            task.cancel()
        try:
            if self._handling:
                await asyncio.wait(self._handling, timeout=SETTLE_SECONDS)
        finally:
            tasks = [*self._handling, *self._background]
            for unfinished in tasks:
                unfinished.cancel()
            await asyncio.gather(*loops, *tasks, return_exceptions=True)


def internal_error() -> WorkbenchError:
    """The error for a defect in the server."""
    return WorkbenchError("INTERNAL_ERROR", "The server failed; see its log.")
