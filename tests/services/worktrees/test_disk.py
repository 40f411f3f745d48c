"""What the project takes on the disk, and what is cleared if that is more than it may."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests import given
from tests.services.worktrees.lab import commit
from workbench.app import Workbench
from workbench.services.worktrees import disk
from workbench.services.worktrees.kept_work import writer_lock

pytestmark = pytest.mark.anyio

LARGE = b"x" * 300_000


async def parts(workbench: Workbench) -> dict[str, int]:
    usage = await workbench.call("get_disk_usage")
    assert usage["bytes"] == sum(part["bytes"] for part in usage["parts"])
    return {part["part"]: part["bytes"] for part in usage["parts"]}


def put(path: Path, content: bytes = LARGE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


async def test_what_takes_space_is_told_by_its_kind(workbench: Workbench, repository: Path) -> None:
    home, place = repository / ".aiswarm", await given.worktree(workbench)
    before = await parts(workbench)
    put(place / "env" / "pyvenv.cfg", b"")
    put(place / "env" / "lib" / "library.py")
    put(place / "data.bin")
    put(home / "scratch" / "lab" / ".cache" / "uv" / "wheel")
    put(home / "logs" / "agent.log")
    put(home / "agent_sessions" / "lab" / "session.jsonl")
    put(home / "checkouts" / "1234" / "files" / "data.bin")
    after = await parts(workbench)
    grown = {part for part, count in after.items() if count - before.get(part, 0) >= len(LARGE)}
    named = {"environments in worktrees", "worktrees", "caches of commands", "logs", "transcripts", "checkouts"}
    assert grown == named
    assert after["worktrees"] - before["worktrees"] < 2 * len(LARGE), "environments are counted once"


async def test_above_the_limit_only_what_can_be_made_again_is_cleared(
    workbench: Workbench, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, place = repository / ".aiswarm", await given.worktree(workbench)
    commit(place)
    gates = put(home / "gates" / "7" / "files" / "big")
    cache = put(home / "scratch" / "lab" / ".cache" / "wheel")
    kept = [put(place / "data.bin"), put(home / "logs" / "agent.log"), put(home / "trash" / "old.bundle")]
    used = (await workbench.call("get_disk_usage"))["bytes"]

    async def limit(count: int) -> None:
        workbench.settings.__dict__["max_disk_bytes"] = count
        await disk.keep_within_limit(workbench._ctx)

    await limit(0)
    await limit(used)
    assert gates.exists()
    await limit(used - 1)
    assert not gates.exists()
    assert cache.exists(), "what it is about is cleared first, and it is enough"
    with writer_lock(workbench.settings, "lab").held(), caplog.at_level(logging.WARNING):
        await limit(1)
    assert cache.exists(), "a command may run there"
    assert "more than max_disk_bytes" in caplog.text
    await limit(1)
    assert not cache.exists()
    assert all(path.exists() for path in kept)


async def test_the_cache_of_a_worker_that_is_a_link_is_not_followed(workbench: Workbench, repository: Path) -> None:
    mine = put(repository / "mine" / "data.csv")
    await given.worktree(workbench)
    scratch = repository / ".aiswarm" / "scratch" / "lab"
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / ".cache").symlink_to(mine.parent)
    workbench.settings.__dict__["max_disk_bytes"] = 1
    await disk.keep_within_limit(workbench._ctx)
    assert mine.exists()
