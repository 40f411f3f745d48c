"""Calls of traits that other nodes of the network own: signed, sent to the node's own address, and answered signed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rid_lib.types import KoiNetNode

from workbench.errors import Refused, Unavailable
from workbench.koi.node import Presence
from workbench.koi.payloads import (
    ErrorType,
    EventsPayload,
    EventType,
    FetchRids,
    KoiEvent,
    Manifest,
    Payload,
    RidsPayload,
    TraitCall,
    TraitProgress,
    TraitResult,
)
from workbench.koi.requests import BROADCAST, RIDS, KoiPeer, Report
from workbench.koi.rids import NODE
from workbench.model import iso
from workbench.ops import Ctx
from workbench.present.inert import inert
from workbench.rules.personalities import addresses
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.tools.content import block_text
from workbench.rules.tools.results import shortened
from workbench.rules.tools.surroundings import ProgressReceiver
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)
GRACE_SECONDS = 5.0
"""How much longer than the time limit this node waits for the other one to say that it has passed."""
REASON_LIMIT = 2_000

_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


async def node(ctx: Ctx, rid: KoiNetNode) -> Row | None:
    """What is known of a node."""
    return await ctx.read(lambda tx: tx.one(SQL.node, rid=str(rid)))


def problem(ctx: Ctx, profile: PersonalityProfile, known: Row | None) -> str | None:
    """Why a trait of another node cannot be called now; None if it can.

    Args:
        known: its node; see `node`.
    """
    if ctx.node.presence is None:
        return "this project takes no part in the network"
    if known is None:
        return f"its node {profile.node_rid} is not known"
    if known["blocked_at"] is not None:
        return f"its node {addresses.node_label(known['rid'])} is blocked"
    if addresses.endpoint(known["base_url"], profile.mcp_url) is None:
        return "its profile has no address for calls, or not one of its node"
    return None


def doubt(ctx: Ctx, known: Row | None) -> str | None:
    """Why a call may fail: the last request to the node did, and requests that nobody waits for pause. A call does not.

    Args:
        known: its node; see `node`.
    """
    if known is None or known["retry_at"] is None or known["retry_at"] <= ctx.store.now():
        return None
    return f"its node {addresses.node_label(known['rid'])} does not answer: {known['last_error']} A call tries it again"


async def call_trait(profile: PersonalityProfile, trait: str, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Call a trait of another node. Cancelling this closes the request, which cancels the call there.

    Raises:
        Unavailable: ``TOOL_UNAVAILABLE``, ``TOOL_TIMEOUT``, ``KOI_UNREACHABLE``, ``KOI_BAD_ANSWER``, or the code of
            the other node. Refused: ``KOI_REFUSED``.
    """
    presence, peer = await _callable(ctx, profile)
    seconds = ctx.settings.koi_call_seconds
    sent = TraitCall(
        call_id=call.id,
        sent_at=iso(ctx.store.now()),
        rid=profile.rid,
        trait=trait,
        arguments=dict(call.arguments),
        caller=call.scope.caller.name,
        seconds=seconds,
    )
    try:
        async with asyncio.timeout(seconds + GRACE_SECONDS):
            await _require_own_address(ctx, presence, peer)
            result = await _sent(ctx, presence, peer, profile, sent, call.surroundings.progress)
    except TimeoutError:
        raise Unavailable(
            "TOOL_TIMEOUT", f"{profile.rid.name} did not answer within {seconds:g} s. The call is cancelled there."
        ) from None
    await _note_answer(ctx, profile.node_rid)
    if result.error is not None:
        raise _error(profile, result.error)
    return ToolOutcome([_text(block) for block in result.content], result.structured, result.is_error, result.version)


async def _callable(ctx: Ctx, profile: PersonalityProfile) -> tuple[Presence, KoiPeer]:
    """This node, and the node of a profile, which can be called now.

    Raises:
        Unavailable: ``TOOL_UNAVAILABLE``.
    """
    known, presence = await node(ctx, profile.node_rid), ctx.node.presence
    reason = problem(ctx, profile, known)
    if presence is None or known is None or reason is not None:
        raise Unavailable("TOOL_UNAVAILABLE", f"{profile.rid.name} cannot be called now: {reason}.")
    return presence, KoiPeer(profile.node_rid, known["base_url"], known["public_key"])


async def _require_own_address(ctx: Ctx, presence: Presence, peer: KoiPeer) -> None:
    """Have the node answer, signed, at the address to whose origin the call goes: any node can name any address.

    Raises:
        see `PeerClient.ask`.
    """
    if presence.client.has_answered(peer):
        return
    question = FetchRids(rid_types=[NODE])
    try:
        answer = await presence.client.ask(peer, RIDS, question)
    except Refused as error:
        if not _is_unknown(error):
            raise
        await _introduce(ctx, presence, peer)
        answer = await presence.client.ask(peer, RIDS, question)
    if not isinstance(answer, RidsPayload):
        raise Unavailable("KOI_BAD_ANSWER", f"The answer of {peer.rid} is wrong: it has no RIDs.")


async def _sent(
    ctx: Ctx,
    presence: Presence,
    peer: KoiPeer,
    profile: PersonalityProfile,
    sent: TraitCall,
    progress: ProgressReceiver | None,
) -> TraitResult:
    """The answer to a call, after an introduction if the node does not know this one any more."""
    endpoint = addresses.endpoint(peer.base_url, profile.mcp_url)
    assert endpoint is not None
    place, path, seconds = (
        replace(peer, base_url=endpoint),
        addresses.call_path(sent.trait),
        sent.seconds + GRACE_SECONDS,
    )

    async def ask() -> Payload | None:
        if progress is None:
            return await presence.client.ask(place, path, sent, seconds=seconds)
        report = _reported(sent.call_id, progress)
        return await presence.client.follow(place, path, sent, seconds=seconds, report=report)

    try:
        answer = await ask()
    except Refused as error:
        if not _is_unknown(error):
            raise
        await _introduce(ctx, presence, peer)
        answer = await ask()
    if not isinstance(answer, TraitResult) or answer.call_id != sent.call_id:
        raise Unavailable("KOI_BAD_ANSWER", f"The answer of {peer.rid} is wrong: it is not about this call.")
    return answer


def _reported(call_id: str, progress: ProgressReceiver) -> Report:
    """Passes on what another node reports about a call: in its order, as texts that harm no terminal."""
    last = 0

    async def report(payload: Payload) -> None:
        nonlocal last
        if isinstance(payload, TraitProgress) and payload.call_id == call_id and payload.number > last:
            last = payload.number
            message = None if payload.message is None else inert(payload.message)
            await progress(payload.progress, payload.total, message)

    return report


async def _note_answer(ctx: Ctx, rid: KoiNetNode) -> None:
    """End the pause after a failed request to a node, since it has answered."""
    known = await node(ctx, rid)
    if known is not None and known["retry_at"] is not None:
        await ctx.write(lambda tx: tx.run(SQL.reached, rid=str(rid), now=tx.now))
        ctx.node.has_mail.set()


def _is_unknown(error: Refused) -> bool:
    return error.details.get("error") == ErrorType.UNKNOWN_NODE


async def _introduce(ctx: Ctx, presence: Presence, peer: KoiPeer) -> None:
    """Send this node's own bundle, as a handshake does."""
    rid = presence.identity.rid
    row = await ctx.read(lambda tx: tx.one(SQL.bundle, rid=str(rid)))
    if row is None:
        return
    manifest = Manifest.model_validate_json(row["manifest"])
    own = KoiEvent(rid=rid, event_type=EventType.NEW, manifest=manifest, contents=json.loads(row["contents"]))
    forget = KoiEvent(rid=rid, event_type=EventType.FORGET)
    await presence.client.ask(peer, BROADCAST, EventsPayload(events=[forget, own]))


def _error(profile: PersonalityProfile, error: Mapping[str, Any]) -> Unavailable:
    """The error of another node, with its code, as one of a tool: it is not this server that refuses the caller."""
    code, message = str(error.get("code")), inert(str(error.get("message")))
    agent = profile.rid.name
    return Unavailable(
        code if _CODE.fullmatch(code) else "TOOL_FAILED",
        f"{agent} (another node) answered: {shortened(message, REASON_LIMIT)}",
        agent=agent,
        node=str(profile.node_rid),
    )


def _text(block: Mapping[str, Any]) -> dict[str, Any]:
    """A content block of a result as text: nothing but text is sent between nodes."""
    return {"type": "text", "text": block_text(block)}
