"""A repository inside a worktree counts as files of the worktree, unlike with `git add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.parts import ANNA, MEGABYTE, commit, git, inside, write
from workbench.git import Repository

KEPT = "refs/workbench/attempts/1/1"


def nested(place: Path, files: dict[str, str], *, committed: bool = True) -> None:
    """Make a repository with files in it."""
    place.mkdir(parents=True)
    git(place, "init", "--quiet")
    write(place, files)
    if committed:
        git(place, "add", "--all", "--force")
        git(place, "commit", "--quiet", "--message", "inner")


def as_one_commits_it(work: Path) -> None:
    """An agent that runs `git add` itself."""
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "link")


def listing(root: Path, name: str) -> dict[str, str]:
    """The files below `sub` in a commit, with their content; a link is its mode."""
    rows = git(root, "ls-tree", "-r", "-z", name, "sub").split("\0")[:-1]
    found = {path: facts.split() for facts, _, path in (row.partition("\t") for row in rows)}
    return {
        path: mode if mode == "160000" else git(root, "cat-file", "blob", blob)
        for path, (mode, _, blob) in found.items()
    }


FILES = {"f.txt": "precious", "deep/er/g": "g", "x.ignored": "not this"}
WANTED = {"sub/f.txt": "precious", "sub/deep/er/g": "g", "sub/in/h": "h"}


@pytest.mark.parametrize("how", ["committed", "unborn", "linked by the agent"])
def test_files_of_a_nested_repository_are_committed_kept_and_shown(
    root: Path, repo: Repository, work: Path, how: str
) -> None:
    nested(work / "sub", FILES, committed=how != "unborn")
    nested(work / "sub" / "in", {"h": "h"}, committed=False)
    nested(work / "empty.ignored", {"i": "i"})
    if how == "linked by the agent":
        as_one_commits_it(work)
    checkout = inside(work)
    assert {file.path for file in checkout.dirty_diff(MEGABYTE)} >= WANTED.keys()
    checkout.keep_all(KEPT, (), "kept", ANNA)
    assert listing(root, repo.import_ref(checkout, KEPT, into=KEPT, max_bytes=MEGABYTE)) == WANTED
    commit_id = checkout.commit_all("whole", ANNA)
    assert (checkout.uncommitted(), checkout.commit_all("again", ANNA)) == ([], None)
    assert repo.import_branch(checkout, "work", max_bytes=MEGABYTE) == commit_id
    assert (listing(root, "work"), repo.bare_links("main", "work")) == (WANTED, [])
    write(work, {"sub/f.txt": "later"})
    checkout.commit_all("later", ANNA)
    assert git(work, "show", "HEAD:sub/f.txt") == "later"


def test_a_nested_repository_without_files_blocks_no_commit_and_is_named(work: Path) -> None:
    nested(work / "empty", {}, committed=False)
    write(work, {"a": "a"})
    assert inside(work).commit_all("a", ANNA) is not None
    assert inside(work).commit_all("nothing", ANNA) is None
    assert inside(work).uncommitted() == ["empty/"]
    assert inside(work).keep_all(KEPT, (), "kept", ANNA) == git(work, "rev-parse", "HEAD")


def test_submodules_stay_links(root: Path, repo: Repository, work: Path) -> None:
    nested(work / "lib", {"f": "f"})
    write(work, {".gitmodules": '[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib\n'})
    assert not repo.has_submodules(repo.commit("work"))
    inside(work).commit_all("first as files", ANNA)
    git(work, "rm", "-r", "-q", "--cached", "lib")
    as_one_commits_it(work)
    inside(work).commit_all("nothing", ANNA)
    repo.import_branch(inside(work), "work", max_bytes=MEGABYTE)
    assert git(root, "ls-tree", "work", "lib").startswith("160000 ")
    assert (repo.bare_links("main", "work"), repo.has_submodules(repo.commit("work"))) == ([], True)


def test_links_that_a_branch_has_made_are_found(root: Path, repo: Repository, work: Path) -> None:
    nested(work / "sub", {"f": "f"})
    as_one_commits_it(work)
    repo.import_branch(inside(work), "work", max_bytes=MEGABYTE)
    assert repo.bare_links("main", "work") == ["sub"]
    nested(root / "mine", {"f": "f"})
    commit(root, {"README": "1"}, "the person has links of her own")
    inside(work).merge(git(root, "rev-parse", "main"), "merge", ANNA)
    repo.import_branch(inside(work), "work", max_bytes=MEGABYTE)
    assert git(root, "ls-tree", "work", "mine").startswith("160000 ")
    assert repo.bare_links("main", "work") == ["sub"]
