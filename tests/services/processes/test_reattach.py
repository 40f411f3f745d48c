"""Workers outlive the server: their commands go on, and the next server takes them back."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import yaml

from tests import given
from tests.conftest import Served, ended
from tests.drivers.days import RESULT
from tests.services.processes.running import agent, process, serving, spawn
from workbench.app import Workbench
from workbench.model import wall_clock
from workbench.process import ProcessTable
from workbench.rules.secrets.forms import MASK
from workbench.services.spawning import request
from workbench.state.settings import Settings
from workbench.store.queries import Query
from workbench.trust.withheld import trust, withheld
from workbench.worker.supervised import AWAY

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

UNTIL_GO = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; echo made > made.txt"
LEASES = Query("leases", "SELECT task_id, lease_expires_at AS at FROM task_status WHERE lease_expires_at IS NOT NULL")


@pytest.fixture(autouse=True)
async def _nothing_left(settings: Settings) -> AsyncIterator[None]:
    """No worker outlives its test."""
    yield
    async with serving(settings):
        pass


class Left(NamedTuple):
    """A process that a server left running: walt, whose command works in the worktree lab."""

    lab: Path
    worker: int
    command: int


async def working(settings: Settings, **more: Any) -> Left:
    """Serve, have walt begin a task, and stop."""
    async with serving(settings, end_workers=False) as served:
        lab = await given.worktree(served.workbench)
        walt = await spawn(served, name="walt", assigned_worktree="lab")
        await given.task(served.workbench, run=UNTIL_GO, **more)
        return Left(lab, walt["pid"], int(await given.written(lab / "pid")))


async def events(served: Served, kind: str) -> list[dict[str, Any]]:
    """The events of a kind."""
    found: list[dict[str, Any]] = (await served.workbench.call("list_events", kinds=[kind]))["events"]
    return found


async def until_leases_ran_out(workbench: Workbench) -> None:
    """Return when every lease is past its end, by the clock."""
    while any(row["at"] > wall_clock() for row in await workbench.store.read(lambda tx: tx.all(LEASES))):
        await asyncio.sleep(0.05)


async def test_a_command_goes_on_without_a_server_and_the_next_one_takes_its_worker_back(settings: Settings) -> None:
    """Also if its lease ran out meanwhile."""
    left = await working(settings, lease_seconds=1.0)
    command = psutil.Process(left.command)
    async with Workbench.open(settings) as alone:  # as a command does that finds no server
        await until_leases_ran_out(alone)
        await alone.leases.end_due(alone._ctx)
    async with serving(settings, end_workers=False) as served:
        assert [(event["data"]["pid"], event["data"]["holding"]) for event in await events(served, "agent.reattached")]
        assert (await process(served, "walt"))["pid"] == left.worker
        assert command.is_running()
        (left.lab / "go").touch()
        task = await given.reached(served.workbench, 1, "completed", "failed")
        assert (task["status"], [attempt["outcome"] for attempt in task["attempts"]]) == ("completed", ["completed"])
        await given.reached(served.workbench, await given.task(served.workbench, run="true"), "completed")


async def test_secrets_of_a_reattached_worker_are_masked(settings: Settings) -> None:
    variables = {"API_KEY": "plain words", "COLOUR": "green"}
    async with serving(settings, end_workers=False) as served:
        await spawn(served, name="walt", environment=variables | {"CITY": "Reykjavik"}, secret=["CITY"])
        assert served.workbench._ctx.secrets.masked("Reykjavik green plain words") == f"{MASK} green {MASK}"
    async with serving(settings, end_workers=False) as served:
        assert await events(served, "agent.reattached")
        assert served.workbench._ctx.secrets.masked("Reykjavik green plain words") == f"{MASK} green {MASK}"
        await given.reached(served.workbench, await given.task(served.workbench, run="echo $CITY $COLOUR"), "completed")
        logs = await served.workbench.call("get_task_logs", task_id=1)
        assert (f"{MASK} green" in str(logs), "Reykjavik" in str(logs)) == (True, False)


async def test_a_command_that_ended_meanwhile_is_reported_to_the_next_server(settings: Settings) -> None:
    left = await working(settings, lease_seconds=1.0)
    (left.lab / "go").touch()
    await ended(left.command)
    async with serving(settings, end_workers=False) as served:
        task = await given.reached(served.workbench, 1, "completed", "failed")
        assert (task["status"], len(task["attempts"])) == ("completed", 1)


async def test_a_program_that_reached_no_model_because_the_server_was_away_is_tried_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is asked: in the night nobody would answer."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-test-0123456789")
    said = json.dumps(RESULT | {"is_error": True, "result": "API Error: Unable to connect to API (ECONNREFUSED)"})
    command = ["/bin/sh", "-c", f"{UNTIL_GO}; echo '{said}'; exit 1"]
    profile = {"summary": "Fails.", "driver": "claude", "command": command, "passes": ["ANTHROPIC_API_KEY"]}
    (settings.home / "profiles").mkdir(parents=True)
    (settings.home / "profiles" / "failing.yaml").write_text(yaml.safe_dump(profile))
    trust(settings.project, withheld(settings.project))
    async with serving(settings, end_workers=False) as served:
        lab = await given.worktree(served.workbench)
        await spawn(served, name="walt", assigned_worktree="lab", profile="failing")
        await given.task(served.workbench)
        await given.written(lab / "pid")
    async with serving(settings, end_workers=False) as served:
        (lab / "go").touch()

        async def failed() -> Any:
            return next(iter(await events(served, "task.deferred")), None)

        event = await given.until(failed)
        assert (event["data"]["error_class"], AWAY in event["data"]["error"]) == ("overloaded", True)
        assert (await served.workbench.call("list_approvals", status="pending"))["approvals"] == []


async def test_a_server_that_is_to_end_workers_ends_those_of_the_earlier_one(settings: Settings) -> None:
    left = await working(settings)
    async with serving(settings, end_workers=True) as served:
        await ended(left.worker, left.command)
        assert (await given.reached(served.workbench, 1, "pending"))["attempts"][0]["outcome"] == "released"


async def test_a_worker_that_ended_while_no_server_ran_gives_its_task_back(settings: Settings) -> None:
    left = await working(settings)
    psutil.Process(left.worker).kill()
    async with serving(settings, end_workers=False) as served:
        await ended(left.command)
        assert (await given.reached(served.workbench, 1, "pending"))["attempts"][0]["outcome"] == "released"
        assert await events(served, "agent.reattached") == []
        assert (await agent(served, "walt"))["registration_status"] == "inactive"


async def test_a_process_with_a_workers_pid_but_another_mark_is_left_alone(settings: Settings, tmp_path: Path) -> None:
    left = await working(settings)
    table = ProcessTable()
    stranger = table.start(["sleep", "60"], cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log")
    same = {"agent_pid": left.worker, "pid": stranger.pid, "started": stranger.started}
    moved = Query("moved", "UPDATE processes SET pid = :pid, started = :started WHERE pid = :agent_pid")
    async with Workbench.open(settings) as workbench:
        await workbench.store.write(lambda tx: tx.run(moved, same))
    async with serving(settings, end_workers=False) as served:
        assert (await process(served, "walt"))["running"] is False
        await ended(left.worker)  # by its mark
        assert table.alive(stranger)
        assert await events(served, "agent.reattached") == []
    table.terminate(stranger, 0.0)


async def test_queued_and_half_started_agents_start_with_the_next_server(settings: Settings) -> None:
    few = settings.model_copy(update={"max_agents_running": 1})
    async with serving(few, end_workers=False) as served:
        await spawn(served, name="walt")
        assert (await spawn(served, name="wilma"))["state"] == "queued"
        assert (await spawn(served, name="will"))["state"] == "queued"
        half = {
            "agent": (await served.workbench.store.read(lambda tx: tx.all(request.SQL.queue, machine=None)))[0][
                "agent_id"
            ]
        }
        await served.workbench.store.write(lambda tx: tx.run(request.SQL.starting, half))
    async with serving(settings, end_workers=False) as served:
        for name in ("walt", "wilma", "will"):
            while not (await process(served, name))["running"]:
                await asyncio.sleep(0.02)
        assert len(await events(served, "agent.spawned")) == 3
