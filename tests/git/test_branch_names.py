"""Names of branches and starts that git could misread."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.git.parts import ANNA, add, commit, git, refused, remove
from workbench.errors import BadInput
from workbench.git import Repository

BAD_NAMES = [
    *("", "-", "--", "-d", "--force", "-b/x", "/", "/a", "a/", "a//b", ".", "..", "a..b", ".a", "a/.b"),
    *("a.lock", "a.lock/b", "a.", "@", "a@{0}", "@{-1}", "@{u}", "a b", "a\tb", "a\nb", "a\0b", "a\x7f"),
    *("a~1", "a^", "a^{tree}", "a:b", ":/first", "a?", "a*", "a[b", "a\\b", "HEAD", "FETCH_HEAD"),
    *("0" * 40, "a" * 64, "F" * 40, "x" * 201, "a/" * 600 + "a", "\ud800", "main ", " main", "main..side"),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_git_could_misread_is_no_branch_name(repo: Repository, place: Path, name: str) -> None:
    before = sorted(repo.root.rglob("*"))
    refused("BAD_BRANCH_NAME", repo.check_branch_name, name)
    refused("BAD_BRANCH_NAME", add, repo, place / "w", name, "main")
    assert repo.resolve(name) is None
    refused("BRANCH_NOT_FOUND", repo.integrate, "main", name, "no", ANNA)
    assert sorted(repo.root.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["a", "wb/w1/main", "a-b_c.d", "ünï/漢字", "a@b", "a{b}", "a'b\"c", "$(x)", "a;b|c&d", "a=b,c", "x" * 200]
)
def test_a_strange_name_that_git_takes_names_a_branch(repo: Repository, place: Path, name: str) -> None:
    assert add(repo, place / "w", name, "main") == repo.resolve(name)
    made = commit(place / "w", {"file": ""})
    remove(repo, place / "w")
    assert repo.commits("main", name, 1)[0].id == made
    assert repo.integrate(name, "main", "all", ANNA).kind == "merged"


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab./-@{}~^:?*[\\ \n\x7fklco") | st.characters(), max_size=8))
def test_every_name_we_take_git_takes_too(name: str) -> None:
    with suppress(BadInput):
        Repository.check_branch_name(name)
        checked = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True)
        assert checked.returncode == 0


def test_a_branch_is_meant_where_a_tag_has_the_same_name(root: Path, repo: Repository, place: Path) -> None:
    git(root, "tag", "twin")
    later = commit(root, {"shared": "4\n"})
    git(root, "branch", "twin")
    assert repo.resolve("twin") == later
    assert repo.ahead_behind("twin", "main") == (0, 0)
    assert add(repo, place / "w", "from-twin", "twin") == later
    git(root, "tag", "made", "main~1")
    add(repo, place / "v", "made", "main")
    assert git(place / "v", "rev-parse", "HEAD") == later


def test_a_whole_commit_id_is_meant_where_a_branch_has_the_same_name(root: Path, repo: Repository) -> None:
    first = git(root, "rev-parse", "main")
    later = commit(root, {"shared": "4\n"})
    git(root, "update-ref", f"refs/heads/{first}", later)
    assert repo.commits(first, "main", 9)[0].id == later
    assert repo.ahead_behind(first, "main") == (0, 1)
