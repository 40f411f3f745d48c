"""The WebSocket shell: `/ws/{client_id}`, frames `[agent, action, data]` (spec 1).

Messages of one connection are handled side by side and answered in order: send the next one after
the reply when order matters. But each is taken as coming from whom the messages before it have made
the connection, and with the tool they selected: who authenticates need not wait to go on.

A `write` or `register` with a `request_id` that was answered, among the last 256 of them on this
connection, is answered as it was then, and nothing is done: whoever sends it again writes once.

How messages come and go is `line`'s business; here is what they mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, Unauthenticated, Unavailable, WorkbenchError
from workbench.model import Level, Registration, Tool
from workbench.ops import ANONYMOUS, Caller
from workbench.rules import access
from workbench.rules.wire import message
from workbench.rules.wire.message import Frame
from workbench.services.sharing.events import may_see
from workbench.shells.gate import SUBPROTOCOL, refuse, revoked
from workbench.shells.websocket.socket import MessageSocket, Reply

MAX_SUBSCRIPTIONS = 16
CLIENT_ID_LENGTH = 200
REMEMBERED_ANSWERS = 256
ONCE = ("register", "write")
"""What is done once for one `request_id`."""
BINDING = ("authenticate", "announce", "select_tool")
"""What changes as whom the messages after it are taken."""
DECIDED = ("agent.assigned", "agent.rejected", "agent.revoked", "agent.deleted")
CLOSE_IDLE = 1008
CLOSE_AUTHENTICATION = 4401
BROKEN_TEXT = "Invalid UTF-8 sequence received from client."
"""What uvicorn logs, with a traceback, of a client's text that is none."""

log = logging.getLogger(__name__)


def route(workbench: Workbench) -> WebSocketRoute:
    """The WebSocket endpoint of a workbench."""
    open_connections: set[Connection] = set()

    async def endpoint(socket: WebSocket) -> None:
        connection = Connection(workbench, socket)
        try:
            _check_client_id(connection.client_id)
            _check_room(connection, open_connections, workbench.settings.max_connections)
        except WorkbenchError as error:
            await refuse(error, socket.scope, socket.receive, socket.send)
            return
        open_connections.add(connection)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # uvicorn stops, and waits no longer
                await connection.serve()
        finally:
            open_connections.discard(connection)

    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_record)
    return WebSocketRoute("/ws/{client_id}", endpoint)


def _is_worth_a_record(record: logging.LogRecord) -> bool:
    """A client that breaks the protocol is told so with 1007; nothing has failed here."""
    return record.msg != BROKEN_TEXT


class Connection:
    """One client: who it is bound to, and what it has asked to be told."""

    def __init__(self, workbench: Workbench, socket: WebSocket) -> None:
        self.workbench = workbench
        self.socket = socket
        self.line = MessageSocket(socket, workbench.settings)
        self.client_id: str = socket.path_params["client_id"]
        self.came_as: Caller = socket.state.caller
        self.bound = self._from_here(ANONYMOUS)
        self.selected = Tool.WRITE
        self.failed_logins = 0
        self._watching: list[asyncio.Task[None]] = []
        self._subscriptions: dict[asyncio.Task[None], Any] = {}
        self._announced: dict[str, Caller] = {}
        self._deciding: set[str] = set()
        self._present: str | None = None
        self._presence = contextlib.AsyncExitStack()
        self._binding = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._answers: OrderedDict[str, asyncio.Task[Reply]] = OrderedDict()

    @property
    def is_stranger(self) -> bool:
        """Whether its client has neither registered nor authenticated."""
        return self.bound.level is Level.ANONYMOUS and self.bound.agent is None and not self._deciding

    async def serve(self) -> None:
        """Talk until the client leaves."""
        offered = self.socket.scope.get("subprotocols", [])
        await self.socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        try:
            await self.line.told(self._greet)
            self.line.begin(self._end_when_idle)
            await self.line.serve(self._handle)
        finally:
            await self._part()

    async def _greet(self) -> None:
        """Ask for a tool; an operator misses nothing that happens after the question."""
        try:
            await self._bind(self.came_as)
        finally:
            await self.line.send(message.prompt())
        if self.bound.agent is not None and self.bound.level is Level.ANONYMOUS and not self.bound.barred:
            self._await_decision(self.bound)

    async def _end_when_idle(self) -> None:
        """Strangers do not keep a place that others could have."""
        await asyncio.sleep(self.workbench.settings.idle_anonymous_seconds)
        if self.is_stranger:
            await self.line.end(CLOSE_IDLE, "IDLE")

    async def _handle(self, text: str | None) -> Reply:
        """One message in, one message out; nothing a client sends ends the connection."""
        frame = None
        try:
            if text is None:
                raise BadInput("BAD_MESSAGE", "Send text frames; binary ones are not understood.")
            frame = message.parse(text, self.client_id)
            reply = await self._act(frame)
        except WorkbenchError as error:
            reply = self._failed(error, frame)
        except Exception:
            log.exception("a message of %s failed", self.client_id)
            problem = WorkbenchError("INTERNAL_ERROR", "The server failed; its log says how.")
            reply = Reply(message.error(problem, frame.action if frame else None))
        return replace(reply, message=message.reply(reply.message, frame.request_id if frame else None))

    def _failed(self, error: WorkbenchError, frame: Frame | None) -> Reply:
        """Who claims too often to be somebody it is not is told for the last time."""
        told = message.error(error, frame.action if frame else None)
        if frame is None or not frame.claims or not isinstance(error, Unauthenticated):
            return Reply(told)
        self.failed_logins += 1
        too_many = self.failed_logins >= self.workbench.settings.max_failed_logins
        return Reply(told, close=(CLOSE_AUTHENTICATION, "TOO_MANY_FAILED_LOGINS") if too_many else None)

    async def _act(self, frame: Frame) -> Reply:
        """Messages take their turn, in the order they came, to say as whom they come; then they go on side by side."""
        async with self._turn:
            if frame.action in BINDING:
                return await self._change(frame)
            caller = await self._speaker(frame)
            once = self._once(caller, frame) if frame.action in ONCE and frame.request_id is not None else None
        return await (once or self._do(caller, frame))

    async def _change(self, frame: Frame) -> Reply:
        if frame.action == "authenticate":
            return await self._bound_to(await self._identified(frame.data))
        caller = await self._caller()
        self._check_sender(caller, frame)
        if frame.action == "announce":
            return await self._announce(caller, frame.data)
        return await self._select_tool(caller, frame)

    def _once(self, caller: Caller, frame: Frame) -> asyncio.Task[Reply]:
        """The answer that a request with this id had, or has now; one that failed is done again."""
        writer = caller.agent if frame.action == "write" else None
        asked = json.dumps([frame.action, frame.request_id, writer], sort_keys=True)
        known = self._answers.pop(asked, None)
        if known is None or (known.done() and (known.cancelled() or known.exception() is not None)):
            known = asyncio.create_task(self._do(caller, frame))
        self._answers[asked] = known
        if len(self._answers) > REMEMBERED_ANSWERS:
            self._answers.popitem(last=False)
        return known

    async def _do(self, caller: Caller, frame: Frame) -> Reply:
        match frame.action:
            case "register":
                return await self._register(caller, frame.data)
            case "read" | "write" | "request_contexts":
                return await self._read_or_write(caller, frame)
            case "subscribe":
                return await self._subscribe(caller, frame)
            case "unsubscribe":
                return self._unsubscribe(frame.data)
        return await self._operate(caller, frame)

    # Who asks.

    async def _speaker(self, frame: Frame) -> Caller:
        """Who sent a message: an old client says so with each one that reads or writes, and the first binds."""
        caller = await self._caller()
        self._check_sender(caller, frame)
        reads_or_writes = frame.action in ("read", "write", "request_contexts")
        if reads_or_writes and caller.agent is None and caller.level is Level.ANONYMOUS:
            return await self._as_claimed(frame.data.get("agent_id"))
        return caller

    async def _caller(self) -> Caller:
        """Who asks, as it stands now: an agent with the smaller of what was granted and what was selected."""
        now = await self.workbench.renewed(self.bound)
        if self._is_missed(now):
            async with self._binding:
                if now.agent == self.bound.agent:
                    await self._appear(now)
        return self._narrowed(now)

    def _is_missed(self, caller: Caller) -> bool:
        """Whether an agent that may act is not shown as here: it was admitted since it connected, or not heard of."""
        if caller.agent is None or caller.level is Level.ANONYMOUS:
            return False
        return caller.agent != self._present or caller.unheard

    def _narrowed(self, caller: Caller) -> Caller:
        return caller if caller.agent is None or self.selected is Tool.WRITE else caller.narrowed

    def _from_here(self, caller: Caller) -> Caller:
        return replace(caller, address=self.came_as.address, client=self.came_as.client)

    def _check_sender(self, caller: Caller, frame: Frame) -> None:
        """After authentication a message speaks for its connection, never for somebody else."""
        if caller.level is Level.ANONYMOUS:
            return
        told = [frame.agent]
        if caller.agent is not None and "agent_id" in frame.data and not self._takes_agent_id(frame.action):
            told.append(frame.data["agent_id"])
        for agent in told:
            if agent not in (caller.name, self.client_id):
                raise Refused("FORBIDDEN", f"This connection is {caller.name}; it cannot speak for {agent}.")

    def _takes_agent_id(self, action: str) -> bool:
        """Whether an operation has an argument of that name, so that it does not tell who speaks."""
        operation = self.workbench.catalogue.get(action)
        return operation is not None and "agent_id" in operation.arguments.model_fields

    # Selecting a tool, and registering.

    async def _select_tool(self, caller: Caller, frame: Frame) -> Reply:
        tool = frame.data.get("tool")
        if tool not in message.TOOLS:
            raise message.invalid_tool()
        if tool == "register":
            return await self._register(caller, {k: v for k, v in frame.data.items() if k != "tool"})
        self.selected = Tool(tool)
        return Reply(message.agent_id_required(self.client_id, tool))

    async def _register(self, caller: Caller, data: dict[str, Any]) -> Reply:
        named = {"name": f"Agent_{self.client_id}"[:100], **data, "connection_id": self.client_id[:200]}
        try:
            result = await self.workbench.dispatch(caller, "register", named)
        except WorkbenchError as error:
            raise message.failed("Registration", error) from error
        waiting = await self.workbench.identify(result["token"])
        return Reply(message.registration_success(result), then=lambda: self._await_decision(waiting))

    def _await_decision(self, waiting: Caller) -> None:
        """Have the client told what the person decides, once."""
        assert waiting.agent is not None
        if waiting.agent not in self._deciding:
            self._deciding.add(waiting.agent)
            self.line.begin(partial(self._tell_decision, waiting))

    async def _tell_decision(self, waiting: Caller) -> None:
        state = await self._decided(waiting)
        await self.line.send(message.decision(state, Registration(state["status"]) in access.MAY_ACT))

    async def _decided(self, waiting: Caller) -> dict[str, Any]:
        """How a registration stands once it is decided."""
        subject = f"agent:{waiting.agent}"
        while True:
            try:
                async with self.workbench.feed.subscribe(*DECIDED) as events:
                    state = await self.workbench.dispatch(waiting, "registration_status", {})
                    if state["status"] != Registration.PENDING:
                        return state
                    while (await anext(events)).subject != subject:
                        pass
            except Unavailable as error:
                if error.code != "READER_TOO_SLOW":
                    raise

    async def _announce(self, caller: Caller, data: dict[str, Any]) -> Reply:
        """How clients from before registration say who they are: the known are bound, strangers wait."""
        agent_id = data.get("agent_id")
        if not isinstance(agent_id, str):
            raise BadInput("BAD_MESSAGE", "Announce yourself with your agent_id, a string.")
        if caller.level > Level.ANONYMOUS:
            return Reply(message.authentication_success(caller.name, caller.tool))
        if not await self.workbench.allowed(agent_id):
            raise Refused("NOT_ALLOWLISTED", f"{agent_id} is not on the allowlist. Ask the person to put it there.")
        try:
            known = await self.workbench.identify_by_id(agent_id)
        except Unauthenticated as error:
            if error.code != "INVALID_AGENT":
                raise
            return await self._announce_stranger(caller, agent_id, data.get("name") or agent_id)
        return await self._bound_to(known)

    async def _announce_stranger(self, caller: Caller, agent_id: str, name: Any) -> Reply:
        if waiting := self._announced.get(agent_id):
            state = await self.workbench.dispatch(waiting, "registration_status", {})
            return Reply(message.response("registration_status", state))
        reply = await self._register(caller, {"name": name, "capabilities": {"announced_as": agent_id}})
        self._announced[agent_id] = await self.workbench.identify(reply.message["token"])
        return reply

    # Authentication.

    async def _identified(self, data: dict[str, Any]) -> Caller:
        token, agent_id = data.get("token"), data.get("agent_id")
        if token is None and isinstance(agent_id, str):
            return await self.workbench.identify_by_id(agent_id)
        if not isinstance(token, str):
            raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned, as data.token.")
        caller = await self.workbench.identify(token)
        if agent_id not in (None, caller.name, f"pending_{caller.agent}"):
            raise Unauthenticated("INVALID_TOKEN", "The token is not that of this agent_id.")
        return caller

    async def _bound_to(self, known: Caller) -> Reply:
        """Bind the connection and say so; who is not admitted is told why, and later what was decided."""
        caller = self._from_here(known)
        if caller.level is Level.ANONYMOUS and not caller.barred:
            refusal = message.error(message.not_assigned(), "authenticate")
            return Reply(refusal, then=lambda: self._await_decision(caller))
        await self.workbench.dispatch(caller, "whoami", {})  # a barred one is told why
        await self._bind(caller)
        narrowed = self._narrowed(caller)
        return Reply(message.authentication_success(caller.name, narrowed.tool))

    async def _bind(self, caller: Caller) -> None:
        """From now on the connection is this caller's, until its admission is taken away."""
        async with self._binding:
            if caller.agent != self.bound.agent:
                self._end_subscriptions(None)
            await self._appear(caller)
            self.bound = caller
            for task in self._watching:
                task.cancel()
            self._watching = [self.line.begin(partial(self._end_when_revoked, caller))]
            if caller.level is Level.OPERATOR:
                page = await self.workbench.dispatch(caller, "list_events", {"after": None, "limit": 1})
                self._watching.append(self.line.begin(partial(self._tell_of_newcomers, page["next_after"])))

    async def _appear(self, caller: Caller) -> None:
        """An admitted agent is connected, and active, from now on, and the one before it no longer."""
        agent = caller.agent if caller.level > Level.ANONYMOUS else None
        if agent == self._present:
            await self.workbench.touch_presence(caller)
            return
        await self._part()
        if agent is not None:
            present = self.workbench.connected(caller, "websocket", self.client_id)
            await self._presence.enter_async_context(present)
            self._present = agent

    async def _part(self) -> None:
        """The agent that was connected no longer is."""
        self._present = None
        try:
            await self._presence.aclose()
        except WorkbenchError:
            log.warning("that %s disconnected could not be recorded", self.bound.name, exc_info=True)

    async def _end_when_revoked(self, caller: Caller) -> None:
        why = await revoked(self.workbench, caller)
        self.bound = self._from_here(ANONYMOUS)
        await self.line.end(CLOSE_AUTHENTICATION, why)

    # Operations.

    async def _read_or_write(self, caller: Caller, frame: Frame) -> Reply:
        """Reading and writing as the spec has it."""
        if caller.level is Level.ANONYMOUS and not caller.barred:
            raise message.not_assigned()
        if frame.action == "request_contexts":
            wanted: dict[str, Any] = {key: frame.data[key] for key in ("limit", "cursor") if key in frame.data}
            return Reply(message.contexts(await self.workbench.dispatch(caller, "read", wanted)))
        if frame.action == "read":
            return await self._operate(caller, frame)
        try:
            return await self._operate(caller, frame)
        except WorkbenchError as error:
            raise message.failed("Write operation", error) from error

    async def _as_claimed(self, agent_id: Any) -> Caller:
        if not agent_id or not isinstance(agent_id, str):
            raise message.agent_id_missing()
        try:
            known = await self.workbench.identify_by_id(agent_id)
        except Unauthenticated as error:
            if error.code == "TOKEN_REQUIRED" and agent_id.startswith("pending_"):
                raise message.not_assigned() from None
            raise
        if known.level > Level.ANONYMOUS:
            await self._bind(self._from_here(known))
        return self._narrowed(self._from_here(known))

    async def _operate(self, caller: Caller, frame: Frame) -> Reply:
        if frame.action not in self.workbench.catalogue:
            return Reply(message.echo(frame))
        data = frame.data
        if caller.agent is not None and not self._takes_agent_id(frame.action):
            data = {k: v for k, v in data.items() if k != "agent_id"}
        return Reply(message.response(frame.action, await self.workbench.dispatch(caller, frame.action, data)))

    # Events.

    async def _subscribe(self, caller: Caller, frame: Frame) -> Reply:
        wanted = {k: v for k, v in frame.data.items() if k != "agent_id"}
        if wanted.keys() - {"after", "kinds"} or wanted.get("kinds") == []:
            raise BadInput("INVALID_ARGUMENTS", "subscribe takes kinds (at least one) and after, and nothing else.")
        page = await self.workbench.dispatch(caller, "list_events", {**wanted, "limit": 1})
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise Conflict("TOO_MANY_SUBSCRIPTIONS", f"A connection has at most {MAX_SUBSCRIPTIONS} subscriptions.")
        valid = self.workbench.catalogue["list_events"].validate(wanted)
        after = page["next_after"] if valid["after"] is None else valid["after"]
        begin = partial(self._begin, valid["kinds"], after, frame.request_id)
        return Reply(message.response("subscribe", {"after": after}), then=begin)

    def _begin(self, kinds: list[str], after: int, request_id: Any) -> None:
        if request_id is not None:
            self._end_subscriptions(request_id)
        task = self.line.begin(partial(self._follow, kinds, after, request_id), "subscribe", request_id)
        self._subscriptions[task] = request_id
        task.add_done_callback(lambda ended: self._subscriptions.pop(ended, None))

    def _unsubscribe(self, data: dict[str, Any]) -> Reply:
        """End the subscription that the request with the id `data.subscription` made; without one, all."""
        return Reply(message.response("unsubscribe", {"ended": self._end_subscriptions(data.get("subscription"))}))

    def _end_subscriptions(self, request_id: Any) -> int:
        ending = [task for task, made in self._subscriptions.items() if request_id in (None, made)]
        for task in ending:
            task.cancel()
            del self._subscriptions[task]
        return len(ending)

    async def _follow(self, kinds: list[str], after: int, request_id: Any) -> None:
        async with self.workbench.feed.subscribe(*kinds, after=after) as events:
            async for found in events:
                caller = await self._caller()
                if caller.level is Level.ANONYMOUS:
                    await self.workbench.dispatch(caller, "whoami", {})  # says why not
                if may_see(caller, found):
                    await self.line.send(message.event(found.model_dump(mode="json"), request_id))

    async def _tell_of_newcomers(self, after: int) -> None:
        async with self.workbench.feed.subscribe("agent.registered", after=after) as events:
            async for found in events:
                with contextlib.suppress(NotFound):  # somebody, or a rule, has decided: it has another id
                    wanted = {"agent_id": found.data["agent_id"]}
                    agent = await self.workbench.dispatch(self.bound, "get_agent", wanted)
                    await self.line.send(message.new_pending_agent(agent))


def _check_client_id(client_id: str) -> None:
    """People read it, and it is stored with every connection.

    Raises:
        BadInput: ``BAD_CLIENT_ID``.
    """
    if len(client_id) > CLIENT_ID_LENGTH or not client_id.isprintable():
        raise BadInput("BAD_CLIENT_ID", f"A client id has at most {CLIENT_ID_LENGTH} characters, all printable.")


def _check_room(newcomer: Connection, others: Iterable[Connection], most: int) -> None:
    """Strangers from one address take at most half of the room.

    Raises:
        Unavailable: ``TOO_MANY_CONNECTIONS``.
    """
    there = list(others)
    address = newcomer.came_as.address
    strangers = [other for other in there if other.is_stranger and other.came_as.address == address]
    is_stranger = newcomer.came_as.level is Level.ANONYMOUS and newcomer.came_as.agent is None
    if len(there) >= most or (is_stranger and len(strangers) >= max(most // 2, 1)):
        raise Unavailable("TOO_MANY_CONNECTIONS", "The server has no room for another connection. Try again later.")
