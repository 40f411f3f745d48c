"""`%workbench start` interrupted by a real SIGINT at several moments: nothing is left, and the next start serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kernel.conftest import Kernel

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]

PREPARE = """
import os, psutil, signal, sys, threading, time

armed = []

def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

def on_event(event, details):
    if armed and event == armed[0][0] and armed[0][1] in str(details):
        del armed[0]
        interrupt()

def interrupt_in(function):
    "Send SIGINT as soon as the main thread runs, or waits in, a function."
    def watch():
        while True:
            frame = sys._current_frames()[threading.main_thread().ident]
            while frame is not None:
                if frame.f_code.co_qualname == function:
                    return interrupt()
                frame = frame.f_back
            time.sleep(0.0001)
    threading.Thread(target=watch, name="watch", daemon=True).start()

def left():
    ports = [c.laddr.port for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    threads = [t.name for t in threading.enumerate() if t.name.startswith(("workbench", "asyncio", "watch"))]
    return sorted(ports), sorted(threads), sys.getswitchinterval()

sys.addaudithook(on_event)
before = left()
"""

MOMENTS = {
    "the servers' modules are imported": ("import", "workbench.shells.serve"),
    "the store is opened": ("sqlite3.connect", "coordination.db"),
    "the lock is taken": ("open", "server.lock"),
    "the port is bound": ("socket.bind", ""),
    "server.json is written": ("os.rename", "server.json"),
}
"""Events of the interpreter, and words in their details."""


@pytest.fixture(scope="module")
def prepared(kernel: Kernel) -> Kernel:
    kernel.run(PREPARE)
    return kernel


def assert_it_is_interrupted(kernel: Kernel, line: str) -> None:
    assert kernel.error(line).startswith("Interrupted: INTERRUPTED: The command was interrupted.")


def assert_nothing_is_left(kernel: Kernel, repository: Path) -> None:
    assert kernel.run("left() == before or left()") == "True"
    file = repository / ".aiswarm" / "server.json"
    assert not file.exists() or "pid" not in json.loads(file.read_text())


def assert_it_starts_and_stops(kernel: Kernel, repository: Path) -> None:
    assert "Workbench serves" in kernel.serve(repository)
    assert kernel.run("%workbench stop").strip() == "Workbench is stopped."
    assert_nothing_is_left(kernel, repository)


@pytest.mark.parametrize("moment", [*MOMENTS, "WorkbenchSession.start", "KernelHost.start", "LoopThread.start"])
def test_an_interrupted_start_leaves_nothing(prepared: Kernel, repository: Path, moment: str) -> None:
    prepared.run(f"armed[:] = [{MOMENTS[moment]!r}]" if moment in MOMENTS else f"interrupt_in({moment!r})")
    assert_it_is_interrupted(prepared, f'%workbench start --project "{repository}" --port 0')
    assert prepared.run("armed") == "[]"
    assert_nothing_is_left(prepared, repository)
    assert prepared.run("%workbench stop").strip() == "Workbench was not running."
    assert_it_starts_and_stops(prepared, repository)


def test_stop_cleans_up_after_an_interrupted_start_or_stop(prepared: Kernel, repository: Path) -> None:
    prepared.run("armed[:] = [('socket.bind', '')]; interrupt_in('LoopThread.stop')")
    assert_it_is_interrupted(prepared, f'%workbench start --project "{repository}" --port 0')
    prepared.run("%workbench stop")
    assert_nothing_is_left(prepared, repository)
    prepared.serve(repository)
    prepared.run("interrupt_in('LoopThread.stop')")
    assert_it_is_interrupted(prepared, "%workbench stop")
    prepared.run("%workbench stop")
    assert_nothing_is_left(prepared, repository)
    assert_it_starts_and_stops(prepared, repository)


def test_an_interrupted_call_is_given_up_and_the_servers_go_on(prepared: Kernel, repository: Path) -> None:
    prepared.serve(repository)
    prepared.run("interrupt_in('LoopThread.call')")
    error = prepared.error('wb.call("list_events", after=10**6, wait_seconds=30)')
    assert error == "Interrupted: CALL_INTERRUPTED: list_events was interrupted. What it has done stays done."
    assert prepared.run('dict(wb.call("ping"))') == "{'ok': True}"
    prepared.run("while wb.host.workbench.feed.readers: time.sleep(0.01)")
    prepared.run("%workbench stop")
    assert_nothing_is_left(prepared, repository)
