"""Agents: `agents` (list, show, history, grant, move, token, revoke, delete, restore) and `connect`.

All of these but `list`, `delete` and `restore` are also commands without `agents`; `show` is then `agent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.grants import choices, grant_options, membership_options
from workbench.cli.output import Note, NounGroup, Shown, Text, drop_none, enumerated, pass_client
from workbench.present.tables import Table, TablePage

NEWEST_EVENTS = 20


@root.group(cls=NounGroup)
def agents() -> None:
    """Agents: list, show, grant, move, delete, restore, …"""


@root.command()
@click.argument("agent_id", shell_complete=offers.agents)
@pass_client
def agent(client: OperatorClient, agent_id: str) -> Shown:
    """Show one agent. Its grant, connections and latest events."""
    info = client.call("get_agent", agent_id=agent_id)
    entries = client.call("get_agent_history", agent_id=agent_id, limit=NEWEST_EVENTS)["entries"][::-1]
    rows = [[name.replace("_", " "), value] for name, value in info.items() if value not in (None, [], {})]
    sections = [(agent_id, Table(["", ""], rows)), ("Latest events", _history_table(entries))]
    return TablePage(sections, {"agent": info, "history": entries})


@root.command("history")
@click.argument("agent_id", shell_complete=offers.agents)
@click.option("--limit", type=click.IntRange(1), default=None, help="Only this many of the newest.")
@pass_client
def agent_history(client: OperatorClient, agent_id: str, limit: int | None) -> Shown:
    """Show what happened to an agent. What changed from what to what, who did it and why, oldest first."""
    return _history_table(_history(client, agent_id, limit))


@root.command()
@click.argument("agent_ids", nargs=-1, required=True, metavar="AGENT_ID...", shell_complete=offers.agents)
@click.option("--id", "new_id", metavar="ID", default=None, help="Its new id (one agent).")
@click.option("--name", default=None, help="Its new name (one agent).")
@click.option("--reason", default="", help="Recorded in the history.")
@grant_options
@pass_client
def grant(
    client: OperatorClient,
    agent_ids: tuple[str, ...],
    new_id: str | None,
    name: str | None,
    reason: str,
    **options: Any,
) -> Shown:
    """Change the grants of agents, all or none, or the id or name of one."""
    changes = choices(options, agent_id=new_id, name=name)
    if not changes:
        raise click.UsageError("Give at least one option: --tool, --session, --expires, … `grant --help` lists all.")
    if (new_id or name) and len(agent_ids) > 1:
        raise click.UsageError("An id and a name are for one agent. Omit --id and --name, or change one by one.")
    agents = client.call("assign_agents", agent_ids=list(agent_ids), changes=changes, reason=reason)["agents"]
    return Note(f"Changed {enumerated(agent_ids)}.", agents[0] if len(agents) == 1 else agents)


@root.command()
@click.argument("agent_ids", nargs=-1, required=True, shell_complete=offers.agents)
@membership_options
@pass_client
def move(client: OperatorClient, agent_ids: tuple[str, ...], **options: Any) -> Shown:
    """Move agents to a session or a team."""
    changes = choices(options)
    if not changes:
        raise click.UsageError("Give --session, --team, or both.")
    agents = client.call("assign_agents", agent_ids=list(agent_ids), changes=changes)
    return Note(f"Moved {enumerated(agent_ids)}.", agents)


@root.command()
@click.argument("agent_id", required=False, shell_complete=offers.agents)
@click.option("--client", "program", metavar="NAME", default=None, help="Only for claude-code, codex, gemini, mcp, …")
@pass_client
def connect(client: OperatorClient, agent_id: str | None, program: str | None) -> Shown:
    """Print how to connect a client. From registering an agent to the client's own command; for Claude Code, Codex,
    Gemini CLI, other MCP clients and scripts."""
    connection = client.call("connection_instructions", **drop_none(agent_id=agent_id))
    ids = [instruction["id"] for instruction in connection["instructions"]]
    if program not in (None, *ids):
        raise click.BadParameter(f"{program!r} is none of {', '.join(ids)}.", param_hint="--client")
    instructions = [instruction for instruction in connection["instructions"] if program in (None, instruction["id"])]
    text = "\n\n".join(f"# {instruction['title']}\n{instruction['text'].rstrip()}" for instruction in instructions)
    return Text(text, {**connection, "instructions": instructions})


@agents.command("delete")
@click.argument("agent_ids", nargs=-1, required=True, metavar="AGENT_ID...", shell_complete=offers.agents)
@click.option("--reason", default="", help="Recorded in the history.")
@pass_client
def delete_agents(client: OperatorClient, agent_ids: tuple[str, ...], reason: str) -> Shown:
    """Delete agents. Their tasks are released and their tokens stop working; `restore` brings them back."""
    deleted = [client.call("delete_agent", agent_id=agent_id, reason=reason) for agent_id in agent_ids]
    undo = f"`agents restore {' '.join(agent_ids)}` brings {'it' if len(deleted) == 1 else 'them'} back."
    return Note(f"Deleted {enumerated(agent_ids)}. {undo}", deleted)


@agents.command("restore")
@click.argument("agent_ids", nargs=-1, required=True, metavar="AGENT_ID...", shell_complete=offers.agents)
@pass_client
def restore_agents(client: OperatorClient, agent_ids: tuple[str, ...]) -> Shown:
    """Restore deleted agents with their ids, grants and tokens."""
    restored = [client.call("restore_agent", agent_id=agent_id) for agent_id in agent_ids]
    return Note(f"Restored {enumerated(agent_ids)}.", restored)


agents.add_command(agent, "show")
for command in (agent_history, grant, move):
    agents.add_command(command)


def _history(client: OperatorClient, agent_id: str, limit: int | None) -> list[dict[str, Any]]:
    """The newest entries of an agent's history, oldest first; all of them without a limit."""
    entries: list[dict[str, Any]] = []
    before: int | None = None
    while limit is None or len(entries) < limit:
        size = 1_000 if limit is None else min(1_000, limit - len(entries))
        page = client.call("get_agent_history", **drop_none(agent_id=agent_id, limit=size, before=before))
        entries += page["entries"]
        before = page["next_before"]
        if before is None:
            break
    return entries[::-1]


def _history_table(entries: Sequence[Mapping[str, Any]]) -> Table:
    rows = [[entry["at"], entry["kind"], _describe(entry), entry["actor"], entry["reason"] or ""] for entry in entries]
    return Table(["at", "event", "what", "by", "why"], rows, "There are no events yet.", entries)


def _describe(entry: Mapping[str, Any]) -> str:
    changes = [f"{change['field']}: {_value(change['old'])} → {_value(change['new'])}" for change in entry["changes"]]
    return ", ".join([*changes, *(f"{name}: {value}" for name, value in entry["details"].items())])


def _value(value: str | None) -> str:
    return "none" if value is None else value
