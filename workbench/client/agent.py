'''Agents in Python, over WebSocket (spec 1): they register, wait for a person, and then read, write and follow events.

A whole agent::

    """Answers every context that asks a question. Keeps its token in the file it is given."""

    import asyncio
    import sys
    from pathlib import Path

    from workbench.client import Agent


    async def main(url: str, file: Path) -> None:
        def keep(token: str) -> None:
            file.touch(mode=0o600)  # whoever can read it can act as this agent
            file.write_text(token)

        token = file.read_text() if file.exists() else None
        async with Agent(url, name="Oracle", token=token, keep=keep) as agent:
            print(f"admitted as {agent.agent_id}", flush=True)
            async for event in agent.subscribe("context.written", after=0):
                for context in (await agent.read("contexts", limit=5))["data"]:
                    if context["title"].endswith("?"):
                        await agent.write("Answer", f"{context['title']} Yes.", {"to": context["id"]})
                        return


    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

The connection is kept: when it breaks it is made again, after pauses that grow. What was asked meanwhile is asked
then; a change that was under way when it broke fails with ``NO_SERVER``, for nobody knows whether it was done.
'''

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit, urlunsplit

from workbench.client.http import entrance, no_server
from workbench.errors import BadInput, NotFound, Refused, Unavailable, WorkbenchError, from_dict

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
PATIENCE_SECONDS = 600.0
STREAM_LIMIT = 10_000
"""Events that are kept for a slow reader; what comes later is asked for when it has caught up."""
TOO_BIG = 1009
READS = frozenset({"read", "whoami", "ping", "registration_status"})
READING = ("get_", "list_", "search_")
"""How the names of the other operations begin that only read."""
_OPTIONS: dict[str, Any] = {"max_size": None, "max_queue": None, "compression": None, "proxy": None}
"""Everything is heard at once: what is not, such as the server's farewell, would have to wait for its reader."""

Message = dict[str, Any]


def pause_before(attempt: int, chance: float) -> float:
    """Seconds before an attempt (from 0) to connect again: twice as many each time, less up to half of them.

    Args:
        chance: uniform in [0, 1), so that many agents do not come back at once.
    """
    most = min(FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 32), LONGEST_PAUSE_SECONDS)
    return most * (1 - chance / 2)


class _NotKeptError(Exception):
    """The token could not be stored; that is no broken connection, whatever the reason."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(eq=False)
class _Request:
    """Something asked, until it is answered."""

    action: str
    data: Mapping[str, Any]
    answer: asyncio.Future[Message] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    sent: bool = False
    again: bool = False
    """It may be asked twice: after a break it is."""

    def fail(self, error: WorkbenchError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(eq=False)
class _Stream:
    """A subscription: what was heard and not yet read."""

    kinds: list[str]
    last: int | None
    heard: asyncio.Queue[Message | WorkbenchError | None] = field(default_factory=asyncio.Queue)
    behind: bool = False

    def offer(self, event: Message) -> None:
        if self.behind or (self.last is not None and event["id"] <= self.last):
            return
        if self.heard.qsize() >= STREAM_LIMIT:
            self.fall_behind()
        else:
            self.last = event["id"]
            self.heard.put_nowait(event)

    def fall_behind(self) -> None:
        """Take nothing more until what was heard is read, and it is subscribed to again."""
        self.behind = True
        self.heard.put_nowait(None)

    def begin(self, after: int) -> None:
        """The server begins to send what comes after an event."""
        self.behind = False
        self.last = after if self.last is None else self.last


class Agent:
    """An agent. An asynchronous context manager: entering waits until a person has admitted it.

    Args:
        url: address of the server, such as ``http://127.0.0.1:8765`` or ``ws://127.0.0.1:8765/ws``.
        name: what people will call it.
        capabilities: what it can do; free-form.
        persona_id: the kind of work wanted.
        token: of an earlier registration; without one it registers.
        agent_id: its id; alone, without a token, only for agents that a migration brought.
        tool: ``read`` or ``write``: what it selects.
        keep: called with the token as soon as there is one, to store it; what it raises, entering raises.
        patience: seconds without a server after which it gives up.
        chance, clock, sleep: randomness and time, for the pauses between attempts to connect.

    Raises:
        Refused: ``REJECTED`` (a person said no), ``GRANT_EXPIRED``, ``NOT_ALLOWLISTED``, ``TOOL_DISABLED``.
        Unauthenticated: ``INVALID_TOKEN``. Unavailable: ``NO_SERVER``, ``TOO_MANY_PENDING``.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "agent",
        capabilities: Mapping[str, Any] | None = None,
        persona_id: str | None = None,
        token: str | None = None,
        agent_id: str | None = None,
        tool: str = "write",
        keep: Callable[[str], object] | None = None,
        patience: float = PATIENCE_SECONDS,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.token = token
        self.agent_id = agent_id
        self._client_id = f"{re.sub('[^A-Za-z0-9._]+', '-', name)[:40]}-{int(chance() * 2**32):08x}"
        self._url = f"{_address(url)}/{self._client_id}"
        self._introduction = {"name": name, "capabilities": dict(capabilities or {}), "persona_id": persona_id}
        self._tool = tool
        self._keep_token = keep or (lambda token: None)
        self._patience = patience
        self._chance = chance
        self._clock = clock
        self._sleep = sleep
        self._numbers = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        self._streams: dict[int, _Stream] = {}
        self._socket: ClientConnection | None = None
        self._decided: asyncio.Future[Message]
        self._ready: asyncio.Event
        self._keeping: asyncio.Task[None]
        self._met = False
        self._end: WorkbenchError | None = None

    async def __aenter__(self) -> Self:
        self._ready = asyncio.Event()
        self._keeping = asyncio.create_task(self._keep())
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._keeping, ready}, return_when=asyncio.FIRST_COMPLETED)
            if self._keeping.done():
                await self._keeping
        except BaseException:
            await self.__aexit__()
            raise
        finally:
            ready.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        self._give_up(no_server(ConnectionError("the agent was closed")))

    # What an agent does.

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when the connection broke before it
                answered, unless the operation only reads.
        """
        request = _Request(name, _checked(name, arguments), again=name in READS or name.startswith(READING))
        return _result(name, await self._asked(request))

    async def read(self, resource_type: str = "contexts", **arguments: Any) -> dict[str, Any]:
        """Read contexts, sessions, …: ``{"resource_type", "data": [rows], "next_cursor"}``."""
        return await self.call("read", resource_type=resource_type, **arguments)

    async def write(self, title: str, content: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Write a context into the agent's session: ``{"context_id", "sequence_number", "status"}``."""
        body = {"title": title, "content": content, "metadata": dict(metadata or {})}
        return await self.call("write", resource_type="contexts", content=body)

    async def subscribe(self, *kinds: str, after: int | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """Events of some kinds (``*``, ``<noun>.*`` or a kind) in order, without gaps, also across breaks.

        Args:
            after: begin after this event; without it, with what happens from now on.
        """
        number, stream = next(self._numbers), _Stream(list(kinds) or ["*"], after)
        self._require_alive()
        self._streams[number] = stream
        try:
            await self._follow(number, stream)
            while True:
                heard = await stream.heard.get()
                if isinstance(heard, WorkbenchError):
                    raise heard
                if heard is None:
                    await self._follow(number, stream)
                else:
                    yield heard
        finally:
            del self._streams[number]
            await self._say("unsubscribe", {"subscription": number})

    # Asking.

    async def _asked(self, request: _Request) -> Message:
        self._require_alive()
        number = next(self._numbers)
        self._requests[number] = request
        try:
            if self._ready.is_set():
                await self._post(number, request)
            return await request.answer
        finally:
            self._requests.pop(number, None)

    async def _post(self, number: int, request: _Request) -> None:
        request.sent = True
        await self._say(request.action, {**request.data, "request_id": number})

    async def _follow(self, number: int, stream: _Stream) -> None:
        if self._ready.is_set():
            await self._say("subscribe", {"kinds": stream.kinds, "after": stream.last, "request_id": number})

    async def _say(self, action: str, data: Mapping[str, Any]) -> None:
        """Send a frame; if the connection is broken, whoever keeps it finds out."""
        from websockets.exceptions import ConnectionClosed

        if self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(json.dumps([self._client_id, action, data]))

    def _require_alive(self) -> None:
        if self._end is not None:
            raise self._end

    # Keeping the connection.

    async def _keep(self) -> None:
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException

        attempt, gone_since = 0, self._clock()
        try:
            while True:
                failure: Exception
                try:
                    async with connect(self._url, additional_headers=entrance(), **_OPTIONS) as socket:
                        await self._talk(socket)
                    failure = ConnectionError("the connection was closed")
                except (OSError, WebSocketException) as error:
                    failure = error
                except Unavailable as error:
                    if not self._is_known:
                        raise
                    failure = error
                if self._socket is not None:
                    gone_since = self._clock()
                if self._ready.is_set():
                    attempt = 0
                self._lost(failure)
                if not self._met or self._clock() - gone_since > self._patience:
                    raise no_server(failure)
                await self._sleep(pause_before(attempt, self._chance()))
                attempt += 1
        except WorkbenchError as error:
            self._give_up(error)
            raise
        except _NotKeptError as error:
            raise error.reason from None

    async def _talk(self, socket: ClientConnection) -> None:
        """Use a connection until it breaks."""
        self._socket, self._decided = socket, asyncio.get_running_loop().create_future()
        hearing, entering = asyncio.create_task(self._hear(socket)), asyncio.create_task(self._enter())
        try:
            await asyncio.wait({hearing, entering}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                await entering
            await hearing
        finally:
            for task in (hearing, entering):
                task.cancel()
            await asyncio.gather(hearing, entering, return_exceptions=True)

    async def _hear(self, socket: ClientConnection) -> None:
        async for text in socket:
            self._met = True
            self._take(json.loads(text))

    async def _enter(self) -> None:
        """Register if need be, wait to be admitted, authenticate; then go on where the last connection broke."""
        if not self._is_known:
            registered = await self._now("register", self._introduction)
            self._remember(registered["token"])
            await self._admitted()
        await self._now("select_tool", {"tool": self._tool})
        self.agent_id = (await self._authenticated())["agent_id"]
        self._ready.set()
        for number, request in list(self._requests.items()):
            await self._post(number, request)
        for number, stream in list(self._streams.items()):
            await self._follow(number, stream)

    def _remember(self, token: str) -> None:
        self.token = token
        try:
            self._keep_token(token)
        except Exception as error:
            raise _NotKeptError(error) from error

    @property
    def _is_known(self) -> bool:
        return self.token is not None or self.agent_id is not None

    async def _authenticated(self) -> Message:
        who = {"token": self.token} if self.token is not None else {"agent_id": self.agent_id}
        try:
            return await self._now("authenticate", who)
        except Refused as error:
            if error.code != "NOT_ASSIGNED":
                raise
            await self._admitted()
            return await self._now("authenticate", who)

    async def _admitted(self) -> None:
        decision = await self._decided
        if decision["type"] == "registration_rejected":
            raise Refused(
                "REJECTED", f"A person turned this agent away: {decision['reason'] or 'no reason was given'}."
            )

    async def _now(self, action: str, data: Mapping[str, Any]) -> Message:
        """Ask on this very connection."""
        number, request = next(self._numbers), _Request(action, data)
        self._requests[number] = request
        try:
            await self._post(number, request)
            return _unless_error(await request.answer)
        finally:
            self._requests.pop(number, None)

    # What is heard.

    def _take(self, message: Message) -> None:
        number, kind = message.get("request_id"), message["type"]
        if kind in ("agent_assigned", "registration_rejected"):
            if not self._decided.done():
                self._decided.set_result(message)
        elif number in self._streams:
            self._take_for(self._streams[number], message)
        elif number in self._requests:
            self._answer(self._requests[number], message)
        elif number is None and message.get("code") == "BAD_MESSAGE":
            # It could not be read, so its number is not known; but answers come in order.
            self._answer(next((r for r in self._requests.values() if r.sent), None), message)
        elif number is None and message.get("code") == "FLOODING":
            self._fail_sent(from_dict(message))

    def _take_for(self, stream: _Stream, message: Message) -> None:
        if message["type"] == "event":
            stream.offer(message["data"])
        elif message["type"] == "subscribe_response":
            stream.begin(message["data"]["after"])
        elif message.get("code") == "READER_TOO_SLOW":
            stream.fall_behind()
        elif message["type"] == "error":
            stream.heard.put_nowait(from_dict(message))

    def _answer(self, request: _Request | None, message: Message) -> None:
        if request is not None and not request.answer.done():
            request.answer.set_result(message)

    def _lost(self, failure: Exception) -> None:
        """The connection broke: what was under way fails, except what can be asked again."""
        self._socket = None
        self._ready.clear()
        too_big = getattr(getattr(failure, "rcvd", None), "code", None) == TOO_BIG
        if too_big:
            self._fail_sent(BadInput("TOO_LARGE", "The server does not take a message of this size."))
        for request in self._requests.values():
            if request.sent and not request.again:
                request.fail(no_server(failure))

    def _fail_sent(self, error: WorkbenchError) -> None:
        """Even what only reads is not to be sent again: it is why the server ends the connection."""
        for request in self._requests.values():
            if request.sent:
                request.fail(error)

    def _give_up(self, error: WorkbenchError) -> None:
        self._end, self._socket = self._end or error, None
        for request in self._requests.values():
            request.fail(error)
        for stream in self._streams.values():
            stream.heard.put_nowait(error)


def _address(url: str) -> str:
    """The WebSocket endpoint of a server that may be named by its HTTP address.

    Raises:
        BadInput: ``BAD_URL``.
    """
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not parts.netloc:
        raise BadInput("BAD_URL", f"{url!r} is no address of a server. Use http://127.0.0.1:8765, for example.")
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") or "/ws", "", ""))


def _checked(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("INVALID_ARGUMENTS", f"{name}: the arguments are not JSON: {error}.", problems=[]) from None
    return arguments


def _unless_error(message: Message) -> Message:
    if message["type"] == "error":
        raise from_dict(message)
    return message


def _result(name: str, message: Message) -> dict[str, Any]:
    if _unless_error(message)["type"] == "echo":
        raise NotFound("UNKNOWN_OPERATION", f"There is no operation {name!r}.")
    if name in ("read", "write"):
        return {key: value for key, value in message.items() if key not in ("type", "request_id")}
    data: dict[str, Any] = message["data"]
    return data
