"""The callable traits of agents on the KOI network as tools: `agent__trait`.

This node's own traits run here: the function of a process, or a value that is returned. Those of other nodes are called
there. A trait of an agent that has the name of an MCP server is not called, because a grant of that name means
the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from workbench.functions.hosts import Found, OfferedTool
from workbench.koi.directory import KnownPersonality
from workbench.ops import Ctx
from workbench.rules.personalities import addresses
from workbench.rules.personalities.profile import PersonalityTrait
from workbench.rules.tools.names import SEPARATOR, qualified
from workbench.rules.tools.results import as_json
from workbench.services.tools import peers
from workbench.services.tools.sources import functions, upstream
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
from workbench.store.base import Row

VERSION_LENGTH = 12
A_VALUE = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
"""A call of a trait without a function returns its value, whatever the trait says of itself."""
NAMES = 20_000
"""Traits whose names as tools are kept."""
ANYTHING: Mapping[str, Any] = {"type": "object"}
"""The schema of the arguments of a trait that has none."""


async def tools(ctx: Ctx, scope: ToolScope) -> list[ToolInfo]:
    """The traits of the latest versions of all personalities; for a call of another node, this node's own."""
    nodes = {row["rid"]: row for row in await ctx.read(lambda tx: tx.all(peers.SQL.nodes))}
    taken = upstream.server_names(ctx, scope)
    tools_by_name: dict[str, ToolInfo] = {}
    for personality, trait in _callable(ctx, scope):
        tool = _tool(ctx, personality, trait, nodes.get(str(personality.profile.node_rid)), taken)
        tools_by_name.setdefault(tool.name, tool)
    return list(tools_by_name.values())


async def find(ctx: Ctx, scope: ToolScope, name: str) -> ToolInfo | None:
    """The trait with this name as a tool."""
    if SEPARATOR not in name and "-" not in name:
        return None
    for personality, trait in _callable(ctx, scope):
        if _name(personality.profile.rid.name, trait.name) == name:
            node = None if personality.is_own else await peers.node(ctx, personality.profile.node_rid)
            return _tool(ctx, personality, trait, node, upstream.server_names(ctx, scope))
    return None


def _callable(ctx: Ctx, scope: ToolScope) -> Iterator[tuple[KnownPersonality, PersonalityTrait]]:
    return (pair for pair in ctx.node.directory.callable() if scope.origin is None or pair[0].is_own)


@lru_cache(NAMES)
def _name(agent: str, trait: str) -> str:
    return qualified(agent, trait)


def _tool(
    ctx: Ctx, personality: KnownPersonality, trait: PersonalityTrait, node: Row | None, taken: Container[str]
) -> ToolInfo:
    tool = _own(ctx, personality, trait) if personality.is_own else _others(ctx, personality, trait, node)
    agent = personality.profile.rid.name
    return replace(tool, problem=f"an MCP server is named {agent}, too", is_tried=False) if agent in taken else tool


def _own(ctx: Ctx, personality: KnownPersonality, trait: PersonalityTrait) -> ToolInfo:
    """A trait of this node: of a function if there is one, or of its value.

    A trait with a version had a function, so it has no value to return without it.
    """
    agent = personality.profile.rid.name
    bound = _find_function(ctx, agent, trait.name)
    if bound is None:
        problem = None if trait.version is None else "no running process offers its function"
        tool = _describe(
            agent, trait, ToolPlace.LOCAL, problem, partial(_return_value, trait.value), Offerer(OffererKind.PROJECT)
        )
        tool = replace(tool, version=trait.version or _fingerprint(trait.value))
        return tool if trait.version is not None else replace(tool, hints=A_VALUE)
    offerer = Offerer(OffererKind.NOTEBOOK, name=bound.host)
    now = _current(trait, bound.tool)
    return _describe(agent, now, ToolPlace.LOCAL, bound.problem, partial(functions.run, bound), offerer)


def _find_function(ctx: Ctx, agent: str, trait: str) -> Found | None:
    presence = ctx.node.presence
    is_default = presence is not None and presence.identity.rid.name == agent
    candidates = ctx.local.tool_hosts.traits(agent, is_default=is_default)
    return next((function for function in candidates if function.tool.name == trait), None)


def _current(trait: PersonalityTrait, function: OfferedTool) -> PersonalityTrait:
    """A trait as its function is now, which may be newer than what was published."""
    now = {
        "description": function.description,
        "input_schema": function.parameters,
        "output_schema": function.result,
        "read_only": function.read_only,
        "version": function.version or None,
    }
    return trait.model_copy(update=now)


def _others(ctx: Ctx, personality: KnownPersonality, trait: PersonalityTrait, node: Row | None) -> ToolInfo:
    run = partial(peers.call_trait, personality.profile, trait.name)
    rid = personality.profile.node_rid
    offerer = Offerer(OffererKind.NODE, str(rid), addresses.node_label(str(rid)))
    tool = _describe(
        personality.profile.rid.name, trait, ToolPlace.MCP, peers.problem(ctx, personality.profile, node), run, offerer
    )
    doubt = None if tool.problem else peers.doubt(ctx, node)
    # What another node says of its tool is no reason not to ask.
    tool = replace(tool, hints=replace(tool.hints, read_only=False))
    return replace(tool, problem=doubt, is_tried=True) if doubt else tool


def _describe(
    agent: str, trait: PersonalityTrait, source: ToolPlace, problem: str | None, run: Any, offerer: Offerer
) -> ToolInfo:
    schema = trait.output_schema
    return ToolInfo(
        name=_name(agent, trait.name),
        title=f"{agent}: {trait.name}",
        description=trait.description,
        parameters=trait.input_schema if trait.input_schema is not None else ANYTHING,
        result=schema if schema is not None and schema.get("type") == "object" else None,
        source=source,
        kind=ToolKind.TRAIT,
        server=agent,
        own_name=trait.name,
        hints=Hints(read_only=trait.read_only, destructive=not trait.read_only),
        version=trait.version,
        problem=problem,
        run=run,
        offered_by=offerer,
    )


def _fingerprint(value: Any) -> str:
    """Identifies the value of a trait, which has no function with a version."""
    return hashlib.sha256(as_json(value).encode()).hexdigest()[:VERSION_LENGTH]


async def _return_value(value: Any, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """The value of a trait that has no function (spec 5, 4.9)."""
    text = value if isinstance(value, str) else as_json(value)
    return ToolOutcome([{"type": "text", "text": text}], None if isinstance(value, str) else value)
