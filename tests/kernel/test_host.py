"""The host of the servers in a kernel, without a kernel: starts, stops and unexpected failures."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import uvicorn

from kernel_ext.hosting import host as module
from kernel_ext.hosting import membership
from kernel_ext.hosting.host import KernelHost
from kernel_ext.session import WorkbenchSession
from workbench.client import http
from workbench.errors import NotFound, Unavailable
from workbench.services import approvals
from workbench.state import shares
from workbench.state.settings import Settings
from workbench.store.base import Tx
from workbench.trust.withheld import trust, withheld


@pytest.fixture
def host(migrated: Settings) -> Iterator[KernelHost]:
    made = KernelHost(migrated)
    yield made
    made.stop()


@pytest.fixture
def session() -> Iterator[WorkbenchSession]:
    made = WorkbenchSession()
    yield made
    made.stop()


def served_elsewhere(settings: Settings) -> subprocess.Popen[str]:
    """A process that already serves the project."""
    env = os.environ | {"WORKBENCH_PROJECT": str(settings.project)}
    command = [sys.executable, "-m", "workbench.cli", "serve", "--port", "0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Workbench serves")
    return process


def test_a_pending_call_fails_with_a_code_when_the_servers_stop(host: KernelHost) -> None:
    host.start(0)
    last = host.call("list_events", after=None)["next_after"]
    waiting = host.submit(host.acall("list_events", after=last, wait_seconds=30))
    host.stop()
    with pytest.raises(Unavailable, match="NOT_STARTED"):
        waiting.result(20)
    with pytest.raises(Unavailable, match="NOT_STARTED"):
        host.call("ping")
    assert (host.info, host.workbench, host.attached, host.running) == (None, None, False, False)


def test_a_forked_process_uses_no_servers_and_takes_none_away_when_it_ends(host: KernelHost) -> None:
    """As multiprocessing forks processes, in which the kernel's callbacks for its end run, too."""
    host.start(0)
    if not (child := os.fork()):
        with suppress(BaseException):
            assert not host.running
            host.stop()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0) == (child, 0)
    assert shares.holders(host.settings.shares) == [os.getpid()]
    assert host.call("ping") == {"ok": True}


def test_failed_servers_are_noticed_and_can_be_restarted_or_stopped(
    host: KernelHost, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fails(server: uvicorn.Server, counter: int) -> bool:
        raise OSError("the clock broke")

    def fail() -> None:
        assert host._thread is not None
        with monkeypatch.context() as patch:
            patch.setattr(uvicorn.Server, "on_tick", fails)
            host._thread._thread.join(20)

    host.start(0)
    fail()
    assert not host.running
    with pytest.raises(Unavailable, match=r"NOT_STARTED: .* It ended by itself: The servers failed"):
        host.call("ping")
    assert "the clock broke" in (host.settings.logs / "server.log").read_text()
    assert host.start(0).pid == os.getpid()
    assert host.call("ping") == {"ok": True}
    fail()
    with pytest.raises(Unavailable, match="SERVER_FAILED"):
        host.stop()
    host.stop()
    assert capfd.readouterr() == ("", "")


def test_a_stop_that_takes_too_long_is_an_error_and_is_finished_by_the_next_start(
    host: KernelHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.start(0)
    with monkeypatch.context() as patch:
        patch.setattr(module, "STOP_SECONDS", 0.0)
        for moved in (host.stop, host.start):
            with pytest.raises(Unavailable, match="STILL_STOPPING"):
                moved()
        assert not host.is_stopped
        assert not host.running
    assert host.start(0).pid == os.getpid()
    assert not host.attached


def test_one_of_two_concurrent_starts_serves_and_the_other_attaches(settings: Settings) -> None:
    hosts = [KernelHost(settings), KernelHost(settings)]
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(KernelHost.start, hosts)
    try:
        assert first == second
        assert sorted(host.attached for host in hosts) == [False, True]
        assert [host.call("ping") for host in hosts] == [{"ok": True}] * 2
    finally:
        for host in hosts:
            host.stop()


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_host_whose_server_has_ended_serves_at_the_next_start(settings: Settings, session: WorkbenchSession) -> None:
    with served_elsewhere(settings) as process:
        note = session.start(settings.project)
        assert repr(note) == f"Attached to process {process.pid}, which serves project."
        assert repr(session.start(settings.project)) == repr(note)
        assert session.call("ping") == {"ok": True}
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert repr(session.start(settings.project, 0)).startswith("Workbench serves project at http://127.0.0.1:")
    assert session.server.pid == os.getpid()
    assert session.call("ping") == {"ok": True}


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_lock_whose_holder_does_not_answer_is_one_clear_error(
    settings: Settings, host: KernelHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "START_SECONDS", 0.0)
    monkeypatch.setattr(http, "HEALTH_SECONDS", 0.2)
    with served_elsewhere(settings) as process:
        psutil.Process(process.pid).suspend()
        try:
            with pytest.raises(Unavailable, match=r"NO_SERVER: Another process holds this project's lock"):
                host.start(0)
        finally:
            process.kill()
    assert host.is_stopped


def test_a_log_that_cannot_be_written_does_not_keep_the_servers_from_running(
    host: KernelHost, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    host.start(0)
    (host.settings.logs / "server.log").mkdir()
    logging.getLogger("workbench").error("lost")
    assert host.call("ping") == {"ok": True}
    assert capfd.readouterr() == ("", "")


def test_the_start_after_a_failed_one_reads_the_settings_again(session: WorkbenchSession, repository: Path) -> None:
    (repository / ".aiswarm").mkdir()
    file = repository / ".aiswarm" / "settings.toml"
    file.write_text('host = "192.0.2.1"\nallow_remote = true\naccess_token = "secret"\n')
    trust(repository, withheld(repository))
    with pytest.raises(Unavailable, match="HOST_NOT_AVAILABLE"):
        session.start(repository)
    assert repr(session) == "Workbench is not running. `%workbench start` starts it."
    assert repr(session.stop()) == "Workbench was not running."
    with pytest.raises(Unavailable, match="NOT_STARTED"):
        session.call("ping")
    file.write_text("port = 0\n")
    assert repr(session.start(repository)).startswith("Workbench serves project at http://127.0.0.1:")


def test_servers_stop_even_if_a_panel_cannot_be_closed(session: WorkbenchSession, settings: Settings) -> None:
    session.start(settings.project, 0)

    class Broken:
        def close(self) -> None:
            raise KeyError("closed already")

    host = session.host
    session._desks += [Broken(), Broken()]  # type: ignore[list-item]
    with pytest.raises(KeyError):
        session.stop()
    assert host.is_stopped
    assert session._desks == []


def test_a_decision_is_awaited_however_many_there_were_before(session: WorkbenchSession, settings: Settings) -> None:
    session.start(settings.project, 0)
    workbench = session.host.workbench
    assert workbench is not None

    def ask_much(tx: Tx) -> list[int]:
        return [approvals.ask(tx, "registration", f"agent:{number}", {}) for number in range(600)]

    session.host.wait(workbench.store.write(ask_much))
    approval_id = session.call("register", name="ada")["approval_id"]
    [decided] = asyncio.run(session.decided(approval_id, auto=True))
    assert (decided["id"], decided["status"], decided["outcome"]["agent_id"]) == (approval_id, "approved", "ada")
    with pytest.raises(NotFound, match="APPROVAL_NOT_FOUND"):
        asyncio.run(session.decided(approval_id, approval_id + 1))
