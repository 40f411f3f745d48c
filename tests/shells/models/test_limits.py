"""A limit of a key holds the requests of all its agents, which then go on one after another."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.conftest import Served
from tests.shells.models.conftest import Box, key_at
from tests.shells.models.upstream import Asked, head, says, upstream

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
