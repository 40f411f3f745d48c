"""What an agent's program gets from the agent's definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from workbench.rules.definitions.mcp_servers import HttpServer, McpServer, StdioServer, ToolRule, asks_first
from workbench.rules.definitions.program_tools import ToolLimits
from workbench.rules.models.upstream import PROVIDERS

UNATTENDED = ("always", "agent")
"""Values of `include` with which a tool is offered without a person's choice."""


class ServerSetup(BaseModel):
    """An MCP server, and the tools of it that an agent may use with no person to ask.

    Args:
        server: its configuration, secrets resolved.
        allowed: the names of its tools; None: all but those in `refused`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    server: McpServer = Field(repr=False)
    allowed: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()


class AgentSetup(BaseModel):
    """A definition, as a worker gets it.

    Args:
        id, hash: of the definition.
        system_prompt: its prompt, rules and references in one text.
        include: the rules and references in it that are used on request only, by name.
        files: the text of its files, by their paths in its directory; secrets are masked.
        provider: the id of the provider whose models are used; None: the program's own choice.
        provider_config: its configuration, secrets resolved.
        model: the model's id at the provider; empty: the program's default.
        max_chat_turns, max_output_tokens: limits; None: the program's own.
        servers: the MCP servers by name.
        limits: what the program may do with its own tools.
        secrets: the secrets in all these; they are masked in what its commands write.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    id: str
    name: str
    hash: str
    system_prompt: str
    include: tuple[str, ...] = ()
    files: dict[str, str]
    provider: str | None = None
    provider_config: dict[str, str] = Field(default={}, repr=False)
    model: str = ""
    max_chat_turns: int | None = None
    max_output_tokens: int | None = None
    servers: dict[str, ServerSetup] = Field(default={}, repr=False)
    limits: ToolLimits = ToolLimits()
    secrets: tuple[str, ...] = Field((), repr=False)


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a program is started for a setup.

    Args:
        arguments: added to its command.
        files: the text of files below its scratch directory, which replace those of the profile.
        environment: variables.
    """

    arguments: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Where commands ask for models: at the server, with a token of their attempt instead of the person's key.

    Args:
        url: the server's address.
        providers: those that the server answers for.
    """

    url: str
    providers: Sequence[str]
    token: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the providers' clients are told."""
        addresses = {name: f"{self.url}/models/{name}" for name in self.providers}
        return {
            variable: value
            for name, address in addresses.items()
            for variable, value in PROVIDERS[name].box_environment(address, self.token).items()
        }


@dataclass(frozen=True, slots=True)
class TelemetryAccess:
    """Where programs tell of themselves by OpenTelemetry: at the server, with the token of their attempt.

    Args:
        url: the server's address.
    """

    url: str
    token: str = field(repr=False)

    @property
    def authorization(self) -> str:
        """The value of the header that proves it."""
        return f"Bearer {self.token}"


def unattended(server: StdioServer | HttpServer, permission: str) -> ServerSetup | None:
    """A server with the tools that an agent may use while no person can be asked; None if there are none.

    Args:
        permission: when a person has to be asked: `always`, `never`, or `tool`: as the server's rules say.
    """
    tools = {name: _is_usable(rule, server.server_tool_defaults, permission) for name, rule in server.tools.items()}
    usable = tuple(sorted(name for name, is_usable in tools.items() if is_usable))
    if _is_usable(ToolRule(), server.server_tool_defaults, permission):
        return ServerSetup(server=server, refused=tuple(sorted(set(tools) - set(usable))))
    return ServerSetup(server=server, allowed=usable) if usable else None


def _is_usable(rule: ToolRule, defaults: ToolRule, permission: str) -> bool:
    include = rule.include or defaults.include or "always"
    asks = asks_first(rule, defaults) is not False if permission == "tool" else permission == "always"
    return include in UNATTENDED and not asks
