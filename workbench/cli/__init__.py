"""The `workbench` command. `%workbench` in a notebook has the same commands (see `kernel_ext.magics`).

Each module holds the commands about one noun. A command returns its output; `main` prints it, a notebook
displays it.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from workbench.analytics.reports import Report
from workbench.cli import (  # noqa: F401 (each adds its commands to `root`)
    account,
    admission,
    agents,
    analysis,
    approvals,
    backups,
    box,
    chat,
    contexts,
    data,
    db,
    definitions,
    doctor,
    execution,
    integration,
    keys,
    koi,
    operations,
    personas,
    processes,
    project,
    runs,
    servers,
    spaces,
    status,
    sweeps,
    tasks,
    tools,
    trust,
    worktrees,
)
from workbench.cli.analysis.sql import named_projects, named_value
from workbench.cli.global_options import CommandGroup, root, with_global_options
from workbench.cli.operations.call import parse_arguments
from workbench.cli.operations.declared import add_declared
from workbench.cli.output import (
    MORE,
    Note,
    PartialFailure,
    Shown,
    Text,
    discard_output,
    interruption,
    mend_streams,
    write_out,
)
from workbench.cli.personas import persona_note
from workbench.cli.tasks import plan_table
from workbench.errors import BadInput, Interrupted, Unavailable, WorkbenchError
from workbench.present.graph import Graph
from workbench.present.tables import Table, TablePage
from workbench.system.interpreter import START_ALLOCATIONS, rare_collections

__all__ = [
    "COMMANDS",
    "CommandGroup",
    "Note",
    "Shown",
    "Text",
    "cli",
    "interruption",
    "main",
    "named_projects",
    "named_value",
    "parse_arguments",
    "persona_note",
    "plan_table",
]

add_declared(root)
COMMANDS = tuple(root.commands.values())
"""Every command, without the options of `root`."""
cli = with_global_options(root)
INTERRUPTED = 130
"""The exit status of a command that was interrupted, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `workbench` command.

    Failures print a code and a next step. The exit status is 1; 2 if the command was not understood.
    """
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    mend_streams()
    try:
        with rare_collections(START_ALLOCATIONS):
            shown = cli.main(arguments, prog_name="workbench", standalone_mode=False)
        _write(shown, as_json)
    except click.Abort as abort:
        _end(interruption(abort), as_json)
    except BrokenPipeError:  # such as `workbench events | head`: its reader has enough
        discard_output()
        sys.exit(1)
    except Exception as error:
        sys.exit(_report(error, as_json))
    if isinstance(shown, PartialFailure):
        sys.exit(shown.status)
    if isinstance(shown, int):  # the exit status of the program that the command ran
        sys.exit(shown)


def _end(interrupted: Interrupted, as_json: bool) -> NoReturn:
    """End with what is to be shown and said about an interrupt."""
    _write(interrupted.shown, as_json)
    click.echo(nl=sys.stderr.isatty(), err=True)  # a terminal shows ^C
    click.echo(json.dumps(interrupted.as_dict()) if as_json else str(interrupted), err=True)
    sys.exit(INTERRUPTED)


def _write(shown: object, as_json: bool) -> None:
    if isinstance(shown, Table | TablePage | Graph | Note | Text | Report):
        write_out(json.dumps(shown.data, indent=2, default=str) if as_json else repr(shown))
        if as_json and isinstance(shown, Table) and shown.note.startswith(MORE):  # the list does not say that it is cut
            click.echo(shown.note, err=True)


def _report(error: Exception, as_json: bool) -> int:
    """Print an error on standard error, a defect with its traceback; the exit status."""
    if isinstance(error, NoArgsIsHelpError):  # a group without a command
        error.show()
        return error.exit_code
    failure = _with_code(error)
    text = json.dumps(failure.as_dict()) if as_json else _usage(error) + str(failure)
    click.echo(text, err=True)
    return error.exit_code if isinstance(error, click.ClickException) else 1


def _with_code(error: Exception) -> WorkbenchError:
    if isinstance(error, WorkbenchError):
        return error
    if isinstance(error, click.ClickException):
        return BadInput("BAD_USAGE", error.format_message())
    if isinstance(error, OSError):  # such as a log that was deleted while it was followed
        return Unavailable("SYSTEM_ERROR", f"The system refused something the command needs: {error}.")
    traceback.print_exception(error, file=sys.stderr)
    return WorkbenchError(
        "INTERNAL_ERROR", f"The command failed by a defect: {error!r}. Report it with the lines above."
    )


def _usage(error: Exception) -> str:
    """How a command is used that was not understood; empty for other errors."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n\n"
