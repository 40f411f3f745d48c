"""What is still to be sent to each peer: the newest event of each RID, in the order in which they happened.

What is sent is what is known of the RID then: its bundle, or else that it was forgotten, and up to when. So an event
may be sent once too often, but it never says what is no longer so.

A later event of a RID replaces the earlier one and goes to the end. Its row has a new id, so an event that is added
while its predecessor is being sent is not removed with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from rid_lib import RID
from rid_lib.ext.utils import sha256_hash

from workbench.koi import rids
from workbench.koi.payloads import EventType, KoiEvent, Manifest
from workbench.services.personalities import bundles
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
NOTHING = sha256_hash("{}")
"""The hash of empty contents."""


class WaitingEvent(NamedTuple):
    """An event that waits. `event`: None if there is nothing to send any more. `size`: characters of its contents."""

    id: int
    event: KoiEvent | None
    size: int


def put(tx: Tx, node: str, rid: RID, event_type: EventType) -> None:
    """Add an event for a node."""
    tx.run(SQL.drop, node=node, rid=str(rid))
    tx.run(SQL.put, node=node, rid=str(rid), event_type=event_type, now=tx.now)


def put_known(tx: Tx, node: str, types: Iterable[str], *, me: str, everything: bool) -> None:
    """Add all that is known of some types, unless it is the node's own or waits already.

    Args:
        me: the RID of this node.
        everything: also what belongs to others.
    """
    tx.run(SQL.put_known, node=node, types=json.dumps(sorted(types)), me=me, everything=int(everything), now=tx.now)


def first(tx: Reader, node: str, limit: int) -> list[WaitingEvent]:
    """The first events that wait for a node."""
    return [_waiting(row) for row in tx.all(SQL.first, node=node, limit=limit)]


def first_to_send(tx: Reader, me: str, node: str, limit: int) -> list[WaitingEvent]:
    """The first events that wait for a node; none if it fetches them by polls.

    Args:
        me: the RID of this node.
    """
    return [] if tx.one(SQL.is_fetched, me=me, node=node) else first(tx, node, limit)


def has(tx: Reader, node: str, rid: RID) -> bool:
    """Whether an event about a RID waits for a node."""
    return tx.one(SQL.has, node=node, rid=str(rid)) is not None


def remove(tx: Tx, ids: Iterable[int]) -> None:
    """Remove events that have arrived."""
    tx.many(SQL.remove, [{"id": event_id} for event_id in ids])


def empty(tx: Tx, node: str) -> None:
    """Remove everything that waits for a node."""
    tx.run(SQL.empty, node=node)


def empty_of_strangers(tx: Tx) -> None:
    """Remove what waits for nodes that have left, or are blocked."""
    tx.run(SQL.empty_of_strangers)


def _forget(rid: RID, at: int | None) -> KoiEvent:
    """A FORGET. Its manifest, which koi-net ignores, tells a receiver whether what it knows is newer."""
    manifest = None if at is None else bundles.manifest_of(rid, at, NOTHING)
    return KoiEvent(rid=rid, event_type=EventType.FORGET, manifest=manifest)


def _waiting(row: Row) -> WaitingEvent:
    rid, event_type = rids.parse(row["rid"]), EventType(row["event_type"])
    is_forget = event_type is EventType.FORGET
    if row["manifest"] is None:
        return WaitingEvent(row["id"], _forget(rid, row["forgotten_at"]) if is_forget else None, 0)
    event = KoiEvent(
        rid=rid,
        event_type=EventType.NEW if is_forget else event_type,
        manifest=Manifest.model_validate_json(row["manifest"]),
        contents=json.loads(row["contents"]),
    )
    return WaitingEvent(row["id"], event, len(row["contents"]))
