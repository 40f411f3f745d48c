"""Updates by clients that were shown a masked configuration: in them, `MASK` stands for the secret that is stored.

It does so only while the secret goes where it went before: who cannot read a secret must not send it elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from workbench.errors import BadInput
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer, ToolRule
from workbench.rules.definitions.providers import ADDRESSES
from workbench.rules.definitions.secrets import is_written_out, values_of, with_values
from workbench.rules.secrets.forms import MASK, says_secret

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


def mcp_server(
    update: StdioServer | HttpServer, stored: StdioServer | HttpServer | None = None
) -> StdioServer | HttpServer:
    """The new configuration of an MCP server, with the stored secrets in place of masks.

    Args:
        stored: the present one; None if there is none.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``: no such secret is stored, or something else changes than secrets and the
            rules of tools; `details.key`.
    """
    if stored is None:
        return with_values(update, _unmasked(values_of(update), {}))
    known = values_of(stored)
    secrets = {key for key, value in known.items() if is_written_out(value, says_secret(key))}
    is_same_place = _destination(update, secrets) == _destination(stored, secrets)
    return with_values(update, _unmasked(values_of(update), known if is_same_place else {}))


def _destination(server: StdioServer | HttpServer, secrets: Collection[str]) -> StdioServer | HttpServer:
    """What decides where the secrets of a server go: other variables as well, such as PATH."""
    others = {key: value for key, value in values_of(server).items() if key not in secrets}
    return with_values(server, others).model_copy(update=_TOOL_RULES)


def _unmasked(config: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    for key, value in config.items():
        if value == MASK and key not in stored:
            raise BadInput(
                "INVALID_CONFIGURATION",
                f"{key} is masked. Give the secret, or a reference to it such as env://{key}: a mask stands for the "
                "stored secret only as long as its program or address stays the same.",
                key=key,
            )
    return {key: stored[key] if value == MASK else value for key, value in config.items()}
