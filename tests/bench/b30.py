"""B30: a worktree of a repository with 50,000 files: to create it, and to merge what was committed in it.

Its counterpart creates a worktree with git itself. What creates and merges is the operation that a person calls, from
the call to its answer. Nothing that was created is removed before the end: for minutes ext4 does not take the inodes of
removed files again, and whoever creates files next looks at all of them, file by file.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.child import environment
from tests.bench.project import Running, running, scratch
from tests.bench.rows import Row, Samples, at_most, take_turns, within
from workbench.app import Workbench

FILES = 50_000
A_FOLDER = 500
BYTES = 400
AUTHOR = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
CREATE, APPROVE = "create a worktree", "approve a merge"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Seconds."""
    files = 500 if quick else FILES
    with scratch() as directory:
        root = _repository(directory / "project", files)
        with running(root, ()) as project:
            pair = Pair(project, root, directory / "bare")
            turns = take_turns(rounds, ours=pair.create, git=pair.create_with_git)
            merges = [pair.merge() for _ in range(rounds)]
    return {
        CREATE: Samples(turns["ours"], turns["git"], unit="s", note=f"{files:,} files"),
        APPROVE: Samples(merges, unit="s"),
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


class Pair:
    """The project, and git beside it."""

    def __init__(self, project: Running, root: Path, bare: Path) -> None:
        self._project = project
        self._root = root
        self._bare = bare
        self._number = 0
        self._created: list[tuple[str, Path]] = []

    def create(self) -> float:
        """Seconds to create a worktree."""
        self._number += 1
        name = f"w{self._number}"
        seconds, made = self._timed(lambda: self._project.workbench.call("create_worktree", name=name))
        self._created.append((name, Path(made["path"])))
        return seconds

    def create_with_git(self) -> float:
        """Seconds in which git does."""
        place = self._bare / str(self._number)
        began = time.perf_counter()
        _git(self._root, "worktree", "add", "-q", "-b", f"bare/{self._number}", str(place))
        return time.perf_counter() - began

    def merge(self) -> float:
        """Seconds from the person's approval of a worktree's merge until it is on the target."""
        name, place = self._created.pop()
        (place / f"made-{name}.txt").write_text(name)
        file = place / "src" / "part-000" / f"file-{len(self._created):05}.txt"
        file.write_text(f"changed by {name}\n")
        _git(place, "add", "--all")
        _git(place, "commit", "-q", "-m", f"Made in {name}")
        call = self._project.workbench.call
        asked = self._project.run(call("integrate_worktree", worktree_name=name))
        seconds, _ = self._timed(lambda: _approved(self._project.workbench, asked["approval_id"]))
        assert (self._root / f"made-{name}.txt").exists(), "the merge is not in the person's checkout"
        return seconds

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
    "git worktree add",
    {CREATE: at_most(1), APPROVE: within(2, "s")},
    run,
)
