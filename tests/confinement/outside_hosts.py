"""Hosts outside of a box, on loopback, with names that only a test's resolver knows."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GREETING = "greetings from outside\n"

NAMES = {
    "good.example": ["127.0.0.1"],
    "deep.sub.good.example": ["127.0.0.1"],
    "private.example": ["127.0.0.2"],
    "two.example": ["127.0.0.1", "127.0.0.2"],
    "keys.example": ["169.254.169.254"],
}
"""What the resolver of the tests knows; it has no other name."""


async def resolve(name: str, port: int) -> Sequence[str]:
    """Look up a name of the tests."""
    return NAMES.get(name, [])


@dataclass
class Host:
    """A web server that has a greeting and a repository, and notes who came."""

    port: int
    visits: list[str] = field(default_factory=list)


@contextmanager
def host(files: Path, certificate: Path | None = None) -> Iterator[Host]:
    """A web server on all of loopback, by TLS if it has a certificate."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            made.visits.append(f"{self.connection.getsockname()[0]} {self.headers['Host'].partition(':')[0]}")

    with ThreadingHTTPServer(("0.0.0.0", 0), partial(Handler, directory=str(files))) as server:
        made = Host(server.server_address[1])
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def serve_files(directory: Path) -> Path:
    """A greeting, and a repository that git can read from a web server."""
    directory.mkdir()
    (directory / "hi").write_text(GREETING)
    repository = directory / "r.git"
    for arguments in (
        ["init", "-q", "--bare", "-b", "main", str(repository)],
        ["-C", str(repository), "update-server-info"],
    ):
        subprocess.run(["git", *arguments], check=True)
    (repository / "info" / "refs").write_text(f"{'a' * 40}\trefs/heads/main\n")
    return directory


def certify(directory: Path, name: str) -> Path:
    """A certificate for a host and what is below it, which is its own authority, with its key, in one file."""
    path = directory / "certificate.pem"
    key = directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},DNS:*.{name}"),
            *("-keyout", str(key), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + key.read_text())
    return path


def unused_port() -> int:
    """A port that nobody serves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
