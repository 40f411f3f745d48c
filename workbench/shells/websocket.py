"""The WebSocket shell: `/ws/{client_id}`, frames `[agent, action, data]` (spec 1).

Messages of one connection are handled side by side and answered in order, so that nobody's commit
is waited for in the read loop; send the next message after the reply when order matters.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from workbench.app import Workbench
from workbench.errors import BadInput, Refused, Unauthenticated, WorkbenchError
from workbench.model import Level, Registration
from workbench.ops import ANONYMOUS, Caller
from workbench.rules import message
from workbench.rules.message import Frame, Message
from workbench.shells.gate import SUBPROTOCOL, revoked

WAIT_SECONDS = 25.0
SETTLE_SECONDS = 5.0
"""How long messages of a client that left may take to be done."""
CLOSE_AUTHENTICATION = 4401

log = logging.getLogger(__name__)


def route(workbench: Workbench) -> WebSocketRoute:
    """The WebSocket endpoint of a workbench."""
    open_connections: set[Connection] = set()

    async def endpoint(socket: WebSocket) -> None:
        if len(open_connections) >= workbench.settings.max_connections:
            await socket.close(1013, "TOO_MANY_CONNECTIONS")
            return
        connection = Connection(workbench, socket)
        open_connections.add(connection)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # uvicorn stops, and waits no longer
                await connection.serve()
        finally:
            open_connections.discard(connection)

    return WebSocketRoute("/ws/{client_id}", endpoint)


class Connection:
    """One client: who it is bound to, and the replies under way."""

    def __init__(self, workbench: Workbench, socket: WebSocket) -> None:
        self.workbench = workbench
        self.socket = socket
        self.client_id: str = socket.path_params["client_id"]
        self.bound: Caller = socket.state.caller
        self.selected = "write"
        self.failed_logins = 0
        self._replies: asyncio.Queue[asyncio.Task[str]] = asyncio.Queue(workbench.settings.max_in_flight)
        self._handling: set[asyncio.Task[str]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    @property
    def caller(self) -> Caller:
        """Who asks: an agent with the smaller of what was granted and what was selected."""
        read_only = self.selected == "read" and self.bound.level > Level.READ
        return replace(self.bound, level=Level.READ) if read_only else self.bound

    async def serve(self) -> None:
        """Talk until the client leaves."""
        offered = self.socket.scope.get("subprotocols", [])
        await self.socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        self._bind(self.bound)
        await self._send(message.prompt())
        talking = [asyncio.create_task(self._listen()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(talking, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._wind_up(talking)

    async def _wind_up(self, talking: list[asyncio.Task[None]]) -> None:
        """What the client asked for before it left is still done; what only waits is ended."""
        for task in (*talking, *self._background):
            task.cancel()
        try:
            if self._handling:
                await asyncio.wait(self._handling, timeout=SETTLE_SECONDS)
        finally:
            left = list(self._handling)
            for handling in left:
                handling.cancel()
            await asyncio.gather(*talking, *self._background, *left, return_exceptions=True)

    async def _listen(self) -> None:
        while self.socket.client_state is WebSocketState.CONNECTED:
            received = await self.socket.receive()
            if received["type"] == "websocket.disconnect":
                return
            handling = asyncio.create_task(self._handle(received.get("text")))
            self._handling.add(handling)
            handling.add_done_callback(self._handling.discard)
            await self._replies.put(handling)

    async def _answer(self) -> None:
        while True:
            handling = await self._replies.get()
            await self._send_text(await asyncio.shield(handling))
            if self.failed_logins >= self.workbench.settings.max_failed_logins:
                await self.socket.close(CLOSE_AUTHENTICATION, "TOO_MANY_FAILED_LOGINS")
                return

    async def _send(self, reply: Message) -> None:
        await self._send_text(_encode(reply))

    async def _send_text(self, text: str) -> None:
        async with self._sending:
            await self.socket.send_text(text)

    async def _handle(self, text: str | None) -> str:
        """One message in, one message out; nothing a client sends ends the connection."""
        frame = None
        try:
            if text is None:
                raise BadInput("BAD_MESSAGE", "Send text frames; binary ones are not understood.")
            frame = message.parse(text)
            return _encode(message.reply(await self._act(frame), frame.request_id))
        except WorkbenchError as error:
            problem = error
        except Exception:
            log.exception("a message of %s failed", self.client_id)
            problem = WorkbenchError("INTERNAL_ERROR", "The server failed; its log says how.")
        answer = message.error(problem, frame.action if frame else None)
        return _encode(message.reply(answer, frame.request_id if frame else None))

    async def _act(self, frame: Frame) -> Message:
        if frame.action == "authenticate":
            return await self._authenticate(frame.data)
        self._check_sender(frame.agent)
        match frame.action:
            case "select_tool":
                return await self._select_tool(frame)
            case "register":
                return await self._register(frame.data)
            case "subscribe":
                return await self._subscribe(frame.data)
        return await self._operate(frame)

    async def _select_tool(self, frame: Frame) -> Message:
        tool = frame.data.get("tool")
        if tool not in message.TOOLS:
            raise BadInput("INVALID_TOOL", "Invalid tool selection. Must be 'register', 'read', or 'write'")
        if tool == "register":
            return await self._register({k: v for k, v in frame.data.items() if k != "tool"})
        self.selected = tool
        return message.agent_id_required(self.client_id, tool)

    async def _register(self, data: dict[str, Any]) -> Message:
        named = {"name": f"Agent_{self.client_id}"[:100], **data}
        result = await self.workbench.dispatch(self.caller, "register", named)
        self._in_background(self._announce(result["token"]))
        return message.registration_success(result)

    async def _announce(self, token: str) -> None:
        """Tell the client that waits what the person decided."""
        waiting = {"token": token, "wait_seconds": WAIT_SECONDS}
        state = {"status": Registration.PENDING}
        while state["status"] == Registration.PENDING:
            state = await self.workbench.dispatch(ANONYMOUS, "registration_status", waiting)
        if state["status"] == Registration.REJECTED:
            await self._send({"type": "registration_rejected", "reason": state["reason"]})
        else:
            told = {"agent_id": state["agent_id"], "session_id": None, "tool": state["tool"]}
            await self._send({"type": "agent_assigned", **told})

    async def _authenticate(self, data: dict[str, Any]) -> Message:
        token = data.get("token")
        if not isinstance(token, str):
            raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned, as data.token.")
        try:
            caller = await self.workbench.identify(token)
            if data.get("agent_id") not in (None, caller.name):
                raise Unauthenticated("INVALID_TOKEN", "The token is not that of this agent_id.")
        except Unauthenticated:
            self.failed_logins += 1
            raise
        if caller.level is Level.ANONYMOUS:
            raise Refused("NOT_ASSIGNED", "Agent not yet assigned by human administrator")
        self._bind(caller)
        return message.authentication_success(caller.name, "read" if self.caller.level is Level.READ else "write")

    def _bind(self, caller: Caller) -> None:
        """From now on the connection is this caller's, until its admission is taken away."""
        self.bound = caller
        if self._watching is not None:
            self._watching.cancel()
        self._watching = self._in_background(self._end_when_revoked(caller))

    async def _end_when_revoked(self, caller: Caller) -> None:
        await revoked(self.workbench, caller)
        self.bound = ANONYMOUS
        await self.socket.close(CLOSE_AUTHENTICATION, "REVOKED")

    async def _subscribe(self, data: dict[str, Any]) -> Message:
        caller = self.caller
        first = await self.workbench.dispatch(caller, "list_events", data)
        self._in_background(self._follow(caller, data, first))
        return message.response("subscribe", {"after": first["next_after"]})

    async def _follow(self, caller: Caller, data: dict[str, Any], page: dict[str, Any]) -> None:
        while True:
            for event in page["events"]:
                await self._send({"type": "event", "data": event})
            waiting = {**data, "after": page["next_after"], "wait_seconds": WAIT_SECONDS}
            page = await self.workbench.dispatch(caller, "list_events", waiting)

    async def _operate(self, frame: Frame) -> Message:
        operation = self.workbench.catalogue.get(frame.action)
        if operation is None:
            return message.echo(frame)
        return message.response(frame.action, await self.workbench.dispatch(self.caller, frame.action, frame.data))

    def _check_sender(self, agent: str) -> None:
        """After authentication a message speaks for its connection, never for somebody else."""
        if self.bound.level > Level.ANONYMOUS and agent not in (self.bound.name, self.client_id):
            raise Refused("FORBIDDEN", f"This connection is {self.bound.name}; it cannot speak for {agent}.")

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._told(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        """Work beside the replies: what goes wrong is told, unless nobody is there any more."""
        with contextlib.suppress(WebSocketDisconnect):
            try:
                await work
            except WorkbenchError as error:
                await self._send(message.error(error, None))


def _encode(reply: Message) -> str:
    return json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
