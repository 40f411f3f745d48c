"""Stand-alone roles on a KOI network (spec 5): `koi coordinator`, `koi agent`; `koi demo` demonstrates them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TypeVar

import click

from workbench.cli.koi.network import koi
from workbench.cli.output import Shown
from workbench.errors import BadInput, why_unreadable
from workbench.present.tables import Table
from workbench.rules.personalities.role_config import RoleConfig, load

Section = TypeVar("Section")

STATE = Path(".koi")
"""Where roles keep their state, unless told otherwise: a directory for each name in it."""

config_option = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="JSON file; the variables KOI_MCP_… override it.",
)
directory_option = click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Where to keep its state; default: .koi/NAME.",
)


@koi.command()
@config_option
@directory_option
def coordinator(file: Path, directory: Path | None) -> Shown:
    """Run a coordinator alone, until Ctrl-C: it collects the personalities of agents and passes them on."""
    from workbench.shells.koi_roles import run_coordinator

    config = _config(file)
    role = _require(config.coordinator, file, "coordinator")
    run_coordinator(role, config.network, directory or STATE / role.name)
    return None


@koi.command()
@config_option
@directory_option
def agent(file: Path, directory: Path | None) -> Shown:
    """Run an agent alone, until Ctrl-C: it publishes its personality, and others call its tools."""
    from workbench.shells.koi_roles import run_agent

    config = _config(file)
    role = _require(config.agent, file, "agent")
    run_agent(role, config.network, directory or STATE / role.name)
    return None


@koi.command()
def demo() -> Shown:
    """Show a network: a coordinator and two agents in three processes, discovery, and a call from end to end."""
    from workbench.demo.network import run
    from workbench.system.interpreter import termination_interrupts
    from workbench.system.loop_thread import run_alone

    with termination_interrupts(), tempfile.TemporaryDirectory(prefix="workbench-koi-") as directory:
        demonstration = run_alone(run(Path(directory), lambda line: click.echo(line, err=True)))
    call = demonstration.call
    rows = [
        [personality["name"], personality["version"], ", ".join(personality["tools"])]
        for personality in demonstration.personalities
    ]
    note = (
        f"The call {call['call_id']} of {call['tool_name']} returned {demonstration.result}; it took "
        f"{call['duration_ms']} ms at the agent that ran it. The three processes have ended."
    )
    data = {"personalities": demonstration.personalities, "result": demonstration.result, "call": call}
    return Table(["agent", "version", "tools"], rows, "", data, note=note, lead="What the coordinator found:")


def _require(section: Section | None, file: Path, name: str) -> Section:
    """The section of a role.

    Raises:
        BadInput: ``KOI_CONFIG_INVALID``: the configuration has none.
    """
    if section is None:
        raise BadInput("KOI_CONFIG_INVALID", f"{file} configures no {name}.", problems=[])
    return section


def _config(file: Path) -> RoleConfig:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("KOI_CONFIG_INVALID", f"{file} cannot be read: {why_unreadable(error)}.", problems=[]) from None
    return load(text, os.environ)
