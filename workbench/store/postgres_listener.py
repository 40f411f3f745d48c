"""Listens for the commits of all processes: PostgreSQL notifies of each that has events."""

from __future__ import annotations

import logging
import os
import selectors
import threading
from contextlib import closing

import psycopg

from workbench.errors import WorkbenchError
from workbench.store.postgres_connection import Connector, PostgresConnection

AGAIN_SECONDS = 1.0
"""How long it waits before it tries again to listen."""

log = logging.getLogger(__name__)


class Listener:
    """Counts the notifications, on a connection and in a thread of its own from when it is first asked."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._heard = 0
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed, self._close = os.pipe()

    @property
    def heard(self) -> int:
        """A number that changes with each notification, and when some may have been missed."""
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="workbench-listen", daemon=True)
                    self._thread.start()
        return self._heard

    def close(self) -> None:
        """End listening."""
        os.write(self._close, b".")
        if self._thread is not None:
            self._thread.join()
        os.close(self._closed)
        os.close(self._close)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._closed, selectors.EVENT_READ)
            while not selector.select(0):
                try:
                    with closing(self._connector.connect()) as connection:
                        self._listen(connection, selector)
                except (psycopg.Error, WorkbenchError):
                    log.info("there is no connection to listen on; trying again", exc_info=True)
                    selector.select(AGAIN_SECONDS)

    def _listen(self, connection: PostgresConnection, selector: selectors.BaseSelector) -> None:
        """Count until the connection is lost or this is closed."""
        connection.execute("LISTEN workbench")
        self._heard += 1  # what came before is not notified
        raw, socket = connection.raw.pgconn, connection.raw.pgconn.socket  # which a lost connection no longer says
        selector.register(socket, selectors.EVENT_READ)
        try:
            while all(key.fd != self._closed for key, _ in selector.select()):
                raw.consume_input()
                while raw.notifies() is not None:
                    self._heard += 1
        finally:
            selector.unregister(socket)
