"""Who is calling: an agent's token, or the id of one that a migration brought, and what it may do now.

It only reads. The person's token is not known here, and what is permitted is decided in `ops`.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.errors import Unauthenticated
from workbench.model import SECOND, Access, Level, Registration, Role, Tool, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules import access
from workbench.store.base import Reader, Row, Store
from workbench.store.queries import beside

SQL = beside(__file__)
HEARD_OF = 15 * SECOND
"""So often at most it is noted that an agent is there, whatever it asks for."""


class Identity(Wire):
    """Who the caller is, as the server sees it."""

    agent_id: str
    level: str
    tool: Tool
    access_level: Access
    persona_id: str | None
    session_id: str | None
    team_id: str | None
    worktree: str | None


async def identify(store: Store, token: str) -> Caller:
    """The caller an agent's token belongs to.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    hashed = access.token_hash(token)
    return await store.read_inline(lambda tx: _caller(tx, tx.one(SQL.by_token, token_hash=hashed)))


async def identify_by_id(store: Store, agent_id: str) -> Caller:
    """A caller that a migration brought, by its id alone.

    Raises:
        Unauthenticated: ``INVALID_AGENT`` (nobody has the id), ``TOKEN_REQUIRED`` (this agent has a token).
    """

    def question(tx: Reader) -> Caller:
        row = tx.one(SQL.by_name, agent_id=agent_id)
        if row is None:
            raise Unauthenticated("INVALID_AGENT", "Invalid agent_id or agent not found")
        if not row["id_only"]:
            raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned, as data.token.")
        return _caller(tx, row)

    return await store.read_inline(question)


async def renewed(store: Store, caller: Caller) -> Caller:
    """An agent as it stands now: grants change, and tools are disabled, while it is connected.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    if caller.agent is None:
        return caller
    now = await store.read_inline(lambda tx: _caller(tx, tx.one(SQL.as_caller, id=caller.agent)))
    return replace(now, address=caller.address, client=caller.client)


def _caller(tx: Reader, row: Row | None) -> Caller:
    if row is None or row["registration_status"] == Registration.REVOKED or row["deleted_at"] is not None:
        raise Unauthenticated("INVALID_TOKEN", "The token is unknown or was revoked. Register again.")
    off = row["tool"] == Tool.WRITE and not row["may_write"]
    tool = Tool.READ if row["tool"] == Tool.READ or off else Tool.WRITE
    status = Registration(row["registration_status"])
    level = access.level_of(status, tool, Role(row["role"]))
    barred = "TOOL_DISABLED" if off else None
    if row["expires_at"] is not None and row["expires_at"] <= tx.now:
        barred, level = "GRANT_EXPIRED", Level.ANONYMOUS
    elif tool is Tool.READ and not row["may_read"]:
        barred, level = "TOOL_DISABLED", Level.ANONYMOUS
    heard = status is Registration.ACTIVE and row["last_heartbeat"] > tx.now - HEARD_OF
    return Caller(
        level,
        row["assigned_agent_id"],
        row["id"],
        row["persona_id"],
        row["assigned_worktree"],
        row["session_id"],
        row["team_id"],
        Access(row["access_level"]),
        tool,
        barred,
        reads=bool(row["may_read"]),
        unheard=level > Level.ANONYMOUS and not heard,
    )


@op(allow=Level.READ, reads=True)
async def whoami(ctx: Ctx) -> Identity:
    """Who the server takes you for."""
    caller = ctx.caller
    return Identity(
        agent_id=caller.name,
        level=caller.level.name.lower(),
        tool=caller.tool,
        access_level=caller.access,
        persona_id=caller.persona,
        session_id=caller.session,
        team_id=caller.team,
        worktree=caller.worktree,
    )
