"""The operations on the MCP servers of the project. What the operator configures with them is trusted at once."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from workbench.definition_files import Snapshot
from workbench.errors import Conflict, Hint, NotFound
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op, problems_of
from workbench.ops.operation import invalid_arguments
from workbench.present.inert import inert
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.secrets import masked_updates
from workbench.rules.definitions.secrets.of_servers import written_out
from workbench.rules.definitions.secrets.written_out import masked_server, warning
from workbench.rules.naming import similar
from workbench.rules.tools import servers as rules
from workbench.rules.tools.servers import ServerList
from workbench.services.definitions import tool_names, trust
from workbench.services.tools.servers import connections
from workbench.services.tools.servers.connections import OWNER, Trusted
from workbench.upstream.connections import Key, Knowledge

Name = Annotated[str, Field(min_length=1, max_length=100, description="The server's name; see list_tool_servers.")]
Config = Annotated[
    dict[str, Any],
    Field(
        description="A program: command, args, env, cwd. A server at a URL: url, headers, type (streamable-http or "
        "sse). Secrets as references: env://NAME, file://path, op://vault/item/field, keyring://service/name."
    ),
]
_TEXTS = ("args", "env", "url", "headers")
State = Literal["ready", "starting", "failed", "stopped", "disabled", "untrusted", "refused", "invalid"]
SERVERS = {"name": "tool_servers"}
"""The completion of a server's name."""


class ToolServer(Wire):
    """An MCP server of the project.

    `state`: untrusted: the operator decides about it in approval `approval_id`; stopped: the servers of the project do
    not run. `problem` says why it cannot be used. `left_out` tools cannot be used; `tool_problems` says which and why,
    and what is left out of others. `confined` is null for a server at a URL. `log` is the end of what its program wrote
    to its standard error. `warnings` are about secrets that are written out; `config` and `target` show them masked.
    """

    name: str
    type: str
    target: str
    config: dict[str, Any]
    state: State
    problem: str | None
    approval_id: int | None
    tools: list[str]
    left_out: int
    tool_problems: list[str]
    about: str
    restarts: int
    confined: bool | None
    log: str
    warnings: list[str]


class ToolServers(Wire):
    """The MCP servers of the project by name. `problem`: why their file cannot be used."""

    servers: list[ToolServer]
    path: str
    problem: str | None


class RemovedToolServer(Wire):
    """An MCP server that was removed."""

    name: str


@op(
    allow=Level.OPERATOR,
    reads=True,
    command=Command(
        "tools servers list", help="List the servers: their state, their tools, and what is wrong with them."
    ),
    refreshed_by="tool_server approval clock",
)
async def list_tool_servers(ctx: Ctx) -> ToolServers:
    """List the MCP servers whose tools the project uses, with their state and what is wrong with them."""
    servers = await connections.read_project(ctx)
    trust_state = await connections.trusted(ctx, servers.snapshot)
    names = sorted({*servers.listed.servers, *servers.listed.problems} - {""})
    return ToolServers(
        servers=[_describe(ctx, servers.listed, trust_state, name) for name in names],
        path=str(ctx.local.upstreams.file.path),
        problem=servers.listed.problems.get(""),
    )


@op(allow=Level.OPERATOR)
async def add_tool_server(ctx: Ctx, name: Name, config: Config) -> ToolServer:
    """Use the tools of another MCP server: a program that is started, or a server at a URL."""
    _validate("add_tool_server", config)
    await tool_names.require_unlike_definitions(ctx, name, of_project=True)

    def add(entries: dict[str, Any]) -> None:
        if name in entries:
            raise Conflict("TOOL_SERVER_EXISTS", f"There is an MCP server {name} already. Update or remove it.")
        if problem := rules.problem_of_name(name, entries):
            raise invalid_arguments("add_tool_server", [{"field": "name", "reason": problem}])
        masked_updates.mcp_server(rules.server(config))
        entries[name] = config

    return await _change(ctx, name, add)


@op(
    allow=Level.OPERATOR,
    command=(
        Command(
            "tools servers enable NAME", options=(), fixed={"enabled": True}, offers=SERVERS, help="Switch a server on."
        ),
        Command(
            "tools servers disable NAME",
            options=(),
            fixed={"enabled": False},
            offers=SERVERS,
            help="Switch a server off; its configuration stays.",
        ),
    ),
)
async def update_tool_server(
    ctx: Ctx,
    name: Name,
    config: Annotated[
        Config | None,
        Field(description="The whole configuration; null: as it is. A mask keeps the secret that it was shown for."),
    ] = None,
    enabled: Annotated[bool | None, Field(description="Whether it is used; null: as it is.")] = None,
) -> ToolServer:
    """Change the configuration of an MCP server, or switch it off and on."""
    if config is not None:
        _validate("update_tool_server", config)

    def update(entries: dict[str, Any]) -> None:
        entry = _require(entries, name)
        switched_off = entry.get("disabled") is True if enabled is None else not enabled
        changed = entry if config is None else _unmask(config, entry)
        kept = {key: value for key, value in changed.items() if key != "disabled"}
        entries[name] = kept | ({"disabled": True} if switched_off else {})

    return await _change(ctx, name, update, rewrites=config is not None)


@op(
    allow=Level.OPERATOR,
    destructive=True,
    command=Command("tools servers remove NAME", "Removed {name}.", offers=SERVERS),
)
async def remove_tool_server(ctx: Ctx, name: Name) -> RemovedToolServer:
    """Use the tools of an MCP server no more, and remove its configuration."""

    def remove(entries: dict[str, Any]) -> None:
        _require(entries, name)
        del entries[name]

    await to_thread(ctx.local.upstreams.file.change, remove)
    await _settle(ctx, name)
    return RemovedToolServer(name=name)


@op(allow=Level.OPERATOR, needs_server=True, command=Command("tools servers restart NAME", offers=SERVERS))
async def restart_tool_server(ctx: Ctx, name: Name) -> ToolServer:
    """Disconnect from an MCP server and connect again; its program is ended and started, with its secrets read anew."""
    servers = await connections.read_project(ctx)
    _require(servers.listed.servers, name)
    ctx.local.upstreams.stop(Key(OWNER, name))
    await ctx.local.upstreams.stopped()
    return await _settle(ctx, name)


async def _change(ctx: Ctx, name: str, edit: Callable[[dict[str, Any]], None], *, rewrites: bool = True) -> ToolServer:
    """Change the file. The operator's own words are trusted before they are in it, so that nothing is asked for."""
    before = await connections.read_project(ctx)
    if rewrites:
        await _trust(ctx, before.snapshot, name, await to_thread(ctx.local.upstreams.file.preview, edit))
    await to_thread(ctx.local.upstreams.file.change, edit)
    return await _settle(ctx, name)


async def _trust(ctx: Ctx, before: Snapshot, name: str, after: ServerList) -> None:
    """Trust one server as it is written; the others stay as they are."""
    others = {key: server for key, server in before.definition.mcp_servers.items() if key != name}
    was = before.definition.model_copy(update={"mcp_servers": others})
    enabled = ServerList(after.servers)
    revision = await trust.writing(ctx, was, connections.snapshot_of(ctx, enabled))
    await ctx.write(lambda tx: trust.record_written(tx, ctx.caller, revision))


async def _settle(ctx: Ctx, name: str) -> ToolServer:
    """Let a change take effect, if the servers run here; a server has answered, or its time to start is over."""
    ctx.local.upstreams.note_change(Key(OWNER, name))
    if ctx.local.server is not None:
        await connections.sync(ctx)
        await ctx.local.upstreams.stopped()
        if (upstream := ctx.local.upstreams.get(Key(OWNER, name))) is not None:
            await upstream.settled()
    await connections.announce(ctx)
    servers = await connections.read_project(ctx)
    return _describe(ctx, servers.listed, await connections.trusted(ctx, servers.snapshot), name)


def _describe(ctx: Ctx, listed: ServerList, trust_state: Trusted, name: str) -> ToolServer:
    server = listed.servers.get(name)
    upstream, knowledge = ctx.local.upstreams.get(Key(OWNER, name)), ctx.local.upstreams.knowledge(Key(OWNER, name))
    redacted = _redactor(ctx, knowledge)
    state, problem = _state(ctx, listed, trust_state, name)
    shown = masked_server(server) if server else None
    return ToolServer(
        name=inert(name),
        type=server.type if server else "",
        target=_target(shown) if shown else "",
        config=shown.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"type"}) if shown else {},
        state=state,
        problem=inert(redacted(problem)) if problem else None,
        approval_id=trust_state.approval_id if state == "untrusted" else None,
        tools=list(upstream.offers.names) if upstream else [],
        left_out=upstream.offers.left_out if upstream else 0,
        tool_problems=[inert(redacted(text)) for text in upstream.offers.problems] if upstream else [],
        about=inert(redacted(upstream.about)) if upstream else "",
        restarts=upstream.restarts if upstream else 0,
        confined=knowledge.confined,
        log=inert(redacted(knowledge.tail.text)),
        warnings=[warning(key, ".aiswarm/mcp.json") for key in written_out(server)] if server else [],
    )


def _redactor(ctx: Ctx, knowledge: Knowledge) -> Callable[[str], str]:
    """Masks secrets in a text that a server wrote: its own, and those that the project knows."""
    return lambda text: str(ctx.secrets.masked(knowledge.redacted(text)))


def _state(ctx: Ctx, listed: ServerList, trust_state: Trusted, name: str) -> tuple[State, str | None]:
    """Where a server stands, and why it cannot be used."""
    upstream = ctx.local.upstreams.get(Key(OWNER, name))
    if name in listed.problems:
        return "invalid", listed.problems[name]
    if name in listed.disabled:
        return "disabled", None
    if name in trust_state.refusals:
        return "refused", f"the operator refused it: {trust_state.refusals[name] or 'no reason was given'}"
    if name not in trust_state.fingerprints:
        return "untrusted", "its configuration was not written here, so the operator has to trust it"
    if upstream is None:
        return "stopped", None
    knowledge = ctx.local.upstreams.knowledge(Key(OWNER, name))
    return upstream.state.value, knowledge.reason(upstream.problem) if upstream.problem else None


def _unmask(config: Mapping[str, Any], stored: Any) -> dict[str, Any]:
    """A configuration with the stored secrets in place of masks."""
    before = None
    with suppress(ValueError):
        before = rules.server(stored)
    texts = masked_updates.mcp_server(rules.server(config), before).model_dump(mode="json")
    return {key: texts[key] if key in _TEXTS else value for key, value in config.items()}


def _target(server: StdioServer | HttpServer) -> str:
    return server.url if isinstance(server, HttpServer) else " ".join((server.command, *server.args))


def _validate(operation: str, config: Mapping[str, Any]) -> None:
    try:
        rules.server(config)
    except ValidationError as error:
        raise invalid_arguments(operation, problems_of(error, "config")) from None
    except ValueError as error:
        raise invalid_arguments(operation, [{"field": "config", "reason": str(error)}]) from None


def _require(entries: Mapping[str, Any], name: str) -> Any:
    if name in entries:
        return entries[name]
    text = f"There is no MCP server {name}."
    if meant := similar(name, entries):
        raise NotFound("TOOL_SERVER_NOT_FOUND", f"{text} Did you mean {meant}?")
    raise NotFound("TOOL_SERVER_NOT_FOUND", text, Hint("list_tool_servers", "{} lists those that there are."))
