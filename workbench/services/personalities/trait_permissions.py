"""What each node of the network may call here: per trait always, after a question, or never, and how often.

Nothing is allowed that the operator has not allowed: for a trait without a rule the node is asked about, also if it
only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Refused
from workbench.model import Level
from workbench.ops import Command, Ctx, op
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.personalities.peers.directory import PeerDetails, PeerRef, get_peer, resolve
from workbench.services.tools import call_log
from workbench.services.tools.permission_requests import ONCE, PEER_KIND
from workbench.services.tools.tool import Permission
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
OTHERS = "*"
"""In place of a trait: all that have no rule of their own."""

TraitName = Annotated[
    str, Field(min_length=1, max_length=300, description="agent__trait, as list_tools names it; * for all others.")
]


@dataclass(frozen=True, slots=True)
class TraitRule:
    """What a node may do with a trait. `trait`: of the rule, `*` also if there is none."""

    trait: str
    permission: Permission
    calls_per_minute: int


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command(
        "koi allow PEER TOOL PERMISSION",
        names={"TOOL": "trait", "per-minute": "calls_per_minute"},
        help="Let a node call a tool (`agent__tool`, or * for all) always, after a question to you, or never.",
    ),
)
async def set_peer_permission(
    ctx: Ctx,
    peer: PeerRef,
    permission: Annotated[
        Permission | None, Field(description="always, ask (before each call) or never; null: remove the rule.")
    ],
    trait: TraitName = OTHERS,
    calls_per_minute: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            description="At most this many calls per minute. Omit it: as before, or the setting koi_calls_per_minute.",
        ),
    ] = None,
) -> PeerDetails:
    """Decide what a node of the network may call here. Calls that wait for a decision follow it."""
    default_rate = ctx.settings.koi_calls_per_minute

    def change(tx: Tx) -> str:
        node = resolve(tx, peer)
        _set(tx, node, trait, permission, calls_per_minute, default_rate)
        _settle(tx, node)
        return node

    return await get_peer(ctx, await ctx.write(change))


async def require(ctx: Ctx, node: str, trait: str) -> TraitRule:
    """What a node may do with a trait now.

    Raises:
        Refused: ``KOI_BLOCKED``: it is blocked, or not known any more.
    """
    rule = await ctx.read(lambda tx: _rule(tx, node, trait, ctx.settings.koi_calls_per_minute))
    if rule is None:
        raise blocked()
    return rule


def blocked() -> Refused:
    """The error for a call of a node that is blocked."""
    return Refused("KOI_BLOCKED", "This node accepts no calls from the node that sent this one.")


def _rule(tx: Reader, node: str, trait: str, default_rate: int = 0) -> TraitRule | None:
    """What a node may do with a trait; None if it is blocked, or not known."""
    row = tx.one(SQL.of, node=node, trait=trait)
    if row is None or row["blocked_at"] is not None:
        return None
    if row["permission"] is None:
        return TraitRule(OTHERS, Permission.ASK, default_rate)
    return TraitRule(row["trait"], Permission(row["permission"]), row["calls_per_minute"])


def _set(tx: Tx, node: str, trait: str, permission: Permission | None, rate: int | None, default_rate: int) -> None:
    if permission is None:
        tx.run(SQL.remove, node=node, trait=trait)
    else:
        values = {"permission": permission, "rate": rate, "default_rate": default_rate}
        tx.run(SQL.set, {"node": node, "trait": trait, **values, "by": tx.actor, "now": tx.now})
    tx.emit("peer.permitted", f"peer:{node}", trait=trait, permission=permission)


@approvals.decision_handler(PEER_KIND)
async def decide_peer_call(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Let a call of another node that waits go on, or refuse it; `remember`: always (approved) or never (rejected)
    decides about all later calls of the trait by this node, too."""
    approvals.check_choices(choices, {"remember"} if yes else {"reason", "remember"})
    remember = choices.get("remember", ONCE)
    lasting = Permission.ALWAYS if yes else Permission.NEVER
    if remember not in (ONCE, lasting):
        raise BadInput("INVALID_ARGUMENTS", f"remember is once or {lasting}.", problems=[])
    await call_log.interrupt_lost(ctx)  # a call whose program has ended is not run any more
    default_rate, reason = ctx.settings.koi_calls_per_minute, str(choices.get("reason", ""))

    def decide(tx: Tx) -> dict[str, Any]:
        made = _decide(tx, approval, yes, reason, str(remember), approvals.person_of(ctx))
        if remember == lasting:
            node = approval.payload["origin"]["node"]
            _set(tx, node, approval.payload["tool"], lasting, None, default_rate)
            _settle(tx, node)
        return made

    return await ctx.write(decide)


def _settle(tx: Tx, node: str) -> None:
    """Decide the open questions about calls of a node for which there is a rule now."""
    for question in approvals.pending(tx, PEER_KIND):
        if question.payload["origin"]["node"] != node:
            continue
        rule = _rule(tx, node, question.payload["tool"])
        permission = rule.permission if rule is not None else Permission.NEVER
        if permission is not Permission.ASK:
            _decide(tx, question, permission is Permission.ALWAYS, "", permission)


def _decide(
    tx: Tx, question: ApprovalInfo, yes: bool, reason: str, remember: str, person: str | None = None
) -> dict[str, Any]:
    outcome = {"tool": question.payload["tool"], "state": "allowed" if yes else "refused", "remember": remember}
    return approvals.decide(tx, question, "approved" if yes else "rejected", reason, outcome, person)
