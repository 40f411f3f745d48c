"""B30: a worktree of a repository with 50,000 files: to create it, to merge what was committed in it, to leave it be.

Its counterpart creates worktrees, merges their branches and removes them with git itself. What creates and merges is
the operation that a person calls, from the call to its answer. Nothing is removed before all have been created: for
minutes ext4 does not take the inodes of removed files again, and whoever creates files next looks at all of them, file
by file.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.child import environment
from tests.bench.project import Running, running, scratch
from tests.bench.rows import Row, Samples, at_most, take_turns, within
from workbench.app import Workbench
from workbench.shells.serve import Servers

FILES = 50_000
A_FOLDER = 500
BYTES = 400
AUTHOR = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
CREATE, APPROVE = "create a worktree", "approve a merge"
WORKTREES = 15
IDLE = f"a server with {WORKTREES} of them that has nothing to do"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Seconds; of the server, its share of a core."""
    files, worktrees, idle_seconds = (500, rounds, 1) if quick else (FILES, WORKTREES, 30)
    with scratch() as directory:
        root = _repository(directory / "project", files)
        with running(root, ()) as project:
            pair = Pair(project, root, directory / "bare")
            created = take_turns(rounds, ours=pair.create, git=pair.create_with_git)
            for _ in range(rounds, worktrees):
                pair.create()
            idle = project.run(_idle(project.workbench, idle_seconds))
            merged = take_turns(rounds, ours=pair.merge, git=pair.merge_with_git)
    return {
        CREATE: Samples(created["ours"], created["git"], unit="s", note=f"{files:,} files"),
        APPROVE: Samples(merged["ours"], merged["git"], unit="s", note="git removes the worktree, too"),
        IDLE: Samples([idle], unit="% of a core"),
    }


def _repository(root: Path, files: int) -> Path:
    """A repository whose files differ."""
    for number in range(files):
        if number % A_FOLDER == 0:
            folder = root / "src" / f"part-{number // A_FOLDER:03}"
            folder.mkdir(parents=True)
        (folder / f"file-{number:05}.txt").write_text(f"{number:05}\n" * (BYTES // 6))
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["commit", "-q", "-m", "First"],
        ["repack", "-a", "-d", "-q"],
    ):
        _git(root, *arguments)
    return root


def _git(where: Path, *arguments: str) -> None:
    subprocess.run(["git", *AUTHOR, *arguments], cwd=where, check=True, env=environment())


def _commit(place: Path, name: str, number: int) -> None:
    """A commit that adds a file and changes another, which no other worktree changes."""
    (place / f"made-{name}.txt").write_text(name)
    (place / "src" / "part-000" / f"file-{number:05}.txt").write_text(f"changed by {name}\n")
    _git(place, "add", "--all")
    _git(place, "commit", "-q", "-m", f"Made in {name}")


async def _idle(workbench: Workbench, seconds: float) -> float:
    """The share of a core that the server takes, with the programs that it starts, while nobody asks it anything."""
    async with Servers(workbench) as servers:
        await servers.start(0)
        began, used = time.monotonic(), _processor_time()
        await asyncio.sleep(seconds)
        return 100 * (_processor_time() - used) / (time.monotonic() - began)


def _processor_time() -> float:
    """Seconds, of this process and of those it has waited for."""
    return sum(os.times()[:4])


class Pair:
    """The project, and git beside it."""

    def __init__(self, project: Running, root: Path, bare: Path) -> None:
        self._project = project
        self._root = root
        self._bare = bare
        self._number = 0
        self._created: list[tuple[str, Path]] = []
        self._created_with_git: list[tuple[str, Path]] = []

    def create(self) -> float:
        """Seconds to create a worktree."""
        self._number += 1
        name = f"w{self._number}"
        seconds, made = self._timed(lambda: self._project.workbench.call("create_worktree", name=name))
        self._created.append((name, Path(made["path"])))
        return seconds

    def create_with_git(self) -> float:
        """Seconds in which git does."""
        branch, place = f"bare/{self._number}", self._bare / str(self._number)
        began = time.perf_counter()
        _git(self._root, "worktree", "add", "-q", "-b", branch, str(place))
        seconds = time.perf_counter() - began
        self._created_with_git.append((branch, place))
        return seconds

    def merge(self) -> float:
        """Seconds from the person's approval of a worktree's merge until it is on the target."""
        name, place = self._created.pop()
        _commit(place, name, 2 * len(self._created))
        call = self._project.workbench.call
        asked = self._project.run(call("integrate_worktree", worktree_name=name))
        seconds, _ = self._timed(lambda: _approved(self._project.workbench, asked["approval_id"]))
        assert (self._root / f"made-{name}.txt").exists(), "the merge is not in the person's checkout"
        return seconds

    def merge_with_git(self) -> float:
        """Seconds in which git merges a branch and removes its worktree."""
        branch, place = self._created_with_git.pop()
        _commit(place, place.name, 2 * len(self._created_with_git) + 1)
        began = time.perf_counter()
        _git(self._root, "merge", "-q", "--no-ff", "-m", f"Merge {branch}", branch)
        _git(self._root, "worktree", "remove", str(place))
        return time.perf_counter() - began

    def _timed(self, call: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
        async def timed() -> tuple[float, Any]:
            began = time.perf_counter()
            async with asyncio.timeout(300):
                answer = await call()
            return time.perf_counter() - began, answer

        return self._project.run(timed())


async def _approved(workbench: Workbench, approval_id: int) -> None:
    await workbench.call("approve", approval_id=approval_id)
    answer: dict[str, Any] = {"settled": False}
    while not answer["settled"]:
        answer = await workbench.call("get_approval", approval_id=approval_id, wait_seconds=20)
    assert answer["status"] == "approved", answer


ROW = Row(
    "B30",
    "a worktree of a repository with 50,000 files",
    "git itself",
    {CREATE: at_most(1.3), APPROVE: at_most(3), IDLE: within(0.5, "% of a core")},
    run,
)
