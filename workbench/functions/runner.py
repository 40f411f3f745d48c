"""Runs Python functions for tools, apart from the servers: whatever one does, the others and the servers go on.

Each ordinary function runs in a thread of its own, asynchronous ones share a loop. A call that takes too long, or is
cancelled, is answered at once; its function is interrupted at its next Python instruction.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.system.loop_thread import LoopThread

INTERRUPT_SECONDS = 1.0
"""How long an asynchronous function may go on after its cancellation before it is interrupted."""
STOP_SECONDS = 2.0


class FunctionCancelled(BaseException):
    """Raised inside a function that was cancelled. No `Exception`, so that a function that goes on after all those
    ends."""


class FunctionRunner:
    """Runs functions until it is closed. Its methods are called on one loop, that of the servers.

    Args:
        limit: how many functions may run at once, with those that go on after their call was answered.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running = 0
        self._lock = threading.Lock()
        self._loop: LoopThread[int] | None = None
        self._is_closed = False

    async def run(self, fn: Callable[..., Any], arguments: dict[str, Any], seconds: float) -> Any:
        """Call a function and return its result. Cancelling this interrupts the function.

        Raises:
            Unavailable: ``TOOL_TIMEOUT``, ``TOOL_STOPPED``. Conflict: ``TOO_MANY_CALLS``.
            BaseException: what the function raised.
        """
        self._begin()
        started = self._start(fn, arguments)
        waiting = asyncio.wrap_future(started.result)
        waiting.add_done_callback(_retrieved)  # also if this no longer waits
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.shield(waiting)
        except TimeoutError:
            if not limit.expired():  # the function itself raised it
                raise
            started.interrupt()
            raise Unavailable("TOOL_TIMEOUT", f"The tool took longer than {seconds:g} s. It is interrupted.") from None
        except asyncio.CancelledError:
            started.interrupt()
            raise

    def close(self) -> None:
        """End the loop of the asynchronous functions, in any thread; other threads end with their functions.

        A function that never yields is interrupted. It takes at most twice `STOP_SECONDS`.
        """
        self._is_closed = True
        if self._loop is None:
            return
        thread = self._loop.opened
        if not self._loop.stop(STOP_SECONDS) and thread is not None:
            _raise_in(thread)
            self._loop.stop(STOP_SECONDS)

    def _begin(self) -> None:
        with self._lock:
            if self._running >= self._limit:
                raise Conflict(
                    "TOO_MANY_CALLS", f"{self._running} tools are running, as many as may. Wait until one has ended."
                )
            self._running += 1

    def _end(self, _: Future[Any]) -> None:
        with self._lock:
            self._running -= 1

    def _start(self, fn: Callable[..., Any], arguments: dict[str, Any]) -> _Started:
        made: _Started = _InLoop(self._functions_loop()) if asyncio.iscoroutinefunction(fn) else _InThread()
        made.result.add_done_callback(self._end)
        try:
            made.start(fn, arguments)
        except BaseException as error:
            made.result.set_exception(error)
        return made

    def _functions_loop(self) -> LoopThread[int]:
        if self._loop is None or (self._loop.opened is None and not self._is_closed):  # an interrupt may have ended it
            self._loop = LoopThread("workbench-functions", _forever, _stopped)
            self._loop.start(STOP_SECONDS)
        return self._loop


class _Started:
    """A function that runs. `result` is done when it has ended."""

    def __init__(self) -> None:
        self.result: Future[Any] = Future()

    def start(self, fn: Callable[..., Any], arguments: dict[str, Any]) -> None:
        """Start the function."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Interrupt the function, if it still runs."""
        raise NotImplementedError


class _InThread(_Started):
    """A function in a thread of its own, which does not keep the process from ending."""

    def start(self, fn: Callable[..., Any], arguments: dict[str, Any]) -> None:
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._call, fn, arguments), name=f"workbench-tool-{fn.__name__}", daemon=True
        )
        self._thread.start()

    def interrupt(self) -> None:
        if not self.result.done() and self._thread.ident is not None:
            _raise_in(self._thread.ident)

    def _call(self, fn: Callable[..., Any], arguments: dict[str, Any]) -> None:
        try:
            result = fn(**arguments)
        except BaseException as error:  # also an exit: it is the function's result
            self.result.set_exception(error)
        else:
            self.result.set_result(result)


class _InLoop(_Started):
    """An asynchronous function on the loop of functions."""

    def __init__(self, loop: LoopThread[int]) -> None:
        super().__init__()
        self._functions = loop
        self._task: asyncio.Task[Any] | None = None
        self._is_interrupted = False

    def start(self, fn: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self._functions.submit(self._call(fn, arguments)).add_done_callback(self._dropped)

    def interrupt(self) -> None:
        self._is_interrupted = True
        if self._task is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        asyncio.get_running_loop().call_later(INTERRUPT_SECONDS, self._interrupt_thread)

    def _dropped(self, running: Future[None]) -> None:
        """The call was given up, if the loop has ended before the function."""
        error = None if running.cancelled() else running.exception()
        if error is not None and not self.result.done():
            self.result.set_exception(error)

    def _interrupt_thread(self) -> None:
        thread = self._functions.opened
        if not self.result.done() and thread is not None:
            _raise_in(thread)

    async def _call(self, fn: Callable[..., Coroutine[Any, Any, Any]], arguments: dict[str, Any]) -> None:
        self._task = asyncio.ensure_future(fn(**arguments))
        if self._is_interrupted:
            self._task.cancel()
        await asyncio.wait([self._task])
        if self._task.cancelled():
            self.result.set_exception(FunctionCancelled())
        elif error := self._task.exception():
            self.result.set_exception(error)
        else:
            self.result.set_result(self._task.result())


def _retrieved(future: asyncio.Future[Any]) -> None:
    """Note that somebody knows how a future ended: asyncio would report its error otherwise."""
    if not future.cancelled():
        future.exception()


def _raise_in(thread: int) -> None:
    """Raise `FunctionCancelled` in a thread, at its next Python instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(FunctionCancelled))


async def _forever(opened: Callable[[int], None]) -> None:
    opened(threading.get_ident())
    await asyncio.Event().wait()


def _stopped() -> WorkbenchError:
    return Unavailable("TOOL_STOPPED", "The tools of this process were stopped.")
