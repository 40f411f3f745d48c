"""The operator's decisions about tools: which may be called without a question, and which never."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import NotFound
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules.tools.offers import changes
from workbench.services.tools import catalogue, permission_requests, permissions
from workbench.services.tools.catalogue import ToolName
from workbench.services.tools.tool import Permission, Scope, Tool
from workbench.store.base import Row, Tx


class ToolPermission(Wire):
    """What the operator decided about a tool. `changes`: how it differs now, so that it is asked for again.

    `problem`: why that is not known now, such as a server that is down.
    """

    tool: str
    permission: Permission
    changes: list[dict[str, Any]]
    problem: str | None
    decided_by: str
    decided_at: Micros


class ToolPermissions(Wire):
    """Decisions about tools, by name. For a tool without one: ask, or always if it only reads."""

    permissions: list[ToolPermission]


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def list_tool_permissions(ctx: Ctx) -> ToolPermissions:
    """List which tools agents and models may call without a question, or never."""
    rows = await ctx.read(lambda tx: tx.all(permissions.SQL.list))
    known = {tool.name: tool for tool in await catalogue.offered(ctx, Scope(ctx.caller))} if rows else {}
    return ToolPermissions(permissions=[_permission(row, known.get(row["tool"])) for row in rows])


@op(allow=Level.OPERATOR, tool=False)
async def set_tool_permission(
    ctx: Ctx,
    name: ToolName,
    permission: Annotated[
        Permission | None,
        Field(
            description="always, ask (before each call) or never; null: as definitions say, else ask unless it reads."
        ),
    ],
) -> ToolPermissions:
    """Decide whether agents and models may call a tool. `always` holds until its description or schema changes."""
    tool = await _known(ctx, name)
    if tool is None and permission is Permission.ALWAYS:
        raise NotFound("UNKNOWN_TOOL", f"There is no tool {name!r} now, so it cannot be allowed. See list_tools.")
    await ctx.write(lambda tx: _set(tx, name, permission, tool))
    return await list_tool_permissions(ctx)


async def _known(ctx: Ctx, name: str) -> Tool | None:
    try:
        return await catalogue.find(ctx, Scope(ctx.caller), name)
    except NotFound:
        return None


def _set(tx: Tx, name: str, permission: Permission | None, tool: Tool | None) -> None:
    if permission is None:
        permissions.forget(tx, name)
        return
    fingerprint, offer = (tool.fingerprint, tool.offer) if tool else ("", "")
    permissions.remember(tx, name, permission, fingerprint, offer)
    permission_requests.settle(tx, name, permission, fingerprint)


def _permission(row: Row, tool: Tool | None) -> ToolPermission:
    is_other = tool is not None and row["permission"] == Permission.ALWAYS and row["fingerprint"] != tool.fingerprint
    return ToolPermission(
        tool=row["tool"],
        permission=row["permission"],
        changes=[asdict(one) for one in changes(row["offer"], tool.offer)] if is_other and tool else [],
        problem=tool.problem if tool else "there is no such tool now",
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
    )
