"""A transcript that finds no room is left out with a word in the log; the answer is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Served
from tests.shells.models.conftest import KEY, Box, key_at
from tests.shells.models.upstream import says, upstream
from tests.small_disk import fill, small_disk
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.sqlite("the store is on the disk that is full")]


@pytest.fixture
def settings(settings: Settings) -> Iterator[Settings]:
    """A project whose state is on a small disk."""
    with small_disk(settings.home, 30):
        yield settings


def ask(text: str) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"{text} {KEY}"}]}


async def test_a_transcript_that_fills_the_disk_costs_no_answer(
    served: Served, box: Box, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with upstream(says({"type": "message", "content": [{"type": "text", "text": "Yes."}], "usage": {}})) as model:
        client = await box(key_at(model))
        fill(settings.home, 200_000)
        full = await client.post("/anthropic/v1/messages", json=ask("long " * 400_000))
        (settings.home / "filler").unlink()
        after = await client.post("/anthropic/v1/messages", json=ask("short"))
    transcript = json.dumps(await served.workbench.call("get_transcript", task_id=client.task[1]))
    assert (full.status_code, after.status_code) == (200, 200)
    assert full.json() == after.json()
    assert ("long long" in transcript, "short" in transcript, KEY in transcript) == (False, True, False)
    [told] = [record.getMessage() for record in caplog.records if "a transcript" in record.getMessage()]
    assert "disk" in told or "full" in told, told
    assert KEY not in caplog.text
