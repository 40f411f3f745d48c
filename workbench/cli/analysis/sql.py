"""`sql`: questions about the project in SQL; `views`: what can be queried."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.completion import offers
from workbench.cli.global_options import choose_project, root
from workbench.cli.output import Note, Shown, pass_client
from workbench.errors import BadInput
from workbench.present.tables import Table

Projects = Mapping[str, Path]


def named_projects(given: Iterable[str]) -> Projects:
    """Directories by name, of texts such as `other=../b`.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``: one of them is none.
    """
    found = {}
    for one in given:
        name, _, directory = one.partition("=")
        if not name or not directory:
            raise BadInput("INVALID_ARGUMENTS", f"--project: {one!r} is not NAME=DIRECTORY.", problems=[])
        found[name] = Path(directory)
    return found


def _projects(context: click.Context, _: click.Parameter, texts: Sequence[str]) -> Projects | None:
    """The other projects; a directory without a name is the project itself."""
    for text in texts:
        if "=" not in text:
            choose_project(context, Path(text))
    return named_projects(text for text in texts if "=" in text) or None


@root.command()
@click.argument("query")
@click.option("--files", is_flag=True, help="Let the query read and write files, and load extensions.")
@click.option("-p", "--param", "values", multiple=True, metavar="NAME=VALUE", help="The value of $NAME; repeatable.")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="[NAME=]DIRECTORY",
    callback=_projects,
    help="Root directory of the project. With a name: of another one that the query uses too, as NAME.tasks, or files "
    "of an export.",
)
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the rows into this file: .html, .svg or .png.",
)
@click.option("--draw", default="", metavar="'MARK X Y COLOR'", help="How: bar, line, area or point, then columns.")
@pass_client
def sql(
    client: OperatorClient,
    query: str,
    files: bool,
    values: Sequence[str],
    projects: Projects | None,
    chart: Path | None,
    draw: str,
) -> Shown:
    """Run a DuckDB query. Its tables are tasks, attempts, agents, events, …; `views` lists them."""
    from workbench.analytics.live import ask
    from workbench.analytics.questions import SqlQuestion
    from workbench.analytics.results import as_data, fetched

    client.require_operator("sql")
    question = SqlQuestion(query, dict(map(named_value, values)), {}, client.settings.sql_seconds, projects)
    if chart is not None:
        return _draw(client, question, files, chart, draw)
    relation = ask(client.settings, question, files)
    if relation is None:
        return Table([], [], "No rows.", [])
    rows = fetched(relation)
    return Table(relation.columns, rows, "No rows.", as_data(relation, rows))


def _draw(client: OperatorClient, question: Any, files: bool, chart: Path, words: str) -> Note:
    """Save a picture of the answer."""
    from workbench.analytics.live import ask
    from workbench.analytics.reports.drawing import Drawing, draw
    from workbench.analytics.results import as_frame

    relation = ask(client.settings, question, files)
    if relation is None:
        raise click.UsageError("The statement has no rows to draw. Use SELECT.")
    report = draw(as_frame(relation), Drawing.of(words.split()))
    report.save(chart)
    return Note(f"Drew {len(report.frame):,} rows into {chart}.", {"file": str(chart), "rows": len(report.frame)})


def named_value(given: str) -> tuple[str, Any]:
    """The name and the value of a parameter: a number, true, false or null as in JSON, otherwise a text."""
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE.", param_hint="--param")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@root.command("views")
@click.argument("name", required=False, shell_complete=offers.views)
def show_views(name: str | None) -> Shown:
    """List the views that SQL queries use, or the columns of one. `sql` and `%%wsql` query them."""
    from dataclasses import asdict

    from workbench.analytics import views

    if name is None:
        listed_views = views.described()
        rows = [[view.name, len(view.columns), view.meaning] for view in listed_views]
        note = "`workbench views NAME` lists the columns of one."
        return Table(["view", "columns", "what it has"], rows, data=[asdict(view) for view in listed_views], note=note)
    view = views.find(name)
    rows = [[column.name, column.type.lower(), column.meaning] for column in view.columns]
    return Table(["column", "type", "what it means"], rows, data=asdict(view), lead=view.meaning)
