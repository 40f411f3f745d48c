"""A limit of a key holds the requests of all its agents, which then go on."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests import given
from tests.conftest import Served
from tests.shells.models.conftest import KEY, Box, key_at
from tests.shells.models.upstream import Asked, Script, Upstream, head, says, streams, upstream
from workbench.model import SECOND
from workbench.rules.failures import FailureKind, account_name
from workbench.services import holds
from workbench.services.holds import AttemptFailure
from workbench.shells.models import gateway
from workbench.store.base import Tx

pytestmark = pytest.mark.anyio

MESSAGES = "/anthropic/v1/messages"
RESET = 1.0


async def test_no_request_reaches_the_provider_before_the_reset_and_all_are_answered_after_it(
    served: Served, box: Box
) -> None:
    times: list[float] = []

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            writer.write(head(status="429 Too Many Requests", retry_after=str(RESET)) + b"{}")
        else:
            writer.write(head() + b"{}")

    async with upstream(script) as model:
        boxes = [await box(key_at(model)) for _ in range(5)]
        first = asyncio.create_task(boxes[0].post(MESSAGES, json={}))
        while not (await served.workbench.call("list_holds"))["holds"]:
            await asyncio.sleep(0.02)
        answers = await asyncio.gather(first, *(client.post(MESSAGES, json={}) for client in boxes for _ in range(3)))
    assert {answer.status_code for answer in answers} == {200}
    assert len(times) == 17
    assert min(times[1:]) - times[0] >= RESET


async def test_a_box_that_leaves_while_it_is_held_sends_nothing(served: Served, box: Box) -> None:
    async with upstream(says({}, "429 Too Many Requests", retry_after="1")) as model:
        client, other = await box(key_at(model)), await box(key_at(model))
        held = asyncio.create_task(client.post(MESSAGES, json={}))
        while not (await served.workbench.call("list_holds"))["holds"]:
            await asyncio.sleep(0.02)
        held.cancel()
        model.script = says({})
        assert (await other.post(MESSAGES, json={})).status_code == 200
    assert len(model.asked) == 2


async def test_a_limit_that_lasts_too_long_is_told_at_once(box: Box) -> None:
    async with upstream(says({"error": {"details": [{"retryDelay": "3600s"}]}}, "429 Too Many Requests")) as model:
        client = await box(key_at(model, "gemini"))
        path = "/gemini/v1beta/models/g:generateContent"
        answer = await client.post(path, json={})
        assert answer.json()["error"]["details"] == [{"retryDelay": "3600s"}]
        later = await client.post(path, json={})
        assert (later.status_code, later.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert (answer.status_code, len(model.asked)) == (429, 1)


async def test_a_limit_that_has_no_end_is_none(box: Box) -> None:
    async with upstream(says({"error": {"message": "slow down"}}, "429 Too Many Requests", retry_after="inf")) as model:
        answer = await (await box(key_at(model))).post(MESSAGES, json={})
    assert (answer.status_code, answer.json()["error"]["message"]) == (429, "slow down")


async def test_a_key_is_limited_no_longer_than_the_settings_say(served: Served, box: Box) -> None:
    async with upstream(says({}, "429 Too Many Requests", retry_after="1e300")) as model:
        client = await box(key_at(model))
        await client.post(MESSAGES, json={})
        later = await client.post(MESSAGES, json={})
    assert int(later.headers["retry-after"]) <= served.workbench.settings.hold_longest_seconds


async def test_a_hold_that_the_person_ends_keeps_no_request_back(served: Served, box: Box) -> None:
    async with upstream(says({}, "429 Too Many Requests", retry_after="3600")) as model:
        client = await box(key_at(model))
        assert (await client.post(MESSAGES, json={})).status_code == 429
        model.script = says({})
        [hold] = (await served.workbench.call("list_holds"))["holds"]
        await served.workbench.call("end_hold", scope=hold["scope"])
        assert (await client.post(MESSAGES, json={})).status_code == 200


async def test_a_limit_that_is_stored_holds_requests_until_it_is_ended(
    served: Served, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "SILENT_SECONDS", 0.0)
    async with upstream(says({})) as model:
        client, workbench = await box(key_at(model)), served.workbench
        scope, until = f"account:{account_name('anthropic', KEY)}", workbench.store.now() + 300 * SECOND
        why = FailureKind.LIMIT, "A program has told it."
        await workbench.store.write(lambda tx: holds.hold(tx, workbench.settings, scope, *why, until))
        async with client.stream("POST", MESSAGES, json={"stream": True}) as answer:
            chunks = answer.aiter_raw()
            assert await anext(chunks) == gateway.PING
            assert model.asked == []
            await workbench.call("end_hold", scope=scope)
            assert b"".join([chunk async for chunk in chunks]) == b"{}"


async def test_a_limit_that_was_told_is_not_over_because_another_one_is(served: Served, box: Box) -> None:
    workbench = served.workbench

    def change(tx: Tx) -> list[int]:
        told = [tx.now + seconds * SECOND for seconds in (60, 20)]
        ends = [holds.hold(tx, workbench.settings, "account:a", FailureKind.LIMIT, "429", until) for until in told]
        return [end - told[0] for end in ends]

    assert await workbench.store.write(change) == [0, 0]


@pytest.mark.parametrize(
    ("then", "last"),
    [
        (streams({"type": "message_stop"}), '{"type": "message_stop"}'),
        (says({"error": "no"}, "400 Bad Request"), '{"error": "no"}'),
        (says({}, "401 Unauthorized"), "KEY_REFUSED"),
    ],
)
async def test_a_streamed_request_that_is_held_gets_pings_and_then_its_answer(
    served: Served, box: Box, monkeypatch: pytest.MonkeyPatch, then: Script, last: str
) -> None:
    monkeypatch.setattr(gateway, "SILENT_SECONDS", 0.0)
    async with upstream(says({}, "429 Too Many Requests", retry_after="300")) as model:
        client = await box(key_at(model))
        async with client.stream("POST", MESSAGES, json={"stream": True}) as answer:
            chunks = answer.aiter_raw()
            assert await anext(chunks) == gateway.PING
            model.script = then
            (hold,) = (await served.workbench.call("list_holds"))["holds"]
            await served.workbench.call("end_hold", scope=hold["scope"])
            rest = b"".join([chunk async for chunk in chunks]).decode()
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert last in rest
    assert KEY not in rest
    assert await given.rows(served.workbench, "SELECT count(*) FROM spending") == [(1,)]


async def test_a_key_that_was_refused_is_read_again_once_the_person_has_answered(served: Served, box: Box) -> None:
    client = await box(key_at(Upstream(says({}))))
    agent, task_id, attempt = client.task  # type: ignore[attr-defined]
    failure = AttemptFailure(agent.caller.agent, task_id, attempt, FailureKind.AUTH, "401")
    await served.workbench.store.write(lambda tx: holds.note_failure(tx, served.workbench.settings, failure), actor="t")
    (question,) = (await served.workbench.call("list_approvals", kind="failure"))["approvals"]
    assert agent.caller.agent in served.workbench.gateway.keys
    await served.workbench.call("approve", approval_id=question["id"])
    assert agent.caller.agent not in served.workbench.gateway.keys
