"""Whether a tool may be called: always, after a question to the operator, or never.

The operator is not asked: calling it is the decision. For others, what the operator decided about the tool counts; then
what the definition says for which it is called, as far as that is trusted; else a tool that only reads may be called,
and all others are asked for. `always` is about the tool of one offerer as it was then: one that has changed is asked
for again, and so is one of the same name that is offered by somebody else. `ask` and `never` hold for the name. For
a call of another node counts what that node may call; a tool that may never be called it may not call either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.ops import Ctx
from workbench.rules.definitions.tool_rules import statement
from workbench.rules.tools.offers import OfferChange, changes
from workbench.services.definitions import trust
from workbench.services.tools.tool import OffererKind, Permission, ToolInfo, ToolKind, ToolScope
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class ToolStanding:
    """Whether a tool may be called, and how it has changed since the operator allowed it."""

    permission: Permission
    changes: list[OfferChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is allowed: a tool of an offerer as it is now; see `Tool` and `Offerer`."""

    tool: str
    offered_by: str
    offerer_name: str
    fingerprint: str
    offer: str

    @classmethod
    def of(cls, tool: ToolInfo) -> Allowed:
        """A tool as it is offered."""
        return cls(tool.name, tool.offered_by.key, tool.offered_by.name, tool.fingerprint, tool.offer)


def allow(tx: Tx, what: Allowed) -> None:
    """Record that a tool may always be called, as it is offered now by whom."""
    _set(tx, what, Permission.ALWAYS)


def restrict(tx: Tx, name: str, permission: Permission) -> None:
    """Record that tools with a name may be called after a question, or never, whoever offers them."""
    tx.run(SQL.remove, tool=name)
    _set(tx, Allowed(name, "", "", "", ""), permission)


def _set(tx: Tx, what: Allowed, permission: Permission) -> None:
    said = {"fingerprint": what.fingerprint, "offer": what.offer, "by": tx.actor, "now": tx.now}
    tx.run(SQL.set, said, tool=what.tool, offerer=what.offered_by, name=what.offerer_name, permission=permission)
    tx.emit("tool.permitted", f"tool:{what.tool}", permission=permission, offered_by=what.offered_by or None)


def forget(tx: Tx, name: str) -> None:
    """Treat tools with a name as if nothing had been decided about them."""
    tx.run(SQL.remove, tool=name)
    tx.emit("tool.permitted", f"tool:{name}", permission=None, offered_by=None)


async def of(ctx: Ctx, scope: ToolScope, tool: ToolInfo) -> ToolStanding:
    """Whether a tool may be called for a scope."""
    if not _is_decided(scope, tool):
        return ToolStanding(Permission.ALWAYS)
    row = await ctx.store.read_inline(lambda tx: tx.one(SQL.of_tool, tool=tool.name, offerer=tool.offered_by.key))
    if scope.origin is not None and (row is None or row["permission"] != Permission.NEVER):
        return ToolStanding(await scope.origin.permission(ctx))
    if row is None:
        return ToolStanding(await _stated(ctx, scope, tool) or _default(tool))
    permission = Permission(row["permission"])
    if permission is Permission.ALWAYS and row["fingerprint"] != tool.fingerprint:
        return ToolStanding(Permission.ASK, changes(row["offer"], tool.offer))
    return ToolStanding(permission)


async def without_forbidden(ctx: Ctx, scope: ToolScope, tools: Sequence[ToolInfo]) -> list[ToolInfo]:
    """Those of some tools that the operator has not forbidden for a scope."""
    rows = await ctx.store.read_inline(lambda tx: tx.all(SQL.forbidden, never=Permission.NEVER))
    forbidden = {row["tool"] for row in rows}
    allowed = {(row["tool"], row["offered_by"]) for row in rows if row["permission"] != Permission.NEVER}

    def is_offered(tool: ToolInfo) -> bool:
        is_forbidden = tool.name in forbidden and (tool.name, tool.offered_by.key) not in allowed
        return not is_forbidden or not _is_decided(scope, tool)

    return [tool for tool in tools if is_offered(tool)]


def _is_decided(scope: ToolScope, tool: ToolInfo) -> bool:
    """Whether a tool needs the operator's permission for a scope. What agents may do with operations, grants say."""
    return not scope.is_person and (tool.kind is not ToolKind.OPERATION or scope.conversation_id is not None)


def _default(tool: ToolInfo) -> Permission:
    return Permission.ALWAYS if tool.hints.read_only else Permission.ASK


async def _stated(ctx: Ctx, scope: ToolScope, tool: ToolInfo) -> Permission | None:
    """What the definition says for which a tool is called; None: nothing, or that tools run unasked without trust."""
    snapshot = scope.definition
    if snapshot is None:
        return None
    own = tool.server if tool.offered_by.kind is OffererKind.DEFINITION else None
    stated = statement(snapshot.definition, own, tool.own_name or tool.name)
    if stated is None or stated.asks:
        return Permission.ASK if stated else None
    missing = {need.name for need in (await trust.state(ctx, snapshot)).missing}
    return None if stated.place in missing else Permission.ALWAYS
