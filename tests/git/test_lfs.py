"""A worktree has the contents of its files of Git LFS from the person's own store, and brings new ones to it."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from tests.git.parts import ANNA, MEGABYTE, add, commit, git, inside, own, remove, write
from workbench.git import Repository, lfs
from workbench.git.run import GitResult, run

pytestmark = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="needs git-lfs")


def stored(git_dir: Path, text: str) -> Path:
    name = sha256(text.encode()).hexdigest()
    return git_dir / "lfs" / "objects" / name[:2] / name[2:4] / name


@pytest.fixture
def large(root: Path) -> Path:
    """A repository with two files of Git LFS; the content of one is nowhere."""
    git(root, "lfs", "install", "--local")
    commit(
        root, {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": "a\n", "lost.bin": "lost\n"}
    )
    stored(root / ".git", "lost\n").unlink()
    return root


def test_contents_are_there_offline_and_what_is_missing_is_named(large: Path, repo: Repository, place: Path) -> None:
    add(repo, place / "w", "w")
    checkout = inside(place / "w")
    assert (place / "w/a.bin").read_text() == "a\n"
    assert (place / "w/lost.bin").read_text().startswith("version ")
    assert (checkout.pointers(), checkout.uncommitted()) == (["lost.bin"], [])
    write(place / "w", {"other": "other\n"})
    checkout.commit_all("other", ANNA)
    assert git(place / "w", "diff", "--name-only", "main", "HEAD") == "other"


def test_a_new_content_comes_to_the_person_with_its_commit(large: Path, repo: Repository, place: Path) -> None:
    add(repo, place / "w", "w")
    write(place / "w", {"new.bin": "new\n", "forged.bin": "forged\n"})
    checkout = inside(place / "w")
    checkout.commit_all("new", ANNA)
    forged, unnamed = stored(own(place / "w"), "forged\n"), stored(own(place / "w"), "in no commit\n")
    for path in (forged, unnamed):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text("in no commit\n")
    repo.import_branch(checkout, "w", max_bytes=MEGABYTE)
    remove(repo, place / "w")
    assert stored(large / ".git", "new\n").read_text() == "new\n"
    assert not stored(large / ".git", "forged\n").exists()
    assert not stored(large / ".git", "in no commit\n").exists()
    git(large, "config", "lfs.skipDownloadErrors", "true")
    git(large, "merge", "--quiet", "w")
    assert (large / "new.bin").read_text() == "new\n"


def test_a_content_that_a_link_of_the_worker_leads_to_is_not_copied(
    large: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    add(repo, place / "w", "w")
    write(place / "w", {"new.bin": "new\n"})
    commit_id = inside(place / "w").commit_all("new", ANNA)
    assert commit_id is not None
    store = own(place / "w") / "lfs" / "objects"
    store.rename(tmp_path / "elsewhere")
    store.symlink_to(tmp_path / "elsewhere")

    def ask(*arguments: str, stdin: bytes = b"") -> GitResult:
        return run(arguments, place / "w", {}, 60, stdin)

    lfs.bring(ask, large / ".git", own(place / "w"), commit_id, [git(large, "rev-parse", "main")], MEGABYTE)
    assert not stored(large / ".git", "new\n").exists()
