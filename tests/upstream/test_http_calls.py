"""Calls over HTTP without sessions: what a server may answer, and what it should not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

from tests.upstream.listener import Request, answered, listening
from workbench.upstream.errors import is_lost, is_too_large, refused
from workbench.upstream.http_calls import HttpCalls
from workbench.upstream.http_posts import posts, through
from workbench.upstream.http_transport import http_client
from workbench.upstream.target import Address

pytestmark = pytest.mark.anyio

LARGEST = 1_000
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "add"}
PARAMS = {"name": "add", "arguments": {"a": 1}, "_meta": {"some": "thing"}}
RESULT = {"content": [], "isError": False}
JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass
class Server:
    """A server that answers everything in one way."""

    body: bytes
    kind: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.asked.append(json.loads(request.body))
        headers = [f"{name}: {value}" for name, value in self.headers.items()]
        writer.write(answered(self.body, *headers, status=f"{self.status} Status", kind=self.kind))


class Others:
    """Another dispatcher, which says what it was given."""

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        return {"sent by the other one": method}

    async def notify(self, *_: Any) -> None: ...

    async def run(self, *_: Any, **__: Any) -> None: ...


Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture(params=["by our own connections", "by httpx2"], scope="module")
def call(request: pytest.FixtureRequest) -> Call:
    """Calls a server's tool; what that returns. Whichever way it is sent, the answer has one meaning."""

    async def call(server: Server, method: str = "tools/call", **options: Any) -> dict[str, Any]:
        opts: CallOptions = {"headers": dict(MODERN), **options}  # type: ignore[typeddict-item]
        async with AsyncExitStack() as stack:
            listener = await stack.enter_async_context(listening(server))
            http = await stack.enter_async_context(http_client(Address(listener.url, {}), 2 * LARGEST))
            post = through(http, listener.url)
            if request.param == "by our own connections":
                post = await stack.enter_async_context(posts(http, listener.url, 2 * LARGEST))
            return await HttpCalls(Others(), post, LARGEST).send_raw_request(method, PARAMS, opts)

    return call


def answer(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "call-1", **message}).encode()


def event(**message: Any) -> bytes:
    """A JSON-RPC message as an event of a stream."""
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


async def test_a_call_is_one_request_with_the_parameters_and_headers_that_it_was_given(call: Call) -> None:
    server = Server(answer(result=RESULT))
    assert await call(server) == RESULT
    assert server.asked == [{"jsonrpc": "2.0", "id": "call-1", "method": "tools/call", "params": PARAMS}]


async def test_everything_but_calls_without_sessions_or_redirects_is_left_to_the_other_dispatcher(call: Call) -> None:
    server = Server(answer(result=RESULT))
    assert await call(server, "tools/list") == {"sent by the other one": "tools/list"}
    old = {"mcp-protocol-version": "2025-11-25"}
    assert await call(server, headers=old) == {"sent by the other one": "tools/call"}
    assert not server.asked
    server = Server(b"", status=307, headers={"Location": "/mcp/"})
    assert await call(server) == {"sent by the other one": "tools/call"}


async def test_progress_on_the_stream_of_the_answer_is_reported(call: Call) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    progress = "notifications/progress"
    server = Server(
        b": ping\n\n"
        + event(method=progress, params={"progress": 1, "total": 2, "message": "one"})
        + event(method=progress, params={"progress": 2, "total": "many"})
        + event(method=progress, params={"progress": "some"})
        + event(method="notifications/message", params={"level": "info", "data": "hello"})
        + event(id="call-1", result=RESULT)
        + event(id="call-1", error={"code": 1, "message": "too late"}),
        EVENTS,
    )
    assert await call(server, on_progress=note) == RESULT
    assert steps == [(1, 2, "one"), (2, None, None)]
    assert server.asked[0]["params"]["_meta"] == {"some": "thing", "progressToken": "call-1"}


ERROR = {"code": -32001, "message": "no", "data": {"why": "so"}}


@pytest.mark.parametrize(
    ("server", "code"),
    [
        (Server(answer(error=ERROR)), -32001),
        (Server(answer(error=ERROR), status=400), -32001),
        (Server(event(id="call-1", error=ERROR), EVENTS), -32001),
        (Server(b"Not Found", "text/plain", 404), METHOD_NOT_FOUND),
        (Server(b"no JSON", status=404), METHOD_NOT_FOUND),
        (Server(b"<html>", "text/html", 502), INTERNAL_ERROR),
        (Server(b"<html>", "text/html"), INVALID_REQUEST),
        (Server(b"", status=202), PARSE_ERROR),
        (Server(b"[]"), PARSE_ERROR),
        (Server(b"[" * 1_900), PARSE_ERROR),
        (Server(b"[" * 100_000), PARSE_ERROR),
        (Server(answer(result="text")), PARSE_ERROR),
        (Server(answer(error={"code": "one", "message": "no"})), PARSE_ERROR),
        (Server(b"data: no JSON\n\n", EVENTS), PARSE_ERROR),
        (Server(b": nothing\n\n", EVENTS), CONNECTION_CLOSED),
        (Server(event(id=1, result={"text": "x" * LARGEST}), EVENTS), CONNECTION_CLOSED),
    ],
)
async def test_what_is_no_result_is_an_error_of_the_protocol(call: Call, server: Server, code: int) -> None:
    with pytest.raises(MCPError) as failed:
        await call(server)
    assert failed.value.code == code
    if code == ERROR["code"]:
        assert (failed.value.message, failed.value.error.data) == (ERROR["message"], ERROR["data"])


async def test_an_event_that_is_too_large_and_a_stream_without_an_answer_are_told_apart(call: Call) -> None:
    for body, is_large in ((event(id=1, result={"text": "x" * LARGEST}), True), (b"", False)):
        with pytest.raises(MCPError) as failed:
            await call(Server(body, EVENTS))
        assert (is_too_large(failed.value), is_lost(failed.value)) == (is_large, not is_large)


async def test_what_a_server_says_with_the_code_of_a_closed_connection_is_its_own_error(call: Call) -> None:
    with pytest.raises(MCPError) as failed:
        await call(Server(answer(error={"code": CONNECTION_CLOSED, "message": "quota exceeded"})))
    assert (is_lost(failed.value), refused("small", failed.value).message) == (
        False,
        "The MCP server small answered with an error: quota exceeded.",
    )


@given(body=st.binary(max_size=100), kind=st.sampled_from([JSON, EVENTS]), status=st.sampled_from([200, 400, 404, 500]))
async def test_any_answer_is_a_result_or_an_error_of_the_protocol(
    call: Call, body: bytes, kind: str, status: int
) -> None:
    with suppress(MCPError):
        assert isinstance(await call(Server(body, kind, status)), dict)
