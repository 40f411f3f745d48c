"""Keeps the personalities in memory as they are in the store."""

from __future__ import annotations

from collections.abc import Iterable

from rid_lib.types import KoiNetNode

from workbench.koi.directory import Directory, Known
from workbench.koi.payloads import EventType
from workbench.ops import Ctx
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.pipeline.item import Change
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)


async def fill(ctx: Ctx, me: KoiNetNode) -> None:
    """Read all personalities from the store."""
    ctx.node.directory.replace(await ctx.read(lambda tx: _all(tx, str(me))))


def apply(known: Directory, me: KoiNetNode, changes: Iterable[Change]) -> None:
    """Note changes that have been committed."""
    for change in changes:
        if not isinstance(change.rid, AgentPersonality):
            continue
        if change.event_type is EventType.FORGET:
            known.remove(change.rid.name, change.rid.version)
        elif isinstance(change.profile, PersonalityProfile):
            known.put(Known(change.profile, change.manifest_at, change.owner == str(me)))


def _all(tx: Reader, me: str) -> list[Known]:
    return [
        Known(PersonalityProfile.model_validate_json(contents), at, owner == me)
        for contents, at, owner in tx.tuples(SQL.personalities)
    ]
