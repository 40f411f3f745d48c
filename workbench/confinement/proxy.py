"""A proxy for boxes that have no network of their own: it takes their connections on a port of this machine.

Everything on this machine can reach that port, so it asks for a password, which only the command is given. Names and
addresses are checked as for other boxes. Source: RFC 9110, CONNECT and absolute-form requests.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from workbench.confinement.outside import Outside, Streams, Unreached

HEAD_SECONDS = 30.0
"""How long a client may take to say where it wants to go."""
_USER = "box"
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_HOP = (b"proxy-", b"connection:", b"keep-alive:")
_LOCAL = "localhost,127.0.0.1,::1"


@dataclass
class Proxy:
    """A proxy on loopback, between `start` and `close`."""

    outside: Outside
    _password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen; the port.

        Raises:
            OSError: this machine has no port.
        """
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def environment(self, port: int) -> Mapping[str, str]:
        """The variables by which programs find the proxy; they reach loopback without it."""
        url = f"http://{_USER}:{self._password}@127.0.0.1:{port}"
        both = dict.fromkeys(_VARIABLES, url) | {"NO_PROXY": _LOCAL}
        return both | {name.lower(): value for name, value in both.items()} | {"NODE_USE_ENV_PROXY": "1"}

    def close(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.outside.serve(Streams(reader, writer), self._serve)

    async def _serve(self, client: Streams) -> None:
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        line, *headers = head[:-4].split(b"\r\n")
        words = line.split(b" ")
        if not self._knows_password(headers):
            await _answer(client, 407, "Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="box"\r\n')
            return
        method, target, version = words if len(words) == 3 else (b"", b"", b"")
        url = _split(target, is_authority=method == b"CONNECT")
        if url is None:
            await _answer(client, 400, "Bad Request")
            return
        assert url.hostname is not None
        try:
            server = await self.outside.connect(url.hostname, url.port or 80)
        except Unreached as error:
            code, name = (403, "Forbidden") if error.refusal.opens else (502, "Bad Gateway")
            await _answer(client, code, name, text=f"{error}\n")
            return
        if method == b"CONNECT":
            client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self.outside.join(client, server)
        else:
            path = url._replace(scheme="", netloc="").geturl() or "/"
            passed = [header for header in headers if not header.lower().startswith(_HOP)]
            first = [b" ".join((method, path.encode("ascii"), version)), *passed, b"Connection: close", b"", b""]
            await self.outside.join(client, server, b"\r\n".join(first))

    def _knows_password(self, headers: list[bytes]) -> bool:
        expected = b"Basic " + b64encode(f"{_USER}:{self._password}".encode())
        values = [value.strip() for name, _, value in (line.partition(b":") for line in headers) if _is_password(name)]
        return len(values) == 1 and secrets.compare_digest(values[0], expected)


def _is_password(name: bytes) -> bool:
    return name.strip().lower() == b"proxy-authorization"


def _split(target: bytes, *, is_authority: bool) -> SplitResult | None:
    """Where a request wants to go: to an authority, or to a page by HTTP without TLS; None: nowhere."""
    try:
        text = target.decode("ascii")
        url = urlsplit(f"//{text}" if is_authority else text)
        is_right = bool(url.hostname) and (url.port is not None if is_authority else url.scheme == "http")
    except ValueError:  # also a port that is none
        return None
    return url if is_right else None


async def _answer(client: Streams, code: int, name: str, headers: str = "", text: str = "") -> None:
    body = text.encode()
    head = f"HTTP/1.1 {code} {name}\r\n{headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    client.writer.write(head.encode("ascii") + body)
    await client.writer.drain()
