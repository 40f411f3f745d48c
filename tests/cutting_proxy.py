"""A proxy before a PostgreSQL server that cuts a connection in its next COMMIT."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path

COMMIT = b"COMMIT\0"


class Cut(Enum):
    """When the client loses its connection."""

    BEFORE = auto()
    """The server never gets the COMMIT."""
    AFTER = auto()
    """The server has committed, and its answer is lost."""
    DURING = auto()
    """The server gets the COMMIT only when the client has connected again, and waits for the lock."""


class CuttingProxy:
    """Passes on what clients and the server say; see `cut`."""

    def __init__(self, server: Path, home: Path) -> None:
        self._server = server
        self._home = home
        self._next: Cut | None = None
        self._later = 0
        self._asked_again = threading.Event()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(home / ".s.PGSQL.5432"))
        self._listening.listen()
        self._open: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str, user: str) -> str:
        """The URL of a database behind it."""
        return f"postgresql://{user}@/{database}?host={self._home}"

    def cut(self, when: Cut, *, later: int = 0) -> None:
        """Cut the connection on which the next COMMIT comes, or one so many later."""
        self._next, self._later = when, later

    def close(self) -> None:
        """Cut all connections."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                self._open += [client, server]
                is_cut = threading.Event()
                for step in (self._ask, self._answer):
                    threading.Thread(target=step, args=(client, server, is_cut), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, is_cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if COMMIT in data and self._next:
                    if not self._later:
                        is_cut.set()
                        self._commit(client, server, data, self._next)
                        return
                    self._later -= 1
                server.sendall(data)
                if b"pg_advisory_xact_lock" in data:
                    self._asked_again.set()
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _commit(self, client: socket.socket, server: socket.socket, data: bytes, cut: Cut) -> None:
        self._next = None
        if cut is Cut.BEFORE:
            server.shutdown(socket.SHUT_RDWR)
        elif cut is Cut.AFTER:
            server.sendall(data)  # the answer ends the client's connection
        else:
            self._asked_again.clear()
            client.shutdown(socket.SHUT_RDWR)
            self._asked_again.wait()
            server.sendall(data)

    def _answer(self, client: socket.socket, server: socket.socket, is_cut: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(65_536)) and not is_cut.is_set():
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting_proxy(server: Path) -> Iterator[CuttingProxy]:
    """A proxy before the server that listens on a socket."""
    with tempfile.TemporaryDirectory(prefix="wb-proxy-") as home:
        proxy = CuttingProxy(server, Path(home))
        try:
            yield proxy
        finally:
            proxy.close()
