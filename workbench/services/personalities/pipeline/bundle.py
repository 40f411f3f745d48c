"""The Bundle stage: whether contents are what their manifest and their RID say."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json
from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.koi.hashing import hash_of
from workbench.koi.identity import belongs
from workbench.koi.nodes import EdgeProfile, NodeProfile, edge_rid
from workbench.koi.payloads import Manifest
from workbench.koi.rids import NODE, parse
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.pipeline.item import Batch, Contents, Dropped, Profile
from workbench.services.personalities.refusals import RefusalReason


def read(rid: RID, manifest: Manifest | None, contents: dict[str, Any], batch: Batch) -> Contents:
    """The contents of an event, checked.

    Args:
        manifest: None if this node makes one.

    Raises:
        Dropped: `TOO_LARGE`, `HASH_MISMATCH`, `WRONG_RID`, `INVALID_KEY`, `CONTENTS_INVALID`.
    """
    text, sha256 = _hashed(contents, batch.settings.max_koi_profile_bytes)
    if manifest is not None and sha256 != manifest.sha256_hash:
        raise Dropped(RefusalReason.HASH_MISMATCH, f"its hash is {sha256}, and not {manifest.sha256_hash[:64]}")
    try:
        profile = _profile(rid, contents)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Dropped(RefusalReason.CONTENTS_INVALID, f"{where}: {first['msg']}".removeprefix(": ")) from None
    return Contents(profile, text, sha256)


def _hashed(contents: dict[str, Any], largest: int) -> tuple[str, str]:
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
    if profile.base_url is not None and not profile.base_url.startswith(("http://", "https://")):
        raise Dropped(RefusalReason.CONTENTS_INVALID, "base_url: it is no address of the web")
    return profile


def _edge(rid: RID, contents: dict[str, Any]) -> EdgeProfile:
    profile = EdgeProfile.model_validate(contents)
    if edge_rid(profile.source, profile.target) != rid:
        raise Dropped(RefusalReason.WRONG_RID, "the edge is between other nodes")
    if profile.source == profile.target:
        raise Dropped(RefusalReason.CONTENTS_INVALID, "it leads from a node to itself")
    return profile
