"""Connects to MCP servers: to those of the project while the servers run, to those of definitions when they are needed.

Only to trusted ones. The operator is asked about the others, once.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.definition_files import Snapshot
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.rules.definitions.mcp_servers import HttpServer
from workbench.rules.definitions.model import Definition, DefinitionMetadata
from workbench.rules.definitions.trust import Need
from workbench.rules.tools.servers import ServerList
from workbench.services.definitions import secrets, trust
from workbench.services.processes import sandbox, server_programs
from workbench.state.settings import Settings
from workbench.store.base import Tx
from workbench.upstream.client import Target
from workbench.upstream.connection import Connect, Handlers, Upstream, UpstreamLimits
from workbench.upstream.connections import Key, Knowledge
from workbench.upstream.http_transport import ServerAddress

if TYPE_CHECKING:
    from mcp.client import Client

OWNER = ""
"""The owner of the project's servers in `workbench.upstream.connections.Key`."""
_IDENTITY = {"id": ":project", "name": "The project's MCP servers"}
"""That of the project's servers as a definition. No file can give itself such an id."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trusted:
    """Which servers of a definition are trusted.

    Args:
        fingerprints: of those that are, by name.
        refusals: why the operator refused others, by name.
        approval_id: the pending question about the rest.
    """

    fingerprints: Mapping[str, str]
    refusals: Mapping[str, str]
    approval_id: int | None


@dataclass(frozen=True, slots=True)
class ProjectServers:
    """The servers of the project as the file lists them, and as a definition, so that trust and secrets work alike."""

    listed: ServerList
    snapshot: Snapshot


async def read_project(ctx: Ctx) -> ProjectServers:
    """The servers of the project as the file has them now."""
    listed = await to_thread(ctx.local.upstreams.file.read)
    return ProjectServers(listed, snapshot_of(ctx, listed))


def snapshot_of(ctx: Ctx, listed: ServerList) -> Snapshot:
    """The servers that are not switched off, as a definition."""
    metadata = DefinitionMetadata(id="project", name="project").model_copy(update=_IDENTITY)
    servers = {name: server for name, server in listed.servers.items() if name not in listed.disabled}
    definition = Definition(metadata=metadata, mcp_servers=servers)
    return Snapshot(ctx.local.upstreams.file.path, definition, "", (), True)


@duty("connecting MCP servers", 0.5, share=0.05)
async def sync(ctx: Ctx) -> None:
    """Connect to the project's servers as the file lists them now, and disconnect from what is not used any more."""
    async with ctx.local.upstreams.starting:
        if not ctx.local.upstreams.is_open:
            return
        listed = await to_thread(ctx.local.upstreams.file.read)
        ctx.local.upstreams.stop_idle(ctx.settings.tool_server_idle_seconds)
        if not (listed.servers.keys() - listed.disabled or ctx.local.upstreams.all(OWNER)):
            await trust.withdraw_outdated(ctx.of(SYSTEM), _IDENTITY["id"], ())
            return
        snapshot = snapshot_of(ctx, listed)
        trust_state = await trusted(ctx, snapshot, asks=True)
        for name in ctx.local.upstreams.all(OWNER).keys() - trust_state.fingerprints.keys():
            ctx.local.upstreams.stop(Key(OWNER, name))
        for name, fingerprint in trust_state.fingerprints.items():
            _start(ctx, Key(OWNER, name), snapshot, fingerprint)


async def of_definition(ctx: Ctx, snapshot: Snapshot) -> Mapping[str, Upstream]:
    """The trusted servers of a definition by their names, connected to if possible; none unless the servers run."""
    owner = snapshot.definition.metadata.id
    async with ctx.local.upstreams.starting:
        if not ctx.local.upstreams.is_open:
            return {}
        trust_state = await trusted(ctx, snapshot, asks=True)
        started = {
            name: _start(ctx, Key(owner, name), snapshot, fingerprint)
            for name, fingerprint in trust_state.fingerprints.items()
        }
    for upstream in started.values():
        await upstream.settled()
    return started


async def trusted(ctx: Ctx, snapshot: Snapshot, *, asks: bool = False) -> Trusted:
    """Which servers of a definition are trusted.

    Args:
        asks: ask the operator about those that are neither trusted nor refused.
    """
    system = ctx.of(SYSTEM)
    state = await (trust.ask(system, snapshot) if asks else trust.state(system, snapshot))
    if asks and not state.missing:
        needed = {need.fingerprint for need in state.needs}
        await trust.withdraw_outdated(system, snapshot.definition.metadata.id, needed)
    missing = {need.fingerprint for need in state.missing}
    named = dict(_servers_of(state.needs))
    return Trusted(
        {name: need.fingerprint for name, need in named.items() if need.fingerprint not in missing},
        {name: state.refusals[need.fingerprint] for name, need in named.items() if need.fingerprint in state.refusals},
        state.approval_id,
    )


def _servers_of(needs: Iterable[Need]) -> Iterator[tuple[str, Need]]:
    """The needs that are about a server itself, by its name."""
    for need in needs:
        section, _, name = need.name.partition(".")
        if section == "mcpServers" and "." not in name:
            yield name, need


@duty("announcing MCP servers", 0.25)
async def announce(ctx: Ctx) -> None:
    """Record that the state or the tools of servers have changed, for those who follow the feed."""
    changes = ctx.local.upstreams.take_changes()
    if not changes:
        return

    def emit(tx: Tx) -> None:
        for key in sorted(changes):
            upstream = ctx.local.upstreams.get(key)
            tx.emit(
                "tool_server.changed",
                f"tool_server:{key.name}",
                server=key.name,
                definition=key.owner or None,
                state=upstream.state if upstream else "stopped",
                tools=len(upstream.offers.tools) if upstream else 0,
            )
        tx.emit("tools.changed", "tools:mcp")

    await ctx.of(SYSTEM).write(emit)


def _start(ctx: Ctx, key: Key, snapshot: Snapshot, fingerprint: str) -> Upstream:
    return ctx.local.upstreams.start(key, fingerprint, _connector(ctx, key.name, snapshot), _limits(ctx.settings))


def _limits(settings: Settings) -> UpstreamLimits:
    return UpstreamLimits(
        start=settings.tool_server_start_seconds,
        answer=settings.tool_server_answer_seconds,
        largest=settings.max_tool_result_bytes,
    )


def _connector(ctx: Ctx, name: str, snapshot: Snapshot) -> Callable[[Knowledge], Connect]:
    """How to connect to a trusted server. Its secrets are read each time, so a new one counts after a restart."""

    def connecting(knowledge: Knowledge) -> Connect:
        @asynccontextmanager
        async def connect(handlers: Handlers) -> AsyncIterator[Client]:
            from workbench.upstream.client import connected  # the MCP package takes long to import

            async with (
                _target(ctx, name, snapshot, knowledge) as target,
                connected(
                    target, handlers, ctx.settings.max_tool_result_bytes, knowledge.tail, knowledge.note_process
                ) as client,
            ):
                yield client

        return connect

    return connecting


@asynccontextmanager
async def _target(ctx: Ctx, name: str, snapshot: Snapshot, knowledge: Knowledge) -> AsyncIterator[Target]:
    """Where a server is, with its secrets; the program of one in its box.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``, ``CONFINEMENT_UNAVAILABLE``, ``PROJECT_UNWRITABLE``.
    """
    resolved = await secrets.resolved(ctx, snapshot.definition, providers=(), servers=(name,))
    knowledge.secrets = resolved.values
    server = resolved.mcp_servers[name]
    if isinstance(server, HttpServer):

        def note(tokens: frozenset[str]) -> None:
            knowledge.secrets |= tokens

        yield ServerAddress(server.url, server.headers, server.type == "sse", note)
        return
    knowledge.confined = sandbox.confinement_of(ctx.settings).enforced
    async with server_programs.scratch(ctx) as place:
        boxed = await to_thread(server_programs.boxed, ctx.settings, server, place / "home")
        knowledge.explain = boxed.explain
        yield boxed.program
