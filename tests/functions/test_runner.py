"""The runner of functions: one function disturbs neither others nor the servers."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from workbench.errors import Conflict, Unavailable, named
from workbench.functions.calls import failure
from workbench.functions.runner import FunctionCancelled, FunctionRunner

pytestmark = pytest.mark.anyio


@pytest.fixture
def runner() -> Iterator[FunctionRunner]:
    made = FunctionRunner(limit=8)
    yield made
    made.close()


async def later(value: Any) -> Any:
    """A value, after the loop has run once."""
    await asyncio.sleep(0)
    return value


async def times_out(runner: FunctionRunner, fn: Callable[[], Any], begun: threading.Event) -> None:
    """Run a function until it has begun before its time was over."""
    while not begun.is_set():
        with pytest.raises(Unavailable, match="TOOL_TIMEOUT"):
            await runner.run(fn, {}, 0.05)


async def cancel_once_begun(runner: FunctionRunner, fn: Callable[[], Any], begun: threading.Event) -> None:
    """Call a function, and cancel the call once the function has begun."""
    call = asyncio.create_task(runner.run(fn, {}, 30))
    await asyncio.to_thread(begun.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_functions_of_both_kinds_return_their_result_apart_from_the_servers(
    runner: FunctionRunner,
) -> None:
    assert await runner.run(lambda a, b: a + b, {"a": 1, "b": 2}, 10) == 3
    assert await runner.run(later, {"value": 3}, 10) == 3

    async def where() -> threading.Thread:
        return threading.current_thread()

    threads = {await runner.run(threading.current_thread, {}, 10), await runner.run(where, {}, 10)}
    assert len(threads | {threading.current_thread()}) == 3


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), TimeoutError("own")])
async def test_an_exception_of_a_function_reaches_only_its_caller(runner: FunctionRunner, error: BaseException) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error)):
        await runner.run(fails, {}, 10)
    assert await runner.run(later, {"value": 1}, 10) == 1


async def test_an_asynchronous_function_that_never_yields_does_not_stop_others(
    runner: FunctionRunner,
) -> None:
    async def endless() -> None:
        while True:
            pass

    with pytest.raises(Unavailable, match="TOOL_TIMEOUT"):
        await runner.run(endless, {}, 0.05)
    assert await runner.run(later, {"value": 1}, 30) == 1


async def test_cancelling_a_call_interrupts_its_function(runner: FunctionRunner) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def waits() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    await cancel_once_begun(runner, waits, begun)
    await asyncio.to_thread(ended.wait)


async def test_calls_of_one_function_run_at_once(runner: FunctionRunner) -> None:
    both = threading.Barrier(2, timeout=30)
    await asyncio.gather(runner.run(both.wait, {}, 30), runner.run(both.wait, {}, 30))


async def test_abandoned_functions_count_towards_the_limit_of_running_functions() -> None:
    runner, begun, go_on = FunctionRunner(limit=1), threading.Event(), threading.Event()

    def stubborn() -> None:
        while not go_on.is_set():
            with suppress(FunctionCancelled):
                begun.set()
                go_on.wait()

    await cancel_once_begun(runner, stubborn, begun)
    with pytest.raises(Conflict, match="TOO_MANY_CALLS"):
        await runner.run(later, {"value": 1}, 10)
    go_on.set()
    runner.close()


async def test_after_the_end_nothing_runs(runner: FunctionRunner) -> None:
    assert await runner.run(later, {"value": 1}, 10) == 1
    runner.close()
    with pytest.raises(Unavailable, match="TOOL_STOPPED"):
        await runner.run(later, {"value": 1}, 10)


async def test_a_function_that_catches_everything_is_interrupted_all_the_same(
    runner: FunctionRunner,
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def stubborn() -> None:
        try:
            begun.set()
            while True:
                try:
                    while True:
                        pass
                except Exception:
                    continue
        finally:
            ended.set()

    await times_out(runner, stubborn, begun)
    await asyncio.to_thread(ended.wait)


@pytest.mark.long
async def test_an_asynchronous_function_that_never_yields_does_not_outlive_the_end(runner: FunctionRunner) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        begun.set()
        try:
            while True:
                pass
        finally:
            ended.set()

    call = asyncio.create_task(runner.run(endless, {}, 30))
    await asyncio.to_thread(begun.wait)
    await asyncio.to_thread(runner.close)
    await asyncio.to_thread(ended.wait)
    with pytest.raises(BaseException):  # noqa: B017 (interrupted, or stopped)
        await call


async def test_the_loop_of_asynchronous_functions_is_made_again_when_one_has_ended_it(runner: FunctionRunner) -> None:
    async def end() -> None:
        asyncio.get_running_loop().stop()

    with pytest.raises(Unavailable, match="TOOL_STOPPED"):
        await runner.run(end, {}, 10)
    assert await runner.run(later, {"value": 1}, 10) == 1


def test_the_first_error_of_an_exception_group_is_reported() -> None:
    group = ExceptionGroup("g", [ExceptionGroup("h", [ValueError("deep")]), KeyError("k")])
    said = "ExceptionGroup: g (2 sub-exceptions): ValueError: deep"
    assert named(group) == said
    assert failure(group, io.StringIO()).message == f"The tool failed: {said}"  # type: ignore[arg-type]
    assert failure(ValueError("bad"), io.StringIO()).message == "The tool failed: ValueError: bad"  # type: ignore[arg-type]
