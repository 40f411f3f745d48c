"""Updates by clients that were shown a masked configuration: in them, `MASK` stands for the secret that is stored.

It does so only while the secret goes where it went before: who cannot read a secret must not send it elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from workbench.errors import BadInput
from workbench.rules.definitions.mcp_servers import ToolRule
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.providers import ADDRESSES
from workbench.rules.definitions.secrets.of_servers import Server, SpanPlace, places, rewritten, values_of, with_values
from workbench.rules.definitions.secrets.references import variable
from workbench.rules.definitions.secrets.written_out import unmasked_texts
from workbench.rules.secrets.forms import MASK

_TOOL_RULES: Mapping[str, Any] = {"tools": {}, "server_tool_defaults": ToolRule()}


def provider_config(config: Mapping[str, str], stored: Mapping[str, str] | None = None) -> dict[str, str]:
    """The new configuration of a provider, with the stored secrets in place of masks.

    Args:
        stored: the present one; None if there is none.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``: no such secret is stored, or the address changes; `details.key`.
    """
    known = stored or {}
    is_same_place = all(config.get(key) in (known.get(key), MASK) for key in ADDRESSES)
    return _unmasked(config, known if is_same_place else {})


def mcp_server(update: Server, stored: Server | None = None) -> Server:
    """The new configuration of an MCP server, with the stored secrets in place of masks.

    Args:
        stored: the present one; None if there is none.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``: no such secret is stored, or something else changes than secrets and the
            rules of tools; `details.key`.
    """
    masks = {key: place.name for key, (place, value) in places(update).items() if value == MASK}
    if not masks:
        return update
    known = {key: value for key, (_, value) in places(stored).items()} if stored else {}
    if missing := next((name for key, name in masks.items() if key not in known), None):
        raise _masked(missing)

    def unmasked(place: SpanPlace, value: str) -> str:
        return known[place.field, place.key, place.number] if value == MASK else value

    made = rewritten(update, unmasked)
    if stored is None or _destination(made, stored) != _destination(stored, stored):
        raise _masked(next(iter(masks.values())))
    return made


def restored(version: Definition, present: Definition) -> Definition:
    """A former version of a definition, with the present secrets and references in place of masks.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``: nothing stands for a mask now, or it would go elsewhere; `details.key`.
    """
    providers = {name: dict[str, str]() for name in version.providers}
    for name, config in version.providers.items():
        with _at(f"providers.{name}"):
            providers[name] = provider_config(config, present.providers.get(name))
    servers = dict(version.mcp_servers)
    for name, server in version.mcp_servers.items():
        with _at(f"mcpServers.{name}"):
            servers[name] = mcp_server(server, present.mcp_servers.get(name))
    made = version.model_copy(update={"providers": providers, "mcp_servers": servers})
    made = unmasked_texts(made, present)
    require_no_masks(made, present)
    return made


@contextmanager
def _at(place: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise _no_value(f"{place}.{error.details['key']}") from None


def require_no_masks(definition: Definition, present: Definition | None = None) -> None:
    """Refuse a definition with a mask that stands for nothing.

    Args:
        present: what it says already may stay.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``; `details.key` is the place.
    """
    known = _texts_of(present) if present else {}
    for place, text in _texts_of(definition).items():
        if MASK in text and text != known.get(place):
            raise _no_value(place)


def _texts_of(definition: Definition) -> dict[str, str]:
    """All texts of a definition that may have masks, by their places."""
    sections: dict[str, Any] = {
        "metadata": {"description": definition.metadata.description},
        "prompt": definition.prompt,
        "settings": definition.settings.model_extra or {},
        "rules": {one.name: one.text for one in definition.rules},
        "references": {one.name: one.text for one in definition.references},
        "tools": {one.name: one.prompt for one in definition.tools},
        "providers": definition.providers,
        "mcpServers": {name: _rest(one) for name, one in definition.mcp_servers.items()},
    }
    return dict(_leaves(sections, ""))


def _rest(server: Server) -> dict[str, Any]:
    return server.model_dump(mode="json", include={"command", "args", "cwd", "url", "env", "headers"})


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(one, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{place}.{number}")


def _no_value(place: str) -> BadInput:
    return BadInput(
        "INVALID_CONFIGURATION",
        f"{place} is masked there, and nothing here stands for the mask. Set {place} to the secret, or to a reference "
        "to it, and try again.",
        key=place,
    )


def _destination(server: Server, stored: Server) -> Server:
    """What decides where the secrets of a server go, without what is secret: other variables as well, such as PATH."""
    secrets = {place.key for place, _ in places(stored).values() if place.span.is_certain}
    hidden = rewritten(server, lambda place, value: MASK if place.span.is_certain else value)
    others = {key: value for key, value in values_of(hidden).items() if key not in secrets}
    return with_values(hidden, others).model_copy(update=_TOOL_RULES)


def _unmasked(config: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    for key, value in config.items():
        if value == MASK and key not in stored:
            raise _masked(key)
    return {key: stored[key] if value == MASK else value for key, value in config.items()}


def _masked(name: str) -> BadInput:
    return BadInput(
        "INVALID_CONFIGURATION",
        f"{name} is masked. Give the secret, or a reference to it such as {variable(name)}: a mask stands for the "
        "stored secret only as long as its program with its variables, or its address, stays the same.",
        key=name,
    )
