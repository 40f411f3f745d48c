"""A daemon thread with an event loop of its own, for programs that have none: notebooks, plain scripts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Main = Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]
"""The coroutine of such a thread: calls its argument with what it opened, and runs until it is cancelled."""


class LoopThread(Generic[T]):
    """Runs one coroutine in a daemon thread; other threads submit further coroutines to its loop.

    An interrupt (KeyboardInterrupt) may cut any method short; the same method can then be called again.

    Args:
        name: of the thread.
        main: what it runs. Once it has ended, everything that was submitted is cancelled and the thread ends.
        ended: makes the error of work that is submitted too late, or is cut off by the end.
    """

    def __init__(self, name: str, main: Main[T], ended: Callable[[], Exception]) -> None:
        self._main = main
        self._ended = ended
        self._opened: Future[T] = Future()
        self._pending: dict[Future[Any], Coroutine[Any, Any, Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main_task: asyncio.Task[Any] | None = None
        self._stop_requested = False
        self._is_closed = False
        self._submitting = threading.Lock()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def opened(self) -> T | None:
        """What `main` opened; None before, and as soon as a stop is requested or the thread has ended."""
        if self._is_closed or self._stop_requested or not self._opened.done() or self._opened.exception() is not None:
            return None
        return self._opened.result()

    @property
    def failure(self) -> BaseException | None:
        """What `main` raised after it had opened something, if it has ended that way."""
        return self._failure

    def start(self, stop_seconds: float) -> T:
        """Start the thread and wait for what `main` opens. To be called once.

        Args:
            stop_seconds: how long to wait for the end of the thread if this fails or is interrupted.

        Raises:
            Exception: what `main` raised before it opened anything.
        """
        try:
            self._thread.start()
            return self._opened.result()
        except BaseException:
            self.stop(stop_seconds)
            raise

    def stop(self, timeout: float) -> bool:
        """Cancel `main` and wait until the thread has ended; whether it has. May be called again."""
        self._stop_requested = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel_main)
        with contextlib.suppress(RuntimeError):  # the thread was never started
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Run a coroutine on the loop; cancelling the future cancels the coroutine.

        Raises:
            Exception: as `ended` makes it; the future may fail with it too.
        """
        result: Future[R] = Future()
        with self._submitting:
            if self._loop is None or self._is_closed:
                work.close()
                raise self._ended()
            self._pending[result] = work
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
        result.add_done_callback(lambda _: running.cancel())
        running.add_done_callback(partial(self._deliver, result))
        return result

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop and wait for its result; an interrupt cancels it.

        Raises:
            Exception: what the coroutine raised; see `submit`.
        """
        running = self.submit(work)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    # In the thread.

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            asyncio.run(self._hold())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # whoever waits for the thread gets it, not the program's standard error
            failure = error
        self._close()
        if not self._opened.done():
            self._opened.set_exception(failure if isinstance(failure, Exception) else self._ended())
        else:
            self._failure = failure
        for result, work in list(self._pending.items()):
            self._drop(result, work)

    async def _hold(self) -> None:
        self._loop, self._main_task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            if not self._stop_requested:
                await self._main(self._opened.set_result)
        finally:
            self._close()
            await asyncio.sleep(0)  # what was submitted before begins, so that it is cancelled with all the rest

    def _close(self) -> None:
        """Take no more work."""
        with self._submitting:
            self._is_closed = True

    def _cancel_main(self) -> None:
        """Once only: a second cancellation would interrupt what `main` does to close in good order."""
        if self._main_task is not None:
            self._main_task.cancel()
            self._main_task = None

    def _deliver(self, result: Future[R], running: Future[R]) -> None:
        """Hand the outcome of a coroutine to whoever submitted it, unless they have cancelled it."""
        if self._pending.pop(result, None) is None or not result.set_running_or_notify_cancel():
            return
        if running.cancelled():
            result.set_exception(self._ended())
        elif (error := running.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(running.result())

    def _drop(self, result: Future[Any], work: Coroutine[Any, Any, Any]) -> None:
        """Work that the loop did not finish: an exit inside of it ended it at once."""
        if self._pending.pop(result, None) is None:
            return
        with contextlib.suppress(ValueError, RuntimeError):  # it has begun
            work.close()
        if result.set_running_or_notify_cancel():
            result.set_exception(self._ended())
