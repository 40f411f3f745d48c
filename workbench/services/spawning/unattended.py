"""Open tasks that no agent is left to do, and the agents whose restart would help."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)


class Unattended(Wire):
    """Claimable tasks that no agent can do which is active, runs or is about to start.

    `restartable` are the spawned agents that have ended and could do some of them. `message` is empty if there is no
    such task.
    """

    tasks: int
    restartable: list[str]
    message: str


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_unattended_work(ctx: Ctx) -> Unattended:
    """Count the open tasks that no agent is left to do, and list the agents that could be restarted for them."""

    def question(tx: Reader) -> Unattended:
        row = tx.one(SQL.count)
        assert row is not None
        restartable = [one["assigned_agent_id"] for one in tx.all(SQL.restartable)] if row["n"] else []
        return Unattended(tasks=row["n"], restartable=restartable, message=_message(row["n"], restartable))

    return await ctx.read(question)


def _message(tasks: int, restartable: Sequence[str]) -> str:
    if not tasks:
        return ""
    todo = f"Restart {' or '.join(restartable[:3])}." if restartable else "Spawn one."
    return f"There is no agent to do {tasks:,} open {'task' if tasks == 1 else 'tasks'}. {todo}"
