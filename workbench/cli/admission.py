"""Who comes in without being asked about, and who may come at all: `rules`, `allowlist`."""

from __future__ import annotations

import json
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.grants import choices, grant_options
from workbench.cli.output import Note, NounGroup, Shown, pass_client
from workbench.tables import Table


@root.group(cls=NounGroup)
def rules() -> None:
    """Rules that admit agents without asking you: list, add, remove."""


@rules.command("list")
@pass_client
def list_rules(client: OperatorClient) -> Shown:
    """List the rules."""
    found = client.call("list_admission_rules")["rules"]
    rows = [[r["name"], r["pattern"], "this machine" if r["loopback_only"] else "anywhere", _said(r)] for r in found]
    heads = ["rule", "admits names like", "from", "as"]
    return Table(heads, rows, "There are no rules: every agent waits for you.", found)


@rules.command("add")
@click.argument("name")
@click.argument("pattern")
@click.option("--anywhere", is_flag=True, help="Not only agents of this machine.")
@grant_options
@pass_client
def add_rule(client: OperatorClient, name: str, pattern: str, anywhere: bool, **options: Any) -> Shown:
    """Admit agents whose name matches PATTERN (`*` and `?`) from now on."""
    grants = choices(options)
    made = client.call("add_admission_rule", name=name, pattern=pattern, loopback_only=not anywhere, grants=grants)
    return Note(f"{name} admits agents named {pattern} {'from anywhere' if anywhere else 'of this machine'}.", made)


@rules.command("remove")
@click.argument("name")
@pass_client
def remove_rule(client: OperatorClient, name: str) -> Shown:
    """Remove a rule; whom it admitted stays."""
    return Note(f"The rule {name} is removed.", client.call("remove_admission_rule", name=name))


@root.group(cls=NounGroup)
def allowlist() -> None:
    """Ids that may act at all; empty means everyone: list, add, remove."""


@allowlist.command("list")
@pass_client
def list_allowed(client: OperatorClient) -> Shown:
    """List the allowed ids."""
    made = client.call("list_allowlist")
    rows = [[one, "the setting allowed_agents" if one in made["fixed"] else made["path"]] for one in made["ids"]]
    return Table(["agent", "from"], rows, "Empty: everyone may act.", made)


@allowlist.command("add")
@click.argument("agent_id")
@pass_client
def allow(client: OperatorClient, agent_id: str) -> Shown:
    """Put an id on the list; the first one shuts everybody else out."""
    return Note(f"{agent_id} is allowed.", client.call("allow_agent", agent_id=agent_id))


@allowlist.command("remove")
@click.argument("agent_id")
@pass_client
def disallow(client: OperatorClient, agent_id: str) -> Shown:
    """Take an id off the list."""
    return Note(f"{agent_id} is off the list.", client.call("disallow_agent", agent_id=agent_id))


def _said(rule: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in rule["grants"].items()
    )
