"""The providers of models that a definition is configured for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from workbench.definition_files import provider_check
from workbench.definition_files.secret_sources import is_unset
from workbench.errors import BadInput, Conflict, Hint, NotFound, Unavailable
from workbench.model import Level
from workbench.ops import Command, Ctx
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.providers import ALIASES, PROVIDERS, ProviderInfo, check, provider_id
from workbench.rules.definitions.secrets.masked_updates import provider_config
from workbench.rules.definitions.secrets.references import parse
from workbench.rules.definitions.secrets.written_out import masked
from workbench.services.definitions import changes, secrets
from workbench.services.definitions.changes import updated
from workbench.services.definitions.operation import AgentTarget, DefinitionAnswer, DefinitionChanged, definition_op

ProviderType = Annotated[str, Field(max_length=1_000, description="Such as openai; see agent_list_providers.")]
Config = Annotated[
    dict[str, str],
    Field(description="Its keys (see agent_list_providers) and values; for secrets, references such as env://NAME."),
]


class ProviderList(DefinitionAnswer):
    """The providers that are installed, and those that can be."""

    installed: list[str]
    available: list[str]
    provider_info: dict[str, ProviderInfo]


class ProviderConfig(DefinitionAnswer):
    """The configuration of a provider, null if it is not installed. Secrets that are written out are masked.

    `resolvedConfig`: the same with its secrets; null unless the operator asked for it.
    """

    installed: bool
    config: dict[str, str] | None
    resolved_config: dict[str, str] | None


class Validity(DefinitionAnswer):
    """Whether a configuration is valid, and why not. `live`: whether the provider was asked. `note`: what it lacks."""

    is_valid: bool
    error: str | None
    live: bool = False
    note: str | None = None


@definition_op(
    reads=True,
    command=Command(
        "define providers list AGENT",
        help="List the providers, what each is configured with, and which of them are installed.",
    ),
)
async def agent_list_providers(ctx: Ctx, agentTarget: AgentTarget) -> ProviderList:
    """List the model providers that an agent definition is configured for, and those available with their keys."""
    installed = sorted((await changes.read(ctx, agentTarget)).definition.providers)
    return ProviderList(installed=installed, available=sorted(PROVIDERS), provider_info=dict(PROVIDERS))


@definition_op(reads=True, command="define providers show")
async def agent_get_provider_config(
    ctx: Ctx,
    agentTarget: AgentTarget,
    providerType: ProviderType,
    reveal: Annotated[bool, Field(description="For the operator only: show the secrets, too.")] = False,
) -> ProviderConfig:
    """Get how an agent definition configures a model provider."""
    if reveal:
        secrets.require_operator(ctx.caller)
    definition = (await changes.read(ctx, agentTarget)).definition
    name = _name_of(definition, providerType)
    config = masked(definition).providers.get(name)
    resolved = await secrets.configuration(ctx, name, definition.providers[name]) if reveal and config else None
    return ProviderConfig(installed=config is not None, config=config, resolved_config=resolved)


@definition_op(
    command=Command(
        "define providers install AGENT PROVIDER KEY=VALUE",
        names={"KEY=VALUE": "config"},
        help="Install a provider: `install reviewer openai OPENAI_API_KEY=env://OPENAI_API_KEY`.",
    )
)
async def agent_install_provider(
    ctx: Ctx, agentTarget: AgentTarget, providerType: ProviderType, config: Config
) -> DefinitionChanged:
    """Configure a model provider for an agent definition. The configuration is checked without a network."""

    def edit(definition: Definition) -> Definition:
        name = _name_of(definition, providerType)
        if name in definition.providers:
            hint = Hint("agent_update_provider", "Change it with {}.")
            raise Conflict("ALREADY_EXISTS", f"{name} is installed already.", hint)
        return _with_provider(definition, name, provider_config(config))

    return await changes.change(ctx, agentTarget, edit, f"provider {providerType} installed")


@definition_op(
    command=Command(
        "define providers update AGENT PROVIDER KEY=VALUE",
        names={"KEY=VALUE": "config"},
        help="Replace the configuration of a provider.",
    )
)
async def agent_update_provider(
    ctx: Ctx, agentTarget: AgentTarget, providerType: ProviderType, config: Config
) -> DefinitionChanged:
    """Replace the configuration of a model provider. A secret that was shown masked can be sent back masked."""

    def edit(definition: Definition) -> Definition:
        name = _require(definition, providerType)
        return _with_provider(definition, name, provider_config(config, definition.providers[name]))

    return await changes.change(ctx, agentTarget, edit, f"provider {providerType} changed")


@definition_op(
    destructive=True,
    command=Command("define providers uninstall AGENT PROVIDER", help="Remove a provider and its configuration."),
)
async def agent_uninstall_provider(ctx: Ctx, agentTarget: AgentTarget, providerType: ProviderType) -> DefinitionChanged:
    """Remove a model provider and its configuration from an agent definition."""

    def edit(definition: Definition) -> Definition:
        name = _require(definition, providerType)
        return updated(
            definition, providers={key: config for key, config in definition.providers.items() if key != name}
        )

    return await changes.change(ctx, agentTarget, edit, f"provider {providerType} uninstalled")


@definition_op(reads=True, command="define providers check")
async def agent_validate_provider_config(
    ctx: Ctx,
    agentTarget: AgentTarget,
    providerType: ProviderType,
    config: Config,
    live: Annotated[bool, Field(description="For the operator only: ask the provider, with the secrets.")] = False,
    timeoutSeconds: Annotated[float, Field(gt=0, le=60, description="How long the provider may take.")] = 10,
) -> Validity:
    """Check a configuration of a model provider without installing it.

    Without live there is no network access. Amazon Bedrock is never asked.
    """
    if live:
        secrets.require_operator(ctx.caller)
    definition = (await changes.read(ctx, agentTarget)).definition
    stored = definition.providers.get(_name_of(definition, providerType))
    try:
        complete = provider_config(config, stored)
        check(provider := provider_id(providerType), complete)
    except BadInput as error:
        if error.code != "INVALID_CONFIGURATION":
            raise
        return Validity(is_valid=False, error=error.message)
    if live and provider_check.can_be_asked(provider):
        return await _check_live(ctx, provider, complete, timeoutSeconds)
    return Validity(is_valid=True, error=None, note=_unset(complete) if ctx.caller.level is Level.OPERATOR else None)


def _unset(config: Mapping[str, str]) -> str | None:
    """The variables that a configuration refers to and the server has not; None if it has all."""
    references = filter(None, map(parse, config.values()))
    names = ", ".join(reference.place for reference in references if is_unset(reference))
    return f"The server has no variable {names} now. Set it, and start the server again." if names else None


async def _check_live(ctx: Ctx, provider: str, config: Mapping[str, str], seconds: float) -> Validity:
    """Ask a provider whether a configuration is valid."""
    try:
        resolved = await secrets.configuration(ctx, provider, config)
    except Unavailable as error:
        return Validity(is_valid=False, error=error.message)
    refusal = await provider_check.refusal(provider, resolved, seconds)
    return Validity(is_valid=refusal is None, error=refusal, live=True)


def _name_of(definition: Definition, provider: str) -> str:
    """The name under which a definition has a provider, or would have it.

    Raises:
        BadInput: ``PROVIDER_UNKNOWN``.
    """
    if provider in definition.providers:
        return provider
    provider_type = provider_id(provider)
    return next((name for name in definition.providers if ALIASES.get(name) == provider_type), provider_type)


def _require(definition: Definition, provider: str) -> str:
    name = _name_of(definition, provider)
    if name not in definition.providers:
        installed = ", ".join(sorted(definition.providers)) or "none"
        raise NotFound("NOT_FOUND", f"The provider {name} is not installed. Installed: {installed}.")
    return name


def _with_provider(definition: Definition, name: str, config: Mapping[str, str]) -> Definition:
    """The definition with a configuration of a provider that has been checked."""
    check(provider_id(name), config)
    return updated(definition, providers={**definition.providers, name: dict(config)})
