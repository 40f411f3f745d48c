"""The allowlist: which agents may act at all (spec 1). The list itself is `workbench.allowlist`."""

from __future__ import annotations

from workbench.errors import Conflict, NotFound
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import access


class AllowlistIds(Wire):
    """The allowlist. Nobody on it means that everyone may act; `fixed` ids come from the settings."""

    ids: list[str]
    fixed: list[str]
    path: str


@op(allow=Level.OPERATOR, reads=True)
async def list_allowlist(ctx: Ctx) -> AllowlistIds:
    """The ids that may act at all; an empty list means everyone."""
    return _shown(ctx)


@op(allow=Level.OPERATOR)
async def allow_agent(ctx: Ctx, agent_id: str) -> AllowlistIds:
    """Put an id on the allowlist. The first one shuts everybody else out."""
    ctx.allowlist.add(access.check_agent_id(agent_id))
    await ctx.write(lambda tx: tx.emit("allowlist.changed", f"allowlist:{agent_id}", allowed=True))
    return _shown(ctx)


@op(allow=Level.OPERATOR, destructive=True)
async def disallow_agent(ctx: Ctx, agent_id: str) -> AllowlistIds:
    """Take an id off the allowlist. With the last one it is empty, and everyone may act again."""
    if agent_id not in ctx.allowlist.ids():
        raise NotFound("AGENT_NOT_FOUND", f"{agent_id!r} is not on the allowlist.")
    if agent_id in ctx.allowlist.fixed:
        raise Conflict("FIXED_BY_SETTING", f"{agent_id!r} is named by the setting allowed_agents. Change it there.")
    ctx.allowlist.remove(agent_id)
    await ctx.write(lambda tx: tx.emit("allowlist.changed", f"allowlist:{agent_id}", allowed=False))
    return _shown(ctx)


def _shown(ctx: Ctx) -> AllowlistIds:
    return AllowlistIds(
        ids=sorted(ctx.allowlist.ids()), fixed=sorted(ctx.allowlist.fixed), path=str(ctx.allowlist.path)
    )
