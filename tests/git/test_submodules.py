"""A worktree has the files of its submodules, from the person's own repositories of them; nothing is fetched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.git.parts import ANNA, MEGABYTE, add, commit, git, inside, own, remove, write
from workbench.git import Checkout, Repository

ALLOW = ("-c", "protocol.file.allow=always")
LINKS = "refs/workbench/links"


def library(place: Path, files: dict[str, str], **submodules: Path) -> Path:
    """A repository with submodules of its own."""
    place.mkdir(parents=True)
    git(place, "init", "--quiet", "--initial-branch=main")
    write(place, files)
    for path, source in submodules.items():
        git(place, *ALLOW, "submodule", "--quiet", "add", str(source), path)
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "library")
    return place


def link(root: Path, source: Path, path: str = "lib") -> str:
    """Add a library as a submodule of the person's, with all that it has; the commit of it."""
    git(root, *ALLOW, "submodule", "--quiet", "add", str(source), path)
    git(root, *ALLOW, "submodule", "--quiet", "update", "--init", "--recursive")
    commit(root, {}, "link")
    return git(root / path, "rev-parse", "HEAD")


def new(repo: Repository, place: Path, name: str = "w", start: str = "main") -> tuple[Checkout, list[str]]:
    """A worktree with its submodules, and what it does not have of them."""
    head = add(repo, place / name, name, start)
    checkout = inside(place / name)
    return checkout, repo.fill_submodules(checkout, head)


def took(repo: Repository, checkout: Checkout, branch: str = "w") -> str:
    return repo.import_branch(checkout, branch, max_bytes=MEGABYTE)


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    return library(tmp_path / "lib", {"f": "f\n"})


@pytest.mark.long
def test_submodules_are_populated_five_deep_without_their_sources(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    sources = [library(tmp_path / "s5", {"deepest": "5\n"})]
    for level in (4, 3, 2, 1):
        sources.append(library(tmp_path / f"s{level}", {"f": f"{level}\n"}, sub=sources[-1]))
    link(root, sources[-1])
    for source in sources:
        shutil.rmtree(source)
    checkout, left_out = new(repo, place)
    assert left_out == repo.empty_submodules(checkout.path, "main") == []
    assert (checkout.path / "lib/sub/sub/sub/sub/deepest").read_text() == "5\n"
    assert checkout.uncommitted() == []
    assert git(checkout.path, "submodule", "status", "--recursive").count("\n") == 4
    assert git(checkout.path / "lib/sub/sub", "log", "--format=%s") == "library"


@pytest.mark.long
def test_commits_in_submodules_come_to_the_person_with_the_links_to_them(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    link(root, library(tmp_path / "outer", {"f": "f\n"}, sub=library(tmp_path / "inner", {"g": "g\n"})))
    checkout, _ = new(repo, place)
    write(checkout.path, {"lib/f": "changed\n", "lib/sub/new": "new\n"})
    assert checkout.commit_all("work", ANNA) == took(repo, checkout)
    remove(repo, checkout.path)
    git(root, "merge", "--quiet", "--ff-only", "w")
    git(root, *ALLOW, "submodule", "--quiet", "update", "--recursive", "--no-fetch")
    assert (root / "lib/f").read_text() + (root / "lib/sub/new").read_text() == "changed\nnew\n"
    assert git(root / "lib", "for-each-ref", "--format=%(refname)", LINKS).endswith(
        git(root / "lib", "rev-parse", "HEAD")
    )
    assert git(root, "submodule", "foreach", "--quiet", "--recursive", "git fsck --no-progress; git status -s") == ""


def test_what_is_not_committed_in_a_submodule_is_kept_with_the_attempt_and_taken_back(
    root: Path, repo: Repository, place: Path, lib: Path
) -> None:
    first = link(root, lib)
    checkout, _ = new(repo, place)
    base = took(repo, checkout)
    commit(checkout.path / "lib", {"f": "committed\n"})
    write(checkout.path, {"lib/f": "not committed\n", "lib/untracked": "u\n"})
    assert checkout.uncommitted() == ["lib"]
    kept = "refs/workbench/attempts/1/1"
    checkout.keep_all(kept, (), "kept", ANNA)
    repo.import_ref(checkout, kept, into=kept, max_bytes=MEGABYTE)
    checkout.return_to("w", base)
    assert checkout.uncommitted() == []
    assert git(checkout.path / "lib", "rev-parse", "HEAD") == first
    assert (checkout.path / "lib/f").read_text() == "f\n"
    assert not (checkout.path / "lib/untracked").exists()
    remove(repo, checkout.path)
    at = git(root, "rev-parse", f"{kept}:lib")
    assert git(root / "lib", "show", f"{at}:f") == "not committed"
    assert git(root / "lib", "show", f"{at}:untracked") == "u"
    assert git(root / "lib", "show", f"{at}^:f") == "committed"


def test_submodules_follow_their_links_after_a_merge_and_no_commit_sets_one_back(
    root: Path, repo: Repository, place: Path, lib: Path, tmp_path: Path
) -> None:
    link(root, lib)
    link(root, library(tmp_path / "gone", {"g": "g\n"}), "gone")
    checkout, _ = new(repo, place)
    before = took(repo, checkout)
    newer = commit(root / "lib", {"f": "newer\n"})
    lost = "1" * 40
    git(root, "update-index", "--cacheinfo", f"160000,{newer},lib", "--cacheinfo", f"160000,{lost},gone")
    git(root, "commit", "--quiet", "--message", "newer")
    assert checkout.merge(git(root, "rev-parse", "main"), "merge", ANNA) == []
    merged = took(repo, checkout)
    (left_out,) = repo.fill_submodules(checkout, merged, before)
    assert left_out == f"gone (its commit {lost[:12]} is not in your repository of it: fetch it there)"
    assert git(checkout.path / "lib", "rev-parse", "HEAD") == newer
    assert (checkout.path / "lib/f").read_text() == "newer\n"
    assert list((checkout.path / "gone").iterdir()) == []
    assert checkout.uncommitted() == []
    assert checkout.commit_all("nothing", ANNA) is None


def test_work_in_a_submodule_stays_where_it_is_after_a_merge(
    root: Path, repo: Repository, place: Path, lib: Path
) -> None:
    link(root, lib)
    checkout, _ = new(repo, place)
    before = took(repo, checkout)
    commit(root / "lib", {"f": "newer\n"})
    git(root, "commit", "--quiet", "--all", "--message", "newer")
    write(checkout.path, {"lib/mine": "mine\n"})
    checkout.merge(git(root, "rev-parse", "main"), "merge", ANNA)
    repo.fill_submodules(checkout, took(repo, checkout), before)
    assert (checkout.path / "lib/mine").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("ext::sh -c touch% {mark}", "lib"),
        ("--upload-pack=touch {mark}", "lib"),
        ("file://{outside}", "lib"),
        ("../outside", "lib"),
        ("{outside}", "../../../outside/.git"),
        ("{outside}", "..\\lib"),
        ("{outside}", "linked"),
    ],
)
def test_nothing_of_a_hostile_list_is_fetched_run_or_opened(
    root: Path, repo: Repository, place: Path, tmp_path: Path, url: str, name: str
) -> None:
    outside, mark = library(tmp_path / "outside", {"secret": "s\n"}), tmp_path / "mark"
    (root / ".git/modules").mkdir()
    (root / ".git/modules/linked").symlink_to(outside / ".git")
    address = url.format(mark=mark, outside=outside).replace("\\", "\\\\")
    quoted = name.replace("\\", "\\\\")
    write(root, {".gitmodules": f'[submodule "{quoted}"]\n\tpath = lib\n\turl = {address}\n\tupdate = !touch {mark}\n'})
    git(root, "add", ".gitmodules")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{git(outside, 'rev-parse', 'HEAD')},lib")
    git(root, "commit", "--quiet", "--message", "hostile")
    checkout, left_out = new(repo, place)
    assert left_out == [
        f"lib ({'it is not initialised in your checkout' if name in ('lib', 'linked') else 'its name is not allowed'})"
    ]
    assert repo.empty_submodules(checkout.path, "main") == left_out
    assert not mark.exists()
    assert not (own(checkout.path) / "modules").exists()
    assert list((checkout.path / "lib").iterdir()) == []
    assert not any("outside" in str(path) for path in repo.object_directories())


@pytest.mark.parametrize("path", ["../lib", "/etc", "a//b", "./lib", "a/../../lib"])
def test_a_list_whose_paths_lead_out_of_the_repository_names_nothing(
    root: Path, repo: Repository, place: Path, path: str
) -> None:
    write(root, {".gitmodules": f'[submodule "lib"]\n\tpath = {path}\n\turl = x\n'})
    git(root, "add", ".gitmodules")
    git(root, "commit", "--quiet", "--message", "hostile")
    checkout, left_out = new(repo, place)
    assert (left_out, repo.empty_submodules(checkout.path, "main"), list(checkout.submodules())) == ([], [], [])


def test_a_link_that_a_worker_placed_leads_nowhere(
    root: Path, repo: Repository, place: Path, lib: Path, tmp_path: Path
) -> None:
    link(root, lib, "deep/lib")
    head = add(repo, place / "w", "w")
    checkout, elsewhere = inside(place / "w"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(checkout.path / "deep")
    (checkout.path / "deep").symlink_to(elsewhere)
    assert repo.fill_submodules(checkout, head) == ["deep/lib (something is in the way of its files or its repository)"]
    (own(checkout.path) / "modules").rename(tmp_path / "modules")
    (own(checkout.path) / "modules").symlink_to(elsewhere)
    (checkout.path / "deep").unlink()
    assert repo.fill_submodules(checkout, head) == ["deep/lib (something is in the way of its files or its repository)"]
    assert list(elsewhere.iterdir()) == []
