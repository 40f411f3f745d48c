"""The WebSocket of conversations, `/ws/chat` (spec 4): the operator writes messages, and gets the frames of answers.

An answer is made by the server, not by a connection: it goes on when its reader leaves. Frames come from the store, so
a client continues after the number of the last one that it got, and one that reads slowly delays only itself.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import Conflict, WorkbenchError
from workbench.ops import Caller
from workbench.rules.wire import chat_message
from workbench.rules.wire.chat_message import Ping, RetryMessage, Say, StopMessage, Subscribe, Unsubscribe
from workbench.shells.batches import BATCHES
from workbench.shells.gate import SUBPROTOCOL, refuse
from workbench.shells.websocket.socket import Disconnected, MessageSocket, SocketReply, internal_error

MAX_FOLLOWED = 64
"""How many conversations one connection may follow."""
PAGE = 50
"""Frames that are read at once: no more of them wait in memory for a client."""
WAIT_SECONDS = 20.0

log = logging.getLogger(__name__)


class ChatEndpoint:
    """An ASGI application for WebSocket connections of the operator."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        try:
            await self._workbench.dispatch(caller, "list_conversations", {"limit": 1})  # raises if it may not
        except WorkbenchError as error:
            await refuse(error, scope, receive, send)
            return
        takes_batches = BATCHES in scope.get("extensions", {})
        socket = MessageSocket(receive, send, self._workbench.settings, takes_batches=takes_batches)
        connection = ChatConnection(self._workbench, caller, socket)
        # Cancelled: uvicorn stops, and no longer waits.
        with suppress(asyncio.CancelledError, Disconnected):
            await connection.serve(SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", []) else None)


class ChatConnection:
    """One client, and the conversations that it follows."""

    def __init__(self, workbench: Workbench, caller: Caller, socket: MessageSocket) -> None:
        self._workbench = workbench
        self._caller = caller
        self._socket = socket
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def serve(self, subprotocol: str | None) -> None:
        """Serve until the client leaves."""
        await self._socket.accept(subprotocol)
        await self._socket.serve(self._handle)

    async def _handle(self, text: str | None) -> SocketReply:
        """One message; nothing a client sends ends the connection."""
        command = None
        try:
            command = chat_message.parse(text)
            async with self._turn(command.conversation):
                return await self._act(command)
        except WorkbenchError as error:
            problem = error
        except Exception:
            log.exception("a message of a conversation failed")
            problem = internal_error()
        about = (command.conversation, command.request_id) if command else (None, None)
        return SocketReply(chat_message.error(problem, *about))

    def _turn(self, conversation_id: str | None) -> AbstractAsyncContextManager[None]:
        """Messages about the same conversation are handled in order; no other has to wait."""
        if conversation_id is None:
            return nullcontext()
        return self._turns.setdefault(conversation_id, asyncio.Lock())

    async def _act(self, command: Say | Subscribe | Unsubscribe | StopMessage | RetryMessage | Ping) -> SocketReply:
        match command:
            case Ping():
                return SocketReply(chat_message.pong(command))
            case Say():
                return await self._say(command)
            case Subscribe():
                return await self._subscribe(command)
            case Unsubscribe():
                await self._end(command.conversation_id)
                return SocketReply(chat_message.done(command, "unsubscribe"))
            case StopMessage():
                await self._ask("stop_answer", command.conversation_id)
                return SocketReply(chat_message.done(command, "stop"))
        after = await self._last_frame(command.conversation_id)
        answer = await self._ask("retry_answer", command.conversation_id, turn_id=command.message_id)
        self._begin(command.conversation_id, after)
        return SocketReply(chat_message.done(command, "retry", answer_id=answer["id"]))

    async def _say(self, command: Say) -> SocketReply:
        """Send a message, and follow its conversation from there if it is not followed."""
        after = await self._last_frame(command.conversation_id)
        exchange = await self._ask("ask", command.conversation_id, content=command.content)
        self._begin(command.conversation_id, after)
        ids = {"message_id": exchange["turn"]["id"], "answer_id": exchange["answer"]["id"]}
        return SocketReply(chat_message.done(command, "message", **ids))

    async def _subscribe(self, command: Subscribe) -> SocketReply:
        """Follow a conversation; a subscription to the same one is replaced."""
        last = await self._last_frame(command.conversation_id)
        after = last if command.after is None else command.after
        await self._end(command.conversation_id)
        answered = asyncio.Event()
        self._begin(command.conversation_id, after, answered)
        return SocketReply(chat_message.subscribed(command, after), then=answered.set)

    async def _last_frame(self, conversation_id: str) -> int:
        """The number of the newest frame of a conversation that is followed, or may be.

        Raises:
            Conflict: ``TOO_MANY_SUBSCRIPTIONS``. NotFound: ``CONVERSATION_NOT_FOUND``.
        """
        if conversation_id not in self._followed and len(self._followed) >= MAX_FOLLOWED:
            raise Conflict(
                "TOO_MANY_SUBSCRIPTIONS",
                f"A connection may follow at most {MAX_FOLLOWED} conversations. End one first.",
            )
        conversation = await self._ask("get_conversation", conversation_id)
        return int(conversation["last_frame"])

    async def _ask(self, operation: str, conversation_id: str, **more: Any) -> dict[str, Any]:
        arguments = {"conversation_id": conversation_id, **more}
        return await self._workbench.dispatch(self._caller, operation, arguments)

    # Following.

    def _begin(self, conversation_id: str, after: int, answered: asyncio.Event | None = None) -> None:
        """Follow a conversation, unless it is followed.

        Args:
            answered: set when the reply is sent, which comes before the frames.
        """
        if conversation_id in self._followed:
            return
        task = self._socket.begin(partial(self._follow, conversation_id, after, answered))
        self._followed[conversation_id] = task
        task.add_done_callback(partial(self._forget, conversation_id))

    async def _end(self, conversation_id: str) -> None:
        """Follow a conversation no longer; nothing of it is sent from now on."""
        task = self._followed.get(conversation_id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            self._forget(conversation_id, task)

    def _forget(self, conversation_id: str, task: asyncio.Task[None]) -> None:
        if self._followed.get(conversation_id) is task:
            del self._followed[conversation_id]

    async def _follow(self, conversation_id: str, after: int, answered: asyncio.Event | None) -> None:
        """Send the frames of a conversation as they come, until it is deleted."""
        if answered is not None:
            await answered.wait()
        try:
            while True:
                page = await self._ask(
                    "read_frames", conversation_id, after=after, limit=PAGE, wait_seconds=WAIT_SECONDS
                )
                messages = [chat_message.frame(conversation_id, chat_frame) for chat_frame in page["frames"]]
                await self._socket.send_texts([to_json(message).decode() for message in messages])
                after = page["next_after"]
        except WorkbenchError as error:
            await self._socket.send(chat_message.error(error, conversation_id))
