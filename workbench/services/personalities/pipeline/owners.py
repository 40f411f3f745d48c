"""Who may change what: owners, trusted relays, and limits."""

from __future__ import annotations

from dataclasses import dataclass

from rid_lib import RID

from workbench.koi.nodes import EdgeProfile
from workbench.koi.rids import EDGE, NODE, PERSONALITY
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.pipeline import room
from workbench.services.personalities.pipeline.item import Batch, Dropped, Profile
from workbench.services.personalities.refusals import RefusalReason
from workbench.services.personalities.self_node import hash_of
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class SenderTrust:
    """What the sender of a batch may do.

    Args:
        relays: it may pass on what others own.
        is_known: if not, it may introduce itself, and nothing else.
    """

    batch: Batch
    relays: bool
    is_known: bool


def trust_in(tx: Reader, batch: Batch) -> SenderTrust:
    """What the sender of a batch may do.

    Raises:
        Dropped: `BLOCKED`.
    """
    if batch.source is None:
        return SenderTrust(batch, relays=False, is_known=True)
    row = tx.one(SQL.node, rid=str(batch.source))
    if row and row["blocked_at"] is not None:
        raise Dropped(RefusalReason.BLOCKED, "the sender is blocked")
    return SenderTrust(batch, relays=bool(row and row["is_relay"]), is_known=row is not None)


def authorise(tx: Reader, trust: SenderTrust, rid: RID, profile: Profile) -> str:
    """The owner of what an event is about, if the sender may change it.

    Raises:
        Dropped: `NOT_THE_OWNER`, `NAME_TAKEN`, `NAME_RELEASED`, `OWN_RID`, `BLOCKED`, `UNKNOWN_NODE`.
    """
    if not trust.is_known and rid != trust.batch.source:
        raise Dropped(RefusalReason.UNKNOWN_NODE, "the sender has not introduced itself")
    if isinstance(profile, EdgeProfile):
        return _edge_owner(tx, trust, profile)
    owner = str(profile.node_rid) if isinstance(profile, PersonalityProfile) else str(rid)
    _require(tx, trust, owner)
    if isinstance(rid, AgentPersonality):
        pinned = owner_of(tx, rid.name)
        if pinned is not None and not is_same(pinned, owner):
            raise Dropped(RefusalReason.NAME_TAKEN, f"the name belongs to {pinned}")
        if pinned is None and tx.one(SQL.released, name=rid.name, key_hash=hash_of(owner)):
            raise Dropped(RefusalReason.NAME_RELEASED, f"the name was taken from {owner}")
    return owner


def authorise_forget(tx: Reader, trust: SenderTrust, rid: RID, stored: Stored | None) -> str | None:
    """The owner of what is to be forgotten, if the sender may do that; None if nobody is known to own it.

    Raises:
        Dropped: `NOT_THE_OWNER`, `OWN_RID`.
    """
    if stored is not None and stored.rid_type == EDGE:
        return _edge_owner(tx, trust, EdgeProfile.model_validate_json(stored.contents))
    owner = stored.owner if stored else owner_of(tx, rid.name) if isinstance(rid, AgentPersonality) else None
    if owner is not None and trust.batch.source is not None:
        try:
            _require(tx, trust, owner)
        except Dropped as dropped:
            if stored is not None or dropped.code is not RefusalReason.NOT_THE_OWNER:
                raise
            return None  # it passes on what is known already
    return owner


def is_same(node: str, other: str) -> bool:
    """Whether two RIDs are of one node: their keys count, and not the names before them."""
    return hash_of(node) == hash_of(other)


def owner_of(tx: Reader, name: str) -> str | None:
    """The node that a name of personalities belongs to."""
    row = tx.one(SQL.owner_of, name=name)
    return str(row["owner"]) if row else None


def pin(tx: Tx, name: str, owner: str) -> None:
    """Give a name to a node, until the operator releases it, if it belongs to none."""
    tx.run(SQL.pin, name=name, owner=owner, now=tx.now)


def limit(tx: Tx, batch: Batch, rid: RID, owner: str, profile: Profile) -> None:
    """Refuse what is new if there is too much already. This node's own is not limited, and neither are edges with it:
    there are two for each node. A node that is new may take the place of one that is silent; see `room`.

    Raises:
        Dropped: `TOO_MANY`.
    """
    if batch.source is None:
        return
    kind, settings = str(type(rid)), batch.settings
    if kind == PERSONALITY:
        if max(_count(tx, kind, owner), _names(tx, rid, owner)) >= settings.max_koi_personalities_per_node:
            raise Dropped(
                RefusalReason.TOO_MANY, f"its owner has {settings.max_koi_personalities_per_node:,} personalities"
            )
        largest = settings.max_koi_personalities
    else:
        largest = settings.max_koi_nodes * (1 if kind == NODE else EDGES_PER_NODE)
    if isinstance(profile, EdgeProfile) and batch.me in (profile.source, profile.target):
        return
    if _count(tx, kind, None) >= largest and not (kind == NODE and room.make(tx, batch)):
        raise Dropped(RefusalReason.TOO_MANY, f"there are {largest:,} of {kind}")


def require_room(tx: Reader, batch: Batch, rid: RID, owner: str, contents: str, stored: Stored | None) -> None:
    """Refuse what would make all that is kept of a node too large. This node's own is not limited.

    An edge counts for the node that has sent it: it may name any other one as its source.

    Args:
        contents: JSON.
        known: what they replace.

    Raises:
        Dropped: `QUOTA_EXCEEDED`.
    """
    is_edge = str(type(rid)) == EDGE
    node = batch.origin if is_edge else owner
    if batch.source is None or is_same(node, str(batch.me)):
        return
    is_its_own = stored is not None and node == (stored.origin if is_edge else stored.owner)
    added = len(contents.encode()) - (len(stored.contents.encode()) if stored and is_its_own else 0)
    if added <= 0:
        return
    row, most = tx.one(SQL.bytes_of, node=node), batch.settings.max_koi_bytes_per_node
    assert row is not None
    if (total := row["n"] + added) > most:
        raise Dropped(RefusalReason.QUOTA_EXCEEDED, f"all of {node} would have {total:,} bytes, and may have {most:,}")


EDGES_PER_NODE = 4
"""How many edges are kept for each node that may be kept."""


def _count(tx: Reader, kind: str, owner: str | None) -> int:
    row = tx.one(SQL.count_of, rid_type=kind, owner=owner) if owner else tx.one(SQL.count, rid_type=kind)
    assert row is not None
    return int(row["n"])


def _names(tx: Reader, rid: RID, owner: str) -> int:
    """How many names a node owns already, also of what it has forgotten; 0 if this is one of them."""
    assert isinstance(rid, AgentPersonality)
    if owner_of(tx, rid.name) is not None:
        return 0
    row = tx.one(SQL.count_names, owner=owner)
    assert row is not None
    return int(row["n"])


def _edge_owner(tx: Reader, trust: SenderTrust, edge: EdgeProfile) -> str:
    """The source of an edge. Either end may change it; of edges between others a relay may tell."""
    batch, ends = trust.batch, (edge.source, edge.target)
    sender = batch.source or batch.me
    if sender not in ends:
        if batch.me in ends:
            raise Dropped(RefusalReason.OWN_RID, "an edge of this node is changed by its two ends only")
        if not trust.relays:
            raise Dropped(RefusalReason.NOT_THE_OWNER, "an edge is changed by its two ends only")
    return str(edge.source)


def _require(tx: Reader, trust: SenderTrust, owner: str) -> None:
    """Refuse the sender unless it is the owner, or relays."""
    batch = trust.batch
    if is_same(owner, batch.origin):
        return
    if batch.source is None:
        raise Dropped(RefusalReason.NOT_THE_OWNER, f"it belongs to {owner}")
    if is_same(owner, str(batch.me)):
        raise Dropped(RefusalReason.OWN_RID, "it belongs to this node")
    if not trust.relays:
        raise Dropped(RefusalReason.NOT_THE_OWNER, f"it belongs to {owner}")
    row = tx.one(SQL.node, rid=owner)
    if row and row["blocked_at"] is not None:
        raise Dropped(RefusalReason.BLOCKED, f"its owner {owner} is blocked")
