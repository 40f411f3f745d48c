"""The servers' life in a kernel: one daemon thread with one event loop that owns all of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import Conflict, Unavailable
from workbench.model import ServerInfo

if TYPE_CHECKING:
    from workbench.app import Workbench
    from workbench.settings import Settings

T = TypeVar("T")

JOIN_SECONDS = 15.0
_LOGGERS = ("workbench", "kernel_ext", "uvicorn", "mcp", "asyncio")


class KernelHost:
    """Runs a project's servers beside the kernel's own work; attaches when another process serves it.

    All methods are called from the kernel's side, in any thread; they block until done.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.info: ServerInfo | None = None
        self.attached = False
        self.workbench: Workbench | None = None
        self._call: Callable[..., Coroutine[Any, Any, dict[str, Any]]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    @property
    def running(self) -> bool:
        """Whether calls can be made."""
        return self._call is not None

    def start(self, port: int | None = None) -> ServerInfo:
        """Start the servers, or attach to the process that serves this project already.

        Raises:
            Unavailable: ``PORT_TAKEN``, ``PROJECT_UNWRITABLE`` and the store's errors.
        """
        if self.info is not None:
            return self.info
        ready: Future[ServerInfo] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(port, ready)), name="workbench-host", daemon=True
        )
        self._thread.start()
        try:
            self.info = ready.result()
        except BaseException:
            self._thread.join(JOIN_SECONDS)
            self._thread = None
            raise
        return self.info

    def stop(self) -> None:
        """Stop everything that `start` started; may be called twice."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)
        self._thread = self.info = self._call = None

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the operator.

        Raises:
            WorkbenchError: what the operation raises; ``NOT_STARTED``.
        """
        return self.submit(self.acall(name, **arguments)).result()

    async def acall(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The same, awaited on the host's own loop (see `submit`)."""
        if self._call is None:
            raise not_started()
        return await self._call(name, **arguments)

    async def acall_as(self, token: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the agent whose token this is, awaited on the host's own loop.

        Raises:
            WorkbenchError: what the operation raises; ``INVALID_TOKEN``, ``NOT_STARTED``.
        """
        if self.workbench is not None:
            return await self.workbench.dispatch(await self.workbench.identify(token), name, arguments)
        if self.info is None:
            raise not_started()
        from workbench.client import HttpClient

        async with HttpClient(self.info.url, token) as client:
            return await client.call(name, **arguments)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        if self._loop is None or self._call is None:
            work.close()
            raise not_started()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _run(self, port: int | None, ready: Future[ServerInfo]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with contextlib.AsyncExitStack() as stack:
                stack.enter_context(_logging_to(self.settings))
                stack.enter_context(_short_switches(self.settings.switch_interval_seconds))
                info = await stack.enter_async_context(self._open(port))
                ready.set_result(info)
                await self._stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)
        finally:
            self._call = self.workbench = self._loop = None

    @contextlib.asynccontextmanager
    async def _open(self, port: int | None) -> AsyncIterator[ServerInfo]:
        from workbench.app import Workbench
        from workbench.shells.serve import Servers

        async with Workbench.open(self.settings) as workbench, Servers(workbench) as servers:
            try:
                info = await servers.start(port)
            except Conflict as error:
                if error.code != "ALREADY_SERVED":
                    raise
            else:
                self.workbench, self._call = workbench, workbench.call
                yield info
                return
        async with self._attach() as info:
            yield info

    @contextlib.asynccontextmanager
    async def _attach(self) -> AsyncIterator[ServerInfo]:
        from workbench.client import HttpClient
        from workbench.server_file import ServerFile

        known = ServerFile(self.settings.server_file).load()
        if known.info is None:
            raise Unavailable("NO_SERVER", "The server that held this project has just gone. Start again.")
        async with HttpClient(known.info.url, known.operator_token) as client:
            self.attached, self._call = True, client.call
            try:
                yield known.info
            finally:
                self.attached = False


def not_started() -> Unavailable:
    """What is raised before `%workbench start`."""
    return Unavailable("NOT_STARTED", "Workbench is not running in this kernel. Run `%workbench start`.")


@contextlib.contextmanager
def _short_switches(seconds: float) -> Iterator[None]:
    """Let the servers' thread have its turn while a cell computes; restored afterwards."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, seconds))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from workbench.rules.access import redact

        return redact(super().format(record))


@contextlib.contextmanager
def _logging_to(settings: Settings) -> Iterator[None]:
    """Keep the servers' log out of the person's cells: into `.aiswarm/logs/server.log`."""
    path = Path(settings.logs) / "server.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    except OSError:
        handler = logging.NullHandler()  # opening the store says what is wrong with the directory
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(handler)
        handler.close()
