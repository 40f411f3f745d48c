"""How a definition's agent reaches MCP servers, in the form that MCP clients share (`mcpServers`)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from workbench.rules.definitions.component import Component

RESERVED = ("WORKBENCH_", "LD_")
"""Prefixes of environment variables that a definition may not set for a program."""
_PLACES = frozenset(("HOME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"))
"""Variables that are no secrets: as references, their values would be masked everywhere."""
_VARIABLE = re.compile(r"((?:Bearer|Basic|Token|token) |--?[\w.-]+=)?\$\{(?:env:)?([A-Za-z_]\w*)\}", re.ASCII)


def _variable(name: str) -> str:
    if not name.isidentifier() or name.upper().startswith(RESERVED):
        raise ValueError(f"must be the name of a variable that does not begin with {' or '.join(RESERVED)}")
    return name


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be an http or https URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a password; use a header with a secret reference")
    return value


Argument = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]
Place = Annotated[Argument, Field(min_length=1)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Variable = Annotated[str, Field(max_length=200), AfterValidator(_variable)]
Url = Annotated[str, Field(max_length=2_000), AfterValidator(_url)]
# Programs get lists of these, separated by commas, in which other characters would be patterns.
ToolName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9_./:-]+$")]
HeaderName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00-\x08\x0a-\x1f\x7f]*$")]


class ToolRule(Component):
    """Whether a tool is offered to the model, and whether a person is asked before it runs; None: as the default."""

    permission_required: bool | None = Field(None, description="A person is asked before it runs.")
    include: Literal["always", "manual", "agent"] | None = Field(None, description="When the model is offered it.")


def asks_first(rule: ToolRule, defaults: ToolRule) -> bool | None:
    """Whether a person is asked before a tool runs; None: its server's rules do not say."""
    return defaults.permission_required if rule.permission_required is None else rule.permission_required


class _Server(Component):
    server_tool_defaults: ToolRule = Field(ToolRule(), description="For its tools that have no rule of their own.")
    tools: dict[ToolName, ToolRule] = Field({}, description="Rules of its tools, by their names.")


class StdioServer(_Server):
    """A program that speaks MCP on its standard input and output."""

    type: Literal["stdio"] = Field("stdio", description="Inferred from command.")
    command: Annotated[Argument, Field(min_length=1)] = Field(description="The program.")
    args: list[Argument] = Field([], max_length=200, description="Its arguments.")
    env: dict[Variable, Argument] = Field({}, description="Variables of its environment.")
    cwd: Place | None = Field(None, description="Its working directory.")
    read: list[Place] = Field([], max_length=50, description="Paths that it may read, besides those of the docs.")
    write: list[Place] = Field([], max_length=50, description="Paths that it may change.")
    connect: list[Port] = Field([], max_length=50, description="TCP ports that it may connect to, besides 80 and 443.")


class HttpServer(_Server):
    """A server at a URL."""

    type: Literal["sse", "streamable-http"] = Field("streamable-http", description="Its transport.")
    url: Url = Field(description="http or https.")
    headers: dict[HeaderName, HeaderValue] = Field({}, description="Headers of every request.")


def variable_as_reference(text: Any) -> Any:
    """``${NAME}`` or ``${env:NAME}``, as other clients have it, as the reference ``env://NAME``; all else as it is.

    It stands alone, or after the scheme of a header or the name of a flag.
    """
    found = _VARIABLE.fullmatch(text) if isinstance(text, str) else None
    return text if found is None or found[2] in _PLACES else f"{found[1] or ''}env://{found[2]}"


def _normalized(value: Any) -> Any:
    """Infer the type where it is missing; `http` is another name of `streamable-http`. See `variable_as_reference`."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type") or ("stdio" if "command" in value else "streamable-http")
    texts = {
        field: {key: variable_as_reference(text) for key, text in value[field].items()}
        for field in ("env", "headers")
        if isinstance(value.get(field), dict)
    }
    if isinstance(args := value.get("args"), list):
        texts["args"] = [variable_as_reference(text) for text in args]  # type: ignore[assignment]
    return {**value, **texts, "type": "streamable-http" if kind in ("http", "streamableHttp") else kind}


McpServer = Annotated[StdioServer | HttpServer, Field(discriminator="type"), BeforeValidator(_normalized)]
"""One server; its type is inferred from `command` or `url`."""
