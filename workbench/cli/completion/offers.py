"""Completion of arguments and options of commands: given to click as `shell_complete`, or as the type.

Agents chose many of these names, and a shell writes them to the terminal and into the command line as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from workbench.cli.client import OperatorClient, ProjectClient
from workbench.errors import WorkbenchError
from workbench.present.inert import inert_line

RESOURCES = ("agents", "teams", "contexts", "sessions", "projects", "tasks", "events")
"""What `export` exports as rows of the project, by operation."""
IMPORTABLE = ("projects", "sessions", "teams", "agents", "contexts", "tasks")
"""Those that `import` reads, in the order in which it does."""
MOST = 100
"""The most rows of a list that are offered."""
_PLAIN = re.compile(r"[\w ./:@+-]+")
"""Words without a special meaning for a shell, except that it splits one at its blanks."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Named = Iterable[tuple[Any, str]]
"""Words, and what each means."""


def _offers(read_words: Callable[[OperatorClient], Named]) -> Complete:
    """Offer the plain words that begin as typed; none while the project cannot be asked."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        client: Any = context.obj or ProjectClient()
        words: dict[str, str] = {}
        ended = client if isinstance(client, ProjectClient) else nullcontext()  # a notebook's session goes on
        with ended, suppress(WorkbenchError):  # Click ends no context in which it completes
            words = {str(word): about for word, about in read_words(client) if word is not None}
        return [
            CompletionItem(word, help=inert_line(about))
            for word, about in words.items()
            if word.startswith(incomplete) and _PLAIN.fullmatch(word)
        ]

    return complete


def _listed(operation: str, key: str, *fields: str, about: str = "", **arguments: Any) -> Complete:
    """Offer fields of the rows that an operation lists, except those with blanks, which a shell splits.

    Args:
        key: of the rows in its answer.
        about: the field that says what a row is.
    """

    def read_words(client: OperatorClient) -> Named:
        rows: Iterable[Mapping[str, Any]] = client.call(operation, **arguments)[key]
        words = ((row[field], str(row.get(about) or "")) for row in rows for field in fields)
        return ((word, about) for word, about in words if " " not in str(word))

    return _offers(read_words)


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
models = _listed("list_models", "models", "name")
peers = _listed("list_peers", "peers", "name", about="base_url")


@_offers
def approvals(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """The requests that wait."""
    for request in client.call("list_approvals", status="pending", limit=MOST)["approvals"]:
        yield request["id"], f"{request['kind']} {request['subject']}"


@_offers
def definitions(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """The names of the definitions, or the paths of those whose names contain blanks."""
    for row in client.call("agent_list")["agents"]:
        yield row["path"] if " " in row["name"] else row["name"], row["description"]


class DefinitionTarget(click.ParamType[str]):
    """A definition, by its path, its id or its name. A path may begin at the current directory too."""

    name = "agent"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See `click.ParamType.convert`."""
        assert ctx is not None
        here = Path(value)
        if here.is_absolute() or here.name == value or (ctx.obj.settings.home / here).exists() or not here.exists():
            return value
        return str(here.absolute())

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        """See `click.ParamType.shell_complete`."""
        return definitions(ctx, param, incomplete)


definition = DefinitionTarget()
"""The type of arguments and options that name a definition."""


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

    yield from ((name, "as `import` reads it") for name in IMPORTABLE)
    yield from ((view.name, view.meaning) for view in described() if view.name not in IMPORTABLE)


@_offers
def importable(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """What `import` reads."""
    return ((name, "") for name in IMPORTABLE)


@_offers
def compared(client: OperatorClient) -> Iterator[tuple[Any, str]]:
    """What the report `comparison` compares tasks by."""
    from workbench.analytics.views import find

    yield "run", "runs of notebooks"
    yield from ((column.name, column.meaning) for column in find("tasks").columns)
