"""Names of branches and starts that git could misread."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.git.parts import ANNA, MEGABYTE, Picture, add, commit, git, inside, remove, write
from tests.given import refused
from workbench.errors import BadInput, WorkbenchError
from workbench.git import Repository

pytestmark = pytest.mark.long

BAD_NAMES = [
    *("", "-", "--", "-d", "--force", "-b/x", "/", "/a", "a/", "a//b", ".", "..", "a..b", ".a", "a/.b"),
    *("a.lock", "a.lock/b", "a.", "@", "a@{0}", "@{-1}", "@{u}", "a b", "a\tb", "a\nb", "a\0b", "a\x7f"),
    *("a~1", "a^", "a^{tree}", "a:b", ":/first", "a?", "a*", "a[b", "a\\b", "HEAD", "FETCH_HEAD"),
    *("0" * 40, "a" * 64, "F" * 40, "x" * 201, "a/" * 600 + "a", "\ud800", "main ", " main", "main..side"),
]


def test_a_name_that_git_could_misread_is_no_branch_name(repo: Repository, place: Path) -> None:
    before = sorted(repo.root.rglob("*"))
    for name in BAD_NAMES:
        refused("BAD_BRANCH_NAME", repo.check_branch_name, name)
        refused("BAD_BRANCH_NAME", add, repo, place / "w", name, "main")
        assert repo.resolve(name) is None, ascii(name)
        refused("BRANCH_NOT_FOUND", repo.integrate, "main", name, "no", ANNA)
    assert sorted(repo.root.rglob("*")) == before


HOSTILE_NAMES = [
    *BAD_NAMES,
    *(f"a{letter}b" for letter in map(chr, range(0x21))),
    *(f"-{option}" for option in ("h", "v", "D", "-all", "-upload-pack=x", "-exec=x", "-output=/tmp/x", "c core.x=y")),
    *("../../x", "..", "x/../y", "/etc/passwd", "~root", "~/x", "C:\\x", "C:/x", "\\\\host\\x", "file:///x", "ext::sh"),
    *("$(touch x)", "`touch x`", "a;touch x", "a|touch", "a&touch&", "$HOME", "${IFS}", "%00", "%2e%2e", "a>b", "a<b"),
    *("'", '"', "''", '"; DROP TABLE worktrees; --', "a\\'b", "!!", "!x", "#x", "#", "a#b", "=", "a=b", "=x"),
    *("refs/heads/main", "refs/heads/x", "refs/tags/x", "refs/stash", "refs", "heads/main", "heads", "tags/v1"),
    *("HEAD/x", "x/HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "head", "Head", "stash", "FETCH_HEAD/x"),
    *("main/x", "main/", "Main", "MAIN", "origin/main", "remotes/origin/x", "worktrees/x", "main-worktree/x"),
    *("x.lock/y", "x.LOCK", "x.lock.", ".lock", "a/.lock", "x.loc", ".git", "a/.git", ".git/hooks/x", "GIT~1", "a/.."),
    *("CON", "NUL", "aux", "com1", "a:$DATA", "con/x", "lpt1.txt", "a. ", "a .b"),
    *("\u200b", "a\u200bb", "\u202egnp.exe", "\ufeffx", "\u00ad", "\u2028", "\u0000x", "\u0085", "\u00a0", "\u3000"),
    *("e\u0301", "\u00e9", "ﬁ", "ⅷ", "İ", "ß", "ı", "Å", "🦜", "👩\u200d💻", "漢字", "עברית", "\U0010ffff", "\ue000"),
    *("x" * 199, "x" * 200, "x" * 201, "ü" * 100, "ü" * 101, "🦜" * 50, "a/" * 50 + "a", "a/" * 499 + "a", "a/" * 500),
    *("0", "00", "1", "-0", "0x1", "1e9", "null", "None", "true", "undefined", "NaN", "0" * 39, "0" * 41, "f" * 40),
    *("a" * 7, "deadbeef", "a@{1}", "a@{upstream}", "a@{-1}", "@{now}", "a@", "@a", "a@b", "@@", "@/x", "{", "}", "{}"),
    *(
        "a^0",
        "a^!",
        "a^{}",
        "a~0",
        "a...b",
        ":a",
        ":0:a",
        ":/a",
        "a:b",
        "^a",
        "^",
        "*",
        "a*",
        "?",
        "a?b",
        "[a]",
        "[",
        "]",
    ),
    *("a", "wb/w1/main", "a-b_c.d", "ünï/漢字", "a{b}", "a'b\"c", "$(x)", "a;b|c&d", "a=b,c"),
    *("<script>", "a,b", "a+b", "+a", "+refs/heads/*:refs/heads/*", ",", "&amp;", "(a)", "a|b", "wb/../../x"),
]


@pytest.mark.parametrize("part", range(25))
def test_a_hostile_name_is_refused_or_works_and_harms_nothing(
    root: Path, repo: Repository, place: Path, part: int
) -> None:
    before, outside = Picture.of(root), sorted(path.name for path in root.parent.iterdir())
    for name in sorted(set(HOSTILE_NAMES))[part::25]:
        try:
            start = add(repo, place / "w", name)
        except WorkbenchError as error:
            assert error.code in ("BAD_BRANCH_NAME", "BRANCH_EXISTS"), ascii(name)
            assert not list(root.glob(".aiswarm/[rw]*/*"))
        else:
            assert inside(place / "w").head() == (name, start)
            live(repo, place / "w", name)
    assert Picture.of(root) == before
    assert sorted(path.name for path in root.parent.iterdir()) == outside


def live(repo: Repository, path: Path, name: str) -> None:
    """Commit, merge and remove in a new worktree."""
    write(path, {"new": "new\n"})
    commit_id = inside(path).commit_all("new", ANNA)
    assert commit_id == repo.import_branch(inside(path), name, max_bytes=MEGABYTE) == repo.resolve(name)
    assert (repo.only_in(name), repo.commits("main", name, 1)[0].id) == (1, commit_id)
    assert repo.integrate(name, "main", "merge", ANNA).kind == "merged"
    git(repo.root, "reset", "--quiet", "--hard", "HEAD~1")
    remove(repo, path)
    repo.delete_branch(name, commit_id)


@given(st.text(alphabet=st.sampled_from("ab./-@{}~^:?*[\\ \n\x7fklco") | st.characters(), max_size=8))
def test_git_accepts_every_branch_name_that_workbench_accepts(name: str) -> None:
    with suppress(BadInput):
        Repository.check_branch_name(name)
        checked = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True)
        assert checked.returncode == 0


def test_a_name_of_a_branch_and_a_tag_means_the_branch(root: Path, repo: Repository, place: Path) -> None:
    git(root, "tag", "twin")
    later = commit(root, {"shared": "4\n"})
    git(root, "branch", "twin")
    assert repo.resolve("twin") == later
    assert repo.ahead_behind("twin", "main") == (0, 0)
    assert add(repo, place / "w", "from-twin", "twin") == later
    git(root, "tag", "made", "main~1")
    add(repo, place / "v", "made", "main")
    assert git(place / "v", "rev-parse", "HEAD") == later


def test_a_whole_commit_id_that_is_also_a_branch_means_the_commit(root: Path, repo: Repository) -> None:
    first = git(root, "rev-parse", "main")
    later = commit(root, {"shared": "4\n"})
    git(root, "update-ref", f"refs/heads/{first}", later)
    assert repo.commits(first, "main", 9)[0].id == later
    assert repo.ahead_behind(first, "main") == (0, 1)
