"""Projects that were saved in their day are opened, migrated and gone on with, by every later version.

An archive stays as it is for as long as migrations from it are promised: it is never made anew, only further ones are
added beside it (`make.py` says how). A new table that an archive cannot have is no reason for one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from tests import given
from tests.conftest import Served
from tests.saved_project.make import PLACE
from tests.services.processes.running import process, serving
from tests.services.processes.test_reattach import events
from tests.worker.working import working
from workbench.app import Workbench
from workbench.ops import ANONYMOUS
from workbench.state.settings import Settings
from workbench.store.queries import Query
from workbench.trust import state_directory

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

MOVED = Query("moved", "UPDATE processes SET pid = :pid, started = :started, mark = :mark WHERE ended_at IS NULL")
ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
LISTS = {
    "list_agents": "agents",
    "list_tasks": "tasks",
    "list_plans": "plans",
    "list_worktrees": "worktrees",
    "list_closed_worktrees": "worktrees",
    "list_approvals": "approvals",
    "list_decided_approvals": "approvals",
    "list_events": "events",
    "list_projects": "projects",
    "list_sessions": "sessions",
    "list_teams": "teams",
    "get_personas": "personas",
    "list_admission_rules": "rules",
    "list_saved_views": "views",
    "list_conversations": "conversations",
    "list_tool_calls": "calls",
    "list_runs": "runs",
    "list_sweeps": "sweeps",
    "list_peers": "peers",
    "list_personalities": "personalities",
    "get_managed_agents": "agents",
    "agent_list": "agents",
}
"""Of each noun, an operation that lists it, and where in its answer."""
CENTURY = 100 * 365 * 86_400.0
"""What waits for a person in an archive still waits when the archive is old."""
RUNNING = "running"
"""The title of the task that the worker walt was doing in the worktree lab."""


@dataclass(frozen=True)
class Saved:
    """A copy of a saved project, at a place of its own."""

    place: Path

    @property
    def settings(self) -> Settings:
        return Settings(project=self.place / "project", port=0, pending_expires_seconds=CENTURY)

    @property
    def lab(self) -> Path:
        return self.settings.worktrees / "lab"


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def saved(request: pytest.FixtureRequest) -> Iterator[Saved]:
    """See `Saved`. Its person trusts it, as with `workbench trust`: it is not where it was made."""
    place = Path(tempfile.mkdtemp(prefix=PLACE.name.rstrip("0"), dir=PLACE.parent))
    assert len(str(place)) == len(str(PLACE))
    with tarfile.open(request.param) as archive:
        archive.extraction_filter = lambda member, _: member  # as it was saved, as Python 3.11 does it anyway
        archive.extractall(place)
    for path in place.rglob("*"):
        if path.is_file() and not path.is_symlink() and os.fsencode(PLACE) in (content := path.read_bytes()):
            path.write_bytes(content.replace(os.fsencode(PLACE), os.fsencode(place)))
    state_directory.adopt(place / "project")
    yield Saved(place)
    shutil.rmtree(place)


async def task_of(served: Served, title: str) -> int:
    """The id of a task by its title."""
    tasks = (await served.workbench.call("list_tasks", limit=100))["tasks"]
    return next(int(task["id"]) for task in tasks if task["title"] == title)


async def test_every_table_has_rows_and_they_are_read(saved: Saved) -> None:
    with closing(sqlite3.connect(saved.settings.database)) as store:
        counts = {
            name: store.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in store.execute(TABLES)
        }
    assert [name for name, count in counts.items() if count == 0] == []
    async with Workbench.open(saved.settings) as workbench:
        for operation, field in LISTS.items():
            assert (await workbench.call(operation))[field], operation
        unknown_offerers = "what was allowed before was not of an offerer, and is asked about again"
        assert (await workbench.call("list_tool_permissions"))["permissions"] == [], unknown_offerers
        tasks = (await workbench.call("list_tasks", limit=100))["tasks"]
        statuses = {"pending", "in_progress", "completed", "failed", "cancelled"}
        assert {task["status"] for task in tasks} >= statuses
        agents = (await workbench.call("list_agents"))["agents"]
        states = {agent["registration_status"] for agent in agents}
        assert states == {"pending", "assigned", "active", "inactive", "rejected", "revoked"}
        (run,) = (await workbench.call("list_runs"))["runs"]
        series = await workbench.call("get_run_series", run_id=run["id"])
        assert [point[1] for point in series["series"][0]["points"]] == [0.5, 0.25]
        assert (await workbench.call("read"))["data"]
        (talk,) = (await workbench.call("list_conversations"))["conversations"]
        asked, answer = (await workbench.call("list_turns", conversation_id=talk["id"]))["turns"]
        frames = (await workbench.call("read_frames", conversation_id=talk["id"]))["frames"]
        assert {frame["turn_id"] for frame in frames} == {asked["id"], answer["id"]}
        sent = (await workbench.call("list_events", kinds=["turn.*", "answer.*"]))["events"]
        assert [(event["kind"], event["data"]["turn_id"]) for event in sent] == [
            ("turn.sent", asked["id"]),
            ("answer.started", answer["id"]),
            ("answer.ended", answer["id"]),
        ]
    assert Settings.load(saved.settings.project).koi_retry_base_seconds == 8.0
    notebook = nbformat.read(saved.settings.project / "panel.ipynb", as_version=4)
    nbformat.validate(notebook)
    shown = [[output.data for output in cell.outputs if "data" in output] for cell in notebook.cells]
    assert all("text/html" in data for outputs in shown for data in outputs)
    assert len(shown[1]) == 1, "the panel"


@pytest.mark.long
async def test_people_and_agents_of_a_saved_project_continue(saved: Saved) -> None:
    async with serving(saved.settings) as served:
        call = served.workbench.call
        (waiting,) = (await call("list_approvals", kind="integration"))["approvals"]
        assert (await call("get_requested_changes", worktree_name="review"))["requests"]
        await call("approve", approval_id=waiting["id"])
        await given.appeared(saved.settings.project / "review.txt")
        assert (saved.settings.project / "review.txt").read_text() == "review\n"
        (asked,) = (await call("list_approvals", kind="registration"))["approvals"]
        await call("approve", approval_id=asked["id"], choices={"agent_id": "newcomer"})
        (talk,) = (await call("list_conversations"))["conversations"]
        sent = await call("ask", conversation_id=talk["id"], content="And three?")
        page = await call("list_turns", conversation_id=talk["id"])
        assert sent["answer"]["id"] in [turn["id"] for turn in page["turns"]]
        made = await served.workbench.dispatch(ANONYMOUS, "register", {"name": "worker", "persona_id": "implementer"})
        await call("approve", approval_id=made["approval_id"], choices={"agent_id": "worker"})
        task = await call("create_task", title="New", persona_id="implementer", run="true", assigned_agent_id="worker")
        async with working(served, made["token"], lab=None):
            assert (await given.reached(served.workbench, task["id"], "completed", "failed"))["status"] == "completed"


@pytest.mark.long
async def test_the_worker_that_ran_has_ended_and_what_it_made_is_adopted(saved: Saved) -> None:
    async with serving(saved.settings) as served:
        task_id = await task_of(served, RUNNING)
        task = await given.reached(served.workbench, task_id, "pending")
        assert [attempt["outcome"] for attempt in task["attempts"]] == ["released"]
        assert (await process(served, "walt"))["running"] is False
        while not await events(served, "task.work_kept"):
            await asyncio.sleep(0.02)
        adopted = await served.workbench.call("adopt_attempt", task_id=task_id, attempt=1)
        assert adopted["worktree"] == "lab"
        await served.workbench.call("approve", approval_id=adopted["approval_id"])
        await given.appeared(saved.settings.project / "begun")


@pytest.mark.long
@pytest.mark.timeout(60)
async def test_the_agent_whose_worker_has_ended_is_restarted_and_does_its_task(saved: Saved) -> None:
    async with serving(saved.settings) as served:
        task_id = await task_of(served, RUNNING)
        await given.reached(served.workbench, task_id, "pending")
        await served.workbench.call("restart_agent", agent_id="walt")

        async def is_over() -> bool:
            (saved.lab / "go").touch()  # again and again: what the first attempt left is removed before the second
            return (await given.task_now(served.workbench, task_id))["status"] in ("completed", "failed")

        await given.until(is_over)
        task = await given.task_now(served.workbench, task_id)
        assert [attempt["outcome"] for attempt in task["attempts"]] == ["released", "completed"]
        assert (saved.lab / "made.txt").read_text() == "made\n"
