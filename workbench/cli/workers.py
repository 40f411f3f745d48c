"""Worker processes: `spawn`, `terminate`."""

from __future__ import annotations

import click

from workbench.cli.shown import Note, Shown, pass_door
from workbench.door import Door


@click.command()
@click.argument("persona_id")
@click.option("--worktree", "assigned_worktree", default=None, help="Where it works.")
@click.option("--name", default=None, help="What people will call it.")
@click.option("--mcp", is_flag=True, help="Let it talk MCP.")
@click.option("--ask", is_flag=True, help="Leave it at the desk instead of admitting it.")
@pass_door
def spawn(door: Door, persona_id: str, assigned_worktree: str | None, name: str | None, mcp: bool, ask: bool) -> Shown:
    """Start a worker process that runs the tasks' own commands."""
    made = door.call(
        "spawn_agent",
        persona_id=persona_id,
        assigned_worktree=assigned_worktree,
        name=name,
        mcp=mcp,
        approve="ask" if ask else "auto",
    )
    return Note(f"{made['agent_id']} runs as process {made['pid']}; it is {made['status']}.", made)


@click.command()
@click.argument("agent_id")
@click.option("--reason", default="", help="Kept in the history.")
@pass_door
def terminate(door: Door, agent_id: str, reason: str) -> Shown:
    """End an agent's process and everything it started."""
    return Note(f"{agent_id} is ended.", door.call("terminate_agent", agent_id=agent_id, reason=reason))
