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

The agent stays connected: when the connection breaks, it connects again, after pauses that grow, also to a server of
the project that was restarted at another address. Calls made meanwhile are sent then. A change that was under way when
it broke fails with ``NO_SERVER``: it may have been made or not.
'''

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, Self

from workbench.client.actions import KeepToken, Outcome, Ready
from workbench.client.address import websocket_url
from workbench.client.handshake import Handshake
from workbench.client.http import TIMEOUT_SECONDS
from workbench.client.messages import encoded, no_reply, no_server
from workbench.client.project_server import ProjectServer
from workbench.client.protocol import AgentProtocol
from workbench.client.reconnecting import ReconnectingSocket
from workbench.client.retry import Pauses, RetryPolicy, backoff
from workbench.client.waiting import WaitingRequests
from workbench.errors import Unavailable, WorkbenchError
from workbench.rules.wire.arguments import plain

PATIENCE_SECONDS = 600.0

log = logging.getLogger(__name__)


class Agent:
    """An agent. An asynchronous context manager: entering waits until a person has admitted it.

    Args:
        url: address of the server, such as ``http://127.0.0.1:8765`` or ``ws://127.0.0.1:8765/ws``.
        name: what people will call it.
        capabilities: what it can do; free-form.
        persona_id: the kind of work wanted.
        token: of an earlier registration; without one it registers.
        agent_id: its id; alone, without a token, only for agents that a migration brought.
        tool: ``read`` or ``write``: the tool that it selects.
        keep: called with the token as soon as there is one, to store it; entering raises its errors.
        patience: seconds without a server after which it gives up.
        timeout: seconds that the server may take to reply.
        chance, clock: randomness and time, for the pauses between attempts to connect.
        pauses: makes those pauses, in seconds; by default they grow to half a minute.
        project: root of the server's project, which tells where the server is, also after a restart at another
            address. By default the project of the current directory, if its server is at `url`.

    Raises:
        BadInput: ``BAD_URL``. Refused: ``REJECTED`` (a person said no), ``GRANT_EXPIRED``, ``NOT_ALLOWLISTED``,
            ``TOOL_DISABLED``. Unauthenticated: ``INVALID_TOKEN``, ``ACCESS_TOKEN_REQUIRED``.
        Unavailable, TooMany: ``TOO_MANY_PENDING``, ``NO_SERVER``, ``NO_REPLY``, ``BAD_REPLY``.
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
        timeout: float = TIMEOUT_SECONDS,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        pauses: Callable[[], Pauses] | None = None,
        project: Path | None = None,
    ) -> None:
        client_id = f"{re.sub('[^A-Za-z0-9._]+', '-', name)[:40]}-{int(chance() * 2**32):08x}"
        introduction = {"name": name, "capabilities": dict(capabilities or {}), "persona_id": persona_id}
        self._handshake = Handshake(client_id, introduction, tool, token, agent_id)
        self._protocol = AgentProtocol(client_id, self._handshake)
        self._waiting = WaitingRequests(timeout, self._expire)
        retry = RetryPolicy(patience, clock, pauses or (lambda: backoff(chance)))
        websocket_url(url)  # raises if it is no address
        server = ProjectServer.at(url, project)
        self._socket = ReconnectingSocket(
            server, client_id, self._protocol, retry, timeout, self._waiting.sent, self._settle
        )
        self._keep = keep or (lambda token: None)
        self._timeout = timeout
        self._ready: asyncio.Event
        self._running: asyncio.Task[None]
        self._end: WorkbenchError | None = None

    @property
    def token(self) -> str | None:
        """The token that it authenticates with."""
        return self._handshake.token

    @property
    def agent_id(self) -> str | None:
        """The id a person gave it."""
        return self._handshake.agent_id

    async def __aenter__(self) -> Self:
        self._ready = asyncio.Event()
        self._running = asyncio.create_task(self._run())
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._running, ready}, return_when=asyncio.FIRST_COMPLETED)
            if self._running.done():
                await self._running
        except BaseException:
            await self.__aexit__()
            raise
        finally:
            ready.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        self._give_up(no_server(ConnectionError("the agent was closed")))

    # What an agent does.

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when the connection broke before it replied, unless
                the operation only reads; ``NO_REPLY``, ``BAD_REPLY``.
        """
        arguments = plain(name, arguments)
        encoded(name, arguments)
        self._require_alive()
        number, instructions = self._protocol.call(name, arguments)
        answer = self._waiting.for_answer(number)
        try:
            await self._socket.perform(instructions)
            return await answer
        finally:
            await self._forget(number)

    async def read(self, resource_type: str = "contexts", **arguments: Any) -> dict[str, Any]:
        """Read contexts, sessions, …: ``{"resource_type", "access_level", "data": [rows], "count", "next_cursor"}``."""
        return await self.call("read", resource_type=resource_type, **arguments)

    async def write(self, title: str, content: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Write a context into the agent's session: ``{"context_id", "sequence_number", "status"}``."""
        body = {"title": title, "content": content, "metadata": dict(metadata or {})}
        return await self.call("write", resource_type="contexts", content=body)

    async def subscribe(
        self, *kinds: str, after: int | None = None, mine: bool = True
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Events of some kinds (``*``, ``<noun>.*`` or a kind) in order, without gaps, also across breaks.

        Args:
            after: begin after this event; without it, with events from now on.
            mine: false leaves out the agent's own events, so that it does not react to them.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when the agent has given up.
        """
        self._require_alive()
        number, subscription, instructions = self._protocol.subscribe(kinds, after, mine=mine)
        wake = self._waiting.for_events(number)
        try:
            await self._socket.perform(instructions)
            while True:
                while (event := subscription.take()) is not None:
                    yield event
                if subscription.error is not None:
                    raise subscription.error
                wake.clear()
                await self._socket.perform(self._protocol.resume(number))
                await wake.wait()
        finally:
            await self._forget(number)

    def _require_alive(self) -> None:
        if self._end is not None:
            raise self._end

    async def _forget(self, number: int) -> None:
        """Drop a call that was given up, or a subscription that ended."""
        self._waiting.end(number)
        await self._socket.perform(self._protocol.forget(number))

    # Outcomes.

    async def _run(self) -> None:
        """Run the connection. If it ends for good, all calls and subscriptions fail with its error."""
        try:
            await self._socket.run()
        except WorkbenchError as error:
            self._give_up(error)
            raise
        except Exception as error:
            if self._ready.is_set():  # else who enters gets it
                log.exception("the agent failed")
            self._give_up(Unavailable("AGENT_FAILED", f"The agent failed ({error!r}). Make a new one."))
            raise

    def _give_up(self, error: WorkbenchError) -> None:
        self._end = self._end or error
        for outcome in self._protocol.ended(self._end):
            self._settle(outcome)

    def _expire(self, number: int) -> None:
        for outcome in self._protocol.expired(number, no_reply(self._timeout)):
            self._settle(outcome)

    def _settle(self, outcome: Outcome) -> None:
        match outcome:
            case Ready():
                self._ready.set()
            case KeepToken(token):
                self._keep(token)
            case _:
                self._waiting.settle(outcome)
