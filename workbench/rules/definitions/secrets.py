"""Secret references: a configuration says where a secret is, not what it is. Nothing is resolved here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.providers import PROVIDERS
from workbench.rules.secrets.forms import MASK, has_form, says_secret

_REFERENCE = re.compile(r"((?:Bearer|Basic|Token|token) )?(env|file|op|keyring)://(\S.*)", re.DOTALL)


class Source(StrEnum):
    """Where secrets are kept: a variable of the server's environment, a file, 1Password, or the system's keyring."""

    ENV = "env"
    FILE = "file"
    ONE_PASSWORD = "op"
    KEYRING = "keyring"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a secret, such as ``env://NAME``, ``file://path``, ``op://vault/item/field``,
    ``keyring://service/name``.

    Args:
        scheme: what precedes the secret in a header, as in ``Bearer env://NAME``, with a blank.
    """

    source: Source
    place: str
    scheme: str = ""

    def __str__(self) -> str:
        return f"{self.source}://{self.place}"


def parse(value: str) -> Reference | None:
    """The reference that a value is; None for a literal."""
    found = _REFERENCE.fullmatch(value)
    return Reference(Source(found[2]), found[3], found[1] or "") if found else None


def masked(definition: Definition) -> Definition:
    """The definition with every secret that is written out replaced by `MASK`; references stay."""
    return replace_secrets(definition, lambda place: MASK)


def replace_secrets(definition: Definition, replacement: Callable[[str], str]) -> Definition:
    """The definition with every secret that is written out replaced.

    Args:
        replacement: what replaces it, by its place, such as ``providers.openai.OPENAI_API_KEY``.
    """

    def of(place: str, values: Mapping[str, str], is_secret: Callable[[str], bool]) -> dict[str, str]:
        return {
            key: replacement(f"{place}.{key}") if is_written_out(value, is_secret(key)) else value
            for key, value in values.items()
        }

    providers = {
        name: of(f"providers.{name}", config, partial(is_secret, name)) for name, config in definition.providers.items()
    }
    servers = {
        name: with_values(server, of(f"mcpServers.{name}", values_of(server), says_secret))
        for name, server in definition.mcp_servers.items()
    }
    return definition.model_copy(update={"providers": providers, "mcp_servers": servers})


def is_secret(provider: str, key: str) -> bool:
    """Whether a key of a provider's configuration holds a secret; by its name if the key is unknown."""
    info = PROVIDERS.get(provider)
    known = {value.key: value.secret for value in info.config_values} if info else {}
    return known.get(key, says_secret(key))


def written_out(definition: Definition) -> list[str]:
    """The places of secrets that are not references, such as ``providers.openai.OPENAI_API_KEY``."""
    places: list[str] = []

    def note(place: str) -> str:
        places.append(place)
        return MASK

    replace_secrets(definition, note)
    return places


def values_of(server: StdioServer | HttpServer) -> Mapping[str, str]:
    """The variables or headers of a server."""
    return server.env if isinstance(server, StdioServer) else server.headers


def with_values(server: StdioServer | HttpServer, values: dict[str, str]) -> StdioServer | HttpServer:
    """The server with other variables or headers."""
    return server.model_copy(update={"env" if isinstance(server, StdioServer) else "headers": values})


def is_written_out(value: str, is_secret: bool) -> bool:
    """Whether a value is a secret itself, not a reference to one.

    Args:
        is_secret: it is one by its key.
    """
    return bool(value and (is_secret or has_form(value)) and parse(value) is None)
