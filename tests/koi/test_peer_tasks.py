"""Tasks that exchange something with peers."""

from __future__ import annotations

import asyncio

import pytest

from workbench.koi.node import PeerTasks

pytestmark = pytest.mark.anyio


async def _fail() -> None:
    raise RuntimeError("a defect")


async def _wait() -> None:
    await asyncio.Event().wait()


async def _done() -> None:
    return


async def test_one_task_of_each_kind_runs_for_each_peer_at_a_time() -> None:
    ended = asyncio.Event()
    tasks = PeerTasks(ended.set)
    assert tasks.start("delivery", "ada", _wait)
    assert not tasks.start("delivery", "ada", _wait)
    assert tasks.start("delivery", "ben", _wait)
    assert tasks.start("meeting", "ada", _done)
    await ended.wait()
    assert tasks.start("meeting", "ada", _done)
    await tasks.close()
    assert not tasks.start("delivery", "eve", _wait)


async def test_a_failing_task_restarts_after_a_pause_and_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = asyncio.Event()
    tasks = PeerTasks(released.set, failed_seconds=3_600)
    assert tasks.start("delivery", "ada", _fail)
    while not caplog.records:
        await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records] == ["delivery ada failed"]
    assert not released.is_set()
    assert tasks.start("delivery", "ben", _done)
    await released.wait()
    assert not tasks.start("delivery", "ada", _fail)
    await tasks.close()

    again = asyncio.Event()
    tasks = PeerTasks(again.set, failed_seconds=0)
    assert tasks.start("delivery", "ada", _fail)
    await again.wait()
    assert tasks.start("delivery", "ada", _done)
    await tasks.close()
