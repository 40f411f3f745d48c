"""Sessions: `sessions`, and adding, renaming, deleting and restoring them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import Door
from workbench.cli.output import Note, Noun, Shown, given, listed, listing, pass_door

COLUMNS = {
    "id": "id",
    "name": "session",
    "project": "project",
    "teams": "teams",
    "agents": "agents",
    "contexts": "contexts",
    "created_at": "created",
    "deleted_at": "deleted",
}


@click.group(cls=Noun)
def sessions() -> None:
    """Sessions of projects: list, add, rename, delete, restore."""


@sessions.command("list")
@click.option("--project", "project_id", default=None, help="Only sessions of this project.")
@listing
@pass_door
def list_sessions(door: Door, **options: Any) -> Shown:
    """List the sessions."""
    found = door.call("list_sessions", **given(**options))
    return listed(found, "sessions", COLUMNS, "There are no sessions. Make one with `sessions add PROJECT NAME`.")


@sessions.command("add")
@click.argument("project_id")
@click.argument("name")
@click.option("--description", default=None, help="What it is about.")
@pass_door
def add_session(door: Door, project_id: str, name: str, description: str | None) -> Shown:
    """Make a session in a project (its id or name)."""
    made = door.call("create_session", **given(project_id=project_id, name=name, description=description))
    return Note(f"Session {made['name']} is made; its id is {made['id']}.", made)


@sessions.command("rename")
@click.argument("session_id")
@click.argument("name")
@pass_door
def rename_session(door: Door, session_id: str, name: str) -> Shown:
    """Give a session another name."""
    made = door.call("update_session", session_id=session_id, name=name)
    return Note(f"The session is called {made['name']} now.", made)


@sessions.command("delete")
@click.argument("session_id")
@pass_door
def delete_session(door: Door, session_id: str) -> Shown:
    """Delete a session with all that is in it; `restore` brings it back."""
    return Note(f"{session_id} is deleted.", door.call("delete_session", session_id=session_id))


@sessions.command("restore")
@click.argument("session_id")
@pass_door
def restore_session(door: Door, session_id: str) -> Shown:
    """Bring a deleted session back, by its id."""
    made = door.call("restore_session", session_id=session_id)
    return Note(f"{session_id} is back.", made)
