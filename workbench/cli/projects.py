"""Projects: `projects`, and adding, renaming, deleting and restoring them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.output import Note, NounGroup, Shown, drop_none, listing, page_table, pass_client

COLUMNS = {
    "id": "id",
    "name": "project",
    "description": "description",
    "sessions": "sessions",
    "created_at": "created",
    "deleted_at": "deleted",
}


@click.group(cls=NounGroup)
def projects() -> None:
    """Projects: list, add, rename, delete, restore."""


@projects.command("list")
@listing
@pass_client
def list_projects(client: OperatorClient, **options: Any) -> Shown:
    """List the projects."""
    found = client.call("list_projects", **drop_none(**options))
    return page_table(found, "projects", COLUMNS, "There are no projects. Make one with `projects add NAME`.")


@projects.command("add")
@click.argument("name")
@click.option("--description", default=None, help="What it is about.")
@pass_client
def add_project(client: OperatorClient, name: str, description: str | None) -> Shown:
    """Make a project."""
    made = client.call("create_project", **drop_none(name=name, description=description))
    return Note(f"Project {made['name']} is made; its id is {made['id']}.", made)


@projects.command("rename")
@click.argument("project_id")
@click.argument("name")
@pass_client
def rename_project(client: OperatorClient, project_id: str, name: str) -> Shown:
    """Give a project another name."""
    made = client.call("update_project", project_id=project_id, name=name)
    return Note(f"The project is called {made['name']} now.", made)


@projects.command("delete")
@click.argument("project_id")
@pass_client
def delete_project(client: OperatorClient, project_id: str) -> Shown:
    """Delete a project with all that is in it; `restore` brings it back."""
    return Note(f"{project_id} is deleted.", client.call("delete_project", project_id=project_id))


@projects.command("restore")
@click.argument("project_id")
@pass_client
def restore_project(client: OperatorClient, project_id: str) -> Shown:
    """Bring a deleted project back, by its id."""
    made = client.call("restore_project", project_id=project_id)
    return Note(f"{project_id} is back.", made)
