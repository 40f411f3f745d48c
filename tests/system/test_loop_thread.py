"""A thread with an event loop: what it opens, what is submitted to it, and how both end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress

import pytest

from workbench.system.loop_thread import LoopThread

SECONDS = 20.0


class Ended(Exception):
    """The loop has ended."""


@pytest.fixture
def closed() -> list[str]:
    """The actions of the main coroutine at its end."""
    return []


@pytest.fixture
def thread(closed: list[str]) -> Iterator[LoopThread[str]]:
    async def main(opened: Callable[[str], None]) -> None:
        opened("open")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # a second cancellation would end this
            closed.append("in good order")

    made = LoopThread("loop", main, Ended)
    assert made.start(SECONDS) == "open"
    yield made
    assert made.stop(SECONDS)
    assert not made._thread.is_alive()


async def forever(begun: threading.Event | None = None) -> None:
    if begun is not None:
        begun.set()
    await asyncio.Event().wait()


def test_work_runs_in_the_thread_and_its_errors_are_raised_to_the_caller(thread: LoopThread[str]) -> None:
    async def where() -> str:
        return threading.current_thread().name

    async def fails() -> None:
        raise KeyError("x")

    assert thread.call(where()) == "loop"
    with pytest.raises(KeyError):
        thread.call(fails())


def test_a_loop_thread_has_ended_in_a_forked_process(thread: LoopThread[str]) -> None:
    if not (child := os.fork()):
        with suppress(BaseException):
            with pytest.raises(Ended):
                thread.call(asyncio.sleep(0))
            assert (thread.opened, thread.stop(SECONDS)) == (None, True)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0) == (child, 0)
    assert thread.opened == "open"


def test_a_cancelled_future_cancels_its_coroutine(thread: LoopThread[str]) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        try:
            await forever(begun)
        finally:
            cancelled.set()

    running = thread.submit(work())
    assert begun.wait(SECONDS)
    running.cancel()
    assert cancelled.wait(SECONDS)
    with pytest.raises(CancelledError):
        running.result()


@pytest.mark.parametrize("begins", [False, True])
def test_an_interrupt_while_work_is_handed_over_cancels_it(
    thread: LoopThread[str], monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    assert thread._loop is not None
    hand_over = thread._loop.call_soon_threadsafe
    begun, ended, go_on = (threading.Event() for _ in range(3))

    async def work() -> None:
        try:
            await forever(begun)
        finally:
            ended.set()

    def interrupted(begin: Callable[..., object], *arguments: object) -> None:
        monkeypatch.undo()
        if not begins:
            hand_over(go_on.wait)
        hand_over(begin, *arguments)
        assert not begins or begun.wait(SECONDS)
        raise KeyboardInterrupt

    monkeypatch.setattr(thread._loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.call(work())
    go_on.set()
    assert not begins or ended.wait(SECONDS)
    thread.call(asyncio.sleep(0))
    assert (begun.is_set(), thread._pending) == (begins, {})


def test_a_stop_fails_running_work_and_closes_main(thread: LoopThread[str], closed: list[str]) -> None:
    running = thread.submit(forever())
    assert thread.stop(SECONDS)
    assert thread.stop(SECONDS)
    with pytest.raises(Ended):
        running.result(SECONDS)
    with pytest.raises(Ended):
        thread.submit(forever())
    assert (closed, thread.opened, thread.failure) == (["in good order"], None, None)


def test_work_submitted_while_the_loop_ends_is_run_or_refused(thread: LoopThread[str]) -> None:
    submitted: list[Future[None]] = []

    def submit() -> None:
        try:
            while True:
                submitted.append(thread.submit(forever()))
                time.sleep(0.0001)  # lets the loop run too
        except Ended:
            return

    others = [threading.Thread(target=submit) for _ in range(4)]
    for other in others:
        other.start()
    while len(submitted) < 100:
        time.sleep(0.001)
    assert thread.stop(SECONDS)
    for other in others:
        other.join(SECONDS)
    for running in submitted:
        with pytest.raises(Ended):
            running.result(SECONDS)


def test_an_early_exception_of_main_is_raised_by_start() -> None:
    async def main(opened: Callable[[str], None]) -> None:
        raise KeyError("x")

    thread = LoopThread("loop", main, Ended)
    with pytest.raises(KeyError):
        thread.start(SECONDS)
    assert thread.stop(SECONDS)


def test_a_later_exception_of_main_is_kept_and_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    fail = threading.Event()

    async def main(opened: Callable[[str], None]) -> None:
        opened("open")
        await asyncio.to_thread(fail.wait)
        raise KeyError("x")

    thread = LoopThread("loop", main, Ended)
    thread.start(SECONDS)
    running = thread.submit(forever())
    fail.set()
    with pytest.raises(Ended):
        running.result(SECONDS)
    assert thread.stop(SECONDS)
    assert isinstance(thread.failure, KeyError)
    assert thread.opened is None
    assert capfd.readouterr() == ("", "")


def test_an_exit_inside_the_loop_ends_the_thread_and_not_the_program(thread: LoopThread[str]) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises((SystemExit, Ended)):
        thread.call(leave())
    assert thread.stop(SECONDS)
    with pytest.raises(Ended):
        thread.call(forever())


def test_a_thread_that_was_never_started_can_be_stopped() -> None:
    async def main(opened: Callable[[str], None]) -> None:
        raise AssertionError

    thread = LoopThread("loop", main, Ended)
    assert thread.stop(SECONDS)
    with pytest.raises(Ended):
        thread.start(SECONDS)


def test_an_interrupted_stop_does_not_consider_the_thread_ended() -> None:
    stopping, release = threading.Event(), threading.Event()

    async def main(opened: Callable[[str], None]) -> None:
        opened("open")
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await asyncio.to_thread(release.wait)

    def interrupt() -> None:
        stopping.wait()
        main_thread = threading.main_thread().ident or 0
        while sys._current_frames()[main_thread].f_code.co_filename != threading.__file__:
            pass
        signal.pthread_kill(main_thread, signal.SIGINT)

    made = LoopThread("loop", main, Ended)
    made.start(SECONDS)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        made.stop(SECONDS)
    assert [made.stop(0.01) for _ in range(2)] == [False] * 2  # takes too long, says so and goes on
    release.set()
    assert made.stop(SECONDS)
