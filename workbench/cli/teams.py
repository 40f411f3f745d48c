"""Teams: `teams`, and adding, renaming, moving, deleting and restoring them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.grants import NOTHING
from workbench.cli.output import Note, NounGroup, Shown, drop_none, listing, page_table, pass_client

COLUMNS = {
    "id": "id",
    "name": "team",
    "session": "session",
    "description": "description",
    "agents": "agents",
    "created_at": "created",
    "deleted_at": "deleted",
}


@click.group(cls=NounGroup)
def teams() -> None:
    """Teams of agents: list, add, rename, move, delete, restore."""


@teams.command("list")
@click.option("--session", "session_id", default=None, help="Only teams of this session.")
@listing
@pass_client
def list_teams(client: OperatorClient, **options: Any) -> Shown:
    """List the teams."""
    found = client.call("list_teams", **drop_none(**options))
    return page_table(found, "teams", COLUMNS, "There are no teams. Make one with `teams add NAME --session SESSION`.")


@teams.command("add")
@click.argument("name")
@click.option("--session", "session_id", default=None, help="Its session; without one it waits to be moved.")
@click.option("--description", default=None, help="What it is for.")
@pass_client
def add_team(client: OperatorClient, **options: Any) -> Shown:
    """Make a team."""
    made = client.call("create_team", **drop_none(**options))
    return Note(f"Team {made['name']} is made; its id is {made['id']}.", made)


@teams.command("rename")
@click.argument("team_id")
@click.argument("name")
@pass_client
def rename_team(client: OperatorClient, team_id: str, name: str) -> Shown:
    """Give a team another name."""
    made = client.call("update_team", team_id=team_id, name=name)
    return Note(f"The team is called {made['name']} now.", made)


@teams.command("move")
@click.argument("team_id")
@click.argument("session_id")
@pass_client
def move_team(client: OperatorClient, team_id: str, session_id: str) -> Shown:
    """Move a team with its members to another session (`none`: to no session)."""
    target = None if session_id == NOTHING else session_id
    return Note(f"{team_id} is moved.", client.call("move_team", team_id=team_id, session_id=target))


@teams.command("delete")
@click.argument("team_id")
@pass_client
def delete_team(client: OperatorClient, team_id: str) -> Shown:
    """Delete a team; `restore` brings it back."""
    return Note(f"{team_id} is deleted.", client.call("delete_team", team_id=team_id))


@teams.command("restore")
@click.argument("team_id")
@pass_client
def restore_team(client: OperatorClient, team_id: str) -> Shown:
    """Bring a deleted team back, by its id."""
    made = client.call("restore_team", team_id=team_id)
    return Note(f"{team_id} is back.", made)
