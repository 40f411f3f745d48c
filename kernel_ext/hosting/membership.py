"""A kernel's part in a project: it serves the project, or follows the process that does, until it leaves.

When the server that it follows has ended, in any way, it serves the project itself, unless another process is quicker:
the project's lock lets only one serve. A stop and a crash are the same to it, so there is nothing to agree with a
process that ends. Calls wait meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from functools import cached_property
from importlib import import_module
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from kernel_ext.hosting.serving import Serving, attach, serve
from workbench.errors import AWAY, NotFound, Unavailable, WorkbenchError
from workbench.model import ServerInfo
from workbench.state.server_file import ServerFile
from workbench.trust import state_directory

if TYPE_CHECKING:
    from workbench.ops import Catalogue
    from workbench.state.settings import Settings
    from workbench.state.shares import Departure, Share

WATCH_SECONDS = 0.25
"""How often it is checked whether the server that this kernel follows still runs."""
START_SECONDS = 20.0
"""How long to wait for a process that holds the project's lock and does not answer: it may just start or stop."""
PATIENCE_SECONDS = 30.0
"""How long a call waits for the next server."""

log = logging.getLogger(__name__)


class KernelMembership:
    """See the module. Everything happens on the host's loop, except `leave`.

    Args:
        stack: holds what is opened, until the kernel has left.
    """

    def __init__(self, settings: Settings, share: Share, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._share = share
        self._stack = stack
        self._serving: Serving | None = None
        self._reachable = asyncio.Event()
        self._doubted = asyncio.Event()
        self._succeeded = asyncio.Event()
        self._problem: WorkbenchError | None = None

    @property
    def serving(self) -> Serving:
        """The server of the project; while there is none, the last one."""
        assert self._serving is not None
        return self._serving

    async def join(self, port: int | None, *, end_workers: bool) -> None:
        """Attach to the process that serves the project, or serve it. Waits for one that just starts or stops.

        Raises:
            Unavailable: ``NO_SERVER``; see `serve`. BadInput, Refused: see `serve`.
        """
        deadline = _now() + START_SECONDS
        for pause in _pauses():
            if await self._reach(port, end_workers):
                return
            if _now() + pause > deadline:
                raise Unavailable(
                    "NO_SERVER",
                    "Another process holds this project's lock (.aiswarm/server.lock) and does not answer. "
                    "Wait until it has started or stopped, or end it; then start again.",
                )
            await asyncio.sleep(pause)

    async def keep(self) -> None:
        """Follow the server, or serve, until cancelled.

        Raises:
            Unavailable: ``SERVER_FAILED``: this kernel's own servers have failed. NotFound: ``NO_PROJECT``: the project
                was removed.
        """
        # Taking over is quick if everything is imported by then.
        importing = asyncio.create_task(asyncio.to_thread(import_module, "workbench.shells.serve"))
        try:
            while self.serving.servers is None:
                await self._wait_for_end_of(self.serving.info)
                await self._succeed()
            await self.serving.servers.wait()
        finally:
            importing.cancel()

    async def call(
        self, name: str, arguments: Mapping[str, Any], token: str | None = None, person: str | None = None
    ) -> dict[str, Any]:
        """Run an operation, as the operator or as the agent with this token.

        Waits while there is no server, and repeats the call if that is safe.

        Raises:
            WorkbenchError: what the operation raises. Unavailable: ``NO_SERVER``; ``NO_REPLY``: the server ended, and
                may have made the change or not.
        """
        deadline, pauses = _now() + PATIENCE_SECONDS, _pauses()
        while True:
            serving = await self._wait_for_server(deadline)
            try:
                return await serving.call(name, arguments, token, person)
            except WorkbenchError as error:
                if serving.workbench is not None or not self._may_repeat(error, name, token) or _now() > deadline:
                    raise
            await self._doubt(serving, next(pauses))

    async def confirmed(self) -> ServerInfo:
        """The server, which answers.

        Raises:
            Unavailable: ``NO_SERVER``. Other errors: why this kernel cannot serve.
        """
        from workbench.client.discovery import is_running

        deadline, pauses = _now() + START_SECONDS, _pauses()
        while True:
            serving = await self._wait_for_server(deadline)
            if serving.workbench is not None or await is_running(serving.info):
                return serving.info
            if _now() > deadline:
                raise _no_successor()
            await self._doubt(serving, next(pauses))

    def leave(self, *, end_workers: bool) -> Departure:
        """Give up the kernel's share, in any thread; call it again if this kernel has come to serve meanwhile."""
        if (servers := self.serving.servers) is not None:
            return servers.leave(self._share, end_workers=end_workers)
        return self._share.leave(served=False, end_workers=end_workers)

    async def succeeded(self) -> None:
        """Wait until the server that this kernel follows has a successor, which this kernel may be."""
        await self._succeeded.wait()

    async def _reach(self, port: int | None = None, end_workers: bool = False) -> bool:
        token = self._serving.operator_token if self._serving else None
        serving = await attach(self._stack, self._settings) or await serve(
            self._stack, self._settings, port, end_workers=end_workers, operator_token=token
        )
        if serving is None:
            return False
        self._serving = serving
        self._reachable.set()
        return True

    async def _wait_for_end_of(self, followed: ServerInfo) -> None:
        """Wait until another server serves the project, or none answers."""
        from workbench.client.discovery import is_running

        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_SECONDS):
                    await self._doubted.wait()
            current = ServerFile(self._settings.server_file).load().info
            if current is not None and current.nonce != followed.nonce:
                return
            if (current is None or self._doubted.is_set()) and not await is_running(followed):
                return
            self._doubted.clear()

    async def _succeed(self) -> None:
        """Attach to the next server, or serve the project; try until one of the two succeeds."""
        self._reachable.clear()
        for pause in _pauses():
            if not state_directory.has_store(self._settings):
                raise NotFound("NO_PROJECT", f"{self._settings.project} is no project any more: its state was removed.")
            try:
                if await self._reach():
                    break
            except WorkbenchError as error:
                if self._problem is None or self._problem.message != error.message:
                    log.warning("the project cannot be served from here: %s", error.message)
                self._problem = error
            await asyncio.sleep(pause)
        log.info("the server is at %s now", self.serving.info.url)
        self._doubted.clear()
        self._problem = None
        self._succeeded.set()

    async def _wait_for_server(self, deadline: float) -> Serving:
        try:
            async with asyncio.timeout_at(deadline):
                await self._reachable.wait()
        except TimeoutError:
            raise self._problem or _no_successor() from None
        return self.serving

    async def _doubt(self, serving: Serving, pause: float) -> None:
        """Let it be checked soon whether a server still runs, unless it is known already that it does not."""
        if serving is self.serving and self._reachable.is_set():
            self._doubted.set()
            await asyncio.sleep(pause)

    def _may_repeat(self, error: WorkbenchError, name: str, token: str | None) -> bool:
        """Whether a call that failed can be sent to the next server.

        Raises:
            Unavailable: ``NO_REPLY``.
        """
        if _was_not_run(error, is_operator=token is None):
            return True
        if error.code not in AWAY:
            return False
        operation = self._catalogue.get(name)
        if operation is not None and not operation.reads:
            raise Unavailable(
                "NO_REPLY",
                f"The server ended, or took too long, before it replied to {name}. The change may have been made or "
                "not: check that before you repeat the call.",
            ) from error
        return True

    @cached_property
    def _catalogue(self) -> Catalogue:
        from workbench.ops import collect
        from workbench.services import SERVICES

        return collect(SERVICES)


def _was_not_run(error: WorkbenchError, *, is_operator: bool) -> bool:
    """Whether a request was certainly not run: it was refused, or could not be sent. A server that does not know the
    operator's token is a new one."""
    import httpx2

    refused = error.code == "SERVER_STOPPING" or (error.code == "INVALID_TOKEN" and is_operator)
    return refused or isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)


def _pauses() -> Iterator[float]:
    return chain((0.05, 0.1, 0.2), repeat(0.5))


def _no_successor() -> Unavailable:
    return Unavailable(
        "NO_SERVER", "The server of this project ended, and no other one answers yet. Run `%workbench start`."
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
