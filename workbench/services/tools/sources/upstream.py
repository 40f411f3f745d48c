"""The tools of MCP servers: those of the project, and those of the definition for which tools are called."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from workbench.client.mended import structured_content
from workbench.errors import Unavailable
from workbench.ops import Ctx, first_problems
from workbench.rules.secrets.mask import Mask
from workbench.rules.tools.arguments import problems
from workbench.rules.tools.content import as_text, masked, note
from workbench.rules.tools.names import qualified
from workbench.services.definitions import tool_names
from workbench.services.tools import questions
from workbench.services.tools.servers import connections
from workbench.services.tools.tool import (
    Hints,
    Offerer,
    OffererKind,
    ToolInfo,
    ToolInvocation,
    ToolKind,
    ToolOutcome,
    ToolPlace,
    ToolScope,
)
from workbench.upstream.call import Ask, ElicitationReply, ServerQuestion
from workbench.upstream.connection import ServerState, Upstream
from workbench.upstream.connections import Key
from workbench.upstream.offers import ServerToolOffer

_TWOFOLD = "the project and the definition both have an MCP server named {}; give one of them another name"


def server_names(ctx: Ctx, scope: ToolScope) -> set[str]:
    """The names of the servers for a scope: definitions and agents offer tools with names of the same form."""
    of_definition = scope.definition.definition.mcp_servers if scope.definition is not None else {}
    return {*ctx.local.upstreams.all(connections.OWNER), *of_definition}


async def tools(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    """The tools that the servers listed last, also of those that are down. A name that servers of the definition and of
    the project have means neither, so that no grant or permission for one is used for the other."""
    twofold = await _shared_names(ctx, scope)
    return [
        replace(tool, problem=_TWOFOLD.format(key.name)) if key.name.lower() in twofold else tool
        for key, upstream in (await _servers(ctx, scope)).items()
        for tool in _tools(ctx, scope, key, upstream)
    ]


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    """The tool with a name; waits for a server that is being started and could have it."""
    for key, upstream in (await _servers(ctx, scope)).items():
        if name not in upstream.offers.names and not name.startswith(f"{key.name}__"):
            continue
        await upstream.settled()
        if (own := upstream.offers.names.get(name)) is not None:
            tool = _tool(ctx, _offerer(ctx, scope, key), key, upstream, name, upstream.offers.tools[own])
            twofold = key.name.lower() in await _shared_names(ctx, scope)
            return replace(tool, problem=_TWOFOLD.format(key.name)) if twofold else tool
    return None


async def _shared_names(ctx: Ctx, scope: ToolScope) -> set[str]:
    """The names that mean two servers in a scope, in lower case."""
    if scope.definition is None:
        return set()
    shared = await to_thread(tool_names.shared_with_project, ctx, scope.definition.definition)
    return {name.lower() for name in shared}


async def _servers(ctx: Ctx, scope: ToolScope) -> Mapping[Key, Upstream]:
    """The servers for a scope, by name; one of the definition stands for both that have a name."""
    servers = {
        name: (connections.OWNER, upstream) for name, upstream in ctx.local.upstreams.all(connections.OWNER).items()
    }
    if scope.definition is not None:
        owner = scope.definition.definition.metadata.id
        own = await connections.of_definition(ctx, scope.definition)
        servers |= {name: (owner, upstream) for name, upstream in own.items()}
    return {Key(owner, name): upstream for name, (owner, upstream) in sorted(servers.items())}


def _tools(ctx: Ctx, scope: ToolScope, key: Key, upstream: Upstream) -> Iterator[ToolInfo]:
    offerer = _offerer(ctx, scope, key)
    for name, offer in zip(upstream.offers.names, upstream.offers.tools.values(), strict=True):
        yield _tool(ctx, offerer, key, upstream, name, offer)


def _tool(ctx: Ctx, offerer: Offerer, key: Key, upstream: Upstream, name: str, offer: ServerToolOffer) -> ToolInfo:
    """A tool of a server. Nothing that the server says of it shows secrets."""
    mask, shown = ctx.secrets.mask, ctx.local.upstreams.knowledge(key).without_secrets(offer, ctx.secrets.mask)
    return ToolInfo(
        name=name,
        title=shown.title or offer.name,
        description=shown.description,
        parameters=shown.parameters,
        result=shown.result,
        source=ToolPlace.MCP,
        kind=ToolKind.MCP,
        server=key.name,
        own_name=offer.name,
        hints=_hints(offer.hints),
        problem=mask.text(_problem(ctx, key, upstream)) or None,
        version=mask.text(upstream.about) or None,
        run=partial(_run, key, offer.name),
        offered_by=offerer,
    )


def _offerer(ctx: Ctx, scope: ToolScope, key: Key) -> Offerer:
    """The project or the definition that has configured a server, and how."""
    configuration = ctx.local.upstreams.fingerprint(key)
    if key.owner == connections.OWNER or scope.definition is None:
        return Offerer(OffererKind.PROJECT, configuration=configuration)
    name = scope.definition.definition.metadata.name
    return Offerer(OffererKind.DEFINITION, key.owner, name, configuration)


def _mask(ctx: Ctx, key: Key) -> Mask:
    """Masks, in the answers of a server, the secrets that it was given and no others."""
    return Mask(ctx.local.upstreams.knowledge(key).secrets, forms=False)


def _problem(ctx: Ctx, key: Key, upstream: Upstream) -> str:
    """Why a server's tools cannot be called now; empty if they can."""
    if upstream.state is ServerState.READY:
        return ""
    reason = f": {ctx.local.upstreams.knowledge(key).reason(upstream.problem)}" if upstream.problem else ""
    return f"the MCP server {key.name} is {upstream.state}{reason}"


def _hints(said: Mapping[str, bool]) -> Hints:
    """The hints of a server, with the defaults of the protocol."""
    reads = said.get("readOnlyHint", False)
    return Hints(
        read_only=reads,
        destructive=not reads and said.get("destructiveHint", True),
        idempotent=said.get("idempotentHint", False),
        open_world=said.get("openWorldHint", True),
    )


async def _run(key: Key, tool: str, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    upstream = ctx.local.upstreams.use(key)
    if upstream is None:
        raise Unavailable("TOOL_SERVER_DOWN", f"The MCP server {key.name} was stopped.", server=key.name)
    mask, progress = _mask(ctx, key), call.surroundings.progress
    answer = await upstream.call(tool, dict(call.arguments), progress, _asker(ctx, key, tool, call))
    content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in answer.content]
    structured = structured_content(answer)
    if not answer.is_error and structured is not None and (wrong := await _wrong(upstream, tool, structured)):
        content.append(note(f"[The structured content does not fit its schema: {wrong}.]"))
    if answer.is_error and (refusals := await to_thread(ctx.local.upstreams.knowledge(key).explain, _lines(content))):
        content.append(note(refusals))
    return ToolOutcome(masked(content, mask.data), mask.data(structured), bool(answer.is_error))


def _lines(content: Sequence[Mapping[str, Any]]) -> list[str]:
    return as_text(content).splitlines()


async def _wrong(upstream: Upstream, tool: str, structured: Any) -> str:
    """How structured content differs from what the tool declares; empty if it does not."""
    offer = upstream.offers.tools.get(tool)
    if offer is None or offer.result is None:
        return ""
    return first_problems(await to_thread(problems, json.dumps(offer.result), structured))


def _asker(ctx: Ctx, key: Key, tool: str, call: ToolInvocation) -> Ask:
    """Asks the person at the client that calls, if it can show forms, and else the operator in the inbox, as for links:
    a client is not to open them."""
    mask = _mask(ctx, key)

    async def ask(question: ServerQuestion) -> ElicitationReply:
        question = questions.masked(question, mask)
        elicit = None if question.url else await questions.of_client(ctx, call)
        if elicit is None:
            return await questions.ask(ctx, call, qualified(key.name, tool), key.name, question)
        answer = await elicit(question.message, question.schema)
        return ElicitationReply(answer["action"], answer.get("content"))

    return ask
