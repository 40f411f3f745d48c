"""`define providers`: list, show, install, update, uninstall, check the providers of a definition's model."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.client import OperatorClient
from workbench.cli.definitions.group import SectionGroup, define, done, pairs, target
from workbench.cli.output import Fn, Note, Shown, pass_client
from workbench.present.tables import Table


@define.group(cls=SectionGroup)
def providers() -> None:
    """Providers of a definition's model: list, show, install, update, uninstall, check."""


def provider_argument(command: Fn) -> Fn:
    """Give a command the argument that names a provider."""
    return click.argument("provider", metavar="PROVIDER")(command)


def config_argument(command: Fn) -> Fn:
    """Give a command the arguments that configure a provider."""
    return click.argument("config", metavar="KEY=VALUE", nargs=-1)(command)


@providers.command("list")
@target
@pass_client
def list_providers(client: OperatorClient, target: str) -> Shown:
    """List the providers, what each is configured with, and which of them are installed."""
    found = client.call("agent_list_providers", agentTarget=target)
    rows = [_row(name, info, name in found["installed"]) for name, info in found["providerInfo"].items()]
    return Table(["provider", "installed", "description", "keys"], rows, data=found)


def _row(name: str, info: dict[str, Any], installed: bool) -> list[Any]:
    keys = [f"{value['key']}{'' if value['required'] else ' (optional)'}" for value in info["configValues"]]
    return [name, "yes" if installed else "", info["description"], ", ".join(keys)]


@providers.command("show")
@target
@provider_argument
@click.option("--reveal", is_flag=True, help="Show the secrets, also those that references name.")
@pass_client
def show_provider(client: OperatorClient, target: str, provider: str, reveal: bool) -> Shown:
    """Show the configuration of a provider; secrets that are written out are masked."""
    found = client.call("agent_get_provider_config", agentTarget=target, providerType=provider, reveal=reveal)
    empty, config = f"{provider} is not installed.", found["resolvedConfig"] or found["config"] or {}
    return Table(["key", "value"], [[*pair] for pair in config.items()], empty, found)


@providers.command("install")
@target
@provider_argument
@config_argument
@pass_client
def install_provider(client: OperatorClient, target: str, provider: str, config: tuple[str, ...]) -> Shown:
    """Install a provider: `install reviewer openai OPENAI_API_KEY=env://OPENAI_API_KEY`."""
    return done(client.call("agent_install_provider", agentTarget=target, providerType=provider, config=pairs(config)))


@providers.command("update")
@target
@provider_argument
@config_argument
@pass_client
def update_provider(client: OperatorClient, target: str, provider: str, config: tuple[str, ...]) -> Shown:
    """Replace the configuration of a provider."""
    return done(client.call("agent_update_provider", agentTarget=target, providerType=provider, config=pairs(config)))


@providers.command("uninstall")
@target
@provider_argument
@pass_client
def uninstall_provider(client: OperatorClient, target: str, provider: str) -> Shown:
    """Remove a provider and its configuration."""
    return done(client.call("agent_uninstall_provider", agentTarget=target, providerType=provider))


@providers.command("check")
@target
@provider_argument
@config_argument
@click.option("--live", is_flag=True, help="Ask the provider, with the secrets.")
@pass_client
def check_provider(client: OperatorClient, target: str, provider: str, config: tuple[str, ...], live: bool) -> Shown:
    """Check a configuration without installing it."""
    how = {"providerType": provider, "config": pairs(config), "live": live}
    found = client.call("agent_validate_provider_config", agentTarget=target, **how)
    valid = "The provider accepts the configuration." if found["live"] else "The configuration is valid."
    return Note(valid if found["isValid"] else found["error"], found)
