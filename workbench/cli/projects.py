"""Projects: `projects`, and adding, renaming, deleting and restoring them."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import Door
from workbench.cli.output import Note, Noun, Shown, given, listed, listing, pass_door

COLUMNS = {
    "id": "id",
    "name": "project",
    "description": "description",
    "sessions": "sessions",
    "created_at": "created",
    "deleted_at": "deleted",
}


@click.group(cls=Noun)
def projects() -> None:
    """Projects: list, add, rename, delete, restore."""


@projects.command("list")
@listing
@pass_door
def list_projects(door: Door, **options: Any) -> Shown:
    """List the projects."""
    found = door.call("list_projects", **given(**options))
    return listed(found, "projects", COLUMNS, "There are no projects. Make one with `projects add NAME`.")


@projects.command("add")
@click.argument("name")
@click.option("--description", default=None, help="What it is about.")
@pass_door
def add_project(door: Door, name: str, description: str | None) -> Shown:
    """Make a project."""
    made = door.call("create_project", **given(name=name, description=description))
    return Note(f"Project {made['name']} is made; its id is {made['id']}.", made)


@projects.command("rename")
@click.argument("project_id")
@click.argument("name")
@pass_door
def rename_project(door: Door, project_id: str, name: str) -> Shown:
    """Give a project another name."""
    made = door.call("update_project", project_id=project_id, name=name)
    return Note(f"The project is called {made['name']} now.", made)


@projects.command("delete")
@click.argument("project_id")
@pass_door
def delete_project(door: Door, project_id: str) -> Shown:
    """Delete a project with all that is in it; `restore` brings it back."""
    return Note(f"{project_id} is deleted.", door.call("delete_project", project_id=project_id))


@projects.command("restore")
@click.argument("project_id")
@pass_door
def restore_project(door: Door, project_id: str) -> Shown:
    """Bring a deleted project back, by its id."""
    made = door.call("restore_project", project_id=project_id)
    return Note(f"{project_id} is back.", made)
