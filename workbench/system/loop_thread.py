"""A daemon thread with its own event loop, for programs that have none, such as notebooks and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

STOP_SECONDS = 10.0
"""How long what runs alone may take to end after an interrupt."""

Main = Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]
"""The thread's coroutine: passes the object it opened to its argument, and runs until it is cancelled."""


class LoopThread(Generic[T]):
    """Runs one coroutine in a daemon thread; other threads submit further coroutines to its loop.

    An interrupt (KeyboardInterrupt) may end any method early; the method can then be called again. In a process that
    was forked from its own, it has ended.

    Args:
        name: the name of the thread.
        main: the coroutine it runs. When it ends, all submitted work is cancelled and the thread ends.
        ended: creates the error for work that is submitted too late, or is cancelled at the end.
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
        self._has_ended = threading.Event()
        self._failure: BaseException | None = None
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def opened(self) -> T | None:
        """The object that `main` opened; None before that, and once a stop is requested or the thread has ended."""
        if self.is_of_parent or self._is_closed or self._stop_requested:
            return None
        if not self._opened.done() or self._opened.exception() is not None:
            return None
        return self._opened.result()

    @property
    def is_of_parent(self) -> bool:
        """Whether the thread belongs to a process that this one was forked from."""
        return self._pid != os.getpid()

    @property
    def failure(self) -> BaseException | None:
        """The exception that `main` raised after it had opened its object, if any."""
        return self._failure

    def start(self, stop_seconds: float) -> T:
        """Start the thread and return what `main` opens. Call it once.

        Args:
            stop_seconds: how long to wait for the thread to end if this fails or is interrupted.

        Raises:
            Exception: what `main` raised before it opened anything.
        """
        self._pid = os.getpid()
        try:
            self._thread.start()
            return self._opened.result()
        except BaseException:
            self.stop(stop_seconds)
            raise

    def stop(self, timeout: float) -> bool:
        """Cancel `main` and wait for the thread to end; False if it has not. May be called again."""
        self._stop_requested = True
        if self.is_of_parent:
            return True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel_main)
        if self._thread.ident is None:  # it was never started
            return True
        if not self._has_ended.wait(timeout):  # a `join` that is interrupted takes the thread for ended (bpo-45274)
            return False
        self._thread.join()
        return True

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Run a coroutine on the loop; cancelling the future cancels the coroutine.

        Raises:
            Exception: the error from `ended`; the future may also fail with it.
        """
        result: Future[R] = Future()
        self._submit(result, work)
        return result

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop and wait for its result; an interrupt cancels it.

        Raises:
            Exception: what the coroutine raised; see `submit`.
        """
        result: Future[R] = Future()
        try:
            self._submit(result, work)
            return result.result()
        except BaseException:
            result.cancel()
            raise

    def _submit(self, result: Future[R], work: Coroutine[Any, Any, R]) -> None:
        """Schedule `work`. An interrupt in here may leave it scheduled, so an interrupted caller cancels `result`."""
        if self.is_of_parent:
            work.close()
            raise self._ended()
        with self._submitting:
            if self._loop is None or self._is_closed:
                work.close()
                raise self._ended()
            self._pending[result] = work
            self._loop.call_soon_threadsafe(self._begin, result, work)

    # In the thread.

    def _run(self) -> None:
        try:
            self._run_main()
        finally:
            self._has_ended.set()

    def _run_main(self) -> None:
        failure: BaseException | None = None
        try:
            asyncio.run(self._hold())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # raised to whoever waits for the thread, not printed
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
            await asyncio.sleep(0)  # lets work that was just submitted begin, so that it is cancelled with the rest

    def _close(self) -> None:
        """Accept no more work."""
        with self._submitting:
            self._is_closed = True

    def _cancel_main(self) -> None:
        """Cancel `main` only once: a second cancellation would interrupt its cleanup."""
        if self._main_task is not None:
            self._main_task.cancel()
            self._main_task = None

    def _begin(self, result: Future[R], work: Coroutine[Any, Any, R]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(partial(self._deliver, result))
        if result.cancelled():
            task.cancel()  # before its first step
        result.add_done_callback(partial(self._cancel, task))

    def _cancel(self, task: asyncio.Future[Any], _: Future[Any]) -> None:
        """In any thread: cancel work that is not done, unless the loop is closed."""
        if self._loop is not None and not task.done():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(task.cancel)

    def _deliver(self, result: Future[R], task: asyncio.Future[R]) -> None:
        """Hand the outcome of a coroutine to its submitter, unless it was cancelled."""
        if self._pending.pop(result, None) is None or not result.set_running_or_notify_cancel():
            return
        if task.cancelled():
            result.set_exception(self._ended())
        elif (error := task.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(task.result())

    def _drop(self, result: Future[Any], work: Coroutine[Any, Any, Any]) -> None:
        """Fail work that the loop did not finish, because an exit inside the loop ended it at once."""
        if self._pending.pop(result, None) is None:
            return
        with contextlib.suppress(ValueError, RuntimeError):  # it is running
            work.close()
        if result.set_running_or_notify_cancel():
            result.set_exception(self._ended())


def run_alone(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine to its end in an event loop of its own, also where this thread runs one, as a notebook's does.

    An interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)

    async def main(opened: Callable[[R], None]) -> None:
        opened(await work)

    return LoopThread("workbench-alone", main, lambda: RuntimeError("nothing else runs there")).start(STOP_SECONDS)


async def until_one_fails(*work: Coroutine[Any, Any, object]) -> None:
    """Run coroutines concurrently. The first failure cancels the others and is raised."""
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
