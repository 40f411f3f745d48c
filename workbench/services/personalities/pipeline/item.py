"""An event on its way through the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.koi.nodes import EdgeProfile, NodeProfile
from workbench.koi.payloads import EventType, Manifest
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.services.personalities.refusals import RefusalReason
from workbench.state.settings import Settings
from workbench.store.base import Tx

Profile = PersonalityProfile | NodeProfile | EdgeProfile
Condition = Callable[[Tx], bool]


def always(tx: Tx) -> bool:
    """The condition that always holds."""
    return True


class Dropped(Exception):
    """An event is refused."""

    def __init__(self, code: RefusalReason, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Batch:
    """The common part of the events of a batch.

    Args:
        me: this node.
        source: the node that sent them; None: this node itself.
        only_if: asked in the transaction that stores them; if it does not hold, they change nothing.
    """

    me: KoiNetNode
    source: KoiNetNode | None
    settings: Settings
    only_if: Condition = always

    @property
    def origin(self) -> str:
        """The RID of the node that they are from."""
        return str(self.source or self.me)


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents that fit their RID.

    Args:
        text: JSON.
        sha256: of their canonical form.
    """

    profile: Profile
    text: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PipelineItem:
    """An event, as far as the stages have checked it.

    Args:
        manifest: None for this node's own, which get one when they are stored, and for a FORGET without one.
        contents: None for a FORGET, and if the store has the same already.
    """

    rid: RID
    event_type: EventType
    manifest: Manifest | None
    contents: Contents | None = None


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A change that an event has made.

    Args:
        event_type: as seen from here: NEW if it was not known, UPDATE if it was.
        manifest_at: of the manifest, or of what was forgotten; microseconds UTC.
        profile: None for a FORGET, except of an edge.
    """

    rid: RID
    event_type: EventType
    manifest_at: int
    owner: str
    profile: Profile | None = None
