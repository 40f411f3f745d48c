"""Requests that fail: which are sent again, when, and with which code an answer ends."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from tests.chat.conftest import Asking
from tests.chat.dialects import ANTHROPIC, BEDROCK, GOOGLE, HTTP, OPENAI_CHAT, Dialect
from tests.chat.provider import Reply, failure, provider
from tests.chat.test_providers import completed, gathered
from tests.chat.test_providers import failure as ending
from tests.chat.wire import Call, Step
from workbench.chat.frames import End, Retrying, Token
from workbench.errors import TooMany

pytestmark = pytest.mark.anyio

OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}


def refusal(dialect: Dialect, status: int, **headers: str) -> Reply:
    """A refusal in the form of a provider."""
    if dialect is BEDROCK:
        kind = {429: "ThrottlingException", 500: "InternalServerException"}[status]
        return failure(status, {"message": "No."}, **{"x-amzn-errortype": kind}, **headers)
    if dialect is GOOGLE:
        return failure(status, {"error": {"code": status, "message": "No.", "status": "X"}}, **headers)
    return failure(status, {"type": "error", "error": {"type": "x", "message": "No.", "code": None}}, **headers)


@pytest.mark.parametrize("dialect", HTTP, ids=str)
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "PROVIDER_REJECTED"),
        (401, "PROVIDER_KEY_REFUSED"),
        (404, "MODEL_NOT_FOUND"),
    ],
)
async def test_what_cannot_help_is_not_sent_again(ask: Asking, dialect: Dialect, status: int, code: str) -> None:
    async with provider(refusal(dialect, status)) as server:
        error, frames = await ending(ask(server, dialect))
        assert len(server.requests) == 1
    assert (error.code, frames) == (code, [])


@pytest.mark.parametrize("dialect", [*HTTP, pytest.param(BEDROCK, marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize(("status", "code"), [(429, "PROVIDER_RATE_LIMIT"), (500, "PROVIDER_FAILED")])
async def test_a_request_that_fails_is_sent_again_and_each_time_reported(
    ask: Asking, dialect: Dialect, status: int, code: str
) -> None:
    refused = refusal(dialect, status)
    async with provider(refused, refused, dialect.reply(Step(["Hello."]))) as server:
        frames = await gathered(ask(server, dialect))
        assert len(server.requests) == 3
    reported = [(frame.code, frame.attempt) for frame in frames if isinstance(frame, Retrying)]
    assert reported == [(code, 2), (code, 3)]
    assert completed(frames).text == "Hello."


async def test_an_answer_fails_after_the_last_attempt(ask: Asking) -> None:
    async with provider(*[refusal(ANTHROPIC, 529)] * 9) as server:
        error, frames = await ending(ask(server, ANTHROPIC, attempts=3))
        assert len(server.requests) == 3
    assert error.code == "PROVIDER_FAILED"
    assert [frame.attempts for frame in frames if isinstance(frame, Retrying)] == [3, 3]


async def test_the_attempts_of_each_step_are_counted_anew(ask: Asking) -> None:
    refused, calls = refusal(OPENAI_CHAT, 500), Step(calls=[Call("c1", "nothing", "{}")])
    replies = [refused, OPENAI_CHAT.reply(calls), refused, OPENAI_CHAT.reply(Step(["Done."]))]
    async with provider(*replies) as server:
        frames = await gathered(ask(server, OPENAI_CHAT, attempts=2))
    assert [frame.attempt for frame in frames if isinstance(frame, Retrying)] == [2, 2]
    assert completed(frames).text == "Done."


async def test_a_wait_that_the_provider_asks_for_is_kept_and_reported(ask: Asking) -> None:
    replies = [refusal(OPENAI_CHAT, 429, retry_after_ms="50"), OPENAI_CHAT.reply(Step(["Hello."]))]
    async with provider(*replies) as server:
        frames = await gathered(ask(server, OPENAI_CHAT))
    assert [frame.seconds for frame in frames if isinstance(frame, Retrying)] == [0.05]


async def test_a_wait_that_is_too_long_is_left_to_the_caller(ask: Asking) -> None:
    async with provider(refusal(OPENAI_CHAT, 429, retry_after="3600")) as server:
        error, frames = await ending(ask(server, OPENAI_CHAT))
    assert isinstance(error, TooMany)
    assert (error.details["retry_after_seconds"], frames) == (3600, [])


async def test_a_used_up_quota_is_not_waited_for(ask: Asking) -> None:
    refused = failure(429, {"error": {"message": "No.", "type": "x", "code": "insufficient_quota"}})
    async with provider(refused) as server:
        error, _ = await ending(ask(server, OPENAI_CHAT))
        assert len(server.requests) == 1
    assert error.code == "PROVIDER_QUOTA"


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, ANTHROPIC], ids=str)
async def test_a_provider_that_does_not_answer_is_asked_again(ask: Asking, dialect: Dialect) -> None:
    silent, attempts = Reply(hangs=True), 10  # on a slow machine, what answers may be asked again as well
    async with provider(silent, *[dialect.reply(Step(["Hello."]))] * (attempts - 1)) as server:
        frames = await gathered(ask(server, dialect, silence_seconds=1.0, attempts=attempts))
    assert {frame.code for frame in frames if isinstance(frame, Retrying)} == {"PROVIDER_TIMEOUT"}
    assert completed(frames).text == "Hello."


async def test_a_provider_that_cannot_be_reached_has_a_code(ask: Asking) -> None:
    async with provider() as server:
        pass
    error, frames = await ending(ask(server, OPENAI_CHAT, attempts=2))
    assert error.code == "PROVIDER_UNREACHABLE"
    assert len(frames) == 1


async def test_a_stream_that_fails_before_its_first_token_is_opened_again(ask: Asking) -> None:
    replies = [ANTHROPIC.reply(Step(failure=OVERLOADED, ends=False)), ANTHROPIC.reply(Step(["Hello."]))]
    async with provider(*replies) as server:
        frames = await gathered(ask(server, ANTHROPIC))
    assert isinstance(frames[0], Retrying)
    assert completed(frames).text == "Hello."


async def test_nothing_is_repeated_after_a_token(ask: Asking) -> None:
    async with provider(*[ANTHROPIC.reply(Step(["Hel"], failure=OVERLOADED, ends=False))] * 2) as server:
        error, frames = await ending(ask(server, ANTHROPIC))
        assert len(server.requests) == 1
    assert (error.code, frames[0]) == ("PROVIDER_FAILED", Token("Hel"))
    assert not any(isinstance(frame, Retrying) for frame in frames)


async def test_stopping_while_a_repetition_is_waited_for_sends_nothing(ask: Asking) -> None:
    refused = refusal(OPENAI_CHAT, 429, retry_after="50")
    async with provider(refused) as server:
        async with aclosing(ask(server, OPENAI_CHAT)) as frames:
            assert isinstance(await anext(frames), Retrying)
        assert len(server.requests) == 1


@pytest.mark.parametrize("dialect", HTTP, ids=str)
@pytest.mark.parametrize(("ends", "end"), [(True, End.STOP), (False, End.CUT)])
async def test_an_empty_answer_is_not_asked_for_again(ask: Asking, dialect: Dialect, ends: bool, end: End) -> None:
    async with provider(dialect.reply(Step(ends=ends))) as server:
        found = completed(await gathered(ask(server, dialect)))
        assert len(server.requests) == 1
    assert (found.text, found.end) == ("", end)
