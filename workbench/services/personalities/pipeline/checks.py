"""The stages that need no store (RID, Manifest, Bundle): whether an event is what it says it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json
from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.koi.identity import belongs
from workbench.koi.nodes import EdgeProfile, NodeProfile, edge_rid
from workbench.koi.payloads import EventType, KoiEvent, Manifest, hash_of
from workbench.koi.rids import NODE, ForeignRid, parse
from workbench.model import SECOND, iso
from workbench.rules.personalities.addresses import is_plain
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.pipeline.item import Batch, Contents, Dropped, Profile
from workbench.services.personalities.refusals import RefusalReason


def check_rid(rid: RID, batch: Batch) -> None:
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


def check_manifest(rid: RID, manifest: Manifest, batch: Batch, now: int) -> None:
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


def compare(sha256: str, at: int, stored: Stored | None, forgotten_at: int | None) -> EventType | None:
    """What an event means here; None if it changes nothing.

    Args:
        sha256, at: of its manifest; microseconds UTC.

    Raises:
        Dropped: `OUTDATED`, `FORGOTTEN`.
    """
    if stored is None:
        if forgotten_at is not None and at <= forgotten_at:
            raise Dropped(RefusalReason.FORGOTTEN, f"it was forgotten, up to {iso(forgotten_at)}")
        return EventType.NEW
    if sha256 == stored.sha256:
        return None
    if at <= stored.manifest_at:
        raise Dropped(RefusalReason.OUTDATED, f"it is of {iso(at)}, and what is known of {iso(stored.manifest_at)}")
    return EventType.UPDATE


def read(rid: RID, manifest: Manifest | None, contents: dict[str, Any], batch: Batch) -> Contents:
    """The contents of an event, checked.

    Args:
        manifest: None if this node makes one.

    Raises:
        Dropped: `TOO_LARGE`, `HASH_MISMATCH`, `WRONG_RID`, `INVALID_KEY`, `CONTENTS_INVALID`.
    """
    text, sha256 = _hash(contents, batch.settings.max_koi_profile_bytes)
    if manifest is not None and sha256 != manifest.sha256_hash:
        raise Dropped(RefusalReason.HASH_MISMATCH, f"its hash is {sha256}, and not {manifest.sha256_hash[:64]}")
    try:
        profile = _profile(rid, contents)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Dropped(RefusalReason.CONTENTS_INVALID, f"{where}: {first['msg']}".removeprefix(": ")) from None
    return Contents(profile, text, sha256)


def _hash(contents: dict[str, Any], largest: int) -> tuple[str, str]:
    """Contents as JSON text, and the hash of their canonical form."""
    try:
        text = to_json(contents)
        if len(text) > largest:
            raise Dropped(RefusalReason.TOO_LARGE, f"it has {len(text):,} bytes, and may have {largest:,}")
        return text.decode(), hash_of(contents)
    except (ValueError, TypeError, RecursionError, OverflowError, PydanticSerializationError):
        raise Dropped(RefusalReason.CONTENTS_INVALID, "its contents have no canonical form") from None


def _profile(rid: RID, contents: dict[str, Any]) -> Profile:
    if isinstance(rid, AgentPersonality):
        return _personality(rid, contents)
    if isinstance(rid, KoiNetNode):
        return _node(rid, contents)
    return _edge(rid, contents)


def _personality(rid: RID, contents: dict[str, Any]) -> PersonalityProfile:
    if contents.get("rid") != str(rid):
        raise Dropped(RefusalReason.WRONG_RID, "the profile is of another personality")
    owner = str(contents.get("node_rid"))
    try:
        if not owner.startswith(f"{NODE}:"):
            raise ValueError
        parse(owner)
    except ValueError:
        raise Dropped(RefusalReason.CONTENTS_INVALID, "node_rid: it is not the RID of a node") from None
    return PersonalityProfile.model_validate(contents)


def _node(rid: KoiNetNode, contents: dict[str, Any]) -> NodeProfile:
    profile = NodeProfile.model_validate(contents)
    if profile.public_key is None or not belongs(profile.public_key, rid):
        raise Dropped(RefusalReason.INVALID_KEY, "the public key is not the one that the RID names")
    if profile.base_url is not None and not is_plain(profile.base_url):
        reason = "base_url: it is no address such as http://HOST:PORT/koi-net"
        raise Dropped(RefusalReason.CONTENTS_INVALID, reason)
    return profile


def _edge(rid: RID, contents: dict[str, Any]) -> EdgeProfile:
    profile = EdgeProfile.model_validate(contents)
    if edge_rid(profile.source, profile.target) != rid:
        raise Dropped(RefusalReason.WRONG_RID, "the edge is between other nodes")
    if profile.source == profile.target:
        raise Dropped(RefusalReason.CONTENTS_INVALID, "it leads from a node to itself")
    return profile
