"""Agents as processes: `spawn`, `ps`, `logs`, `restart`, `terminate`, `profiles`, `worker`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.grants import NOTHING, TOOLS_HELP, tool_names
from workbench.cli.joining import ServerOptions, run_joining, server_options
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, Shown, Text, drop_none, pass_client, raw_option, without_empty
from workbench.present.tables import Table
from workbench.rules.workplace import as_json, from_options
from workbench.system.tree_removal import remove_tree

COLUMNS = {
    "agent_id": "agent",
    "machine": "machine",
    "state": "state",
    "pid": "pid",
    "profile": "profile",
    "definition": "definition",
    "worktree": "worktree",
    "cpu_percent": "cpu %",
    "cpu_seconds": "cpu s",
    "memory_mb": "memory MB",
    "processes": "processes",
    "waits": "waits",
    "ending": "ended",
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
        raise click.BadParameter("give a number of bytes, such as 500M or 2G.") from None


def _variables(values: Sequence[str]) -> dict[str, str]:
    """Variables as NAME=VALUE, or NAME for the value in this terminal."""
    if missing := [value for value in values if "=" not in value and value not in os.environ]:
        raise click.BadParameter(f"this terminal has no variable {missing[0]!r}. Set it, or give NAME=VALUE.")
    pairs = (value.partition("=") for value in values)
    return {name: value if equals else os.environ[name] for name, equals, value in pairs}


def spawn_options(command: Any) -> Any:
    """Add the options of spawning an agent to a command."""
    for option in reversed(
        (
            click.option(
                "--worktree", "assigned_worktree", default=None, help="Its worktree.", shell_complete=offers.worktrees
            ),
            click.option("--new-worktree", is_flag=True, default=None, help="Create its worktree."),
            click.option("--name", default=None, help="Its name."),
            click.option(
                "--profile",
                default=None,
                help="Its profile; `workbench profiles` lists them.",
                shell_complete=offers.profiles,
            ),
            click.option(
                "--function", default=None, metavar="MODULE:NAME", help="The function that the profile `python` calls."
            ),
            click.option(
                "--task", "task_id", type=int, default=None, help="Do only this task.", shell_complete=offers.tasks
            ),
            click.option(
                "--env",
                "environment",
                multiple=True,
                metavar="NAME[=VALUE]",
                help="Set a variable; without a value, to that of this terminal.",
            ),
            click.option(
                "--secret",
                multiple=True,
                metavar="NAME[=VALUE]",
                help="Set a variable like --env, or name one of those, and mask its value in all that is recorded.",
            ),
            click.option("--cpu", "cpu_seconds", type=float, default=None, help="Limit of processor seconds per task."),
            click.option(
                "--memory", "memory_bytes", callback=_size, default=None, help="Limit of memory per task, such as 2G."
            ),
            click.option("--wall", "wall_seconds", type=float, default=None, help="Limit of seconds per task."),
            click.option("--tasks", type=int, default=None, help="End after this many attempts."),
            click.option("--mcp", is_flag=True, default=None, help="Connect it over MCP."),
            click.option(
                "--definition", type=offers.definition, default=None, help="Its definition: path, id or name."
            ),
            click.option(
                "--include", multiple=True, metavar="NAME", help="Use this rule or reference, which is used on request."
            ),
            click.option(
                "--workplace",
                multiple=True,
                metavar="KEY=VALUE",
                help="A key of its workplace, such as read=data; `workbench box show` lists them. Repeat it for lists.",
            ),
            click.option("--tools", metavar="NAMES", callback=tool_names, help=f"{TOOLS_HELP}."),
            click.option(
                "--self-tools",
                type=click.Choice(["off", "read", "write"]),
                default=None,
                help="What it may do with its own definition.",
            ),
        )
    ):
        command = option(command)
    return command


def _spawn_arguments(options: dict[str, Any]) -> dict[str, Any]:
    names = ("cpu_seconds", "memory_bytes", "wall_seconds", "tasks")
    limits = drop_none(**{name: options.pop(name) for name in names})
    include, tools = list(options.pop("include")) or None, options.pop("tools")
    workplace = as_json(from_options(options.pop("workplace"))) or None
    environment, secret = _variables(options.pop("environment")), options.pop("secret")
    environment |= _variables([value for value in secret if value not in environment])
    options |= {"environment": environment, "secret": [value.partition("=")[0] for value in secret] or None}
    tools = None if tools == NOTHING else tools
    return drop_none(**options, limits=limits or None, include=include, tools=tools, workplace=workplace)


@root.command()
@click.argument("persona_id", required=False, shell_complete=offers.personas)
@spawn_options
@click.option("--on", metavar="NAME", default=None, help="Start it on this machine of the settings.")
@click.option("--ask", is_flag=True, help="Ask for approval instead of admitting it.")
@pass_client
def spawn(client: OperatorClient, ask: bool, **options: Any) -> Shown:
    """Start an agent as a process of its own. Its persona is by default that of its definition."""
    agent = client.call("spawn_agent", approve="ask" if ask else "auto", **_spawn_arguments(options))
    runs = f"runs as process {agent['pid']}" if agent["pid"] else "is in the queue"
    warning = "" if agent["confinement"]["enforced"] else " It is not confined."
    opens = "".join(f"\nIts commands may use {key}." for key in agent["opens"])
    unused = opens + "".join(f"\n{sentence}" for sentence in (*agent["unused"], *agent["models"]))
    return Note(f"{agent['agent_id']} {runs} as a {agent['role']}; it is {agent['status']}.{warning}{unused}", agent)


@view("WorkplaceInfo")
def _workplace(place: dict[str, Any]) -> Shown:
    where = "the project's path" if place["mounts"] else "its own path, with links to what it reads in the project"
    note = "\n".join((f"In its box, the worktree stands at {where}.", *place["problems"]))
    return Table.of(place["keys"], {"key": "key", "text": "value", "source": "from"}, "", place, note)


@root.command()
@click.option("--all", "everything", is_flag=True, help="Include ended ones.")
@pass_client
def ps(client: OperatorClient, everything: bool) -> Shown:
    """List the processes of agents. What they use, or how they ended."""
    agents = client.call("get_managed_agents")["agents"]
    processes = [{**agent["process"], "waits": _wait(agent)} for agent in agents if agent["process"]]
    return process_table([process for process in processes if everything or process["state"] != "ended"], NO_PROCESSES)


def _wait(agent: Mapping[str, Any]) -> str:
    """Until when an agent is held, if it is."""
    if agent["presence"] != "held":
        return ""
    return f"until {agent['held_until']}" if agent["held_until"] else "for your answer: `workbench approvals`"


@root.group(cls=NounGroup)
def holds() -> None:
    """Why agents claim no tasks for now."""


NO_PROCESSES = "No agent has a process; `workbench spawn` starts one."


def process_table(processes: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """A table of processes: what they use, or how they ended."""
    rows = [
        {
            "waits": "",
            **process,
            "memory_mb": round(process["memory_bytes"] / 1e6, 1),
            "processes": len(process["children"]) + 1 if process["running"] else 0,
            "ending": process["reason"] or ("" if process["exit_code"] is None else f"status {process['exit_code']}"),
        }
        for process in processes
    ]
    columns = without_empty(without_empty(COLUMNS, "definition", rows), "waits", rows)
    if len({row["machine"] for row in rows}) <= 1:
        columns = {name: title for name, title in columns.items() if name != "machine"}
    return Table.of(rows, columns, empty)


@root.command()
@click.argument("agent_id", shell_complete=offers.agents)
@click.option(
    "--lines", type=click.IntRange(1, 1_000), default=50, show_default=True, help="How many of the last lines."
)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the process ends.")
@raw_option
@pass_client
def logs(client: OperatorClient, agent_id: str, lines: int, follow: bool, raw: bool) -> Shown:
    """Print the end of an agent's log."""
    process = client.call("get_agent_process_info", agent_id=agent_id, log_lines=lines)
    text = "\n".join(process["log_tail"])
    if not follow:
        return Text(text, process, raw)
    with suppress(KeyboardInterrupt):  # this is how one ends it
        _follow(client, agent_id, process, raw)
    return None


def _follow(client: OperatorClient, agent_id: str, process: dict[str, Any], raw: bool) -> None:
    """Print the lines of a process, and go on until it has ended and nothing more is there."""
    while process["log_tail"] or process["state"] != "ended":
        if process["log_tail"]:
            click.echo(repr(Text("\n".join(process["log_tail"]), raw=raw)))
        else:
            time.sleep(FOLLOW_SECONDS)
        after = process["log_after"] or 0
        process = client.call("get_agent_process_info", agent_id=agent_id, log_lines=1_000, log_after=after)


@root.command()
@click.argument("agent_ids", nargs=-1, required=True, metavar="AGENT_ID...", shell_complete=offers.agents)
@pass_client
def restart(client: OperatorClient, agent_ids: tuple[str, ...]) -> Shown:
    """Restart agents' processes."""
    agents = [client.call("restart_agent", agent_id=agent_id) for agent_id in agent_ids]
    runs = [f"runs as process {agent['pid']}" if agent["pid"] else "is in the queue" for agent in agents]
    sentences = "\n".join(f"{agent['agent_id']} {how}." for agent, how in zip(agents, runs, strict=True))
    return Note(sentences, agents[0] if len(agents) == 1 else agents)


@view("Profiles")
def _profiles(page: dict[str, Any]) -> Shown:
    rows = [profile | {"lacks": ", ".join(profile["needs"])} for profile in page["profiles"]]
    return Table.of(rows, {"name": "profile", "summary": "what it does", "source": "from", "lacks": "lacks"}, "")


@root.command()
@click.option("--persona", "persona_id", default=None, help="Its persona; default: that of its definition.")
@server_options
@spawn_options
@pass_client
def worker(client: OperatorClient, **options: Any) -> Shown:
    """Run a worker in this terminal, until Ctrl-C.

    With --server it works for a project on another machine, with which it shares nothing but this address.
    """
    from workbench.worker.__main__ import run
    from workbench.worker.startup import WorkerConfig

    far = ServerOptions.taken_from(options)
    if far.server is not None:
        sys.exit(run_joining(far, _spawn_arguments(options)))
    scratch = tempfile.mkdtemp(prefix="workbench-")
    try:
        agent = client.call("enlist_worker", scratch=scratch, **_spawn_arguments(options))
        for sentence in agent["unused"]:
            click.echo(sentence, err=True)
        click.echo(f"{agent['agent_id']} is running; press Ctrl-C to end it.", err=True)
        sys.exit(run(WorkerConfig.from_json(agent["config"])))
    finally:
        remove_tree(Path(scratch))
