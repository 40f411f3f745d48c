"""Sessions: `sessions`, and adding, renaming, deleting and restoring them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.output import Note, NounGroup, Shown, drop_none, listing, page_table, pass_client

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


@click.group(cls=NounGroup)
def sessions() -> None:
    """Sessions of projects: list, add, rename, delete, restore."""


@sessions.command("list")
@click.option("--project", "project_id", default=None, help="Only sessions of this project.")
@listing
@pass_client
def list_sessions(client: OperatorClient, **options: Any) -> Shown:
    """List the sessions."""
    found = client.call("list_sessions", **drop_none(**options))
    return page_table(found, "sessions", COLUMNS, "There are no sessions. Make one with `sessions add PROJECT NAME`.")


@sessions.command("add")
@click.argument("project_id")
@click.argument("name")
@click.option("--description", default=None, help="What it is about.")
@pass_client
def add_session(client: OperatorClient, project_id: str, name: str, description: str | None) -> Shown:
    """Make a session in a project (its id or name)."""
    made = client.call("create_session", **drop_none(project_id=project_id, name=name, description=description))
    return Note(f"Session {made['name']} is made; its id is {made['id']}.", made)


@sessions.command("rename")
@click.argument("session_id")
@click.argument("name")
@pass_client
def rename_session(client: OperatorClient, session_id: str, name: str) -> Shown:
    """Give a session another name."""
    made = client.call("update_session", session_id=session_id, name=name)
    return Note(f"The session is called {made['name']} now.", made)


@sessions.command("delete")
@click.argument("session_id")
@pass_client
def delete_session(client: OperatorClient, session_id: str) -> Shown:
    """Delete a session with all that is in it; `restore` brings it back."""
    return Note(f"{session_id} is deleted.", client.call("delete_session", session_id=session_id))


@sessions.command("restore")
@click.argument("session_id")
@pass_client
def restore_session(client: OperatorClient, session_id: str) -> Shown:
    """Bring a deleted session back, by its id."""
    made = client.call("restore_session", session_id=session_id)
    return Note(f"{session_id} is back.", made)
