"""Worktrees work in every kind of repository, or an error says why not and nothing is half done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.git.parts import (
    ANNA,
    HOSTILE_FILES,
    MEGABYTE,
    Picture,
    add,
    commit,
    git,
    inside,
    own,
    records,
    remove,
    write,
)
from tests.given import refused
from workbench.git import FileChange, Integration, Repository

pytestmark = pytest.mark.long


def life(repo: Repository, path: Path) -> str:
    """A worktree from its making to its end: it changes a file, is imported, merged and removed; the merge."""
    target = repo.current_branch() or "main"
    start = add(repo, path, "work", repo.resolve(target) or "main")
    assert inside(path).head() == ("work", start)
    assert inside(path).uncommitted() == []
    write(path, {"made/in worktree": "made\n"})
    commit_id = inside(path).commit_all("made", ANNA)
    assert commit_id == repo.import_branch(inside(path), "work", max_bytes=MEGABYTE) == repo.resolve("work")
    assert [file.path for file in repo.diff(target, "work", max_bytes=MEGABYTE)] == ["made/in worktree"]
    merged = repo.merge_commit("work", target, "merge", ANNA)
    assert repo.integrate("work", target, "merge", ANNA, merged=merged) == Integration(merged, "merged")
    assert inside(path).merge(merged, "update", ANNA) == []
    assert inside(path).head() == ("work", merged)
    remove(repo, path)
    assert (records(repo.root), path.exists(), own(path).exists()) == ([], False, False)
    for question in (("fsck", "--full", "--no-dangling"), ("worktree", "prune", "-v"), ("status", "--porcelain")):
        assert "error" not in git(repo.root, *question)
    return merged


def test_worktrees_work_in_a_repository_with_sha256(tmp_path: Path) -> None:
    root = tmp_path / "long"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(root))
    commit(root, {"a": "1\n"})
    repo = Repository.open(root)
    assert len(life(repo, root / ".aiswarm" / "worktrees" / "w")) == 64
    git(root, "checkout", "--quiet", "--orphan", "lone")
    commit(root, {"a": "2\n"}, "alone")
    assert repo.diff_stat("lone", "work") == [FileChange("a", 1, 0), FileChange("made/in worktree", 1, 0)]


def test_worktrees_work_with_a_detached_head(root: Path, repo: Repository, place: Path) -> None:
    git(root, "checkout", "--quiet", "--detach")
    write(root, {"shared": "uncommitted\n"})
    life(repo, place / "w")
    assert (root / "shared").read_text() == "uncommitted\n"


def test_worktrees_work_beside_a_branch_without_commits(root: Path, repo: Repository, place: Path) -> None:
    git(root, "checkout", "--quiet", "--orphan", "fresh")
    refused("BRANCH_NOT_FOUND", add, repo, place / "w", "work", "fresh")
    assert (records(root), list(place.glob("*"))) == ([], [])
    assert add(repo, place / "w", "work") == repo.resolve("main")


@pytest.mark.parametrize("partly", ["--depth=1", "--depth=2", "--filter=blob:none"])
def test_worktrees_work_in_a_partial_clone(root: Path, tmp_path: Path, partly: str) -> None:
    for number in range(4):
        commit(root, {"shared": f"{number}\n"})
    git(root, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", partly, f"file://{root}", "part")
    part = tmp_path / "part"
    life(Repository.open(part), part / ".aiswarm" / "worktrees" / "w")
    assert git(part, "rev-parse", "--is-shallow-repository") == ("false" if "filter" in partly else "true")


def test_a_shallow_history_made_by_a_worker_is_refused(root: Path, repo: Repository, work: Path) -> None:
    tree = git(work, "rev-parse", "HEAD^{tree}")
    orphan = git(work, "commit-tree", "-m", "x", "-p", git(work, "commit-tree", "-m", "lost", tree), tree)
    (own(work) / "shallow").write_text(f"{orphan}\n")
    git(work, "update-ref", "refs/heads/work", orphan)
    before = Picture.of(root)
    refused("IMPORT_REFUSED", repo.import_branch, inside(work), "work", max_bytes=MEGABYTE)
    assert Picture.of(root) == before


def test_a_worktree_works_in_a_repository_that_borrows_objects(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", str(root), "a: 'b")
    git(tmp_path, "clone", "--quiet", "--shared", "a: 'b", "c")
    borrower = Repository.open(tmp_path / "c")
    assert [path.parent.parent for path in borrower.object_directories()] == [tmp_path / "c", tmp_path / "a: 'b", root]
    life(borrower, tmp_path / "c" / ".aiswarm" / "worktrees" / "w")


@pytest.mark.parametrize("name", ["with space", "colon:s", 'quote"s', "back\\slash", "new\nline", "#hash", "ünï"])
def test_worktrees_work_in_a_directory_with_a_special_name(root: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    moved = root.rename(tmp_path / name / "repo")
    life(Repository.open(moved), moved / ".aiswarm" / "worktrees" / "w")


def test_worktrees_work_in_a_submodule_and_in_its_parent(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(root), "source")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "source"), "sub")
    commit(root, {})
    life(Repository.open(root), root / ".aiswarm" / "worktrees" / "w")
    life(Repository.open(root / "sub"), root / "sub" / ".aiswarm" / "worktrees" / "w")
    assert git(root / "sub", "rev-parse", "--abbrev-ref", "HEAD") == "main"


@pytest.mark.parametrize("how", ["separate git directory", "core.worktree", "link"])
def test_worktrees_work_with_a_git_directory_elsewhere(root: Path, tmp_path: Path, how: str) -> None:
    (root / ".git").rename(tmp_path / "away")
    match how:
        case "link":
            (root / ".git").symlink_to(tmp_path / "away")
        case _:
            (root / ".git").write_text(f"gitdir: {tmp_path / 'away'}\n")
    if how == "core.worktree":
        git(root, "config", "core.worktree", str(root))
    repo = Repository.open(root)
    assert repo.git_dir == tmp_path / "away"
    life(repo, root / ".aiswarm" / "worktrees" / "w")
    assert not list((tmp_path / "away" / "worktrees").glob("*"))


def test_packed_symbolic_broken_and_many_references_are_read(root: Path, repo: Repository, place: Path) -> None:
    tip = git(root, "rev-parse", "main")
    git(root, "update-ref", "--stdin", stdin="".join(f"create refs/heads/b{n} {tip}\n" for n in range(2_000)))
    git(root, "tag", "--annotate", "--message=x", "v1")
    git(root, "update-ref", "refs/tags/file", git(root, "rev-parse", "main:kept"))
    git(root, "pack-refs", "--all")
    git(root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    (root / ".git" / "refs" / "heads" / "broken").write_text("1" * 40 + "\n")
    add(repo, place / "w", "work")
    assert git(place / "w", "describe", "--tags", "main") == "v1"
    commit_id = commit(place / "w", {"new": ""})
    assert repo.resolve("work") == commit_id


def test_a_project_in_a_part_of_a_repository_may_have_every_kind_of_file(root: Path) -> None:
    write(root, dict.fromkeys(HOSTILE_FILES, "x\n") | {"run": "#!/bin/sh\n", "part/file": ""})
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("nowhere")
    git(root, "mv", "kept", "KEPT")
    commit(root, {})
    repo = Repository.open(root / "part")
    assert repo.root == root
    life(repo, root / "part" / ".aiswarm" / "worktrees" / "w")
    assert os.access(root / "run", os.X_OK)


def test_worktrees_work_with_a_rename_of_case_only(root: Path, repo: Repository, place: Path) -> None:
    add(repo, place / "w", "work")
    git(place / "w", "mv", "kept", "Kept")
    commit(place / "w", {})
    (file,) = repo.diff("main", "work", max_bytes=MEGABYTE)
    assert (file.status, file.old_path, file.path) == ("R", "kept", "Kept")
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"
    assert sorted(path.name for path in root.iterdir() if path.is_file()) == [".gitignore", "Kept", "shared"]
    assert git(root, "status", "--porcelain") == "?? .aiswarm/"


def test_the_global_git_configuration_of_the_person_works_in_a_worktree(
    root: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    commit(root, {".gitattributes": "*.f filter=f\n", "a.f": "a\n"})
    for key, value in {
        "filter.f.clean": "tr A-Z a-z",
        "filter.f.smudge": 'tr a-z A-Z; : "quoted\t # ;"',
        "filter.f.required": "true",
        "core.excludesFile": "~/ignored",
        "core.attributesFile": "~/attributes",
    }.items():
        git(root, "config", "--file", str(tmp_path / ".gitconfig"), key, value)
    write(tmp_path, {"ignored": "*.mine\n", "attributes": "*.g filter=f\n"})
    write(root, {".git/info/exclude": "*.here\n.aiswarm\n"})
    repo = Repository(root, root / ".git")
    add(repo, place / "w", "work")
    assert (place / "w" / "a.f").read_text() == "A\n"

    box = inside(place / "w", environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "empty")})
    assert box.uncommitted() == []
    write(place / "w", {"b.f": "BEE\n", "c.g": "CEE\n", "x.mine": "", "y.here": "", "z": ""})
    assert sorted(box.uncommitted()) == ["b.f", "c.g", "z"]
    assert box.commit_all("all", ANNA) == repo.import_branch(box, "work", max_bytes=MEGABYTE)
    assert [git(root, "show", f"work:{name}") for name in ("b.f", "c.g")] == ["bee", "cee"]
    tracked = git(root, "ls-tree", "-r", "--name-only", "work").splitlines()
    assert tracked == [".gitattributes", ".gitignore", "a.f", "b.f", "c.g", "kept", "shared", "z"]


def test_settings_for_line_ends_and_merge_drivers_come_along(root: Path, repo: Repository, place: Path) -> None:
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "merge.both.driver", "cat %B >> %A")
    git(root, "config", "merge.both.name", 'a "name"\twith\\ all')
    commit(root, {".gitattributes": "shared merge=both\n"})
    git(root, "checkout-index", "--all", "--force")
    add(repo, place / "w", "work")
    assert (place / "w" / "kept").read_bytes() == b"kept\r\n"
    assert git(place / "w", "config", "merge.both.name") == 'a "name"\twith\\ all'
    write(place / "w", {"shared": "theirs\n"})
    inside(place / "w").commit_all("theirs", ANNA)
    ours = commit(root, {"shared": "ours\n"})
    assert inside(place / "w").merge(ours, "both", ANNA) == []
    assert (place / "w" / "shared").read_bytes().split() == [b"theirs", b"ours"]


def test_a_sparse_checkout_of_the_persons_is_not_the_worktrees(root: Path, repo: Repository, place: Path) -> None:
    commit(root, {"in/a": "", "out/b": ""})
    git(root, "config", "core.splitIndex", "true")
    git(root, "sparse-checkout", "set", "--cone", "in")
    assert not (root / "out").exists()
    add(repo, place / "w", "work")
    assert (place / "w" / "out" / "b").exists()
    assert inside(place / "w").uncommitted() == []
    commit(place / "w", {"out/c": "", "in/d": ""})
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"
    assert ((root / "in" / "d").exists(), (root / "out").exists()) == (True, False)


def test_worktrees_work_with_ten_thousand_files(root: Path, repo: Repository, place: Path) -> None:
    commit(root, {f"d{number % 100}/f{number}": f"{number}\n" for number in range(10_000)})
    life(repo, place / "w")
    assert git(root, "status", "--porcelain", "--", ".", ":!.aiswarm") == ""


@pytest.mark.parametrize("how", ["of a checkout", "of a bare repository"])
def test_a_linked_worktree_is_a_checkout_like_any_other(root: Path, tmp_path: Path, how: str) -> None:
    linked, main = tmp_path / "linked", root
    if how == "of a bare repository":
        git(tmp_path, "clone", "--quiet", "--bare", str(root), str(main := tmp_path / "bare.git"))
    git(main, "worktree", "add", "--quiet", "-b", "dev", str(linked))
    repo = Repository.open(linked)
    assert (repo.current_branch(), repo.dirty_files("dev")) == ("dev", [])
    merged = git(main, "rev-parse", "dev") != life(repo, linked / ".aiswarm" / "worktrees" / "w")
    assert merged
    assert (git(linked, "status", "--porcelain"), (linked / "made" / "in worktree").read_text()) == ("", "made\n")
    git(linked, "merge", "--quiet", "--no-commit", "--no-ff", "work", ok=(0, 1))
    write(linked, {"kept": "edited\n"})
    assert repo.dirty_files("dev") == ["kept"]
    if how == "of a checkout":  # the branch of the main checkout cannot move from here
        refused("TARGET_CHECKED_OUT", repo.integrate, "work", "main", "merge", ANNA)
        assert git(root, "status", "--porcelain") == ""
