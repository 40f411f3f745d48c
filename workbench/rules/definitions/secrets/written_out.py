"""The secrets that a definition has written out: masked wherever it is shown, and named. Nothing is resolved here."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.providers import PROVIDERS
from workbench.rules.definitions.secrets.of_servers import Place, Server, places, rewritten
from workbench.rules.definitions.secrets.references import parse
from workbench.rules.secrets.forms import MASK, has_form, says_secret


def masked(definition: Definition) -> Definition:
    """The definition with every secret that is written out replaced by `MASK`; references stay."""
    return replace_secrets(definition, lambda place: MASK)


def masked_server(server: Server) -> Server:
    """The server with every secret that is written out replaced by `MASK`; references stay."""
    return rewritten(server, lambda place, value: value if parse(value) else MASK)


def replace_secrets(definition: Definition, replacement: Callable[[str], str], *, whole: bool = False) -> Definition:
    """The definition with every secret that is written out replaced.

    Args:
        replacement: what replaces it, by its place, such as ``providers.openai.OPENAI_API_KEY``,
            ``mcpServers.hub.HUB_TOKEN``, ``mcpServers.hub.args.token`` or ``mcpServers.hub.url.key``.
        whole: replace arguments as a whole in which no reference can stand in place of their secrets.
    """
    providers = {
        name: {
            key: replacement(f"providers.{name}.{key}") if is_written_out(value, is_secret(name, key)) else value
            for key, value in config.items()
        }
        for name, config in definition.providers.items()
    }

    def of(name: str, server: Server) -> Server:
        def replaced(place: Place, value: str) -> str:
            return value if parse(value) else replacement(f"mcpServers.{name}.{place.name}")

        return rewritten(server, replaced, whole=whole)

    servers = {name: of(name, server) for name, server in definition.mcp_servers.items()}
    return definition.model_copy(update={"providers": providers, "mcp_servers": servers})


def written_out(definition: Definition) -> list[str]:
    """The places of secrets that are not references, such as ``providers.openai.OPENAI_API_KEY``."""
    places: list[str] = []

    def note(place: str) -> str:
        places.append(place)
        return MASK

    replace_secrets(definition, note)
    return places


def values(definition: Definition) -> set[str]:
    """The secrets that are written out, themselves."""
    of_providers = (
        value
        for name, config in definition.providers.items()
        for key, value in config.items()
        if is_written_out(value, is_secret(name, key))
    )
    found = {value for server in definition.mcp_servers.values() for _, value in places(server).values()}
    of_servers = {value for value in found if parse(value) is None}
    return {*of_providers, *of_servers, *map(unquote, of_servers)} - {MASK}


def is_secret(provider: str, key: str) -> bool:
    """Whether a key of a provider's configuration holds a secret; by its name if the key is unknown."""
    info = PROVIDERS.get(provider)
    known = {value.key: value.secret for value in info.config_values} if info else {}
    return known.get(key, says_secret(key))


def is_written_out(value: str, is_secret: bool) -> bool:
    """Whether a value is a secret itself, not a reference to one.

    Args:
        is_secret: it is one by its key.
    """
    return bool(value and (is_secret or has_form(value)) and parse(value) is None)
