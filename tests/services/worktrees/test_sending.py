"""A worktree's branch as a bundle, for its worker on another machine: over real HTTP, into a repository of its own."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from tests.services.worktrees.lab import commit
from tests.services.worktrees.there import bundle_of, clone, fetch, send
from workbench.client import HttpClient
from workbench.process import Writer
from workbench.services.worktrees.kept_work import writer_lock
from workbench.system import file_pieces

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ada(served: Served, settle: Any, repository: Path) -> AsyncIterator[HttpClient]:
    """A worker whose worktree is `lab`, at the server's address and with nothing else."""
    agent = await settle("ada", "lab")
    async with HttpClient(served.info.url, agent.token) as client:
        yield client


async def test_commits_made_elsewhere_come_back_to_the_branch_and_the_worktree(
    ada: HttpClient, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_pieces, "PIECE", 100)
    there = await clone(ada, tmp_path)
    before = git("rev-parse", "HEAD", cwd=there)
    made = commit(there, "new.txt", "made elsewhere\n")
    data, bundle = bundle_of(there, before)

    assert await send(ada, data[:60], bundle["sha256"]) == {"received": 60}
    error = await given.refuses("BUNDLE_INCOMPLETE", ada.call("import_worktree_bundle", **bundle))
    assert error.details["received"] == 60
    await given.refuses("BUNDLE_INCOMPLETE", send(ada, data[90:], bundle["sha256"], 90))  # a piece is missing
    assert await send(ada, b"", bundle["sha256"]) == {"received": 60}  # asked, after the link was cut
    await send(ada, data[60:], bundle["sha256"], 60)

    imported = await ada.call("import_worktree_bundle", **bundle)
    assert (imported["commit"], imported["moved"]) == (made, True)
    assert git("rev-parse", "wb/lab/main", cwd=repository) == made
    assert (repository / ".aiswarm/worktrees/lab/new.txt").read_text() == "made elsewhere\n"
    again = await ada.call("import_worktree_bundle", **bundle)  # its answer was lost
    assert (again["commit"], again["moved"]) == (made, False)
    again = await ada.call("offer_worktree_bundle", known=[made])
    assert (again["commit"], again["bytes"], again["sha256"]) == (made, 0, "")


@pytest.mark.long
async def test_a_branch_that_moved_is_fetched_and_merged_before_commits_are_sent(
    ada: HttpClient, repository: Path, tmp_path: Path
) -> None:
    there = await clone(ada, tmp_path)
    before = git("rev-parse", "HEAD", cwd=there)
    here = commit(repository / ".aiswarm/worktrees/lab", "here.txt")
    commit(there, "there.txt")
    data, bundle = bundle_of(there, before)
    await send(ada, data, bundle["sha256"])
    error = await given.refuses("BRANCH_MOVED", ada.call("import_worktree_bundle", **bundle))
    assert error.details["commit"] == here == git("rev-parse", "wb/lab/main", cwd=repository)

    await fetch(ada, tmp_path / "more.bundle", before)
    git("pull", "-q", "--rebase", str(tmp_path / "more.bundle"), "wb/lab/main", cwd=there)
    data, bundle = bundle_of(there, here)
    await send(ada, data, bundle["sha256"])
    assert (await ada.call("import_worktree_bundle", **bundle))["commit"] == git("rev-parse", "HEAD", cwd=there)


@pytest.mark.long
async def test_what_is_no_bundle_of_sound_commits_moves_nothing(
    ada: HttpClient, repository: Path, tmp_path: Path
) -> None:
    there = await clone(ada, tmp_path)
    before = git("rev-parse", "HEAD", cwd=there)
    middle = commit(there, "one.txt")
    commit(there, "two.txt")
    whole, _ = bundle_of(there, before)
    for data in (b"no bundle", whole[:-30], bundle_of(there, middle)[0]):  # the last needs a commit that is not here
        digest = hashlib.sha256(data).hexdigest()
        await send(ada, data, digest)
        await given.refuses("IMPORT_REFUSED", ada.call("import_worktree_bundle", sha256=digest, bytes=len(data)))
    await send(ada, whole[:-1] + b"x", hashlib.sha256(whole).hexdigest())
    wanted = {"sha256": hashlib.sha256(whole).hexdigest(), "bytes": len(whole)}
    await given.refuses("BUNDLE_DAMAGED", ada.call("import_worktree_bundle", **wanted))
    assert git("rev-parse", "wb/lab/main", cwd=repository) == before


@pytest.mark.long
async def test_branches_of_other_worktrees_and_their_targets_are_taken_to_merge_them(
    ada: HttpClient, served: Served, repository: Path, tmp_path: Path
) -> None:
    there = await clone(ada, tmp_path)
    await given.worktree(served.workbench, "other")
    made = commit(repository / ".aiswarm/worktrees/other", "of_other.txt")
    await served.workbench.call("get_worktree_status", worktree_name="other")
    git("branch", "private", made, cwd=repository)
    known = git("rev-parse", "HEAD", cwd=there)
    assert (await ada.call("offer_worktree_bundle", known=[known]))["branches"] == {
        "main": known,
        "wb/other/main": made,
    }
    offer = await fetch(ada, tmp_path / "other.bundle", known, branch="wb/other/main")
    git("fetch", "-q", str(tmp_path / "other.bundle"), "wb/other/main", cwd=there)
    assert offer["commit"] == git("rev-parse", "FETCH_HEAD", cwd=there) == made
    await given.refuses("BRANCH_NOT_FOUND", ada.call("offer_worktree_bundle", branch="private"))


@pytest.mark.long
async def test_a_bundle_belongs_to_the_worktree_of_its_agent(
    ada: HttpClient, served: Served, settle: Any, admit: Any
) -> None:
    offer = await ada.call("offer_worktree_bundle")
    bob, eve = await settle("bob", "other"), await admit("eve")
    async with HttpClient(served.info.url, bob.token) as other, HttpClient(served.info.url, eve.token) as without:
        await given.refuses("BUNDLE_NOT_FOUND", other.call("read_worktree_bundle", sha256=offer["sha256"]))
        await given.refuses("FORBIDDEN", without.call("offer_worktree_bundle"))
    directory = served.workbench.settings.bundles / "lab"
    assert directory.exists()
    await served.workbench.call("discard_worktree", worktree_name="lab")
    assert not directory.exists()
    await given.refuses("WORKTREE_CLOSED", ada.call("offer_worktree_bundle"))


@pytest.mark.long
async def test_what_an_ended_attempt_left_is_put_away_before_commits_come_in(
    ada: HttpClient, served: Served, repository: Path, tmp_path: Path
) -> None:
    there = await clone(ada, tmp_path)
    before = git("rev-parse", "HEAD", cwd=there)
    made = commit(there)
    data, bundle = bundle_of(there, before)
    await send(ada, data, bundle["sha256"])
    task = await given.whole_task(served.workbench, "t", target_worktree="lab")
    await ada.call("claim_task")
    left = repository / ".aiswarm/worktrees/lab/left.txt"
    lock = writer_lock(served.workbench.settings, "lab")
    with lock.held():
        lock.record(Writer.of_this_process(task["id"], 1))
        await ada.call("begin_attempt", task_id=task["id"], attempt=1, key="k" * 43, worktree="lab")
        left.write_text("half done\n")
        await given.refuses("WORKTREE_BUSY", ada.call("import_worktree_bundle", **bundle))
        await served.workbench.call("cancel_task", task_id=task["id"])
    assert (await ada.call("import_worktree_bundle", **bundle))["commit"] == made
    assert not left.exists()
    assert git("show", f"refs/workbench/attempts/{task['id']}/1:left.txt", cwd=repository) == "half done"
