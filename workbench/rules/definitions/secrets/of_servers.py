"""Where secrets, or references to them, stand in the configuration of an MCP server: in variables and headers, in the
values of flags, and in addresses. Nothing is resolved here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.rules.definitions.mcp_servers import HttpServer, StdioServer
from workbench.rules.definitions.secrets.references import parse
from workbench.rules.secrets.forms import MASK, form_spans, has_form, is_opaque, says_secret, secrets_in

Server = StdioServer | HttpServer

_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_PAIR = re.compile(r"(?P<name>-{0,2}[A-Za-z][\w.-]*)(?:=|:(?!//)[ \t]*)(?=.)", re.DOTALL)
_BEARER = re.compile(r"Bearer +\S+", re.IGNORECASE)
_ADDRESS = re.compile(r"(?!(?:env|file|op|keyring):)[A-Za-z][\w+.-]*://")
_USER = re.compile(r"(?P<user>[^/?#:@\s]*)(?::(?P<password>env://\w+|[^/?#\s]*))?@")
_PATH = re.compile(r"(?<=/)(?:env://\w+|[^/?#\s]+)")
_QUERY = re.compile(r"[?&#;](?P<name>[^=&#;\s]+)=(?P<value>[^&#\s]+)")
_KINDS = frozenset(("oauth", "oauth2", "none", "basic", "bearer", "token", "true", "false", "auto", "off", "on"))
"""What an option such as ``--auth`` says that is no secret."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text that is a secret, the mask of one, or a reference to one.

    Args:
        name: the flag, key, variable or header that it is the value of; empty for one that is known by its form.
        is_certain: by its name or form; others are only long and nothing to read.
        is_in_url: within an address, where it is percent-encoded.
        is_whole: a reference may stand in its place; within other texts it is not found.
    """

    start: int
    end: int
    name: str = ""
    is_certain: bool = True
    is_in_url: bool = False
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class SpanPlace:
    """Where a span is in a server.

    Args:
        field: ``env``, ``headers``, ``args`` or ``url``.
        key: the variable or header; the number of the argument; empty for the address.
        number: which span of the text it is.
    """

    field: str
    key: str
    number: int
    span: Span

    @property
    def name(self) -> str:
        """What a person calls it."""
        if self.field in ("env", "headers"):
            return self.key
        return ".".join(filter(None, (self.field, self.span.name or self.key)))


Replace = Callable[[SpanPlace, str], str]
"""What stands in place of a span, which is one of those at a place."""


def rewritten(server: Server, replace: Replace, *, whole: bool = False) -> Server:
    """The server with each secret, mask, and reference to a secret replaced.

    Args:
        whole: replace arguments as a whole in which no reference can stand in place of their secrets.
    """

    def of(field: str, key: str, text: str, spans: Iterable[Span]) -> str:
        pieces, end, spans = list[str](), 0, list(spans)
        if whole and not all(span.is_whole for span in spans):
            spans = [Span(0, len(text))]
        for number, span in enumerate(spans):
            value = text[span.start : span.end]
            pieces += [text[end : span.start], replace(SpanPlace(field, key, number, span), value)]
            end = span.end
        return "".join((*pieces, text[end:]))

    def values(field: str, found: dict[str, str]) -> dict[str, str]:
        return {key: of(field, key, value, _of_value(key, value)) for key, value in found.items()}

    update: dict[str, Any]
    if isinstance(server, StdioServer):
        flags = ("", *(word if _FLAG.fullmatch(word) else "" for word in server.args))
        args = [
            of("args", str(number), word, _of_argument(word, flag))
            for number, (word, flag) in enumerate(zip(server.args, flags, strict=False))
        ]
        update = {"env": values("env", server.env), "args": args}
    else:
        url = of("url", "", server.url, _of_address(server.url))
        update = {"headers": values("headers", server.headers), "url": url}
    return server.model_copy(update=update)


def places(server: Server) -> dict[tuple[str, str, int], tuple[SpanPlace, str]]:
    """The places of secrets, masks and references, with what stands there."""
    found: dict[tuple[str, str, int], tuple[SpanPlace, str]] = {}

    def note(place: SpanPlace, value: str) -> str:
        found[place.field, place.key, place.number] = place, value
        return value

    rewritten(server, note)
    return found


def written_out(server: Server) -> list[str]:
    """The names of secrets that are not references."""
    return [place.name for place, value in places(server).values() if parse(value) is None]


def values_of(server: Server) -> Mapping[str, str]:
    """The variables or headers of a server."""
    return server.env if isinstance(server, StdioServer) else server.headers


def with_values(server: Server, values: dict[str, str]) -> Server:
    """The server with other variables or headers."""
    return server.model_copy(update={"env" if isinstance(server, StdioServer) else "headers": values})


def _of_value(name: str, value: str) -> Iterator[Span]:
    """A variable or a header, which is a secret as a whole."""
    is_certain = says_secret(name) or has_form(value) or _BEARER.fullmatch(value) is not None
    if value and (is_certain or value == MASK or parse(value) is not None or any(secrets_in(value, name))):
        yield Span(0, len(value), name, is_certain)


def _of_argument(text: str, flag: str) -> Iterator[Span]:
    """An argument: all of it, the value in ``--flag=value`` or ``Header: value``, or parts of an address.

    Args:
        flag: the argument before it, if that is a flag.
    """
    start, name = 0, "" if text.startswith("-") else flag.lstrip("-")
    while True:
        value = text[start:]
        if parse(value) is not None or (value and _is_secret(name, value)):
            yield Span(start, len(text), name)
            return
        if _ADDRESS.match(value) and not any(map(str.isspace, value)):
            yield from _of_address(text, start)
            return
        pair = _PAIR.match(text, start)
        if pair is None:
            break
        start, name = pair.end(), pair["name"].lstrip("-")
    for start, end in form_spans(text):
        yield Span(start, end, is_whole=(start, end) == (0, len(text)))


def _is_secret(name: str, value: str) -> bool:
    return value == MASK or (says_secret(name) and value.lower() not in _KINDS)


def _of_address(text: str, start: int = 0) -> Iterator[Span]:
    """The parts of an address that begins at `start`: user and password, parts of its path and of its query."""
    host = text.index("://", start) + 3 if "://" in text[start:] else start
    path, found = host, list[Span]()
    if user := _USER.match(text, host):
        path = user.end()
        if user["password"]:
            found.append(Span(*user.span("password"), "password", is_in_url=True))
        elif user["user"] and _is_odd(user["user"]):
            found.append(Span(*user.span("user"), "user", is_in_url=True))
    query = re.compile(r"[?#]|$").search(text, path)
    end = query.start() if query else len(text)
    for part in _PATH.finditer(text, path, end):
        if _is_odd(part[0]):
            found.append(Span(*part.span(), "", has_form(part[0]), is_in_url=True))
    for pair in _QUERY.finditer(text, end):
        name, value = pair["name"], pair["value"]
        if _is_secret(name, value) or _is_odd(value):
            is_certain = says_secret(name) or has_form(value)
            found.append(Span(*pair.span("value"), name, is_certain, is_in_url=True))
    yield from sorted(found, key=lambda span: span.start)


def _is_odd(value: str) -> bool:
    return value == MASK or parse(value) is not None or has_form(value) or is_opaque(value.lstrip("@"))
