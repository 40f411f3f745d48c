"""Answers of models are recorded without secrets, even ones cut by pieces; messages of persons stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Served
from workbench.rules.secrets.forms import MASK
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

KEY = "sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
MINE = "hunter2-of-the-person"
ANSWERS = Query("answers", "SELECT content, parts, history FROM turns WHERE role = 'assistant'")


@pytest.mark.long
async def test_an_answer_is_recorded_without_secrets(served: Served, begin: Callable[..., Any]) -> None:
    served.workbench._ctx.secrets.add([MINE])
    chat = await begin([{"say": f"Use {KEY} or {MINE}, please.", "pause": 1}])
    await chat.send(f"Is it {MINE}?")
    frames = await chat.ended()
    text = "".join(frame["data"]["content"] for frame in frames if frame["type"] == "token")
    assert text == f"Use {MASK} or {MASK}, please."
    mine, answer = await chat.turns()
    assert (mine["content"], answer["content"]) == (f"Is it {MINE}?", text)
    stored = await served.workbench.store.read(lambda tx: [dict(row) for row in tx.all(ANSWERS)])
    history = json.loads(stored[0]["history"])
    assert KEY not in json.dumps(stored)
    assert [part["content"] for message in history["messages"] for part in message["parts"]] == [f"Is it {MINE}?", text]
