"""Trust in a project's files: shows what they ask for, and records the user's answer: `trust`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, Text, agreed, pass_client
from workbench.errors import Refused
from workbench.present.inert import inert_line
from workbench.state.settings import Settings
from workbench.trust import state_directory
from workbench.trust.withheld import Privileged, withheld
from workbench.trust.withheld import trust as record

TRUSTED = "Trusted. It can be used from now on; settings count when the server is next started."
STATE = "State of the project that was not created here. Its agents, tasks and their commands are used as they are:"
UNTRUSTED = "Not used until you trust it: `workbench trust --yes`."


@root.command()
@click.option("--yes", is_flag=True, help="Trust all that is shown, without a question.")
@pass_client
def trust(client: OperatorClient, yes: bool) -> Shown:
    """Show what of this project is not used because it may have come with the repository, and trust it."""
    project = client.settings.project
    state, files = _unknown_state(project), withheld(project)
    if not state and not files:
        return Note("Nothing in this project needs your trust.", {"trusted": True, "state": [], "files": []})
    text, data = _describe(state, files), {"state": state, "files": [_as_data(file) for file in files]}
    if not yes and not agreed(f"{text}\n\nMay Workbench use this?"):
        return Text(text, {"trusted": False, **data}, note=UNTRUSTED)
    _require_valid(project, files)
    if state:
        state_directory.adopt(project)
    record(project, files)
    return Text(text, {"trusted": True, **data}, note=TRUSTED)


def _unknown_state(project: Path) -> list[str]:
    """The state that trust can make usable; other errors of `check` remain errors."""
    try:
        state_directory.check(project)
    except Refused as error:
        if error.code != "STATE_NOT_TRUSTED":
            raise
    return state_directory.unknown(project)


def _require_valid(project: Path, files: Iterable[Privileged]) -> None:
    """Refuse what would be refused where it is used: settings by the servers, profiles by `spawn`.

    Raises:
        BadInput: ``BAD_SETTINGS``, ``PROFILE_INVALID``. Refused, Unauthenticated: see `check_address`.
    """
    from workbench.rules import profile
    from workbench.shells.gate import check_address

    check_address(Settings(project=project, **Settings.of_project(project)))
    for file in files:
        if not file.names:
            profile.parse(Path(file.file).stem, file.text)


def _describe(state: Sequence[str], files: Iterable[Privileged]) -> str:
    parts = ["\n".join([file.place, *(f"    {line}" for line in file.lines)]) for file in files]
    if state:
        parts.insert(0, "\n".join([STATE, *(f"    {inert_line(path)}" for path in state)]))
    return "\n\n".join(parts)


def _as_data(file: Privileged) -> dict[str, Any]:
    return {"file": file.file, "settings": list(file.names), "text": file.text, "digest": file.digest}
