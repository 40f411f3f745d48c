"""Conversations over `/ws/chat` (spec 4): real sockets, a real server, a model that follows a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.conftest import Admit, Served, limited
from tests.shells.websocket.conftest import closed, why_not
from tests.shells.websocket.test_socket import Client as BufferedClient
from workbench.ops import OPERATOR
from workbench.shells.websocket.chat import ChatConnection
from workbench.shells.websocket.socket import MessageSocket
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

Message = dict[str, Any]
FOREVER = [{"say": "One two three four", "pause": 20}]
LISTING = [{"say": "I look.", "calls": [{"tool": "list_tasks"}]}, {"say": "Done."}]


class Client:
    """A client of conversations."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def hear(self) -> Message:
        heard: Message = json.loads(await self.socket.recv())
        return heard

    async def until(self, *types: str) -> list[Message]:
        heard = [await self.hear()]
        while heard[-1]["type"] not in types:
            heard.append(await self.hear())
        return heard

    async def ask(self, conversation_id: str, content: str = "Hello") -> list[Message]:
        """Write a message; everything up to the end of its answer."""
        await self.send(type="message", conversation_id=conversation_id, content=content)
        return await self.until("complete", "error")


Clients = Callable[..., Any]
Begin = Callable[..., Any]


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Clients]:
    """`await client()`: a connection of the operator to `/ws/chat`."""
    async with AsyncExitStack() as stack:

        async def connected(token: str | None = served.workbench.operator_token, **options: Any) -> Client:
            offered = ["wb.v1", f"bearer.{token}"] if token else ["wb.v1"]
            connecting = connect(f"{served.info.ws_url}/chat", subprotocols=offered, max_size=None, **options)
            return Client(await stack.enter_async_context(connecting))

        yield connected


@pytest.fixture
def begin(served: Served, settings: Settings) -> Begin:
    """`await begin([{"say": "Hello."}])`: the id of a conversation whose model follows a script."""
    number = 0

    async def begun(script: list[dict[str, Any]], **choices: Any) -> str:
        nonlocal number
        number += 1
        path = settings.home / "agents" / f"helper{number}" / "agent.yaml"
        path.parent.mkdir(parents=True)
        about = {"id": f"helper{number}", "name": f"Helper{number}"}
        path.write_text(json.dumps({"metadata": about, "settings": {"model": "test:script", "script": script}}))
        conversation = await served.workbench.call(
            "create_conversation", definition=f"./agents/helper{number}", **choices
        )
        return str(conversation["id"])

    return begun


def text(messages: list[Message]) -> str:
    return "".join(message["content"] for message in messages if message["type"] == "token")


def of(messages: list[Message], kind: str) -> list[Message]:
    return [message for message in messages if message["type"] == kind]


async def test_a_message_is_answered_token_by_token_until_complete_and_again_if_asked(
    client: Clients, begin: Begin
) -> None:
    line, conversation = await client(), await begin([{"say": "One two three.", "pause": 0.05}])
    heard = await line.ask(conversation)
    assert text(heard) == "One two three."
    assert len(of(heard, "token")) > 1
    end = heard[-1]
    assert (end["type"], end["conversation_id"], end["state"]) == ("complete", conversation, "completed")
    assert end["message_id"] == of(heard, "token")[0]["message_id"]
    await line.send(type="retry", conversation_id=conversation, message_id=end["message_id"])
    again = await line.until("complete")
    assert text(again) == "One two three."
    assert again[-1]["message_id"] != end["message_id"]


async def test_the_calls_of_tools_have_a_start_and_an_end_with_their_source(client: Clients, begin: Begin) -> None:
    """And the types that the first version of the protocol defines."""
    heard = await (await client()).ask(await begin(LISTING, tools=["workbench"]))
    [start], [complete] = of(heard, "tool_start"), of(heard, "tool_complete")
    assert (start["tool_name"], json.loads(start["tool_input"]), start["source"]) == ("list_tasks", {}, "local")
    assert (complete["tool_name"], complete["source"], complete["is_error"]) == ("list_tasks", "local", False)
    assert "tasks" in complete["tool_result"]
    assert start["call_id"] == complete["call_id"]
    assert start["timestamp"] <= complete["timestamp"]
    assert text(heard) == "I look.Done."
    texts = {"token": ["content"], "complete": ["message_id", "conversation_id"]}
    texts |= {kind: ["tool_name", "timestamp"] for kind in ("tool_start", "tool_complete")}
    for message in heard:
        assert all(isinstance(message[name], str) for name in texts.get(message["type"], []))
    assert isinstance(complete["tool_result"], str)


async def test_a_failed_answer_ends_with_an_error_and_its_code(client: Clients, served: Served) -> None:
    conversation = await served.workbench.call("create_conversation", model="openai:gpt-4o")
    heard = await (await client()).ask(conversation["id"])
    assert heard[-1]["type"] == "error"
    assert heard[-1]["conversation_id"] == conversation["id"]
    assert heard[-1]["code"] == "INVALID_CONFIGURATION"
    assert heard[-1]["message"]


async def test_a_connection_stays_usable_during_an_answer_and_may_stop_it(client: Clients, begin: Begin) -> None:
    line, slow, quick = await client(), await begin(FOREVER), await begin([{"say": "Quick answer."}])
    await line.send(type="message", conversation_id=slow, content="Hello", request_id=1)
    accepted = (await line.until("accepted"))[-1]
    await line.send(type="ping", request_id=7)
    assert (await line.until("pong"))[-1] == {"type": "pong", "request_id": 7}
    await line.send(type="message", conversation_id=slow, content="And?", request_id="second")
    refused = (await line.until("error"))[-1]
    assert (refused["code"], refused["request_id"]) == ("ANSWER_RUNNING", "second")
    heard = await line.ask(quick)
    assert text([message for message in heard if message["conversation_id"] == quick]) == "Quick answer."
    await line.send(type="stop", conversation_id=slow)
    end = (await line.until("complete"))[-1]
    assert (end["conversation_id"], end["state"], end["message_id"]) == (slow, "stopped", accepted["answer_id"])


async def test_a_client_that_lost_its_connection_continues_without_a_gap(client: Clients, begin: Begin) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    conversation = await begin([{"say": words, "pause": 0.005}])
    first = await client()
    await first.send(type="message", conversation_id=conversation, content="Hello")
    heard = await first.until("token")
    await first.socket.close()
    second = await client()
    await second.send(type="subscribe", conversation_id=conversation, after=heard[-1]["number"])
    subscribed = {"type": "subscribed", "conversation_id": conversation, "after": heard[-1]["number"]}
    assert await second.hear() == subscribed
    heard += await second.until("complete")
    assert text(heard) == words
    numbers = [message["number"] for message in heard]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_an_answer_is_completed_without_its_reader(client: Clients, begin: Begin, served: Served) -> None:
    line, conversation = await client(), await begin([{"say": "One two three.", "pause": 0.01}])
    await line.send(type="message", conversation_id=conversation, content="Hello")
    await line.until("token")
    await line.socket.close()
    frames: list[Message] = []
    while not of(frames, "complete"):
        page = await served.workbench.call("read_frames", conversation_id=conversation, wait_seconds=10)
        frames = page["frames"]
    [message] = (await served.workbench.call("list_turns", conversation_id=conversation, limit=1))["turns"]
    assert (message["state"], message["content"]) == ("completed", "One two three.")


async def test_two_clients_follow_the_same_conversation(client: Clients, begin: Begin) -> None:
    one, two, conversation = await client(), await client(), await begin([{"say": "Hello you."}])
    await two.send(type="subscribe", conversation_id=conversation)
    assert (await two.hear())["type"] == "subscribed"
    heard = await one.ask(conversation, "Both of you?")
    assert await two.until("complete") == heard
    assert of(heard, "message")[0]["content"] == "Both of you?"


async def test_a_subscription_is_replaced_and_ended(client: Clients, begin: Begin) -> None:
    line, conversation = await client(), await begin([{"say": "Hello."}])
    await line.ask(conversation)
    await line.send(type="subscribe", conversation_id=conversation, after=0)
    heard = await line.until("complete")
    assert [message["type"] for message in heard] == ["subscribed", "message", "token", "complete"]
    await line.send(type="unsubscribe", conversation_id=conversation, request_id=2)
    assert (await line.hear())["action"] == "unsubscribe"
    other = await client()
    await other.ask(conversation)
    await line.send(type="ping")
    assert (await line.hear())["type"] == "pong"


async def test_a_conversation_that_is_deleted_ends_its_subscription(
    client: Clients, begin: Begin, served: Served
) -> None:
    line, conversation = await client(), await begin(FOREVER)
    await line.send(type="message", conversation_id=conversation, content="Hello", request_id=1)
    await line.until("accepted")
    await served.workbench.call("delete_conversation", conversation_id=conversation)
    last = (await line.until("error"))[-1]
    assert (last["code"], last["conversation_id"]) == ("CONVERSATION_NOT_FOUND", conversation)


class StalledClient(BufferedClient):
    """A client whose buffers are full from its first message on, until it reads again."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = asyncio.Event()

    async def send(self, event: Any) -> None:
        """Take an event as soon as there is room."""
        if event["type"] == "websocket.send":
            await self.reads.wait()
        await super().send(event)


@pytest.fixture
async def stalled(served: Served) -> AsyncIterator[StalledClient]:
    """A connection whose client does not read."""
    made = StalledClient()
    socket = MessageSocket(made.receive, made.send, served.workbench.settings)
    serving = asyncio.create_task(ChatConnection(served.workbench, OPERATOR, socket).serve(None))
    assert (await made.sent.get())["type"] == "websocket.accept"
    yield made
    made.leave()
    await serving


async def test_a_client_that_does_not_read_delays_nobody_and_loses_nothing(
    client: Clients, begin: Begin, stalled: StalledClient
) -> None:
    conversation = await begin([{"say": "One two three.", "pause": 0.01}])
    stalled.say(json.dumps({"type": "subscribe", "conversation_id": conversation, "after": 0}))
    line = await client()
    for _ in range(3):
        assert text(await line.ask(conversation)) == "One two three."
    stalled.reads.set()
    heard: list[Message] = []
    while len(of(heard, "complete")) < 3:
        heard.append(await stalled.hears())
    assert text(heard) == "One two three." * 3


async def test_a_message_that_follows_a_subscription_at_once_leaves_no_gap(
    client: Clients, begin: Begin, stalled: StalledClient
) -> None:
    conversation = await begin([{"say": "Hello."}])
    line = await client()
    await line.ask(conversation)
    await line.send(type="subscribe", conversation_id=conversation)
    subscribe = {"type": "subscribe", "conversation_id": conversation, "after": 0}
    message = {"type": "message", "conversation_id": conversation, "content": "And?"}
    stalled.say(json.dumps(subscribe), json.dumps(message))
    await line.until("complete")
    stalled.reads.set()
    assert (await stalled.hears())["type"] == "subscribed"
    heard: list[Message] = []
    while len(of(heard, "complete")) < 2:
        heard.append(await stalled.hears())
    assert [frame["number"] for frame in heard] == list(range(1, len(heard) + 1))


NO_MESSAGES = [
    *("no JSON", "null", "[]", "{}", '["me", "ping", {}]', '{"type": "unknown"}', '{"type": "message"}', b"\x00"),
    '{"type": "message", "conversation_id": 1, "content": "x"}',
    '{"type": "message", "conversation_id": "x", "content": "\\u0000"}',
    '{"type": "subscribe", "conversation_id": "x", "after": -1}',
]


async def test_a_malformed_message_gets_an_error_and_the_connection_stays(client: Clients) -> None:
    line = await client()
    for sent in NO_MESSAGES:
        await line.socket.send(sent)
        refused = await line.hear()
        assert (refused["type"], refused["code"]) == ("error", "BAD_MESSAGE"), sent
        await line.send(type="ping")
        assert (await line.hear())["type"] == "pong"
    for kind in ("message", "subscribe", "stop", "retry"):
        await line.send(type=kind, conversation_id="nothing", content="Hello", request_id=1)
        refused = await line.hear()
        assert (refused["code"], refused["request_id"]) == ("CONVERSATION_NOT_FOUND", 1), kind
        assert refused["conversation_id"] == "nothing"


async def test_only_the_operator_chats_and_not_on_a_foreign_page(client: Clients, admit: Admit) -> None:
    refusals: list[tuple[dict[str, Any], tuple[int, str]]] = [
        ({"token": None}, (401, "TOKEN_REQUIRED")),
        ({"token": (await admit("ada")).token}, (403, "FORBIDDEN")),
        ({"token": f"wbo_{'x' * 43}"}, (401, "INVALID_TOKEN")),
        ({"origin": "https://example.org"}, (403, "BAD_ORIGIN")),
    ]
    for options, refusal in refusals:
        with pytest.raises(InvalidStatus) as refused:
            await client(**options)
        assert why_not(refused.value) == refusal


@limited(max_messages_per_second=2)
async def test_a_client_that_floods_is_cut_off(client: Clients) -> None:
    line = await client()
    flood = [asyncio.create_task(line.send(type="ping")) for _ in range(100)]
    assert (await closed(line))[1] == "FLOODING"
    await asyncio.gather(*flood, return_exceptions=True)
