"""Calls without sessions: what is served directly is answered as the MCP package answers it, whatever is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workbench.shells.mcp import direct
from workbench.shells.mcp.backend import Context
from workbench.shells.mcp.direct import DirectCalls
from workbench.shells.mcp.tools import structured

pytestmark = pytest.mark.anyio

VERSION = "2026-07-28"
LARGEST = 5_000
META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": VERSION,
    "mcp-method": "tools/call",
    "mcp-name": "say",
}
SCHEMAS = {"count": {"type": "object", "properties": {"a": {"type": "integer", "x-mcp-header": "A"}}}}
"""Those that say which headers repeat arguments."""
PING = b": ping\r\n\r\n"
Answer = list[tuple[Any, ...]]


def call(**params: Any) -> dict[str, Any]:
    given = {"name": "say", "arguments": {"a": 1}, "_meta": META} | params
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": given}


async def say(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """A tool that does what its arguments say."""
    given = params.arguments or {}
    if "fail" in given:
        raise MCPError(given["fail"], "It failed.", {"why": None})
    if "defect" in given:
        raise RuntimeError("a defect")
    for step in range(given.get("steps", 0)):
        await ctx.session.report_progress(step, given.get("total"), given.get("message"))
    return structured({"given": given, "none": None, "name": params.name, "meta": dict(params.meta or {})})


async def nothing(ctx: Context, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[])


@pytest.fixture
async def manager() -> AsyncIterator[StreamableHTTPSessionManager]:
    """The package's server, running."""
    from mcp.server.lowlevel import Server

    server: Server[Any] = Server("test", get_tool_input_schema=SCHEMAS.get, on_call_tool=say, on_list_tools=nothing)
    made = StreamableHTTPSessionManager(server, max_request_body_size=LARGEST)
    async with made.run():
        yield made


@pytest.fixture
def ways(manager: StreamableHTTPSessionManager) -> dict[str, ASGIApp]:
    """Both ways in which a call is served."""
    return {"directly": DirectCalls(manager, LARGEST), "by the package": manager.asgi_app}


async def answer(
    app: ASGIApp,
    body: bytes,
    headers: Iterable[tuple[str, str]],
    method: str = "POST",
    then: Callable[[], Awaitable[Message]] | None = None,
    pieces: int = 1,
) -> Answer:
    """What an application answers to a request.

    Args:
        then: what is received after the request; by default nothing ever.
    """
    size = max(1, -(-len(body) // pieces))
    chunks = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    messages = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
        for number, chunk in enumerate(chunks, 1)
    ]
    sent: Answer = []

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        return await (then or asyncio.Event().wait)()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            sent.append((message["status"], sorted(message["headers"])))
        else:
            sent.append((message.get("body", b""), message.get("more_body", False)))

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "state": {},
    }
    await app(scope, receive, send)
    return sent


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


async def answers(ways: dict[str, ASGIApp], body: bytes, headers: Iterable[tuple[str, str]], **more: Any) -> Answer:
    """What both ways answer, which is the same."""
    found = [await answer(app, body, headers, **more) for app in ways.values()]
    assert found[0] == found[1]
    return found[0]


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in HEADERS.items() if key != name}


REQUESTS = {
    "a call": (call(), HEADERS, 200),
    "a call without arguments": ({**call(), "params": {"name": "say", "_meta": META}}, HEADERS, 200),
    "a call with a text as its number": ({**call(), "id": "seven"}, HEADERS, 200),
    "a number that is none": ({**call(), "id": True}, HEADERS, None),
    "a number that is null": ({**call(), "id": None}, HEADERS, 400),
    "a broken number": ({**call(), "id": 1.5}, HEADERS, 400),
    "no number": ({"jsonrpc": "2.0", "method": "tools/call", "params": call()["params"]}, HEADERS, 202),
    "another version of JSON-RPC": ({**call(), "jsonrpc": "1.0"}, HEADERS, 400),
    "more than a request has": ({**call(), "more": 1}, HEADERS, None),
    "a batch": ([call()], HEADERS, 400),
    "parameters in a list": ({**call(), "params": [1]}, HEADERS, 400),
    "no parameters": ({"jsonrpc": "2.0", "id": 7, "method": "tools/call"}, HEADERS, 400),
    "another method": ({**call(), "method": "tools/list"}, HEADERS, 400),
    "a list of tools": ({**call(), "method": "tools/list"}, HEADERS | {"mcp-method": "tools/list"}, 200),
    "another name": (call(name="shout"), HEADERS, 400),
    "a name in Base64": (call(name="grüße"), HEADERS | {"mcp-name": "=?base64?Z3LDvMOfZQ==?="}, 200),
    "no name": ({**call(), "params": {"arguments": {}, "_meta": META}}, HEADERS, 400),
    "a name that is no text": (call(name=5), HEADERS, 400),
    "arguments that are no object": (call(arguments=[1]), HEADERS, 400),
    "no envelope": ({**call(), "params": {"name": "say"}}, HEADERS, 400),
    "an envelope that is no object": (call(_meta=3), HEADERS, 400),
    "half an envelope": (call(_meta={"io.modelcontextprotocol/protocolVersion": VERSION}), HEADERS, 400),
    "capabilities that are none": (call(_meta=META | {"io.modelcontextprotocol/clientCapabilities": 5}), HEADERS, None),
    "another version in the envelope": (
        call(_meta=META | {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}),
        HEADERS,
        400,
    ),
    "a version that nobody knows": (call(), HEADERS | {"mcp-protocol-version": "3026-01-01"}, 400),
    "a client that says who it is": (
        call(_meta=META | {"io.modelcontextprotocol/clientInfo": {"name": "cli", "version": "1"}}),
        HEADERS,
        200,
    ),
    "an error of the protocol": (call(arguments={"fail": -32602}), HEADERS, 400),
    "another error of the protocol": (call(arguments={"fail": -32000}), HEADERS, 200),
    "a defect": (call(arguments={"defect": True}), HEADERS, 200),
    "reports that nobody wants": (call(arguments={"steps": 2}), HEADERS, 200),
    "reports": (call(arguments={"steps": 3, "total": 3}, _meta=META | {"progressToken": "t"}), HEADERS, 200),
    "a report with a message": (
        call(arguments={"steps": 1, "message": "one"}, _meta=META | {"progressToken": 0}),
        HEADERS,
        200,
    ),
    "reports without a usable token": (
        call(arguments={"steps": 1}, _meta=META | {"progressToken": True}),
        HEADERS,
        200,
    ),
    "another kind of content": (call(), HEADERS | {"content-type": "text/plain"}, 400),
    "no kind of content": (call(), without("content-type"), 400),
    "JSON of some kind": (call(), HEADERS | {"content-type": "Application/JSON; charset=utf-8"}, 200),
    "a client that takes no events": (call(), HEADERS | {"accept": "application/json"}, 406),
    "a client that takes everything": (call(), HEADERS | {"accept": "*/*"}, 200),
    "a client that says nothing of what it takes": (call(), without("accept"), 406),
    "no method in the headers": (call(), without("mcp-method"), 400),
    "no name in the headers": (call(), without("mcp-name"), 400),
    "an argument without its header": (call(name="count"), HEADERS | {"mcp-name": "count"}, 400),
    "an argument with its header": (call(name="count"), HEADERS | {"mcp-name": "count", "mcp-param-a": "1"}, 200),
    "an argument with the header of another": (
        call(name="count"),
        HEADERS | {"mcp-name": "count", "mcp-param-a": "2"},
        400,
    ),
    "a header of no argument": (call(), HEADERS | {"mcp-param-a": "1"}, 200),
    "too much": (call(arguments={"text": "x" * LARGEST}), HEADERS, 413),
}


@pytest.mark.parametrize("kind", REQUESTS)
@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_request_has_one_answer(ways: dict[str, ASGIApp], kind: str, pieces: int) -> None:
    message, headers, status = REQUESTS[kind]
    found = await answers(ways, encoded(message), headers.items(), pieces=pieces)
    assert status in (None, found[0][0])


@pytest.mark.parametrize("header", HEADERS)
async def test_a_header_that_is_sent_twice_has_one_answer(ways: dict[str, ASGIApp], header: str) -> None:
    for value in (HEADERS[header], "other"):
        await answers(ways, encoded(call()), [*HEADERS.items(), (header, value)])
        await answers(ways, encoded(call()), [(header, value), *HEADERS.items()])


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[" * 4_000, b'{"id": ' + b"9" * 4_500 + b"}", b"\xff", b"NaN"])
async def test_what_is_no_message_has_one_answer(ways: dict[str, ASGIApp], body: bytes) -> None:
    assert (await answers(ways, body, HEADERS.items()))[0][0] == 400


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_another_method_of_http_has_one_answer(ways: dict[str, ASGIApp], method: str) -> None:
    assert (await answers(ways, b"", HEADERS.items(), method=method))[0][0] == 405


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
PLACES = [(), ("jsonrpc",), ("id",), ("method",), ("params",), ("params", "name"), ("params", "arguments"), ("other",)]
IN_THE_ENVELOPE = [("params", "_meta"), *(("params", "_meta", key) for key in (*META, "progressToken", "other"))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES + IN_THE_ENVELOPE), value=JSON)
async def test_a_call_with_anything_in_any_place_has_one_answer(
    ways: dict[str, ASGIApp], place: tuple[str, ...], value: Any
) -> None:
    message = json.loads(encoded(call()))
    if place:
        inner = message
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
    else:
        message = value
    await answers(ways, encoded(message), HEADERS.items())


class Waiting:
    """A tool that waits until it may end, or is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.was_cancelled = False

    async def __call__(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return structured({"done": True})


@pytest.fixture
def waiting(manager: StreamableHTTPSessionManager) -> Waiting:
    """A tool that waits, instead of `say`."""
    tool = Waiting()
    manager.app.add_request_handler("tools/call", CallToolRequestParams, tool)
    return tool


@pytest.mark.parametrize("way", ["directly", "by the package"])
async def test_a_call_ends_when_its_client_leaves(ways: dict[str, ASGIApp], waiting: Waiting, way: str) -> None:
    async def leave() -> Message:
        await waiting.began.wait()
        return {"type": "http.disconnect"}

    assert await answer(ways[way], encoded(call()), HEADERS.items(), then=leave) == []
    assert waiting.was_cancelled


async def test_a_call_that_takes_long_is_kept_open_with_events(
    ways: dict[str, ASGIApp], waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "SECONDS_UNATTENDED", 0.0)
    monkeypatch.setattr(direct, "SECONDS_BETWEEN_EVENTS", 0.01)

    async def until_kept_open(scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            await send(message)
            if message.get("body") == PING:
                waiting.may_end.set()

        await ways["directly"](scope, receive, noting)

    (status, headers), *events, (last, more) = await answer(until_kept_open, encoded(call()), HEADERS.items())
    assert (status, more) == (200, False)
    assert (b"content-type", b"text/event-stream") in headers
    assert set(events) == {(PING, True)}
    assert json.loads(last.removeprefix(b"event: message\r\ndata: "))["result"]["structuredContent"] == {"done": True}
