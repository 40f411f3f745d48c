"""A disk that is full for a while: worktrees stay, and what attempts made is put away once there is space."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, git
from tests.failing_git import KINDS, FailingGit, failing_git
from tests.small_disk import small_disk
from tests.worker.working import working
from workbench.git.run import GitResult
from workbench.services.tasks import attempts
from workbench.services.worktrees import kept_work
from workbench.worker import supervisor

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

FILL = "echo made > made.txt; head -c 60M /dev/zero > ../../../../filler; exit 3"


@pytest.fixture
def repository(repository: Path, tmp_path: Path) -> Iterator[Path]:
    """A project on a small disk."""
    with small_disk(tmp_path / "disk", 32) as disk:
        yield Path(shutil.copytree(repository, disk / "project"))


def _unsaid(command: str, *_: Any) -> GitResult:
    return GitResult(command, 128, b"", "fatal: unable to write new index file")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingGit]:
    """Git, some of whose messages do not say that the disk is full."""
    monkeypatch.setitem(KINDS, "unsaid", _unsaid)
    with failing_git(monkeypatch) as found:
        yield found


async def test_a_worktree_stays_and_its_work_is_put_away_once_there_is_space(
    served: Served, settle: Admit, repository: Path, monkeypatch: pytest.MonkeyPatch, broken: FailingGit
) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(kept_work, "RETRY_SECONDS", 0)
    ada, workbench, filler = await settle("ada", "lab"), served.workbench, repository.parent / "filler"
    broken.begin("unsaid", 1, "add", again=True)
    lab = workbench.settings.worktrees / "lab"
    for _ in range(40):  # the store has room, as on most days
        await workbench.store.write(lambda tx: tx.emit("task.changed", "task:0", text="x" * 100_000))
    task_id = await given.task(workbench, run=FILL, max_retries=0)
    tries: set[int] = set()

    async def tried() -> bool:
        work = await workbench.store.read(lambda tx: attempts.find_work(tx, task_id, 1))
        tries.update([work["tried_at"]] if work and work["tried_at"] else [])
        return len(tries) > 2 or not lab.exists()

    async with working(served, ada.token):
        await given.appeared(filler)
        await given.until(tried)
        assert lab.exists(), "its files are not moved away: they could not be made again"
        filler.unlink()
        broken.end()
        await given.reached(workbench, task_id, "failed")
        await given.reached(workbench, await given.task(workbench, run="test ! -e made.txt"), "completed")
    kept = git("ls-tree", "--name-only", f"refs/workbench/attempts/{task_id}/1", cwd=repository).split()
    assert kept == ["README.md", "made.txt"]
