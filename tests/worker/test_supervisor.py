"""The worker against a real server: one attempt from its claim to its report, and what can go wrong meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, Admitted, Clock, Served, ended, followed, git
from workbench.app import Workbench
from workbench.errors import Refused, Unauthenticated, WorkbenchError
from workbench.settings import Settings
from workbench.shells.serve import Servers
from workbench.worker import supervisor as worker
from workbench.worker.orders import Orders
from workbench.worker.supervisor import Supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(40)]

TALKS = pytest.mark.parametrize("mcp", [False, True], ids=["http", "mcp"])


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stops waits for the polls under way."""
    monkeypatch.setattr(worker, "WAIT_SECONDS", 0.2)


@asynccontextmanager
async def working(served: Served, token: str, place: Path, **more: Any) -> AsyncIterator[asyncio.Task[None]]:
    """A worker that is stopped at the end; the task it runs in."""
    mcp_url = served.info.mcp_url if more.pop("mcp", False) else None
    orders = Orders(url=served.info.url, token=token, mcp_url=mcp_url, **{"heartbeat_seconds": 0.1} | more)
    supervisor = Supervisor(orders, place)
    running = asyncio.create_task(supervisor.run())
    try:
        yield running
    finally:
        supervisor.stop()
        with suppress(WorkbenchError):
            await running


async def make(served: Served, run: str | list[str] | None, **more: Any) -> int:
    """Create a task; its id."""
    arguments = {"title": "Do it", "persona_id": "implementer", "run": run, **more}
    return int((await served.workbench.call("create_task", **arguments))["id"])


async def get(served: Served, task_id: int) -> dict[str, Any]:
    """Everything about a task."""
    return await served.workbench.call("get_task", task_id=task_id)


async def reached(served: Served, task_id: int, *states: str) -> dict[str, Any]:
    """The task, once it is in one of some states."""
    async with served.workbench.feed.subscribe("task.*") as events:
        while (task := await get(served, task_id))["status"] not in states:
            await anext(events)
    return task


async def said(served: Served, task_id: int) -> list[str]:
    """The lines of output that were reported."""
    lines = (await served.workbench.call("get_task_logs", task_id=task_id))["lines"]
    return [line for entry in lines for line in entry["message"].split("\n")]


async def appeared(path: Path) -> None:
    """Return once a file is there."""
    while not path.exists():
        await asyncio.sleep(0.01)


def place_of(served: Served, name: str = "lab") -> Path:
    """The directory of a worktree."""
    return served.workbench.settings.worktrees / name


# An attempt


@TALKS
async def test_a_task_is_claimed_run_committed_and_reported(served: Served, settle: Admit, mcp: bool) -> None:
    ada = await settle("ada", "lab")
    answer = '{"result": {"n": 1}, "artifacts": ["x"]}'
    run = f"cat > task.json; echo one; echo two >&2; echo '{answer}' > $WORKBENCH_RESULT"
    task_id = await make(served, run, target_worktree="lab")
    async with working(served, ada.token, place_of(served), commit=True, mcp=mcp):
        task = await reached(served, task_id, "completed")
    head = git("rev-parse", "wb/lab/main", cwd=place_of(served))
    assert (task["result_data"], task["artifacts"]) == ({"n": 1}, ["x", f"commit:{head}"])
    assert (task["attempt"], task["attempts"][0]["agent_id"]) == (1, "ada")
    assert await said(served, task_id) == ["one", "two"]
    shown = git("log", "-1", "--format=%an <%ae>|%s|%b", head, cwd=place_of(served))
    assert shown == "ada <ada@workbench.localhost>|Do it|Task 1, attempt 1, by ada."
    given = json.loads(git("show", f"{head}:task.json", cwd=place_of(served)))
    assert (given["id"], given["attempt"], given["run"]) == (task_id, 1, run)
    kinds = [e["kind"] for e in (await served.workbench.call("list_events", kinds=["task.*"]))["events"]]
    assert kinds == [f"task.{kind}" for kind in ("created", "claimed", "started", "progressed", "completed")]


async def test_a_task_that_left_no_files_makes_no_commit(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    task_id = await make(served, "true")
    async with working(served, ada.token, place_of(served), commit=True):
        task = await reached(served, task_id, "completed")
    assert (task["artifacts"], task["result_data"]) == ([], None)


async def test_outside_of_a_worktree_nothing_is_committed_or_undone(
    served: Served, admit: Admit, repository: Path
) -> None:
    ada = await admit("ada")
    (repository / "mine.txt").write_text("mine")
    good, bad = await make(served, "echo > good.txt"), await make(served, "echo > bad.txt; exit 1", max_retries=0)
    async with working(served, ada.token, repository):
        await reached(served, good, "completed")
        await reached(served, bad, "failed")
    assert sorted(p.name for p in repository.glob("*.txt")) == ["bad.txt", "good.txt", "mine.txt"]
    assert git("rev-list", "--count", "--all", cwd=repository) == "1"


async def test_what_a_failed_attempt_left_is_undone_before_the_next(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    leave = "echo $WORKBENCH_ATTEMPT > made-$WORKBENCH_ATTEMPT; echo changed > README.md"
    run = f"ls; {leave}; [ $WORKBENCH_ATTEMPT = 3 ] || exit 75"
    task_id = await make(served, run, max_retries=2)
    async with working(served, ada.token, place_of(served), commit=True):
        task = await reached(served, task_id, "completed", "failed")
    assert [a["outcome"] for a in task["attempts"]] == ["failed", "failed", "completed"]
    assert "status 75 and asked to be tried again.\nREADME.md" in task["attempts"][0]["error_message"]
    assert await said(served, task_id) == ["README.md"] * 3
    changed = git("diff", "--name-only", "main", "wb/lab/main", cwd=place_of(served)).split()
    assert changed == ["README.md", "made-3"]


LARGE = """python3 -c 'print(str({"result": "x" * 2000000}).replace(chr(39), chr(34)))' > $WORKBENCH_RESULT"""


@pytest.mark.parametrize(
    ("run", "why", "mcp"),
    [
        (None, "This task has no command", False),
        (["/no/such/program"], "could not be started", False),
        ("echo '[' > $WORKBENCH_RESULT", "The result file cannot be used", False),
        (LARGE, "TOO_LARGE", False),
        (LARGE, "TOO_LARGE", True),
    ],
)
async def test_what_no_retry_can_mend_fails_the_task_and_not_the_worker(
    served: Served, settle: Admit, run: Any, why: str, mcp: bool
) -> None:
    ada = await settle("ada", "lab")
    task_id = await make(served, run)
    async with working(served, ada.token, place_of(served), commit=True, mcp=mcp) as running:
        task = await reached(served, task_id, "failed")
        assert len(task["attempts"]) == 1
        assert why in task["error_message"]
        await reached(served, await make(served, "true"), "completed")
        assert not running.done()


# Leases


async def test_a_lease_that_is_shorter_than_the_heartbeat_is_kept_all_the_same(
    settings: Settings, clock: Clock, repository: Path
) -> None:
    async with Workbench.open(settings, clock=clock) as workbench, Servers(workbench) as servers:
        served = Served(workbench, await servers.start(0), servers)
        made = await workbench.call("register", name="ada", persona_id="implementer")
        await workbench.call("approve", approval_id=made["approval_id"])
        task_id = await make(served, "until [ -e go ]; do sleep 0.01; done", lease_seconds=0.6)
        async with working(served, made["token"], repository, heartbeat_seconds=3_600):
            await reached(served, task_id, "in_progress")
            for _ in range(3):
                before = (await get(served, task_id))["lease_expires_at"]
                clock.forward(0.3)
                while (await get(served, task_id))["lease_expires_at"] == before:
                    await asyncio.sleep(0.01)
            (repository / "go").touch()
            assert (await reached(served, task_id, "completed", "pending"))["attempt"] == 1


async def test_who_loses_its_lease_ends_the_command_and_goes_on(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    task_id = await make(served, "echo > half.txt; echo $$ > ../pid; exec sleep 600")
    async with working(served, ada.token, place_of(served), commit=True):
        await appeared(place_of(served).parent / "pid")
        await served.workbench.call("cancel_task", task_id=task_id)
        await reached(served, await make(served, "ls > ../seen"), "completed")
    await ended(int((place_of(served).parent / "pid").read_text()))
    assert (place_of(served).parent / "seen").read_text() == "README.md\n"
    assert (await get(served, task_id))["status"] == "cancelled"


async def test_who_finishes_too_late_changes_nothing_and_goes_on(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    task_id = await make(served, "touch ../begun; until [ -e ../go ]; do sleep 0.01; done")
    async with working(served, ada.token, place_of(served), heartbeat_seconds=3_600) as running:
        await appeared(place_of(served).parent / "begun")
        await served.workbench.call("cancel_task", task_id=task_id)
        (place_of(served).parent / "go").touch()
        await reached(served, await make(served, "true"), "completed")
        assert not running.done()
    assert (await get(served, task_id))["status"] == "cancelled"


async def test_who_is_revoked_ends_the_command_and_itself(served: Served, settle: Admit) -> None:
    ada = await settle("ada", "lab")
    await make(served, "echo > half.txt; echo $$ > ../pid; exec sleep 600")
    async with working(served, ada.token, place_of(served), commit=True) as running:
        await appeared(place_of(served).parent / "pid")
        await served.workbench.call("revoke_agent", agent_id="ada")
        with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
            await running
    await ended(int((place_of(served).parent / "pid").read_text()))
    assert not (place_of(served) / "half.txt").exists()


@TALKS
async def test_who_is_told_to_stop_gives_the_task_back(served: Served, settle: Admit, mcp: bool) -> None:
    ada = await settle("ada", "lab")
    task_id = await make(served, "echo > half.txt; echo $$ > ../pid; exec sleep 600")
    async with working(served, ada.token, place_of(served), commit=True, mcp=mcp):
        await appeared(place_of(served).parent / "pid")
    task = await get(served, task_id)
    assert (task["status"], task["retry_count"]) == ("pending", 0)
    assert [(a["outcome"], a["error_message"]) for a in task["attempts"]] == [("released", "the worker was stopped")]
    await ended(int((place_of(served).parent / "pid").read_text()))
    assert not (place_of(served) / "half.txt").exists()


# Admission and the server


async def come(served: Served) -> dict[str, Any]:
    """Register."""
    return await served.workbench.call("register", name="ada", persona_id="implementer")


@TALKS
async def test_a_worker_waits_until_it_is_admitted(served: Served, repository: Path, mcp: bool) -> None:
    made = await come(served)
    task_id = await make(served, "true")
    async with working(served, made["token"], repository, mcp=mcp):
        await followed(served.workbench)
        await served.workbench.call("approve", approval_id=made["approval_id"], choices={"agent_id": "ada"})
        task = await reached(served, task_id, "completed")
    assert task["attempts"][0]["agent_id"] == "ada"


@TALKS
async def test_a_worker_that_is_turned_away_ends_with_the_reason(served: Served, repository: Path, mcp: bool) -> None:
    made = await come(served)
    async with working(served, made["token"], repository, mcp=mcp) as running:
        await followed(served.workbench)
        await served.workbench.call("reject", approval_id=made["approval_id"], reason="Full house.")
        with pytest.raises(Refused, match=r"REJECTED: The registration was turned down\. Full house\."):
            await running


async def test_a_token_that_is_not_known_ends_the_worker(served: Served, repository: Path) -> None:
    async with working(served, "wba_" + "x" * 43, repository) as running:
        with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
            await running


async def restarted(served: Served) -> None:
    """Stop the servers and start them again at the same address."""
    port = int(served.info.url.rpartition(":")[2])
    await served.servers.stop()
    await served.servers.start(port)


@TALKS
async def test_a_worker_outlives_a_restart_of_the_server(
    served: Served, admit: Admit, repository: Path, mcp: bool
) -> None:
    ada: Admitted = await admit("ada")
    first = await make(
        served, "touch begun; until [ -e go ]; do sleep 0.01; done; echo '{\"result\": 1}' > $WORKBENCH_RESULT"
    )
    async with working(served, ada.token, repository, mcp=mcp) as running:
        await appeared(repository / "begun")
        await restarted(served)
        (repository / "go").touch()
        task = await reached(served, first, "completed", "failed", "pending")
        assert (task["status"], task["attempt"], task["result_data"]) == ("completed", 1, 1)
        await followed(served.workbench)
        await restarted(served)
        task = await reached(served, await make(served, "true"), "completed")
        assert not running.done()
