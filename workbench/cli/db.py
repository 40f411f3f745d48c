"""The database behind the store, and a PostgreSQL server for trying out: `db`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, pass_client
from workbench.state.settings import Settings
from workbench.trust import state_directory

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="The server's directory; by default one of the project's own.",
)


@root.group()
def db() -> None:
    """The database of the project, and a PostgreSQL server of your own for trying out."""


@db.command()
@data_option
@click.option("--port", type=click.IntRange(0, 65_535), default=None, help="0: any that is free, as the first time.")
@pass_client
def up(client: OperatorClient, data: Path | None, port: int | None) -> Shown:
    """Start a PostgreSQL server from the programs installed here, for trying out, and print its address.

    It listens on this machine only. Its password is in a file that only you can read, which the address names.
    """
    from workbench.store import own_server

    client.require_operator("db up")
    server = own_server.start(_place(client.settings, data, creates=True), port)
    begun = "runs" if server.is_new else "runs already"
    says = (
        f"PostgreSQL {server.version} {begun} (process {server.pid}) with its data in {server.data}. Its address, for "
        f"you alone:\n{server.url}\nTo use it, set WORKBENCH_DATABASE_URL to that. `workbench db down"
        f"{_option(data)}` stops it."
    )
    return Note(says, _as_data(asdict(server)))


@db.command()
@data_option
@pass_client
def down(client: OperatorClient, data: Path | None) -> Shown:
    """Stop the server that `db up` started. Its data stay."""
    from workbench.store import own_server

    client.require_operator("db down")
    place = _place(client.settings, data)
    stopped = own_server.stop(place)
    says = f"The server has stopped. Its data stay in {place}." if stopped else "No server was running."
    return Note(says, {"stopped": stopped, "data": str(place)})


def _place(settings: Settings, data: Path | None, *, creates: bool = False) -> Path:
    """The directory of the person's own server."""
    from workbench.store import own_server

    if data is not None:
        return data
    state_directory.check(settings.project)
    if creates:
        state_directory.require(settings)
    return own_server.default_data(settings.home)


def _option(data: Path | None) -> str:
    return f" --data {shlex.quote(str(data))}" if data else ""


def _as_data(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
