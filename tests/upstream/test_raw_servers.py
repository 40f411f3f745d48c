"""Raw servers, each with one defect, on standard input and output: the good tools are called, the bad one is named."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.upstream.servers import connecting, running
from workbench.errors import WorkbenchError
from workbench.upstream.program_transport import ServerProgram

pytestmark = [pytest.mark.anyio, pytest.mark.long]

SCRIPT = Path(__file__).with_name("raw_server.py")
OBJECT: dict[str, Any] = {"type": "object"}
GOOD = {"name": "good", "inputSchema": OBJECT}
TEXT = {"type": "text", "text": "It has run."}
BEGUN = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}}
RUN = {"content": [TEXT]}
NO = "nobody"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def server(**changes: Any) -> dict[str, Any]:
    return {"answers": {"initialize": BEGUN, "tools/list": {"tools": [GOOD]}, "tools/call": RUN}} | changes


def listing(*bad: Any, **more: Any) -> dict[str, Any]:
    found = server()
    found["answers"]["tools/list"] = {"tools": [*bad, GOOD], **more}
    return found


def tool(schema: Any = OBJECT, **more: Any) -> dict[str, Any]:
    return {"name": "bad", "inputSchema": schema} | more


def good(schema: Any = OBJECT, **more: Any) -> dict[str, Any]:
    found = server()
    found["answers"]["tools/list"] = {"tools": [{"name": "good", "inputSchema": schema} | more]}
    return found


def argument(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


def begins(**changes: Any) -> dict[str, Any]:
    found = server()
    found["answers"]["initialize"] = {key: value for key, value in (BEGUN | changes).items() if value != NO}
    return found


def answers(**result: Any) -> dict[str, Any]:
    found = server()
    found["answers"]["tools/call"] = result
    return found


def sends(text: str) -> dict[str, Any]:
    return server(sent=text)


def response(**changes: Any) -> str:
    """The answer to a call, as JSON."""
    answer = {"jsonrpc": "2.0", "id": "ID", "result": RUN} | changes
    return json.dumps({key: value for key, value in answer.items() if value != NO})


def failure(error: Any) -> str:
    return response(result=NO, error=error)


BAD_TOOLS = {
    "no schema": (listing({"name": "bad"}), "bad: inputSchema: required"),
    "a schema of no schema's type": (listing(tool({"type": 3})), "bad: inputSchema.type: "),
    "a property of no schema's type": (listing(tool(argument(type=3))), "bad: the schema of its arguments is no JSON "),
    "a schema of null": (listing(tool(None)), "bad: inputSchema: "),
    "a schema that is a list": (listing(tool([])), "bad: inputSchema: "),
    "a schema of an array": (listing(tool({"type": "array"})), "bad: "),
    "a reference elsewhere": (
        listing(tool(argument(**{"$ref": "http://x.example/s"}))),
        "bad: the schema of its argum",
    ),
    "a schema too large": (
        listing(tool(argument(description="x" * 70_000))),
        "bad: the schema of its arguments is lar",
    ),
    "no name": (listing({"inputSchema": OBJECT}), "None: name: required"),
    "an empty name": (listing(tool(name="")), "the name '' is empty"),
    "a name that is no text": (listing(tool(name=7)), "7: name: "),
    "a name that acts on a terminal": (listing(tool(name="a\x1b[2J")), "the name "),
    "a name twice": (listing(GOOD), "good is listed twice"),
    "a tool that is a number": (listing(5), "entry 1 is no tool"),
    "icons that are none": (good(icons=[{"src": 3}]), "good is used without its icons: "),
    "annotations that are a text": (good(annotations="reads"), "good is used without its annotations: "),
    "a description that is a number": (good(description=3), "good is used without its description: "),
    "a title that is a list": (good(title=[]), "good is used without its title: "),
    "metadata that is a text": (good(_meta="x"), "good is used without its _meta: "),
}
"""What is odd in a list, and what is said of it."""

ODD_SERVERS = {
    "an output schema of nothing": good(outputSchema={}),
    "an output schema without its type": good(outputSchema={"description": "no type"}),
    "an output schema that is none": good(outputSchema={"type": 3}),
    "an input schema without its type": good({}),
    "a tuple of draft 7": good(argument(items=[{"type": "number"}]) | {"$schema": DRAFT_7}),
    "a bound of draft 4": good(argument(minimum=0, exclusiveMinimum=True)),
    "a pattern of JavaScript": good(argument(type="string", pattern=r"^(?<y>\p{L})$")),
    "a draft that nobody knows": good({**OBJECT, "$schema": "http://x.example/mine#"}),
    "an empty cursor": listing(nextCursor=""),
    "the same cursor again": good() | {"answers": listing(nextCursor="again")["answers"]},
    "a cursor that is a number": listing(nextCursor=7),
    "no capabilities": begins(capabilities={}),
    "capabilities of null": begins(capabilities=None),
    "no name of its own": begins(serverInfo=NO),
    "no version of its own": begins(serverInfo={"name": "raw"}),
    "instructions that are a list": begins(instructions=["x"]),
    "a banner on its output": server(before="raw server 1.0 is listening"),
    "a JSON value on its output": server(before='{"level": "info"}'),
    "a mark at the beginning": server(before="\ufeff"),
    "carriage returns": server(end="\r\n"),
    "a content part of a kind that nobody knows": answers(content=[{"type": "hologram"}, TEXT]),
    "a content part that is none": answers(content=[5, TEXT]),
    "content that is one part": answers(content=TEXT),
    "content that is a text": answers(content="It has run."),
    "an error flag that is a text": answers(content=[TEXT], isError="false"),
    "an error flag of null": answers(content=[TEXT], isError=None),
    "metadata of a result that is a text": answers(content=[TEXT], _meta="x"),
    "structured content that is a list": answers(content=[TEXT], structuredContent=[1]),
    "an id that is a text": sends(response(id="NUMBER")),
    "no version of JSON-RPC": sends(response(jsonrpc=NO)),
    "a result and an error of null": sends(response(error=None)),
    "a byte that is no UTF-8": sends(response().replace("run.", "run.\udcff")),
    "an answer twice": sends(f"{response()}\n{response()}"),
    "a notification that nobody knows": server(asks=[{"jsonrpc": "2.0", "method": "notifications/x"}]),
    "a log without its data": server(asks=[{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}]),
    "a request that nobody knows": server(asks=[{"jsonrpc": "2.0", "id": 900, "method": "x/y"}]),
    "a question for roots": server(asks=[{"jsonrpc": "2.0", "id": 901, "method": "roots/list"}]),
}  # fmt: skip
"""What is odd in a server whose tool can be called."""

REFUSALS = {
    "an error of the server's own": (failure({"code": -32000, "message": "quota exceeded"}), "quota exceeded"),
    "an error without a text": (failure({"code": 5}), "not as the protocol says"),
    "an error that is a text": (failure("quota exceeded"), "quota exceeded"),
    "a result of null": (response(result=None), "not as the protocol says"),
}
"""Answers that are no results, and what the caller is told at once."""


async def use(says: dict[str, Any], *roots: Path) -> tuple[list[str], tuple[str, ...], str]:
    """The tools of a server, what is said of it, and the text that its good tool returns, or its error."""
    program = ServerProgram(
        [sys.executable, "-I", "-S", str(SCRIPT), json.dumps(says)], dict(os.environ), SCRIPT.parent, roots
    )
    async with running(connecting(program), check=1_000) as watched:
        upstream = await watched.until(lambda one: one.state in ("ready", "failed"))
        if upstream.problem:
            return [], (upstream.problem,), ""
        try:
            async with asyncio.timeout(100):
                found = await upstream.call("good", {})
        except (WorkbenchError, TimeoutError) as error:
            return list(upstream.offers.tools), upstream.offers.problems, f"{error!r}"
        return list(upstream.offers.tools), upstream.offers.problems, str(found.content)


async def test_the_good_tools_of_servers_with_a_bad_one_are_called_and_the_bad_one_is_named() -> None:
    wrong: dict[str, Any] = {}
    used = await asyncio.gather(*(use(says) for says, _ in BAD_TOOLS.values()))
    for (name, (_, expected)), (tools, problems, text) in zip(BAD_TOOLS.items(), used, strict=True):
        if tools != ["good"] or "It has run." not in text or not any(one.startswith(expected) for one in problems):
            wrong[name] = tools, problems, text
    assert wrong == {}


async def test_the_tools_of_a_server_with_one_defect_elsewhere_are_called() -> None:
    used = await asyncio.gather(*map(use, ODD_SERVERS.values()))
    wrong = {name: found for name, found in zip(ODD_SERVERS, used, strict=True) if "It has run." not in found[2]}
    assert wrong == {}


async def test_the_caller_is_told_what_a_server_answered_in_place_of_a_result() -> None:
    wrong = {name: found for name, (sent, said) in REFUSALS.items() if said not in (found := await use(sends(sent)))[2]}
    assert wrong == {}


async def test_a_program_is_told_its_roots_and_that_nobody_was_asked(tmp_path: Path) -> None:
    asks = {"jsonrpc": "2.0", "id": 901, "method": "roots/list"}
    assert tmp_path.as_uri() in (await use(server(asks=[asks], repeats=True), tmp_path))[2]
    question = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
    elicits = {"jsonrpc": "2.0", "id": 902, "method": "elicitation/create", "params": question}
    assert '"action":"cancel"' in (await use(server(asks=[elicits], repeats=True)))[2].replace(" ", "")
