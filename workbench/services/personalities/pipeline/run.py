"""The pipeline: events in, changes of the store out, a batch in one transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.errors import Unavailable, WorkbenchError
from workbench.koi.payloads import EventType, KoiEvent, Manifest
from workbench.koi.rids import EDGE, PERSONALITY, parse
from workbench.ops import Ctx
from workbench.rules.personalities.addresses import node_label
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles, refusals
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline import checks, directory, fetch, final, network, owners
from workbench.services.personalities.pipeline.fetch import Fetched
from workbench.services.personalities.pipeline.item import (
    Batch,
    Condition,
    Contents,
    Dropped,
    ItemChange,
    PipelineItem,
    always,
)
from workbench.services.personalities.pipeline.network import Neighbours
from workbench.services.personalities.pipeline.owners import SenderTrust
from workbench.services.personalities.refusals import RefusalReason, RefusedEvent
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)

CHECKED_AT_ONCE = 20

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Handled:
    """The outcome of a batch. An event in neither list changed nothing.

    Args:
        introduced: the sender has introduced itself, by a handshake or for the first time.
        queued: something was put into the outbox.
        noted: the changes, and what has only a newer date; in order.
    """

    changes: list[ItemChange] = field(default_factory=list)
    noted: list[ItemChange] = field(default_factory=list)
    refused: list[RefusedEvent] = field(default_factory=list)
    introduced: bool = False
    queued: bool = False


async def handle(
    ctx: Ctx, events: Sequence[KoiEvent], source: KoiNetNode | None, only_if: Condition = always
) -> Handled:
    """Take in events: check them, store what is new, tell the neighbours, announce it.

    An event that is refused is counted, and harms no other. What events lack is fetched from their sender.

    Args:
        events: in order. This node's own need no manifest.
        source: the node that sent them, whose signature was checked; None: this node itself.
        only_if: whether what the events were made from is still so, asked in the transaction that stores them, before
            them. It may write as well. If it says no, nothing is changed.

    Raises:
        Unavailable: ``KOI_NOT_JOINED``; ``STORE_…``, and then nothing was changed.
    """
    if ctx.node.presence is None:
        raise Unavailable("KOI_NOT_JOINED", "This project takes no part in a KOI network. Join one first.")
    batch = Batch(ctx.node.presence.identity.rid, source, ctx.settings, only_if)
    handshake = source is not None and checks.is_handshake(events, source)
    if handshake:
        events = [event for event in events if event.rid != source or event.event_type is not EventType.FORGET]
    fetched = await fetch.missing(ctx, source, events) if source else Fetched({}, {})
    items, refused = await _check(events, fetched, batch, ctx.store.now())
    # A cancelled wait does not undo the commit, so what follows from it is done in any case.
    return await asyncio.shield(asyncio.create_task(_commit(ctx, batch, items, refused, handshake)))


async def _commit(
    ctx: Ctx, batch: Batch, items: Sequence[PipelineItem], refused: list[RefusedEvent], handshake: bool
) -> Handled:
    """Run the other stages, and note in memory what they have changed."""
    handled = await _store_all(ctx, batch, items, refused)
    handled.introduced = handshake or any(
        change.rid == batch.source and change.event_type is EventType.NEW for change in handled.changes
    )
    if handled.introduced:
        ctx.node.greeted(str(batch.source))
    directory.apply(ctx.node.directory, batch.me, handled.noted)
    if handled.queued:
        ctx.node.has_mail.set()
    return handled


async def _check(
    events: Sequence[KoiEvent], fetched: Fetched, batch: Batch, now: int
) -> tuple[list[PipelineItem], list[RefusedEvent]]:
    """The events that pass all checks that need no store."""
    items: list[PipelineItem] = []
    refused: list[RefusedEvent] = []
    for number, event in enumerate(events):
        if number % CHECKED_AT_ONCE == 0:
            await asyncio.sleep(0)  # others may use the loop meanwhile
        try:
            items.append(_item(event, fetched, batch, now))
        except Dropped as dropped:
            refused.append(_refusal(event.rid, dropped))
        except Exception:
            log.exception("an event about %s could not be checked", event.rid)
            refused.append(RefusedEvent(str(event.rid), RefusalReason.FAILED, "it could not be checked"))
    return items, refused


def _item(event: KoiEvent, fetched: Fetched, batch: Batch, now: int) -> PipelineItem:
    checks.check_rid(event.rid, batch)
    stated = event.manifest or fetched.manifests.get(event.rid)
    contents = event.contents
    if event.rid in fetched.bundles:
        stated, contents = fetched.bundles[event.rid].manifest, fetched.bundles[event.rid].contents
    if batch.source is None:
        stated = None
    elif stated is not None:
        checks.check_manifest(event.rid, stated, batch, now)
    if event.event_type is EventType.FORGET:
        return PipelineItem(event.rid, event.event_type, stated)
    if stated is None and batch.source is not None:
        raise Dropped(RefusalReason.NO_MANIFEST, fetched.problem)
    read = None if contents is None else checks.read(event.rid, stated, contents, batch)
    return PipelineItem(event.rid, event.event_type, stated, read)


async def _store_all(ctx: Ctx, batch: Batch, items: Sequence[PipelineItem], refused: list[RefusedEvent]) -> Handled:
    """Run the other stages, all items in one transaction. If one fails, each gets one of its own."""
    actor = f"peer:{node_label(str(batch.source))}" if batch.source else ctx.caller.name
    try:
        return await ctx.store.write(partial(_run, batch, items, refused), actor=actor)
    except WorkbenchError:
        raise
    except Exception:
        log.exception("a batch of %d events from %s failed", len(items), batch.origin)
    handled = await ctx.store.write(partial(_run, batch, (), refused), actor=actor)
    for item in items:
        try:
            alone = await ctx.store.write(partial(_run, batch, (item,), ()), actor=actor)
        except WorkbenchError:
            raise
        except Exception:
            failed = RefusedEvent(str(item.rid), RefusalReason.FAILED, "an error in this node")
            alone = await ctx.store.write(partial(_run, batch, (), (failed,)), actor=actor)
        handled.changes += alone.changes
        handled.noted += alone.noted
        handled.refused += alone.refused
        handled.queued = handled.queued or alone.queued
    return handled


def _run(batch: Batch, items: Sequence[PipelineItem], refused: Sequence[RefusedEvent], tx: Tx) -> Handled:
    handled = Handled(refused=list(refused))
    if items and batch.only_if(tx):
        _Run(tx, batch, handled).all(items)
    if batch.source is not None:
        refusals.count(tx, str(batch.source), handled.refused)
    return handled


def _refusal(rid: RID, dropped: Dropped) -> RefusedEvent:
    return RefusedEvent(str(rid), dropped.code, dropped.reason)


class _Run:
    """The stages that need the store, for the items of a batch."""

    def __init__(self, tx: Tx, batch: Batch, handled: Handled) -> None:
        self._tx = tx
        self._batch = batch
        self._handled = handled
        self._nodes: Neighbours | None = None

    def all(self, items: Sequence[PipelineItem]) -> None:
        for item in items:
            try:
                trust = owners.trust_in(self._tx, self._batch)
                if item.event_type is EventType.FORGET:
                    self._forget(trust, item)
                else:
                    self._take(trust, item)
            except Dropped as dropped:
                self._handled.refused.append(_refusal(item.rid, dropped))

    def _take(self, trust: SenderTrust, item: PipelineItem) -> None:
        """Take in a bundle that is NEW or an UPDATE."""
        stored = bundles.find(self._tx, item.rid)
        if item.contents is None:
            self._require_known(item, stored)
            return
        stated = item.manifest or self._own_manifest(item.rid, item.contents, stored)
        if stored is not None and stored.sha256 == item.contents.sha256 and stored.owner == str(self._batch.me):
            return  # this node's own, or as it was before, came back
        try:
            owner = owners.authorise(self._tx, trust, item.rid, item.contents.profile)
        except Dropped as dropped:
            is_known = stored is not None and stored.sha256 == item.contents.sha256
            if is_known and dropped.code is RefusalReason.NOT_THE_OWNER:
                return  # it passes on what is known already
            raise
        forgotten = (
            bundles.forgotten_at(self._tx, item.rid) if stored is None and item.rid != trust.batch.source else None
        )
        event_type = checks.compare(item.contents.sha256, stated.at, stored, forgotten)
        if event_type is None:
            self._touch(item.rid, stated, item.contents, owner)
        else:
            if event_type is EventType.NEW:
                owners.limit(self._tx, self._batch, item.rid, owner, item.contents.profile)
            owners.require_room(self._tx, self._batch, item.rid, owner, item.contents.text, stored)
            self._store(item.rid, event_type, stated, item.contents, owner)

    def _touch(self, rid: RID, stated: Manifest, contents: Contents, owner: str) -> None:
        """Note that contents are as they were. As in koi-net, others are not told of a newer date alone."""
        if bundles.touch(self._tx, rid, stated):
            final.dated(self._tx, rid)
            self._handled.noted.append(ItemChange(rid, EventType.UPDATE, stated.at, owner, contents.profile))

    def _require_known(self, item: PipelineItem, stored: Stored | None) -> None:
        """Refuse an event without contents, unless those that its manifest states are known."""
        if stored is None or item.manifest is None or stored.sha256 != item.manifest.sha256_hash:
            raise Dropped(RefusalReason.NO_CONTENTS, "the sender does not provide them")

    def _own_manifest(self, rid: RID, contents: Contents, stored: Stored | None) -> Manifest:
        """A manifest that is newer than all that was known of a RID."""
        before = stored.manifest_at if stored else bundles.forgotten_at(self._tx, rid) or 0
        return bundles.manifest_of(rid, max(self._tx.now, before + 1), contents.sha256)

    def _store(self, rid: RID, event_type: EventType, stated: Manifest, contents: Contents, owner: str) -> None:
        bundle = Stored(
            rid=str(rid),
            rid_type=str(type(rid)),
            manifest=stated.model_dump_json(exclude_none=True),
            manifest_at=stated.at,
            sha256=contents.sha256,
            contents=contents.text,
            owner=owner,
            origin=self._batch.origin,
        )
        bundles.put(self._tx, bundle)
        final.stored(self._tx, self._batch, rid, event_type, bundle, contents.profile)
        self._tell_neighbours(ItemChange(rid, event_type, bundle.manifest_at, owner, contents.profile))

    def _forget(self, trust: SenderTrust, item: PipelineItem) -> None:
        stored = bundles.find(self._tx, item.rid)
        owner = owners.authorise_forget(self._tx, trust, item.rid, stored)
        at = item.manifest.at if item.manifest else None
        if stored is None:
            if owner is not None and at is not None:
                bundles.bury(self._tx, str(item.rid), str(type(item.rid)), owner, at)
            return
        if at is not None and at < stored.manifest_at:
            raise Dropped(RefusalReason.OUTDATED, "what is known is newer")
        if isinstance(item.rid, KoiNetNode):
            if item.rid != self._batch.source and self._has_edge(item.rid):
                return  # this node knows better than a relay whether its neighbours are there
            before = self._neighbours()
            self._leave(item.rid)
            self._nodes = before
        self._remove(item.rid, stored, at)

    def _has_edge(self, node: KoiNetNode) -> bool:
        """Whether this node shares an edge with another one."""
        return str(node) in self._neighbours().all and node != self._batch.me

    def _leave(self, node: KoiNetNode) -> None:
        """Remove the edges of a node that leaves, and its personalities if it says so itself.

        A relay may only have lost sight of it; it passes on what became of the personalities as well.
        """
        if node in (self._batch.source, self._batch.me):
            for bundle in bundles.of_owner(self._tx, str(node), PERSONALITY):
                self._remove(parse(bundle.rid), bundle, None)
        for row in self._tx.all(SQL.edges_of, node=str(node)):
            edge = bundles.find(self._tx, row["rid"])
            if edge is not None:
                self._remove(parse(edge.rid), edge, None)

    def _remove(self, rid: RID, stored: Stored, at: int | None) -> None:
        """Forget a bundle, up to a time or up to what is known; this node's own up to now."""
        until = max(stored.manifest_at, at or 0)
        if stored.owner == str(self._batch.me) and stored.rid_type != EDGE:  # only this node dates it
            until = max(until, self._tx.now)
        profile = final.forgotten(self._tx, self._batch, rid, stored)
        self._tell_neighbours(ItemChange(rid, EventType.FORGET, until, stored.owner, profile))
        bundles.forget(self._tx, stored, until)

    def _tell_neighbours(self, change: ItemChange) -> None:
        """Note a change, and put it into the outbox for the neighbours that learn of it."""
        to = network.recipients(self._batch, self._neighbours(), change)
        for node in sorted(to):
            outbox.put(self._tx, node, change.rid, change.event_type)
        self._handled.queued = self._handled.queued or bool(to)
        self._handled.changes.append(change)
        self._handled.noted.append(change)
        if not isinstance(change.rid, AgentPersonality):
            self._nodes = None

    def _neighbours(self) -> Neighbours:
        if self._nodes is None:
            self._nodes = network.neighbours(self._tx, str(self._batch.me))
        return self._nodes
