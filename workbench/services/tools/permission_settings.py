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
from workbench.services.tools.permissions import Allowed
from workbench.services.tools.tool import OffererKind, Permission, ToolInfo, ToolScope
from workbench.store.base import Row, Tx


class ToolPermission(Wire):
    """What the operator decided about a tool. `changes`: how it differs now, so that it is asked for again.

    `id`: tool and offered_by. `offered_by`: whose tool it is (workbench, notebook, project, definition:ID or node:RID),
    with `offerer_name`; empty: whoever offers one of this name. `problem`: why its changes are not known now, such as a
    server that is down.
    """

    id: str
    tool: str
    offered_by: str
    offerer_name: str
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
    tools = await catalogue.offered(ctx, ToolScope(ctx.caller)) if rows else []
    known = {(tool.name, offerer): tool for tool in tools for offerer in ("", tool.offered_by.key)}
    return ToolPermissions(permissions=[_permission(row, known.get((row["tool"], row["offered_by"]))) for row in rows])


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
    """Decide whether agents and models may call a tool.

    `always` is for the tool of who offers it now, until its description, its schemas, or the configuration or version
    of its MCP server change. `ask` and `never` are for all tools of this name.
    """
    tool = await _known(ctx, name)
    if tool is None and permission is Permission.ALWAYS:
        raise NotFound("UNKNOWN_TOOL", f"There is no tool {name!r} now, so it cannot be allowed. See list_tools.")
    await ctx.write(lambda tx: _set(tx, name, permission, tool))
    return await list_tool_permissions(ctx)


async def _known(ctx: Ctx, name: str) -> ToolInfo | None:
    try:
        return await catalogue.find(ctx, ToolScope(ctx.caller), name)
    except NotFound:
        return None


def _set(tx: Tx, name: str, permission: Permission | None, tool: ToolInfo | None) -> None:
    if permission is None:
        permissions.forget(tx, name)
    elif permission is Permission.ALWAYS and tool is not None:
        permission_requests.allow(tx, Allowed.of(tool))
    else:
        permissions.restrict(tx, name, permission)
        if permission is Permission.NEVER:
            permission_requests.refuse(tx, name)


def _permission(row: Row, tool: ToolInfo | None) -> ToolPermission:
    is_other = tool is not None and row["permission"] == Permission.ALWAYS and row["fingerprint"] != tool.fingerprint
    return ToolPermission(
        id=f"{row['tool']} {row['offered_by']}",
        tool=row["tool"],
        offered_by=row["offered_by"],
        offerer_name=row["offerer_name"],
        permission=row["permission"],
        changes=[asdict(one) for one in changes(row["offer"], tool.offer)] if is_other and tool else [],
        problem=_problem(row, tool),
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
    )


def _problem(row: Row, tool: ToolInfo | None) -> str | None:
    """Why it is not known how a tool has changed; the tools of a definition are offered in its conversations only."""
    if tool is not None or row["offered_by"].startswith(OffererKind.DEFINITION):
        return tool.problem if tool else None
    return "there is no such tool now"
