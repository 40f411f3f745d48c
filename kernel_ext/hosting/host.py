"""Runs a project's servers in a kernel, or follows those of another process: one daemon thread with one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kernel_ext.hosting.membership import KernelMembership
from kernel_ext.hosting.server_log import server_log
from workbench.errors import Unavailable, WorkbenchError
from workbench.model import ServerInfo
from workbench.state import shares
from workbench.system.interpreter import rare_collections, short_switches
from workbench.system.loop_thread import LoopThread

if TYPE_CHECKING:
    from kernel_ext.hosting.serving import Serving
    from workbench.app import Workbench
    from workbench.state.settings import Settings

T = TypeVar("T")

STOP_SECONDS = 15.0
"""How long to wait for a stop: longer than processes may take to end."""


class KernelHost:
    """Serves a project beside the kernel's own work, or follows another process that serves it.

    The servers belong to all processes that use the project: after a stop they go on in another one, if there is one.

    Call its methods in any thread except its own; they block until they are done. An interrupt may end any of them
    early; it can then be called again.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._thread: LoopThread[KernelMembership] | None = None
        self._departure: shares.Departure | None = None

    @property
    def _member(self) -> KernelMembership | None:
        return self._thread.opened if self._thread else None

    @property
    def serving(self) -> Serving | None:
        """The server that operations are sent to, while the host runs."""
        return self._member.serving if self._member else None

    @property
    def departure(self) -> shares.Departure | None:
        """What the last stop meant for the project; None if nothing ran."""
        return self._departure

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
    def is_of_parent(self) -> bool:
        """Whether the servers run in a process that this one was forked from, which cannot use them."""
        return self._thread is not None and self._thread.is_of_parent

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

        If they already run, wait until they answer. A start that fails or is interrupted leaves nothing behind, except
        what `stop` stops.

        Args:
            end_workers: end the workers that an earlier server left; otherwise they are taken back.

        Raises:
            Unavailable: see `listen` and `open_store`; ``STILL_STOPPING``. BadInput, Refused: see `Servers.start`.
        """
        if (info := self._find_answering_server()) is not None:
            return info
        self._forget_failure()
        self._departure = None
        self._thread = LoopThread(
            "workbench-host", lambda opened: _main(self.settings, port, end_workers, opened), not_started
        )
        try:
            return self._thread.start(STOP_SECONDS).serving.info
        except BaseException:
            with suppress(WorkbenchError):
                self.stop(end_workers=False)
            raise

    def stop(self, *, end_workers: bool = True) -> None:
        """Stop everything that `start` started; may be called twice. See `departure`.

        If other processes use the project, one of them serves it from now on.

        Args:
            end_workers: also end the workers, unless other processes use the project. Otherwise they go on, and the
                next start takes them back.

        Raises:
            Unavailable: ``STILL_STOPPING``: it takes longer; call it again. Other errors: what went wrong while the
                servers stopped; they have stopped nevertheless.
        """
        thread = self._thread
        if thread is None:
            self._departure = None
            return
        if (member := thread.opened) is not None:
            self._departure = self._leave(thread, member, end_workers)
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
            WorkbenchError: what the operation raises; ``NOT_STARTED``, ``FORKED``.
        """
        return self.wait(self.acall(name, **arguments))

    async def acall(self, name: str, person: str | None = None, /, **arguments: Any) -> dict[str, Any]:
        """The same, awaited on the host's own loop (see `submit`), for one of several people."""
        return await self._require_member().call(name, arguments, person=person)

    async def acall_as(self, token: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation as the agent whose token this is, awaited on the host's own loop.

        Raises:
            WorkbenchError: what the operation raises; ``INVALID_TOKEN``, ``NOT_STARTED``.
        """
        return await self._require_member().call(name, arguments, token)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the host's loop. The future fails with ``NOT_STARTED`` if the servers stop meanwhile.

        Raises:
            Unavailable: ``NOT_STARTED``.
        """
        return self._require_thread(work).submit(work)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the host's loop and wait for its result; an interrupt cancels it.

        Raises:
            Unavailable: ``NOT_STARTED``. Other errors: what the coroutine raised.
        """
        return self._require_thread(work).call(work)

    def _require_member(self) -> KernelMembership:
        if self._member is None:
            raise self._away()
        return self._member

    def _require_thread(self, work: Coroutine[Any, Any, Any]) -> LoopThread[KernelMembership]:
        if self._thread is None or self._thread.opened is None:
            work.close()
            raise self._away()
        return self._thread

    def _away(self) -> WorkbenchError:
        """Why nothing can be called here."""
        if self.is_of_parent:
            return forked()
        failure = self._thread.failure if self._thread else None
        return not_started(failure.message if isinstance(failure, WorkbenchError) else "")

    def _find_answering_server(self) -> ServerInfo | None:
        """The server, if this host runs and finds one that answers."""
        if self._thread is None or self._member is None:
            return None
        try:
            return self._thread.call(self._member.confirmed())
        except WorkbenchError:
            return None

    def _leave(
        self, thread: LoopThread[KernelMembership], member: KernelMembership, end_workers: bool
    ) -> shares.Departure:
        """Give the share up. The last one to leave ends the workers, even if it does not serve yet."""
        departure = member.leave(end_workers=end_workers)
        if departure.needs_server:
            with suppress(WorkbenchError, TimeoutError):
                thread.submit(member.succeeded()).result(STOP_SECONDS)
        if not departure.served and member.serving.servers is not None:
            return member.leave(end_workers=end_workers)
        return departure

    def _forget_failure(self) -> None:
        """Stop what is left of an earlier run; the log says why it ended."""
        try:
            self.stop(end_workers=False)
        except Exception:
            if self._thread is not None:
                raise


def not_started(ended: str = "") -> Unavailable:
    """The error before `%workbench start`, and after an end by itself, with its reason."""
    text = "Workbench is not running in this kernel. Run `%workbench start`."
    return Unavailable("NOT_STARTED", f"{text} It ended by itself: {ended}" if ended else text)


def forked() -> Unavailable:
    """The error in a process that was forked from a kernel, such as those of a pool."""
    return Unavailable(
        "FORKED",
        "This process was forked from the notebook's kernel and cannot use its servers: return what you have, and ask "
        "in the notebook. `wb.record` and `wb.artifact` work here. In joblib and multiprocessing, threads and the "
        "method `spawn` do not fork.",
    )


async def _main(
    settings: Settings, port: int | None, end_workers: bool, opened: Callable[[KernelMembership], None]
) -> None:
    """The coroutine of the host's thread: a member of the project until cancelled, or until its own servers fail."""
    from workbench.trust import state_directory

    await asyncio.to_thread(state_directory.create, settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(server_log(settings))
        stack.enter_context(short_switches(settings.switch_interval_seconds))
        stack.enter_context(rare_collections(settings.gc_threshold))
        share = stack.enter_context(shares.held(settings.shares))
        member = KernelMembership(settings, share, stack)
        await member.join(port, end_workers=end_workers)
        opened(member)
        await member.keep()
