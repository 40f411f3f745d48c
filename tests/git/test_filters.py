"""The person's filters and a worker's files: filters run in the worktree's box, if at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.parts import ANNA, MEGABYTE, commit, git, inside, own, write
from tests.given import refused
from workbench.git import Repository

pytestmark = pytest.mark.long

NAMES = ["strip", "Strip-2", "strip.v2", "a=b"]


def filtered_by_a_workers_script(root: Path, work: Path, marker: Path, name: str) -> None:
    """The person's filter runs a script of the repository; the worker brings its own."""
    git(root, "config", f"filter.{name}.smudge", "sh tools/strip.sh")
    write(work, {"tools/strip.sh": f"touch {marker}; sed s/secret/---/\n", "z.txt": "secret\n", "b": "secret\n"})
    commit(work, {".gitattributes": f'*.txt filter="{name}"\n*.txt filter={name}\n'})


@pytest.mark.parametrize("name", NAMES)
def test_no_filter_runs_outside_when_a_worktree_is_made_from_a_workers_branch(
    root: Path, repo: Repository, work: Path, place: Path, tmp_path: Path, name: str
) -> None:
    marker = tmp_path / "marker"
    filtered_by_a_workers_script(root, work, marker, name)
    for new in (place / "v", place / "filtered by a process"):
        repo.add_worktree(new, own(new), f"branch-{new.name[0]}", "work")
        assert not marker.exists()
        assert (new / "z.txt").read_text() == "secret\n"
        git(root, "config", f"filter.{name}.process", f"touch {marker}")
    assert inside(place / "v").uncommitted() == []


@pytest.mark.parametrize("name", ["strip", "Strip-2", "strip.v2"])
def test_filters_are_applied_inside_to_the_files_that_they_are_for(
    root: Path, repo: Repository, work: Path, place: Path, tmp_path: Path, name: str
) -> None:
    marker = tmp_path / "marker"
    filtered_by_a_workers_script(root, work, marker, name)
    new = place / "v"
    repo.add_worktree(new, own(new), "v", "work")
    inside(new).apply_filters(repo.filters())
    assert marker.exists()
    assert [(new / file).read_text() for file in ("z.txt", "b")] == ["---\n", "secret\n"]
    assert inside(new).head() == ("v", git(root, "rev-parse", "work"))


def test_files_that_no_filter_is_for_are_not_written_again(root: Path, repo: Repository, place: Path) -> None:
    git(root, "config", "filter.f.smudge", "tr a-z A-Z")
    commit(root, {".gitattributes": "*.f filter=f\n", "a.f": "a\n"})
    new = place / "v"
    repo.add_worktree(new, own(new), "v", "main")
    before = (new / "kept").stat()
    inside(new).apply_filters(["f"])
    after = (new / "kept").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (new / "a.f").read_text() == "A\n"


@pytest.mark.parametrize(
    ("smudge", "clean", "code"), [("exit 1", "exit 1", "GIT_FAILED"), ("sleep 600", "cat", "GIT_TIMEOUT")]
)
def test_files_stay_as_stored_when_their_filter_fails(
    root: Path, repo: Repository, place: Path, smudge: str, clean: str, code: str
) -> None:
    commit(root, {".gitattributes": "*.bin filter=f\n", "a.bin": "pointer\n", "z.bin": "pointer\n"})
    git(root, "config", "filter.f.smudge", smudge)
    git(root, "config", "filter.f.clean", clean)
    git(root, "config", "filter.f.required", "true")
    new = place / "v"
    repo.add_worktree(new, own(new), "v", "main")
    refused(code, inside(new, limit=2.0).apply_filters, repo.filters())
    assert [(new / file).read_text() for file in ("a.bin", "z.bin", "kept")] == ["pointer\n", "pointer\n", "kept\n"]
    assert inside(new).uncommitted() == []
    write(new, {"more": "more\n"})
    commit_id = inside(new).commit_all("more", ANNA)
    assert repo.import_branch(inside(new), "v", max_bytes=MEGABYTE) == commit_id
