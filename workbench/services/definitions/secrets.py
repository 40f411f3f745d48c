"""The secrets of a definition, read where its references say, for the program or server that was trusted with them."""

from __future__ import annotations

import asyncio
import re
from asyncio import to_thread
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from workbench.definition_files.secret_sources import resolve
from workbench.errors import Refused, Unavailable
from workbench.model import Level
from workbench.ops import Caller, Ctx
from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets.of_servers import SpanPlace, rewritten
from workbench.rules.definitions.secrets.references import parse
from workbench.rules.definitions.secrets.written_out import is_secret
from workbench.rules.secrets.forms import secrets_in
from workbench.rules.secrets.mask import Mask
from workbench.services.access import secret_marks

T = TypeVar("T")

SECONDS = 60.0
"""How long reading the secrets of a definition may take: a keyring or 1Password may wait for the person."""
_SCHEME = re.compile(r"(Bearer|Basic|Token) +", re.IGNORECASE)
_NOT_IN_HEADERS = re.compile(r"[^\t\x20-\x7e]")


@dataclass(frozen=True, slots=True, repr=False)
class Resolved:
    """The providers and servers of a definition with their secrets. It has no representation that shows them.

    Args:
        values: the secrets, for `redacted`.
    """

    providers: Mapping[str, Mapping[str, str]]
    mcp_servers: Mapping[str, StdioServer | HttpServer]
    values: frozenset[str]

    def redacted(self, text: str) -> str:
        """A text that a program or server wrote, with its secrets masked."""
        return Mask(self.values).text(text)


async def resolved(
    ctx: Ctx,
    definition: Definition,
    *,
    providers: Collection[str] | None = None,
    servers: Collection[str] | None = None,
) -> Resolved:
    """Read the secrets of a definition. Call `trust.require` first.

    Args:
        providers: only these; None: all.
        servers: only these; None: all.

    Raises:
        Unavailable: ``SECRET_UNRESOLVED``; `details.place` and `details.reference` say which.
    """
    resolution = await _in_time(lambda: _resolve(definition, ctx.settings.project, providers, servers))
    await secret_marks.learn(ctx, resolution.values)
    return resolution


async def configuration(ctx: Ctx, provider: str, config: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a provider with its secrets, for the operator.

    Raises:
        Refused: ``FORBIDDEN``. Unavailable: ``SECRET_UNRESOLVED``.
    """
    require_operator(ctx.caller)
    return await _in_time(lambda: _Reader(ctx.settings.project).read_provider(provider, config))


def require_operator(caller: Caller) -> None:
    """Refuse everybody but the operator.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    if caller.level is not Level.OPERATOR:
        raise Refused("FORBIDDEN", "Only the operator may read the secrets of a configuration, or have them sent.")


async def _in_time(reading: Callable[[], T]) -> T:
    try:
        return await asyncio.wait_for(to_thread(reading), SECONDS)
    except TimeoutError:
        raise Unavailable(
            "SECRET_UNRESOLVED", f"The secrets could not be read within {SECONDS:g} s. Unlock the keyring, or sign in."
        ) from None


def _resolve(
    definition: Definition, project: Path, providers: Collection[str] | None, servers: Collection[str] | None
) -> Resolved:
    reader = _Reader(project)
    configs = {
        name: reader.read_provider(name, config)
        for name, config in definition.providers.items()
        if providers is None or name in providers
    }
    server_configs = {
        name: reader.read_server(f"mcpServers.{name}", server)
        for name, server in definition.mcp_servers.items()
        if servers is None or name in servers
    }
    return Resolved(configs, server_configs, frozenset(reader.values))


class _Reader:
    """Reads secrets and collects them."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self.values: set[str] = set()

    def read_provider(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """The configuration of a provider with its secrets."""
        return {
            key: self._value(f"providers.{name}.{key}", value, is_secret(name, key)) for key, value in config.items()
        }

    def read_server(self, place: str, server: StdioServer | HttpServer) -> StdioServer | HttpServer:
        """A server with the secrets in its variables or headers, its arguments or its address."""

        def read(where: SpanPlace, value: str) -> str:
            name = f"{place}.{where.field}.{where.span.name or where.key}".rstrip(".")
            secret = self._value(name, value, is_secret=True)
            if where.span.is_in_url:
                self.values.add(unquote(secret))
            return quote(secret, safe="") if where.span.is_in_url and secret != value else secret

        resolved = rewritten(server, read)
        for name, value in resolved.headers.items() if isinstance(resolved, HttpServer) else ():
            if _NOT_IN_HEADERS.search(value):
                header = f"{place}.headers.{name}"
                reason = "its secret has characters that no header can have, such as a line break"
                raise Unavailable("SECRET_UNRESOLVED", f"{header}: {reason}.", place=header)
        return resolved

    def _value(self, place: str, value: str, is_secret: bool) -> str:
        reference = parse(value)
        if reference is None:
            self.values.update((value, _SCHEME.sub("", value), *secrets_in(value)) if is_secret else ())
            return value
        try:
            secret = resolve(reference, self._project)
        except Unavailable as error:
            raise Unavailable(error.code, f"{place}: {error.message}", **error.details, place=place) from None
        self.values.add(secret)
        return reference.scheme + secret
