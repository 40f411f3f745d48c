"""Workers in the process of the tests, and what tests ask about the tasks they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests import given
from tests.conftest import Served
from workbench.confinement import Box
from workbench.errors import WorkbenchError
from workbench.rules.profile import Profile
from workbench.worker.startup import WorkerConfig, WorktreePlace
from workbench.worker.supervisor import Supervisor


def config(served: Served, token: str, scratch: Path, lab: str | None = None, **more: Any) -> WorkerConfig:
    """A configuration as spawning makes it, in a worktree or outside of any; nothing is confined."""
    settings = served.workbench.settings
    worktree = None
    if lab:
        place, repository = settings.worktrees / lab, settings.repositories / lab
        worktree = WorktreePlace(lab, place, repository, f"wb/{lab}/main", settings.writers / f"{lab}.lock")
    known: dict[str, Any] = {
        "url": served.info.url,
        "token": token,
        "scratch": scratch,
        "box": Box(write=(), read=(), scratch=scratch, enforce=False),
        "project": settings.project,
        "profile": Profile(name="script", summary="Runs the task's command."),
        "worktree": worktree,
        "over_mcp": more.pop("mcp", False),
        "server_file": settings.server_file,
        "heartbeat_seconds": 0.1,
    }
    return WorkerConfig(**known | more)


@asynccontextmanager
async def working(
    served: Served, token: str, lab: str | None = "lab", **more: Any
) -> AsyncIterator[asyncio.Task[None]]:
    """A worker that is stopped at the end; the task it runs in."""
    with TemporaryDirectory() as scratch:
        supervisor = Supervisor(config(served, token, Path(scratch), lab, **more))
        running = asyncio.create_task(supervisor.run())
        try:
            yield running
        finally:
            supervisor.stop()
            with suppress(WorkbenchError):
                await running
        assert list(Path(scratch).iterdir()) == []


async def ran(served: Served, run: str | list[str] | None = "true", **more: Any) -> dict[str, Any]:
    """A new task, once it is completed or failed."""
    task_id = await given.task(served.workbench, run=run, **more)
    return await given.reached(served.workbench, task_id, "completed", "failed")


async def done(served: Served, run: str | list[str] | None = "true", **more: Any) -> dict[str, Any]:
    """A new task, once it is completed."""
    task = await ran(served, run, **more)
    assert task["status"] == "completed", task["error_message"]
    return task


async def output_of(served: Served, task_id: int) -> list[str]:
    """The lines of output that were reported."""
    lines = (await served.workbench.call("get_task_logs", task_id=task_id))["lines"]
    return [line for entry in lines for line in entry["message"].split("\n")]


def directory_of(served: Served, name: str = "lab") -> Path:
    """The directory of a worktree."""
    return served.workbench.settings.worktrees / name
