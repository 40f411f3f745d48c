"""The operator's decisions about tools: which may be called without a question, and which never."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, RestRoute, op
from workbench.rules.tools.offers import changes
from workbench.services.tools import catalogue, permission_requests, permissions
from workbench.services.tools.catalogue import ToolName
from workbench.services.tools.permissions import Allowed
from workbench.services.tools.tool import OffererKind, Permission, ToolInfo, ToolScope
from workbench.store.base import Row, Tx


class ToolPermission(Wire):
    """What the operator decided about a tool. `changes`: how it differs now, so that it is asked for again.

    `id`: tool and offered_by, and a number if only some calls are allowed. `offered_by`: whose tool it is (workbench,
    notebook, project, definition:ID or node:RID), with `offerer_name`; empty: whoever offers one of this name.
    `problem`: why its changes are not known now, such as a server that is down. `conversation_id`, `task_id` and
    `arguments` (patterns by argument): only calls in that conversation, for that task, with such arguments; null: any.
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
    conversation_id: str | None = None
    task_id: int | None = None
    arguments: dict[str, str] | None = None


class ToolPermissions(Wire):
    """Decisions about tools, by name. For a tool without one: ask, or always if it only reads."""

    permissions: list[ToolPermission]


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command="tools allow",
    rest=RestRoute("GET", "/tool-permissions", rows="permissions"),
    refreshed_by="tool clock",
)
async def list_tool_permissions(ctx: Ctx) -> ToolPermissions:
    """List which tools agents and models may call without a question, or never."""
    rows = await ctx.read(lambda tx: [*tx.all(permissions.SQL.list), *tx.all(permissions.SQL.list_allowances)])
    rows.sort(key=lambda row: row["tool"])
    tools = await catalogue.offered(ctx, ToolScope(ctx.caller)) if rows else []
    tools_by_offer = {(tool.name, offerer): tool for tool in tools for offerer in ("", tool.offered_by.key)}
    return ToolPermissions(
        permissions=[_permission(row, tools_by_offer.get((row["tool"], row["offered_by"]))) for row in rows]
    )


@op(allow=Level.OPERATOR, tool=False, command="tools allow", rest=RestRoute("PUT", "/tool-permissions/{name}"))
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
    tool = await _find_tool(ctx, name)
    if tool is None and permission is Permission.ALWAYS:
        text = f"There is no tool {name!r} now, so it cannot be allowed."
        raise NotFound("UNKNOWN_TOOL", text, Hint("list_tools", "See {}."))
    await ctx.write(lambda tx: _set(tx, name, permission, tool))
    return await list_tool_permissions(ctx)


async def _find_tool(ctx: Ctx, name: str) -> ToolInfo | None:
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
    narrowed = {
        "permission": Permission.ALWAYS,
        "id": None,
        "conversation_id": None,
        "task_id": None,
        "arguments": None,
    }
    said = narrowed | dict(row)
    is_other = tool is not None and said["permission"] == Permission.ALWAYS and said["fingerprint"] != tool.fingerprint
    return ToolPermission(
        id=" ".join([said["tool"], said["offered_by"], *([str(said["id"])] if said["id"] else [])]),
        tool=said["tool"],
        offered_by=said["offered_by"],
        offerer_name=said["offerer_name"],
        permission=said["permission"],
        changes=[asdict(change) for change in changes(said["offer"], tool.offer)] if is_other and tool else [],
        problem=_problem(row, tool),
        decided_by=said["decided_by"],
        decided_at=said["decided_at"],
        conversation_id=said["conversation_id"],
        task_id=said["task_id"],
        arguments=json.loads(said["arguments"]) if said["arguments"] else None,
    )


def _problem(row: Row, tool: ToolInfo | None) -> str | None:
    """Why it is not known how a tool has changed; the tools of a definition are offered in its conversations only."""
    if tool is not None or row["offered_by"].startswith(OffererKind.DEFINITION):
        return tool.problem if tool else None
    return "there is no such tool now"
