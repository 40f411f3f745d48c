"""Permissions of tools: a call runs always, after a question to the operator, or never.

The operator is never asked: calling a tool is the decision. For others, the operator's decision about the tool counts;
then the statement of the definition that it is called for, if that is trusted; without either, a tool that only reads
may be called, and all others are asked for. `always` is about the tool of one offerer as it was then: a changed tool is
asked for again, and so is one of the same name from another offerer. `ask` and `never` hold for the name. Where a call
would be asked about, the operator may have allowed it before: within its conversation, within the task of its agent, or
with such arguments. For a call of another node, the permissions of that node count, but it cannot call a tool that may
never be called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.ops import Ctx
from workbench.rules.definitions.tool_rules import statement
from workbench.rules.tools import argument_patterns
from workbench.rules.tools.offers import OfferChange, changes
from workbench.services.definitions import trust
from workbench.services.tools.tool import OffererKind, Permission, ToolInfo, ToolKind, ToolScope
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class ToolStanding:
    """Whether a tool may be called, and how it has changed since the operator allowed it."""

    permission: Permission
    changes: list[OfferChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Allowed:
    """A tool of an offerer as it was when it was allowed; see `ToolInfo` and `Offerer`."""

    tool: str
    offered_by: str
    offerer_name: str
    fingerprint: str
    offer: str

    @classmethod
    def of(cls, tool: ToolInfo) -> Allowed:
        """A tool as it is offered."""
        return cls(tool.name, tool.offered_by.key, tool.offered_by.name, tool.fingerprint, tool.offer)


@dataclass(frozen=True, slots=True)
class CallScope:
    """Calls that are allowed at once: in a conversation, for a task, with such arguments; None: in, for, with any."""

    conversation_id: str | None = None
    task_id: int | None = None
    arguments: Mapping[str, str] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether it leaves no call out."""
        return self == CallScope()

    def has(self, conversation_id: str | None, task_id: int | None, arguments: Mapping[str, Any]) -> bool:
        """Whether a call is among them."""
        return (
            self.conversation_id in (None, conversation_id)
            and self.task_id in (None, task_id)
            and (self.arguments is None or argument_patterns.matches(self.arguments, arguments))
        )


def allow_within(tx: Tx, what: Allowed, scope: CallScope) -> None:
    """Record that a tool, as it is offered now by whom, may be called within a scope without a question."""
    arguments = None if scope.arguments is None else json.dumps(dict(scope.arguments), sort_keys=True)
    narrowed = {"conversation": scope.conversation_id, "task": scope.task_id, "arguments": arguments}
    said = {"fingerprint": what.fingerprint, "offer": what.offer, "by": tx.actor, "now": tx.now}
    tx.run(SQL.add_allowance, narrowed | said, tool=what.tool, offerer=what.offered_by, name=what.offerer_name)
    within = {"conversation_id": scope.conversation_id, "task": scope.task_id, "arguments": scope.arguments}
    tx.emit(
        "tool.permitted",
        f"tool:{what.tool}",
        permission=Permission.ALWAYS,
        offered_by=what.offered_by or None,
        within=within,
    )


def task_of(tx: Reader, agent: str | None) -> int | None:
    """The task that an agent has begun last and works on, for which it calls tools."""
    row = tx.one(SQL.task_of, agent=agent)
    return row["task"] if row else None


def allow(tx: Tx, what: Allowed) -> None:
    """Record that a tool may always be called, as it is offered now by whom."""
    _set(tx, what, Permission.ALWAYS)


def restrict(tx: Tx, name: str, permission: Permission) -> None:
    """Record that tools with a name may be called after a question, or never, whoever offers them."""
    _remove(tx, name)
    _set(tx, Allowed(name, "", "", "", ""), permission)


def _set(tx: Tx, what: Allowed, permission: Permission) -> None:
    said = {"fingerprint": what.fingerprint, "offer": what.offer, "by": tx.actor, "now": tx.now}
    tx.run(SQL.set, said, tool=what.tool, offerer=what.offered_by, name=what.offerer_name, permission=permission)
    tx.emit("tool.permitted", f"tool:{what.tool}", permission=permission, offered_by=what.offered_by or None)


def forget(tx: Tx, name: str) -> None:
    """Treat tools with a name as if nothing had been decided about them."""
    _remove(tx, name)
    tx.emit("tool.permitted", f"tool:{name}", permission=None, offered_by=None)


def _remove(tx: Tx, name: str) -> None:
    tx.run(SQL.remove, tool=name)
    tx.run(SQL.remove_allowances, tool=name)


def forget_conversation(tx: Tx, conversation_id: str) -> None:
    """Remove what is allowed within a conversation, which is deleted."""
    tx.run(SQL.remove_allowances_of_conversation, conversation=conversation_id)


async def of(ctx: Ctx, scope: ToolScope, tool: ToolInfo, arguments: Mapping[str, Any]) -> ToolStanding:
    """Whether a tool may be called for a scope with these arguments."""
    standing = await _of_any_call(ctx, scope, tool)
    if standing.permission is not Permission.ASK or scope.origin is not None:
        return standing
    said = {"tool": tool.name, "offerer": tool.offered_by.key, "fingerprint": tool.fingerprint}
    whose = {"conversation": scope.conversation_id, "agent": scope.caller.agent}
    rows = await ctx.store.read_inline(lambda tx: tx.all(SQL.allowances, said | whose))
    return ToolStanding(Permission.ALWAYS) if any(_covers(row["arguments"], arguments) for row in rows) else standing


def _covers(patterns: str | None, arguments: Mapping[str, Any]) -> bool:
    return patterns is None or argument_patterns.matches(json.loads(patterns), arguments)


async def _of_any_call(ctx: Ctx, scope: ToolScope, tool: ToolInfo) -> ToolStanding:
    if not _is_decided(scope, tool):
        return ToolStanding(Permission.ALWAYS)
    row = await ctx.store.read_inline(lambda tx: tx.one(SQL.of_tool, tool=tool.name, offerer=tool.offered_by.key))
    if scope.origin is not None and (row is None or row["permission"] != Permission.NEVER):
        return ToolStanding(await scope.origin.permission(ctx))
    if row is None:
        return ToolStanding(await _find_stated(ctx, scope, tool) or _default(tool))
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


async def _find_stated(ctx: Ctx, scope: ToolScope, tool: ToolInfo) -> Permission | None:
    """The permission that the definition states for a tool; None: it states none, or is not trusted with it."""
    snapshot = scope.definition
    if snapshot is None:
        return None
    own = tool.server if tool.offered_by.kind is OffererKind.DEFINITION else None
    stated = statement(snapshot.definition, own, tool.own_name or tool.name)
    if stated is None or stated.asks:
        return Permission.ASK if stated else None
    missing = {need.name for need in (await trust.state(ctx, snapshot)).missing}
    return None if stated.place in missing else Permission.ALWAYS
