"""The remains of a crashed creation, integration or removal, step by step, and how they are settled.

Each test does the first steps of an operation through the layers below it, as if the process had been killed then,
and lets another one come.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.chance import chance
from tests.conftest import git
from tests.services.worktrees.lab import approval, ask, commit, finished, worktree_row
from tests.small_disk import fill, small_disk
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.git import Repository
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals
from workbench.services.integration import merge, queue
from workbench.services.worktrees import journal, rows
from workbench.services.worktrees.places import COMMITTER, WorktreeLocation
from workbench.shells.serve import Servers
from workbench.state.machine import Machine, name_of
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]

BRANCH = "wb/lab/main"
STEPS = Query("steps", "SELECT * FROM worktree_steps")


@asynccontextmanager
async def another(settings: Settings, how: str) -> AsyncIterator[Workbench]:
    """Another process comes: it serves, or it makes some other change."""
    async with Workbench.open(settings) as workbench, Servers(workbench) as servers:
        if how == "serves":
            await servers.start(0)
        else:
            await given.worktree(workbench, "other")
        yield workbench


async def write(settings: Settings, change: Callable[[Any], Any]) -> Any:
    """Write something down, and end."""
    async with Workbench.open(settings) as workbench:
        return await workbench.store.write(change)


@pytest.fixture
def how(request: pytest.FixtureRequest) -> str:
    """The action of the other process: the seed decides, except where a test asks for both."""
    return getattr(request, "param", None) or chance(request.node.name).choice(["serves", "works"])


def there(root: Path) -> dict[str, bool]:
    """The existing parts of the worktree `lab`."""
    home = root / ".aiswarm"
    return {
        "files": (home / "worktrees" / "lab").exists(),
        "repository": (home / "repositories" / "lab").exists(),
        "record": "worktrees/lab" in git("worktree", "list", cwd=root),
        "branch": git("branch", "--list", BRANCH, cwd=root) != "",
    }


NOTHING = {"files": False, "repository": False, "record": False, "branch": False}


# A creation


def _directories(repository: Repository, place: WorktreeLocation) -> None:
    place.path.mkdir(parents=True)
    place.git_dir.mkdir(parents=True)


def _branch(repository: Repository, place: WorktreeLocation) -> None:
    _directories(repository, place)
    git("branch", BRANCH, "main", cwd=repository.root)


def _record(repository: Repository, place: WorktreeLocation) -> None:
    git("worktree", "add", "-q", "--no-checkout", "-b", BRANCH, str(place.path), cwd=repository.root)
    place.git_dir.mkdir(parents=True)


def _half_a_repository(repository: Repository, place: WorktreeLocation) -> None:
    _everything(repository, place)
    shutil.rmtree(place.git_dir / "refs")
    (place.path / "README.md").unlink()


def _everything(repository: Repository, place: WorktreeLocation) -> None:
    repository.add_worktree(place.path, place.git_dir, BRANCH, "main")


CREATION = (lambda repository, place: None, _directories, _branch, _record, _half_a_repository, _everything)


async def begin_creation(settings: Settings, root: Path) -> WorktreeLocation:
    """Write the journal entry before a creation."""
    place, start = WorktreeLocation.of(settings, "lab"), git("rev-parse", "main", cwd=root)
    await write(settings, lambda tx: journal.begin(tx, Machine(name_of(settings)), "create", place, BRANCH, start))
    return place


@pytest.mark.parametrize("steps", CREATION)
async def test_a_creation_that_was_cut_off_is_undone(
    settings: Settings, repository: Path, steps: Callable[[Repository, WorktreeLocation], None], how: str
) -> None:
    steps(Repository.open(repository), await begin_creation(settings, repository))
    async with another(settings, how) as workbench:
        assert there(repository) == NOTHING
        assert await workbench.store.read(lambda tx: tx.all(STEPS)) == []
        assert (await given.worktree(workbench)).is_dir()
        assert all(there(repository).values())


async def test_a_branch_on_which_somebody_worked_meanwhile_stays(settings: Settings, repository: Path) -> None:
    _everything(Repository.open(repository), await begin_creation(settings, repository))
    tip = git("commit-tree", "-p", "main", "-m", "Mine", "main^{tree}", cwd=repository)
    git("update-ref", f"refs/heads/{BRANCH}", tip, cwd=repository)
    async with another(settings, "serves"):
        assert there(repository) == {**NOTHING, "branch": True}


# A removal


@pytest.mark.parametrize("left", ["everything", "repository", "record", "nothing"])
@pytest.mark.parametrize("delete_branch", [False, True])
async def test_a_removal_that_was_cut_off_is_done(
    settings: Settings, repository: Path, left: str, how: str, delete_branch: bool
) -> None:
    place = WorktreeLocation.of(settings, "lab")
    async with Workbench.open(settings) as workbench:
        tip = commit(await given.worktree(workbench))
        await worktree_row(workbench)

        def change(tx: Any) -> None:
            rows.close_worktree(tx, rows.require_worktree(tx, "lab"), WorktreeAction.DISCARD, None)
            journal.begin(tx, Machine(name_of(settings)), "remove", place, BRANCH, tip if delete_branch else None)

        await workbench.store.write(change)
    if left != "everything":
        shutil.rmtree(place.path)
    if left in ("record", "nothing"):
        shutil.rmtree(place.git_dir)
    if left == "nothing":
        shutil.rmtree(repository / ".git" / "worktrees" / "lab")
    async with another(settings, how) as workbench:
        assert there(repository) == {**NOTHING, "branch": not delete_branch}
        assert (await worktree_row(workbench))["status"] == "discarded"


# An integration


async def ready(settings: Settings) -> int:
    """A worktree with a commit that is asked for; the approval's id."""
    async with Workbench.open(settings) as workbench:
        commit(await given.worktree(workbench))
        return await ask(workbench)


async def begin_merge(settings: Settings, question: int) -> approvals.ApprovalInfo:
    """Write the journal entry before the merge."""

    def change(tx: Any) -> approvals.ApprovalInfo:
        found = approvals.find(tx, question)
        assert found is not None
        merge._set_merging(tx, found)
        return found

    return await write(settings, change)


@pytest.mark.parametrize("how", ["serves", "works"], indirect=True)
async def test_a_merge_that_was_cut_off_before_it_happened_can_be_approved_again(
    settings: Settings, repository: Path, how: str
) -> None:
    question = await ready(settings)
    await begin_merge(settings, question)
    before = git("rev-parse", "main", cwd=repository)
    async with another(settings, how) as workbench:
        assert (await worktree_row(workbench))["status"] == "active"
        assert (await approval(workbench, question))["status"] == "pending"
        assert "worktree.refused" in await given.kinds(workbench, "worktree.*")
        assert git("rev-parse", "main", cwd=repository) == before
        await workbench.call("approve", approval_id=question)
        decided = await finished(workbench, question)
        assert decided["outcome"]["commit"] == git("rev-parse", "main", cwd=repository)


@pytest.mark.parametrize("how", ["serves", "works"], indirect=True)
@pytest.mark.parametrize("by", ["workbench", "hand"])
async def test_a_merge_that_happened_before_the_crash_counts(
    settings: Settings, repository: Path, how: str, by: str
) -> None:
    question = await ready(settings)
    what = (await begin_merge(settings, question)).payload
    if by == "workbench":
        source, merged = what["source_commit"], what["merged_commit"]
        Repository.open(repository).integrate(source, "main", "m", COMMITTER, merged=merged)
    else:
        git("merge", "-q", "--no-ff", "--no-edit", what["source_commit"], cwd=repository)
    reached = git("rev-parse", "main", cwd=repository)
    async with another(settings, how) as workbench:
        worktree = await worktree_row(workbench)
        assert (worktree["status"], worktree["integrated_commit"]) == ("integrated", reached)
        assert (await approval(workbench, question))["status"] == "approved"
        assert there(repository) == {**NOTHING, "branch": True}
        assert (repository / "new.txt").exists()
        assert git("rev-parse", "main", cwd=repository) == reached


async def test_a_queued_merge_is_merged_by_the_next_server(settings: Settings) -> None:
    question = await ready(settings)

    def change(tx: Any) -> None:
        found = approvals.find(tx, question)
        assert found is not None
        queue.enqueue(tx, found, False, "ada")

    async with Workbench.open(settings) as workbench:
        await workbench.store.write(change)
        await given.worktree(workbench, "other")
        found = await worktree_row(workbench)
        assert (found["status"], found["queue_place"]) == ("integrating", 1)
    async with another(settings, "serves") as workbench:
        while (await worktree_row(workbench))["status"] != "integrated":
            await workbench.call("list_events", after=None, wait_seconds=0.1)
        assert (await approval(workbench, question))["outcome"]["state"] == "integrated"


async def test_files_that_a_merge_left_that_was_cut_off_are_saved(settings: Settings, repository: Path) -> None:
    question = await ready(settings)
    place = WorktreeLocation.of(settings, "lab")
    (place.path / "late.txt").write_text("late\n")
    what = (await begin_merge(settings, question)).payload
    Repository.open(repository).integrate(what["source_commit"], "main", "m", COMMITTER, merged=what["merged_commit"])

    def change(tx: Any) -> None:
        rows.close_worktree(tx, rows.require_worktree(tx, "lab"), WorktreeAction.FINISH, what["merged_commit"])
        journal.begin(tx, Machine(name_of(settings)), "rescue", place, BRANCH, None)

    await write(settings, change)
    async with another(settings, "serves") as workbench:
        (saved,) = (await workbench.call("list_events", kinds=["worktree.saved"]))["events"]
        heads = git("bundle", "list-heads", saved["data"]["bundle"], cwd=repository)
        assert "refs/workbench/saved/lab/uncommitted" in heads
        assert there(repository) == {**NOTHING, "branch": True}


# A full disk


@pytest.mark.chaos
async def test_on_a_full_disk_nothing_is_left_half_done(tmp_path: Path, repository: Path) -> None:
    with small_disk(tmp_path / "disk", 32) as disk:  # what cannot be saved is moved to the trash, twice a round
        root = Path(shutil.copytree(repository, disk / "project"))
        (root / "large.bin").write_bytes(os.urandom(1_500_000))
        git("add", ".", cwd=root)
        git("commit", "-q", "-m", "Something large", cwd=root)
        async with Workbench.open(Settings(project=root, port=0)) as workbench:
            await fill_and_free(workbench, disk, root)


async def fill_and_free(workbench: Workbench, disk: Path, root: Path) -> None:
    """Create, discard and merge on a disk with ever less room."""
    commit(await given.worktree(workbench))
    question = await ask(workbench)
    seen = set()
    some = chance("free bytes").sample((2_500_000, 1_200_000, 300_000, 60_000, 8_000), 2)
    for free in (*some, 0):
        fill(disk, free)
        for name, arguments in (
            ("create_worktree", {"name": "other"}),
            ("discard_worktree", {"worktree_name": "other", "delete_branch": True}),
        ):
            try:
                await workbench.call(name, **arguments)
            except WorkbenchError as error:
                seen.add(error.code)
        (disk / "filler").unlink()
        left = (await workbench.call("get_worktree_status"))["worktrees"]
        if "other" in [one_["name"] for one_ in left]:
            await workbench.call("discard_worktree", worktree_name="other", delete_branch=True)
        await given.worktree(workbench, "next")
        await workbench.call("discard_worktree", worktree_name="next", delete_branch=True)
        for kind in ("worktrees", "repositories"):
            assert [path.name for path in (root / ".aiswarm" / kind).iterdir()] == ["lab"]
        assert git("branch", "--format=%(refname:short)", cwd=root).split() == ["main", BRANCH]
    fill(disk, 0)
    with pytest.raises(WorkbenchError):
        await workbench.call("approve", approval_id=question)
    (disk / "filler").unlink()
    git("fsck", "--no-dangling", cwd=root)
    await workbench.call("approve", approval_id=question)
    assert (root / "new.txt").read_text() == "new\n"
    assert git("status", "--porcelain", cwd=root) == ""
    assert seen - {"WORKTREE_NOT_FOUND"}
