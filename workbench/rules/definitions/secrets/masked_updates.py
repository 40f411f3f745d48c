"""Updates by clients that were shown a masked configuration: in them, `MASK` stands for the secret that is stored.

It does so only while the secret goes where it went before: who cannot read a secret must not send it elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import BadInput
from workbench.rules.definitions.mcp_servers import ToolRule
from workbench.rules.definitions.providers import ADDRESSES
from workbench.rules.definitions.secrets.of_servers import Server, SpanPlace, places, rewritten, values_of, with_values
from workbench.rules.definitions.secrets.references import variable
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
        "stored secret only as long as its program or address stays the same.",
        key=name,
    )
