"""What an attempt and its model say is kept, each message once and without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import given
from tests.conftest import Served
from tests.shells.models.conftest import KEY, Box, key_at
from tests.shells.models.upstream import says, streams, upstream

pytestmark = pytest.mark.anyio


def anthropic(call: dict[str, Any]) -> Any:
    start = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    return streams(
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
        {"type": "content_block_start", "index": 1, "content_block": start},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": json.dumps(call)},
        },
        {"type": "message_delta", "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


async def said(served: Served, client: Any, **more: Any) -> list[tuple[str, Any]]:
    found = await served.workbench.call("get_transcript", task_id=client.task[1], **more)
    return [(message["role"], next(iter(part.items()))) for message in found["messages"] for part in message["parts"]]


async def test_each_message_is_kept_once_although_every_request_repeats_them(served: Served, box: Box) -> None:
    call, mark = {"path": f"x-{KEY}"}, {"cache_control": {"type": "ephemeral"}}
    first = {"model": "m", "system": "Be kind.", "tools": [{"name": "look"}]}
    user = {"role": "user", "content": [{"type": "text", "text": "hi", **mark}]}
    async with upstream(anthropic(call)) as model:
        client = await box(key_at(model))
        await client.post("/anthropic/v1/messages", json=first | {"messages": [user], "stream": True})
        model.script = says({"type": "message", "content": [{"type": "text", "text": "Done."}], "usage": {}})
        back = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "look", "input": call}]
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": back},
            {"role": "user", "content": [{**result, **mark}]},
        ]
        await client.post("/anthropic/v1/messages", json=first | {"messages": messages})
    assert [(role, kind) for role, (kind, _) in await said(served, client)] == [
        ("system", "text"),
        ("tools", "text"),
        ("user", "text"),
        ("assistant", "text"),
        ("assistant", "tool_call"),
        ("user", "tool_result"),
        ("assistant", "text"),
    ]
    found = await served.workbench.call("get_transcript", task_id=client.task[1])
    assert KEY not in json.dumps(found)
    assert await said(served, client, containing="DONE") == [("assistant", ("text", "Done."))]
    last = found["messages"][-1]["id"]
    before = await said(served, client, before=last, limit=2)
    assert [role for role, _ in before] == ["assistant", "user"]  # the last ones before it, in their order


async def test_a_codex_conversation_goes_on_where_the_reply_of_the_stream_ended(served: Served, box: Box) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell", "arguments": '{"a": 1}'}
    reply = {
        "type": "response.completed",
        "response": {"output": [{"type": "reasoning", "id": "r"}, item], "usage": {}},
    }
    start = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}]
    async with upstream(streams(reply)) as model:
        client = await box(key_at(model, "openai"))
        await client.post("/openai/v1/responses", json={"input": start})
        output = {"type": "function_call_output", "call_id": "c1", "output": "1"}
        again = {name: value for name, value in item.items() if name != "id"}
        await client.post("/openai/v1/responses", json={"input": [*start, again, output]})
    assert [kind for _, (kind, _) in await said(served, client)] == ["text", "tool_call", "tool_result", "tool_call"]


async def test_a_transcript_that_is_too_long_says_so_once(served: Served, box: Box, monkeypatch: Any) -> None:
    small = served.workbench.settings.model_copy(update={"max_transcript_bytes": 200})
    monkeypatch.setattr(served.workbench, "_ctx", served.workbench._ctx._replace(settings=small))
    async with upstream(says({"type": "message", "content": [], "usage": {}})) as model:
        client = await box(key_at(model))
        for size in (100, 500, 600):
            ask = {"messages": [{"role": "user", "content": "x" * size}]}
            await client.post("/anthropic/v1/messages", json=ask)
    assert [role for role, _ in await said(served, client)] == ["user", "note"]


async def test_a_text_that_is_cut_within_a_character_is_kept_and_breaks_no_answer(served: Served, box: Box) -> None:
    async with upstream(says({"type": "message", "content": [{"type": "text", "text": "Yes."}]})) as model:
        client = await box(key_at(model))
        body = rb'{"model": "m", "messages": [{"role": "us\u0000er", "content": "half \ud83d"}]}'
        answer = await client.post("/anthropic/v1/messages", content=body)
    assert answer.json()["content"] == [{"type": "text", "text": "Yes."}]
    assert await said(served, client) == [("us?er", ("text", "half ?")), ("assistant", ("text", "Yes."))]


async def test_a_transcript_is_searched_for_any_text(served: Served, box: Box) -> None:
    async with upstream(says({"type": "message", "content": [{"type": "text", "text": 'Größer: "b"\n'}]})) as model:
        client = await box(key_at(model))
        await client.post("/anthropic/v1/messages", json={"messages": [{"role": "user", "content": "a"}]})
    for text in ("größer", '"B"\n'):
        assert [role for role, _ in await said(served, client, containing=text)] == ["assistant"]


async def test_pages_of_a_transcript_are_those_of_one_attempt_although_another_begins_between_them(
    served: Served, box: Box
) -> None:
    async with upstream(says({"type": "message", "content": []})) as model:
        client = await box(key_at(model))
        for text in ("one", "two"):
            await client.post("/anthropic/v1/messages", json={"messages": [{"role": "user", "content": text}]})
        agent, task_id, attempt = client.task  # type: ignore[attr-defined]
        page = await served.workbench.call("get_transcript", task_id=task_id, limit=1)
        ending = {"attempt": attempt, "key": "k" * 32, "outcome": "released"}
        await given.done_by(served.workbench, agent, "finish_attempt", task_id, **ending)
        claim = await given.claim(served.workbench, agent, task_id)
        about = {"attempt": claim["attempt"], "key": "l" * 32, "with_models": True}
        begun = await given.done_by(served.workbench, agent, "begin_attempt", task_id, **about)
        ask = {"messages": [{"role": "user", "content": "three"}]}
        await client.post("/anthropic/v1/messages", json=ask, headers={"x-api-key": begun["model_token"]})
    assert await said(served, client) == [("user", ("text", "three"))]
    assert await said(served, client, after=page["next_after"]) == [("user", ("text", "two"))]
