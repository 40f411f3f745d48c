"""The part of the reference about what people type: commands, magics, and the attributes of `wb`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kernel_ext.commands import tree
from kernel_ext.magics import CELL_MAGICS
from workbench.cli import cli

EVERYWHERE = {"--project", "--json", "--help"}
"""Options of all commands."""
ONLY_IN_A_KERNEL = ("start", "stop", "panel")


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


def _row(program: str, path: tuple[str, ...], command: click.Command) -> tuple[str, list[str], str]:
    context = click.Context(command)
    words = [piece for one in command.params for piece in one.get_usage_pieces(context)]
    options = [
        "/".join([*one.opts[-1:], *one.secondary_opts])
        for one in command.params
        if isinstance(one, click.Option) and not EVERYWHERE & {*one.opts} and not one.hidden
    ]
    return " ".join([program, *path, *words]), options, command.get_short_help_str(400)
