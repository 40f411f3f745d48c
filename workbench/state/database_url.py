"""Where the project's PostgreSQL database is, as libpq takes it: a URL, or keywords and values.

This reads both forms only to know the secrets in them, and to show them without; libpq itself connects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from pydantic_core import CoreSchema, core_schema

from workbench.errors import BadInput
from workbench.state import settings_file

VARIABLE = "WORKBENCH_DATABASE_URL"
OLDEST_SERVER = 14
"""The oldest version of PostgreSQL that can have a store."""
SCHEMES = ("postgresql://", "postgres://")
SECRET = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
"""Keywords of libpq whose value is secret."""
PASSWORD_VARIABLE = "PGPASSWORD"
OF_LIBPQ = re.compile(r"PG[A-Z]+")
"""libpq's own variables."""
_PAIR = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:'((?:[^'\\]|\\.)*)'(?=\s|$)|((?!')(?:[^\s\\]|\\.)*)(?=\s|$))", re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_URL = re.compile(r"(?:(?P<user>[^/?@]*)@)?(?P<hosts>[^/?@]*)(?:/(?P<dbname>[^?@]*))?(?:\?(?P<more>.*))?", re.DOTALL)
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>\d*))?")
_SAFE_IN_PATHS = "/:,._-"
_PORT = re.compile(r"\d{1,5}")


class DatabaseUrl:
    """A database's address. `str` and `repr` show it as a URL without its secrets.

    Args:
        conninfo: the address with its secrets, in either form.

    Raises:
        ValueError: it has neither form. Its text is not repeated, since it may have a password.
    """

    __slots__ = ("_keywords", "conninfo")

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo.strip()
        """The address with its secrets, as libpq takes it."""
        self._keywords = _parse(self.conninfo)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets in it."""
        return tuple(value for keyword, value in self._keywords.items() if keyword in SECRET and value)

    def __str__(self) -> str:
        shown = {keyword: value for keyword, value in self._keywords.items() if keyword not in SECRET}
        user, dbname, host = (shown.pop(keyword, "") for keyword in ("user", "dbname", "host"))
        hosts, ports = host.split(","), shown.pop("port", "").split(",")
        if host.startswith(("/", "@")):  # the directory of a socket
            shown = {"host": host, **shown}
            hosts = [""]
        if len(ports) == 1:
            ports *= len(hosts)
        places = ",".join(_place(*place) for place in zip(hosts, ports, strict=False))
        more = "&".join(f"{keyword}={quote(value, _SAFE_IN_PATHS)}" for keyword, value in shown.items())
        path = f"/{quote(dbname, '')}" if dbname or more else ""
        return f"{SCHEMES[0]}{quote(user, '')}{'@' * bool(user)}{places}{path}{'?' * bool(more)}{more}"

    def __repr__(self) -> str:
        return f"DatabaseUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabaseUrl) and self._keywords == other._keywords

    def __hash__(self) -> int:
        return hash(frozenset(self._keywords.items()))

    @classmethod
    def of(cls, value: object) -> Self | None:
        """The address in a setting; None if it is empty.

        Raises:
            ValueError: it is no address.
        """
        if value is None or isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise ValueError("it should be a text")
        return cls(value) if value.strip() else None

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.of, serialization=core_schema.to_string_ser_schema())


def secrets_of(environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """The secrets of databases among the variables of a process."""
    try:
        url = DatabaseUrl.of(environment.get(VARIABLE))
    except ValueError:
        url = None
    yield from url.secrets if url else ()
    if password := environment.get(PASSWORD_VARIABLE):
        yield password


def require_no_password(file: Path, url: object) -> None:
    """Refuse a password in a file that is made to be committed.

    Raises:
        BadInput: ``BAD_SETTINGS``.
    """
    try:
        has_one = (address := DatabaseUrl.of(url)) is not None and bool(address.secrets)
    except ValueError:  # whoever uses the address says what is wrong with it
        return
    if has_one:
        raise BadInput(
            "BAD_SETTINGS",
            f"{settings_file.place(file, 'database_url')}: database_url has a password, which would be committed with "
            "the file. Take it out of the line, and put it into ~/.pgpass (or the file that PGPASSFILE names), or the "
            f"whole address into {VARIABLE} or your own settings. If it was committed, change the password.",
        )


def _parse(conninfo: str) -> dict[str, str]:
    """The keywords and their values.

    Raises:
        ValueError: it has neither form.
    """
    if not conninfo.isprintable():
        raise ValueError("it should have no characters that cannot be printed")
    for scheme in SCHEMES:
        if conninfo.startswith(scheme):
            return _parse_url(conninfo.removeprefix(scheme))
    if "://" in conninfo.partition("=")[0]:
        raise ValueError(f"a URL of a database begins with {SCHEMES[0]}")
    return _parse_pairs(conninfo)


def _parse_pairs(text: str) -> dict[str, str]:
    keywords, end = dict[str, str](), 0
    while end < len(text):
        if (pair := _PAIR.match(text, end)) is None:
            raise ValueError(
                f"it should be a URL that begins with {SCHEMES[0]}, or keywords with values as in "
                "`host=db.lab dbname=workbench`, with a value that has spaces in single quotation marks"
            )
        keyword, quoted, plain = pair.groups()
        keywords[keyword] = _ESCAPED.sub(r"\1", plain if quoted is None else quoted)
        end = pair.end()
    return _with_ports(keywords)


def _parse_url(text: str) -> dict[str, str]:
    parts = _URL.fullmatch(text)
    places = [_HOST.fullmatch(place) for place in parts["hosts"].split(",")] if parts else []
    if parts is None or not all(places):
        raise ValueError(
            "its hosts cannot be told from a user and a password. Write them as in "
            f"{SCHEMES[0]}user@db.lab:5432/workbench, an IPv6 address in [ ], and @, :, /, ? and % of a password as "
            "%40, %3A, %2F, %3F and %25"
        )
    hosts = [place for place in places if place is not None]
    user, _, password = (parts["user"] or "").partition(":")
    keywords = {"user": user, "password": password, "dbname": parts["dbname"] or ""}
    keywords["host"] = ",".join(place["host"].strip("[]") for place in hosts)
    keywords["port"] = ",".join(place["port"] or "" for place in hosts).strip(",")
    for pair in (parts["more"] or "").split("&") if parts["more"] else ():
        keyword, equals, value = pair.partition("=")
        if not equals or "=" in value:
            raise ValueError("what follows the ? of the URL should be keywords with values, as in sslmode=verify-full")
        keywords[keyword] = value
    return _with_ports({keyword: unquote(value) for keyword, value in keywords.items() if value})


def _with_ports(keywords: dict[str, str]) -> dict[str, str]:
    """The keywords, whose ports are numbers."""
    for port in filter(None, keywords.get("port", "").split(",")):
        if not _PORT.fullmatch(port) or not 0 < int(port) < 65_536:
            raise ValueError("a port should be a number up to 65535")
    return keywords


def _place(host: str, port: str) -> str:
    """A host with its port in a URL."""
    return (f"[{host}]" if ":" in host else quote(host, _SAFE_IN_PATHS)) + (f":{port}" if port else "")
