"""Interrupted answers: their text is kept, the model knows of it, and they can be retried."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.services.conversations.conftest import Chat, define
from workbench.app import Workbench
from workbench.errors import Conflict
from workbench.services.conversations import ending
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

Begin = Callable[..., Any]
SLOW = {"say": "one two three four", "pause": 20}


async def state(workbench: Workbench, turn_id: str) -> str | None:
    """The history that is kept with an answer."""
    query = Query("history", "SELECT history FROM turns WHERE id = :id")
    [row] = await workbench.store.read(lambda tx: tx.all(query, {"id": turn_id}))
    history: str | None = row["history"]
    return history


async def test_an_answer_whose_server_stops_is_interrupted_and_can_be_retried(settings: Settings) -> None:
    async with Workbench.open(settings) as workbench:
        async with Servers(workbench) as servers:
            await servers.start(0)
            conversation = await workbench.call("create_conversation", definition=define(settings, [SLOW]))
            chat = Chat(workbench, conversation["id"])
            await chat.send("Count")
            await chat.until("message")
        answer = (await chat.turns())[-1]
        assert (answer["state"], answer["error_code"]) == ("interrupted", "ANSWER_INTERRUPTED")
        define(settings, [{"say": "Quickly."}])
        async with Servers(workbench) as servers:
            await servers.start(0)
            await chat.ended()
            await chat.retry(turn_id=answer["id"])
            assert [turn["content"] for turn in await chat.turns()] == ["Count", "Quickly."]
            everything = await chat.turns(replaced=True)
            assert [turn["state"] for turn in everything] == ["sent", "interrupted", "completed"]
            assert everything[1]["replaced_at"]


async def test_an_answer_declared_lost_by_another_server_is_interrupted(begin: Begin, settings: Settings) -> None:
    chat = await begin([{"say": "one two", "calls": [{"tool": "create_task", "input": {}}]}], tools=["workbench"])
    await chat.send("Count")
    await chat.until("tool_waiting")
    async with Workbench.open(settings) as successor:
        await ending.recover(successor._ctx)
        answer = (await Chat(successor, chat.id).turns())[-1]
        assert (answer["state"], answer["content"]) == ("interrupted", "one two")
        assert (answer["requests"], answer["unmeasured"]) == (1, 1)
        assert [part["type"] for part in answer["parts"]] == ["text", "tool"]
        assert answer["parts"][1]["state"] == "cancelled"
        assert (await chat.ended())[-1]["data"]["code"] == "ANSWER_INTERRUPTED"
    await chat.call("stop_answer")
    assert (await chat.turns())[-1]["state"] == "interrupted"


async def test_the_history_keeps_the_calls_of_a_stopped_answer(begin: Begin, settings: Settings) -> None:
    chat = await begin([{"calls": [{"tool": "list_tasks"}]}, SLOW], tools=["workbench"])
    await chat.send("Count")
    await chat.until("tool_complete")
    await chat.call("stop_answer")
    await chat.ended()
    define(settings, [{"say": "Going on."}])
    history = await state(chat.workbench, (await chat.ask("Go on"))["id"]) or ""
    assert [said in history for said in ("list_tasks", "Count", "Go on")] == [True, True, True]


async def test_a_history_of_another_version_of_the_engine_is_rebuilt(begin: Begin) -> None:
    chat = await begin([{"say": "First."}, {"say": "Second."}])
    await chat.ask("One")
    old = json.dumps({"version": "another", "messages": [1]})
    await chat.workbench.store.write(lambda tx: tx.run(Query("age", "UPDATE turns SET history = :old"), old=old))
    answer = await chat.ask("Two")
    assert (answer["state"], answer["content"]) == ("completed", "Second.")


async def test_only_the_last_answer_can_be_retried_and_only_its_history_is_kept(
    begin: Begin,
) -> None:
    chat = await begin([{"say": "First."}, {"say": "Second."}, {"say": "Third."}])
    with pytest.raises(Conflict, match="NOTHING_TO_RETRY"):
        await chat.retry()
    answers = [(await chat.ask("One"))["id"], (await chat.ask("Two"))["id"]]
    with pytest.raises(Conflict, match="NOTHING_TO_RETRY"):
        await chat.retry(turn_id=answers[0])
    answers[1] = (await chat.retry())["id"]
    assert [turn["content"] for turn in await chat.turns()] == ["One", "First.", "Two", "Second."]
    third = await chat.ask("Three")
    assert third["content"] == "Third."
    kept = [await state(chat.workbench, answer) is not None for answer in (*answers, third["id"])]
    assert kept == [False, True, True]


async def test_an_answer_uses_the_current_definition_and_fails_while_it_is_deleted(
    begin: Begin, settings: Settings
) -> None:
    chat = await begin([{"say": "Before."}])
    first = await chat.ask("One")
    define(settings, [{"say": "Before."}, {"say": "After."}])
    second = await chat.ask("Two")
    assert (first["content"], second["content"]) == ("Before.", "After.")
    assert first["definition_hash"] != second["definition_hash"]
    assert (first["prompt_hash"], first["include"]) == (second["prompt_hash"], [])
    await chat.workbench.call("agent_delete", agentTarget="Helper", confirm=True)
    answer = await chat.ask("Three")
    assert (answer["state"], answer["error_code"]) == ("failed", "AGENT_NOT_FOUND")
    define(settings, [{"say": "Back."}] * 3)
    assert (await chat.retry())["content"] == "Back."


async def test_a_provider_that_is_not_trusted_fails_the_answer_and_asks_the_operator(begin: Begin) -> None:
    chat = await begin([{"say": "Hello."}], "providers:\n  openai:\n    OPENAI_API_KEY: sk-secret-of-theirs\n")
    await chat.call("update_conversation", model="openai:gpt-5")
    await chat.send("One")
    failed = (await chat.ended())[-1]["data"]
    assert failed["code"] == "DEFINITION_NOT_TRUSTED"
    assert failed["details"]["approval_id"] is not None
    await chat.call("update_conversation", model="test:script")
    assert (await chat.retry())["state"] == "completed"


async def test_an_answer_names_the_missing_key_of_its_provider(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    chat = await begin(model="anthropic:claude-opus")
    answer = await chat.ask("One")
    assert (answer["error_code"], answer["error"]) == ("INVALID_CONFIGURATION", "Anthropic needs ANTHROPIC_API_KEY.")
