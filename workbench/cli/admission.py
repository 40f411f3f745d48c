"""Admission of agents, and their rights: `rules`, `allowlist`, `agent-tools`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.grants import NOTHING, choices, grant_options
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, NounGroup, Shown, drop_none, enumerated, pass_client
from workbench.present.tables import Table


@root.group(cls=NounGroup)
def rules() -> None:
    """Rules that admit agents: list, add, remove."""


@view("AdmissionRules")
def _rules(page: dict[str, Any]) -> Shown:
    rows = [
        [rule["name"], rule["pattern"], "you, on this machine" if rule["loopback_only"] else "anywhere", _grants(rule)]
        for rule in page["rules"]
    ]
    heads = ["rule", "admits names like", "from", "as"]
    if any(rule["problem"] for rule in page["rules"]):
        heads.append("admits none, because")
        rows = [[*row, rule["problem"]] for row, rule in zip(rows, page["rules"], strict=True)]
    return Table(heads, rows, "There are no rules: you admit every agent yourself.", page["rules"])


@rules.command("add")
@click.argument("name")
@click.argument("pattern")
@click.option("--anywhere", is_flag=True, help="Admit other users' agents too, and from other machines.")
@grant_options
@pass_client
def add_rule(client: OperatorClient, name: str, pattern: str, anywhere: bool, **options: Any) -> Shown:
    """Admit agents whose name matches PATTERN (with `*` and `?`)."""
    grants = choices(options)
    rule = client.call("add_admission_rule", name=name, pattern=pattern, loopback_only=not anywhere, grants=grants)
    whose = "from anywhere" if anywhere else "that run as you on this machine"
    return Note(f"Rule {name} admits agents named {pattern} {whose}.", rule)


@root.group(cls=NounGroup)
def allowlist() -> None:
    """The allowlist of agents: list, add, remove."""


@view("AllowlistIds")
def _allowlist(allowlist: dict[str, Any]) -> Shown:
    setting, fixed = "the setting allowed_agents", allowlist["fixed"]
    rows = [[agent_id, setting if agent_id in fixed else allowlist["path"]] for agent_id in allowlist["ids"]]
    return Table(["agent", "from"], rows, "The allowlist is empty: every agent may act.", allowlist)


@allowlist.command("add")
@click.argument("agent_id")
@pass_client
def allow(client: OperatorClient, agent_id: str) -> Shown:
    """Add an id. The first one restricts access to the listed agents."""
    allowed = client.call("allow_agent", agent_id=agent_id)
    only = " From now on only the agents on the allowlist may act." if len(allowed["ids"]) == 1 else ""
    return Note(f"Added {agent_id}.{only}", allowed)


@allowlist.command("remove")
@click.argument("agent_id")
@pass_client
def disallow(client: OperatorClient, agent_id: str) -> Shown:
    """Remove an id."""
    allowed = client.call("disallow_agent", agent_id=agent_id)
    everyone = "" if allowed["ids"] else " The allowlist is empty: every agent may act."
    return Note(f"Removed {agent_id}.{everyone}", allowed)


@root.group("agent-tools", cls=NounGroup)
def agent_tools_group() -> None:
    """What agents are granted, read and write: list, enable, disable, edit."""


@view("AgentTools")
def _agent_tools(page: dict[str, Any]) -> Shown:
    tools = page["agent_tools"]
    rows = [[tool["id"], "on" if tool["enabled"] else "off", *_rights(tool), tool["description"]] for tool in tools]
    return Table(["tool", "is", "reads", "writes", "description"], rows, data=tools)


@agent_tools_group.command("edit")
@click.argument("tool_id", metavar="TOOL")
@click.option("--read", metavar="RESOURCES", default=None, help="What it may read: contexts,agents,…, or `none`.")
@click.option("--write", metavar="RESOURCES", default=None, help="What it may write: contexts,…, or `none`.")
@click.option("--description", default=None, help="Its new description.")
@pass_client
def edit_tool(client: OperatorClient, tool_id: str, description: str | None, **rights: str | None) -> Shown:
    """Change what a tool permits; rights that are not given stay unchanged."""
    permissions = {right: _resources(names) for right, names in drop_none(**rights).items()}
    changes = drop_none(description=description)
    if permissions:
        tools = client.call("list_agent_tools")["agent_tools"]
        before: dict[str, Any] = next((tool["permissions"] for tool in tools if tool["id"] == tool_id), {})
        changes["permissions"] = before | permissions
    if not changes:
        raise click.UsageError("Give --read, --write or --description.")
    edited = client.call("update_agent_tool", tool_id=tool_id, **changes)
    reads, writes = _rights(edited)
    return Note(f"{tool_id} reads {reads} and writes {writes}.", edited)


def _grants(rule: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in rule["grants"].items()
    )


def _resources(names: str) -> list[str]:
    return [] if names == NOTHING else names.split(",")


def _rights(tool: Mapping[str, Any]) -> tuple[str, str]:
    permissions = tool["permissions"]
    return enumerated(permissions["read"]) or "nothing", enumerated(permissions["write"]) or "nothing"
