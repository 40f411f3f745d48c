"""Operations of the allowlist, which restricts access to the agents on it (spec 1); see `workbench.trust.allowlist`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, NotFound
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules import access
from workbench.store.queries import beside

SQL = beside(__file__)

Listed = Annotated[str, Field(description="An agent's id; see list_agents and list_allowlist.")]


class AllowlistIds(Wire):
    """The allowlist. If it is empty, every agent may act. `fixed` ids come from the settings."""

    ids: list[str]
    fixed: list[str]
    path: str


@op(allow=Level.OPERATOR, reads=True, command=Command("allowlist list"), refreshed_by="allowlist")
async def list_allowlist(ctx: Ctx) -> AllowlistIds:
    """List the ids on the allowlist. If it is empty, every agent may act."""
    return _current(ctx)


@op(allow=Level.OPERATOR, command="allowlist add")
async def allow_agent(ctx: Ctx, agent_id: Listed) -> AllowlistIds:
    """Add an id to the allowlist. The first id restricts access to the listed agents."""
    if not await ctx.read(lambda tx: tx.one(SQL.has_id, agent_id=agent_id)):
        access.check_agent_id(agent_id)
    ctx.allowlist.add(agent_id)
    await ctx.write(lambda tx: tx.emit("allowlist.changed", f"allowlist:{agent_id}", allowed=True))
    return _current(ctx)


@op(allow=Level.OPERATOR, destructive=True, command="allowlist remove")
async def disallow_agent(ctx: Ctx, agent_id: Listed) -> AllowlistIds:
    """Remove an id from the allowlist. Removing the last one lifts the restriction."""
    if agent_id not in ctx.allowlist.ids():
        raise NotFound("AGENT_NOT_FOUND", f"{agent_id!r} is not on the allowlist.")
    if agent_id in ctx.allowlist.fixed:
        raise Conflict("FIXED_BY_SETTING", f"{agent_id!r} comes from the setting allowed_agents. Remove it there.")
    ctx.allowlist.remove(agent_id)
    await ctx.write(lambda tx: tx.emit("allowlist.changed", f"allowlist:{agent_id}", allowed=False))
    return _current(ctx)


def _current(ctx: Ctx) -> AllowlistIds:
    return AllowlistIds(
        ids=sorted(ctx.allowlist.ids()), fixed=sorted(ctx.allowlist.fixed), path=str(ctx.allowlist.path)
    )
