"""Interrupted work: nothing is half done, or the remains can be removed."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.git.parts import ANNA, MEGABYTE, Picture, add, commit, git, inside, own, records, remove, script, write
from tests.given import refused
from tests.small_disk import fill, small_disk
from workbench.errors import WorkbenchError
from workbench.git import Repository

pytestmark = [pytest.mark.chaos, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]


def dying(tmp_path: Path, call: int, when: str) -> Path:
    """A git that kills who calls it for the `call`-th time, before or after it has done what was asked."""
    real, count = shutil.which("git"), tmp_path / "calls"
    count.unlink(missing_ok=True)
    kill, work = "kill -9 $PPID; exit 1", f'{real} "$@"'
    steps = f"{kill}" if when == "before" else f"{work}; {kill}"
    script(tmp_path / "dying" / "git", f'echo >> {count}; [ "$(wc -l < {count})" = {call} ] || exec {work}; {steps}')
    return tmp_path / "dying"


def killed(function: Callable[[], object], path: Path) -> bool:
    """Whether a process of its own that does this, with a git from `path`, dies."""
    child = os.fork()
    if child == 0:
        os.environ["PATH"] = f"{path}:{os.environ['PATH']}"
        try:
            function()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def crashes(function: Callable[[], object], tmp_path: Path, when: str) -> Iterator[int]:
    """Each crash of a function, one for each time it calls git."""
    for call in range(1, 60):
        if not killed(function, dying(tmp_path, call, when)):
            return
        yield call
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_a_worktree_is_made_leaves_what_removing_cleans(
    root: Path, repo: Repository, place: Path, tmp_path: Path, when: str
) -> None:
    before, seen = Picture.of(root), []
    for call in crashes(lambda: add(repo, place / "w", "work"), tmp_path, when):
        seen.append(call)
        for command in (("worktree", "list"), ("fsck",), ("log", "--all"), ("status",), ("worktree", "prune")):
            git(root, *command)
        remove(repo, place / "w")
        assert (records(root), *place.glob("*"), *own(place / "w").parent.glob("*")) == ([],)
        if commit_ := repo.resolve("work"):
            assert repo.only_in("work") == 0
            repo.delete_branch("work", commit_)
        assert Picture.of(root) == before
    assert len(seen) > 5
    assert inside(place / "w").head()[0] == "work"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_importing_moves_the_branch_whole_or_not(
    root: Path, repo: Repository, work: Path, tmp_path: Path, when: str
) -> None:
    write(work, {f"more/{number}": f"{number}\n" for number in range(120)})
    old, commit_id, seen = repo.resolve("work"), inside(work).commit_all("more", ANNA), []
    for call in crashes(lambda: repo.import_branch(inside(work), "work", max_bytes=MEGABYTE), tmp_path, when):
        seen.append(call)
        assert repo.resolve("work") in (old, commit_id)
        assert "error" not in git(root, "fsck", "--full", "--strict", "--no-dangling")
        git(root, "update-ref", "refs/heads/work", str(old))
    assert len(seen) > 5
    assert repo.resolve("work") == commit_id
    git(root, "gc", "--quiet", "--prune=now")
    assert not list((root / ".git" / "objects").glob("tmp_*"))
    assert git(root, "show", "work:more/7") == "7"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_integrating_leaves_the_old_commit_or_the_new(
    root: Path, repo: Repository, work: Path, tmp_path: Path, when: str
) -> None:
    git(root, "branch", "other")
    old = repo.resolve("other")
    merged, seen = repo.merge_commit("work", "other", "merge", ANNA), []

    def integrate() -> None:
        repo.integrate("work", "other", "merge", ANNA, merged=merged)

    for call in crashes(integrate, tmp_path, when):
        seen.append(call)
        assert repo.resolve("other") in (old, merged)
        git(root, "update-ref", "refs/heads/other", str(old))
    assert len(seen) > 3
    assert repo.resolve("other") == merged


@pytest.mark.parametrize("left", range(8))
def test_an_interrupted_removal_of_a_worktree_is_finished_by_the_next(
    root: Path, repo: Repository, work: Path, left: int
) -> None:
    parts = [work, own(work), root / ".git" / "worktrees" / "w"]
    for number, part in enumerate(parts):
        if not left & 1 << number:
            shutil.rmtree(part)
    remove(repo, work)
    assert [part.exists() for part in parts] == [False] * 3
    assert add(repo, work, "again", "work") == repo.resolve("work")


@pytest.mark.parametrize("part", ["gitdir", "commondir", "HEAD"])
def test_a_record_that_was_not_finished_is_removed(root: Path, repo: Repository, work: Path, part: str) -> None:
    (root / ".git" / "worktrees" / "w" / part).write_text("")
    remove(repo, work)
    assert records(root) == []


# -- a full disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    with small_disk(tmp_path / "small", 3) as place:
        yield place


@pytest.mark.parametrize("free", [0, 20_000, 60_000, 100_000, 200_000])
def test_on_a_full_disk_a_worktree_is_made_whole_or_not(root: Path, small: Path, free: int) -> None:
    write(root, {f"f{number}": "x" * 3_000 for number in range(40)})
    commit(root, {})
    shutil.copytree(root, small / "repo")
    repo, path = Repository.open(small / "repo"), small / "repo" / ".aiswarm" / "worktrees" / "w"
    git(repo.root, "status")
    fill(small, free)
    before = Picture.of(repo.root)
    try:
        add(repo, path, "work")
    except WorkbenchError as error:
        assert error.code in ("GIT_FAILED", "WORKTREE_PATH_UNUSABLE")
        (small / "filler").unlink()
        assert (path.exists(), own(path).exists()) == (False, False)
        assert Picture.of(repo.root) == before
    else:
        (small / "filler").unlink()
        assert inside(path).uncommitted() == []
    assert "error" not in git(repo.root, "fsck", "--full", "--no-dangling")


@pytest.mark.parametrize("many", [False, True], ids=["few objects", "many"])
def test_on_a_full_disk_an_import_is_refused_and_comes_later(root: Path, small: Path, many: bool) -> None:
    shutil.copytree(root, small / "repo")
    repo, path = Repository.open(small / "repo"), small / "repo" / ".aiswarm" / "worktrees" / "w"
    add(repo, path, "work")
    noise = random.Random(1)
    count = 150 if many else 3
    for number in range(count):
        (path / f"f{number}").write_bytes(noise.randbytes(300_000 // count))
    commit_id, old = inside(path).commit_all("more", ANNA), repo.resolve("work")
    fill(small, 250_000)
    before = Picture.of(repo.root)
    error = refused("GIT_FAILED", repo.import_branch, inside(path), "work", max_bytes=MEGABYTE)
    assert "No space" in str(error.message) + str(error.details)
    assert Picture.of(repo.root) == before
    assert repo.resolve("work") == old
    (small / "filler").unlink()
    assert repo.import_branch(inside(path), "work", max_bytes=MEGABYTE) == commit_id
    assert "error" not in git(repo.root, "fsck", "--full", "--strict", "--no-dangling")
