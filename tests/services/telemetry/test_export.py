"""A person's OpenTelemetry collector is told what happens in a project: each span once, as the SQL has it."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.schemas import Schemas

from tests import given
from tests.conftest import Admitted, Clock, admitted
from tests.services.telemetry.collector import (
    BAD,
    ELSEWHERE,
    FULL,
    OK,
    PARTLY,
    WRONG_KEY,
    Collector,
    collecting,
)
from tests.tls import tls_in_front
from workbench.app import Workbench
from workbench.rules.telemetry.spans import SCHEMA
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

DUTY = "telling the collector"
TITLE = "Weigh the penguins of Torgersen"
ARGUMENT = "the words of the tool's argument"
KEY = "sk-ant-api03-" + "a1B2c3D4" * 8


def told_at(settings: Settings, collector: Collector | str, **changes: Any) -> Settings:
    """Settings with a collector."""
    address = collector if isinstance(collector, str) else collector.address
    return Settings.model_validate({**settings.model_dump(), "telemetry_endpoint": address, **changes})


async def tell(workbench: Workbench) -> float | None:
    """Tell the collector what is new; when it is to be told again, if not as usual."""
    return await workbench.duties[DUTY].perform(workbench._ctx)


async def status(workbench: Workbench) -> dict[str, Any]:
    """What the collector has been told."""
    (only,) = (await workbench.call("get_telemetry"))["collectors"]
    return only


async def worked(workbench: Workbench, ada: Admitted, requests: int = 1) -> int:
    """A task that an agent has done, with requests to a model and a call of a tool between them."""
    task_id = await given.task(workbench, TITLE)
    claim = await given.claim(workbench, ada, task_id)
    about = {"attempt": claim["attempt"], "key": "k" * 32}
    await given.done_by(workbench, ada, "begin_attempt", task_id, **about)
    for number in range(requests):
        usage = {"input_tokens": 1_000 + number, "cached_tokens": 300, "cache_write_tokens": 20, "output_tokens": 50}
        usage |= {"model": "claude-opus-5", "provider": "anthropic", "cost_usd": 0.25, "attempt": claim["attempt"]}
        await given.done_by(workbench, ada, "report_usage", task_id, **usage)
    call = str(uuid.uuid4())
    started = {"call_id": call, "tool": "Bash", "server": None, "arguments": {"command": f"{ARGUMENT} {KEY}"}}
    ended = {"call_id": call, "result": "weighed", "state": "completed"}
    calls = {"program": "claude", "runner": "1:1", "started": [started], "ended": [ended]}
    await given.done_by(workbench, ada, "report_attempt_calls", task_id, **about, **calls)
    await given.done_by(workbench, ada, "finish_attempt", task_id, **about, outcome="completed")
    return task_id


async def test_the_tree_of_a_task_has_the_tokens_and_the_cost_of_the_ledger(settings: Settings, clock: Clock) -> None:
    async with collecting() as collector, Workbench.open(told_at(settings, collector), clock=clock) as workbench:
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        task_id = await worked(workbench, ada, requests=2)
        clock.forward(20)
        await tell(workbench)
        (cost,) = (await workbench.call("list_costs", by="attempt"))["costs"]
        spans = (await workbench.call("list_spans", task_id=task_id))["spans"]

    task, attempt, tool = (collector.one(name) for name in (f"task {task_id}", "invoke_agent ada", "execute_tool Bash"))
    requests = sorted(
        (span for span in collector.spans if span.name == "chat claude-opus-5"),
        key=lambda span: span.attributes["workbench.request.id"],
    )
    assert [span.parent for span in (task, attempt, tool, *requests)] == [
        *("", task.id, requests[-1].id, attempt.id, attempt.id)
    ]
    assert {span.trace for span in collector.spans} == {task.trace}
    assert {(span["trace_id"], span["span_id"]) for span in spans} == {
        (span.trace, span.id) for span in collector.spans
    }
    assert attempt.attributes["gen_ai.usage.input_tokens"] == (
        cost["input_tokens"] + cost["cached_tokens"] + cost["cache_write_tokens"]
    )
    for told, booked in {
        "gen_ai.usage.output_tokens": "output_tokens",
        "gen_ai.usage.cache_read.input_tokens": "cached_tokens",
        "workbench.cost.usd": "cost_usd",
    }.items():
        assert sum(span.attributes[told] for span in requests) == attempt.attributes[told] == cost[booked]
    assert task.start <= attempt.start <= tool.start <= tool.end <= attempt.end <= task.end
    (tokens,) = [sent["gen_ai.client.token.usage"] for sent in collector.metrics[-1:]]
    assert {point.attributes[-1].value.string_value: (point.count, point.sum) for point in tokens} == {
        "input": (2, attempt.attributes["gen_ai.usage.input_tokens"]),
        "output": (2, cost["output_tokens"]),
    }


@pytest.mark.long
async def test_spans_are_named_by_the_conventions_of_a_pinned_version(settings: Settings) -> None:
    async with collecting() as collector, Workbench.open(told_at(settings, collector)) as workbench:
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        await worked(workbench, ada)
        await tell(workbench)
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    said = {name for span in collector.spans for name in span.attributes if name.startswith("gen_ai.")}
    operations = {span.attributes["gen_ai.operation.name"] for span in collector.spans}
    assert said - known == set()
    assert operations - {one.value for one in gen_ai_attributes.GenAiOperationNameValues} == set()
    assert {span.schema for span in collector.spans} == {SCHEMA} == {Schemas.V1_44_0.value}
    assert {span.resource["service.name"] for span in collector.spans} == {"workbench"}


@pytest.mark.long
@pytest.mark.parametrize("content", [False, True])
async def test_contents_are_told_only_if_the_person_wants_it_and_secrets_never(
    settings: Settings, content: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_TOKEN", "the-collectors-own-token")
    async with collecting() as collector:
        header = "Authorization: Bearer env://COLLECTOR_TOKEN"
        chosen = told_at(settings, collector, telemetry_content=content, telemetry_header=header)
        async with Workbench.open(chosen) as workbench:
            ada = await admitted(workbench, "ada")
            await tell(workbench)
            await worked(workbench, ada)
            await tell(workbench)
            exported = json.dumps(await status(workbench))
    assert [text.encode() in collector.raw for text in (TITLE, ARGUMENT, "weighed")] == [content] * 3
    assert KEY.encode() not in collector.raw
    assert {headers["authorization"] for _, headers, _ in collector.requests} == {"Bearer the-collectors-own-token"}
    assert "the-collectors-own-token" not in exported


@pytest.mark.long
async def test_each_span_is_sent_once_also_over_restarts(settings: Settings) -> None:
    async with collecting() as collector:
        tasks = []
        for number in range(3):
            async with Workbench.open(told_at(settings, collector, max_telemetry_spans=2)) as workbench:
                ada = await admitted(workbench, f"ada-{number}")
                await tell(workbench)
                tasks.append(await worked(workbench, ada, requests=3))
                if number != 1:  # the others' server tells of what this one has not
                    await tell(workbench)
            assert len(collector.metrics) <= number + 1
    names = [span.name for span in collector.spans]
    assert len({span.id for span in collector.spans}) == len(names) == 3 * 6
    assert [names.count(f"task {task_id}") for task_id in tasks] == [1, 1, 1]


@pytest.mark.long
async def test_a_batch_of_which_it_is_not_known_whether_it_arrived_is_sent_again_with_the_same_ids(
    settings: Settings, clock: Clock
) -> None:
    async with collecting() as collector:
        async with Workbench.open(told_at(settings, collector), clock=clock) as workbench:
            ada = await admitted(workbench, "ada")
            await tell(workbench)
            await worked(workbench, ada)
            write = workbench.store.write

            async def lost(*arguments: Any, **more: Any) -> Any:
                raise KeyboardInterrupt  # the process ends

            workbench.store.write = lost  # type: ignore[method-assign]
            with pytest.raises(KeyboardInterrupt):
                await tell(workbench)
            workbench.store.write = write  # type: ignore[method-assign]
        once = list(collector.spans)
        clock.forward(20)
        async with Workbench.open(told_at(settings, collector), clock=clock) as workbench:
            await tell(workbench)
            await tell(workbench)
        again = collector.spans[len(once) :]
        tokens = collector.metrics[-1]["gen_ai.client.token.usage"]
    assert len(once) == 4
    assert again == once
    assert [point.count for point in tokens] == [1, 1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "TELEMETRY_UNREACHABLE"),
        (FULL, "TELEMETRY_UNREACHABLE"),
        (ELSEWHERE, "TELEMETRY_MISSET"),
        (WRONG_KEY, "TELEMETRY_MISSET"),
    ],
)
async def test_a_collector_that_takes_nothing_is_told_later_and_logged_once(
    settings: Settings, clock: Clock, answer: bytes | None, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting() as collector:
        chosen = told_at(settings, collector, telemetry_answer_seconds=0.2 if answer is None else 10)
        async with Workbench.open(chosen, clock=clock) as workbench:
            ada = await admitted(workbench, "ada")
            await tell(workbench)
            collector.answer = answer
            await worked(workbench, ada)
            pauses = [await tell(workbench) for _ in range(3)]
            failed = await status(workbench)
            collector.answer = OK
            assert await tell(workbench) is None
            mended = await status(workbench)
    assert [(one or 0) < (two or 0) for one, two in itertools.pairwise(pauses)] == (
        [False, True] if answer == FULL else [True, True]  # the full one says that it wants to be asked after 7 s
    )
    assert failed["error_code"] == code
    assert [record.message.partition(":")[0] for record in caplog.records if "TELEMETRY" in record.message] == [code]
    assert (mended["error_code"], mended["spans"], mended["behind"]) == (None, 4, 0)
    assert len({span.id for span in collector.spans}) == len(collector.spans) == 4


async def test_a_collector_that_is_not_there_keeps_nobody_waiting(settings: Settings) -> None:
    async with Workbench.open(told_at(settings, "http://127.0.0.1:1")) as workbench:
        ada = await admitted(workbench, "ada")
        assert await tell(workbench) is not None
        await worked(workbench, ada)
        assert (await status(workbench))["error_code"] == "TELEMETRY_UNREACHABLE"


@pytest.mark.long
@pytest.mark.parametrize(("answer", "said"), [(PARTLY, r"too many\n\x1b[2Jattributes"), (BAD, "it answered 400")])
async def test_what_the_collector_refuses_for_good_does_not_hold_up_the_rest(
    settings: Settings, answer: bytes, said: str
) -> None:
    async with collecting() as collector, Workbench.open(told_at(settings, collector)) as workbench:
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        await worked(workbench, ada)
        collector.answer = answer
        await tell(workbench)
        refused = await status(workbench)
        collector.answer = OK
        collector.spans.clear()
        again = await worked(workbench, ada)
        await tell(workbench)
        after = await status(workbench)
    assert (refused["error_code"], refused["refused"]) == ("TELEMETRY_REFUSED", 4)
    assert said in refused["error"]
    assert sorted(span.name for span in collector.spans)[-1] == f"task {again}"
    assert (len(collector.spans), after["spans"]) == (4, 8)


@pytest.mark.long
async def test_a_collector_that_takes_little_at_a_time_gets_all_but_what_is_too_large_alone(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting() as collector, Workbench.open(told_at(settings, collector)) as workbench:
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        await worked(workbench, ada, requests=30)
        collector.largest = 4_000
        assert await tell(workbench) is None
        told = await status(workbench)
        names = [span.name for span in collector.spans]
        assert len({span.id for span in collector.spans}) == len(names) == 33
        assert (told["error_code"], told["behind"], told["spans"]) == (None, 0, 33)
        collector.largest = 10
        await worked(workbench, ada)
        await tell(workbench)
        refused = await status(workbench)
    assert (refused["error_code"], refused["behind"], refused["refused"]) == ("TELEMETRY_REFUSED", 0, 4)
    assert len(collector.spans) == 33
    assert {record.message.partition(":")[0] for record in caplog.records if "TELE" in record.message} == {
        "TELEMETRY_REFUSED"
    }


@pytest.mark.long
async def test_a_collector_that_takes_traces_only_gets_them(settings: Settings, clock: Clock) -> None:
    async with collecting() as collector, Workbench.open(told_at(settings, collector), clock=clock) as workbench:
        collector.takes_metrics = False
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        await worked(workbench, ada)
        clock.forward(20)
        assert await tell(workbench) is None
        told = await status(workbench)
    assert (told["error_code"], told["behind"], len(collector.spans), collector.metrics) == (None, 0, 4, [])


@pytest.mark.long
async def test_a_server_that_ends_with_its_work_tells_of_it_first(settings: Settings) -> None:
    async with collecting() as collector:
        chosen = told_at(settings, collector, telemetry_seconds=0.05)
        async with Workbench.open(chosen) as workbench, Servers(workbench) as servers:
            await servers.start(0)
            ada = await admitted(workbench, "ada")
            async with asyncio.timeout(20):
                while not collector.requests:
                    await asyncio.sleep(0.02)
            task_id = await worked(workbench, ada)
            (told,) = (await workbench.call("flush_telemetry"))["collectors"]
        assert (told["behind"], told["spans"]) == (0, 4)
        assert collector.one(f"task {task_id}")


@pytest.mark.long
async def test_every_end_of_an_attempt_is_told(settings: Settings, clock: Clock) -> None:
    async with collecting() as collector, Workbench.open(told_at(settings, collector), clock=clock) as workbench:
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        task_id = await given.task(workbench)
        parent = await given.task(workbench)
        for how in ("release_task", "fail_task"):
            await given.claim(workbench, ada, task_id)
            clock.forward(1)
            more = {"error_message": "no"} if how == "fail_task" else {}
            await given.done_by(workbench, ada, how, task_id, **more)
            clock.forward(10)
            await workbench.duties["ending leases"].perform(workbench._ctx)
        await given.claim(workbench, ada, task_id)
        clock.forward(1)
        await workbench.call("cancel_task", task_id=task_id)
        clock.forward(1)
        child = await given.task(workbench, parent_task_id=parent)
        await given.end(workbench, ada, child, "failed")
        await workbench.call("retry_task", task_id=child)
        clock.forward(1)
        await given.end(workbench, ada, child)
        await tell(workbench)
    attempts = [span for span in collector.spans if span.name == "invoke_agent ada"]
    outcomes = {
        (span.attributes["workbench.attempt"], span.attributes["workbench.attempt.outcome"]): span.is_error
        for span in attempts
        if span.attributes["workbench.task.id"] == task_id
    }
    first, second = (span for span in collector.spans if span.name == f"task {child}")
    assert outcomes == {(1, "released"): False, (2, "failed"): True, (3, "cancelled"): False}
    assert (first.is_error, second.is_error, second.parent, first.trace) == (True, False, first.id, second.trace)
    assert len(first.links) == 1
    assert len({span.id for span in collector.spans}) == len(collector.spans)


@pytest.mark.long
async def test_without_a_collector_nothing_is_kept_and_an_unusable_one_is_said(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Workbench.open(settings) as workbench:
        await tell(workbench)
        assert await workbench.call("get_telemetry") == {"collectors": []}
        await given.refuses("NO_TELEMETRY", workbench.call("list_spans", task_id=1))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hidden@127.0.0.1:4318")
        error = await given.refuses("TELEMETRY_MISSET", workbench.call("get_telemetry"))
    assert "hidden" not in error.message


@pytest.mark.long
async def test_a_certificate_that_is_not_trusted_is_said_and_can_be_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with (
        collecting() as collector,
        tls_in_front(collector.address, tmp_path) as address,
        Workbench.open(told_at(settings, address)) as workbench,
    ):
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        await worked(workbench, ada)
        await tell(workbench)
        failed = await status(workbench)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        await tell(workbench)
        mended = await status(workbench)
    assert failed["error_code"] == "TELEMETRY_MISSET"
    assert "is not trusted: self-signed certificate. Name a file" in failed["error"]
    assert (mended["error_code"], mended["behind"], len(collector.spans)) == (None, 0, 4)


@pytest.mark.long
async def test_the_usual_variables_are_enough(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting() as collector, Workbench.open(settings) as workbench:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{collector.address}/")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=penguins,authorization=Bearer%20abc")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "the lab")
        ada = await admitted(workbench, "ada")
        await tell(workbench)
        await worked(workbench, ada)
        await tell(workbench)
    assert {span.resource["service.name"] for span in collector.spans} == {"the lab"}
    assert {(headers["x-team"], headers["authorization"]) for _, headers, _ in collector.requests} == {
        ("penguins", "Bearer abc")
    }
