"""The agent's client against a server that breaks the protocol: it goes on or fails with a code, and never hangs."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from workbench.client import Agent
from workbench.errors import Refused, TooMany, Unauthenticated, Unavailable, WorkbenchError

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

TOKEN = "wba_" + "x" * 43
PROMPT = {"type": "tool_selection_prompt"}
ENTERING = {
    "register": {"type": "registration_success", "token": TOKEN},
    "select_tool": {"type": "agent_id_required"},
    "authenticate": {"type": "authentication_success", "agent_id": "ada"},
}

Act = Callable[["Peer", str, dict[str, Any]], Awaitable[None]]
"""`await act(peer, action, data)`: what the server does about a request."""


class Peer:
    """The server's end of one connection."""

    def __init__(self, socket: ServerConnection, number: int) -> None:
        self.socket = socket
        self.number = number
        """Which connection it is, from 1."""

    async def send(self, message: Any) -> None:
        await self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    async def reply(self, asked: dict[str, Any], /, **message: Any) -> None:
        await self.send({**message, "request_id": asked["request_id"]})

    async def let_in(self, action: str, data: dict[str, Any]) -> bool:
        """Reply to a request of the handshake; whether it was one."""
        if action in ENTERING:
            await self.reply(data, **ENTERING[action])
        if action == "register":
            await self.send({"type": "agent_assigned", "agent_id": "ada"})
        return action in ENTERING


@asynccontextmanager
async def serving(act: Act, **options: Any) -> AsyncIterator[str]:
    """A server of which this is the behaviour; its address."""
    numbers = itertools.count(1)

    async def talk(socket: ServerConnection) -> None:
        peer = Peer(socket, next(numbers))
        await peer.send(PROMPT)
        async for text in socket:
            _, action, data = json.loads(text)
            await act(peer, action, data)

    server: Server
    async with serve(talk, "127.0.0.1", 0, **options) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def answering(*unexpected: Any) -> Act:
    """Lets agents in; replies to the first call with something unexpected, and to all others as it should."""
    left = list(unexpected)

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if await peer.let_in(action, data):
            return
        if action == "ping" and left:
            while left:
                await peer.send(left.pop(0))
        else:
            await peer.reply(data, type=f"{action}_response", data={"ok": True})

    return act


def agent_at(url: str, **options: Any) -> Agent:
    """An agent that hardly waits between attempts to connect."""
    return Agent(url, pauses=lambda: itertools.repeat(0.01), **options)


async def entered(url: str, **options: Any) -> Agent:
    return await agent_at(url, **options).__aenter__()


@asynccontextmanager
async def facing(act: Act, **options: Any) -> AsyncIterator[Agent]:
    """An agent that has entered a server of this behaviour."""
    async with serving(act) as url, agent_at(url, **options) as agent:
        yield agent


def replying(*messages: dict[str, Any]) -> Act:
    """Lets agents in; replies to each of their requests with these."""

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if not await peer.let_in(action, data):
            for message in messages:
                await peer.reply(data, **message)

    return act


UNREADABLE = {
    "text that is not JSON": "nonsense{",
    "nothing": "",
    "binary data": b"\x00\xff",
    "JSON that is no object": "[1, 2]",
    "JSON that nests too deep": "[" * 100_000,
    "an object without a type": {"data": 1},
    "an object whose type is no word": {"type": 5},
    "a reply without a request_id": {"type": "ping_response", "data": {"ok": True}},
    "a reply whose request_id is no number": {"type": "ping_response", "request_id": ["x"], "data": {}},
    "an error without a request_id": {"type": "error", "code": "BAD_MESSAGE", "message": "No."},
    "an error of the server without a request_id": {"type": "error", "code": "INTERNAL_ERROR", "status": 500},
}


@pytest.mark.parametrize("case", UNREADABLE)
async def test_a_call_that_is_answered_with_something_else_fails_and_the_agent_lives(case: str) -> None:
    async with facing(answering(UNREADABLE[case]), token=TOKEN) as agent:
        with pytest.raises(WorkbenchError) as caught:
            await agent.call("ping")
        assert caught.value.code in ("BAD_REPLY", "BAD_MESSAGE", "INTERNAL_ERROR")
        assert await agent.call("ping") == {"ok": True}


@pytest.mark.parametrize(
    "reply",
    [
        {"type": "ping_response"},
        {"type": "ping_response", "data": [1]},
        {"type": "surprise", "data": {}},
        {"type": "error"},
        {"type": "error", "code": 5, "message": None, "details": [1], "status": "x"},
        {"type": "error", "code": "X", "details": {"code": 1, "message": 2, "self": 3}},
    ],
    ids=str,
)
async def test_a_reply_with_missing_fields_is_a_coded_error(reply: dict[str, Any]) -> None:
    async with facing(replying(reply), token=TOKEN) as agent:
        for _ in range(2):
            with pytest.raises(WorkbenchError):
                await agent.call("ping")


async def test_a_message_of_an_unknown_type_is_ignored() -> None:
    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if not await peer.let_in(action, data):
            await peer.send({"type": "weather", "data": "rain"})
            await peer.send({"type": "error", "code": "STORE_BUSY", "message": "Of no request.", "status": 503})
            await peer.send({"type": "ping_response", "request_id": 10**9, "data": {"ok": False}})
            await peer.reply(data, type="ping_response", data={"ok": True})

    async with facing(act, token=TOKEN) as agent:
        assert await agent.call("ping") == {"ok": True}


@pytest.mark.parametrize("step", ENTERING)
@pytest.mark.parametrize("case", ["nonsense{", {"type": "surprise"}, {"type": "echo"}, {"type": "error"}], ids=str)
async def test_a_handshake_that_is_not_understood_fails_or_goes_on(step: str, case: Any) -> None:
    """A fresh agent, so that there is nothing to come back for."""

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if action != step:
            await peer.let_in(action, data)
        elif isinstance(case, dict):
            await peer.reply(data, **case)
        else:
            await peer.send(case)

    try:
        async with facing(act, name="Ada", patience=0.1) as agent:
            assert agent.agent_id == "ada"
            assert step == "select_tool"
    except WorkbenchError as error:
        assert error.code in ("BAD_REPLY", "UNKNOWN_ERROR")


async def test_a_server_that_does_not_reply_is_a_coded_error() -> None:
    silent, answer = True, answering()

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if action in ENTERING or not silent:
            await answer(peer, action, data)

    async with facing(act, token=TOKEN, timeout=0.1) as agent:
        with pytest.raises(Unavailable, match=r"NO_REPLY.*0\.1 s"):
            await agent.call("ping")
        async with aclosing(agent.subscribe("task.*")) as events:
            with pytest.raises(Unavailable, match="NO_REPLY"):
                await anext(events)
        silent = False
        assert await agent.call("ping") == {"ok": True}

    async def ignore(peer: Peer, action: str, data: dict[str, Any]) -> None:
        """Also in the handshake."""

    async with serving(ignore) as url:
        with pytest.raises(Unavailable, match="NO_REPLY"):
            await entered(url, token=TOKEN, timeout=0.1, patience=0.3)


async def test_waiting_for_a_person_has_no_time_limit() -> None:
    admitted = asyncio.Event()

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if action == "register":
            await peer.reply(data, **ENTERING["register"])
            await admitted.wait()
            await peer.send({"type": "agent_assigned"})
        else:
            await peer.let_in(action, data)

    async with serving(act) as url:
        entering = asyncio.create_task(entered(url, timeout=0.05))
        await asyncio.wait({entering}, timeout=0.3)
        admitted.set()
        agent = await entering
        assert agent.agent_id == "ada"
        await agent.__aexit__()


async def test_a_decision_is_not_lost_before_the_reply_or_after_an_error() -> None:
    async def early(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if action == "register":
            await peer.send({"type": "agent_assigned"})
            await peer.reply(data, **ENTERING["register"])
        else:
            await peer.let_in(action, data)

    async def busy(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if peer.number == 1 and action == "register":
            await peer.reply(data, **ENTERING["register"])
            await peer.send({"type": "error", "code": "STORE_BUSY", "message": "Busy.", "status": 503})
        else:
            await peer.let_in(action, data)

    for act in (early, busy):
        async with facing(act) as agent:
            assert (agent.agent_id, agent.token) == ("ada", TOKEN)


async def test_events_go_on_after_something_unreadable_without_gap_or_repetition() -> None:
    """An unreadable message may have been an event: events are requested again, from the last one on."""
    asked = []

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if await peer.let_in(action, data) or action != "subscribe":
            return
        asked.append(data["after"])
        await peer.reply(data, type="subscribe_response", data={"after": data["after"]})
        for number in range(data["after"] + 1, 5):
            if number == 3 and len(asked) == 1:
                await peer.send('{"type": "event", "data": {"id": 3')
            else:
                await peer.reply(data, type="event", data={"id": number})

    async with facing(act, token=TOKEN) as agent, aclosing(agent.subscribe("*", after=0)) as events:
        assert [(await anext(events))["id"] for _ in range(4)] == [1, 2, 3, 4]
    assert asked == [0, 2]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "event"},
        {"type": "event", "data": {"id": "x"}},
        {"type": "subscribe_response", "data": {}},
        {"type": "echo"},
        {"type": "error"},
    ],
    ids=str,
)
async def test_a_subscription_that_is_answered_with_something_else_ends_with_a_code(message: dict[str, Any]) -> None:
    act = replying({"type": "subscribe_response", "data": {"after": 0}}, message)
    async with facing(act, token=TOKEN) as agent, aclosing(agent.subscribe("*")) as events:
        with pytest.raises(WorkbenchError):
            await anext(events)


async def test_a_read_that_breaks_every_connection_fails_in_the_end() -> None:
    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if not await peer.let_in(action, data):
            peer.socket.transport.abort()

    async with facing(act, token=TOKEN) as agent:
        with pytest.raises(Unavailable, match="NO_SERVER"):
            await agent.call("whoami")


async def test_connections_that_break_at_once_use_up_the_patience() -> None:
    times = itertools.count(0, 100)

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if peer.number > 1 or not await peer.let_in(action, data):
            await peer.socket.close()

    async with serving(act) as url:
        agent = await entered(url, token=TOKEN, clock=lambda: float(next(times)))
        with pytest.raises(Unavailable, match="NO_SERVER"):
            await agent.call("ping")
        with pytest.raises(Unavailable, match="NO_SERVER"):
            await agent.call("ping")
        await agent.__aexit__()


def refusing(left: list[tuple[int, str]]) -> dict[str, Any]:
    """Refuses handshakes of WebSocket with these statuses and codes, as long as there are any left."""

    def look(socket: ServerConnection, request: Request) -> Response | None:
        if not left:
            return None
        status, code = left.pop(0)
        error = {"success": False, "error": {"code": code, "message": "Why.", "status": status}}
        return socket.respond(HTTPStatus(status), json.dumps(error) if code else "Bad gateway")

    return {"process_request": look}


@pytest.mark.parametrize(
    ("status", "code", "family"),
    [(403, "REMOTE_NOT_ALLOWED", Refused), (503, "TOO_MANY_CONNECTIONS", Unavailable), (429, "RATE_LIMITED", TooMany)],
)
async def test_a_refusal_on_the_first_connection_is_raised_as_it_is(
    status: int, code: str, family: type[WorkbenchError]
) -> None:
    async with serving(answering(), **refusing([(status, code)])) as url:
        with pytest.raises(family, match=f"{code}: Why"):
            await entered(url, token=TOKEN)


async def test_a_temporary_refusal_is_retried_and_a_final_one_is_not() -> None:
    refusals: list[tuple[int, str]] = []
    breaks = asyncio.Event()

    async def act(peer: Peer, action: str, data: dict[str, Any]) -> None:
        if await peer.let_in(action, data):
            return
        if breaks.is_set():
            breaks.clear()
            await peer.socket.close()
        else:
            await peer.reply(data, type="whoami_response", data={"ok": True})

    async with serving(act, **refusing(refusals)) as url, await entered(url, token=TOKEN) as agent:
        refusals += [(503, "TOO_MANY_CONNECTIONS"), (429, "RATE_LIMITED"), (502, "")]
        breaks.set()
        assert await agent.call("whoami") == {"ok": True}
        assert refusals == []
        refusals.append((401, "ACCESS_TOKEN_REQUIRED"))
        breaks.set()
        with pytest.raises(Unauthenticated, match="ACCESS_TOKEN_REQUIRED: Why"):
            await agent.call("whoami")


async def test_a_failure_to_keep_the_token_is_raised_on_entering() -> None:
    errors = (TimeoutError("slow disk"), ConnectionError("lost share"), OSError("No space left on device"))
    for error in (*errors, TooMany("RATE_LIMITED", "Wait.")):

        def keep(token: str, error: Exception = error) -> None:
            raise error

        async with serving(answering()) as url:
            agent = agent_at(url, keep=keep)
            with pytest.raises(type(error)):
                await agent.__aenter__()
        assert agent.token == TOKEN
