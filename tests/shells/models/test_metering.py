"""What requests to models use and cost is booked once, as the providers report it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served
from tests.shells.models.conftest import Box, key_at
from tests.shells.models.upstream import Asked, Script, Upstream, head, says, streams, upstream
from workbench.analytics.live import Live, refresh
from workbench.services.models import transcripts
from workbench.services.spending import ledger
from workbench.shells.models.metering import Meter
from workbench.state import user_files

pytestmark = pytest.mark.anyio

COLUMNS = "input_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens, output_tokens, reasoning_tokens"
Counts = dict[str, int]


@pytest.fixture(autouse=True)
def _own_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))


def counts(number: int) -> Counts:
    """The tokens of a request, none of them as many as another's."""
    return {
        "new": 1000 + number,
        "cached": 500 + number,
        "w5": 70 + number,
        "w1h": 30 + number,
        "out": 200 + number,
        "thought": 9,
    }


def anthropic(c: Counts, *, stream: bool) -> Script:
    before = {
        "input_tokens": c["new"],
        "cache_read_input_tokens": c["cached"],
        "cache_creation_input_tokens": c["w5"] + c["w1h"],
        "cache_creation": {"ephemeral_5m_input_tokens": c["w5"], "ephemeral_1h_input_tokens": c["w1h"]},
        "output_tokens": 1,
    }
    if not stream:
        return says({"type": "message", "model": "claude-haiku-4-5-x", "usage": before | {"output_tokens": c["out"]}})
    return streams(
        {"type": "message_start", "message": {"model": "claude-haiku-4-5-x", "usage": before}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "message_delta", "usage": {"output_tokens": c["out"]}},
        {"type": "message_stop"},
    )


def responses(c: Counts, *, stream: bool) -> Script:
    written = {"cache_write_tokens": c["w5"] + c["w1h"], "cache_write_tokens_details": {"ttl_12h_tokens": c["w1h"]}}
    usage = {
        "input_tokens": c["new"] + c["cached"] + c["w5"] + c["w1h"],
        "input_tokens_details": {"cached_tokens": c["cached"], **written},
        "output_tokens": c["out"],
        "output_tokens_details": {"reasoning_tokens": c["thought"]},
    }
    body = {"object": "response", "model": "gpt-5", "usage": usage}
    if not stream:
        return says(body)
    begun = {"type": "response.created", "response": body | {"usage": None}}
    said = {"type": "response.output_text.delta", "delta": "x"}
    return streams(begun, said, {"type": "response.completed", "response": body})


def completions(c: Counts, *, stream: bool) -> Script:
    usage = {
        "prompt_tokens": c["new"] + c["cached"],
        "prompt_tokens_details": {"cached_tokens": c["cached"]},
        "completion_tokens": c["out"],
        "completion_tokens_details": {"reasoning_tokens": c["thought"]},
    }
    if not stream:
        return says({"model": "gpt-5", "usage": usage})

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        has_usage = asked.said["stream_options"]["include_usage"]
        last = [{"model": "gpt-5", "choices": [], "usage": usage}] if has_usage else []
        await streams({"model": "gpt-5", "choices": [{"delta": {"content": "x"}}]}, *last, "[DONE]")(asked, writer)

    return answer


def gemini(c: Counts, *, stream: bool) -> Script:
    usage = {
        "promptTokenCount": c["new"] + c["cached"],
        "cachedContentTokenCount": c["cached"],
        "candidatesTokenCount": c["out"] - c["thought"],
        "thoughtsTokenCount": c["thought"],
    }
    whole = {"modelVersion": "g-1", "usageMetadata": usage, "candidates": [{"finishReason": "STOP"}]}
    if not stream:
        return says(whole)
    first = {"modelVersion": "g-1", "usageMetadata": usage | {"candidatesTokenCount": 1}, "candidates": [{}]}
    return streams(first, whole)


APIS = {
    "anthropic": ("anthropic", "/anthropic/v1/messages", anthropic),
    "responses": ("openai", "/openai/v1/responses", responses),
    "completions": ("openai", "/openai/v1/chat/completions", completions),
    "gemini": ("gemini", "/gemini/v1beta/models/g-1:", gemini),
}


async def sums(served: Served, what: str = COLUMNS) -> list[Any]:
    """Sums over all that is booked, in SQL, and the number of its rows."""
    shown = ", ".join(f"sum({name})" for name in what.split(", "))
    (found,) = await given.rows(served.workbench, f"SELECT {shown}, count(*) FROM spending")
    return list(found)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("requests", [10, pytest.param(200, marks=pytest.mark.long)])
async def test_the_sums_are_those_of_the_provider_in_every_form(
    served: Served, box: Box, api: str, requests: int
) -> None:
    provider, path, scripted = APIS[api]
    expected = {name: sum(counts(n)[name] for n in range(requests)) for name in counts(0)}
    async with upstream(says({})) as model:
        client = await box(key_at(model, provider))
        for number in range(requests):
            is_stream = number % 2 == 0
            model.script = scripted(counts(number), stream=is_stream)
            method = ("streamGenerateContent?alt=sse" if is_stream else "generateContent") if api == "gemini" else ""
            answer = await client.post(path + method, json={"model": "m", "stream": is_stream})
            assert answer.status_code == 200, answer.text
    written = [expected["w5"], expected["w1h"]] if api in ("anthropic", "responses") else [None, None]
    thought = None if api == "anthropic" else 9 * requests
    booked = await sums(served, COLUMNS + ", is_cut, is_estimated")
    assert booked == [expected["new"], expected["cached"], *written, expected["out"], thought, 0, 0, requests]


async def test_a_request_is_booked_with_its_task_and_costs_what_the_prices_of_the_day_say(
    served: Served, box: Box
) -> None:
    async with upstream(anthropic(counts(0), stream=True)) as model:
        client = await box(key_at(model))
        await client.post("/anthropic/v1/messages", json={"model": "claude"})
        model.script = responses(counts(0), stream=False)
        other = await box(key_at(model, "openai"))
        model.script = says({"model": "unknown-1", "usage": {"input_tokens": 5, "output_tokens": 5}})
        await other.post("/openai/v1/responses", json={})
    agent, task_id, attempt = client.task  # type: ignore[attr-defined]
    cost = (1000 * 1 + 500 * 0.1 + 70 * 1.25 + 30 * 2 + 200 * 5) / 1e6
    by_agent = {row["name"]: row for row in (await served.workbench.call("list_costs"))["costs"]}
    by_model = {row["name"]: row for row in (await served.workbench.call("list_costs", by="model"))["costs"]}
    assert by_agent[agent.agent_id]["cost_usd"] == pytest.approx(cost)
    assert (by_model["unknown-1"]["cost_usd"], by_model["unknown-1"]["unpriced"]) == (None, 1)
    (of_task,) = (await served.workbench.call("list_costs", by="attempt", task_id=task_id))["costs"]
    assert (of_task["name"], of_task["provider"], of_task["requests"]) == (f"{task_id}.{attempt}", "anthropic", 1)
    of_agent = (await served.workbench.call("list_costs", by="provider", agent_id=agent.agent_id))["costs"]
    assert [row["name"] for row in of_agent] == ["anthropic"]
    assert (await served.workbench.call("list_costs", plan="none"))["costs"] == []
    live, query = Live(), "SELECT task_id, attempt, agent, provider, cut FROM spending ORDER BY id"
    rows = live.answer(await refresh(live, served.workbench.store), query).fetchall()
    assert rows[0] == (task_id, attempt, agent.agent_id, "anthropic", False)


async def test_an_answer_that_is_cut_is_booked_once_with_an_estimate(served: Served, box: Box) -> None:
    async def cut(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head("text/event-stream"))
        writer.write(b'data: {"type": "response.output_text.delta", "delta": "' + b"x" * 400 + b'"}\n\n')

    async with upstream(cut) as model:
        client = await box(key_at(model, "openai"))
        await client.post("/openai/v1/responses", content=b'{"model": "gpt-5", "input": "' + b"y" * 4000 + b'"}')
        model.script = says({"error": {"message": "slow down"}}, "429 Too Many Requests")
        await client.post("/openai/v1/responses", json={})
    booked = await sums(served, "input_tokens, output_tokens, is_cut, is_estimated")
    assert booked == [pytest.approx(1000, abs=10), 100, 1, 1, 2]


async def test_a_program_that_leaves_when_it_is_told_that_this_is_all_has_cut_nothing(served: Served, box: Box) -> None:
    async def stays(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await anthropic(counts(0), stream=True)(asked, writer)
        await asyncio.Event().wait()

    async with upstream(stays) as model:
        client = await box(key_at(model))
        async with client.stream("POST", "/anthropic/v1/messages", json={"stream": True}) as answer:
            async for line in answer.aiter_lines():
                if "message_stop" in line and line.startswith("data"):
                    break
        await given.until(lambda: given.rows(served.workbench, "SELECT id FROM spending"))
    booked = await given.rows(served.workbench, "SELECT output_tokens, is_cut, is_estimated, error_code FROM spending")
    assert booked == [(200, 0, 0, None)]


async def test_the_last_answer_is_recorded_although_its_program_leaves_while_it_is_booked(
    served: Served, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, end, has_left, ends = served.workbench.book, Meter.ended, asyncio.Event(), []
    is_recorded = asyncio.Event()

    async def slowly(*about: Any) -> None:
        await has_left.wait()
        await book(*about)

    async def record(*about: Any) -> None:
        is_recorded.set()

    async def ended(meter: Meter, *, is_complete: bool) -> None:
        ends.append(is_complete)
        await end(meter, is_complete=is_complete)

    monkeypatch.setattr(served.workbench, "book", slowly)
    monkeypatch.setattr(served.workbench, "transcribe", record)
    monkeypatch.setattr(Meter, "ended", ended)
    async with upstream(anthropic(counts(0), stream=True)) as model:
        client = await box(key_at(model))
        asked = {"stream": True, "messages": [{"role": "user", "content": "Go on"}]}
        async with client.stream("POST", "/anthropic/v1/messages", json=asked) as answer:
            async for line in answer.aiter_lines():
                if "message_stop" in line and line.startswith("data"):
                    break
        await given.until(lambda: ends == [True, False])
        has_left.set()
        async with asyncio.timeout(given.SECONDS):
            await is_recorded.wait()


async def test_a_wrong_line_of_the_persons_prices_is_named_and_costs_are_unknown(served: Served, box: Box) -> None:
    user_files.directory().mkdir(parents=True, exist_ok=True)
    table = user_files.directory() / "prices.yaml"
    table.write_text(
        "prices:\n  - {model: claude-haiku-4-5-x, input: 1, output: 2}\n  - {model: x, input: -3, output: 1}\n"
    )
    async with upstream(anthropic(counts(0), stream=False)) as model:
        client = await box(key_at(model))
        await client.post("/anthropic/v1/messages", json={})
        error = await given.refuses("PRICES_INVALID", served.workbench.call("list_costs"))
        whole = "{model: claude-haiku-*, input: 1, cached: 0, cache_write: 0, cache_write_hour: 0, output: 2}"
        table.write_text(f"prices:\n  - {whole}\n")
        await client.post("/anthropic/v1/messages", json={})
    assert "line 3: input" in error.message
    assert await sums(served, "cost_usd") == [pytest.approx((1000 + 2 * 200) / 1e6), 2]


async def test_an_agent_reports_what_it_used_itself(served: Served, box: Box) -> None:
    client = await box(key_at(Upstream(says({}))))
    agent, task_id, _ = client.task  # type: ignore[attr-defined]
    used = {"model": "gpt-5", "provider": "openai", "input_tokens": 1_000_000, "output_tokens": 0, "attempt": 1}
    await given.done_by(served.workbench, agent, "report_usage", task_id, **used)
    (row,) = (await served.workbench.call("list_costs", by="task"))["costs"]
    assert (row["name"], row["cost_usd"]) == (str(task_id), 1.25)


async def test_an_agent_reports_nothing_about_the_work_of_another(served: Served, box: Box, admit: Admit) -> None:
    client = await box(key_at(Upstream(says({}))))
    _, task_id, _ = client.task  # type: ignore[attr-defined]
    eve = await admit("eve")
    report = served.workbench.dispatch(eve.caller, "report_usage", {"model": "gpt-5", "task_id": task_id})
    assert "no such attempt" in (await given.refuses("FORBIDDEN", report)).message
    assert (await served.workbench.call("list_costs"))["costs"] == []


async def test_an_answer_is_whole_although_nothing_of_it_can_be_recorded(
    served: Served, box: Box, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: Any) -> None:
        raise ValueError("no place")

    monkeypatch.setattr(ledger, "book", fails)
    monkeypatch.setattr(transcripts, "record", fails)
    async with upstream(anthropic(counts(0), stream=True)) as model:
        answer = await (await box(key_at(model))).post("/anthropic/v1/messages", json={})
    assert answer.text.endswith("\n\n")
    assert [message for message in caplog.messages if "could not be recorded" in message] == [
        "a request to anthropic could not be recorded",
        "a transcript could not be recorded",
    ]


async def test_a_request_belongs_to_the_run_that_goes_on_in_its_session(served: Served, box: Box, admit: Admit) -> None:
    workbench = served.workbench

    async def begin(**more: Any) -> int:
        return int((await workbench.call("start_run", name="trial", **more))["id"])

    async with upstream(anthropic(counts(0), stream=False)) as model:
        client = await box(key_at(model))
        agent = client.task[0]  # type: ignore[attr-defined]
        await given.project(workbench)
        session = (await given.session(workbench, "Day one"))["id"]
        await workbench.call("assign_agents", agent_ids=[agent.agent_id], changes={"session_id": session})
        await begin()  # of no session
        outer = await begin(session_id=session)
        await client.post("/anthropic/v1/messages", json={})
        inner = await begin(session_id=session, parent_id=outer)
        await client.post("/anthropic/v1/messages", json={})
        other = await begin(session_id=session)
        await client.post("/anthropic/v1/messages", json={})
        await workbench.call("end_run", run_id=other)
        await workbench.call("end_run", run_id=inner)
        await client.post("/anthropic/v1/messages", json={})
        await workbench.call("end_run", run_id=outer)
        await client.post("/anthropic/v1/messages", json={})
        report = given.done_by(workbench, agent, "report_usage", client.task[1], model="m", run_id=999)  # type: ignore[attr-defined]
        await given.refuses("RUN_NOT_FOUND", report)
    booked = await given.rows(workbench, "SELECT run_id, session_id FROM spending ORDER BY id")
    assert booked == [(run, session) for run in (outer, inner, None, outer, None)]
    costs = (await workbench.call("list_costs", by="run"))["costs"]
    assert [(cost["name"], cost["requests"]) for cost in costs] == [(None, 2), (str(outer), 2), (str(inner), 1)]


async def test_an_answer_without_usage_has_no_known_tokens_and_no_known_cost(served: Served, box: Box) -> None:
    async with upstream(says({"type": "message", "model": "claude-haiku-4-5-x"})) as model:
        await (await box(key_at(model))).post("/anthropic/v1/messages", json={})
    assert await sums(served, "input_tokens, output_tokens, cost_usd, is_cut") == [None, None, None, 0, 1]
