"""Events of this node that a peer does not accept: what they were, and why."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.errors import WorkbenchError
from workbench.koi import rids
from workbench.koi.payloads import EventType, KoiEvent
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.peers.rows import MAX_ERROR
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
FORGOTTEN = ""
"""In place of the hash of contents, for a FORGET."""


def note(tx: Tx, node: str, event: KoiEvent, error: WorkbenchError, *, is_final: bool) -> None:
    """Record that a peer does not accept an event.

    Args:
        is_final: it never will. Otherwise it has failed with it.
    """
    reason = error.message[:MAX_ERROR]
    values = {"node": node, "rid": str(event.rid), "sha256": _hash(event), "code": error.code, "reason": reason}
    tx.run(SQL.note, values, is_final=int(is_final), now=tx.now)


def hashes(tx: Reader, node: str) -> Mapping[str, str]:
    """What a peer will never accept: by RID the hash of the contents, or `FORGOTTEN`."""
    return {row["rid"]: row["sha256"] for row in tx.all(SQL.hashes, node=node)}


def retry(tx: Tx, node: str) -> None:
    """Have everything sent again with which a peer has failed."""
    for row in tx.all(SQL.failed, node=node):
        event_type = EventType.FORGET if row["sha256"] == FORGOTTEN else EventType.NEW
        outbox.put(tx, node, rids.parse(row["rid"]), event_type)
    tx.run(SQL.clear_failed, node=node)


def clear(tx: Tx, node: str) -> None:
    """Forget what a peer has rejected: it may be another program now."""
    tx.run(SQL.clear, node=node)


def _hash(event: KoiEvent) -> str:
    if event.event_type is EventType.FORGET or event.manifest is None:
        return FORGOTTEN
    return str(event.manifest.sha256_hash)
