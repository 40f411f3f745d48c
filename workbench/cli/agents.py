"""Agents: `agents`, `agent`, `history`, `grant`, `move`, `token`, `revoke`, `connect`."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.grants import choices, grant_options, membership_options
from workbench.cli.output import Note, Shown, Text, drop_none, listing, page_table, pass_client
from workbench.cli.status import EVENT_COLUMNS
from workbench.tables import Page, Table

COLUMNS = {
    "agent_id": "agent",
    "name": "name",
    "registration_status": "registration",
    "presence": "presence",
    "persona_id": "persona",
    "role": "role",
    "tool": "tool",
    "access_level": "access",
    "session": "session",
    "team": "team",
    "worktree": "worktree",
    "parent": "spawned by",
}
NEWEST_EVENTS = 20


@root.command()
@click.option("--status", "state", default=None, help="Only agents in this state.")
@click.option("--session", "session_id", default=None, help="Only agents of this session.")
@click.option("--team", "team_id", default=None, help="Only agents of this team.")
@listing
@pass_client
def agents(client: OperatorClient, state: str | None, **options: Any) -> Shown:
    """List the agents."""
    found = client.call("list_agents", **drop_none(status=state, **options))
    return page_table(found, "agents", COLUMNS, "No agent has registered yet.")


@root.command()
@click.argument("agent_id")
@pass_client
def agent(client: OperatorClient, agent_id: str) -> Shown:
    """Show one agent. Its grant, connections and latest events."""
    found = client.call("get_agent", agent_id=agent_id)
    events = _history(client, agent_id)
    facts = Table(["", ""], [[name.replace("_", " "), value] for name, value in found.items() if value is not None])
    latest = Table.of(events[-NEWEST_EVENTS:], EVENT_COLUMNS, "There are no events yet.")
    return Page([(agent_id, facts), ("Latest events", latest)], {"agent": found, "events": events})


@root.command("history")
@click.argument("agent_id")
@click.option("--limit", type=click.IntRange(1), default=None, help="Only this many of the newest.")
@pass_client
def agent_history(client: OperatorClient, agent_id: str, limit: int | None) -> Shown:
    """List the events of an agent."""
    events = _history(client, agent_id)
    return Table.of(events[-limit:] if limit else events, EVENT_COLUMNS, "There are no events yet.")


@root.command()
@click.argument("agent_id")
@click.option("--id", "new_id", metavar="ID", default=None, help="Its new id.")
@click.option("--name", default=None, help="Its new name.")
@grant_options
@pass_client
def grant(client: OperatorClient, agent_id: str, new_id: str | None, name: str | None, **options: Any) -> Shown:
    """Change an agent's grant, id or name."""
    changes = choices(options, agent_id=new_id, name=name)
    if not changes:
        raise click.UsageError("Give at least one option: --tool, --session, --expires, … `grant --help` lists all.")
    return Note(f"Changed {agent_id}.", client.call("update_agent", agent_id=agent_id, changes=changes))


@root.command()
@click.argument("agent_ids", nargs=-1, required=True)
@membership_options
@pass_client
def move(client: OperatorClient, agent_ids: tuple[str, ...], **options: Any) -> Shown:
    """Move agents to a session or a team."""
    changes = choices(options)
    if not changes:
        raise click.UsageError("Give --session, --team, or both.")
    moved = client.call("assign_agents", agent_ids=list(agent_ids), changes=changes)
    return Note(f"Moved {', '.join(agent_ids)}.", moved)


@root.command()
@click.argument("agent_id")
@pass_client
def token(client: OperatorClient, agent_id: str) -> Shown:
    """Issue a new token for an agent. It is printed once; the old one stops working."""
    made = client.call("issue_token", agent_id=agent_id)
    return Text(made["token"], made)


@root.command()
@click.argument("agent_id")
@click.option("--reason", default="", help="Recorded in the history.")
@pass_client
def revoke(client: OperatorClient, agent_id: str, reason: str) -> Shown:
    """Revoke an agent."""
    return Note(
        f"Revoked {agent_id}; its token no longer works.",
        client.call("revoke_agent", agent_id=agent_id, reason=reason),
    )


@root.command()
@click.argument("agent_id", required=False)
@pass_client
def connect(client: OperatorClient, agent_id: str | None) -> Shown:
    """Print instructions to connect an agent. For Claude Code, Codex, Gemini CLI and scripts."""
    made = client.call("connection_instructions", **drop_none(agent_id=agent_id))
    return Text("\n\n".join(f"# {one['title']}\n{one['text'].rstrip()}" for one in made["instructions"]), made)


def _history(client: OperatorClient, agent_id: str) -> list[dict[str, Any]]:
    """Every event about an agent, oldest first."""
    events: list[dict[str, Any]] = []
    after = 0
    while True:
        page = client.call("list_events", subject=agent_id, after=after, limit=1_000)
        events += page["events"]
        if page["next_after"] == after:
            return events
        after = page["next_after"]
