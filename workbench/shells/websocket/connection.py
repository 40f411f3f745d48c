"""Handles the messages of one WebSocket (spec 1): authentication, reading and writing, operations, subscriptions.

Messages of one connection are handled concurrently and answered in order: when order matters, send the next message
after the reply. But each message comes from the caller, and uses the tool, that the messages before it have set: a
client need not wait for the reply to `authenticate`.

The request ids of the last 256 `write` and `register` messages of a connection are idempotency keys: a request that is
sent again gets the reply of the first one, and nothing is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from dataclasses import replace
from functools import partial
from typing import Any

from cachetools import LRUCache
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, Unauthenticated, WorkbenchError
from workbench.model import Level, Registration
from workbench.ops import Caller
from workbench.rules import access
from workbench.rules.wire import message
from workbench.rules.wire.message import Frame
from workbench.services.agents.register import ANNOUNCED_AS
from workbench.services.sharing.events import is_own, may_see
from workbench.shells.batches import BATCHES
from workbench.shells.gate import SUBPROTOCOL, revoked
from workbench.shells.websocket import subscriptions
from workbench.shells.websocket.binding import CHANGES, Binding, announced, check_owner, credentials
from workbench.shells.websocket.socket import MessageSocket, SocketReply, internal_error
from workbench.shells.websocket.subscriptions import SubscriptionFilter, TaskSubscriptions

REMEMBERED_REQUESTS = 256
ONCE = frozenset({"register", "write"})
"""Actions that are done only once for a `request_id`."""
DECIDED = ("agent.assigned", "agent.rejected", "agent.revoked", "agent.deleted")
LEGACY_CONTEXTS = 5
"""How many contexts an older client gets when it sets no limit."""
CLOSE_IDLE = 1008
CLOSE_AUTHENTICATION = 4401

log = logging.getLogger(__name__)


class WebSocketConnection:
    """One client: its caller and its subscriptions."""

    def __init__(self, workbench: Workbench, scope: Scope, receive: Receive, send: Send) -> None:
        self._workbench = workbench
        self._subprotocols = scope.get("subprotocols", [])
        self.client_id: str = scope["path_params"]["client_id"]
        self.origin: Caller = scope["state"]["caller"]
        self._socket = MessageSocket(
            receive, send, workbench.settings, takes_batches=BATCHES in scope.get("extensions", {})
        )
        self._binding = Binding(self.client_id, self.origin, workbench.settings.max_failed_logins)
        self._turn = asyncio.Lock()
        self._subscriptions = TaskSubscriptions(self._begin)
        self._under_way: dict[bytes, asyncio.Task[SocketReply]] = {}
        self._answered: LRUCache[bytes, bytes] = LRUCache(REMEMBERED_REQUESTS)
        self._watching: list[asyncio.Task[None]] = []
        self._announced: dict[str, Caller] = {}
        self._deciding: dict[str, asyncio.Task[None]] = {}
        self._present: str | None = None
        self._presence = contextlib.AsyncExitStack()
        self._appearing = asyncio.Lock()

    @property
    def is_anonymous(self) -> bool:
        """Whether its client has neither registered nor authenticated."""
        return self._binding.is_anonymous and not self._deciding

    async def serve(self) -> None:
        """Serve until the client leaves."""
        await self._socket.accept(SUBPROTOCOL if SUBPROTOCOL in self._subprotocols else None)
        try:
            await self._socket.attempt(self._greet)
            self._socket.begin(self._end_when_idle)
            await self._socket.serve(self._handle)
        finally:
            await self._disappear()

    async def _greet(self) -> None:
        """Ask for a tool. Binds the origin first, so that an operator misses no registration after the prompt."""
        try:
            await self._bind(self.origin)
        finally:
            await self._socket.send(message.prompt())
        bound = self._binding.caller
        if bound.agent is not None and bound.level is Level.ANONYMOUS and not bound.barred:
            self._await_decision(bound)

    async def _end_when_idle(self) -> None:
        """Close the connection of a client that stays anonymous, so that others can connect."""
        await asyncio.sleep(self._workbench.settings.idle_anonymous_seconds)
        if self.is_anonymous:
            await self._socket.end(CLOSE_IDLE, "IDLE")

    # Messages.

    async def _handle(self, text: str | None) -> SocketReply:
        """One message in, one message out; nothing a client sends ends the connection."""
        frame = None
        try:
            if text is None:
                raise BadInput("BAD_MESSAGE", "Send text frames; binary ones are not supported.")
            frame = message.parse(text, self.client_id)
            reply = await self._act(frame)
        except WorkbenchError as error:
            reply = self._failure(error, frame)
        except Exception:
            log.exception("a message of %s failed", self.client_id)
            reply = SocketReply(message.error(internal_error(), frame.action if frame else None))
        if frame is None or frame.request_id is None:
            return reply
        return replace(reply, message=message.reply(reply.message, frame.request_id))

    def _failure(self, error: WorkbenchError, frame: Frame | None) -> SocketReply:
        """Answer with an error; after too many failed authentications, close."""
        content = message.error(error, frame.action if frame else None)
        too_many = self._binding.count_failure(error, frame)
        return SocketReply(content, close=(CLOSE_AUTHENTICATION, "TOO_MANY_FAILED_LOGINS") if too_many else None)

    async def _act(self, frame: Frame) -> SocketReply:
        """Find the caller of each message in order, then handle the messages concurrently."""
        async with self._turn:
            if frame.action in CHANGES:
                return await self._change(frame)
            caller = await self._speaker(frame)
        if frame.action in ONCE and frame.request_id is not None:
            return await self._do_once(caller, frame)
        return await self._do(caller, frame)

    async def _change(self, frame: Frame) -> SocketReply:
        if frame.action == "authenticate":
            return await self._authenticate(frame.data)
        caller = await self._caller()
        self._binding.check_sender(caller, frame, names_agents=False)
        if frame.action == "announce":
            return await self._announce(caller, frame.data)
        return await self._select_tool(caller, frame)

    async def _do_once(self, caller: Caller, frame: Frame) -> SocketReply:
        """Answer as before, or together, if the same request was sent before; one that failed is done again."""
        writer = caller.agent if frame.action == "write" else None
        key = to_json([frame.action, writer, frame.request_id])
        answered = self._answered.get(key)
        if answered is not None:
            return SocketReply(json.loads(answered))
        if key in self._under_way:
            return await asyncio.shield(self._under_way[key])
        current = asyncio.current_task()
        assert current is not None
        self._under_way[key] = current
        try:
            reply = await self._do(caller, frame)
        finally:
            del self._under_way[key]
        self._answered[key] = to_json(reply.message)
        return reply

    async def _do(self, caller: Caller, frame: Frame) -> SocketReply:
        match frame.action:
            case "register":
                return await self._register(caller, frame.data)
            case "read" | "write" | "request_contexts":
                return await self._read_or_write(caller, frame)
            case "subscribe":
                return await self._subscribe(caller, frame)
            case "unsubscribe":
                has_ended = self._subscriptions.end(frame.data.get("subscription"))
                return SocketReply(message.response("unsubscribe", {"ended": has_ended}))
        return await self._operate(caller, frame)

    # The caller of a message.

    async def _speaker(self, frame: Frame) -> Caller:
        """The caller of a message. An old client gives its id with each read or write; the first one binds it."""
        caller = await self._caller()
        self._binding.check_sender(caller, frame, names_agents=self._names_agents(frame.action))
        agent_id = self._binding.claimed_id(caller, frame)
        return caller if agent_id is None else await self._bound_to_id(agent_id)

    async def _caller(self) -> Caller:
        """The bound caller, with its present permissions."""
        bound = self._binding.caller
        if bound.agent is None:
            return bound
        caller = await self._workbench.current(bound)
        if caller.level > Level.ANONYMOUS and caller.agent != self._present:  # admitted since it connected
            async with self._appearing:
                if caller.agent == self._binding.caller.agent:
                    await self._appear(caller)
        return self._binding.present(caller)

    def _names_agents(self, action: str) -> bool:
        """Whether an operation has `agent_id` as an argument, so that it does not name the sender."""
        operation = self._workbench.catalogue.get(action)
        return operation is not None and "agent_id" in operation.parameters

    async def _bound_to_id(self, agent_id: str) -> Caller:
        try:
            agent = await self._by_id(agent_id)
        except Unauthenticated as error:
            if error.code == "TOKEN_REQUIRED" and agent_id.startswith("pending_"):
                raise message.not_assigned() from None
            raise
        caller = self._binding.from_here(agent)
        if agent.level > Level.ANONYMOUS:
            await self._bind(caller)
        return self._binding.narrowed(caller)

    async def _by_id(self, agent_id: str) -> Caller:
        """The caller with an id that needs no token: an imported agent, or one that announced itself here."""
        announced_as = self._announced.get(agent_id)
        if announced_as is not None:
            return await self._workbench.current(announced_as)
        return await self._workbench.identify_by_id(agent_id)

    # Selecting a tool, and registering.

    async def _select_tool(self, caller: Caller, frame: Frame) -> SocketReply:
        tool = frame.data.get("tool")
        if tool not in message.TOOLS:
            raise message.invalid_tool()
        if tool == "register":
            return await self._register(caller, {k: v for k, v in frame.data.items() if k != "tool"})
        self._binding.select(tool)
        return SocketReply(message.agent_id_required(self.client_id, tool))

    async def _register(self, caller: Caller, data: dict[str, Any]) -> SocketReply:
        registration = {"name": f"Agent_{self.client_id}"[:100], **data, "connection_id": self.client_id[:200]}
        try:
            result = await self._workbench.dispatch(caller, "register", registration)
        except WorkbenchError as error:
            raise message.failed("Registration", error) from error
        waiting = await self._workbench.identify(result["token"])
        return SocketReply(message.registration_success(result), then=lambda: self._await_decision(waiting))

    def _await_decision(self, waiting: Caller) -> None:
        """Send the client the operator's decision; again if it has been sent, but the client could not bind by it."""
        assert waiting.agent is not None
        sending = self._deciding.get(waiting.agent)
        if sending is None or sending.done():
            self._deciding[waiting.agent] = self._socket.begin(partial(self._send_decision, waiting))

    async def _send_decision(self, waiting: Caller) -> None:
        async with self._workbench.feed.subscribe(*DECIDED, subject=f"agent:{waiting.agent}") as events:
            state = await self._workbench.dispatch(waiting, "registration_status", {})
            while state["status"] == Registration.PENDING:
                await anext(events)
                state = await self._workbench.dispatch(waiting, "registration_status", {})
        await self._socket.send(message.decision(state, Registration(state["status"]) in access.MAY_ACT))

    async def _announce(self, caller: Caller, data: dict[str, Any]) -> SocketReply:
        """Identify a client that predates registration: known agents are bound, others are registered."""
        agent_id = announced(data)
        if caller.level is Level.ANONYMOUS:
            if not await self._workbench.allowed(agent_id):
                raise Refused("NOT_ALLOWLISTED", f"{agent_id} is not on the allowlist. Ask the operator to add it.")
            try:
                agent = await self._by_id(agent_id)
            except Unauthenticated as error:
                if error.code != "INVALID_AGENT":
                    raise
                return await self._register_announced(caller, agent_id, data.get("name") or agent_id)
            if agent.level is Level.ANONYMOUS and not agent.barred:
                return await self._still_waiting(agent, agent_id)
            caller = await self._bind_admitted(agent)
        return SocketReply(message.announce_ack(caller.name), before=message.agent_status(caller.name, "connected"))

    async def _register_announced(self, caller: Caller, agent_id: str, name: Any) -> SocketReply:
        reply = await self._register(caller, {"name": name, "capabilities": {ANNOUNCED_AS: agent_id}})
        agent = await self._workbench.identify(reply.message["token"])
        assert agent.agent is not None
        self._announced[agent_id] = agent
        registration = {key: reply.message[key] for key in ("status", "token", "approval_id", "message")}
        if agent.level > Level.ANONYMOUS:  # admitted by a rule
            bound = await self._bind_admitted(agent)
            ack = message.announce_ack(bound.name, **registration)
            return SocketReply(ack, before=message.agent_status(bound.name, "connected"))
        ack = message.announce_ack(agent_id, **registration)
        return replace(reply, message=ack, before=message.agent_status(agent_id, reply.message["status"]))

    async def _still_waiting(self, agent: Caller, agent_id: str) -> SocketReply:
        """Answer the repeated announcement of an agent that is not admitted.

        Raises:
            Refused: ``REJECTED``.
        """
        if agent.rejection is not None:
            raise access.rejected(agent.rejection)
        state = await self._workbench.dispatch(agent, "registration_status", {})
        return SocketReply(
            message.announce_ack(agent_id, status=state["status"], message=state["message"]),
            before=message.agent_status(agent_id, state["status"]),
        )

    # Authentication and presence.

    async def _authenticate(self, data: dict[str, Any]) -> SocketReply:
        token, agent_id = credentials(data)
        if token is None:
            assert agent_id is not None
            return await self._bound_to(await self._workbench.identify_by_id(agent_id))
        agent = await self._workbench.identify(token)
        check_owner(agent, agent_id)
        return await self._bound_to(agent)

    async def _bound_to(self, agent: Caller) -> SocketReply:
        """Bind the connection and confirm it. A pending agent gets an error, and later the decision."""
        caller = self._binding.from_here(agent)
        if caller.level is Level.ANONYMOUS and not caller.barred:
            refusal = message.error(message.not_admitted(caller.rejection), "authenticate")
            return SocketReply(refusal, then=lambda: self._await_decision(caller))
        bound = await self._bind_admitted(caller)
        tool = self._binding.narrowed(bound).tool
        return SocketReply(message.authentication_success(bound.name, bound.display_name or bound.name, tool))

    async def _bind_admitted(self, agent: Caller) -> Caller:
        """Bind the connection to an admitted agent or the operator.

        Raises:
            Refused: ``GRANT_EXPIRED``, ``TOOL_DISABLED``, ``NOT_ALLOWLISTED``.
        """
        caller = self._binding.from_here(agent)
        await self._workbench.dispatch(caller, "whoami", {})  # raises the reason if the caller is barred
        await self._bind(caller)
        return caller

    async def _bind(self, caller: Caller) -> None:
        """Bind the connection to a caller until the caller is revoked."""
        async with self._appearing:
            if caller.agent != self._binding.caller.agent:
                self._subscriptions.end()
            await self._appear(caller)
            self._binding.bind(self._binding.from_here(caller))
            for task in self._watching:
                task.cancel()
            self._watching = [self._socket.begin(partial(self._end_when_revoked, caller))]
            if caller.level is Level.OPERATOR:
                page = await self._workbench.dispatch(caller, "list_events", {"after": None, "limit": 1})
                self._watching.append(self._socket.begin(partial(self._announce_newcomers, page["next_after"])))

    async def _appear(self, caller: Caller) -> None:
        """Record an admitted agent as connected, and the previous one as disconnected."""
        agent = caller.agent if caller.level > Level.ANONYMOUS else None
        if agent == self._present:
            return
        await self._disappear()
        if agent is not None:
            connected = self._workbench.connected(caller, "websocket", self.client_id)
            await self._presence.enter_async_context(connected)
            self._present = agent

    async def _disappear(self) -> None:
        """Record the connected agent as disconnected."""
        self._present = None
        try:
            await self._presence.aclose()
        except WorkbenchError:
            log.warning("the disconnection of %s could not be recorded", self._binding.caller.name, exc_info=True)

    async def _end_when_revoked(self, caller: Caller) -> None:
        reason = await revoked(self._workbench, caller)
        self._binding.release()
        await self._socket.end(CLOSE_AUTHENTICATION, reason)

    # Operations.

    async def _read_or_write(self, caller: Caller, frame: Frame) -> SocketReply:
        """Read or write as spec 1 defines it."""
        if caller.level is Level.ANONYMOUS and not caller.barred:
            raise message.not_admitted(caller.rejection)
        if frame.action == "request_contexts":
            return await self._own_contexts(caller, frame.data)
        if frame.action == "read":
            return await self._operate(caller, frame)
        try:
            return await self._operate(caller, frame)
        except WorkbenchError as error:
            raise message.failed("Write operation", error) from error

    async def _own_contexts(self, caller: Caller, data: dict[str, Any]) -> SocketReply:
        """Answer an older client's `request_contexts`."""
        limit = data.get("limit", LEGACY_CONTEXTS)
        own = {"agent_id": caller.name} if caller.agent is not None else {}
        page = await self._workbench.dispatch(caller, "read", {"filters": own, "limit": limit})
        return SocketReply(message.contexts(caller.name, page))

    async def _operate(self, caller: Caller, frame: Frame) -> SocketReply:
        operation = self._workbench.catalogue.get(frame.action)
        if operation is None:
            return SocketReply(message.echo(frame))
        data = frame.data
        if "agent_id" in data and caller.agent is not None and not self._names_agents(frame.action):
            data = {key: value for key, value in data.items() if key != "agent_id"}
        with self._socket.waiting() if operation.waits(data) else contextlib.nullcontext():
            result = await self._workbench.dispatch(caller, frame.action, data, decoded=True)
        return SocketReply(message.response(frame.action, result))

    # Events.

    async def _subscribe(self, caller: Caller, frame: Frame) -> SocketReply:
        filters = subscriptions.arguments(frame.data)
        page = await self._workbench.dispatch(caller, "list_events", {**filters, "limit": 1})
        self._subscriptions.require_room()
        valid = self._workbench.catalogue["list_events"].validate(filters)
        after = page["next_after"] if valid["after"] is None else valid["after"]
        as_messages = bool(frame.data.get("tool_messages"))
        following = SubscriptionFilter(valid["kinds"], after, valid["mine"], frame.request_id, as_messages)
        add = partial(self._subscriptions.add, following)
        return SocketReply(message.response("subscribe", {"after": after}), then=add)

    def _begin(self, event_filter: SubscriptionFilter) -> asyncio.Task[None]:
        return self._socket.begin(partial(self._follow, event_filter), "subscribe", event_filter.request_id)

    async def _follow(self, event_filter: SubscriptionFilter) -> None:
        async with self._workbench.feed.subscribe(*event_filter.kinds, after=event_filter.after) as events:
            while True:
                batch = await events.batch()
                caller = await self._caller()
                if caller.level is Level.ANONYMOUS:
                    await self._workbench.dispatch(caller, "whoami", {})  # raises the reason
                visible = [
                    event
                    for event in batch
                    if may_see(caller, event) and (event_filter.mine or not is_own(caller, event))
                ]
                await self._socket.send_texts([event_filter.text(event) for event in visible])

    async def _announce_newcomers(self, after: int) -> None:
        async with self._workbench.feed.subscribe("agent.registered", after=after) as events:
            async for event in events:
                with contextlib.suppress(NotFound):  # already decided: the agent has another id
                    address = {"agent_id": event.data["agent_id"]}
                    agent = await self._workbench.dispatch(self._binding.caller, "get_agent", address)
                    await self._socket.send(message.new_pending_agent(agent))
