"""Projects, sessions and teams: `projects`, `sessions`, `teams`; what is deleted with a project or a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, NounGroup, Shown, confirmed, counted, enumerated, pass_client


@root.group(cls=NounGroup)
def projects() -> None:
    """Projects: list, add, edit, delete, restore."""


@root.group(cls=NounGroup)
def sessions() -> None:
    """Sessions of projects: list, add, edit, delete, restore."""


@root.group(cls=NounGroup)
def teams() -> None:
    """Teams of agents: list, add, edit, move, delete, restore."""


def project_consequences(client: OperatorClient, project_id: str) -> str:
    """The further consequences of deleting a project, as a sentence."""
    project = client.call("get_project", project_id=project_id)
    sessions = [*_sessions_of(client, project["id"])]
    sums = {noun: sum(session[f"{noun}s"] for session in sessions) for noun in ("team", "context", "agent")}
    return _consequences(f"the project {project['name']}", {"session": len(sessions), **sums})


def session_consequences(client: OperatorClient, session_id: str) -> str:
    """The further consequences of deleting a session, as a sentence."""
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


def _add_delete(group: click.Group, noun: str, consequences: Callable[[OperatorClient, str], str]) -> None:
    @group.command("delete", help=f"Delete a {noun} with everything in it; `restore` brings it back.")
    @click.argument(f"{noun}_id")
    @click.option("--yes", is_flag=True, help="Delete it without a question.")
    @pass_client
    def delete(client: OperatorClient, yes: bool, **ref: str) -> Shown:
        (name,) = ref.values()
        if question := consequences(client, name):
            confirmed(question, yes)
        space = client.call(f"delete_{noun}", **ref)
        return Note(f"Deleted {name}. `{group.name} restore {space['id']}` brings it back.", space)


_add_delete(projects, "project", project_consequences)
_add_delete(sessions, "session", session_consequences)
