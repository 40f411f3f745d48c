"""Cleanup: the sizes of worktrees are shown, unused files are removed, and the rest is listed with reasons."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Clock, admitted
from tests.services.worktrees.lab import commit
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.services.worktrees import checkouts, cleanup
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def look(workbench: Workbench, **more: Any) -> dict[tuple[str, str], tuple[bool, str]]:
    """The listed files: whether each is safe to remove, and why."""
    report = await workbench.call("prune_worktrees", **more)
    assert report["bytes"] == sum(item["bytes"] for item in report["items"])
    return {(item["kind"], item["name"]): (item["safe"], item["reason"]) for item in report["items"]}


async def test_cleanup_keeps_used_files_and_removes_unused_ones(workbench: Workbench, repository: Path) -> None:
    home = repository / ".aiswarm"
    place = await given.worktree(workbench)
    commit(place)
    await workbench.call("get_worktree_status")
    for name in ("worktrees/empty", "worktrees/full", "repositories/stray", "gates/7/files", "scratch/other"):
        (home / name).mkdir(parents=True)
    (home / "worktrees" / "full" / "work.txt").write_text("work of hours")
    (home / "repositories" / "stray" / "HEAD").write_text("x")
    (home / "gates" / "7" / "files" / "big").write_bytes(b"x" * 100_000)
    for name in ("trash/old.bundle", "logs/agent.log"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("x")
    seen = await look(workbench)
    assert {key for key, (safe, _) in seen.items() if safe} == {("worktree", "empty"), ("gates", "7")}
    assert seen["worktree", "lab"] == (False, "It is active: integrate or discard it.")
    assert "may hold work" in seen["worktree", "full"][1]
    assert "only copy" in seen["trash", "old.bundle"][1]
    assert [path.name for path in (home / "gates").iterdir()] == ["7"]  # no lock was left behind

    done = await workbench.call("prune_worktrees", apply=True)
    assert done["freed"] >= 100_000
    assert not (home / "gates" / "7").exists()
    assert not (home / "worktrees" / "empty").exists()
    assert (home / "worktrees" / "full" / "work.txt").read_text() == "work of hours"
    assert (home / "repositories" / "stray").exists()
    assert (place / "new.txt").exists()
    assert [key for key, (safe, _) in (await look(workbench)).items() if safe] == []


async def test_gates_that_begin_while_it_clears_up_keep_their_files_and_their_lock(
    workbench: Workbench, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = repository / ".aiswarm" / "gates"
    (gates / "7" / "files").mkdir(parents=True)
    (gates / "7.lock").touch()
    remove: Any = cleanup._remove

    def begin_first(*arguments: Any) -> None:
        with (gates / "7.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            remove(*arguments)

    monkeypatch.setattr(cleanup, "_remove", begin_first)
    found = await look(workbench, apply=True)
    assert found["gates", "7"][0]  # it was safe when it was looked at
    assert sorted(path.name for path in gates.iterdir()) == ["7", "7.lock"]


async def test_links_that_somebody_put_there_are_not_followed(workbench: Workbench, repository: Path) -> None:
    home, outside = repository / ".aiswarm", repository.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x" * 50_000)
    (home / "gates").mkdir()
    (home / "gates" / "9").symlink_to(outside)
    (home / "worktrees").mkdir()
    (home / "worktrees" / "link").symlink_to(outside)
    report = await workbench.call("prune_worktrees", apply=True)
    assert report["bytes"] < 50_000
    assert (outside / "precious").exists()


@pytest.mark.parametrize("is_claimed", [False, True], ids=["while nobody works", "while somebody works"])
async def test_a_checkout_is_removed_if_no_attempt_can_be_using_it(
    migrated: Settings, clock: Clock, is_claimed: bool
) -> None:
    async with Workbench.open(migrated, clock=clock) as workbench:
        if is_claimed:
            await given.task(workbench, "Read")
            await given.claim(workbench, await admitted(workbench, "ada"))
        place = await checkouts.of_target(workbench._ctx)
        assert place
        home, now = Path(place.path).parent, clock.now / SECOND
        os.utime(home / "ready", (now, now))  # files do not go by the test's clock
        clock.forward(5)
        safe, reason = (await look(workbench, apply=True))["checkout", place.commit]
        assert (safe, home.exists()) == (not is_claimed, is_claimed), reason
        assert await checkouts.of_target(workbench._ctx) == place
        assert (home / "files" / "README.md").exists()


async def test_a_checkout_that_is_used_while_it_clears_up_stays(workbench: Workbench) -> None:
    place = await checkouts.of_target(workbench._ctx)
    assert place
    repository, home = await workbench._ctx.local.repositories.open(), Path(place.path).parent
    begin = await checkouts.begin_of_use(workbench._ctx)
    os.utime(home / "ready", (begin, begin))
    checkouts.remove(repository, home, begin)
    assert sorted(path.name for path in home.iterdir()) == ["files", "ready", "repository"]
    os.utime(home / "ready", (begin - 1, begin - 1))
    checkouts.remove(repository, home, begin)
    assert not home.exists()
