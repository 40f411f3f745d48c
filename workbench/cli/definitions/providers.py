"""`define providers`: list, show, install, update, uninstall, check the providers of a definition's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import SectionGroup, define, target
from workbench.cli.operations.declared import view
from workbench.cli.output import Note, PartialFailure, Shown, pairs, pass_client
from workbench.present.tables import Table


@define.group(cls=SectionGroup)
def providers() -> None:
    """Providers of a definition's model: list, show, install, update, uninstall, check."""


@view("ProviderList")
def provider_table(answer: Mapping[str, Any]) -> Table:
    """The providers that there are, and which of them are installed."""
    rows = [_row(name, info, name in answer["installed"]) for name, info in answer["providerInfo"].items()]
    return Table(["provider", "installed", "description", "keys"], rows, data=answer)


def _row(name: str, info: dict[str, Any], installed: bool) -> list[Any]:
    keys = [f"{value['key']}{'' if value['required'] else ' (optional)'}" for value in info["configValues"]]
    return [name, "yes" if installed else "", info["description"], ", ".join(keys)]


@providers.command("show")
@target
@click.argument("provider", metavar="PROVIDER")
@click.option("--reveal", is_flag=True, help="Show the secrets, also those that references name.")
@pass_client
def show_provider(client: OperatorClient, target: str, provider: str, reveal: bool) -> Shown:
    """Show the configuration of a provider; secrets that are written out are masked."""
    answer = client.call("agent_get_provider_config", agentTarget=target, providerType=provider, reveal=reveal)
    empty, config = f"{provider} is not installed.", answer["resolvedConfig"] or answer["config"] or {}
    return Table(["key", "value"], [[*pair] for pair in config.items()], empty, answer)


@providers.command("check")
@target
@click.argument("provider", metavar="PROVIDER")
@click.argument("config", metavar="KEY=VALUE", nargs=-1)
@click.option("--live", is_flag=True, help="Ask the provider, with the secrets.")
@pass_client
def check_provider(client: OperatorClient, target: str, provider: str, config: tuple[str, ...], live: bool) -> Shown:
    """Check a configuration without installing it. Exit status 1 if it is not valid."""
    arguments = {"providerType": provider, "config": pairs(config), "live": live}
    validity = client.call("agent_validate_provider_config", agentTarget=target, **arguments)
    valid = "The provider accepts the configuration." if validity["live"] else "The configuration is valid."
    if not validity["isValid"]:
        return PartialFailure([], [], validity["error"], validity)
    return Note(" ".join(filter(None, (valid, validity["note"]))), validity)
