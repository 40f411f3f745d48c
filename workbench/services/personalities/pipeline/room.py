"""Room for newcomers: when as many nodes are known as are kept, the one that has been silent for longest is dropped.

Whoever reaches the port can introduce as many nodes as it likes. So a node is kept for what it has here: personalities,
a permission, the edge that it has asked for or agreed to, as long as it answers.
"""

from __future__ import annotations

from workbench.koi.nodes import NodeType
from workbench.model import SECOND
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline.item import Batch
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)
SILENT = 600 * SECOND
"""How long a node that only polls may be silent and still counts as one that answers."""


def make(tx: Tx, batch: Batch) -> bool:
    """Drop a node that makes room; whether there was one.

    No tombstone is made, so that it can come back.
    """
    values = {"me": str(batch.me), "source": batch.origin, "partial": NodeType.PARTIAL, "since": tx.now - SILENT}
    row = tx.one(SQL.silent, values)
    if row is None:
        return False
    rid = row["rid"]
    outbox.empty(tx, rid)
    for drop in (SQL.drop_edge_bundles, SQL.drop_edges, SQL.drop_bundle, SQL.drop_node):
        tx.run(drop, rid=rid)
    tx.emit("peer.forgotten", f"peer:{rid}", rid=rid, name=row["name"])
    return True
