"""Answers of a server at a URL, valid and not: each becomes a result or a coded error."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.answering import EVENTS, JSON, LARGEST, Answer, Raw, connection
from tests.upstream.listener import Request, answered, listening
from tests.upstream.servers import connecting, running
from workbench.errors import Unavailable
from workbench.upstream.connection import ServerState
from workbench.upstream.http_transport import ServerAddress

pytestmark = pytest.mark.anyio

RESULT = {"content": [], "isError": False, "resultType": "complete"}


def answer(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "ID", **message}).encode()


def event(**message: Any) -> bytes:
    """A JSON-RPC message as an event of a stream."""
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


async def test_a_call_is_one_request_with_the_headers_of_its_server_and_its_tool() -> None:
    async with connection() as (server, upstream):
        server.answer = Answer(answer(result=RESULT))
        assert (await upstream.call("add", {"a": 1})).content == []
    [request] = server.calls
    assert json.loads(request.body)["params"]["arguments"] == {"a": 1}
    expected = {"authorization: bearer token", "mcp-method: tools/call", "mcp-name: add", "accept-encoding: identity"}
    assert expected <= set(request.head.splitlines())


async def test_a_malformed_report_of_progress_is_left_out() -> None:
    steps: list[float] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async with connection() as (server, upstream):
        progress = "notifications/progress"
        server.answer = Answer(
            b": ping\n\n"
            + event(method=progress, params={"progressToken": "ID", "progress": 1, "total": 2, "message": "one"})
            + event(method=progress, params={"progressToken": "ID", "progress": "some"})
            + event(method="notifications/message", params={"level": "info", "data": "hello"})
            + event(id="ID", result=RESULT)
            + event(id="ID", error={"code": 1, "message": "too late"}),
            EVENTS,
        )
        assert (await upstream.call("add", {}, note)).is_error is False
    assert steps == [1]


ERROR = {"code": -32001, "message": "no", "data": {"why": "so"}}


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (Answer(answer(error=ERROR)), "TOOL_SERVER_ERROR", "answered with an error: no."),
        (Answer(answer(error=ERROR), status=400), "TOOL_SERVER_ERROR", "answered with an error: no."),
        (Answer(event(id="ID", error=ERROR), EVENTS), "TOOL_SERVER_ERROR", "answered with an error: no."),
        (Answer(answer(error={"code": -32000, "message": "quota exceeded"})), "TOOL_SERVER_ERROR", "quota exceeded"),
        (Answer(b"Not Found", "text/plain", 404), "TOOL_SERVER_ERROR", "Not Found"),
        (Answer(b"<html>", "text/html", 502), "TOOL_SERVER_ERROR", "error response"),
        (Answer(b"<html>", "text/html"), "TOOL_SERVER_ERROR", "Unexpected content type: text/html"),
        (Answer(b"", status=307, headers={"Location": "http://127.0.0.2/mcp"}), "TOOL_SERVER_ERROR", "not followed"),
        (Answer(b"[]"), "TOOL_SERVER_ERROR", "Failed to parse"),
        (Answer(b"[" * 1_900), "TOOL_SERVER_ERROR", "Failed to parse"),
        (Answer(answer(result="text")), "TOOL_SERVER_ERROR", "Failed to parse"),
        (Answer(b"data: no JSON\n\n", EVENTS), "TOOL_SERVER_ERROR", "Failed to parse"),
        (Answer(answer(result=RESULT), headers={"Content-Encoding": "gzip"}), "TOOL_SERVER_ERROR", "compressed"),
        (Answer(answer(result={"text": "x" * LARGEST})), "TOOL_RESULT_TOO_LARGE", "larger than 2,000 bytes"),
        (Answer(event(id="ID", result={"text": "x" * LARGEST}), EVENTS), "TOOL_RESULT_TOO_LARGE", "2,000 bytes"),
        (Answer(b": nothing\n\n", EVENTS), "TOOL_SERVER_DOWN", "it ended before it had answered"),
        (Raw(b""), "TOOL_SERVER_DOWN", "ended"),
        (
            Raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\nhalf"),
            "TOOL_SERVER_DOWN",
            "ended",
        ),
        (Answer(b"", status=202), "TOOL_SERVER_ERROR", "202 Accepted"),
    ],
)
async def test_an_answer_that_is_no_result_is_an_error_of_its_call(sent: Answer | Raw, code: str, reason: str) -> None:
    async with connection() as (server, upstream):
        server.answer = sent
        with pytest.raises(Unavailable) as failed:
            await upstream.call("add", {})
    assert failed.value.code == code, failed.value
    assert reason in failed.value.message


@pytest.mark.long
@settings(max_examples=50)
@given(body=st.binary(max_size=100), kind=st.sampled_from([JSON, EVENTS]), status=st.sampled_from([200, 400, 404, 500]))
async def test_any_answer_is_a_result_or_a_coded_error(body: bytes, kind: str, status: int) -> None:
    async with connection() as (server, upstream):
        server.answer = Answer(body, kind, status)
        with suppress(Unavailable):
            await upstream.call("add", {})


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        ("401 Unauthorized", "text/plain", "it answers 401: its headers need a token"),
        ("404 Not Found", "application/json", "it answers 404: there is no MCP server at this address"),
        ("500 Oops", "text/html", "it answers 500"),
        ("200 OK", "text/html", "it answers with a web page"),
    ],
)
async def test_an_address_that_is_no_server_says_how_it_answers(status: str, kind: str, said: str) -> None:
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answered(b"{}", status=status, kind=kind))

    async with (
        listening(answer) as listener,
        running(connecting(ServerAddress(listener.url, {})), check=1_000) as watched,
    ):
        upstream = await watched.until(lambda one: one.state is ServerState.FAILED)
        assert said in (upstream.problem or "")
