"""One WebSocket: messages go out one after the other, come in at a limited pace, and are answered in order.

What a message means is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from workbench.errors import Refused, WorkbenchError
from workbench.rules.token_bucket import TokenBucket
from workbench.rules.wire import message
from workbench.rules.wire.message import Message
from workbench.settings import Settings

SETTLE_SECONDS = 5.0
"""How long messages of a client that left may take to be done."""
BURST_SECONDS = 10.0
FAREWELL_SECONDS = 1.0
"""How long a client that does not read may put off the end of its connection."""
CLOSE_FLOODING = 1008

Work = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered, and what happens once the answer is sent."""

    message: Message
    then: Callable[[], object] | None = None
    close: tuple[int, str] | None = None


Handle = Callable[[str | None], Coroutine[Any, Any, Reply]]
"""Answers the text of a message; None stands for one that is no text. It raises nothing."""


class MessageSocket:
    """An accepted socket, until it is closed."""

    def __init__(self, socket: WebSocket, settings: Settings) -> None:
        self._socket = socket
        self._most = settings.max_messages_per_second
        self._replies: asyncio.Queue[asyncio.Task[Reply]] = asyncio.Queue(settings.max_in_flight)
        self._handling: set[asyncio.Task[Reply]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._over = asyncio.Event()

    async def serve(self, handle: Handle) -> None:
        """Talk until either side ends it. Messages are handled side by side, so nobody's commit is waited for."""
        talking: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._listen(handle)),
            asyncio.create_task(self._answer()),
            asyncio.create_task(self._over.wait()),
        ]
        try:
            await asyncio.wait(talking, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._wind_up(talking)

    async def send(self, said: Message) -> None:
        """Send a message, after those that are being sent.

        Raises:
            WebSocketDisconnect: nobody is there any more.
        """
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        async with self._sending:
            self._require_open()
            await self._socket.send_text(text)

    async def end(self, code: int, reason: str, last: Message | None = None) -> None:
        """End it, after a last message; a client that does not read is not waited for."""
        with contextlib.suppress(TimeoutError, WebSocketDisconnect):
            async with asyncio.timeout(FAREWELL_SECONDS):
                if last is not None:
                    await self.send(last)
                await self._close(code, reason)
        self._over.set()

    async def _close(self, code: int, reason: str) -> None:
        async with self._sending:
            self._require_open()
            await self._socket.close(code, reason)

    def begin(self, work: Work, action: str | None = None, request_id: Any = None) -> asyncio.Task[None]:
        """Do something beside the replies, until the line is closed; an action that asked for it is told errors."""
        task = asyncio.create_task(self.told(work, action, request_id))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def told(self, work: Work, action: str | None = None, request_id: Any = None) -> None:
        """Do something; what goes wrong is told to the client, unless nobody is there any more."""
        with contextlib.suppress(WebSocketDisconnect):
            try:
                await work()
            except WorkbenchError as error:
                await self.send(message.reply(message.error(error, action), request_id))

    def _require_open(self) -> None:
        if self._socket.application_state is not WebSocketState.CONNECTED:
            raise WebSocketDisconnect

    async def _listen(self, handle: Handle) -> None:
        clock = asyncio.get_running_loop().time
        pace = TokenBucket(self._most, BURST_SECONDS, clock())
        while self._socket.client_state is WebSocketState.CONNECTED:
            received = await self._socket.receive()
            if received["type"] == "websocket.disconnect":
                return
            if not pace.take(clock()):
                await self._cut_off()
                return
            handling = asyncio.create_task(handle(received.get("text")))
            self._handling.add(handling)
            handling.add_done_callback(self._handling.discard)
            await self._replies.put(handling)

    async def _cut_off(self) -> None:
        why = f"More than {self._most} messages a second are too many. Connect again, and slow down."
        await self.end(CLOSE_FLOODING, "FLOODING", message.error(Refused("FLOODING", why), None))

    async def _answer(self) -> None:
        while True:
            handling = await self._replies.get()
            reply = await asyncio.shield(handling)
            await self.send(reply.message)
            if reply.then is not None:
                reply.then()
            if reply.close is not None:
                await self.end(*reply.close)
                return

    async def _wind_up(self, talking: list[asyncio.Task[Any]]) -> None:
        """What the client asked for before it left is still done; what only waits is ended."""
        for task in (*talking, *self._background):
            task.cancel()
        try:
            if self._handling:
                await asyncio.wait(self._handling, timeout=SETTLE_SECONDS)
        finally:
            left = [*self._handling, *self._background]
            for unfinished in left:
                unfinished.cancel()
            await asyncio.gather(*talking, *left, return_exceptions=True)
