"""Pictures returned by tools: a model gets the formats that it accepts, and words for the others."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.providers.conftest import Asking, ask
from tests.providers.dialects import EVERY, OPENAI_CHAT, Dialect
from tests.providers.provider import failure
from tests.providers.wire import Call, Step
from workbench.providers import transcript
from workbench.providers.frames import Retrying, ToolCompleted
from workbench.providers.pictures import MOST, has_any
from workbench.providers.tools import ToolAnswer, ToolOffer
from workbench.rules.tools.content import Picture, as_text, pictures

pytestmark = pytest.mark.anyio
__all__ = ["ask"]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
WORDS = "a picture of 264 bytes, image/png"
SEEN = [Step([], [Call("c1", "plot", "{}")]), Step(["A plot."])]


def block(data: bytes = PNG, media_type: str = "image/png") -> dict[str, str]:
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type}


class Plotting:
    """One tool that returns pictures."""

    def __init__(self, number: int = 1) -> None:
        self._number = number

    async def offers(self) -> list[ToolOffer]:
        return [ToolOffer("plot", "Plots.", {"type": "object"})]

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        content = [{"type": "text", "text": "Here:"}, *[block() for _ in range(self._number)]]
        return ToolAnswer(as_text(content), pictures(content))


@pytest.mark.parametrize("dialect", EVERY, ids=str)
async def test_a_picture_reaches_the_model_and_the_next_question_has_it_still(ask: Asking, dialect: Dialect) -> None:
    answer = await ask.whole(dialect, *SEEN, toolbox=Plotting())
    encoded = base64.b64encode(PNG).decode()
    sent = json.dumps(answer.requests[1].body).replace("-", "+").replace("_", "/")  # Google's base64 is that of URLs
    assert encoded in sent
    assert WORDS in json.dumps(answer.requests[1].body)
    assert [one.result for one in answer.of(ToolCompleted)] == [f"Here:\n[{WORDS}]"]
    again = await ask.whole(dialect, Step(["Yes."]), toolbox=Plotting(), history=answer.completed.history)
    assert encoded in json.dumps(again.requests[0].body).replace("-", "+").replace("_", "/")


async def test_a_model_that_refuses_pictures_is_asked_without_them(ask: Asking) -> None:
    refusal = failure(400, {"error": {"message": "This model does not support image input"}})
    steps = [SEEN[0], refusal, Step(["I read "], [Call("c2", "plot", "{}")]), Step(["of plots."])]
    answer = await ask.whole(OPENAI_CHAT, *steps, toolbox=Plotting())
    assert answer.text == "I read of plots."
    bodies = [json.dumps(request.body) for request in answer.requests]
    assert [("base64" in body, WORDS in body) for body in bodies] == [
        *[(False, False), (True, True), (False, True), (False, True)]
    ]
    assert answer.of(Retrying) == []


async def test_an_answer_sends_so_many_pictures_and_names_the_others(ask: Asking) -> None:
    answer = await ask.whole(OPENAI_CHAT, *SEEN, toolbox=Plotting(MOST + 2))
    body = json.dumps(answer.requests[1].body)
    assert body.count("data:image/png;base64,") == MOST
    assert body.count(WORDS) == MOST + 2


async def test_a_history_keeps_the_newest_pictures(ask: Asking) -> None:
    history = None
    for _ in range(3):
        answer = await ask.whole(OPENAI_CHAT, *SEEN, toolbox=Plotting(9), history=history)
        history = answer.completed.history
    kept = [has_any([message]) for message in transcript.loaded(history)]
    assert json.dumps(history).count('"kind": "binary"') == MOST
    assert [n for n, is_kept in enumerate(kept) if is_kept] == [2, 6, 10]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (block(), [Picture("image/png", PNG)]),
        (block(b"\xff\xd8\xff" + PNG), [Picture("image/jpeg", b"\xff\xd8\xff" + PNG)]),
        ({"type": "resource", "resource": {"uri": "x:/", "blob": block()["data"]}}, [Picture("image/png", PNG)]),
        (block(b"<svg onload=alert(1)>", "image/svg+xml"), []),
        (block(b"<html>"), []),
        ({**block(), "data": "no base64"}, []),
        (block(PNG + bytes(4_000_000)), []),
    ],
)
def test_the_bytes_of_a_file_decide_whether_it_is_a_picture(given: dict[str, Any], seen: list[Picture]) -> None:
    assert pictures([given]) == seen
