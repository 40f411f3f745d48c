"""The payloads that nodes exchange. Their order of fields is part of the protocol: the JSON text is signed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

import rid_lib.ext
from pydantic import BaseModel, Field
from rid_lib import RID
from rid_lib.ext.utils import sha256_hash, sha256_hash_json

from workbench.koi.rids import AnyRid, TypeNames

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_POLLED = 1_000_000
LONGEST_MESSAGE = 500
"""Characters of a report of progress."""


class Manifest(rid_lib.ext.Manifest):
    """The RID of a resource, the hash of its contents and their time."""

    rid: AnyRid

    @property
    def at(self) -> int:
        """Its time, microseconds UTC."""
        timestamp = self.timestamp
        aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)


class Bundle(BaseModel):
    """The contents of a resource, with their manifest."""

    manifest: Manifest
    contents: dict[str, Any]

    @classmethod
    def generate(cls, rid: RID, contents: dict[str, Any], at: int | None = None) -> Self:
        """A bundle of contents.

        Args:
            at: their time, microseconds UTC; None: now.

        Raises:
            ValueError: the contents have a number that is not finite.
        """
        manifest = Manifest.generate(rid, contents)
        if at is not None:
            manifest.timestamp = EPOCH + timedelta(microseconds=at)
        return cls(manifest=manifest, contents=contents)

    @property
    def rid(self) -> RID:
        """The RID of the resource."""
        return self.manifest.rid


class EventType(StrEnum):
    """What happened to a resource."""

    NEW = "NEW"
    UPDATE = "UPDATE"
    FORGET = "FORGET"


class KoiEvent(BaseModel):
    """A change of a resource, with its manifest and its contents or without."""

    rid: AnyRid
    event_type: EventType
    manifest: Manifest | None = None
    contents: dict[str, Any] | None = None


class EventsPayload(BaseModel):
    """Events that are broadcast, or the answer to a poll."""

    type: Literal["events_payload"] = "events_payload"
    events: list[KoiEvent]


class PollEvents(BaseModel):
    """A request for the events that wait; `limit` 0: all of them."""

    type: Literal["poll_events"] = "poll_events"
    limit: int = Field(0, ge=0, le=MOST_POLLED)


class FetchRids(BaseModel):
    """A request for RIDs; no types: all of them."""

    type: Literal["fetch_rids"] = "fetch_rids"
    rid_types: TypeNames = []


class RidsPayload(BaseModel):
    """The RIDs that a node has."""

    type: Literal["rids_payload"] = "rids_payload"
    rids: list[AnyRid]


class FetchManifests(BaseModel):
    """A request for manifests: of RIDs, or of all RIDs of types."""

    type: Literal["fetch_manifests"] = "fetch_manifests"
    rid_types: TypeNames = []
    rids: list[AnyRid] = []


class ManifestsPayload(BaseModel):
    """Manifests, and the RIDs that the node does not have."""

    type: Literal["manifests_payload"] = "manifests_payload"
    manifests: list[Manifest]
    not_found: list[AnyRid] = []


class FetchBundles(BaseModel):
    """A request for bundles."""

    type: Literal["fetch_bundles"] = "fetch_bundles"
    rids: list[AnyRid]


class BundlesPayload(BaseModel):
    """Bundles, and the RIDs that the node does not have, or not yet."""

    type: Literal["bundles_payload"] = "bundles_payload"
    bundles: list[Bundle]
    not_found: list[AnyRid] = []
    deferred: list[AnyRid] = []


class ErrorType(StrEnum):
    """Why an envelope is refused."""

    UNKNOWN_NODE = "unknown_node"
    INVALID_KEY = "invalid_key"
    INVALID_SIGNATURE = "invalid_signature"
    INVALID_TARGET = "invalid_target"


class ErrorResponse(BaseModel):
    """The answer to an envelope that is refused; not signed.

    Args:
        code, message: Workbench's own addition, which koi-net ignores: why, for people.
    """

    type: Literal["error_response"] = "error_response"
    error: ErrorType
    code: str | None = None
    message: str | None = None


class TraitCall(BaseModel):
    """A call of a trait. Workbench's own addition to the protocol: ``POST <mcp_url>/tools/call/<trait>``.

    Args:
        call_id: chosen by the caller; a node runs each once.
        sent_at: ISO 8601, UTC. A call that is older than a minute is refused.
        caller: the name of the agent there, for people.
        seconds: how long the caller waits.
    """

    type: Literal["trait_call"] = "trait_call"
    call_id: str = Field(min_length=1, max_length=200)
    sent_at: str = Field(max_length=100)
    rid: AnyRid
    trait: str = Field(min_length=1, max_length=128)
    arguments: dict[str, Any]
    caller: str = Field(max_length=200)
    seconds: float = Field(gt=0, allow_inf_nan=False)


class TraitProgress(BaseModel):
    """How far a call is, for callers that ask for it; see `requests.FOLLOWED`.

    Args:
        number: counts the reports of a call from 1.
        progress: of `total`, if that is known.
    """

    type: Literal["trait_progress"] = "trait_progress"
    call_id: str = Field(max_length=200)
    number: int = Field(ge=1)
    progress: float = Field(allow_inf_nan=False)
    total: float | None = Field(None, allow_inf_nan=False)
    message: str | None = Field(None, max_length=LONGEST_MESSAGE)


class TraitResult(BaseModel):
    """The answer to a call: a result in MCP's form, or a coded error.

    Args:
        version: of the function that ran.
        error: code, message and details.
    """

    type: Literal["trait_result"] = "trait_result"
    call_id: str
    content: list[dict[str, Any]] = []
    structured: Any = None
    is_error: bool = False
    version: str | None = None
    error: dict[str, Any] | None = None


Payload = Annotated[
    EventsPayload
    | PollEvents
    | FetchRids
    | RidsPayload
    | FetchManifests
    | ManifestsPayload
    | FetchBundles
    | BundlesPayload
    | TraitCall
    | TraitProgress
    | TraitResult,
    Field(discriminator="type"),
]


LARGEST_EXACT = 2**53
"""The largest integer that every encoder writes alike."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def hash_of(contents: dict[str, Any]) -> str:
    """SHA-256 of contents in canonical form (RFC 8785), as hexadecimal digits.

    rid-lib computes it in Python alone, which takes most of the time of an event. Most contents need none of its rules.

    Raises:
        ValueError: the contents have a number that is not finite.
    """
    if _is_plain(contents):
        return str(sha256_hash(_ENCODER.encode(contents)))
    return str(sha256_hash_json(contents))


def _is_plain(contents: dict[str, Any]) -> bool:
    """Whether Python's own encoder writes a value in canonical form.

    It writes floats and large integers differently, and sorts keys by code points instead of UTF-16 code units.
    """
    pending: list[Any] = [contents]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if not "".join(value).isascii():
                return False
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, int):
            if abs(value) > LARGEST_EXACT:
                return False
        elif value is not None and not isinstance(value, str):
            return False
    return True
