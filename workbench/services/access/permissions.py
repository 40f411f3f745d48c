"""The tools of spec 1 (register, read, write): the resources each may use, and whether it is enabled."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import Hint, NotFound, Refused
from workbench.model import Level, Micros, Wire
from workbench.ops import Caller, Command, Ctx, RestRoute, op
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Resource = Literal["contexts", "sessions", "projects", "teams", "agents", "tasks", "agent_registration"]
Right = Literal["read", "write"]


class Permissions(Wire):
    """The resources that a tool may read and write."""

    read: Annotated[list[Resource], Field(description="What an agent with it may read.")] = []
    write: Annotated[list[Resource], Field(description="What an agent with it may write.")] = []


class AgentTool(Wire):
    """A tool that agents can be granted."""

    id: str
    name: str
    description: str
    permissions: Permissions
    enabled: bool
    created_at: Micros
    updated_at: Micros


class AgentTools(Wire):
    """The tools, by id."""

    agent_tools: list[AgentTool]


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("agent-tools list"),
    rest=RestRoute("GET", "/agent-tools", rows="agent_tools"),
    refreshed_by="agent_tool",
)
async def list_agent_tools(ctx: Ctx) -> AgentTools:
    """List the tools that agents can be granted, with their permissions."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list))
    return AgentTools(agent_tools=[_agent_tool(row) for row in rows])


@op(
    allow=Level.OPERATOR,
    command=(
        "agent-tools edit",
        Command(
            "agent-tools enable TOOL",
            "{tool_id} is switched on.",
            options=(),
            fixed={"enabled": True},
            help="Switch a tool on for all agents that have it.",
        ),
        Command(
            "agent-tools disable TOOL",
            "{tool_id} is switched off.",
            options=(),
            fixed={"enabled": False},
            help="Switch a tool off for all agents, whatever they were granted.",
        ),
    ),
    rest=RestRoute("PATCH", "/agent-tools/{tool_id}"),
)
async def update_agent_tool(
    ctx: Ctx,
    tool_id: Annotated[str, Field(description="read, write or register; see list_agent_tools.")],
    enabled: Annotated[bool | None, Field(description="Whether agents may use it.")] = None,
    permissions: Annotated[Permissions | None, Field(description="The resources it may read and write.")] = None,
    description: Annotated[str | None, Field(max_length=1_000, description="What it is for.")] = None,
) -> AgentTool:
    """Enable or disable a tool, or change its permissions. It takes effect with an agent's next message."""
    changes: dict[str, Any] = {"enabled": enabled, "description": description}
    changes["permissions"] = permissions and permissions.model_dump()
    fields = {name: value for name, value in changes.items() if value is not None}

    def change(tx: Tx) -> AgentTool:
        _require(tx, tool_id)
        if fields:
            tx.run(SQL.update, _columns(changes), id=tool_id, now=tx.now)
            tx.emit("agent_tool.updated", f"agent_tool:{tool_id}", **fields)
        return _agent_tool(_require(tx, tool_id))

    return await ctx.write(change)


def check(tx: Reader, caller: Caller, right: Right, resource: Resource) -> None:
    """Check that a caller's tool is enabled and may read, or write, a resource; the operator always may.

    Raises:
        Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    if caller.level is Level.OPERATOR:
        return
    row = _require(tx, caller.tool)
    if not row["enabled"]:
        raise Refused("TOOL_DISABLED", f"The tool {row['id']} is disabled. Ask the operator to enable it.")
    permissions = _permissions(row["permissions"])
    if resource not in getattr(permissions, right):
        raise Refused(
            "NOT_PERMITTED",
            f"The tool {row['id']} may not {right} {resource}. Ask the operator for the permission.",
            tool=row["id"],
            permissions=permissions.model_dump(),
        )


def _columns(changes: dict[str, Any]) -> dict[str, Any]:
    enabled, permissions = changes["enabled"], changes["permissions"]
    return {
        "enabled": None if enabled is None else int(enabled),
        "permissions": None if permissions is None else json.dumps(permissions),
        "description": changes["description"],
    }


def _require(tx: Reader, tool_id: str) -> Row:
    row = tx.one(SQL.get, id=tool_id)
    if row is None:
        raise NotFound("TOOL_NOT_FOUND", f"There is no tool {tool_id!r}.", Hint("list_agent_tools"))
    return row


def _agent_tool(row: Row) -> AgentTool:
    permissions = _permissions(row["permissions"])
    return AgentTool(**{**dict(row), "permissions": permissions, "enabled": bool(row["enabled"])})


@lru_cache(maxsize=64)
def _permissions(text: str) -> Permissions:
    """Parse stored permissions; cached, because each message reads the same few texts."""
    return Permissions(**json.loads(text))
