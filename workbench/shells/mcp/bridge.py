"""`workbench mcp`: MCP on standard input and output, passed on to the running server's HTTP endpoint and back.

Messages pass unchanged, so that the server offers here what it offers over HTTP. The bridge adds what a process of the
agent's own can do: it takes over the token that `register` returns, opens sessions (of protocols before 2026-07-28)
again when the server has lost them, follows a server that was restarted at another address, announces the agent's
tools once it is admitted, and answers while no server does.

The package `mcp` is not imported: loading it takes several times as long as all else that this process does until it
answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from workbench.client.discovery import find_server
from workbench.client.http import HttpClient
from workbench.client.messages import no_server
from workbench.client.project_server import ProjectServer
from workbench.client.retry import backoff, is_temporary
from workbench.errors import WorkbenchError
from workbench.shells.mcp.endpoint import McpEndpoint, SessionLost
from workbench.shells.mcp.lines import LineOutput, lines
from workbench.shells.mcp.messages import Message, failure, list_changed, registered_token
from workbench.state.settings import Settings
from workbench.trust import state_directory

WAIT_SECONDS = 25.0
CLOSING_SECONDS = 2.0
FINISHING_SECONDS = 1.0
"""How long answers are waited for when the input ends: clients kill a program that takes seconds to stop."""

log = logging.getLogger(__name__)

Write = Callable[[Message], Awaitable[None]]


class Bridge:
    """Passes the messages of one client on, and those of the server back.

    Args:
        server: where the server is.
        token: the agent's, if it has one already.
        write: sends a message to the client.
    """

    def __init__(self, server: ProjectServer, token: str | None, write: Write) -> None:
        self._server = server
        self._token = token
        self._write = write
        self._endpoint = McpEndpoint(server, token)
        self._former: list[McpEndpoint] = []
        self._initialize: Message | None = None
        self._is_initialized = False
        self._opening = asyncio.Lock()
        self._requests: dict[Any, asyncio.Task[None]] = {}
        self._listening: dict[Any, Message] = {}
        self._tools: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._begin(self._follow_server())
        if token is not None:
            self._begin(self._announce(token))

    async def pass_on(self, message: Message) -> None:
        """Pass a message of the client on. Requests are answered later, in any order."""
        match message:
            case {"method": "initialize", "id": int() | str()}:
                await self._open(message)
            case {"method": "notifications/initialized"}:
                self._is_initialized = True
                await self._notify(message)
                self._begin(self._follow())
            case {"method": "notifications/cancelled", "params": {"requestId": int() | str() as number}}:
                if self._initialize is not None:
                    await self._notify(message)
                if task := self._requests.pop(number, None):
                    task.cancel()
            case {"method": str(), "id": int() | str() as number}:
                self._requests[number] = self._begin(self._request(message))
            case _:
                await self._notify(message)

    async def finish(self) -> None:
        """Wait a moment for answers that are still to come: a client that has ended its input may yet read them."""
        requests = [task for number, task in self._requests.items() if number not in self._listening]
        if requests:
            await asyncio.wait(requests, timeout=FINISHING_SECONDS)

    async def close(self) -> None:
        """End what is under way, and the sessions."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for endpoint in (*self._former, self._endpoint):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await endpoint.close()

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open(self, initialize: Message) -> None:
        """Open the client's session, and answer its `initialize`."""
        self._initialize = initialize
        try:
            async for answer in self._endpoint.initialize(initialize):
                await self._write(answer)
        except WorkbenchError as error:
            await self._write(failure(initialize, error))

    async def _notify(self, message: Message) -> None:
        """Pass on what has no answer; it is lost while no server answers."""
        with contextlib.suppress(WorkbenchError, SessionLost):
            async for _ in self._endpoint.send(message):
                pass

    async def _request(self, message: Message) -> None:
        """Pass a request on and its answer back. The task's outermost handler."""
        try:
            async for answer in self._answers(message):
                if token := registered_token(message, answer):
                    await self._take_over(token)
                if message["method"] == "tools/list" and "result" in answer:
                    self._tools = answer["result"]
                await self._write(answer)
        except WorkbenchError as error:
            await self._write(self._without_server(message, error))
        except Exception:
            log.exception("a message could not be passed on")
            await self._write(failure(message, WorkbenchError("INTERNAL_ERROR", "The bridge failed; see its errors.")))
        finally:
            self._requests.pop(message["id"], None)

    def _without_server(self, message: Message, error: WorkbenchError) -> Message:
        """The answer to a request that failed: the error, or for `tools/list` without a server the last list."""
        if message["method"] == "tools/list" and error.code == "NO_SERVER" and self._tools is not None:
            return {"jsonrpc": "2.0", "id": message["id"], "result": self._tools}
        return failure(message, error)

    async def _answers(self, message: Message) -> AsyncIterator[Message]:
        """What the server answers; a session that it has lost is opened anew, once."""
        if message["method"] == "subscriptions/listen":
            async for answer in self._listen(message):
                yield answer
            return
        if self._server.is_away() and await self._server.find():
            self._replace_endpoint()
        try:
            await self._require_session()
            async for answer in self._endpoint.send(message):
                yield answer
        except SessionLost:
            await self._require_session()
            async for answer in self._endpoint.send(message):
                yield answer

    async def _listen(self, message: Message) -> AsyncIterator[Message]:
        """A subscription. It goes on with the agent's token once there is one, and when the server is back."""
        self._listening[message["id"]] = message
        is_acknowledged, pauses = False, backoff()
        try:
            while True:
                endpoint = self._endpoint
                try:
                    async for answer in _until(endpoint.replaced, endpoint.send(message)):
                        if answer.get("method") != "notifications/subscriptions/acknowledged":
                            yield answer
                        elif not is_acknowledged:
                            is_acknowledged = True
                            yield answer
                    if not endpoint.replaced.is_set():
                        return
                except WorkbenchError as error:
                    if not (is_acknowledged and is_temporary(error)):
                        raise
                    await asyncio.sleep(next(pauses))
        finally:
            del self._listening[message["id"]]

    async def _take_over(self, token: str) -> None:
        """Use the token of a registration from now on; requests under way keep their session."""
        self._token = token
        former = self._replace_endpoint(end_streams=False)
        with contextlib.suppress(WorkbenchError):  # the next request tries again
            await self._require_session()
        former.replaced.set()
        self._begin(self._announce(token, is_new=True))

    def _replace_endpoint(self, *, end_streams: bool = True) -> McpEndpoint:
        """Use the server's present address and the present token from now on; the former endpoint."""
        former, self._endpoint = self._endpoint, McpEndpoint(self._server, self._token)
        self._former.append(former)
        if end_streams:
            former.replaced.set()
        return former

    async def _follow_server(self) -> None:
        """Use the server's new address whenever it has moved; requests under way fail where they were sent."""
        while True:
            await self._server.moved()
            self._replace_endpoint()

    async def _require_session(self) -> None:
        """Open a session as the client did, unless there is one, or its protocol has none.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when none answers.
        """
        async with self._opening:
            if self._initialize is None or self._endpoint.has_session:
                return
            async for _ in self._endpoint.initialize(self._initialize):
                pass  # the client has its answer
            if self._is_initialized:
                await self._notify({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def _follow(self) -> None:
        """Pass on what the server sends by itself in the session. The task's outermost handler."""
        pauses = backoff()
        while True:
            try:
                await self._require_session()
                endpoint = self._endpoint
                async for message in _until(endpoint.replaced, endpoint.stream()):
                    pauses = backoff()
                    await self._write(message)
            except SessionLost:
                pass
            except WorkbenchError as error:
                log.info("the server's own messages are not passed on now: %s", error)
            except Exception:
                log.exception("the server's own messages can no longer be passed on")
                return
            await asyncio.sleep(next(pauses))

    async def _announce(self, token: str, *, is_new: bool = False) -> None:
        """Announce the agent's tools as soon as it is admitted. The task's outermost handler.

        Args:
            is_new: it has registered here: whenever it is admitted, the client does not know its tools yet.
        """
        try:
            if not await _is_admitted_later(partial(self._registration, token), is_new):
                return
            for message in list_changed(self._listening.values(), has_session=self._initialize is not None):
                await self._write(message)
        except WorkbenchError as error:  # such as a revoked token: the next list of tools tells
            log.info("the new tools are not announced: %s", error)
        except Exception:
            log.exception("the new tools could not be announced")

    async def _registration(self, token: str, wait_seconds: float) -> dict[str, Any]:
        """Where a registration stands, asked at the server's present address."""
        url = self._server.url
        async with HttpClient(url, token, partial(self._server.is_away, url)) as client:
            return await client.call("registration_status", wait_seconds=wait_seconds)


async def _until(end: asyncio.Event, messages: AsyncIterator[Message]) -> AsyncIterator[Message]:
    """Messages until an event happens."""
    ending = asyncio.create_task(end.wait())
    following: asyncio.Future[Message] | None = None
    try:
        while True:
            following = asyncio.ensure_future(anext(messages))
            await asyncio.wait({ending, following}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                return
            try:
                yield following.result()
            except StopAsyncIteration:
                return
    finally:
        ending.cancel()
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _is_admitted_later(registration: Callable[[float], Awaitable[dict[str, Any]]], has_waited: bool) -> bool:
    """Wait for the decision on a registration; False if it was decided before, or is a rejection.

    Args:
        registration: waits up to so many seconds for the decision, and returns where it stands.
        has_waited: it is known not to have been decided before.

    Raises:
        WorkbenchError: the registration no longer exists.
    """
    pauses = backoff()
    while True:
        try:
            state = await registration(WAIT_SECONDS if has_waited else 0)
        except WorkbenchError as error:
            if not is_temporary(error):
                raise
            await asyncio.sleep(next(pauses))
            continue
        if state["status"] != "pending":
            return has_waited and state["status"] in ("assigned", "active", "inactive")
        pauses, has_waited = backoff(), True


def run(settings: Settings, token: str | None) -> None:
    """Serve until standard input ends.

    Raises:
        Unavailable: ``NO_SERVER``.
    """
    asyncio.run(_serve(settings, token))


async def _serve(settings: Settings, token: str | None) -> None:
    state_directory.check(settings.project)
    running = await find_server(settings.server_file)
    if running is None:
        raise no_server(ConnectionError(f"none runs in {settings.project}"))
    output = LineOutput()
    bridge = Bridge(ProjectServer.at(running.info.url, settings.project), token, output.write)
    try:
        async for line in lines():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                await bridge.pass_on(message)
            else:
                error = {"code": -32700, "message": "This line is no JSON-RPC message."}
                await output.write({"jsonrpc": "2.0", "id": None, "error": error})
        await bridge.finish()
    finally:
        await bridge.close()
