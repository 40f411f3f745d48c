"""Starts and stops that are cut short, meet each other, or fail: nothing is left, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
import uvicorn

from tests.conftest import Served
from tests.shells.test_serve import answers, at_work, free, port_of
from workbench.app import Workbench
from workbench.errors import Unavailable, WorkbenchError
from workbench.shells.serve import Servers
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


def listening() -> set[int]:
    sockets = psutil.Process().net_connections("tcp")
    return {connection.laddr.port for connection in sockets if connection.status == psutil.CONN_LISTEN}


async def assert_nothing_is_left(workbench: Workbench, ports: set[int]) -> None:
    assert at_work() == []
    assert listening() == ports
    assert workbench.server is None
    assert ServerFile(workbench.settings.server_file).load().info is None
    async with Servers(workbench) as others:  # which the lock of the project would refuse
        assert await answers((await others.start(0)).url)


def moments(growth: float) -> Iterator[int]:
    """Numbers of turns of the loop to let pass: growing, until the observed task has ended."""
    turns = 0
    while True:
        yield turns
        turns = int(turns * growth) + 1


async def pass_turns(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_start_that_is_cancelled_at_any_moment_leaves_nothing(workbench: Workbench) -> None:
    ports = listening()
    for turns in moments(1.3):
        servers = Servers(workbench)
        starting = asyncio.create_task(servers.start(0))
        await pass_turns(turns)
        if starting.done():
            break
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await assert_nothing_is_left(workbench, ports)
    await servers.stop()
    assert turns > 10


async def test_a_start_that_is_cancelled_when_it_is_known_leaves_nothing(workbench: Workbench) -> None:
    ports = listening()
    starting = asyncio.create_task(Servers(workbench).start(0))
    while workbench.server is None:
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await assert_nothing_is_left(workbench, ports)


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_stop_that_is_cancelled_at_any_moment_is_finished_by_the_next(workbench: Workbench) -> None:
    ports = listening()
    for turns in moments(3):
        servers = Servers(workbench)
        await servers.start(0)
        stopping = asyncio.create_task(servers.stop())
        await pass_turns(turns)
        done = stopping.done()
        stopping.cancel()
        with suppress(asyncio.CancelledError):
            await stopping
        await servers.stop()
        await assert_nothing_is_left(workbench, ports)
        if done:
            break
    assert turns > 10


async def test_a_second_stop_returns_when_the_first_has_stopped_everything(served: Served) -> None:
    first = asyncio.create_task(served.servers.stop())
    await asyncio.sleep(0)
    await served.servers.stop()
    assert at_work() == []
    assert free(port_of(served.info.url))
    await first


async def test_a_stop_during_a_start_leaves_nothing_running(workbench: Workbench) -> None:
    ports = listening()
    for turns in (1, 2, 5, 50):
        servers = Servers(workbench)
        starting = asyncio.create_task(servers.start(0))
        await pass_turns(turns)
        await servers.stop()
        await starting
        await assert_nothing_is_left(workbench, ports)


async def test_servers_that_cannot_start_say_so_and_leave_nothing(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(server: uvicorn.Server, sockets: object = None) -> None:
        raise OSError("the port broke")

    ports = listening()
    with monkeypatch.context() as patch:
        patch.setattr(uvicorn.Server, "startup", fails)
        with pytest.raises(Unavailable, match="SERVER_FAILED"):
            await Servers(workbench).start(0)
    assert "the port broke" in caplog.text
    await assert_nothing_is_left(workbench, ports)


async def test_servers_that_end_by_themselves_are_noticed(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(server: uvicorn.Server, counter: int) -> bool:
        raise OSError("the clock broke")

    waiting = asyncio.create_task(served.servers.wait())
    await asyncio.sleep(0)
    monkeypatch.setattr(uvicorn.Server, "on_tick", fails)
    with pytest.raises(Unavailable, match="SERVER_FAILED"):
        await waiting
    assert "the clock broke" in caplog.text
    await served.servers.stop()
    assert at_work() == []
    assert served.workbench.server is None


async def test_a_file_that_cannot_be_cleared_does_not_keep_the_servers_from_stopping(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    home = served.workbench.settings.home
    (home / "server.json").unlink()
    (home / "server.json").mkdir()
    await served.servers.stop()
    assert "server.json" in caplog.text
    assert free(port_of(served.info.url))
    assert at_work() == []
    (home / "server.json").rmdir()
    async with Servers(served.workbench) as others:
        assert await answers((await others.start(0)).url)


async def test_a_file_that_cannot_be_written_is_a_coded_error(workbench: Workbench) -> None:
    ports, home = listening(), workbench.settings.home
    (home / "server.json").mkdir()
    for again in (True, False):
        with pytest.raises(WorkbenchError, match="PROJECT_UNWRITABLE"):
            await Servers(workbench).start(0)
        assert (listening(), at_work(), workbench.server) == (ports, [], None)
        if again:
            (home / "server.lock").unlink()
            (home / "server.lock").mkdir()


INTERRUPTED = """
import os, signal, sys
import workbench.cli
event, word, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
def interrupt(happened, details):
    global event
    if happened == event and word in str(details):
        event = None  # once
        os.kill(os.getpid(), number)
sys.addaudithook(interrupt)
workbench.cli.main(["serve", "--port", "0"])
"""
"""Sends itself a signal at the first event of the interpreter of some name and with some word in its details."""

MOMENTS = {
    "the store is opened": ("sqlite3.connect", "coordination.db"),
    "the lock is taken": ("open", "server.lock"),
    "the port is bound": ("socket.bind", ""),
}


@pytest.mark.long
@pytest.mark.sqlite("tells when SQLite opens its file")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_start_of_a_separate_server(settings: Settings, moment: str, number: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, *MOMENTS[moment], str(int(number))]
    env = os.environ | {"WORKBENCH_PROJECT": str(settings.project)}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=40)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert ServerFile(settings.server_file).load().info is None


@pytest.mark.timeout(120)
async def test_a_project_whose_opening_is_cancelled_at_any_moment_is_closed(settings: Settings) -> None:
    is_open = asyncio.Event()

    async def stay_open() -> None:
        async with Workbench.open(settings):
            is_open.set()
            await asyncio.Event().wait()

    before = {thread.name for thread in threading.enumerate()}
    for turns in moments(1.2):
        opening = asyncio.create_task(stay_open())
        await pass_turns(turns)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        left = {thread.name for thread in threading.enumerate()} - before
        assert {name for name in left if not name.startswith("asyncio")} == set()
        if is_open.is_set():
            break
    assert turns > 10
