"""What a project's files ask for, and whether the user trusts it: `trust`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, Text, pass_client
from workbench.withheld import Privileged, withheld
from workbench.withheld import trust as record

TRUSTED = "Trusted. Profiles can be used from now on; the settings count when the server is next started."
UNTRUSTED = "Not used until you trust it: `workbench trust --yes`."


@root.command()
@click.option("--yes", is_flag=True, help="Trust all that is shown, without a question.")
@pass_client
def trust(client: OperatorClient, yes: bool) -> Shown:
    """Show which settings and profiles of this project are not used, and trust them."""
    project = client.settings.project
    found = withheld(project)
    if not found:
        return Note("Nothing in this project needs your trust.", [])
    text, data = _listed(found), [_as_data(one) for one in found]
    if not yes and not _confirmed(text):
        return Text(f"{text}\n\n{UNTRUSTED}", {"trusted": False, "files": data})
    record(project, found)
    return Text(f"{text}\n\n{TRUSTED}", {"trusted": True, "files": data})


def _confirmed(text: str) -> bool:
    """Show the text and ask, if someone at a terminal can answer."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm(f"{text}\n\nMay Workbench use this?", default=False)


def _listed(found: Iterable[Privileged]) -> str:
    return "\n\n".join("\n".join([one.place, *(f"    {line}" for line in one.lines)]) for one in found)


def _as_data(one: Privileged) -> dict[str, Any]:
    return {"file": one.file, "settings": list(one.names), "text": one.text, "digest": one.digest}
