"""Publishes the profiles of this project's agents, and again when what they are made of has changed.

What is published is what the store and the hosts of tools say now; only the bundles remember what was published.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from workbench.errors import WorkbenchError
from workbench.functions.hosts import OfferedTool
from workbench.koi.node import Presence
from workbench.koi.payloads import EventType, KoiEvent
from workbench.koi.rids import PERSONALITY, parse
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.rules.definitions.model import DefinitionMetadata
from workbench.rules.personalities.composition import Home, Sources, compose, function_trait
from workbench.rules.personalities.profile import PersonalityTrait
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.definitions import changes as definitions
from workbench.services.personalities import bundles
from workbench.services.personalities.pipeline.run import handle
from workbench.services.personalities.refusals import RefusedEvent
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

DEFAULT_VERSION = "1.0"
FOLLOWED = (
    *("profile.*", "tools.changed", "persona.saved"),
    *("definition.created", "definition.changed", "definition.found", "definition.deleted"),
    *("agent.assigned", "agent.updated", "agent.restored", "agent.deleted", "agent.deregistered", "agent.revoked"),
)
"""The events after which a profile may be another one."""
SECONDS_BETWEEN_CHECKS = 1.0
"""How often it is checked, without an event, whether this node still takes part in its network."""

Functions = Mapping[str, Sequence[PersonalityTrait]]
"""Callable traits by the names of agents."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Own:
    """An agent of this project that has a profile.

    Args:
        sources: what its traits are made from.
        agent_id, definition_id: of the agent and the definition that it was published for.
    """

    name: str
    version: str
    sources: Sources
    agent_id: str | None = None
    definition_id: str | None = None


@duty("publishing personalities", 5.0, wakes=True)
async def follow(ctx: Ctx) -> None:
    """Publish what changes, as the feed says, as long as this node takes part in its network."""
    presence = ctx.node.presence
    if presence is None:
        return
    async with ctx.feed.subscribe(*FOLLOWED) as events:
        await _publish(ctx)
        while ctx.node.presence is presence:
            if await events.within(SECONDS_BETWEEN_CHECKS) is not None:
                await _publish(ctx)


async def _publish(ctx: Ctx) -> None:
    for refusal in await publish(ctx):
        log.warning("%s was not published: %s", refusal.rid, refusal.reason)


@duty("noting published definitions", lambda settings: settings.definition_watch_seconds, share=0.05)
async def note_definitions(ctx: Ctx) -> None:
    """Read the definitions that profiles show again. One that was edited outside of Workbench is recorded, and the
    event of that publishes it."""
    if ctx.node.presence is None:
        return
    for row in await ctx.read(lambda tx: tx.all(SQL.definitions)):
        with suppress(WorkbenchError):  # it was deleted, or cannot be read now: what was published stays
            await definitions.current(ctx, row["id"], row["path"])


async def publish(ctx: Ctx) -> list[RefusedEvent]:
    """Publish the profiles that differ from what is published, and forget those of agents that have none any more.

    Does nothing while this node takes no part in a network. Returns those that were refused.

    Raises:
        Unavailable: ``STORE_…``.
    """
    async with ctx.node.publishing:
        return await publish_held(ctx)


async def publish_held(ctx: Ctx) -> list[RefusedEvent]:
    """As `publish`, for who holds `Node.publishing`."""
    presence = ctx.node.presence
    if presence is None:
        return []
    functions = bound(ctx)
    events = await ctx.read(lambda tx: _events(tx, presence, functions))
    return (await handle(ctx, events, None)).refused if events else []


def bound(ctx: Ctx) -> Functions:
    """The functions of processes that are traits, and that can be called now, by the agents whose traits they are.

    Those that name no agent are this node's, while it takes part in a network.
    """
    traits: dict[str, list[PersonalityTrait]] = {}
    default = str(ctx.node.presence.identity.rid.name) if ctx.node.presence else None
    for offered in ctx.local.tool_hosts.tools():
        agent = default if offered.tool.trait == "" else offered.tool.trait
        if agent and offered.problem is None:
            traits.setdefault(agent, []).append(_trait(offered.tool))
    return traits


def find(tx: Reader, functions: Functions, name: str) -> Own | None:
    """An agent of this project, if it has a profile."""
    row = tx.one(SQL.own_named, name=name)
    if row is not None:
        return _own(row, functions)
    return _of_functions(name, functions) if name in functions else None


def _events(tx: Reader, presence: Presence, functions: Functions) -> list[KoiEvent]:
    """What has to be published: new versions before the former ones are forgotten."""
    me = presence.identity.rid
    home = Home(me, presence.base_url.removesuffix("/koi-net"))
    published = {own.rid: json.loads(own.contents) for own in bundles.of_owner(tx, str(me), PERSONALITY)}
    events, rids = [], set()
    for own in _all(tx, functions):
        rid = AgentPersonality(own.name, own.version)
        rids.add(str(rid))
        contents = _contents(home, own)
        if contents is not None and contents != published.get(str(rid)):
            event_type = EventType.UPDATE if str(rid) in published else EventType.NEW
            events.append(KoiEvent(rid=rid, event_type=event_type, contents=contents))
    return [*events, *(KoiEvent(rid=parse(rid), event_type=EventType.FORGET) for rid in published.keys() - rids)]


def _contents(home: Home, own: Own) -> dict[str, Any] | None:
    """The profile of an agent; None if it cannot have one as it is now: what was published then stays."""
    try:
        return home.profile(own.name, own.version, compose(own.sources)).model_dump(mode="json")
    except (WorkbenchError, ValidationError) as error:
        log.warning("%s is not published as it is now: %s", own.name, error)
        return None


def _all(tx: Reader, functions: Functions) -> Iterator[Own]:
    rows = tx.all(SQL.own)
    yield from (_own(row, functions) for row in rows)
    names = functions.keys() - {row["name"] for row in tx.all(SQL.names)}
    yield from (_of_functions(name, functions) for name in sorted(names))


def _own(row: Row, functions: Functions) -> Own:
    metadata = DefinitionMetadata.model_validate(json.loads(row["content"])["metadata"]) if row["content"] else None
    sources = Sources(
        definition=metadata,
        persona=(row["persona"], row["role"]) if row["persona"] else None,
        by_hand=[PersonalityTrait.model_validate(trait) for trait in json.loads(row["traits"])],
        functions=functions.get(row["name"], ()),
    )
    return Own(row["name"], row["version"], sources, row["assigned_agent_id"], row["definition_id"])


def _of_functions(name: str, functions: Functions) -> Own:
    """An agent that was not published, and has functions."""
    return Own(name, DEFAULT_VERSION, Sources(functions=functions[name]))


def _trait(offered: OfferedTool) -> PersonalityTrait:
    return function_trait(
        offered.name,
        offered.description,
        offered.parameters,
        offered.result,
        read_only=offered.read_only,
        version=offered.version or None,
    )
