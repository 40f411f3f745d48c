"""Requests that fail: which are sent again, when, and with which code an answer ends."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from tests.providers.conftest import Asking
from tests.providers.dialects import ANTHROPIC, BEDROCK, EVERY, GOOGLE, HTTP, OPENAI_CHAT, Dialect
from tests.providers.provider import Reply, failure, provider
from tests.providers.wire import Call, Step
from workbench.errors import TooMany, WorkbenchError
from workbench.providers.frames import End, Retrying, Token

pytestmark = pytest.mark.anyio

HELLO = Step(["Hello."])
OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}


def refusal(dialect: Dialect, status: int, **headers: str) -> Reply:
    if dialect is BEDROCK:
        kind = {429: "ThrottlingException", 500: "InternalServerException"}[status]
        return failure(status, {"message": "No."}, **{"x-amzn-errortype": kind}, **headers)
    if dialect is GOOGLE:
        return failure(status, {"error": {"code": status, "message": "No.", "status": "X"}}, **headers)
    return failure(status, {"type": "error", "error": {"type": "x", "message": "No.", "code": None}}, **headers)


@pytest.mark.parametrize("dialect", HTTP, ids=str)
@pytest.mark.parametrize(
    ("status", "code"), [(400, "PROVIDER_REJECTED"), (401, "PROVIDER_KEY_REFUSED"), (404, "MODEL_NOT_FOUND")]
)
async def test_a_request_that_a_retry_cannot_help_is_not_sent_again(
    ask: Asking, dialect: Dialect, status: int, code: str
) -> None:
    answer = await ask.whole(dialect, refusal(dialect, status))
    assert (answer.code, answer.frames, len(answer.requests)) == (code, [], 1)
    if code != "PROVIDER_KEY_REFUSED":
        assert answer.error is not None
        assert answer.error.message.endswith(f" It answers {status}: No.")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            {
                "error": {
                    "message": "the request exceeds the available context size",
                    "type": "exceed_context_size_error",
                }
            },
        ),
        (500, {"error": {"code": 500, "message": "the request exceeds the available context size, try increasing it"}}),
        (400, {"error": "Trying to keep the first 5120 tokens when context the overflows."}),
        (
            400,
            {
                "error": {
                    "message": "This model's maximum context length is 8 tokens",
                    "code": "context_length_exceeded",
                }
            },
        ),
    ],
)
async def test_a_conversation_too_long_for_a_model_is_recognised_in_any_wording(
    ask: Asking, status: int, body: Any
) -> None:
    answer = await ask.whole(OPENAI_CHAT, failure(status, body))
    assert (answer.code, len(answer.requests)) == ("CONVERSATION_TOO_LONG", 1)


@pytest.mark.parametrize("dialect", EVERY, ids=str)
@pytest.mark.parametrize(("status", "code"), [(429, "PROVIDER_RATE_LIMIT"), (500, "PROVIDER_FAILED")])
async def test_a_request_that_fails_is_sent_again_and_each_time_reported(
    ask: Asking, dialect: Dialect, status: int, code: str
) -> None:
    refused = refusal(dialect, status)
    answer = await ask.whole(dialect, refused, refused, HELLO)
    assert (answer.retries, len(answer.requests)) == ([(code, 2), (code, 3)], 3)
    assert answer.completed.text == "Hello."


async def test_a_provider_that_is_not_there_any_more_after_a_step_cannot_be_reached(ask: Asking) -> None:
    calls = OPENAI_CHAT.reply(Step(["One."], [Call("c1", "nothing", "{}")]))
    answer = await ask.whole(OPENAI_CHAT, calls, *[Reply(is_whole=False)] * 2, attempts=2)
    assert (answer.code, answer.text) == ("PROVIDER_UNREACHABLE", "One.")


async def test_an_answer_fails_after_the_last_attempt(ask: Asking) -> None:
    answer = await ask.whole(ANTHROPIC, *[refusal(ANTHROPIC, 529)] * 9, attempts=3)
    assert (answer.code, len(answer.requests)) == ("PROVIDER_FAILED", 3)
    assert [frame.attempts for frame in answer.of(Retrying)] == [3, 3]


async def test_the_attempts_of_each_step_are_counted_anew(ask: Asking) -> None:
    refused, calls = refusal(OPENAI_CHAT, 500), Step(calls=[Call("c1", "nothing", "{}")])
    answer = await ask.whole(OPENAI_CHAT, refused, calls, refused, HELLO, attempts=2)
    assert [attempt for _, attempt in answer.retries] == [2, 2]
    assert answer.completed.text == "Hello."


async def test_a_requested_wait_is_kept_unless_it_is_too_long_or_useless(ask: Asking) -> None:
    answer = await ask.whole(OPENAI_CHAT, refusal(OPENAI_CHAT, 429, retry_after_ms="50"), HELLO)
    assert [frame.seconds for frame in answer.of(Retrying)] == [0.05]
    answer = await ask.whole(OPENAI_CHAT, refusal(OPENAI_CHAT, 429, retry_after="3600"))
    assert isinstance(answer.error, TooMany)
    assert (answer.error.details["retry_after_seconds"], answer.frames) == (3600, [])
    used_up = failure(429, {"error": {"message": "No.", "type": "x", "code": "insufficient_quota"}})
    answer = await ask.whole(OPENAI_CHAT, used_up)
    assert (answer.code, len(answer.requests)) == ("PROVIDER_QUOTA", 1)


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, pytest.param(ANTHROPIC, marks=pytest.mark.long)], ids=str)
async def test_a_provider_that_does_not_answer_is_asked_again(ask: Asking, dialect: Dialect) -> None:
    attempts = 10  # on a slow machine, what answers may be asked again as well
    replies = [Reply(hangs=True), *[HELLO] * (attempts - 1)]
    answer = await ask.whole(dialect, *replies, silence_seconds=1.0, attempts=attempts)
    assert {code for code, _ in answer.retries} == {"PROVIDER_TIMEOUT"}
    assert answer.completed.text == "Hello."


async def test_a_provider_that_cannot_be_reached_has_a_code(ask: Asking) -> None:
    async with provider() as server:
        pass
    frames = ask(server, OPENAI_CHAT, attempts=2)
    assert isinstance(await anext(frames), Retrying)
    with pytest.raises(WorkbenchError, match="PROVIDER_UNREACHABLE"):
        await anext(frames)


async def test_a_failed_stream_is_reopened_only_before_its_first_token(
    ask: Asking,
) -> None:
    answer = await ask.whole(ANTHROPIC, Step(failure=OVERLOADED, ends=False), HELLO)
    assert isinstance(answer.frames[0], Retrying)
    assert answer.completed.text == "Hello."
    answer = await ask.whole(ANTHROPIC, *[Step(["Hel"], failure=OVERLOADED, ends=False)] * 2)
    assert (answer.code, answer.frames[0]) == ("PROVIDER_FAILED", Token("Hel"))
    assert (answer.retries, len(answer.requests)) == ([], 1)


async def test_stopping_while_a_repetition_is_waited_for_sends_nothing(ask: Asking) -> None:
    refused = refusal(OPENAI_CHAT, 429, retry_after="50")
    async with provider(refused) as server:
        async with aclosing(ask(server, OPENAI_CHAT)) as frames:
            assert isinstance(await anext(frames), Retrying)
        assert len(server.requests) == 1


@pytest.mark.parametrize("dialect", HTTP, ids=str)
@pytest.mark.parametrize(("ends", "end"), [(True, End.STOP), (False, End.CUT)])
async def test_an_empty_answer_is_not_asked_for_again(ask: Asking, dialect: Dialect, ends: bool, end: End) -> None:
    answer = await ask.whole(dialect, Step(ends=ends))
    assert (answer.completed.text, answer.completed.end, len(answer.requests)) == ("", end, 1)
