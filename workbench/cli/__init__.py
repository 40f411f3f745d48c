"""The `workbench` command. `%workbench` in a notebook has the same commands (see `kernel_ext.magics`).

Each module holds the commands about one noun. A command returns its output; `main` prints it, a notebook
displays it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from workbench.cli import (  # noqa: F401 (each adds its commands to `root`)
    admission,
    agents,
    approvals,
    call,
    contexts,
    data,
    doctor,
    integration,
    personas,
    processes,
    servers,
    spaces,
    status,
    tasks,
    trust,
    worktrees,
)
from workbench.cli.call import parse_arguments
from workbench.cli.client import explain
from workbench.cli.global_options import CommandGroup, root, with_global_options
from workbench.cli.output import Note, PartialFailure, Shown, Text
from workbench.cli.personas import saved
from workbench.cli.tasks import planned
from workbench.errors import WorkbenchError
from workbench.graph import Graph
from workbench.tables import Page, Table

__all__ = ["COMMANDS", "CommandGroup", "Note", "Shown", "Text", "cli", "main", "parse_arguments", "planned", "saved"]

COMMANDS = tuple(root.commands.values())
"""Every command, without the options of `root`."""
cli = with_global_options(root)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `workbench` command; failures print a code and a next step, exit status 1."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    try:
        shown = cli.main(arguments, prog_name="workbench", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except WorkbenchError as error:
        click.echo(json.dumps(error.as_dict()) if as_json else explain(error), err=True)
        sys.exit(1)
    if isinstance(shown, Table | Page | Graph | Note | Text):
        click.echo(json.dumps(shown.data, indent=2, default=str) if as_json else repr(shown))
    if isinstance(shown, PartialFailure):
        sys.exit(1)
    if isinstance(shown, int):  # the exit status of the program that the command ran
        sys.exit(shown)
