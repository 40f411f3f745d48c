"""Projects, sessions and teams: `projects`, `sessions`, `teams`; `delete` and `restore` of any noun that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import root
from workbench.cli.grants import NOTHING
from workbench.cli.output import (
    Note,
    NounGroup,
    Shown,
    confirmed,
    counted,
    drop_none,
    enumerated,
    listing,
    page_table,
    pass_client,
)

PROJECTS = ("id", "name", "description", "sessions", "created_at", "deleted_at")
SESSIONS = ("id", "name", "project", "teams", "agents", "contexts", "created_at", "deleted_at")
TEAMS = ("id", "name", "session", "description", "agents", "created_at", "deleted_at")


@root.group(cls=NounGroup)
def projects() -> None:
    """Projects: list, add, edit, delete, restore."""


@root.group(cls=NounGroup)
def sessions() -> None:
    """Sessions of projects: list, add, edit, delete, restore."""


@root.group(cls=NounGroup)
def teams() -> None:
    """Teams of agents: list, add, edit, move, delete, restore."""


@projects.command("list")
@listing
@pass_client
def list_projects(client: OperatorClient, **options: Any) -> Shown:
    """List the projects."""
    found = client.call("list_projects", **drop_none(**options))
    return page_table(found, "projects", _headings("project", PROJECTS), _empty("projects", "NAME"))


@sessions.command("list")
@click.option(
    "--in",
    "project_id",
    metavar="PROJECT",
    default=None,
    help="Only sessions of this project.",
    shell_complete=offers.projects,
)
@listing
@pass_client
def list_sessions(client: OperatorClient, **options: Any) -> Shown:
    """List the sessions."""
    found = client.call("list_sessions", **drop_none(**options))
    return page_table(found, "sessions", _headings("session", SESSIONS), _empty("sessions", "PROJECT NAME"))


@teams.command("list")
@click.option(
    "--session", "session_id", default=None, help="Only teams of this session.", shell_complete=offers.sessions
)
@listing
@pass_client
def list_teams(client: OperatorClient, **options: Any) -> Shown:
    """List the teams."""
    found = client.call("list_teams", **drop_none(**options))
    return page_table(found, "teams", _headings("team", TEAMS), _empty("teams", "NAME --session SESSION"))


@projects.command("add")
@click.argument("name")
@click.option("--description", default=None, help="Its purpose.")
@pass_client
def add_project(client: OperatorClient, **options: Any) -> Shown:
    """Create a project."""
    return _created("project", client.call("create_project", **drop_none(**options)))


@sessions.command("add")
@click.argument("project_id", shell_complete=offers.projects)
@click.argument("name")
@click.option("--description", default=None, help="Its purpose.")
@pass_client
def add_session(client: OperatorClient, **options: Any) -> Shown:
    """Create a session in a project (its id or name)."""
    return _created("session", client.call("create_session", **drop_none(**options)))


@teams.command("add")
@click.argument("name")
@click.option(
    "--session", "session_id", default=None, help="Its session; by default it has none.", shell_complete=offers.sessions
)
@click.option("--description", default=None, help="Its purpose.")
@pass_client
def add_team(client: OperatorClient, **options: Any) -> Shown:
    """Create a team."""
    return _created("team", client.call("create_team", **drop_none(**options)))


@teams.command("move")
@click.argument("team_id", shell_complete=offers.teams)
@click.argument("session_id", shell_complete=offers.sessions)
@pass_client
def move_team(client: OperatorClient, team_id: str, session_id: str) -> Shown:
    """Move a team and its members to a session, or to `none`."""
    target = None if session_id == NOTHING else session_id
    return Note(f"Moved {team_id}.", client.call("move_team", team_id=team_id, session_id=target))


Consequences = Callable[[OperatorClient, str], str]
"""What deleting the one of an id does besides, as a sentence; empty if that is nothing."""


def add_edit(group: click.Group, noun: str) -> None:
    """Add `rename` and `edit` to the commands of a noun."""

    @group.command("rename", help=f"Rename a {noun}.")
    @click.argument(f"{noun}_id")
    @click.argument("name")
    @pass_client
    def rename(client: OperatorClient, name: str, **ref: str) -> Shown:
        made = client.call(f"update_{noun}", name=name, **ref)
        return Note(f"The {noun} is now named {made['name']}.", made)

    @group.command("edit", help=f"Change the name or the description of a {noun}.")
    @click.argument(f"{noun}_id")
    @click.option("--name", default=None, help="Its new name.")
    @click.option("--description", default=None, help="Its new purpose.")
    @pass_client
    def edit(client: OperatorClient, name: str | None, description: str | None, **ref: str) -> Shown:
        changes = drop_none(name=name, description=description)
        if not changes:
            raise click.UsageError("Give --name, --description, or both.")
        made = client.call(f"update_{noun}", **changes, **ref)
        return Note(f"Changed the {' and the '.join(changes)} of the {noun} {made['name']}.", made)


def add_delete_and_restore(
    group: click.Group, noun: str, deletes: str, consequences: Consequences | None = None
) -> None:
    """Add `delete` and `restore` to the commands of a noun.

    Args:
        deletes: what is deleted: a project with …
        consequences: if there are any, the user is asked first.
    """

    @group.command("delete", help=f"Delete {deletes}; `restore` brings it back.")
    @click.argument(f"{noun}_id")
    @pass_client
    def delete(client: OperatorClient, yes: bool = False, **ref: str) -> Shown:
        if consequences is not None and (what := consequences(client, ref[f"{noun}_id"])):
            confirmed(what, yes)
        made = client.call(f"delete_{noun}", **ref)
        return Note(f"Deleted {ref[f'{noun}_id']}. `{group.name} restore {made['id']}` brings it back.", made)

    if consequences is not None:
        click.option("--yes", is_flag=True, help="Delete it without a question.")(delete)

    @group.command("restore", help=f"Restore a deleted {noun}.")
    @click.argument(f"{noun}_id")
    @pass_client
    def restore(client: OperatorClient, **ref: str) -> Shown:
        return Note(f"Restored {ref[f'{noun}_id']}.", client.call(f"restore_{noun}", **ref))


def project_consequences(client: OperatorClient, project_id: str) -> str:
    """What deleting a project does besides."""
    project = client.call("get_project", project_id=project_id)
    sessions = [*_sessions_of(client, project["id"])]
    sums = {noun: sum(one[f"{noun}s"] for one in sessions) for noun in ("team", "context", "agent")}
    return _consequences(f"the project {project['name']}", {"session": len(sessions), **sums})


def session_consequences(client: OperatorClient, session_id: str) -> str:
    """What deleting a session does besides."""
    session = client.call("get_session", session_id=session_id)
    sums = {noun: session[f"{noun}s"] for noun in ("team", "context", "agent")}
    return _consequences(f"the session {session['name']}", sums)


def _sessions_of(client: OperatorClient, project_id: str) -> Iterator[Mapping[str, Any]]:
    page = client.call("list_sessions", project_id=project_id, limit=500)
    yield from page["sessions"]
    while page["next_cursor"] is not None:
        page = client.call("list_sessions", project_id=project_id, limit=500, cursor=page["next_cursor"])
        yield from page["sessions"]


def _consequences(what: str, numbers: Mapping[str, int]) -> str:
    """What is deleted with a project or session, and how many agents lose their session; empty if nothing does."""
    inside = [counted(number, noun) for noun, number in numbers.items() if number and noun != "agent"]
    also = [f"deletes {enumerated(inside)}"] if inside else []
    if agents := numbers["agent"]:
        also.append(f"takes {counted(agents, 'agent')} out of {'its' if agents == 1 else 'their'} session")
    return f"Deleting {what} also {' and '.join(also)}." if also else ""


for space, noun, deletes, consequences in (
    (projects, "project", "a project with everything in it", project_consequences),
    (sessions, "session", "a session with everything in it", session_consequences),
    (teams, "team", "a team", None),
):
    add_edit(space, noun)
    add_delete_and_restore(space, noun, deletes, consequences)


def _headings(noun: str, fields: tuple[str, ...]) -> dict[str, str]:
    return {field: {"name": noun}.get(field, field.removesuffix("_at")) for field in fields}


def _empty(nouns: str, arguments: str) -> str:
    return f"There are no {nouns}. `workbench {nouns} add {arguments}` creates one."


def _created(noun: str, made: Mapping[str, Any]) -> Note:
    return Note(f"Created the {noun} {made['name']}; its id is {made['id']}.", made)
