"""What of a definition a program can use, and what it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from re import Pattern
from typing import Any

from workbench.drivers.setup import AgentSetup, Configuration, ModelAccess, ServerSetup, TelemetryAccess, unattended
from workbench.drivers.stream import ProgramStream
from workbench.errors import BadInput
from workbench.rules.definitions.model import Definition, ModelSettings
from workbench.rules.definitions.program_tools import ToolLimits
from workbench.rules.definitions.providers import provider_id

OWN_SERVER = "workbench"
"""The name of Workbench's own MCP server in a program's configuration."""
STEERING = ("model", "maxChatTurns", "maxOutputTokens", "temperature", "topP")
"""The settings that programs may have an equivalent of."""


@dataclass(frozen=True, slots=True)
class Driver:
    """How the output of a program is read, and its conversation found.

    Args:
        stream: reads the output.
        session_files: from the id of a conversation to a pattern of the file below its home that has it.
        limit_of_session: from the end of that file's text to when the usage limit ends of which it tells, in seconds
            since 1970.
    """

    stream: type[ProgramStream]
    session_files: Callable[[str], str]
    limit_of_session: Callable[[str], float | None] = lambda text: None


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """A program that runs an LLM agent: how it is configured and started, read, and resumed.

    Args:
        providers: the providers whose models it can use, the usual one first.
        settings: the settings of a definition that it follows.
        transports: the types of MCP servers that it can use.
        expands: matches what it replaces by variables of its environment, in its configuration of servers.
        key: the variable that holds its provider's key.
        credentials: the variables that may hold a key or a login, the first of which that is set counts.
        limit: from the command of a profile, and limits of the program's own tools, to the command that keeps them.
        is_read_only: whether it keeps limits only if it can write nothing but its scratch directory.
        withheld: what of allowed tools it cannot give, because it cannot keep the limits otherwise.
        configure: from a setup, its scratch directory and its profile's files to how it is started.
        route: the files, besides variables, with which it asks the server for models instead of the provider.
        telling: the files and variables with which it tells the server of its requests by OpenTelemetry.
        streaming: from the command of a profile to one that writes as JSON, line by line, what it does.
        talking: from that command to one that is told its prompt, and messages while it works, on its standard input;
            None: it cannot be.
        resumed: from a command, the id of a conversation and the path of its file, to one that continues it.
    """

    providers: tuple[str, ...]
    settings: frozenset[str]
    transports: frozenset[str]
    expands: Pattern[str] | None
    key: str
    credentials: tuple[str, ...]
    limit: Callable[[Sequence[str], ToolLimits], list[str]]
    is_read_only: Callable[[ToolLimits], bool]
    withheld: Callable[[ToolLimits], Iterable[str]]
    configure: Callable[[AgentSetup, str, Mapping[str, str]], Configuration]
    route: Callable[[ModelAccess, Mapping[str, str]], Mapping[str, str]]
    telling: Callable[[TelemetryAccess, Mapping[str, str]], Configuration]
    streaming: Callable[[Sequence[str]], list[str]]
    resumed: Callable[[Sequence[str], str, str], list[str]]
    talking: Callable[[Sequence[str]], list[str]] | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """What a program uses of a definition.

    Args:
        provider: the provider whose models it uses, if the definition says it.
        has_key: the definition configures the provider.
        unused: what it does not use, and why; sentences for the person who spawns the agent.
    """

    provider: str | None
    has_key: bool
    model: str
    servers: Mapping[str, ServerSetup]
    unused: tuple[str, ...]

    @property
    def needs_trust(self) -> bool:
        """Whether it uses something that the operator has to trust."""
        return self.has_key or bool(self.servers)


def fit(program: AgentProgram | None, name: str, definition: Definition) -> Fit:
    """What a program uses of a definition.

    Args:
        program: None: one that takes only the definition's files and its system prompt.
        name: of its profile.

    Raises:
        BadInput: ``DEFINITION_DOES_NOT_FIT``, ``PROVIDER_UNKNOWN``.
    """
    limits = definition.settings.limits
    if program is None:
        if limits:
            raise _unfit(
                f"it limits its program's own tools, which the profile {name} cannot do. Choose another profile"
            )
        return Fit(
            None, False, "", {}, tuple(f"The profile {name} does not use {what}." for what in _models_part(definition))
        )
    provider, model = _model(program, name, definition)
    servers = {key: unattended(one, definition.settings.tool_permission) for key, one in definition.mcp_servers.items()}
    usable = {key: one for key, one in servers.items() if one and one.server.type in program.transports}
    for key, one in usable.items():
        _check_server(program, name, key, one)
    ignored = [f"The profile {name} does not use the setting {key}." for key in _ignored(program, definition.settings)]
    unused = [_unused(name, key, servers[key]) for key in servers.keys() - usable.keys()]
    kept_from = [f"With the profile {name}, {what}." for what in program.withheld(limits)] if limits else []
    return Fit(provider, provider in definition.providers, model, usable, tuple(sorted(ignored + unused + kept_from)))


def _models_part(definition: Definition) -> Iterator[str]:
    if definition.mcp_servers:
        yield f"MCP servers: {', '.join(sorted(definition.mcp_servers))}"
    if definition.settings.model or definition.providers:
        yield "a model"


def _model(program: AgentProgram, name: str, definition: Definition) -> tuple[str | None, str]:
    """The provider that is used, if the definition says it, and the model's id there."""
    prefix, _, model = definition.settings.model.partition(":")
    if not prefix:
        return next((one for one in program.providers if one in definition.providers), None), ""
    provider = provider_id(prefix)
    if provider not in program.providers:
        raise _unfit(
            f"its model is {definition.settings.model}, but the profile {name} uses models of "
            f"{' or '.join(program.providers)}. Choose another profile or model"
        )
    return provider, model


def _ignored(program: AgentProgram, settings: ModelSettings) -> list[str]:
    stated: Mapping[str, Any] = settings.model_dump(by_alias=True, exclude_defaults=True)
    return [key for key in STEERING if key in stated and key not in program.settings]


def _check_server(program: AgentProgram, name: str, key: str, setup: ServerSetup) -> None:
    """Refuse a server that would replace Workbench's own, or that the program would give variables of its own."""
    if key.lower() == OWN_SERVER:
        raise _unfit(f"its MCP server {key} has the name of Workbench's own. Rename it")
    values = setup.server.model_dump(mode="json", exclude={"tools", "server_tool_defaults", "type"})
    if program.expands and any(program.expands.search(text) for text in _texts(values)):
        raise _unfit(
            f"its MCP server {key} contains $, which the profile {name} replaces by a variable. "
            "Use a reference such as env://NAME"
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.items():
            yield from _texts(list(item))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _unused(name: str, key: str, setup: ServerSetup | None) -> str:
    if setup is not None:
        return f"The profile {name} cannot use the MCP server {key}: its type is {setup.server.type}."
    return (
        f"The MCP server {key} is not used: its tools need a person's permission, and no one is asked while a spawned "
        "agent works. Set permissionRequired to false for the tools that it may use."
    )


def _unfit(reason: str) -> BadInput:
    return BadInput("DEFINITION_DOES_NOT_FIT", f"This agent cannot be spawned: {reason}.")
