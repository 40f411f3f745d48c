"""Runs a project's servers in a kernel: one daemon thread with one event loop owns all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kernel_ext.server_log import server_log
from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.interpreter import rare_collections, short_switches
from workbench.loop_thread import LoopThread
from workbench.model import ServerInfo

if TYPE_CHECKING:
    from workbench.app import Workbench
    from workbench.settings import Settings
    from workbench.shells.serve import Servers

T = TypeVar("T")

STOP_SECONDS = 15.0
"""How long to wait for a stop: longer than processes may take to end."""
RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Pauses between attempts to start while another process holds the project's lock but does not answer."""

Call = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


@dataclass(frozen=True)
class Serving:
    """How a kernel reaches a project's operations.

    Args:
        info: the server.
        call: runs an operation as the operator, on the host's loop.
        workbench: the open project, if this kernel serves it; None if another process does.
        ended: returns, or raises, when the server has ended by itself.
        servers: what runs in this kernel; None if another process serves.
    """

    info: ServerInfo
    call: Call
    workbench: Workbench | None
    ended: Callable[[], Coroutine[Any, Any, object]]
    servers: Servers | None = None


class KernelHost:
    """Serves a project beside the kernel's own work, or attaches to another process that serves it.

    Call its methods in any thread except its own; they block until they are done. An interrupt may end any of them
    early; it can then be called again.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._thread: LoopThread[Serving] | None = None

    @property
    def serving(self) -> Serving | None:
        """How operations are reached, while the host runs."""
        return self._thread.opened if self._thread else None

    @property
    def info(self) -> ServerInfo | None:
        """The server of the project, while this kernel serves it or is attached to it."""
        return self.serving.info if self.serving else None

    @property
    def workbench(self) -> Workbench | None:
        """The open project, while this kernel serves it."""
        return self.serving.workbench if self.serving else None

    @property
    def attached(self) -> bool:
        """Whether another process serves the project."""
        return self.serving is not None and self.serving.workbench is None

    @property
    def running(self) -> bool:
        """Whether operations can be called."""
        return self.serving is not None

    @property
    def is_stopped(self) -> bool:
        """Whether everything that was started has stopped."""
        return self._thread is None

    def start(self, port: int | None = None, *, end_workers: bool = False) -> ServerInfo:
        """Start the servers, or attach to the process that already serves this project.

        Does nothing if they already run. A start that fails or is interrupted leaves nothing behind, except what `stop`
        stops.

        Args:
            end_workers: end the workers that an earlier server left; otherwise they are taken back.

        Raises:
            Unavailable: see `listen` and `open_store`; ``STILL_STOPPING``. BadInput, Refused: see `Servers.start`.
        """
        if (info := self._answering()) is not None:
            return info
        self._forget_failure()
        self._thread = LoopThread(
            "workbench-host", lambda opened: _main(self.settings, port, end_workers, opened), not_started
        )
        try:
            return self._thread.start(STOP_SECONDS).info
        except BaseException:
            with suppress(WorkbenchError):
                self.stop(end_workers=False)
            raise

    def stop(self, *, end_workers: bool = True) -> None:
        """Stop everything that `start` started; may be called twice.

        Args:
            end_workers: also end the workers; otherwise they go on, and the next start takes them back.

        Raises:
            Unavailable: ``STILL_STOPPING``: it takes longer; call it again. Other errors: what went wrong while the
                servers stopped; they have stopped nevertheless.
        """
        thread = self._thread
        if thread is None:
            return
        if self.serving is not None and self.serving.servers is not None:
            self.serving.servers.end_workers = end_workers
        if not thread.stop(STOP_SECONDS):
            raise Unavailable(
                "STILL_STOPPING",
                f"The servers still run after {STOP_SECONDS:.0f} s. Run `%workbench stop` again to go on waiting; "
                f"{self.settings.logs / 'server.log'} may say what they wait for.",
            )
        self._thread = None
        if thread.failure is not None:
            raise thread.failure

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator.

        Raises:
            WorkbenchError: what the operation raises; ``NOT_STARTED``.
        """
        return self.wait(self.acall(name, **arguments))

    async def acall(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The same, awaited on the host's own loop (see `submit`)."""
        if self.serving is None:
            raise not_started()
        return await self.serving.call(name, **arguments)

    async def acall_as(self, token: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the agent whose token this is, awaited on the host's own loop.

        Raises:
            WorkbenchError: what the operation raises; ``INVALID_TOKEN``, ``NOT_STARTED``.
        """
        if self.serving is None:
            raise not_started()
        if (workbench := self.serving.workbench) is not None:
            return await workbench.dispatch(await workbench.identify(token), name, arguments)
        from workbench.client import HttpClient

        async with HttpClient(self.serving.info.url, token) as client:
            return await client.call(name, **arguments)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop. The future fails with ``NOT_STARTED`` if the servers stop meanwhile.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        return self._started(work).submit(work)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the host's loop and wait for its result; an interrupt cancels it.

        Raises:
            Unavailable: ``NOT_STARTED``. Other errors: what the coroutine raised.
        """
        return self._started(work).call(work)

    def _started(self, work: Coroutine[Any, Any, Any]) -> LoopThread[Serving]:
        if self._thread is None or self._thread.opened is None:
            work.close()
            raise not_started()
        return self._thread

    def _answering(self) -> ServerInfo | None:
        """The server, if it still answers: another process may have ended, or serve at another address now."""
        if self._thread is None or self.serving is None:
            return None
        if self.serving.workbench is not None:
            return self.serving.info
        from workbench.client.discovery import is_running

        info = self.serving.info
        return info if self._thread.call(is_running(info)) else None

    def _forget_failure(self) -> None:
        """Stop what is left of an earlier run; the log says why it ended."""
        try:
            self.stop(end_workers=False)
        except Exception:
            if self._thread is not None:
                raise


def not_started() -> Unavailable:
    """The error before `%workbench start`."""
    return Unavailable("NOT_STARTED", "Workbench is not running in this kernel. Run `%workbench start`.")


async def _main(settings: Settings, port: int | None, end_workers: bool, opened: Callable[[Serving], None]) -> None:
    """The coroutine of the host's thread: serve or stay attached until cancelled, or until the servers end."""
    from workbench import state_directory

    await asyncio.to_thread(state_directory.create, settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(server_log(settings))
        stack.enter_context(short_switches(settings.switch_interval_seconds))
        stack.enter_context(rare_collections(settings.gc_threshold))
        serving = await _open(stack, settings, port, end_workers)
        opened(serving)
        await serving.ended()


async def _open(stack: AsyncExitStack, settings: Settings, port: int | None, end_workers: bool) -> Serving:
    """Serve, or attach to the process that does. Waits for one that is just starting or stopping."""
    for pause in RETRY_SECONDS:
        serving = await _serve(stack, settings, port, end_workers) or await _attach(stack, settings)
        if serving is not None:
            return serving
        await asyncio.sleep(pause)
    raise Unavailable(
        "NO_SERVER",
        "Another process holds this project's lock (.aiswarm/server.lock) and does not answer. "
        "Wait until it has started or stopped, or end it; then start again.",
    )


async def _serve(stack: AsyncExitStack, settings: Settings, port: int | None, end_workers: bool) -> Serving | None:
    """Serve in this kernel; None if another process serves the project."""
    from workbench.app import Workbench
    from workbench.shells.serve import Servers

    async with AsyncExitStack() as here:
        workbench = await here.enter_async_context(Workbench.open(settings))
        servers = await here.enter_async_context(Servers(workbench, end_workers=end_workers))
        try:
            info = await servers.start(port)
        except Conflict as error:
            if error.code != "ALREADY_SERVED":
                raise
            return None
        servers.end_workers = False
        stack.push_async_exit(here.pop_all())
    return Serving(info, workbench.call, workbench, servers.wait, servers)


async def _attach(stack: AsyncExitStack, settings: Settings) -> Serving | None:
    """Attach to the process that serves the project; None if none answers."""
    from workbench.client import HttpClient
    from workbench.client.discovery import find_server

    found = await find_server(settings.server_file)
    if found is None:
        return None
    client = await stack.enter_async_context(HttpClient(found.info.url, found.operator_token))
    return Serving(found.info, client.call, None, asyncio.Event().wait)
