"""What a program asks a model by the gateway, tells of itself, or both, is one row, and one span at the collector."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import given
from tests.conftest import Admit, Served, limited
from tests.services.telemetry.collector import Collector, Told, collecting
from tests.services.telemetry.test_export import tell
from tests.services.telemetry.test_receiving import client, said
from tests.shells.models.conftest import key_at
from tests.shells.models.test_metering import anthropic, counts, gemini, responses
from tests.shells.models.upstream import Script, upstream
from workbench.services.telemetry import export

pytestmark = [pytest.mark.anyio, pytest.mark.long, limited(telemetry_seconds=3_600)]
"""The collector is told when the test says so only."""

PROMPT, SECRET = "Do the thing please", "sk-ant-api03-" + "a1B2c3D4" * 8
COUNTS = counts(0)
SUMS = """SELECT count(*) AS requests, min(source) AS source, sum(input_tokens + COALESCE(cached_tokens, 0)
    + COALESCE(cache_write_tokens, 0) + COALESCE(cache_write_hour_tokens, 0)) AS read, sum(output_tokens) AS written,
    sum(cost_usd) AS cost FROM spending WHERE task_id = {} AND attempt = 1"""


class Api(NamedTuple):
    """How a program asks a model, and what a scripted one answers."""

    provider: str
    path: str
    question: Any
    answer: Callable[..., Script]


APIS = {
    "claude": Api(
        "anthropic", "/anthropic/v1/messages", {"messages": [{"role": "user", "content": PROMPT}]}, anthropic
    ),
    "codex": Api("openai", "/openai/v1/responses", {"input": PROMPT}, responses),
    "gemini": Api(
        "gemini",
        "/gemini/v1beta/models/g-1:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]},
        gemini,
    ),
}


async def worked_with(served: Served, admit: Admit, program: str, *, gateway: bool, tells: bool) -> int:
    """A task that a program has done, with two requests that it told of or the gateway passed on, and a command."""
    workbench, agent, api = served.workbench, await admit("ada"), APIS[program]
    task_id = await given.task(workbench)
    claim = await given.claim(workbench, agent, task_id)
    async with upstream(api.answer(COUNTS, stream=True)) as model:
        keys = {api.provider: key_at(model, api.provider)} if gateway else {}
        workbench.gateway.keys[agent.caller.agent] = keys
        workbench.gateway.reading[agent.caller.agent] = asyncio.Lock()
        about = {"attempt": claim["attempt"], "key": "k" * 32}
        begun = await given.done_by(
            workbench, agent, "begin_attempt", task_id, **about, with_token=True, with_models=True
        )
        async with client(served, begun["token"]) as command, client(served, begun["model_token"]) as asking:
            for _ in range(2 * gateway):
                body = {"model": "m", "stream": True, **api.question}
                assert (await asking.post(f"/models{api.path}", json=body)).status_code == 200
            for _ in range(2 * tells):
                assert (await command.post("/v1/logs", json=said(program))).status_code == 200
    call = str(uuid.uuid4())
    started = {"call_id": call, "tool": "shell", "server": None, "arguments": {"command": f"echo {SECRET}"}}
    ended = {"call_id": call, "result": SECRET, "state": "completed"}
    calls = {"program": program, "runner": "1:1", "started": [started], "ended": [ended]}
    await given.done_by(workbench, agent, "report_attempt_calls", task_id, **about, **calls)
    await given.done_by(workbench, agent, "finish_attempt", task_id, **about, outcome="completed")
    return task_id


def tree(collector: Collector, task_id: int) -> tuple[Told, Told, list[Told], Told]:
    """The spans of a task: itself, its attempt, the requests of that, and the call after these."""
    requests = [span for span in collector.spans if span.attributes["gen_ai.operation.name"] == "chat"]
    task, attempt, call = (
        collector.one(name) for name in (f"task {task_id}", "invoke_agent ada", "execute_tool shell")
    )
    assert len({span.id for span in collector.spans}) == len(collector.spans) == len(requests) + 3
    assert {span.trace for span in collector.spans} == {task.trace}
    assert attempt.parent == task.id
    assert {span.parent for span in requests} == {attempt.id}
    assert call.parent in {span.id for span in requests}
    return task, attempt, requests, call


@pytest.mark.parametrize(("gateway", "tells"), [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("program", APIS)
async def test_the_collector_has_the_tree_of_a_task_with_what_sql_says_and_nothing_counts_twice(
    served: Served,
    admit: Admit,
    program: str,
    gateway: bool,
    tells: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("WORKBENCH_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(export, "METRIC_SECONDS", 0)
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        await tell(served.workbench)
        task_id = await worked_with(served, admit, program, gateway=gateway, tells=tells)
        await tell(served.workbench)
        ((requests, source, read, written, cost),) = await given.rows(served.workbench, SUMS.format(task_id))
        transcript = (await served.workbench.call("get_transcript", task_id=task_id))["messages"]
    _, attempt, chats, _ = tree(collector, task_id)
    assert (requests, source, len(chats)) == (2, "gateway" if gateway else "reported", 2)
    for name, booked in {
        "gen_ai.usage.input_tokens": read,
        "gen_ai.usage.output_tokens": written,
        "workbench.cost.usd": cost,
    }.items():
        told = [span.attributes[name] for span in chats if name in span.attributes]
        assert (sum(told) if told else None) == attempt.attributes.get(name) == booked, name
    tokens = {
        point.attributes[-1].value.string_value: point for point in collector.metrics[-1]["gen_ai.client.token.usage"]
    }
    assert {kind: (point.count, point.sum) for kind, point in tokens.items()} == {
        "input": (2, read),
        "output": (2, written),
    }
    texts = [json.dumps(message["parts"]) for message in transcript]
    assert len([text for text in texts if PROMPT in text]) == 1
    assert SECRET.encode() not in collector.raw


async def test_secrets_that_a_program_tells_are_kept_nowhere(served: Served, admit: Admit) -> None:
    """Of what it told, the masked text is in the transcript, and the ledger has no name with a secret."""
    document = json.dumps(said("claude")).replace("echo hi", f"echo {SECRET}").replace(PROMPT, f"Use {SECRET}")
    document = document.replace("claude-opus-5-5", SECRET)
    agent = await admit("ada")
    task_id = await given.task(served.workbench)
    claim = await given.claim(served.workbench, agent, task_id)
    about = {"attempt": claim["attempt"], "key": "k" * 32, "with_token": True}
    begun = await given.done_by(served.workbench, agent, "begin_attempt", task_id, **about)
    async with client(served, begun["token"]) as command:
        answer = await command.post("/v1/logs", content=document, headers={"content-type": "application/json"})
    kept = [
        str(row)
        for table in ("transcript", "spending", "events")
        for row in await given.rows(served.workbench, f"SELECT * FROM {table}")
    ]
    assert answer.status_code == 200
    assert [row for row in kept if "Use " in row]
    assert not [row for row in kept if SECRET in row]
