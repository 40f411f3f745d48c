"""Keeps the personalities in memory as they are in the store, in every process that has the project open."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rid_lib.types import KoiNetNode

from workbench.errors import WorkbenchError
from workbench.koi.directory import KnownPersonality, PersonalityDirectory
from workbench.koi.payloads import EventType
from workbench.koi.rids import PERSONALITY
from workbench.ops import Ctx
from workbench.ops.duties import duty, on_foreign, prepares
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.pipeline.item import ItemChange
from workbench.services.personalities.self_node import hash_of, own_hash
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)
SUBJECT = "personality:"


@prepares
async def fill(ctx: Ctx) -> None:
    """Read all personalities from the store."""
    ctx.node.directory.replace(await _personalities(ctx, await ctx.read(lambda tx: tx.all(SQL.personalities))))


@on_foreign
def note(ctx: Ctx, events: Sequence[Row]) -> None:
    """Note which personalities another process has changed."""
    for event in events:
        if event["subject"].startswith(SUBJECT):
            ctx.node.changed_elsewhere.add(event["subject"].removeprefix(SUBJECT))


@duty("reading personalities again", 5.0, serving=False, wakes=True)
async def refresh(ctx: Ctx) -> None:
    """Read those again that another process has changed."""
    if references := frozenset(ctx.node.changed_elsewhere):
        ctx.node.changed_elsewhere.clear()
        await _refresh(ctx, references)


async def _refresh(ctx: Ctx, references: frozenset[str]) -> None:
    rids = json.dumps([f"{PERSONALITY}:{reference}" for reference in references])
    personalities = await _personalities(ctx, await ctx.read(lambda tx: tx.all(SQL.some, rids=rids)))
    for missing in references - {personality.profile.rid.reference for personality in personalities}:
        ctx.node.directory.remove(*missing.split("/", 1))
    for personality in personalities:
        ctx.node.directory.put(personality)


def apply(personalities: PersonalityDirectory, me: KoiNetNode, changes: Iterable[ItemChange]) -> None:
    """Note changes that have been committed."""
    for change in changes:
        if not isinstance(change.rid, AgentPersonality):
            continue
        if change.event_type is EventType.FORGET:
            personalities.remove(change.rid.name, change.rid.version)
        elif isinstance(change.profile, PersonalityProfile):
            personalities.put(KnownPersonality(change.profile, change.manifest_at, change.owner == str(me)))


async def _personalities(ctx: Ctx, rows: Sequence[Row]) -> list[KnownPersonality]:
    me = await _own_hash(ctx) if rows else None
    return [
        KnownPersonality(
            PersonalityProfile.model_validate_json(row["contents"]), row["manifest_at"], hash_of(row["owner"]) == me
        )
        for row in rows
    ]


async def _own_hash(ctx: Ctx) -> str | None:
    """The hash of this node's key; None without one. A key that cannot be read is shown with the network."""
    try:
        return await own_hash(ctx)
    except WorkbenchError:
        return None
