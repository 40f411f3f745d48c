"""How the command line reaches a project: through its running server, or else through its store."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from workbench.errors import Conflict, Refused
from workbench.model import ServerInfo
from workbench.state.settings import Settings
from workbench.trust import state_directory

if TYPE_CHECKING:
    import duckdb

    from workbench.analytics.reports import Report


class OperatorClient(Protocol):
    """What commands need: operations, called as the operator."""

    settings: Settings

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the operation raises.
        """
        ...

    def find_server(self) -> ServerInfo | None:
        """The server of the project, if it answers."""
        ...

    def require_operator(self, command: str) -> None:
        """Refuse an agent a command that opens the store itself, and shows or changes all of it.

        Raises:
            Refused: ``FORBIDDEN``.
        """
        ...

    def report(self, name: str, /, *of: object, by: str | None = None) -> Report:
        """Make a standard report; see `workbench.analytics.reports.report`."""
        ...

    def create_project(self) -> None:
        """Create the project unless there is one.

        Raises:
            WorkbenchError: see `Workbench.open`.
        """
        ...


class ProjectClient:
    """Calls the server that `server.json` names, if that one answers; otherwise opens the store.

    Creates no project: where there is none, operations that read find nothing, and others fail with ``NO_PROJECT``.
    A context manager, whose end closes it.

    Args:
        project: the root of the project; by default it is found from the current directory.
        token: an agent's token, to make calls as that agent, through the server only.
    """

    def __init__(self, project: Path | None = None, token: str | None = None) -> None:
        self._project = project
        self._token = token
        self._runner = asyncio.Runner()  # one for all calls: Ctrl-C between two meets no loop that is being made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    @cached_property
    def settings(self) -> Settings:
        """The settings of the project, which must exist.

        Raises:
            BadInput: ``NOT_A_DIRECTORY``, ``BAD_SETTINGS``.
        """
        return Settings.load(self._project)

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """See `OperatorClient.call`."""
        work = self._call(name, arguments)
        try:
            return self._runner.run(work)
        finally:
            work.close()  # Ctrl-C may come before it has begun

    def find_server(self) -> ServerInfo | None:
        """See `OperatorClient.find_server`."""
        from workbench.client.discovery import find_server

        state_directory.check(self.settings.project)
        server = self._runner.run(find_server(self.settings.server_file))
        return server.info if server else None

    def require_operator(self, command: str) -> None:
        """See `OperatorClient.require_operator`."""
        if self._token and not self._token.startswith("wbo_"):
            raise Refused(
                "FORBIDDEN",
                f"`workbench {command}` is only for the operator, and WORKBENCH_TOKEN has an agent's token. Use "
                "commands that call operations, such as `workbench tasks`.",
            )

    def report(self, name: str, /, *of: object, by: str | None = None) -> Report:
        """See `OperatorClient.report`."""
        from workbench.analytics.live import Live, read_closed
        from workbench.analytics.reports import report

        self.require_operator("report")
        live = Live()

        def ask(query: str, **options: Any) -> duckdb.DuckDBPyRelation:
            return live.answer(read_closed(live, self.settings), query, **options)

        return report(name, ask, by, of)

    def create_project(self) -> None:
        """See `OperatorClient.create_project`."""
        self._runner.run(self._create())

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from workbench.client import HttpClient, no_server
        from workbench.client.discovery import find_server

        state_directory.check(self.settings.project)
        if (server := await find_server(self.settings.server_file)) and not self._is_too_large(name, arguments):
            async with HttpClient(server.info.url, self._token or server.operator_token) as client:
                return await client.call(name, **arguments)
        if self._token:
            raise no_server(ConnectionError("no server runs in this project"))
        return await self._in_store(name, arguments)

    def _is_too_large(self, name: str, arguments: dict[str, Any]) -> bool:
        """Whether the server would not take the arguments, such as a large file; the operator can open the store."""
        from workbench.client.messages import encoded

        return self._token is None and len(encoded(name, arguments)) > self.settings.max_frame_bytes

    async def _in_store(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from workbench.app import Workbench

        async with Workbench.open(self.settings, create=False) as workbench:
            operation = workbench.catalogue.get(name)
            if operation is not None and not (operation.reads or operation.needs_server or arguments.get("dry_run")):
                state_directory.require(self.settings)
            return await workbench.call(name, **arguments)

    async def _create(self) -> None:
        from workbench.app import Workbench

        async with Workbench.open(self.settings):
            pass


def require_unserved(client: OperatorClient) -> None:
    """Refuse what replaces or compares the whole store while a server has it open.

    Raises:
        Conflict: ``STORE_IN_USE``.
    """
    if (server := client.find_server()) is not None:
        raise Conflict(
            "STORE_IN_USE",
            f"The server at {server.url} (process {server.pid}) uses the store. Stop it first: `workbench stop`, or "
            "where it runs.",
        )
