"""Teams: `teams`, and adding, renaming, moving, deleting and restoring them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import Door
from workbench.cli.grants import NOTHING
from workbench.cli.output import Note, Noun, Shown, given, listed, listing, pass_door

COLUMNS = {
    "id": "id",
    "name": "team",
    "session": "session",
    "description": "description",
    "agents": "agents",
    "created_at": "created",
    "deleted_at": "deleted",
}


@click.group(cls=Noun)
def teams() -> None:
    """Teams of agents: list, add, rename, move, delete, restore."""


@teams.command("list")
@click.option("--session", "session_id", default=None, help="Only teams of this session.")
@listing
@pass_door
def list_teams(door: Door, **options: Any) -> Shown:
    """List the teams."""
    found = door.call("list_teams", **given(**options))
    return listed(found, "teams", COLUMNS, "There are no teams. Make one with `teams add NAME --session SESSION`.")


@teams.command("add")
@click.argument("name")
@click.option("--session", "session_id", default=None, help="Its session; without one it waits to be moved.")
@click.option("--description", default=None, help="What it is for.")
@pass_door
def add_team(door: Door, **options: Any) -> Shown:
    """Make a team."""
    made = door.call("create_team", **given(**options))
    return Note(f"Team {made['name']} is made; its id is {made['id']}.", made)


@teams.command("rename")
@click.argument("team_id")
@click.argument("name")
@pass_door
def rename_team(door: Door, team_id: str, name: str) -> Shown:
    """Give a team another name."""
    made = door.call("update_team", team_id=team_id, name=name)
    return Note(f"The team is called {made['name']} now.", made)


@teams.command("move")
@click.argument("team_id")
@click.argument("session_id")
@pass_door
def move_team(door: Door, team_id: str, session_id: str) -> Shown:
    """Move a team with its members to another session (`none`: to no session)."""
    target = None if session_id == NOTHING else session_id
    return Note(f"{team_id} is moved.", door.call("move_team", team_id=team_id, session_id=target))


@teams.command("delete")
@click.argument("team_id")
@pass_door
def delete_team(door: Door, team_id: str) -> Shown:
    """Delete a team; `restore` brings it back."""
    return Note(f"{team_id} is deleted.", door.call("delete_team", team_id=team_id))


@teams.command("restore")
@click.argument("team_id")
@pass_door
def restore_team(door: Door, team_id: str) -> Shown:
    """Bring a deleted team back, by its id."""
    made = door.call("restore_team", team_id=team_id)
    return Note(f"{team_id} is back.", made)
