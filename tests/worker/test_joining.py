"""Workers on a machine without the project: a real process in a directory of its own, which has only the address."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import given
from tests.code_blocks import code_blocks, run_commands
from tests.conftest import Served, git

pytestmark = [pytest.mark.anyio, pytest.mark.long]


ROOT = Path(__file__).parents[2]


class Elsewhere:
    """A machine with a directory in which its workers have everything."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @asynccontextmanager
    async def worker(self, command: str, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A worker that a command starts, which is ended if it has not ended itself."""
        words = [sys.executable, "-P", "-m", "workbench.cli", *shlex.split(command)[1:], *options]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.place), "PYTHONPATH": str(ROOT)}
        with (self.place / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *words, cwd=self.place, env=environment, stdin=DEVNULL, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
            sys.stdout.write(self.log)  # shown if the test fails

    @property
    def log(self) -> str:
        """What its workers have said."""
        return (self.place / "log").read_text()


@pytest.fixture
def commands(served: Served) -> dict[str, list[str]]:
    """The commands of the manual: `here` and `there`, for the port at which the server is."""
    blocks = [one for one in code_blocks() if (one.path.name, one.heading) == ("machines.md", "Workers elsewhere")]
    here, there = [block.code for block in blocks if block.reason is None]
    port = served.info.url.rpartition(":")[2]
    return {"here": here.splitlines(), "there": there.replace("8765", port).splitlines()}


async def test_a_worker_elsewhere_does_tasks_and_gives_back_the_one_that_it_is_ended_in(
    served: Served, repository: Path, on_disk: Path, commands: dict[str, list[str]]
) -> None:
    workbench, gpu, (command,) = served.workbench, Elsewhere(on_disk), commands["there"]
    await asyncio.to_thread(run_commands, commands["here"], repository)
    (repository / "token").rename(on_disk / "token")
    (repository / "base.txt").write_text("of the project\n")
    git("add", ".", cwd=repository)
    git("commit", "-qm", "base", cwd=repository)
    run = f"! ls {repository} 2> listing; cat base.txt > made.txt; echo here >> made.txt"
    first = await given.task(workbench, "work", run=run)
    async with gpu.worker(command) as process:
        (artifact,) = (await given.reached(workbench, first, "completed", "failed"))["artifacts"]
        commit = artifact.removeprefix("commit:")
        assert git("show", f"{commit}:made.txt", cwd=repository) == "of the project\nhere"
        assert "denied" in git("show", f"{commit}:listing", cwd=repository).lower()

        run = "echo 1 > kept; git add .; git commit -qm one; echo 2 > left; echo begun; sleep 600"
        second = await given.task(workbench, "long", run=run)
        await given.until(lambda: "| begun" in gpu.log)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 25) == 0
    task = await given.task_now(workbench, second)
    assert (task["status"], task["attempts"][0]["outcome"]) == ("pending", "released")
    kept = await given.until(lambda: kept_files(served, second))
    assert kept == {"kept", "left"}
    assert not (workbench.settings.worktree(task["attempts"][0]["worktree"]) / "kept").exists()


async def kept_files(served: Served, task_id: int) -> set[str]:
    """The files that the first attempt at a task changed, once they are kept."""
    (attempt,) = (await given.task_now(served.workbench, task_id))["attempts"]
    if attempt["kept"] is None:
        return set()
    diff = await served.workbench.call("get_attempt_diff", task_id=task_id, attempt=1)
    return {file["path"] for file in diff["files"]}
