"""What commands return (`main` prints it, a notebook displays it), and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from workbench.graph import Graph
from workbench.inert import as_html, inert
from workbench.tables import Page, Table

Fn = TypeVar("Fn", bound=Callable[..., Any])


def pass_client(command: Fn) -> Fn:
    """Pass a command the project's `OperatorClient` as its first argument."""
    return click.pass_obj(command)  # type: ignore[return-value]


@dataclass(frozen=True)
class Note:
    """A sentence for the user, and the data behind it."""

    message: str
    data: Any = None

    def __repr__(self) -> str:
        return inert(self.message)

    def _repr_html_(self) -> str:
        return f"<p>{as_html(self.message)}</p>"


@dataclass(frozen=True)
class Text:
    """Text to copy, and the data behind it. If it is `raw`, characters that control a terminal are printed too."""

    text: str
    data: Any = None
    raw: bool = False

    def __repr__(self) -> str:
        return self.text if self.raw else inert(self.text)

    def _repr_html_(self) -> str:
        return f"<pre>{as_html(self.text)}</pre>"


@dataclass(frozen=True, repr=False)
class PartialFailure(Table):
    """A table in which some rows are failures: the command ends with status 1."""


Shown = Table | Page | Graph | Note | Text | None


class NounGroup(click.Group):
    """Commands about one noun; without a subcommand it runs `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


raw_option: Callable[[Fn], Fn] = click.option(
    "--raw", is_flag=True, help="Do not escape control characters: for pipes and files, not for terminals."
)
"""The option of commands that print what workers wrote."""


def drop_none(**values: Any) -> dict[str, Any]:
    """The values that are not None, because an option that was not given is not sent."""
    return {name: value for name, value in values.items() if value is not None}


def size(count: float) -> str:
    """A number of bytes, for people."""
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"


def listing(command: Fn) -> Fn:
    """Give a command the options of every list: `search`, `deleted`, `limit`."""
    limit = click.option("--limit", type=click.IntRange(1, 500), default=None, help="At most this many (default: 200).")
    deleted = click.option("--deleted", is_flag=True, default=None, help="List the deleted ones instead.")
    search = click.option("--search", metavar="TEXT", default=None, help="Only those that match.")
    return search(deleted(limit(command)))


def page_table(page: Mapping[str, Any], noun: str, columns: Mapping[str, str], empty: str) -> Table:
    """One page of a list operation as a table, with a note if there are more."""
    items: Sequence[Mapping[str, Any]] = page[noun]
    left = page.get("total", len(items)) - len(items)
    return Table.of(items, columns, empty, note=f"… and {left:,} more" if left > 0 else "")
