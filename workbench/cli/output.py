"""What commands return (`main` prints it, a notebook displays it), and what they share."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from workbench.errors import Conflict, Interrupted, Unavailable
from workbench.present.graph import Graph
from workbench.present.inert import as_html, inert, prose_as_html
from workbench.present.tables import Table, TablePage

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
        return f'<p style="white-space: pre-line">{prose_as_html(self.message)}</p>'


@dataclass(frozen=True)
class Text:
    """Text to copy, and the data behind it. If it is `raw`, characters that control a terminal are printed too.

    The note is a sentence about it, shown below. In a notebook, the lines of a diff are coloured.
    """

    text: str
    data: Any = None
    raw: bool = False
    note: str = ""
    is_diff: bool = False

    def __repr__(self) -> str:
        shown = f"{self.text}\n\n{self.note}" if self.note else self.text
        return shown if self.raw else inert(shown)

    def _repr_html_(self) -> str:
        shown = "\n".join(map(_diff_line, self.text.split("\n"))) if self.is_diff else as_html(self.text)
        return f"<pre>{shown}</pre>" + (f"<p>{prose_as_html(self.note)}</p>" if self.note else "")


_DIFF_COLOURS = {"+": "#2e7d32", "-": "#c62828", "@": "#6b7280"}
"""By the first character of a line; those of states of tasks, which light and dark pages show alike."""


def _diff_line(line: str) -> str:
    colour = _DIFF_COLOURS.get(line[:1])
    return f'<span style="color:{colour}">{as_html(line)}</span>' if colour else as_html(line)


@dataclass(frozen=True, repr=False)
class PartialFailure(Table):
    """A table in which some rows are failures: the command ends with `status`."""

    status: int = 1


Shown = Table | TablePage | Graph | Note | Text | None


class NounGroup(click.Group):
    """Commands about one noun; without a subcommand it runs `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        is_option = args[:1] and args[0].startswith("-") and args[0] not in ctx.help_option_names
        if not ctx.resilient_parsing and (not args or is_option):  # completion offers the subcommands
            args = ["list", *args]
        return super().parse_args(ctx, args)


class JsonObject(click.ParamType[dict[str, Any]]):
    """Converts an object in JSON."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """See `click.ParamType.convert`."""
        if isinstance(value, dict):
            return value
        try:
            decoded = json.loads(value)
        except ValueError as error:
            self.fail(f"{value!r} is not JSON: {error}.", param, ctx)
        if not isinstance(decoded, dict):
            self.fail(f"{value!r} is no object in JSON, such as {{}}.", param, ctx)
        return decoded


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """The values of arguments `KEY=VALUE`."""
    if wrong := [text for text in texts if "=" not in text]:
        raise click.UsageError(f"{wrong[0]} has no value. Write {wrong[0]}=….")
    return dict(text.split("=", 1) for text in texts)


MORE = "…"
"""What a note below a list begins with if the list is not whole."""
raw_option: Callable[[Fn], Fn] = click.option(
    "--raw", is_flag=True, help="Do not escape control characters: for pipes and files, not for terminals."
)
"""The option of commands that print what workers wrote."""


def interruption(abort: click.Abort) -> Interrupted:
    """The error for click's `Abort`: the interrupt that caused it, with its next step, or else Ctrl-C in a command."""
    cause = abort.__cause__
    if isinstance(cause, Interrupted):
        return cause
    return Interrupted("INTERRUPTED", "The command was interrupted. What it has done stays; run it again for the rest.")


def mend_streams() -> None:
    """Let a command run whatever its standard streams are: closed, or of an encoding that lacks characters."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # else a file that the command opens would get its number
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def write_out(text: str) -> None:
    """Print a text; nowhere, if the standard output is closed.

    Raises:
        BrokenPipeError: the reader has closed the pipe. Unavailable: ``OUTPUT_UNWRITABLE``.
    """
    try:
        click.echo(text)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise output_unwritable("The standard output", error) from None


def discard_output() -> None:
    """Discard what is left to print: writing it would fail again when the program ends."""
    with contextlib.suppress(OSError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_unwritable(what: str, error: OSError) -> Unavailable:
    """The error for a file that the output cannot be written to."""
    return Unavailable("OUTPUT_UNWRITABLE", f"{what} cannot be written: {error.strerror}. Choose another file.")


def confirmed(question: str, yes: bool) -> None:
    """Return once the user agrees to a change that affects more than what it names.

    Args:
        question: what will be done, and what with it.
        yes: the user has agreed already.

    Raises:
        Conflict: ``NOT_CONFIRMED``: the user does not agree, or there is no terminal to ask at.
    """
    if not yes and not agreed(f"{question} Do it?"):
        raise Conflict("NOT_CONFIRMED", f"{question} Nothing was changed. To do it, add --yes.")


def agreed(question: str) -> bool:
    """Ask the user, if someone at a terminal can answer."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return click.confirm(inert(question), default=False, err=True)


def drop_none(**values: Any) -> dict[str, Any]:
    """The values that are not None, because an option that was not given is not sent."""
    return {name: value for name, value in values.items() if value is not None}


def counted(number: int, noun: str) -> str:
    """A number of things, such as 1 session and 2 sessions."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def enumerated(items: Sequence[str]) -> str:
    """Items in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join([*filter(None, [", ".join(items[:-1])]), *items[-1:]])


def size(count: float) -> str:
    """A number of bytes, for people."""
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"


def without_empty(columns: Mapping[str, str], name: str, items: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """The columns; without the one of a field that has no value in any item."""
    return columns if any(item.get(name) for item in items) else {key: columns[key] for key in columns if key != name}


def page_table(page: Mapping[str, Any], noun: str, columns: Mapping[str, str], empty: str) -> Table:
    """One page of a list operation as a table, with a note if there are more."""
    return Table.of(page[noun], columns, empty, note=more_note(page, noun))


def more_note(page: Mapping[str, Any], rows: str) -> str:
    """The note below one page of a list operation, whose field `rows` has the items; empty if that is all."""
    left = page.get("total", len(page[rows])) - len(page[rows])
    return f"{MORE} and {left:,} more" if left > 0 else ""
