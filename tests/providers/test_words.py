"""What a provider says of a failure reaches the person as a sentence, never as Python's view of it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from tests.providers.conftest import Asking
from tests.providers.dialects import ANTHROPIC, GOOGLE, OPENAI_CHAT, Dialect
from tests.providers.provider import Provider, Reply, failure
from workbench.errors import WorkbenchError
from workbench.providers.words import address_of, said, sentence

pytestmark = pytest.mark.anyio

PYTHON = re.compile(r"[A-Z]\w+(Error|Behavior|Exception)\b|\{'|None\b|Errno|object has no|Error code")
MISSING = {"detail": [{"loc": ["body", "model"], "msg": "field required", "type": "value_error.missing"}]}
BODIES: list[tuple[Any, str]] = [
    (MISSING, "body.model: field required."),
    ({"errors": ["too hot", "too cold"]}, "too hot; too cold."),
    ({"error": {"code": 3, "status": "X"}}, '"code": 3'),
    ({"code": 3, "msg": "bad thing"}, "bad thing."),
    ({"error": {"message": {"detail": "deep"}}}, "deep."),
    ("plain words", "plain words."),
    ({}, "Bad Request."),
    (None, "Bad Request."),
]
HTML = {"content-type": "text/html"}


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, ANTHROPIC, pytest.param(GOOGLE, marks=pytest.mark.long)], ids=str)
async def test_any_body_of_a_refusal_is_told_in_its_own_words(ask: Asking, dialect: Dialect) -> None:
    for body, words in BODIES:
        error = (await ask.whole(dialect, failure(400, body), attempts=1)).error
        assert error is not None
        assert error.message.startswith("The provider rejects the request. It answers 400")
        assert words in error.message
        assert not PYTHON.search(error.message)


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, ANTHROPIC, pytest.param(GOOGLE, marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize(
    "reply",
    [
        Reply([b"<html><title>502</title></html>"], 502, HTML),
        Reply([b"data: {garbage\n\n"]),
        Reply([b"event: message_start\ndata: 3\n\n"]),
        Reply([b'data: {"choices": 4}\n\n']),
        Reply([]),
        Reply([b'data: {"id"'], is_whole=False),
    ],
    ids=["page", "garbage", "number", "choices", "nothing", "cut"],
)
async def test_what_is_no_answer_is_told_in_a_sentence(ask: Asking, dialect: Dialect, reply: Reply) -> None:
    error = (await ask.whole(dialect, reply, attempts=1, silence_seconds=20.0)).error
    if error is not None:  # Google's library takes unknown fields for an answer without a text
        assert not PYTHON.search(error.message)
        assert error.message.endswith(".")


async def test_a_server_that_is_not_there_is_named(ask: Asking) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = Provider()
        place.address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        for dialect in (OPENAI_CHAT, ANTHROPIC):
            frames: AsyncIterator[Any] = ask(place, dialect, attempts=1)
            with pytest.raises(WorkbenchError) as caught:
                async with aclosing(frames):  # type: ignore[type-var]
                    await anext(frames)
            assert caught.value.code == "PROVIDER_UNREACHABLE"
            assert f"No server answers at {place.address}/v1/" in caught.value.message
            assert not PYTHON.search(caught.value.message)


async def test_a_setting_is_refused_in_the_providers_words(ask: Asking) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated"}}
    answer = await ask.whole(ANTHROPIC, failure(400, body), temperature=0.5)
    assert answer.code == "SETTING_REFUSED"
    assert str(answer.error).endswith("It answers 400: `temperature` is deprecated.")


def test_an_address_is_named_without_what_is_secret_in_it() -> None:
    error = OSError("No.")
    error.request = SimpleNamespace(url="http://ann:pass@host:9/v1/models?key=secret")  # type: ignore[attr-defined]
    assert address_of(error) == "http://host:9/v1/models"
    assert address_of(OSError("No.")) == ""


def test_words_are_found_at_any_depth_and_a_page_has_none() -> None:
    assert said({"error": {"message": json.dumps({"a": 1})}}) == '{"a": 1}'
    assert said("<html>") is said({}) is said([1]) is None
    assert (sentence("So it\nis"), sentence("Why?"), sentence("")) == ("So it is.", "Why?", "")
