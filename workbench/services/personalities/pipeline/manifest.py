"""The Manifest stage: which events are new, as seen from here."""

from __future__ import annotations

from rid_lib import RID

from workbench.koi.payloads import EventType, Manifest
from workbench.model import SECOND, iso
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.pipeline.item import Batch, Dropped
from workbench.services.personalities.refusals import RefusalReason


def check(rid: RID, manifest: Manifest, batch: Batch, now: int) -> None:
    """Refuse a manifest of something else, and one that is dated in the future.

    Raises:
        Dropped: `WRONG_RID`, `FROM_THE_FUTURE`.
    """
    if str(manifest.rid) != str(rid):
        raise Dropped(RefusalReason.WRONG_RID, f"the manifest is of {str(manifest.rid)[:100]}")
    at = manifest.at
    if at > now + batch.settings.koi_skew_seconds * SECOND:
        raise Dropped(
            RefusalReason.FROM_THE_FUTURE, f"its manifest is dated {manifest.timestamp}, and it is {iso(now)}"
        )


def compare(sha256: str, at: int, known: Stored | None, forgotten_at: int | None) -> EventType | None:
    """What an event means here; None if it changes nothing.

    Args:
        sha256, at: of its manifest; microseconds UTC.

    Raises:
        Dropped: `OUTDATED`, `FORGOTTEN`.
    """
    if known is None:
        if forgotten_at is not None and at <= forgotten_at:
            raise Dropped(RefusalReason.FORGOTTEN, f"it was forgotten, up to {iso(forgotten_at)}")
        return EventType.NEW
    if sha256 == known.sha256:
        return None
    if at <= known.manifest_at:
        raise Dropped(RefusalReason.OUTDATED, f"it is of {iso(at)}, and what is known of {iso(known.manifest_at)}")
    return EventType.UPDATE
