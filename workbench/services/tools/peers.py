"""Calls of traits that other nodes of the network own: signed, sent to the node's own address, and answered signed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rid_lib.types import KoiNetNode

from workbench.errors import BadInput, Conflict, NotFound, Refused, TooMany, Unavailable, WorkbenchError
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
from workbench.model import SECOND, iso
from workbench.ops import Ctx
from workbench.present.inert import inert
from workbench.rules.personalities import addresses
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.tasks.lifecycle import backoff
from workbench.rules.tools.content import block_text
from workbench.rules.tools.results import shortened
from workbench.rules.tools.surroundings import ProgressReceiver
from workbench.services.tools.tool import ToolInvocation, ToolOutcome
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
GRACE_SECONDS = 5.0
"""How much longer than the time limit this node waits for the other one to say that it has passed."""
REASON_LIMIT = 2_000
ERROR_LIMIT = 500
"""Characters of the error that is kept of a node."""

_KINDS: Mapping[int, type[WorkbenchError]] = {
    kind.status: kind for kind in (BadInput, Refused, NotFound, Conflict, TooMany, Unavailable)
}
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


async def node(ctx: Ctx, rid: KoiNetNode) -> Row | None:
    """The row of a node; None if it is not known."""
    return await ctx.read(lambda tx: tx.one(SQL.node, rid=str(rid)))


def problem(ctx: Ctx, profile: PersonalityProfile, peer: Row | None) -> str | None:
    """Why a trait of another node cannot be called now; None if it can.

    Args:
        peer: its node; see `node`.
    """
    if ctx.node.presence is None:
        return "this project takes no part in the network"
    if peer is None:
        return f"its node {profile.node_rid} is not known"
    if peer["blocked_at"] is not None:
        return f"its node {addresses.node_label(peer['rid'])} is blocked"
    if addresses.endpoint(peer["base_url"], profile.mcp_url) is None:
        return "its profile has no address for calls, or not one of its node"
    return None


def doubt(ctx: Ctx, peer: Row | None) -> str | None:
    """Why a call may fail: the last request to the node did, and requests that nobody waits for pause. A call does not.

    Args:
        peer: its node; see `node`.
    """
    if peer is None or peer["retry_at"] is None or peer["retry_at"] <= ctx.store.now():
        return None
    return f"its node {addresses.node_label(peer['rid'])} does not answer: {peer['last_error']} A call tries it again"


async def withdrawal(ctx: Ctx, agent: str) -> str:
    """When an agent that is not on the network any more was withdrawn, as a sentence; empty if none was."""
    last = await ctx.read(lambda tx: tx.one(SQL.last_change, name=agent))
    if last is None or last["event_type"] != "FORGET":
        return ""
    return f"The agent {agent!r} was withdrawn {max(0, ctx.store.now() - last['at']) // SECOND} s ago."


async def call_trait(profile: PersonalityProfile, trait: str, ctx: Ctx, call: ToolInvocation) -> ToolOutcome:
    """Call a trait of another node. Cancelling this closes the request, which cancels the call there.

    Raises:
        Unavailable: ``TOOL_UNAVAILABLE``, ``TOOL_TIMEOUT``, ``KOI_UNREACHABLE``, ``KOI_BAD_ANSWER``, or the code of
            the other node. Refused: ``KOI_REFUSED``. WorkbenchError: the error of the other node, as its status says.
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
            result = await _send(ctx, presence, peer, profile, sent, call.surroundings.progress)
    except TimeoutError:
        timeout = f"{profile.rid.name} did not answer within {seconds:g} s. The call is cancelled there."
        await _note_failure(ctx, profile.node_rid, timeout)
        raise Unavailable("TOOL_TIMEOUT", timeout) from None
    except Unavailable as error:
        if error.code == "KOI_UNREACHABLE":
            await _note_failure(ctx, profile.node_rid, error.message)
        raise
    await _note_answer(ctx, profile.node_rid)
    if result.error is not None:
        raise _error(profile, result.error)
    return ToolOutcome([_text(block) for block in result.content], result.structured, result.is_error, result.version)


async def _callable(ctx: Ctx, profile: PersonalityProfile) -> tuple[Presence, KoiPeer]:
    """This node, and the node of a profile, which can be called now.

    Raises:
        Unavailable: ``TOOL_UNAVAILABLE``.
    """
    row, presence = await node(ctx, profile.node_rid), ctx.node.presence
    reason = problem(ctx, profile, row)
    if presence is None or row is None or reason is not None:
        raise Unavailable("TOOL_UNAVAILABLE", f"{profile.rid.name} cannot be called now: {reason}.")
    return presence, KoiPeer(profile.node_rid, row["base_url"], row["public_key"])


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


async def _send(
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
        report = _reporter(sent.call_id, progress)
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


def _reporter(call_id: str, progress: ProgressReceiver) -> Report:
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
    row = await node(ctx, rid)
    if row is not None and row["retry_at"] is not None:
        await ctx.write(lambda tx: tx.run(SQL.reached, rid=str(rid), now=tx.now))
        ctx.node.has_mail.set()


async def _note_failure(ctx: Ctx, rid: KoiNetNode, message: str) -> None:
    """Record that a node did not answer, in the way that failed requests of the rounds are recorded."""
    row, settings = await node(ctx, rid), ctx.settings
    if row is None:
        return
    pause = backoff(row["failures"], settings.koi_retry_base_seconds, settings.koi_retry_cap_seconds, ctx.random())

    def note(tx: Tx) -> None:
        tx.run(SQL.failed, rid=str(rid), error=message[:ERROR_LIMIT], retry_at=tx.now + pause)

    await ctx.write(note)


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


def _error(profile: PersonalityProfile, error: Mapping[str, Any]) -> WorkbenchError:
    """The error of another node, with its code and its status: what is refused there is not to be sent again."""
    code, message = str(error.get("code")), inert(str(error.get("message")))
    agent, status = profile.rid.name, error.get("status")
    kind = _KINDS.get(status, Unavailable) if isinstance(status, int) else Unavailable
    return kind(
        code if _CODE.fullmatch(code) else "TOOL_FAILED",
        f"{agent} (another node) answered: {shortened(message, REASON_LIMIT)}",
        agent=agent,
        node=str(profile.node_rid),
    )


def _text(block: Mapping[str, Any]) -> dict[str, Any]:
    """A content block of a result as text: nothing but text is sent between nodes."""
    return {"type": "text", "text": block_text(block)}
