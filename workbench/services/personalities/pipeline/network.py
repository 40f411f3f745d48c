"""The Network stage: which nodes learn of a change. Their events are put into the outbox."""

from __future__ import annotations

import json
from dataclasses import dataclass

from workbench.koi.nodes import EdgeProfile
from workbench.services.personalities.pipeline.item import Batch, ItemChange
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nodes that this one sends events to.

    Args:
        all: those that share an edge with it, and its first contact.
        subscribers: for each, the types of RIDs that it has subscribed to.
    """

    all: frozenset[str]
    subscribers: dict[str, frozenset[str]]

    def of(self, rid_type: str) -> set[str]:
        """The subscribers of a type."""
        return {node for node, types in self.subscribers.items() if rid_type in types}


def neighbours(tx: Reader, me: str) -> Neighbours:
    """The neighbours of this node, without those that are blocked."""
    edges = tx.all(SQL.subscribers, me=me)
    return Neighbours(
        frozenset(row["rid"] for row in tx.all(SQL.neighbours, me=me)),
        {row["target"]: frozenset(json.loads(row["rid_types"])) for row in edges},
    )


def recipients(batch: Batch, nodes: Neighbours, change: ItemChange) -> set[str]:
    """Recipients of a change: all neighbours for our own, the other end for an edge, subscribers for anyone else's."""
    to, not_to = nodes.of(str(type(change.rid))), {batch.origin, str(batch.me)}
    if isinstance(change.profile, EdgeProfile):
        if batch.source is None:
            to |= {str(change.profile.source), str(change.profile.target)}
        return to - not_to
    if change.owner == str(batch.me):
        to |= nodes.all
    return to - not_to - {change.owner}
