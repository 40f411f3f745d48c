"""Whether a tool may be called: always, after a question to the operator, or never.

The operator is not asked: calling it is the decision. For others, what the operator decided about the tool counts; then
what the definition says for which it is called, as far as that is trusted; else a tool that only reads may be called,
and all others are asked for. A decision is about the tool as it was then: one that has changed is asked for again. For
a call of another node counts what that node may call; a tool that may never be called it may not call either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.ops import Ctx
from workbench.rules.definitions.tool_rules import statement
from workbench.rules.tools.offers import Change, changes
from workbench.services.definitions import trust
from workbench.services.tools.tool import Kind, Permission, Scope, Tool
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a tool may be called, and how it has changed since the operator allowed it."""

    permission: Permission
    changes: list[Change] = field(default_factory=list)


def remember(tx: Tx, name: str, permission: Permission, fingerprint: str, offer: str) -> None:
    """Record a decision about a tool as it is offered now."""
    tx.run(SQL.set, tool=name, permission=permission, fingerprint=fingerprint, offer=offer, by=tx.actor, now=tx.now)
    tx.emit("tool.permitted", f"tool:{name}", permission=permission)


def forget(tx: Tx, name: str) -> None:
    """Treat a tool as if nothing had been decided about it."""
    tx.run(SQL.remove, tool=name)
    tx.emit("tool.permitted", f"tool:{name}", permission=None)


async def of(ctx: Ctx, scope: Scope, tool: Tool) -> Standing:
    """Whether a tool may be called for a scope."""
    if not _is_decided(scope, tool):
        return Standing(Permission.ALWAYS)
    row = await ctx.store.read_inline(lambda tx: tx.one(SQL.of_tool, tool=tool.name))
    if scope.origin is not None and (row is None or row["permission"] != Permission.NEVER):
        return Standing(await scope.origin.permission(ctx))
    if row is None:
        return Standing(await _stated(ctx, scope, tool) or _default(tool))
    permission = Permission(row["permission"])
    if permission is Permission.ALWAYS and row["fingerprint"] != tool.fingerprint:
        return Standing(Permission.ASK, changes(row["offer"], tool.offer))
    return Standing(permission)


async def without_forbidden(ctx: Ctx, scope: Scope, tools: Sequence[Tool]) -> list[Tool]:
    """Those of some tools that the operator has not forbidden for a scope."""
    rows = await ctx.store.read_inline(lambda tx: tx.all(SQL.forbidden, never=Permission.NEVER))
    forbidden = {row["tool"] for row in rows}
    return [tool for tool in tools if tool.name not in forbidden or not _is_decided(scope, tool)]


def _is_decided(scope: Scope, tool: Tool) -> bool:
    """Whether a tool needs the operator's permission for a scope. What agents may do with operations, grants say."""
    return not scope.is_person and (tool.kind is not Kind.OPERATION or scope.conversation_id is not None)


def _default(tool: Tool) -> Permission:
    return Permission.ALWAYS if tool.hints.read_only else Permission.ASK


async def _stated(ctx: Ctx, scope: Scope, tool: Tool) -> Permission | None:
    """What the definition says for which a tool is called; None: nothing, or that tools run unasked without trust."""
    snapshot = scope.definition
    if snapshot is None:
        return None
    stated = statement(snapshot.definition, tool.server, tool.own_name or tool.name)
    if stated is None or stated.asks:
        return Permission.ASK if stated else None
    missing = {need.name for need in (await trust.state(ctx, snapshot)).missing}
    return None if stated.place in missing else Permission.ALWAYS
