"""The catalogue: every tool that can be called here, whatever its source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Access, Capability, Level, Wire
from workbench.ops import Caller, Command, Ctx, RestRoute, op
from workbench.rules.definitions.model import Definition
from workbench.rules.naming import similar, suggestion
from workbench.rules.tools.names import SEPARATOR
from workbench.rules.tools.servers import NETWORK, RESERVED
from workbench.services.access.authentication import OWN_TRAITS
from workbench.services.tools import peers, permissions
from workbench.services.tools.servers import connections
from workbench.services.tools.sources import SOURCES, ToolSource, operations, traits, upstream
from workbench.services.tools.tool import ToolInfo, ToolKind, ToolPlace, ToolScope
from workbench.upstream.connection import ServerState

DEPTH = 3
"""How far references and alternatives are followed for the types of an argument."""
WORDS = frozenset({"*", OWN_TRAITS, *RESERVED})
"""Words of choices and grants that are no names."""
NOBODYS = ToolScope(Caller(Level.OPERATOR, "nobody", access=Access.SESSION_LEVEL), conversation_id="")
"""The scope of what agents and models may be granted: without what only a person may do."""
ToolName = Annotated[str, Field(min_length=1, max_length=200, description="The tool's name; see list_tools.")]


class _Tool(Wire):
    """A tool. `source`: local, or mcp if it runs elsewhere. `server`: its MCP server, or the definition or agent that
    has it. `offered_by`: workbench, notebook, project, definition:ID or node:RID; `offerer_name`: of the process,
    definition or node. `problem`: why it cannot be called now."""

    name: str
    title: str
    description: str
    source: ToolPlace
    kind: ToolKind
    server: str | None
    offered_by: str
    offerer_name: str
    read_only: bool
    destructive: bool
    problem: str | None


class ToolParameter(Wire):
    """An argument of a tool. `type`: as JSON Schema names it; several by commas, none: any."""

    name: str
    type: str
    required: bool


class ToolSummary(_Tool):
    """A tool, with its arguments in short; `get_tool` has their schema."""

    parameters: list[ToolParameter]


class ToolDetails(_Tool):
    """A tool with the JSON Schemas of its arguments and, if it is known, of its result."""

    parameters: dict[str, Any]
    result: dict[str, Any] | None
    idempotent: bool
    open_world: bool
    version: str | None


class ToolList(Wire):
    """The tools that the caller may call, by source."""

    tools: list[ToolSummary]


@op(
    allow=Level.READ,
    reads=True,
    requires=Capability.TOOLS,
    command="tools",
    rest=RestRoute("GET", "/tools", rows="tools", enveloped=False),
    refreshed_by="tool_server personality peer clock",
)
async def list_tools(
    ctx: Ctx,
    search: Annotated[str, Field(max_length=200, description="Words in the name or description.")] = "",
    source: Annotated[ToolPlace | None, Field(description="Only local or mcp.")] = None,
    kind: Annotated[ToolKind | None, Field(description="Only operation, function, definition, mcp or trait.")] = None,
    server: Annotated[
        str | None, Field(max_length=100, description="Only tools of this MCP server, definition or agent.")
    ] = None,
) -> ToolList:
    """List the tools that call_tool can call.

    They are operations, functions of notebooks, tools of MCP servers and of definitions, and traits of agents on the
    network.
    """
    words = search.lower().split()
    tools = [
        tool
        for tool in await offered(ctx, ToolScope(ctx.caller))
        if (source is None or tool.source is source)
        and (kind is None or tool.kind is kind)
        and (server is None or tool.server == server)
        and all(word in f"{tool.name} {tool.description}".lower() for word in words)
    ]
    return ToolList(tools=[ToolSummary(**_summary(tool), parameters=_parameters(tool.parameters)) for tool in tools])


@op(
    allow=Level.READ,
    reads=True,
    requires=Capability.TOOLS,
    command=Command("tools show NAME", offers={"name": "tools"}),
    rest=RestRoute("GET", "/tools/{name}"),
)
async def get_tool(ctx: Ctx, name: ToolName) -> ToolDetails:
    """Get a tool with the JSON Schemas of its arguments and its result."""
    tool = await find(ctx, ToolScope(ctx.caller), name)
    return ToolDetails(
        **_summary(tool),
        parameters=dict(tool.parameters),
        result=dict(tool.result) if tool.result is not None else None,
        idempotent=tool.hints.idempotent,
        open_world=tool.hints.open_world,
        version=tool.version,
    )


async def offered(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    """The tools that a scope may use, without those that the operator has forbidden."""
    granted: dict[str, ToolInfo] = {}
    for source in _sources(scope):
        for tool in await source.tools(ctx, scope):
            if tool.is_granted_to(scope.caller):
                granted.setdefault(tool.name, tool)  # as `find` finds it
    return await permissions.without_forbidden(ctx, scope, list(granted.values()))


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo:
    """The tool with a name. Forbidden tools are found, too: a call of one fails with ``TOOL_FORBIDDEN``.

    Raises:
        NotFound: ``UNKNOWN_TOOL``: there is none, or the caller may not use it.
    """
    for source in _sources(scope):
        tool = await source.find(ctx, scope, name)
        if tool is not None and tool.is_granted_to(scope.caller):
            return tool
    text = f"There is no tool {name!r} that {scope.caller.name} may call."
    agent, separator, _ = name.partition(SEPARATOR)
    if separator and (withdrawn := await peers.withdrawal(ctx, agent)):
        raise NotFound("UNKNOWN_TOOL", f"{text} {withdrawn}")
    if meant := similar(name, [tool.name for tool in await offered(ctx, scope)]):
        raise NotFound("UNKNOWN_TOOL", f"{text} Did you mean {meant}?")
    raise NotFound("UNKNOWN_TOOL", text, Hint("list_tools", "{} lists those that there are."))


async def require_known(ctx: Ctx, words: Collection[str], definition: Definition | None = None) -> None:
    """Refuse words for tools, in a choice or a grant, that mean none that there is.

    Without the servers, nobody knows which functions and MCP servers there are, and everything is taken; so is the name
    of a tool whose server does not answer now, or is started only for a definition, and any of another node.

    Args:
        definition: its servers count, too.

    Raises:
        NotFound: ``UNKNOWN_TOOL``.
    """
    if ctx.local.server is None or not (unknown := set(words).difference(WORDS)):
        return
    own = set(definition.mcp_servers) if definition is not None else set()
    configured = {*upstream.server_names(ctx, NOBODYS), *ctx.local.upstreams.file.read().servers, *own}
    ready = {
        name
        for name, connection in ctx.local.upstreams.all(connections.OWNER).items()
        if connection.state is ServerState.READY
    }
    silent = own | (configured - ready)
    names = configured | WORDS
    for source in SOURCES:
        names.update(*(tool.words for tool in await source.tools(ctx, NOBODYS)))
    for word in sorted(unknown - names):
        if word.partition(SEPARATOR)[0] in silent or word.startswith(f"{NETWORK}:"):
            continue
        raise NotFound(
            "UNKNOWN_TOOL",
            f"There is no tool or server {word!r}. {suggestion(word, names)}".rstrip(),
            Hint("list_tools", "See {}; an MCP server is added, and a function is offered, before it is named."),
        )


async def named(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    """The tool that a refused call has named, also one that its caller may not use; None: there is none."""
    for source in _sources(scope):
        if (tool := await source.find(ctx, scope, name)) is not None:
            return tool
    op = ctx.catalogue.get(name)
    return None if op is None else operations.of(op)


def _sources(scope: ToolScope) -> Sequence[ToolSource]:
    """Where to find the tools of a scope. A call of another node reaches traits only, whatever else has such a name."""
    return SOURCES if scope.origin is None else (traits,)


def _parameters(schema: Mapping[str, Any]) -> list[ToolParameter]:
    """The arguments of a tool, as far as a schema names them."""
    fields, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else ()
    return [
        ToolParameter(name=name, type=", ".join(dict.fromkeys(_types(field, schema))), required=name in needed)
        for name, field in (fields.items() if isinstance(fields, Mapping) else ())
    ]


def _types(schema: Any, whole: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """The JSON types that a part of a schema names."""
    if not isinstance(schema, Mapping) or depth > DEPTH:
        return
    reference, kinds = schema.get("$ref"), schema.get("type", ())
    if isinstance(reference, str) and isinstance(definitions := whole.get("$defs"), Mapping):
        yield from _types(definitions.get(reference.removeprefix("#/$defs/")), whole, depth + 1)
    yield from map(str, (kinds,) if isinstance(kinds, str) else kinds)
    for options in (schema.get("anyOf"), schema.get("oneOf")):
        for option in options if isinstance(options, list) else ():
            yield from _types(option, whole, depth + 1)


def _summary(tool: ToolInfo) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "source": tool.source,
        "kind": tool.kind,
        "server": tool.server,
        "offered_by": tool.offered_by.key,
        "offerer_name": tool.offered_by.name,
        "read_only": tool.hints.read_only,
        "destructive": tool.hints.destructive,
        "problem": tool.problem,
    }
