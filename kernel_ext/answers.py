"""The answers of `%workbench start` and `%workbench stop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from workbench.model import ServerInfo
from workbench.state.shares import Departure

KEPT = (
    "These agents go on working: {}. `%workbench start` takes them back; "
    "`%workbench start --end-workers` ends their processes."
)
SHARED = (
    "These agents go on working: {}. They are not ended while others use the project; "
    "`%workbench terminate AGENT` ends one."
)


def started(project: Path, info: ServerInfo, *, attached: bool) -> str:
    """Which process serves a project, and where."""
    if attached:
        return f"Attached to process {info.pid}, which serves {project.name}."
    return f"Workbench serves {project.name} at {info.url}."


def unused(options: Sequence[str], info: ServerInfo) -> str:
    """Options of a start that did nothing, because the servers already ran."""
    if not options:
        return ""
    return f"{' and '.join(options)} had no effect, because the servers already ran at {info.url}."


def taken(names: Mapping[str, str]) -> str:
    """Functions of the notebook that are no tools, because others have their names.

    Args:
        names: with who has them.
    """
    if not names:
        return ""
    return f"Not offered as tools: {', '.join(f'{name} ({owner} has one)' for name, owner in names.items())}."


def other_project(here: Path) -> str:
    """What to do to change to the project of the current directory."""
    return f"The current directory belongs to another project: `%workbench start --project {here}` changes to that."


def stopped(departure: Departure | None, agents: Sequence[str], project: Path | None = None) -> str:
    """What a stop left.

    Args:
        agents: the agents whose processes ran before.
        project: named if it is not clear which one was stopped.
    """
    of = f" for {project.name}" if project else ""
    if departure is None or not departure.others:
        ended = departure is None or departure.ends_workers or not agents
        return f"Workbench is stopped{of}." + ("" if ended else f" {KEPT.format(', '.join(agents))}")
    going_on = f"Workbench is stopped{of} in this kernel. {departure.note}"
    return f"{going_on} {SHARED.format(', '.join(agents))}" if departure.end_workers and agents else going_on
