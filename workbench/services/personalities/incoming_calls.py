"""Calls of this node's traits by other nodes: authenticated by their signature, permitted per node and trait, run as
calls of tools, and answered signed.

A call that is not from a known node gets an error of the protocol, as the endpoints of KOI-net give it; every other
refusal is a coded error in a signed answer. What is refused is counted for the node that has sent it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from rid_lib.types import KoiNetNode

from workbench.errors import BadInput, Conflict, NotFound, Refused, Unauthenticated, Unavailable, WorkbenchError
from workbench.functions.progress import CallReports, Report
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity
from workbench.koi.incoming import Incoming, opened
from workbench.koi.payloads import LONGEST_MESSAGE, TraitCall, TraitProgress, TraitResult
from workbench.koi.received_calls import FRESH_SECONDS, replayed
from workbench.model import SECOND, Capability, Level
from workbench.ops import Caller, Ctx
from workbench.present.inert import inert
from workbench.rules.personalities.addresses import node_label
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.tools.content import masked
from workbench.rules.tools.names import qualified
from workbench.rules.tools.results import shortened
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.personalities import refusals, trait_permissions
from workbench.services.personalities.exchange import handshake, receiving
from workbench.services.personalities.trait_permissions import blocked
from workbench.services.tools import calls
from workbench.services.tools.tool import PeerOrigin, Permission, ToolScope
from workbench.store.queries import beside

PAUSE_SECONDS = 0.5
"""Between two reports; of those in between, the last is sent."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends an envelope."""


@contextmanager
def reporting(
    ctx: Ctx, me: NodeIdentity, caller: KoiNetNode, call_id: str, send: Send | None
) -> Iterator[Callable[[Report], None] | None]:
    """Takes reports within the block: they are sent to the caller, signed, with secrets masked, without waiting.

    Args:
        send: None: the caller does not follow the call.
    """
    if send is None:
        yield None
        return
    number = 0

    async def pass_on(report: Report) -> None:
        nonlocal number
        number += 1
        done, total, message = report
        text = None if message is None else shortened(str(ctx.secrets.masked(message)), LONGEST_MESSAGE)
        made = TraitProgress(call_id=call_id, number=number, progress=done, total=total, message=text)
        await send(signed(me, made, caller))

    reports = CallReports(pass_on, PAUSE_SECONDS)
    try:
        yield reports.write
    finally:
        reports.close()


async def _note(
    write: Callable[[Report], None], progress: float, total: float | None = None, message: str | None = None
) -> None:
    """Report how far a tool is."""
    if math.isfinite(progress) and (total is None or math.isfinite(total)):
        write((progress, total, message))


T = TypeVar("T")

SQL = beside(__file__)


async def answer(ctx: Ctx, agent: str, trait: str, raw: bytes, send: Send | None = None) -> tuple[int, bytes]:
    """Run a call that another node has sent in an envelope; the status, and JSON. Cancelling this cancels the call.

    Args:
        send: gets how far the call is, in envelopes, until it ends; None: the caller does not follow it.

    Raises:
        Unauthenticated: ``CALL_NOT_SIGNED``. BadInput: ``KOI_MALFORMED``. Unavailable: ``KOI_NOT_JOINED``.
    """
    presence = ctx.node.presence
    if presence is None:
        raise Unavailable("KOI_NOT_JOINED", "This project takes no part in a KOI network, so it answers no calls.")
    incoming, call = await _read(ctx, raw)
    sender = incoming.envelope.source_node
    try:
        await receiving.check(ctx, incoming)
        result = await _count_refusal(
            ctx, sender, _result(ctx, sender, call, agent, trait, send), qualified(agent, trait)
        )
    except WorkbenchError as error:
        if (refusal := receiving.protocol_error(error)) is not None:
            return 400, refusal
        result = TraitResult(call_id=call.call_id, error=ctx.secrets.masked(error.as_dict()))
    return 200, await asyncio.to_thread(signed, presence.identity, result, sender)


async def _read(ctx: Ctx, raw: bytes) -> tuple[Incoming, TraitCall]:
    """The envelope and the call in it. Its signature is not checked yet, so what is refused is nobody's.

    Raises:
        Unauthenticated: ``CALL_NOT_SIGNED``. BadInput: ``KOI_MALFORMED``.
    """
    try:
        incoming = _open(raw)
        call = incoming.envelope.payload
        if not isinstance(call, TraitCall):
            raise BadInput("KOI_MALFORMED", "This endpoint takes calls of traits.")
    except (Unauthenticated, BadInput) as error:
        await refusals.note_error(ctx, refusals.UNKNOWN, "", error)
        raise
    return incoming, call


async def _count_refusal(ctx: Ctx, sender: KoiNetNode, work: Coroutine[Any, Any, T], name: str) -> T:
    """The result of `work`; a refusal is counted for the sender.

    Args:
        name: of the trait.
    """
    try:
        return await work
    except WorkbenchError as error:
        await refusals.note_error(ctx, str(sender), name, error)
        raise


def _open(raw: bytes) -> Incoming:
    try:
        return opened(raw)
    except BadInput as error:
        raise Unauthenticated(
            "CALL_NOT_SIGNED",
            "Send the call in a signed envelope of KOI-net, or its arguments as JSON with your bearer token. "
            + error.message,
        ) from None


async def _result(
    ctx: Ctx, sender: KoiNetNode, call: TraitCall, agent: str, trait: str, send: Send | None
) -> TraitResult:
    """What a call of a known node returns.

    Raises:
        Refused: ``KOI_BLOCKED``, ``CALL_TOO_OLD``. Conflict: ``CALL_REPLAYED``. BadInput: ``KOI_MALFORMED``.
        TooMany: ``RATE_LIMITED``, ``TOO_MANY_CALLS``. NotFound: ``UNKNOWN_TOOL``. Unavailable: ``TOOL_TIMEOUT``.
        WorkbenchError: see `calls.call`.
    """
    node, name, received = str(sender), qualified(agent, trait), ctx.node.received_calls
    rule = await trait_permissions.require(ctx, node, name)
    version = _require_about(call, agent, trait).version
    _require_fresh(call, ctx.store.now())
    received.admit(node, call.call_id, ctx.store.now())
    received.spend(node, rule.trait, rule.calls_per_minute, ctx.store.now())
    await _require_new(ctx, node, call)
    require_own(ctx, agent, trait, version)
    seconds = min(call.seconds, ctx.settings.koi_call_seconds)
    standing = CallStanding()
    with received.open(node, ctx.settings.koi_parallel_calls):
        try:
            async with asyncio.timeout(seconds):
                return await _unless_blocked(ctx, node, _run(ctx, sender, call, name, send, standing))
        except TimeoutError:
            if standing.waits:
                here = handshake.present(ctx).identity.rid.name
                raise Conflict(
                    "NOT_DECIDED",
                    f"The operator of {here} did not decide within {seconds:g} s whether {name} may be called. "
                    "It did not begin.",
                ) from None
            raise Unavailable("TOOL_TIMEOUT", f"{name} did not end within {seconds:g} s. It is interrupted.") from None


def _require_about(call: TraitCall, agent: str, trait: str) -> AgentPersonality:
    """The agent that a call is about, as it is signed: the one that the address names.

    Raises:
        BadInput: ``KOI_MALFORMED``.
    """
    if not isinstance(call.rid, AgentPersonality) or (call.rid.name, call.trait) != (agent, trait):
        raise BadInput("KOI_MALFORMED", "The call is about another trait than the address to which it was sent.")
    return call.rid


def _require_fresh(call: TraitCall, now: int) -> None:
    """Check that a call was sent just now.

    Raises:
        BadInput: ``KOI_MALFORMED``. Refused: ``CALL_TOO_OLD``.
    """
    try:
        sent = datetime.fromisoformat(call.sent_at)
        age = now / SECOND - (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise BadInput("KOI_MALFORMED", "sent_at is a time in the form of ISO 8601.") from None
    if abs(age) > FRESH_SECONDS:
        when = f"{abs(age):.0f} s {'ago' if age > 0 else 'ahead of now'}"
        raise Refused(
            "CALL_TOO_OLD",
            f"By the clock of this node, the call was sent {when}; at most {FRESH_SECONDS} s are accepted. "
            "Compare the clocks of both machines.",
        )


async def _require_new(ctx: Ctx, node: str, call: TraitCall) -> None:
    """Check that a call was not received by an earlier process, either.

    Raises:
        Conflict: ``CALL_REPLAYED``.
    """
    if await ctx.read(lambda tx: tx.one(SQL.recorded, node=node, call=call.call_id)):
        raise replayed()


def require_own(ctx: Ctx, agent: str, trait: str, version: str | None = None) -> None:
    """Check that this node has a trait that can be called.

    Args:
        version: of the agent, as the caller knows it; None: any.

    Raises:
        NotFound: ``UNKNOWN_TOOL``.
    """
    personality = ctx.node.directory.find(agent)
    found = personality.profile.get_trait(trait) if personality is not None and personality.is_own else None
    if personality is None or found is None or not found.is_callable:
        raise NotFound("UNKNOWN_TOOL", f"This node has no agent {agent!r} with a callable trait {trait!r}.")
    now = personality.profile.rid.version
    if version is not None and version != now:
        raise NotFound("UNKNOWN_TOOL", f"The agent {agent!r} has the version {now!r} now, not {version!r}.")


@dataclass(slots=True)
class CallStanding:
    """Whether a call waits for the operator's permission, and whether it has begun: then it may ask something else."""

    waits: bool = False
    has_begun: bool = False


async def _run(
    ctx: Ctx, sender: KoiNetNode, call: TraitCall, name: str, send: Send | None, standing: CallStanding
) -> TraitResult:
    """Call the tool, with the permission that the node has when it runs."""

    async def permission(ctx: Ctx) -> Permission:
        return (await trait_permissions.require(ctx, str(sender), name)).permission

    caller = Caller(
        Level.WORKER,
        f"peer:{inert(node_label(str(sender)))}",
        capabilities=frozenset({Capability.TOOLS}),
        tools=frozenset({name}),
    )
    origin = PeerOrigin(str(sender), call.call_id, inert(call.caller), permission)
    me = handshake.present(ctx).identity
    with reporting(ctx, me, sender, call.call_id, send) as report:

        def follow(_: str, approval_id: int | None) -> None:
            waited, had_begun = standing.waits, standing.has_begun
            standing.has_begun = had_begun or approval_id is None
            standing.waits = not standing.has_begun
            if report is not None and approval_id is not None:
                report((0.0, None, f"It waits for the operator of {me.rid.name}."))
            elif report is not None and waited:
                report((0.0, None, f"The operator of {me.rid.name} has allowed it, and it runs."))
            elif report is not None and had_begun:
                report((0.0, None, "It goes on."))

        around = Surroundings(progress=None if report is None else partial(_note, report), follow=follow)
        finished = await calls.call(ctx, ToolScope(caller, origin=origin), name, call.arguments, around)
    schema = finished.tool.result if finished.tool.result is not None else True
    mask = partial(ctx.secrets.masked, finished.outcome.structured, schema)
    return TraitResult(
        call_id=call.call_id,
        content=await asyncio.to_thread(masked, finished.outcome.content, ctx.secrets.masked),
        structured=await asyncio.to_thread(mask),
        is_error=finished.outcome.is_error,
        version=finished.outcome.version or finished.tool.version,
    )


async def _unless_blocked(ctx: Ctx, node: str, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the node is blocked.

    Raises:
        Refused: ``KOI_BLOCKED``.
    """
    async with ctx.feed.subscribe("peer.blocked", subject=f"peer:{node}") as news:
        working, blocking = asyncio.create_task(work), asyncio.create_task(anext(news))
        try:
            await asyncio.wait({working, blocking}, return_when=asyncio.FIRST_COMPLETED)
            if blocking.done():
                raise blocked()
            return await working
        finally:
            working.cancel()
            blocking.cancel()
            await asyncio.gather(working, blocking, return_exceptions=True)
