"""The worker's calls to the server: repeated while the server is away or in trouble, also at another address."""

from __future__ import annotations

import logging

from workbench.client import HttpClient, McpClient
from workbench.client.connection import ProjectConnection, ServerClient
from workbench.client.project_server import ProjectServer
from workbench.errors import TooMany, Unavailable, WorkbenchError
from workbench.worker.startup import WorkerConfig

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before a call is repeated; the last one again and again."""

log = logging.getLogger(__name__)


class Api(ProjectConnection):
    """`await api.call("claim_task")`. An asynchronous context manager.

    A call is repeated for `patience_seconds` while the server is away, restarting or short of something; while the
    worker holds a task, until a server runs; never once the project is removed. A fault inside the server is raised
    after a few tries, because the request may cause it.
    """

    def __init__(self, config: WorkerConfig) -> None:
        def connect(url: str, token: str | None) -> ServerClient:
            if not config.over_mcp:
                return HttpClient(url, token, certificate=config.certificate)
            return McpClient(f"{url}/mcp", token, ProjectServer(url, config.server_file).is_away)

        patience, pauses = config.patience_seconds, RETRY_SECONDS
        super().__init__(
            config.server_file, config.url, config.token, connect=connect, patience=patience, pauses=pauses
        )
        self._project = ProjectServer(config.url, config.server_file)
        self.holds_task = False
        """Whether the worker holds a task: calls then wait for the next server, however long it takes to come."""

    @property
    def url(self) -> str:
        """The address at which the server was last reached."""
        assert self._here is not None, "nothing was called yet"
        return self._here.url

    def server(self) -> str | None:
        """An identifier of the running server, constant without a project's file; None while no server runs."""
        return self._project.nonce()

    def _may_repeat(self, name: str, error: WorkbenchError, tries: int, *, is_late: bool) -> bool:
        waits = not is_late or (self.holds_task and self.server() is None)
        if not (waits and _may_pass(error, tries)) or self._project.is_gone():
            return False
        log.warning("%s: %s; trying again", name, error.message)
        return True


def _may_pass(error: WorkbenchError, tries: int) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, (Unavailable, TooMany)):
        return True
    return error.status == WorkbenchError.status and tries < len(RETRY_SECONDS)
