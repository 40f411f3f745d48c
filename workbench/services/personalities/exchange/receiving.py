"""Answers the requests of other nodes: the five endpoints of KOI-net. A request without a date is accepted once:
envelopes carry no time, and what a bundle's manifest dates cannot be undone by an old message, but polls and FORGET
events without a manifest have no date, so each of their signatures counts once.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from rid_lib.types import KoiNetNode

from workbench.errors import BadInput, Refused, Unavailable, WorkbenchError
from workbench.koi.envelope import Envelope, signed
from workbench.koi.identity import COORDINATE, belongs
from workbench.koi.incoming import Incoming, received
from workbench.koi.node import Presence
from workbench.koi.nodes import NodeProfile, NodeType
from workbench.koi.payloads import (
    BundlesPayload,
    ErrorResponse,
    ErrorType,
    EventsPayload,
    EventType,
    FetchBundles,
    FetchManifests,
    FetchRids,
    ManifestsPayload,
    Payload,
    PollEvents,
    RidsPayload,
)
from workbench.koi.requests import BROADCAST, BUNDLES, MANIFESTS, POLL, RIDS
from workbench.ops import Ctx
from workbench.services.personalities import bundles, refusals
from workbench.services.personalities.exchange import polling, rounds, same_key
from workbench.services.personalities.pipeline import run
from workbench.services.personalities.pipeline.checks import is_handshake
from workbench.services.personalities.refusals import RefusalReason
from workbench.services.personalities.refusals import RefusedEvent as Counted
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
OK, BAD_REQUEST = 200, 400
MOST_BYTES = 4_194_304
"""Contents in one answer; what does not fit is deferred."""


_PROTOCOL: Mapping[str, ErrorType] = {
    RefusalReason.UNKNOWN_NODE: ErrorType.UNKNOWN_NODE,
    RefusalReason.INVALID_KEY: ErrorType.INVALID_KEY,
    RefusalReason.INVALID_SIGNATURE: ErrorType.INVALID_SIGNATURE,
    RefusalReason.INVALID_TARGET: ErrorType.INVALID_TARGET,
}


_UNPROVEN = frozenset({RefusalReason.UNKNOWN_NODE, RefusalReason.INVALID_KEY, RefusalReason.INVALID_SIGNATURE})
"""Reasons for which an envelope may be from anybody, and counts for none."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request whose sender is known."""

    ctx: Ctx
    source: KoiNetNode


async def answer(ctx: Ctx, path: str, raw: bytes) -> tuple[int, bytes]:
    """The status and the body of the answer to a request of another node.

    A request that is refused is counted. The reasons that the protocol names are answered as an `ErrorResponse`.

    Args:
        path: after ``/koi-net``, such as ``/events/broadcast``; one of those in `koi.requests`.

    Raises:
        BadInput: ``KOI_MALFORMED``. Refused: ``KOI_BLOCKED``, ``KOI_REPLAYED``. Unavailable: ``KOI_NOT_JOINED``.
    """
    try:
        incoming = await _admit(ctx, path, raw)
        return OK, await _answer(ctx, path, incoming)
    except _Turned as turned:
        return BAD_REQUEST, turned.body


class _Turned(Exception):
    """An envelope is refused with an error of the protocol."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.body = body


def protocol_error(error: WorkbenchError) -> bytes | None:
    """The answer to an envelope that `check` refuses, if the protocol has a name for the reason."""
    if (name := _PROTOCOL.get(error.code)) is None:
        return None
    answer = ErrorResponse(error=name, code=error.details.get("cause", error.code), message=error.message)
    return answer.model_dump_json().encode()


async def check(ctx: Ctx, incoming: Incoming) -> None:
    """Check that an envelope is from a known node that is not blocked, is signed by it, and is for this one.

    A node that is not known may introduce itself in the envelope.

    Raises:
        Refused: ``KOI_BLOCKED``, or the code of another `Refusal`. It is counted.
        Unavailable: ``KOI_NOT_JOINED``.
    """
    presence, envelope = _presence(ctx), incoming.envelope
    row = await ctx.store.read_inline(lambda tx: tx.one(SQL.sender, rid=str(envelope.source_node)))
    is_known = bool(row and row["is_known"])
    key = row["public_key"] if row and is_known else _own_key(presence, incoming) or _introduced_key(incoming)
    code = None
    if key is None:
        code, reason = RefusalReason.UNKNOWN_NODE, "the sender is not known"
    elif not belongs(key, envelope.source_node):
        code, reason = RefusalReason.INVALID_KEY, "the key is not that of the sender's RID"
    elif not incoming.is_signed_with(key):
        code, reason = RefusalReason.INVALID_SIGNATURE, "the signature does not fit"
    elif envelope.target_node != presence.identity.rid:
        code, reason = RefusalReason.INVALID_TARGET, f"it is for {envelope.target_node}"
    elif row and row["blocked_at"] is not None:
        code, reason = RefusalReason.BLOCKED, "the sender is blocked"
    if code is None:
        if row and row["retry_at"] is not None:
            await rounds.hurry(ctx, presence, envelope.source_node)
        if row and row["node_type"] == NodeType.PARTIAL:  # which cannot be asked
            await rounds.heard(ctx, row)
        return
    sender = str(envelope.source_node)
    if code in _UNPROVEN:
        introduction = await ctx.read(lambda tx: refusals.of_node(tx, sender)) if key is None else []
        await _count(ctx, refusals.UNKNOWN, code, f"{reason}; it says that it is {sender}")
        if introduction:
            cause = introduction[0]
            why = f"{reason}, because it was refused when it introduced itself: {cause['last_reason']}"
            raise Refused(str(code), f"The message is refused: {why}.", cause=cause["code"])
    else:
        await _count(ctx, sender, code, reason)
    raise Refused(str(code), f"The message is refused: {reason}.")


def _presence(ctx: Ctx) -> Presence:
    if ctx.node.presence is None:
        raise Unavailable("KOI_NOT_JOINED", "This project takes no part in a KOI network. Join one first.")
    return ctx.node.presence


def _own_key(presence: Presence, incoming: Incoming) -> str | None:
    """The public key of this node, if the sender has the same one and may tell so: see `same_key`."""
    is_same = incoming.envelope.source_node == presence.identity.rid
    is_telling = isinstance(incoming.envelope.payload, FetchBundles | EventsPayload)
    return presence.identity.public_key if is_same and is_telling else None


def _introduced_key(incoming: Incoming) -> str | None:
    """The public key of a sender that introduces itself: by a NEW event with its own profile."""
    payload, source = incoming.envelope.payload, incoming.envelope.source_node
    if not isinstance(payload, EventsPayload):
        return None
    for event in payload.events:
        if event.rid == source and event.event_type is EventType.NEW and event.manifest and event.contents:
            try:
                return NodeProfile.model_validate(event.contents).public_key
            except ValidationError:
                return None
    return None


async def _admit(ctx: Ctx, path: str, raw: bytes) -> Incoming:
    _presence(ctx)
    try:
        incoming = await received(raw)
        if not isinstance(incoming.envelope.payload, _REQUESTS[path]):
            raise BadInput(RefusalReason.MALFORMED, f"A request to {path} has another payload.")
    except BadInput as error:
        await _count(ctx, refusals.UNKNOWN, RefusalReason.MALFORMED, error.message)
        raise
    try:
        await check(ctx, incoming)
    except Refused as error:
        if (refusal := protocol_error(error)) is not None:
            raise _Turned(refusal) from None
        raise
    if await is_replayed(ctx, incoming.envelope):
        await rounds.compare_again(ctx, incoming.envelope.source_node)  # some nodes sign the same message alike
        await _count(ctx, str(incoming.envelope.source_node), RefusalReason.REPLAYED, "it was received before")
        raise Refused(str(RefusalReason.REPLAYED), "The message is refused: it was received before.")
    return incoming


async def _answer(ctx: Ctx, path: str, incoming: Incoming) -> bytes:
    presence, envelope = _presence(ctx), incoming.envelope
    for part in incoming.malformed:
        await _count(ctx, str(envelope.source_node), RefusalReason.MALFORMED, part.reason)
    payload = await _ANSWERS[path](Received(ctx, envelope.source_node), envelope.payload)
    return b"null" if payload is None else signed(presence.identity, payload, envelope.source_node)


async def _broadcast(received: Received, payload: Payload) -> None:
    assert isinstance(payload, EventsPayload)
    presence = _presence(received.ctx)
    if received.source == presence.identity.rid:
        same_key.note(received.ctx, presence, payload.events)
    else:
        await run.handle(received.ctx, payload.events, received.source)


async def _poll(received: Received, payload: Payload) -> EventsPayload:
    assert isinstance(payload, PollEvents)
    return EventsPayload(events=await polling.answer(received.ctx, received.source, payload.limit))


async def _fetch_rids(received: Received, payload: Payload) -> RidsPayload:
    assert isinstance(payload, FetchRids)
    return RidsPayload(rids=await received.ctx.read(lambda tx: bundles.rids(tx, payload.rid_types)))


async def _fetch_manifests(received: Received, payload: Payload) -> ManifestsPayload:
    assert isinstance(payload, FetchManifests)
    if not payload.rids:
        found = await received.ctx.read(lambda tx: bundles.manifests(tx, payload.rid_types))
        return ManifestsPayload(manifests=found)
    known = await received.ctx.read(lambda tx: bundles.find_all(tx, payload.rids))
    found_rids = {one.rid for one in known}
    missing = [rid for rid in payload.rids if str(rid) not in found_rids]
    return ManifestsPayload(manifests=[one.bundle.manifest for one in known], not_found=missing)


async def _fetch_bundles(received: Received, payload: Payload) -> BundlesPayload:
    assert isinstance(payload, FetchBundles)
    return await received.ctx.read(lambda tx: _bundles(tx, payload))


def _bundles(tx: Reader, request: FetchBundles) -> BundlesPayload:
    payload = BundlesPayload(bundles=[])
    size = 0
    for rid in dict.fromkeys(request.rids):
        bundle = bundles.find(tx, rid)
        if bundle is None:
            payload.not_found.append(rid)
        elif size and size + len(bundle.contents) > MOST_BYTES:
            payload.deferred.append(rid)
        else:
            size += len(bundle.contents)
            payload.bundles.append(bundle.bundle)
    return payload


async def _count(ctx: Ctx, node: str, code: RefusalReason, reason: str) -> None:
    await refusals.note(ctx, node, Counted("", code, reason))


_REQUESTS: Mapping[str, type[Payload]] = {
    BROADCAST: EventsPayload,
    POLL: PollEvents,
    RIDS: FetchRids,
    MANIFESTS: FetchManifests,
    BUNDLES: FetchBundles,
}
_ANSWERS: Mapping[str, Callable[[Received, Payload], Awaitable[Payload | None]]] = {
    BROADCAST: _broadcast,
    POLL: _poll,
    RIDS: _fetch_rids,
    MANIFESTS: _fetch_manifests,
    BUNDLES: _fetch_bundles,
}


async def is_replayed(ctx: Ctx, envelope: Envelope) -> bool:
    """Whether an envelope, whose signature was checked, was received before. It is noted if that matters."""
    payload, source = envelope.payload, envelope.source_node
    introduces = isinstance(payload, EventsPayload) and is_handshake(payload.events, source)
    if not introduces and not _is_undated(envelope):
        return False
    values = {"node": str(source), "mark": _mark(envelope.signature)}

    def use(tx: Tx) -> bool:
        is_new = tx.run(SQL.use, values, now=tx.now)
        if not introduces or is_new or _is_undated(envelope):
            return not is_new
        return bundles.find(tx, source) is None  # it has left: whoever recorded its handshake does not bring it back

    return await ctx.write(use)


def _is_undated(envelope: Envelope) -> bool:
    payload = envelope.payload
    if isinstance(payload, PollEvents):
        return True
    if not isinstance(payload, EventsPayload):
        return False
    undated = {event.rid for event in payload.events if event.event_type is EventType.FORGET and event.manifest is None}
    if is_handshake(payload.events, envelope.source_node):
        undated.discard(envelope.source_node)
    return bool(undated)


def _mark(signature: str) -> str:
    """The first of the two numbers of a signature. The second one has two forms that are both valid."""
    return base64.b64decode(signature)[:COORDINATE].hex()
