"""A deviation of a server from the protocol costs only the malformed part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.upstream.answering import ADD, Answer, connection
from workbench.client.mended import mend, structured_content

pytestmark = pytest.mark.anyio

TEXT = {"type": "text", "text": "It has run."}


async def test_a_malformed_tool_is_named_and_the_others_are_called() -> None:
    async with connection(tools=[ADD, {"name": "bad"}, 5, {**ADD, "name": "odd", "outputSchema": {}}]) as (
        server,
        upstream,
    ):
        assert list(upstream.offers.tools) == ["add", "odd"]
        assert upstream.offers.problems == ("bad: inputSchema: required", "entry 3 is no tool")
        assert upstream.offers.left_out == 2
        server.answer = result(content=[TEXT])
        assert (await upstream.call("odd", {})).content


async def test_a_tool_whose_headers_the_client_refuses_is_named() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer", "x-mcp-header": "not a token"}}}
    async with connection(tools=[ADD, {"name": "bad", "inputSchema": schema}]) as (_, upstream):
        [problem] = upstream.offers.problems
        assert problem.startswith("bad: ")
        assert "x-mcp-header" in problem


@pytest.mark.parametrize(("cursor", "asked"), [("", [None]), ("again", [None, "again"])])
async def test_a_cursor_that_leads_nowhere_ends_the_list(cursor: str, asked: list[str | None]) -> None:
    async with connection(nextCursor=cursor) as (server, upstream):
        assert server.lists[: len(asked)] == asked
        assert server.lists.count(cursor) == cursor.count("again")
        assert (list(upstream.offers.tools), upstream.offers.problems) == (["add"], ())


def result(**message: Any) -> Answer:
    whole = {"jsonrpc": "2.0", "id": "ID", "result": {"resultType": "complete", **message}}
    return Answer(json.dumps(whole).encode())


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("sent", "texts", "structured"),
    [
        ({"structuredContent": {"n": 1}}, [], {"n": 1}),
        ({"structuredContent": [1, 2]}, [], [1, 2]),
        ({"content": None, "structuredContent": 3}, [], 3),
        (
            {"content": [TEXT, {"type": "hologram"}]},
            ["It has run.", "'hologram', is of a kind that is not known"],
            None,
        ),
        ({"content": [{"type": "image"}, 5, TEXT]}, ["'image', is malformed", "'None', is of a kind", "has run"], None),
        ({"content": "It has run."}, ["It has run."], None),
        ({"content": TEXT}, ["It has run."], None),
    ],
)
def test_the_readable_parts_of_a_malformed_result_are_returned(
    version: str, sent: dict[str, Any], texts: list[str], structured: Any
) -> None:
    from mcp.types import CallToolResult
    from mcp.types.methods import validate_server_result

    answer = {"resultType": "complete", **json.loads(json.dumps(sent))}
    mend(answer, lambda: version)
    validate_server_result("tools/call", version, answer)
    found = CallToolResult.model_validate(answer, by_name=False)
    assert len(found.content) == len(texts)
    assert all(text in part.text for text, part in zip(texts, found.content, strict=True) if part.type == "text")
    assert structured_content(found) == structured


async def test_a_result_that_does_not_fit_what_its_tool_declares_is_returned() -> None:
    declared = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with connection(tools=[{**ADD, "outputSchema": declared}]) as (server, upstream):
        server.answer = result(content=[TEXT], structuredContent={"n": "many"})
        found = await upstream.call("add", {})
        assert (len(found.content), found.structured_content) == (1, {"n": "many"})
        assert upstream.offers.tools["add"].result == declared
