"""The rows of peers: who they are, where they are, and whether they answer."""

from __future__ import annotations

from rid_lib.types import KoiNetNode

from workbench.koi import rids
from workbench.koi.nodes import NodeProfile, NodeType
from workbench.koi.requests import KoiPeer
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
MAX_ERROR = 500
"""Characters of the error that is kept of a request."""


def note(tx: Tx, rid: KoiNetNode, profile: NodeProfile) -> None:
    """Record a node whose bundle was accepted: a new one, or what has changed about it."""
    tx.run(
        SQL.note,
        rid=str(rid),
        name=rid.name,
        node_type=profile.node_type,
        base_url=profile.base_url,
        public_key=profile.public_key,
        now=tx.now,
    )


def forget(tx: Tx, rid: KoiNetNode) -> None:
    """Remove a node that has left. One that is blocked stays, and so does the first contact."""
    tx.run(SQL.forget, rid=str(rid))


def find(tx: Reader, rid: KoiNetNode | str) -> Row | None:
    """The row of a node, if it is known."""
    return tx.one(SQL.get, rid=str(rid))


def known(tx: Reader) -> set[str]:
    """The RIDs of all nodes that are known."""
    return {rid for (rid,) in tx.tuples(SQL.known)}


def address(row: Row) -> KoiPeer | None:
    """How to reach a node; None if it cannot be reached: it only polls, or is blocked."""
    if row["node_type"] != NodeType.FULL or not row["base_url"] or row["blocked_at"] is not None:
        return None
    return KoiPeer(rids.parse_node(row["rid"]), row["base_url"].rstrip("/"), row["public_key"])


def due(tx: Reader, me: str) -> list[Row]:
    """The nodes that can be reached and are not waited for, and what there is to do for each."""
    return tx.all(SQL.due, me=me, now=tx.now)


def reached(tx: Tx, rid: KoiNetNode | str) -> None:
    """Record that a node answered, or sent something: it is not waited for any longer."""
    tx.run(SQL.reached, rid=str(rid), now=tx.now)


def failed(tx: Tx, rid: KoiNetNode | str, error: str, retry_at: int) -> None:
    """Record that a request to a node failed."""
    tx.run(SQL.failed, rid=str(rid), error=error[:MAX_ERROR], retry_at=retry_at)
