"""What Tab offers for arguments and options of commands, to be given to click as `shell_complete`.

Much of it was named by agents. A shell writes what it is offered to the terminal, and into the command line, as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from workbench.cli.client import OperatorClient, ProjectClient
from workbench.errors import WorkbenchError
from workbench.present.inert import inert_line

RESOURCES = ("agents", "teams", "contexts", "sessions", "projects", "events")
"""What `export` exports in the form that `import` reads."""
MOST = 100
"""The most rows of a list that are offered."""
_PLAIN = re.compile(r"[\w ./:@+-]+")
"""Words that mean nothing else to a shell, but that one with a blank is several."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Named = Iterable[tuple[Any, str]]
"""Words, and what each means."""


def _offers(found: Callable[[OperatorClient], Named]) -> Complete:
    """Offers the plain words that begin so; nothing while the project cannot be asked."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        client: Any = context.obj or ProjectClient()
        named: dict[str, str] = {}
        ended = client if isinstance(client, ProjectClient) else nullcontext()  # a notebook's session goes on
        with ended, suppress(WorkbenchError):  # Click ends no context in which it completes
            named = {str(word): about for word, about in found(client) if word is not None}
        return [
            CompletionItem(word, help=inert_line(about))
            for word, about in named.items()
            if word.startswith(incomplete) and _PLAIN.fullmatch(word)
        ]

    return complete


def _listed(operation: str, key: str, *fields: str, about: str = "", **arguments: Any) -> Complete:
    """Offers fields of the rows that an operation lists. Those with blanks are left out: a shell splits them.

    Args:
        key: of the rows in its answer.
        about: the field that says what a row is.
    """

    def found(client: OperatorClient) -> Named:
        rows: Iterable[Mapping[str, Any]] = client.call(operation, **arguments)[key]
        named = ((row[field], str(row.get(about) or "")) for row in rows for field in fields)
        return ((word, about) for word, about in named if " " not in str(word))

    return _offers(found)


tasks = _listed("list_tasks", "tasks", "id", about="title", sort="newest", limit=MOST)
plans = _listed("list_plans", "plans", "plan")
agents = _listed("list_agents", "agents", "agent_id", about="name", limit=MOST)
personas = _listed("get_personas", "personas", "id", about="name")
worktrees = _listed("list_worktrees", "worktrees", "name", about="branch_name")
profiles = _listed("list_profiles", "profiles", "name", about="summary")
projects = _listed("list_projects", "projects", "name", about="description", limit=MOST)
sessions = _listed("list_sessions", "sessions", "name", about="description", limit=MOST)
teams = _listed("list_teams", "teams", "name", about="description", limit=MOST)
runs = _listed("list_runs", "runs", "id", "name", about="notebook", limit=MOST)
sweeps = _listed("list_sweeps", "sweeps", "name", about="notebook", limit=MOST)
tools = _listed("list_tools", "tools", "name", about="title")
tool_servers = _listed("list_tool_servers", "servers", "name", about="target")
personalities = _listed("list_personalities", "personalities", "name", about="description", limit=MOST)
conversations = _listed("list_conversations", "conversations", "id", about="title", limit=20)
peers = _listed("list_peers", "peers", "name", about="base_url")


@_offers
def approvals(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """The requests that wait."""
    for request in client.call("list_approvals", status="pending", limit=MOST)["approvals"]:
        yield request["id"], f"{request['kind']} {request['subject']}"


@_offers
def definitions(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """The names of the definitions, or the paths of those whose names contain blanks."""
    for one in client.call("agent_list")["agents"]:
        yield one["path"] if " " in one["name"] else one["name"], one["description"]


@_offers
def operations(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """All operations."""
    from workbench.ops import collect
    from workbench.services import SERVICES

    return ((name, operation.summary) for name, operation in sorted(collect(SERVICES).items()))


@_offers
def views(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """The views of SQL."""
    from workbench.analytics.views import described

    return ((view.name, view.meaning) for view in described())


@_offers
def reports(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """The standard reports."""
    from workbench.analytics.reports import STANDARD

    return ((report.name, report.about) for report in STANDARD.values())


@_offers
def exports(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """What `export` exports by name."""
    from workbench.analytics.views import described

    yield from ((name, "as `import` reads it") for name in RESOURCES)
    yield from ((view.name, view.meaning) for view in described() if view.name not in RESOURCES)


@_offers
def compared(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """What the report `comparison` compares tasks by."""
    from workbench.analytics.views import find

    yield "run", "runs of notebooks"
    yield from ((column.name, column.meaning) for column in find("tasks").columns)
