"""SQL in a notebook: `%%wsql`, and `%wsql` and `%workbench sql` with a query on their line."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

import click
from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

Fn = TypeVar("Fn", bound=Callable[..., Any])

STATEMENT = re.compile(
    r"""(?<!\S)["']?\(*(?:select|with|from|values|describe|show|summarize|explain|pivot|unpivot|create|drop|insert|update
    |delete|copy|attach|set|pragma)\b(?!=)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Where a query begins on a line with options before it; it may be quoted as in a shell."""
_OPTIONS = (
    argument("out", nargs="?", help="bind the DataFrame to this variable"),
    argument("-p", "--param", dest="values", metavar="NAME=VALUE", action="append", help="value of $NAME; repeatable"),
    argument("--files", action="store_true", help="let the query read and write files, and load extensions"),
    argument("--as", dest="library", default="pandas", help="the library of the answer: pandas, polars, or arrow"),
    argument(
        "--project",
        dest="projects",
        metavar="NAME=DIRECTORY",
        action="append",
        help="use another project too, or files of an export, as NAME.tasks, NAME.events, …; only read; repeatable",
    ),
    argument(
        "--chart",
        nargs="*",
        metavar="MARK X Y COLOR",
        help="show a picture: bar, line, area or point, of these columns; their types decide what is not given",
    ),
)


class QuerySession(Protocol):
    """A notebook's session, as queries use it."""

    def sql(self, query: str, **options: Any) -> Any:
        """See `WorkbenchSession.sql`."""
        ...


def query_options(magic: Fn) -> Fn:
    """Give a magic the options of a query."""
    for option in reversed(_OPTIONS):
        magic = option(magic)
    decorated: Fn = magic_arguments(magic.__name__.removesuffix("_line"))(magic)
    return decorated


def split(line: str) -> tuple[list[str], str]:
    """The options and the query of a line such as ``--chart bar SELECT …``; the query may be quoted as in a shell.

    Raises:
        UsageError: there is no query, or a quotation is not closed.
    """
    try:
        statement = STATEMENT.search(line)
        if statement is None:
            *options, query = shlex.split(line) or [""]
        elif line[statement.start()] in "\"'":
            query, *more = shlex.split(line[statement.start() :])
            options = [*shlex.split(line[: statement.start()]), *more]
        else:
            options, query = shlex.split(line[: statement.start()]), line[statement.start() :]
    except ValueError as error:
        raise UsageError(f"{error}: {line}") from None
    if not query or query.startswith("-"):
        raise UsageError("There is no query. Write one after the options, such as SELECT title FROM tasks")
    return options, query


def answer(session: QuerySession, options: Namespace, query: str, variables: MutableMapping[str, Any]) -> Any:
    """What a query answers, or its picture.

    Args:
        options: their values.
        variables: those of the notebook: its DataFrames are tables, and `out` becomes one of them.

    Raises:
        UsageError: the options do not fit together. Others: see `WorkbenchSession.sql`.
    """
    from workbench.analytics.reports.drawing import Drawing
    from workbench.cli import named_projects, named_value

    if options.chart is not None and options.library != "pandas":
        raise UsageError("--chart draws a DataFrame of pandas: leave out --as")
    drawing = None if options.chart is None else Drawing.of(options.chart)
    projects = named_projects(options.projects) if options.projects else None
    try:
        values = {**variables, **dict(map(named_value, options.values or ()))}
    except click.BadParameter as error:
        raise UsageError(f"--param: {error.message.removesuffix('.')}") from None
    frame = session.sql(query, files=options.files, frames=values, as_=options.library, projects=projects)
    if options.out:
        variables[options.out] = frame
    return frame if drawing is None or frame is None else frame.chart(**asdict(drawing))


@query_options
def _ask(line: str) -> None:
    """Query the live project with DuckDB."""


@click.command("sql", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS] QUERY", required=True)
@click.pass_obj
def sql_command(session: QuerySession, words: Sequence[str]) -> Any:
    """Run a DuckDB query. Its tables are tasks, attempts, agents, events, …, and your DataFrames.

    The options are those of `%wsql`, which `%wsql?` lists; the query comes last, quoted or not.
    """
    from IPython import get_ipython

    shell = get_ipython()
    *flags, query = words
    try:
        options = _ask.parser.parse_args(flags)  # type: ignore[attr-defined]
        return answer(session, options, query, {} if shell is None else shell.user_ns)
    except UsageError as error:
        raise click.UsageError(f"{error}.") from None
