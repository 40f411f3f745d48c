"""The root command, and the options `--project` and `--json` of all commands."""

from __future__ import annotations

import os
from copy import copy
from pathlib import Path

import click

from workbench import __version__
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


@click.group(params=[*OPTIONS], context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def root() -> None:
    """Run a team of AI agents from a Jupyter notebook."""


def with_global_options(command: click.Command) -> click.Command:
    """A copy of a command that has these options too, as all commands below it; a command's own ones come first."""
    made = copy(command)
    if isinstance(made, click.Group):
        made.commands = {name: with_global_options(one) for name, one in made.commands.items()}
    else:
        taken = {name for parameter in command.params for name in parameter.opts}
        made.params = [*command.params, *(option for option in OPTIONS if not taken & {*option.opts})]
    return made
