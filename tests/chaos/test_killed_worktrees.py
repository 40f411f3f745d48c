"""Processes that make, merge and give up worktrees at the same time, and are killed while they do.

Run as a script this is one of the processes. What it prints was acknowledged, and holds for ever after.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK, chance
from tests.conftest import git
from tests.services.worktrees.lab import commit
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

ROUNDS = 100 * SOAK or 3
MINE = frozenset({"GIT_BUSY", "TARGET_MOVED", "STORE_BUSY"})
"""What one process may say because of the other."""
ROWS = Query("rows", "SELECT * FROM worktrees ORDER BY name")
LEFT = Query("left", "SELECT * FROM worktree_steps")


# One of the processes.


def say(what: str, name: str, **more: Any) -> None:
    """Tell what was acknowledged."""
    print(json.dumps({"what": what, "name": name, **more}), flush=True)


async def work(project: Path, me: str, rounds: int) -> None:
    """Make worktrees, commit in them, and have them merged or give them up, until killed."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    async with Workbench.open(Settings(project=project)) as workbench:
        for number in range(rounds):
            await asyncio.gather(*(one_life(workbench, f"{me}-{number}-{life}", life) for life in range(2)))
    print(json.dumps({"what": "done", "name": me}), flush=True)


async def one_life(workbench: Workbench, name: str, life: int) -> None:
    """One worktree from its creation to its end."""
    made = await patiently(workbench, "create_worktree", name=name)
    say("created", name)
    tip = await asyncio.to_thread(commit, Path(made["path"]), f"{name}.txt", name)
    say("committed", name, commit=tip)
    if life == 0:
        asked = await patiently(workbench, "integrate_worktree", worktree_name=name)
        say("asked", name)
        decided = await patiently(workbench, "approve", approval_id=asked["approval_id"])
        say("integrated", name, commit=decided["outcome"]["commit"])
    else:
        (Path(made["path"]) / "draft.txt").write_text(name)
        found = await patiently(workbench, "discard_worktree", worktree_name=name, delete_branch=True, force=True)
        say("discarded", name, bundle=found["bundle"], commit=tip)


async def patiently(workbench: Workbench, operation: str, /, **arguments: Any) -> dict[str, Any]:
    """Call an operation again while it is the other process that is in the way."""
    while True:
        try:
            return await workbench.call(operation, **arguments)
        except WorkbenchError as error:
            if error.code not in MINE:
                raise


# The tests.


@pytest.fixture
def repository(repository: Path) -> Path:
    """A git repository that ignores what Workbench keeps in it."""
    (repository / ".gitignore").write_text(".aiswarm/\n")
    commit(repository, "begin.txt")
    return repository


def acknowledged(process: Any) -> Iterator[dict[str, Any]]:
    """The whole lines that a process has printed; a line cut by its end does not count."""
    for line in process.stdout:
        if line.endswith("\n") and line.startswith("{"):
            yield json.loads(line)


async def check(settings: Settings, root: Path, said: list[dict[str, Any]]) -> None:
    """Everything acknowledged holds, nothing is half done, and git finds nothing wrong."""
    async with Workbench.open(settings) as workbench:
        async with Servers(workbench) as servers:
            await servers.start(0)
            await workbench.call("get_worktree_status")
        rows = {row["name"]: row for row in await workbench.store.read(lambda tx: tx.all(ROWS))}
        assert await workbench.store.read(lambda tx: tx.all(LEFT)) == []
    assert {row["status"] for row in rows.values()} <= {"active", "integrated", "discarded"}
    active = {name for name, row in rows.items() if row["status"] == "active"}
    for kind in ("worktrees", "repositories"):
        assert {path.name for path in (root / ".aiswarm" / kind).iterdir()} == active
    assert len(git("worktree", "list", cwd=root).splitlines()) == 1 + len(active)
    assert git("status", "--porcelain", cwd=root) == ""
    git("fsck", "--strict", "--no-dangling", cwd=root)
    merged = set(git("rev-list", "main", cwd=root).split())
    branches = set(git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", cwd=root).split())
    for line in said:
        row = rows[line["name"]]
        if line["what"] == "integrated":
            assert (row["status"], row["integrated_commit"]) == ("integrated", line["commit"])
            assert line["commit"] in merged
        elif line["what"] == "discarded":
            assert row["status"] == "discarded"
            heads = git("bundle", "list-heads", line["bundle"], cwd=root)
            assert line["commit"] in heads
            assert row["branch_name"] not in branches
        elif line["what"] == "committed" and row["status"] != "discarded":
            assert row["branch_name"] in branches
            git("cat-file", "-e", line["commit"], cwd=root)
    for name, row in rows.items():
        assert (row["status"] == "integrated") == (root / f"{name}.txt").exists()
    assert not git("for-each-ref", "refs/workbench", cwd=root)


@pytest.mark.long
async def test_two_processes_work_with_worktrees_at_once(child: Any, settings: Settings, repository: Path) -> None:
    processes = [child(__file__, repository, me, "2") for me in ("one", "two")]
    said = await together(processes)
    assert sorted(line["name"] for line in said if line["what"] == "done") == ["one", "two"]
    said = [line for line in said if line["what"] != "done"]
    assert [line["what"] for line in said].count("integrated") == 4
    await check(settings, repository, said)


@pytest.mark.chaos
@pytest.mark.timeout(2_000 if SOAK else 900)
async def test_killed_processes_lose_no_work_and_leave_no_half_done_worktree(
    child: Any, settings: Settings, repository: Path
) -> None:
    random = chance()
    said: list[dict[str, Any]] = []
    for round_ in range(ROUNDS):
        processes = [child(__file__, repository, f"r{round_}-{me}", "20") for me in ("a", "b")]
        lines = random.randrange(1 if round_ < ROUNDS - 1 else 15, 20)  # with 15 one of them has done all of it
        said += await together(processes, lines, random.uniform(0, 0.3))
        await check(settings, repository, said)
    assert {line["what"] for line in said} >= {"created", "committed", "integrated", "discarded"}


async def together(processes: list[Any], lines: int | None = None, seconds: float = 0) -> list[dict[str, Any]]:
    """Let processes work at the same time; what they said.

    Args:
        lines: kill them a moment after they have said so many; None: they work to their end.
        seconds: that moment.
    """
    for process in processes:
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    found: list[dict[str, Any]] = []
    enough = threading.Event()

    def listen(process: Any) -> None:
        for line in acknowledged(process):
            found.append(line)
            if lines is not None and len(found) >= lines:
                enough.set()
        enough.set()  # it has ended

    listening = [asyncio.create_task(asyncio.to_thread(listen, process)) for process in processes]
    if lines is not None:
        await asyncio.to_thread(enough.wait)
        await asyncio.sleep(seconds)  # any moment will do
        for process in processes:
            process.kill()
    await asyncio.gather(*listening)
    for process in processes:
        await asyncio.to_thread(process.wait)
    return found


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
