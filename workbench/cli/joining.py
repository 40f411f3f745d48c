"""`workbench worker --server`: a worker of this machine for a project on another one."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import click

from workbench.errors import BadInput

VARIABLE = "WORKBENCH_MACHINE_TOKEN"
INPUT = Path("-")
_OWN = ("persona_id", "name", "profile", "environment", "secret", "limits")
"""What may be said of a worker whose server is on another machine."""
_OPTIONS = {
    "assigned_worktree": "--worktree",
    "task_id": "--task",
}


def server_options(command: Any) -> Any:
    """Add the options of a worker whose server is on another machine to a command."""
    file = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
    for option in reversed(
        (
            click.option(
                "--server",
                metavar="URL",
                default=None,
                help="Work for the project that this server has, which may be on another machine.",
            ),
            click.option(
                "--token-file",
                type=file,
                default=None,
                help=f"File with the machine's token, else {VARIABLE}; -: the first line of the standard input, with "
                "whose end the worker ends.",
            ),
            click.option("--certificate", type=file, default=None, help="File of the server's certificate, as PEM."),
            click.option(
                "--directory",
                type=click.Path(path_type=Path, file_okay=False),
                default=None,
                help="Where the worker has its files; default: below the home.",
            ),
        )
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options that `server_options` adds."""

    server: str | None
    token_file: Path | None
    certificate: Path | None
    directory: Path | None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Self:
        """Those of a command, which are removed from its other options."""
        own = cls(**{field.name: options.pop(field.name) for field in fields(cls)})
        if own.server is None and any((own.token_file, own.certificate, own.directory)):
            raise click.UsageError("--token-file, --certificate and --directory are for a worker with --server.")
        return own


def run_joining(options: ServerOptions, arguments: Mapping[str, Any]) -> int:
    """Work for a project elsewhere, until there is no more to do, or until SIGTERM; the exit status.

    Args:
        arguments: those of spawning.
    """
    url = str(options.server).rstrip("/")
    from workbench.services.processes.processes import ResourceLimits
    from workbench.services.spawning.joining import JoinRequest, join, own_directory
    from workbench.worker.__main__ import run

    if unfit := [name for name in arguments if name not in _OWN]:
        option = _OPTIONS.get(unfit[0], f"--{unfit[0].replace('_', '-')}")
        text = (
            f"{option} and --server exclude each other: files of the project, and what it starts, stay with the server."
        )
        raise BadInput(
            "NOT_ELSEWHERE", f"{text} Leave {option} out, or start the worker in the project, on its machine."
        )
    given = {name: arguments[name] for name in ("persona_id", "name", "profile", "environment") if name in arguments}
    request = JoinRequest(
        url,
        _token(options.token_file),
        options.certificate and options.certificate.resolve(),
        limits=ResourceLimits(**arguments.get("limits", {})),
        secret=tuple(arguments.get("secret", ())),
        **given,
    )
    with own_directory(request, options.directory) as place:
        joined = asyncio.run(join(request, place))
        click.echo(f"{joined.agent_id} is running, for {url}, in {place}; press Ctrl-C to end it.", err=True)
        return run(joined.config, joined.notes, while_input=options.token_file == INPUT)


def _token(file: Path | None) -> str | None:
    """The machine's token; None if none is given."""
    if file is None:
        return os.environ.get(VARIABLE) or None
    if file == INPUT:
        return sys.stdin.readline().strip() or None
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise BadInput("TOKEN_NOT_PRIVATE", f"Others may read {file}. Run `chmod 600 {file}`, then try again.")
    return file.read_text("utf-8-sig", "replace").strip() or None
