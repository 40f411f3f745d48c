"""Admission rules and the allowlist: `rules`, `allowlist`."""

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
    """Rules that admit agents: list, add, remove."""


@rules.command("list")
@pass_client
def list_rules(client: OperatorClient) -> Shown:
    """List the rules."""
    found = client.call("list_admission_rules")["rules"]
    rows = [[r["name"], r["pattern"], "this machine" if r["loopback_only"] else "anywhere", _grants(r)] for r in found]
    heads = ["rule", "admits names like", "from", "as"]
    return Table(heads, rows, "There are no rules: you admit every agent yourself.", found)


@rules.command("add")
@click.argument("name")
@click.argument("pattern")
@click.option("--anywhere", is_flag=True, help="Admit agents from other machines too.")
@grant_options
@pass_client
def add_rule(client: OperatorClient, name: str, pattern: str, anywhere: bool, **options: Any) -> Shown:
    """Admit agents whose name matches PATTERN (with `*` and `?`)."""
    grants = choices(options)
    made = client.call("add_admission_rule", name=name, pattern=pattern, loopback_only=not anywhere, grants=grants)
    return Note(
        f"Rule {name} admits agents named {pattern} {'from anywhere' if anywhere else 'on this machine'}.", made
    )


@rules.command("remove")
@click.argument("name")
@pass_client
def remove_rule(client: OperatorClient, name: str) -> Shown:
    """Remove a rule. Agents that it admitted stay."""
    return Note(f"Removed rule {name}.", client.call("remove_admission_rule", name=name))


@root.group(cls=NounGroup)
def allowlist() -> None:
    """The allowlist of agents: list, add, remove."""


@allowlist.command("list")
@pass_client
def list_allowed(client: OperatorClient) -> Shown:
    """List the allowed ids."""
    made = client.call("list_allowlist")
    rows = [[one, "the setting allowed_agents" if one in made["fixed"] else made["path"]] for one in made["ids"]]
    return Table(["agent", "from"], rows, "The allowlist is empty: every agent may act.", made)


@allowlist.command("add")
@click.argument("agent_id")
@pass_client
def allow(client: OperatorClient, agent_id: str) -> Shown:
    """Add an id. The first one restricts access to the listed agents."""
    return Note(f"Added {agent_id}.", client.call("allow_agent", agent_id=agent_id))


@allowlist.command("remove")
@click.argument("agent_id")
@pass_client
def disallow(client: OperatorClient, agent_id: str) -> Shown:
    """Remove an id."""
    return Note(f"Removed {agent_id}.", client.call("disallow_agent", agent_id=agent_id))


def _grants(rule: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in rule["grants"].items()
    )
