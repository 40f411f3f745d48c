"""Events of this node that a peer will never accept: what they were, and why."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.errors import WorkbenchError
from workbench.koi.payloads import Event, EventType
from workbench.services.personalities.peers.rows import MAX_ERROR
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
FORGOTTEN = ""
"""In place of the hash of contents, for a FORGET."""


def note(tx: Tx, node: str, event: Event, error: WorkbenchError) -> None:
    """Record that a peer will never accept an event."""
    reason = error.message[:MAX_ERROR]
    values = {"node": node, "rid": str(event.rid), "sha256": _hash(event), "code": error.code, "reason": reason}
    tx.run(SQL.note, values, now=tx.now)


def hashes(tx: Reader, node: str) -> Mapping[str, str]:
    """What a peer has rejected: by RID the hash of the contents, or `FORGOTTEN`."""
    return {row["rid"]: row["sha256"] for row in tx.all(SQL.hashes, node=node)}


def clear(tx: Tx, node: str) -> None:
    """Forget what a peer has rejected: it may be another program now."""
    tx.run(SQL.clear, node=node)


def _hash(event: Event) -> str:
    if event.event_type is EventType.FORGET or event.manifest is None:
        return FORGOTTEN
    return str(event.manifest.sha256_hash)
