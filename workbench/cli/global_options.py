"""`--project` and `--json`, which are understood before a command's name and after it."""

from __future__ import annotations

import os
from copy import copy
from pathlib import Path

import click

from workbench.cli.client import ProjectClient


def _choose(ctx: click.Context, _: click.Parameter, project: Path | None) -> None:
    if project is not None or ctx.obj is None:
        ctx.obj = ProjectClient(project, os.environ.get("WORKBENCH_TOKEN"))


OPTIONS = (
    click.Option(
        ["--project"],
        type=click.Path(path_type=Path, file_okay=False),
        expose_value=False,
        callback=_choose,
        help="Root directory of the project.",
    ),
    click.Option(["--json"], is_flag=True, expose_value=False, help="Print data instead of tables."),
)


def with_global_options(command: click.Command) -> click.Command:
    """A command that has these options too, and so has each command below it; of its own ones it loses none."""
    made = copy(command)
    if isinstance(made, click.Group):
        made.commands = {name: with_global_options(one) for name, one in made.commands.items()}
    else:
        taken = {name for parameter in command.params for name in parameter.opts}
        made.params = [*command.params, *(option for option in OPTIONS if not taken & {*option.opts})]
    return made
