"""Features that the suite expects and Workbench does not have: logs, sampling, roots, completion, and prompts and
resources of the suite's own. They are added to Workbench's server, and asked before what that has.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolRequestParams,
    CompleteRequestParams,
    CreateMessageRequest,
    CreateMessageResult,
    GetPromptRequestParams,
    InputResponseRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    Tool,
)

from tests.shells.mcp.suite.content import IMAGE, PNG, Block, as_json, form, resource, sampling, text
from workbench.shells.mcp.backend import Context

MISSING_CAPABILITY = -32021
SECONDS_BETWEEN_LOGS = 0.05
SCHEME = "test://"
INPUT = "test_input_required_result_"
COMPLETE: Block = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ANYTHING: Block = {"type": "object"}
HEADER = "test_x_mcp_header"
WITH_HEADER: Block = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}

NAME = form("What is your name?", "name", name={"type": "string"})
CONTEXT = form("What context should the prompt use?", "context", context={"type": "string"})
CAPITAL, GREETING = sampling("What is the capital of France?", 100), sampling("Generate a greeting", 50)
ROOTS = {"method": "roots/list", "params": {}}

Answer = dict[str, Any] | None
Handler = Callable[[Context, Any], Awaitable[Answer]]


# Tools


async def log(ctx: Context, params: CallToolRequestParams) -> Answer:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
        await sending
        await asyncio.sleep(SECONDS_BETWEEN_LOGS)
    return {"content": [text("It has logged.")]}


async def sample(ctx: Context, params: CallToolRequestParams) -> Answer:
    request = CreateMessageRequest.model_validate(sampling((params.arguments or {})["prompt"], 100))
    here = ServerMessageMetadata(related_request_id=ctx.request_id)
    made = await ctx.session.send_request(request, CreateMessageResult, metadata=here)
    return {"content": [text(f"LLM response: {made.content}")]}


async def reconnect(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Close the stream before the answer."""
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    return {"content": [text("The stream was closed.")]}


async def need_sampling(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Refuse a client that cannot sample."""
    if "sampling" in declared(ctx):
        return {"content": [text("The client can sample.")]}
    raise MCPError(MISSING_CAPABILITY, "This tool needs sampling.", {"requiredCapabilities": {"sampling": {}}})


async def echo(ctx: Context, params: CallToolRequestParams) -> Answer:
    return {"content": [text(as_json(params.arguments))]}


def asking(**questions: Block) -> Handler:
    """A tool that answers once it has the answers to its questions."""

    async def ask(ctx: Context, params: CallToolRequestParams) -> Answer:
        return still_asked(params, questions) or {"content": [text(f"It was told {answers(params)}.")]}

    return ask


async def ask_what_is_possible(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Ask only what the client can answer."""
    possible = {"elicitation": NAME, "sampling": GREETING}
    return await asking(**{kind: possible[kind] for kind in possible if kind in declared(ctx)})(ctx, params)


def still_asked(params: InputResponseRequestParams, questions: dict[str, Block]) -> Answer:
    """The questions, unless all of them are answered."""
    if questions.keys() <= answers(params).keys():
        return None
    return {"resultType": "input_required", "inputRequests": questions, "requestState": "asked"}


def answers(params: InputResponseRequestParams) -> dict[str, Any]:
    return {name: answer.model_dump(by_alias=True) for name, answer in (params.input_responses or {}).items()}


def declared(ctx: Context) -> set[str]:
    """The capabilities that the client declares."""
    found = ctx.session.client_capabilities
    return set() if found is None else set(found.model_dump(exclude_none=True))


TOOLS: dict[str, Handler] = {
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_sampling": sample,
    "test_reconnection": reconnect,
    "test_missing_capability": need_sampling,
    HEADER: echo,
    f"{INPUT}elicitation": asking(user_name=NAME),
    f"{INPUT}sampling": asking(capital_question=CAPITAL),
    f"{INPUT}list_roots": asking(client_roots=ROOTS),
    f"{INPUT}multiple_inputs": asking(user_name=NAME, greeting=GREETING, client_roots=ROOTS),
    f"{INPUT}capabilities": ask_what_is_possible,
}


async def call(ctx: Context, params: CallToolRequestParams) -> Answer:
    handler = TOOLS.get(params.name)
    return None if handler is None else await handler(ctx, params)


def schema_of(name: str) -> Block | None:
    """The schema of a tool whose argument is also sent as a header."""
    return WITH_HEADER if name == HEADER else None


# Prompts and resources


async def prompt(ctx: Context, params: GetPromptRequestParams) -> Answer:
    given = params.arguments or {}
    messages = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            resource(given.get("resourceUri", SCHEME), "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
        f"{INPUT}prompt": [text(f"The context is {answers(params)}.")],
    }.get(params.name)
    if params.name == f"{INPUT}prompt" and (asked := still_asked(params, {"user_context": CONTEXT})):
        return asked
    return messages and {"messages": [{"role": "user", "content": block} for block in messages]}


async def read(ctx: Context, params: ReadResourceRequestParams) -> Answer:
    if params.uri == f"{SCHEME}static-binary":
        return {"contents": [{"uri": params.uri, "mimeType": "image/png", "blob": PNG}]}
    if params.uri == f"{SCHEME}static-text":
        said = "This is the content of the static text resource."
        return {"contents": [resource(params.uri, said)["resource"]]}
    if match := re.fullmatch(f"{SCHEME}template/(.+)/data", params.uri):
        made = as_json({"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"})
        return {"contents": [resource(params.uri, made, "application/json")["resource"]]}
    return None


async def watch(ctx: Context, params: SubscribeRequestParams) -> Answer:
    """Resources of the suite never change."""
    return {} if params.uri.startswith(SCHEME) else None


async def complete(ctx: Context, params: CompleteRequestParams) -> Answer:
    return COMPLETE | {"completion": {"values": [], "total": 0, "hasMore": False}}


async def set_level(ctx: Context, params: SetLevelRequestParams) -> Answer:
    return {}


def load(server: Server[Any]) -> None:
    precede(server, "tools/call", call)
    precede(server, "prompts/get", prompt)
    precede(server, "resources/read", read)
    precede(server, "resources/subscribe", watch)
    precede(server, "resources/unsubscribe", watch)
    server.add_request_handler("completion/complete", CompleteRequestParams, complete)
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    server.get_tool_input_schema = schema_of
    list_more(server)


def precede(server: Server[Any], method: str, handler: Handler) -> None:
    """Answer requests with a handler; those for which it returns nothing, as before."""
    before = server.get_request_handler(method)
    assert before is not None

    async def handle(ctx: Context, params: Any) -> HandlerResult:
        found = await handler(ctx, params)
        return await before.handler(ctx, params) if found is None else found and COMPLETE | found

    server.add_request_handler(method, before.params_type, handle)


def list_more(server: Server[Any]) -> None:
    """List these tools after the others."""
    before = server.get_request_handler("tools/list")
    assert before is not None

    async def handle(ctx: Context, params: PaginatedRequestParams) -> HandlerResult:
        listed: Any = await before.handler(ctx, params)
        more = [Tool(name=name, description=name, input_schema=schema_of(name) or ANYTHING) for name in TOOLS]
        return listed.model_copy(update={"tools": [*listed.tools, *more]})

    server.add_request_handler("tools/list", before.params_type, handle)
