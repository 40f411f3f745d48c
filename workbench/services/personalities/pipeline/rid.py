"""The RID stage: which resources a node may send events about at all."""

from __future__ import annotations

from collections.abc import Sequence

from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.koi.payloads import EventType, KoiEvent
from workbench.koi.rids import ForeignRid
from workbench.services.personalities.pipeline.item import Batch, Dropped
from workbench.services.personalities.refusals import RefusalReason


def check(rid: RID, batch: Batch) -> None:
    """Refuse RIDs that are not accepted, and events of others about this node.

    Raises:
        Dropped: `RID_INVALID`, `OWN_RID`.
    """
    if isinstance(rid, ForeignRid):
        raise Dropped(RefusalReason.RID_INVALID, "it is not the RID of a personality, a node or an edge")
    if batch.source is not None and rid == batch.me:
        raise Dropped(RefusalReason.OWN_RID, "only this node changes its own profile")


def is_handshake(events: Sequence[KoiEvent], source: KoiNetNode) -> bool:
    """Whether a node introduces itself: it forgets itself and is new at once. That is one event, and not two."""
    own = [event.event_type for event in events if event.rid == source]
    return EventType.FORGET in own[:-1] and own[-1] is not EventType.FORGET
