"""One connection regardless of its messages: order, pace, and the handling of every error."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from workbench.errors import Refused
from workbench.shells.batches import PORTION, batch
from workbench.shells.websocket.socket import Disconnected, Handle, MessageSocket, SocketReply
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


class Client:
    """The other end: what an ASGI server would bring and take."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._coming.put_nowait({"type": "websocket.connect"})
        self.has_left = False

    async def receive(self) -> dict[str, Any]:
        return await self._coming.get()

    async def send(self, event: Any) -> None:
        """Take an event, if the client is there."""
        if self.has_left:
            raise OSError("gone")
        self.sent.put_nowait(dict(event))

    def say(self, *texts: str) -> None:
        for text in texts:
            self._coming.put_nowait({"type": "websocket.receive", "text": text})

    def leave(self) -> None:
        self.has_left = True
        self._coming.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def hears(self) -> Any:
        """The next message, or how the connection was closed."""
        event = await self.sent.get()
        return json.loads(event["text"]) if event["type"] == "websocket.send" else (event["code"], event["reason"])


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
async def socket(client: Client, settings: Settings) -> MessageSocket:
    """An accepted connection to it."""
    made = MessageSocket(client.receive, client.send, settings.model_copy(update={"max_in_flight": 4}))
    await made.accept(None)
    assert (await client.sent.get())["type"] == "websocket.accept"
    return made


def answering(answer: Callable[[str], Coroutine[Any, Any, Any]]) -> Handle:
    async def handle(text: str | None) -> SocketReply:
        assert text is not None
        return SocketReply({"type": "answer", "data": await answer(text)})

    return handle


async def test_replies_come_in_the_order_of_the_messages(client: Client, socket: MessageSocket) -> None:
    gates = {text: asyncio.Event() for text in "abc"}

    async def when_let(text: str) -> str:
        await gates[text].wait()
        return text

    client.say(*gates)
    serving = asyncio.create_task(socket.serve(answering(when_let)))
    for text in "cba":
        gates[text].set()
        await asyncio.sleep(0)
    assert [(await client.hears())["data"] for _ in gates] == ["a", "b", "c"]
    client.leave()
    await serving


async def test_the_messages_in_progress_of_a_connection_are_limited(client: Client, socket: MessageSocket) -> None:
    under_way, most, gate = 0, 0, asyncio.Event()

    async def counted(text: str) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await gate.wait()
        under_way -= 1
        return text

    client.say(*map(str, range(10)))
    serving = asyncio.create_task(socket.serve(answering(counted)))
    while under_way < 4:
        await asyncio.sleep(0)
    gate.set()
    assert [(await client.hears())["data"] for _ in range(10)] == list(map(str, range(10)))
    assert most == 4
    client.leave()
    await serving


async def test_a_reply_that_cannot_be_sent_is_logged_and_closes_the_connection(
    client: Client, socket: MessageSocket, caplog: pytest.LogCaptureFixture
) -> None:
    async def no_json(text: str) -> Any:
        return object()

    client.say("x")
    await socket.serve(answering(no_json))
    assert (await client.hears())["code"] == "INTERNAL_ERROR"
    assert await client.hears() == (1011, "INTERNAL_ERROR")
    assert "Unable to serialize" in caplog.text


async def test_a_failure_outside_the_replies_is_sent_and_logged(
    client: Client, socket: MessageSocket, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise KeyError("a defect")

    async def refuse() -> None:
        raise Refused("FORBIDDEN", "No.")

    await asyncio.gather(socket.begin(fail, "subscribe", 1), socket.begin(refuse, "subscribe", 2))
    told = [await client.hears(), await client.hears()]
    assert {(one["code"], one["action"], one["request_id"]) for one in told} == {
        ("INTERNAL_ERROR", "subscribe", 1),
        ("FORBIDDEN", "subscribe", 2),
    }
    assert "a defect" in caplog.text


@pytest.mark.parametrize("takes_batches", [False, True])
async def test_several_messages_are_sent_together_up_to_a_limit_if_the_server_below_can(
    client: Client, settings: Settings, takes_batches: bool
) -> None:
    socket = MessageSocket(client.receive, client.send, settings, takes_batches=takes_batches)
    await socket.accept(None)
    await client.sent.get()
    half = "x" * (PORTION // 2)
    for texts in ([], ["1"], ["2", "3"], [half, half, "a", 3 * half, "b"]):
        await socket.send_texts(texts)
    sent = [client.sent.get_nowait() for _ in range(client.sent.qsize())]
    one = {"type": "websocket.send", "text": "1"}
    if takes_batches:
        assert sent[:2] == [one, batch(["2", "3"])]
        assert [event["texts"] for event in sent[2:]] == [[half, half], ["a"], [3 * half], ["b"]]
    else:
        assert sent == [{**one, "text": text} for text in ("1", "2", "3", half, half, "a", 3 * half, "b")]


async def test_nothing_is_sent_to_a_client_that_has_left(
    client: Client, socket: MessageSocket, caplog: pytest.LogCaptureFixture
) -> None:
    client.leave()
    for _ in range(2):
        with pytest.raises(Disconnected):
            await socket.send({"type": "event"})
    await socket.end(1000, "bye")
    assert client.sent.empty()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_requests_sent_before_the_client_left_are_answered(client: Client, socket: MessageSocket) -> None:
    done = []

    async def slowly(text: str) -> str:
        await asyncio.sleep(0.01)
        done.append(text)
        return text

    client.say("a", "b")
    client.leave()
    await socket.serve(answering(slowly))
    assert done == ["a", "b"]
