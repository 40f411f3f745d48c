"""A worker whose server fails, keeps silent or moves: the command goes on as long as its lease does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served, ended
from tests.unkillable import unkillable
from tests.worker.faulty_proxy import Fault, FaultyProxy
from tests.worker.working import done, output_of, working
from workbench.confinement import BoxLimits
from workbench.errors import Unavailable
from workbench.state.server_file import ServerFile
from workbench.worker import api, progress, supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(40)]

HEARTBEAT = "heartbeat_and_get_tasks"
NOTE = "report_task_progress"
UNTIL_GO = "touch begun; until [ -e go ]; do sleep 0.01; done"
IN_PROJECT = "cd $WORKBENCH_PROJECT; "
SAY_PID = "echo $$ > pid.part; mv pid.part pid"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls end soon, notes are sent often, and what failed is tried again soon."""
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(progress, "NOTE_SECONDS", 0.05)
    monkeypatch.setattr(api, "RETRY_SECONDS", tuple(0.1 * pause for pause in api.RETRY_SECONDS))


@pytest.fixture
async def proxy(served: Served) -> AsyncIterator[FaultyProxy]:
    """A proxy in front of the server."""
    async with FaultyProxy(served.info.url) as proxy:
        yield proxy


# Heartbeats


@pytest.mark.parametrize("fault", ["STORE_FULL", "INTERNAL_ERROR", "dropped", "garbled"])
async def test_a_heartbeat_that_fails_does_not_end_the_command(
    served: Served, admit: Admit, repository: Path, proxy: FaultyProxy, fault: Fault
) -> None:
    ada = await admit("ada")
    task_id = await given.task(served.workbench, run=IN_PROJECT + UNTIL_GO)
    async with working(served, ada.token, None, url=proxy.url, server_file=None) as running:
        await given.appeared(repository / "begun")
        proxy.fail(HEARTBEAT, fault)
        await proxy.until(proxy.failed, HEARTBEAT, 3)
        proxy.mend(HEARTBEAT)
        await proxy.until(proxy.passed, HEARTBEAT, 2)
        (repository / "go").touch()
        task = await given.reached(served.workbench, task_id, "completed", "failed", "pending")
        assert (task["status"], len(task["attempts"])) == ("completed", 1)
        assert not running.done()


@pytest.mark.parametrize("fault", ["dropped", "silent", "STORE_FULL"])
async def test_a_command_ends_when_its_lease_could_not_be_renewed_in_time(
    served: Served, admit: Admit, repository: Path, proxy: FaultyProxy, fault: Fault
) -> None:
    ada = await admit("ada")
    task_id = await given.task(served.workbench, run=IN_PROJECT + SAY_PID + "; exec sleep 600", lease_seconds=1.5)
    async with working(served, ada.token, None, url=proxy.url, server_file=None) as running:
        await given.appeared(repository / "pid")
        proxy.fail(HEARTBEAT, fault)
        await ended(int((repository / "pid").read_text()))
        proxy.mend(HEARTBEAT)
        await served.workbench.call("cancel_task", task_id=task_id)
        await done(served)
        assert not running.done()
    assert (await given.task_now(served.workbench, task_id))["attempts"][0]["agent_id"] == "ada"


@pytest.mark.parametrize("fault", ["STORE_FULL", "INTERNAL_ERROR", "dropped"])
async def test_a_fault_while_there_is_nothing_to_do_does_not_end_the_worker(
    served: Served, admit: Admit, proxy: FaultyProxy, fault: Fault
) -> None:
    ada = await admit("ada")
    async with working(served, ada.token, None, url=proxy.url, server_file=None) as running:
        await proxy.until(proxy.passed, HEARTBEAT, 1)
        proxy.fail(HEARTBEAT, fault)
        await proxy.until(proxy.failed, HEARTBEAT, 2)
        proxy.mend(HEARTBEAT)
        await done(served)
        assert not running.done()


async def test_a_result_that_the_server_cannot_store_yet_is_reported_later(
    served: Served, admit: Admit, proxy: FaultyProxy
) -> None:
    ada = await admit("ada")
    proxy.fail("finish_attempt", "STORE_FULL")
    task_id = await given.task(served.workbench, run="true")
    async with working(served, ada.token, None, url=proxy.url, server_file=None):
        await proxy.until(proxy.failed, "finish_attempt", 2)
        proxy.mend("finish_attempt")
        assert len((await given.reached(served.workbench, task_id, "completed", "pending"))["attempts"]) == 1


# Another address


async def test_an_unanswered_call_is_repeated_at_the_new_address_of_the_server(
    served: Served, admit: Admit, repository: Path, proxy: FaultyProxy
) -> None:
    ada, file = await admit("ada"), ServerFile(served.workbench.settings.server_file)
    file.save(served.info.model_copy(update={"url": proxy.url}), "wbo_x")
    proxy.hold(NOTE)
    task_id = await given.task(served.workbench, run=f"{IN_PROJECT} echo one; {UNTIL_GO}")
    async with working(served, ada.token, None, url=proxy.url) as running:
        await proxy.arrived.wait()
        file.save(served.info, "wbo_x")
        proxy.fail(HEARTBEAT, "dropped")
        while await output_of(served, task_id) != ["one"]:
            await asyncio.sleep(0.01)
        (repository / "go").touch()
        await given.reached(served.workbench, task_id, "completed")
        assert not running.done()
    assert await output_of(served, task_id) == ["one"]


# Output


async def test_output_that_comes_while_a_note_is_sent_arrives_after_the_command_has_ended(
    served: Served, admit: Admit, repository: Path, proxy: FaultyProxy
) -> None:
    ada = await admit("ada")
    proxy.hold(NOTE)
    task_id = await given.task(served.workbench, run=f"{IN_PROJECT} echo first; {UNTIL_GO}; echo last; {SAY_PID}")
    async with working(served, ada.token, None, url=proxy.url, server_file=None):
        await proxy.arrived.wait()
        (repository / "go").touch()
        await given.appeared(repository / "pid")
        await ended(int((repository / "pid").read_text()))
        await proxy.until(proxy.passed, HEARTBEAT, 3)
        proxy.release(NOTE)
        await given.reached(served.workbench, task_id, "completed")
    assert await output_of(served, task_id) == ["first", "last"]


async def test_lines_of_a_note_that_could_not_be_sent_are_in_the_next_one(
    served: Served, admit: Admit, repository: Path, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.worker.api.RETRY_SECONDS", (0.01,))
    ada = await admit("ada")
    proxy.fail(NOTE, "INTERNAL_ERROR")
    task_id = await given.task(served.workbench, run=f"{IN_PROJECT} echo one; {UNTIL_GO}; echo two")
    async with working(served, ada.token, None, url=proxy.url, server_file=None):
        await proxy.until(proxy.failed, NOTE, 4)
        proxy.mend(NOTE)
        (repository / "go").touch()
        await given.reached(served.workbench, task_id, "completed")
    assert await output_of(served, task_id) == ["one", "two"]


# A command that cannot be ended


@pytest.mark.long
async def test_a_command_that_cannot_be_ended_fails_its_task_and_ends_the_worker(
    served: Served, admit: Admit, repository: Path
) -> None:
    ada = await admit("ada")
    run = f"{IN_PROJECT} mkfifo go; {SAY_PID}; read line < go; while :; do :; done"
    task_id = await given.task(served.workbench, run=run, max_retries=0)
    async with working(served, ada.token, None, limits=BoxLimits(cpu_seconds=0.5)) as running:
        await given.appeared(repository / "pid")
        pid = int((repository / "pid").read_text())
        with unkillable(pid):
            (repository / "go").write_text("\n")
            task = await given.reached(served.workbench, task_id, "failed")
            assert f"PROCESS_SURVIVED: SIGKILL did not end {pid}" in task["error_message"]
            with pytest.raises(Unavailable, match="PROCESS_SURVIVED"):
                await running
        await ended(pid)
