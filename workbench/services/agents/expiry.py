"""Expiry of registrations that were not decided in time, and of grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.model import SECOND, Registration
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.rules import access
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

if TYPE_CHECKING:
    from workbench.state.settings import Settings
from workbench.services.agents.status import on_agent_exit, set_status

SQL = beside(__file__)


@duty("expiring registrations", 0.25, serving=False)
async def expire_due(ctx: Ctx) -> None:
    """Reject registrations that were not decided in time, and end expired grants."""
    if await ctx.read(lambda tx: something_due(tx, ctx.settings)):
        await ctx.of(SYSTEM).write(lambda tx: expire_registrations(tx, ctx.settings))


def expire_registrations(tx: Tx, settings: Settings) -> None:
    """Reject registrations that were not decided in time, and end expired grants, in the caller's transaction."""
    for row in tx.all(SQL.forgotten, before=tx.now - int(settings.pending_expires_seconds * SECOND)):
        on_agent_exit(tx, row["id"], "not decided in time")
    for row in tx.all(SQL.run_out, now=tx.now):
        tx.run(SQL.expire, id=row["id"])
        tx.emit("agent.expired", f"agent:{row['id']}", session=row["session_id"])
        if row["registration_status"] in access.MAY_ACT:
            set_status(tx, row["id"], Registration.INACTIVE, "the grant has expired")


def something_due(tx: Reader, settings: Settings) -> bool:
    """Whether `expire_registrations` has anything to do; costs two index lookups."""
    before = tx.now - int(settings.pending_expires_seconds * SECOND)
    return bool(tx.one(SQL.run_out, now=tx.now) or tx.one(SQL.forgotten, before=before))
