"""Open tasks that no agent is left to do, and the agents whose restart would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from workbench.model import Int64, Level, Wire
from workbench.ops import Ctx, op
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)
NAMED = 3
"""The most kinds of agents that the message names."""


class Unattended(Wire):
    """Claimable tasks for which there is no agent that is active, runs or is about to start.

    `restartable` are the spawned agents of this machine that have ended and could do some of them; `message` says which
    there are on others. It is empty if there is no such task.
    """

    tasks: int
    restartable: list[str]
    message: str


@op(allow=Level.OPERATOR, reads=True, tool=False, refreshed_by="task agent")
async def get_unattended_work(
    ctx: Ctx,
    task_id: Annotated[Int64 | None, Field(description="Only this task and those that it waits for.")] = None,
) -> Unattended:
    """Count the open tasks that no agent is left to do, and list the agents that could be restarted for them."""

    machine = ctx.local.machine

    def question(tx: Reader) -> Unattended:
        kinds = tx.all(SQL.kinds, task_id=task_id)
        agents = tx.all(SQL.restartable, task_id=task_id) if kinds else []
        here = [agent["assigned_agent_id"] for agent in agents if machine.has(agent["machine"])]
        there = [agent for agent in agents if not machine.has(agent["machine"])]
        message = _message(kinds, here, there)
        return Unattended(tasks=sum(int(kind["n"]) for kind in kinds), restartable=here, message=message)

    return await ctx.read(question)


def _message(kinds: Sequence[Row], restartable: Sequence[str], elsewhere: Sequence[Row]) -> str:
    if not kinds:
        return ""
    count = sum(int(kind["n"]) for kind in kinds)
    what = f"There is no agent to do {count:,} open {'task' if count == 1 else 'tasks'}"
    if restartable:
        return f"{what}. Restart {' or '.join(restartable[:NAMED])}."
    if elsewhere:
        places = (f"{agent['assigned_agent_id']} on the machine {agent['machine']}" for agent in elsewhere[:NAMED])
        return f"{what}. Restart {' or '.join(places)}: there, in its clone of the repository."
    needs = " or ".join(dict.fromkeys(_need(kind) for kind in kinds[:NAMED]))
    more = ", …" if len(kinds) > NAMED else ""
    return f"{what}, which {'needs' if count == 1 else 'need'} {needs}{more}. Spawn one."


def _need(kind: Row) -> str:
    """Who could do tasks of a kind."""
    if kind["agent"]:
        return f"the agent {kind['agent']}"
    return f"the persona {kind['persona_id']}" + (f" in the worktree {kind['worktree']}" if kind["worktree"] else "")
