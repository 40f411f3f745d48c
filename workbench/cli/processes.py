"""Agents as processes: `spawn`, `ps`, `logs`, `restart`, `terminate`, `profiles`, and being one by hand: `worker`."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, Text, drop_none, pass_client
from workbench.tables import Table

COLUMNS = {
    "agent_id": "agent",
    "state": "state",
    "pid": "pid",
    "profile": "profile",
    "worktree": "worktree",
    "cpu_percent": "cpu %",
    "cpu_seconds": "cpu s",
    "memory_mb": "memory MB",
    "processes": "processes",
    "why": "ended",
}
FOLLOW_SECONDS = 0.25
BYTES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def _size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    number, unit = (value[:-1], value[-1]) if value[-1:] in BYTES else (value, "")
    try:
        return int(float(number) * BYTES[unit])
    except ValueError:
        raise click.BadParameter("a number of bytes, such as 500M or 2G.") from None


def _variables(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    if wrong := [value for value in values if "=" not in value]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE.")
    return dict(value.split("=", 1) for value in values)


def spawn_options(command: Any) -> Any:
    """Give a command the options of spawning an agent."""
    for option in reversed(
        (
            click.option("--worktree", "assigned_worktree", default=None, help="Where it works."),
            click.option("--new-worktree", is_flag=True, default=None, help="Make the worktree."),
            click.option("--name", default=None, help="What people will call it."),
            click.option("--profile", default=None, help="How it works; `workbench profiles` lists them."),
            click.option("--function", default=None, metavar="MODULE:NAME", help="For the profile python."),
            click.option("--task", "task_id", type=int, default=None, help="Only this task, then it ends."),
            click.option(
                "--env", "environment", multiple=True, callback=_variables, metavar="NAME=VALUE", help="A variable."
            ),
            click.option("--cpu", "cpu_seconds", type=float, default=None, help="Processor seconds of a task."),
            click.option("--memory", "memory_bytes", callback=_size, default=None, help="Bytes, such as 2G."),
            click.option("--wall", "wall_seconds", type=float, default=None, help="Seconds a task may take."),
            click.option("--tasks", type=int, default=None, help="Attempts it makes before it ends."),
            click.option("--mcp", is_flag=True, default=None, help="Let it talk MCP."),
        )
    ):
        command = option(command)
    return command


def _spawn_arguments(options: dict[str, Any]) -> dict[str, Any]:
    names = ("cpu_seconds", "memory_bytes", "wall_seconds", "tasks")
    limits = drop_none(**{name: options.pop(name) for name in names})
    return drop_none(**options, limits=limits or None)


@root.command()
@click.argument("persona_id")
@spawn_options
@click.option("--ask", is_flag=True, help="Leave it at the desk instead of admitting it.")
@pass_client
def spawn(client: OperatorClient, persona_id: str, ask: bool, **options: Any) -> Shown:
    """Start an agent as a process of its own."""
    made = client.call(
        "spawn_agent", persona_id=persona_id, approve="ask" if ask else "auto", **_spawn_arguments(options)
    )
    runs = f"runs as process {made['pid']}" if made["pid"] else "waits for room"
    lacks = "" if made["confinement"]["enforced"] else " Nothing confines it."
    return Note(f"{made['agent_id']} {runs}; it is {made['status']}.{lacks}", made)


@root.command()
@click.option("--all", "everything", is_flag=True, help="Those too that have ended.")
@pass_client
def ps(client: OperatorClient, everything: bool) -> Shown:
    """List the processes of agents: what they use, and how they ended."""
    found = [agent["process"] for agent in client.call("get_managed_agents")["agents"] if agent["process"]]
    rows = [
        process
        | {
            "memory_mb": round(process["memory_bytes"] / 1e6, 1),
            "processes": len(process["children"]) + 1 if process["running"] else 0,
            "why": process["reason"] or ("" if process["exit_code"] is None else f"status {process['exit_code']}"),
        }
        for process in found
        if everything or process["state"] != "ended"
    ]
    return Table.of(rows, COLUMNS, "No agent has a process now; `workbench spawn` starts one.")


@root.command()
@click.argument("agent_id")
@click.option("--lines", type=click.IntRange(1, 1_000), default=50, show_default=True, help="The last so many.")
@click.option("--follow", "-f", is_flag=True, help="Go on as it grows, until the process ends.")
@pass_client
def logs(client: OperatorClient, agent_id: str, lines: int, follow: bool) -> Shown:
    """Print the end of an agent's log."""
    found = client.call("get_agent_process_info", agent_id=agent_id, log_lines=lines)
    text = "\n".join(found["log_tail"])
    if not follow:
        return Text(text, found)
    click.echo(text)
    _follow(client, agent_id, Path(found["log"]))
    return None


def _follow(client: OperatorClient, agent_id: str, log: Path) -> None:
    with log.open("r", encoding="utf-8", errors="replace") as file:
        file.seek(0, 2)
        while True:
            running = client.call("get_agent_process_info", agent_id=agent_id, log_lines=0)["state"] != "ended"
            if said := file.read():
                click.echo(said, nl=False)
            if not running:
                return
            time.sleep(FOLLOW_SECONDS)


@root.command()
@click.argument("agent_id")
@pass_client
def restart(client: OperatorClient, agent_id: str) -> Shown:
    """End an agent's process and start another as it was spawned."""
    made = client.call("restart_agent", agent_id=agent_id)
    runs = f"runs as process {made['pid']}" if made["pid"] else "waits for room"
    return Note(f"{made['agent_id']} {runs}.", made)


@root.command()
@click.argument("agent_id")
@click.option("--reason", default="", help="Kept in the history.")
@pass_client
def terminate(client: OperatorClient, agent_id: str, reason: str) -> Shown:
    """End an agent's process and everything it started."""
    return Note(f"{agent_id} is ended.", client.call("terminate_agent", agent_id=agent_id, reason=reason))


@root.command()
@pass_client
def profiles(client: OperatorClient) -> Shown:
    """List the ways to run an agent, and what each lacks here."""
    found = client.call("list_profiles")["profiles"]
    rows = [one | {"lacks": ", ".join(one["needs"])} for one in found]
    return Table.of(rows, {"name": "profile", "summary": "what it does", "source": "from", "lacks": "lacks"}, "")


@root.command()
@click.option("--persona", "persona_id", required=True, help="The kind of work it takes.")
@spawn_options
@pass_client
def worker(client: OperatorClient, persona_id: str, **options: Any) -> Shown:
    """Be a worker, in this terminal, until Ctrl-C: what `spawn` starts as a process of its own."""
    from workbench.worker.__main__ import run
    from workbench.worker.startup import WorkerConfig

    own = tempfile.mkdtemp(prefix="workbench-")
    try:
        told = client.call("enlist_worker", persona_id=persona_id, scratch=own, **_spawn_arguments(options))
        click.echo(f"{told['agent_id']} works; Ctrl-C ends it.", err=True)
        sys.exit(run(WorkerConfig.from_json(told["config"])))
    finally:
        shutil.rmtree(own, ignore_errors=True)
