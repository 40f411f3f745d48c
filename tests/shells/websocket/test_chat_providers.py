"""Conversations over `/ws/chat` with providers of models: real sockets on both sides of the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Served
from tests.providers.dialects import ADDRESSES, ANTHROPIC, KEYS, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from tests.providers.provider import Provider, failure, provider
from tests.providers.wire import Call, Step
from tests.shells.websocket.test_chat import Client, Clients, Message, client, of, text

__all__ = ["client"]

pytestmark = [pytest.mark.anyio, pytest.mark.long]

KEY = "sk-a-secret-of-the-provider"
DIALECTS = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC)
LIST_TASKS = Step(["I look. "], [Call("c1", "list_tasks", '{"limit": 5}')])

Configure = Callable[[Provider], None]


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Configures every provider by the environment of the server."""

    def configured(server: Provider) -> None:
        values = dict.fromkeys(ADDRESSES, server.address) | {"OPENAI_BASE_URL": f"{server.address}/v1"}
        for name, value in (dict.fromkeys(KEYS, KEY) | values).items():
            monkeypatch.setenv(name, value)

    return configured


async def begin(served: Served, dialect: Dialect, **choices: Any) -> str:
    """A conversation with a provider's model; with a definition if the provider needs a setting."""
    if dialect.settings is None:
        conversation = await served.workbench.call("create_conversation", model=dialect.model, **choices)
        return str(conversation["id"])
    path = served.workbench.settings.home / "agents" / "helper" / "agent.yaml"
    path.parent.mkdir(parents=True)
    settings = {"model": dialect.model, **dialect.settings}
    path.write_text(json.dumps({"metadata": {"id": "helper", "name": "Helper"}, "settings": settings}))
    conversation = await served.workbench.call("create_conversation", definition="./agents/helper", **choices)
    return str(conversation["id"])


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
async def test_a_model_answers_calls_a_tool_and_remembers(
    client: Clients, served: Served, configure: Configure, dialect: Dialect
) -> None:
    replies = map(dialect.reply, [LIST_TASKS, Step(["There is ", "none."]), Step(["As I said."])])
    async with provider(*replies) as server:
        configure(server)
        line: Client = await client()
        conversation = await begin(served, dialect, tools=["workbench"])
        heard = await line.ask(conversation, "Which tasks are there?")
        again = await line.ask(conversation, "Are you sure?")
    kinds = [message["type"] for message in heard if message["type"] != "token"]
    assert kinds == ["message", "tool_start", "tool_complete", "complete"]
    assert text(heard) == "I look. There is none."
    assert json.loads(of(heard, "tool_start")[0]["tool_input"]) == {"limit": 5}
    assert "tasks" in of(heard, "tool_complete")[0]["tool_result"]
    usage = heard[-1]["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (2, 22, 14)
    assert text(again) == "As I said."
    sent = json.dumps(server.requests[2].body)
    assert all(part in sent for part in ("Which tasks are there?", "I look.", "There is none.", "Are you sure?"))


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
async def test_a_repeated_request_is_shown(
    client: Clients, served: Served, configure: Configure, dialect: Dialect
) -> None:
    refused = failure(500, {"error": {"type": "x", "message": f"{KEY} failed"}}, **{"retry-after": "0"})
    async with provider(refused, dialect.reply(Step(["Hello."]))) as server:
        configure(server)
        heard = await (await client()).ask(await begin(served, dialect))
    [retry] = of(heard, "retry")
    assert (retry["code"], retry["attempt"], heard[-1]["type"]) == ("PROVIDER_FAILED", 2, "complete")
    assert KEY not in json.dumps(heard)


REFUSALS: list[tuple[int, str]] = [(400, "PROVIDER_REJECTED"), (401, "PROVIDER_KEY_REFUSED"), (404, "MODEL_NOT_FOUND")]


@pytest.mark.parametrize(("status", "code"), REFUSALS)
async def test_a_refusal_has_a_code_and_no_secret(
    client: Clients, served: Served, configure: Configure, status: int, code: str, tmp_path: Path
) -> None:
    async with provider(failure(status, {"error": {"type": "x", "message": f"No {KEY}"}})) as server:
        configure(server)
        conversation = await begin(served, OPENAI_CHAT)
        heard = await (await client()).ask(conversation)
    assert (heard[-1]["type"], heard[-1]["code"]) == ("error", code)
    shown = await served.workbench.call("list_turns", conversation_id=conversation)
    events = await served.workbench.call("list_events", limit=1_000)
    assert KEY not in json.dumps([heard, shown, events])
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


async def test_a_cut_answer_fails_keeps_its_text_and_can_be_asked_for_again(
    client: Clients, served: Served, configure: Configure
) -> None:
    cut, whole = OPENAI_CHAT.reply(Step(["Half an "], ends=False)), OPENAI_CHAT.reply(Step(["A whole answer."]))
    async with provider(cut, whole) as server:
        configure(server)
        line, conversation = await client(), await begin(served, OPENAI_CHAT)
        heard = await line.ask(conversation)
        assert (heard[-1]["code"], text(heard)) == ("ANSWER_CUT", "Half an ")
        await line.send(type="retry", conversation_id=conversation)
        again: list[Message] = await line.until("complete", "error")
    assert text(again) == "A whole answer."
    assert "Half an" not in json.dumps(server.requests[1].body)


async def test_a_stopped_answer_closes_the_connection_to_the_provider(
    client: Clients, served: Served, configure: Configure
) -> None:
    async with provider(ANTHROPIC.reply(Step(["One "], ends=False), hangs=True)) as server:
        configure(server)
        line, conversation = await client(), await begin(served, ANTHROPIC)
        await line.send(type="message", conversation_id=conversation, content="Hello")
        await line.until("token")
        await line.send(type="stop", conversation_id=conversation)
        assert (await line.until("complete"))[-1]["state"] == "stopped"
        await server.left.wait()
