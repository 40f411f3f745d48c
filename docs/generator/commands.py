"""The generated documents of commands and magics: the reference, and the manual of the commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kernel_ext.commands import tree
from kernel_ext.magics import CELL_MAGICS
from workbench.cli import cli
from workbench.cli.global_options import by_subject

EVERYWHERE = {"--project", "--json", "--help"}
"""Options of all commands."""
ONLY_IN_A_KERNEL = ("start", "stop", "panel")


def manual() -> str:
    """Each command by subject, with its help and its options."""
    parts = []
    for subject, names in by_subject(cli.commands).items():
        parts.append(f"## {subject}")
        for name in names:
            parts += _entries(cli.commands[name], (name,))
    return "\n\n".join(parts)


def _entries(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    """The entry of a command in the manual, then those of its subcommands."""
    context = click.Context(command)
    words = [] if isinstance(command, click.Group) else _words(command)
    yield f"{'#' * (2 + min(len(path), 2))} `{' '.join([*path, *words])}`"
    yield " ".join(str(command.help).split())
    records = [one.get_help_record(context) for one in command.params if _is_own(one)]
    options = [f"- `{typed}`: {' '.join(about.split())}" for typed, about in filter(None, records)]
    if options:
        yield "\n".join(options)
    subcommands = command.commands if isinstance(command, click.Group) else {}
    for name in sorted(subcommands):
        yield from _entries(subcommands[name], (*path, name))


def _is_own(parameter: click.Parameter) -> bool:
    """Whether it is an option that not all commands have."""
    return isinstance(parameter, click.Option) and not EVERYWHERE & {*parameter.opts}


def commands() -> Iterator[tuple[str, list[str], str]]:
    """Each command of a shell: how it is typed, its options, and what it does."""
    for path, command in _below(cli, ()):
        yield _row("workbench", path, command)


def magics() -> Iterator[tuple[str, list[str], str]]:
    """Each magic, and the commands that only `%workbench` has, likewise."""
    group = tree()
    for name in ONLY_IN_A_KERNEL:
        yield _row("%workbench", (name,), group.commands[name])
    for name, magic in CELL_MAGICS.items():
        actions = magic.parser._actions
        words = [action.dest.upper() for action in actions if not action.option_strings]
        options = [", ".join(action.option_strings) for action in actions if action.option_strings]
        yield " ".join([f"%%{name}", *words]), options, magic.parser.description.strip().partition("\n")[0]


def _below(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _below(command.commands[name], (*path, name))
    else:
        yield path, command


def _words(command: click.Command) -> list[str]:
    """The names of a command's arguments."""
    context = click.Context(command)
    return [piece for one in command.params for piece in one.get_usage_pieces(context)]


def _row(program: str, path: tuple[str, ...], command: click.Command) -> tuple[str, list[str], str]:
    options = [
        "/".join([*one.opts[-1:], *one.secondary_opts])
        for one in command.params
        if isinstance(one, click.Option) and _is_own(one) and not one.hidden
    ]
    return " ".join([program, *path, *_words(command)]), options, command.get_short_help_str(400)
