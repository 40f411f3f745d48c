"""What programs of agents tell of themselves by OTLP is in the ledger and the transcript, once, and nobody else's."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests import given
from tests.conftest import Admit, Served, limited
from workbench.rules.models.upstream import ProviderKey
from workbench.rules.telemetry import received
from workbench.rules.telemetry.received import Signal, Told

pytestmark = [pytest.mark.anyio, pytest.mark.long]

SAID = Path(__file__).with_name("said")
"""What Claude Code 2.1.330, Codex 0.169 and Gemini CLI 0.61 send, with numbers that differ."""
BOOKED = {
    "claude": ("anthropic", 1_000, 500, 100, 200, None, 0.25),
    "codex": ("openai", 1_000, 500, 100, 200, 9, None),
    "gemini": ("gemini", 1_000, 500, None, 147, 35, None),
}
"""Of each of two requests: the provider, the tokens by class, and the cost if it is told."""
DONE = "All is done."
JSON = {"content-type": "application/json"}


def said(program: str) -> dict[str, Any]:
    """What a program sends of a run with two requests and a command."""
    document: dict[str, Any] = json.loads((SAID / f"{program}.json").read_text("utf-8"))
    return document


async def begun(served: Served, admit: Admit, *providers: str, name: str = "ada") -> tuple[int, httpx2.AsyncClient]:
    """An attempt under way, whose requests to some providers the gateway passes on, and the client of its command."""
    workbench = served.workbench
    agent = await admit(name)
    task_id = await given.task(workbench)
    claim = await given.claim(workbench, agent, task_id)
    keys = {one: ProviderKey(one, "http://127.0.0.1:1", "x-api-key", "the test", "k" * 40) for one in providers}
    workbench.gateway.keys[agent.caller.agent] = keys
    workbench.gateway.reading[agent.caller.agent] = asyncio.Lock()
    about = {"attempt": claim["attempt"], "key": "k" * 32, "with_token": True, "with_models": True}
    answer = await given.done_by(workbench, agent, "begin_attempt", task_id, **about)
    return task_id, client(served, answer["token"])


def client(served: Served, token: str | None) -> httpx2.AsyncClient:
    """A client with a token."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(base_url=served.info.url, headers=headers, trust_env=False, verify=False)


async def costs(served: Served, by: str = "attempt") -> list[dict[str, Any]]:
    """What the ledger has."""
    return list((await served.workbench.call("list_costs", by=by))["costs"])


async def texts(served: Served, task_id: int) -> list[tuple[str, str]]:
    """The transcript of a task: who said what."""
    messages = (await served.workbench.call("get_transcript", task_id=task_id))["messages"]
    return [(message["role"], json.dumps(message["parts"])) for message in messages]


def amounts(cost: Mapping[str, Any], requests: int) -> tuple[Any, ...]:
    """The sums of requests, for each."""
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    return (cost["provider"], *(cost[name] and cost[name] // requests for name in names))


@pytest.mark.parametrize("program", ["claude", "codex", "gemini"])
async def test_what_a_program_tells_is_in_ledger_and_transcript_once(
    served: Served, admit: Admit, program: str
) -> None:
    task_id, command = await begun(served, admit)
    async with command:
        for _ in range(2):  # it has not heard the first answer, and sends it again
            answer = await command.post("/v1/logs", json=said(program))
            assert (answer.status_code, answer.json()) == (200, {})
    (cost,) = await costs(served)
    provider, read, cached, written, out, reasoning, dollars = BOOKED[program]
    assert (cost["name"], cost["requests"]) == (f"{task_id}.1", 2)
    assert amounts(cost, 2) == (provider, read, cached, written or 0, out, reasoning)
    if dollars is not None:
        assert cost["cost_usd"] == 2 * dollars
    transcript = await texts(served, task_id)
    assert transcript[0][0] == "user"
    assert [("echo hi" in text, DONE in text) for _, text in transcript].count((True, False)) == 1
    assert [DONE in text for _, text in transcript].count(True) == (0 if program == "codex" else 1)
    assert len(set(transcript)) == len(transcript)


async def test_where_the_gateway_measures_a_program_adds_nothing(served: Served, admit: Admit) -> None:
    task_id, command = await begun(served, admit, "anthropic")
    async with command:
        for program in ("claude", "gemini"):
            assert (await command.post("/v1/logs", json=said(program))).status_code == 200
    assert [cost["name"] for cost in await costs(served, "provider")] == ["gemini"]
    assert not [text for _, text in await texts(served, task_id) if "toolu_0" in text]


async def test_protobuf_and_gzip_say_the_same(served: Served, admit: Admit) -> None:
    document = said("claude")
    content = ParseDict(document, ExportLogsServiceRequest()).SerializeToString()
    for number, (raw, more) in enumerate([(content, {}), (gzip.compress(content), {"content-encoding": "GZip"})]):
        task_id, command = await begun(served, admit, name=f"ada-{number}")
        async with command:
            headers = {"content-type": "application/x-protobuf", **more}
            answer = await command.post("/v1/logs", content=raw, headers=headers)
            assert (answer.status_code, answer.content) == (200, b"")
        found = {cost["name"]: amounts(cost, 2) for cost in await costs(served)}
        assert found[f"{task_id}.1"] == ("anthropic", 1_000, 500, 100, 200, None)


async def test_an_agents_own_program_tells_of_its_requests_by_spans(served: Served, admit: Admit) -> None:
    bob = await admit("bob")
    about = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-9"}
    usage = {"gen_ai.usage.input_tokens": 1_500, "gen_ai.usage.cache_read.input_tokens": 500}
    usage["gen_ai.usage.output_tokens"] = 7
    attributes = [{"key": name, "value": {"stringValue": value}} for name, value in about.items()]
    attributes += [{"key": name, "value": {"intValue": str(value)}} for name, value in usage.items()]
    lie = [{"key": "workbench.agent", "value": {"stringValue": "ada"}}]
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "chat", "attributes": attributes}
    spans = {"resourceSpans": [{"resource": {"attributes": lie}, "scopeSpans": [{"spans": [span]}]}]}
    async with client(served, bob.token) as program:
        for path in ("/v1/traces", "/v1/traces", "/v1/metrics"):
            assert (await program.post(path, json=spans)).status_code == 200
    (cost,) = await costs(served, "agent")
    assert (cost["name"], cost["requests"], *amounts(cost, 1)[:3]) == ("bob", 1, "gemini", 1_000, 500)


@limited(max_telemetry_bytes=20_000)
async def test_what_is_no_otlp_of_an_agent_is_refused(served: Served, admit: Admit) -> None:
    bob = await admit("bob")
    async with client(served, None) as stranger, client(served, bob.token) as program:
        assert (await stranger.post("/v1/logs", json={})).json()["error"]["code"] == "TOKEN_REQUIRED"
        zipped = {"content-encoding": "gzip"}
        json_form, proto = {"content-type": "application/json"}, {"content-type": "application/x-protobuf"}
        sent: list[tuple[bytes, dict[str, str], str]] = [
            (b"{" * 5_000, json_form, "BAD_MESSAGE"),
            (b"[" * 19_000, json_form, "BAD_MESSAGE"),
            (b'{"resourceLogs": [{"scopeLogs": [7]}]}', json_form, "BAD_MESSAGE"),
            (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": 5}]}]}]}', json_form, "BAD_MESSAGE"),
            (b"\xff\xff", proto, "BAD_MESSAGE"),
            (b"hello", {"content-type": "text/plain"}, "BAD_MESSAGE"),
            (b"hello", json_form | zipped, "BAD_MESSAGE"),
            (b" " * 20_001, json_form, "TOO_LARGE"),
            (gzip.compress(b" " * 50_000_000), json_form | zipped, "TOO_LARGE"),
            (gzip.compress(b'{"resourceLogs": []}')[:-9], json_form | zipped, "BAD_MESSAGE"),
            (gzip.compress(b"", mtime=0)[:-8], proto | zipped, "BAD_MESSAGE"),
        ]
        for content, headers, code in sent:
            answer = await program.post("/v1/logs", content=content, headers=headers)
            assert answer.json()["error"]["code"] == code, content[:20]
    assert await costs(served) == []


async def test_one_request_is_read_at_a_time(served: Served, admit: Admit, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, most, read = 0, 0, received.read

    def counted(signal: Signal, document: Any) -> list[Told]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        told = read(signal, document)
        reading -= 1
        return told

    monkeypatch.setattr(received, "read", counted)
    agents = [await admit(f"bob-{number}") for number in range(3)]
    records = [an_event(number) for number in range(500)]
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    async with AsyncExitStack() as stack:
        programs = [await stack.enter_async_context(client(served, agent.token)) for agent in agents]
        answers = await asyncio.gather(*(program.post("/v1/logs", json=document) for program in programs))
    assert [answer.status_code for answer in answers] == [200] * 3
    assert most == 1
    assert [cost["requests"] for cost in await costs(served, "agent")] == [500] * 3


def an_event(number: int = 0, **more: Any) -> dict[str, Any]:
    """A request of Claude Code, as it tells of it."""
    values = {"event.name": "api_request", "event.sequence": str(number), "input_tokens": "5", **more}
    return {"attributes": [{"key": name, "value": {"stringValue": value}} for name, value in values.items()]}


async def test_strange_values_are_taken_as_far_as_they_make_sense(served: Served, admit: Admit) -> None:
    strange = {"model": "\ud800 a\0b", "duration_ms": "9" * 400, "cost_usd": "nan", "output_tokens": "-3"}
    span = {"startTimeUnixNano": "1", "endTimeUnixNano": "9" * 300, "attributes": an_event()["attributes"]}
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    records = [an_event(1, **strange), an_event(2, **{"session.id": "\ud800"}), {"attributes": []}]
    task_id, command = await begun(served, admit)
    async with command:
        for path, document in (
            ("/v1/logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}),
            ("/v1/traces", spans),
        ):
            assert (await command.post(path, content=json.dumps(document), headers=JSON)).status_code == 200
        many = {"resourceLogs": [{"scopeLogs": [{"logRecords": [an_event(n) for n in range(2_001)]}]}]}
        answer = await command.post("/v1/logs", json=many)
        assert answer.json()["error"]["code"] == "TOO_LARGE"
    (cost,) = await costs(served)
    assert (cost["name"], cost["requests"], cost["input_tokens"], cost["output_tokens"]) == (
        f"{task_id}.1",
        2,
        10,
        None,
    )


async def test_a_command_tells_no_longer_than_its_attempt_lasts(served: Served, admit: Admit) -> None:
    task_id, command = await begun(served, admit)
    await served.workbench.call("cancel_task", task_id=task_id)
    async with command:
        answer = await command.post("/v1/logs", json=said("claude"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_TOKEN")
    assert await costs(served) == []
