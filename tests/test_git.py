"""The git program, on real repositories that are as hostile as a worker could make them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import BadInput, Conflict, NotFound, Unavailable, WorkbenchError
from workbench.git import Checkout, Commit, FileChange, Identity, Integration, MergePreview, Repository

ANNA = Identity("Anna Änderung", "anna@example.org")

HOSTILE_FILES = [
    "with space",
    "with\nnewline",
    "with\ttab",
    "-leading-dash",
    "--option=x",
    "ünïcödé 漢字",
    "quote\"and'backslash\\",
    "*.glob?[x]",
    ":(top)magic",
    "deep/er/-x/ file ",
    " ",
    "{a => b}",
]


def git(place: Path, *arguments: str, stdin: str = "", ok: tuple[int, ...] = (0,), **env: str) -> str:
    """Git as the person runs it."""
    who = {f"GIT_{role}_{what}": "pat" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=place, input=stdin, capture_output=True, text=True, env=os.environ | who | env
    )
    assert done.returncode in ok, done.stderr
    return done.stdout.removesuffix("\n")


def write(place: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(place: Path, files: Mapping[str, str], message: str = "change") -> str:
    write(place, files)
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", message)
    return git(place, "rev-parse", "HEAD")


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@dataclass(frozen=True)
class Picture:
    """What a person can see of a repository; equal pictures, nothing changed."""

    refs: str
    status: str
    files: Mapping[str, bytes]
    worktrees: list[str]

    @classmethod
    def of(cls, root: Path) -> Picture:
        files = {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(root).parts
        }
        status = ("status", "--porcelain=v2", "--branch", "--ignored")
        return cls(git(root, "for-each-ref"), git(root, *status, GIT_OPTIONAL_LOCKS="0"), files, records(root))


def records(root: Path) -> list[str]:
    """The worktrees git knows of."""
    return sorted(path.name for path in (root / ".git" / "worktrees").glob("*"))


@pytest.fixture(autouse=True)
def _nobody_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    git(root, "config", "user.useConfigOnly", "true")
    commit(root, {"shared": "1\n2\n3\n", "kept": "kept\n", ".gitignore": "*.ignored\n"}, "first")
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A repository on `main` with one commit, and nobody's name in its configuration."""
    return Path(shutil.copytree(template, tmp_path / "repo"))


@pytest.fixture
def repo(root: Path) -> Repository:
    return Repository(root, root / ".git")


@pytest.fixture
def place(root: Path) -> Path:
    """Where worktrees go."""
    return root / ".aiswarm" / "worktrees"


@pytest.fixture(scope="session")
def worked(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("worked") / "repo"
    shutil.copytree(template, root)
    work = root / ".aiswarm" / "worktrees" / "w"
    Repository(root, root / ".git").add_worktree(work, "work", "main")
    write(root, {".git/info/exclude": ".aiswarm\n"})
    commit(work, {"new": "new\n"}, "work")
    return root


@pytest.fixture
def work(worked: Path, root: Path, place: Path) -> Path:
    """A worktree with a branch `work`, one commit ahead of `main`."""
    shutil.rmtree(root)
    shutil.copytree(worked, root)
    for pointer in (root / ".git" / "worktrees" / "w" / "gitdir", place / "w" / ".git"):
        pointer.write_text(pointer.read_text().replace(str(worked), str(root)))
    return place / "w"


def refused(code: str, function: Callable[..., object], *arguments: object, **named: object) -> WorkbenchError:
    with pytest.raises(WorkbenchError) as caught:
        function(*arguments, **named)
    assert caught.value.code == code
    return caught.value


# -- opening


def test_a_repository_opens_from_everywhere_in_it(root: Path, work: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "link").symlink_to("a/b")
    (work / "c").mkdir()
    for path in (root, root / "a" / "b", root / "link", root / ".git", work, work / "c"):
        assert Repository.open(path) == Repository(root, root / ".git")


def test_variables_of_the_caller_lead_nowhere_else(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert Repository.open(root).current_branch() == "main"


def test_a_directory_without_a_repository_is_told_to_make_one(tmp_path: Path) -> None:
    assert "git init" in str(refused("NOT_A_REPOSITORY", Repository.open, tmp_path))
    refused("NOT_A_REPOSITORY", Repository.open, tmp_path / "missing")


def test_a_repository_without_a_commit_is_told_to_make_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert "git commit" in str(refused("NO_COMMITS", Repository.open, tmp_path))


def test_a_bare_repository_is_refused_also_from_a_worktree_of_it(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(root), str(bare))
    git(bare, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    refused("BARE_REPOSITORY", Repository.open, bare)
    refused("BARE_REPOSITORY", Repository.open, tmp_path / "linked")


def test_a_submodule_is_a_repository_of_its_own(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    git(tmp_path, "clone", "--quiet", str(root), str(source))
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "sub")
    sub = Repository.open(root / "sub")
    assert (sub.root, sub.git_dir) == (root / "sub", root / ".git" / "modules" / "sub")
    sub.add_worktree(tmp_path / "linked", "linked", "main")
    assert Repository.open(tmp_path / "linked") == sub


def test_a_git_directory_elsewhere_is_found_from_the_main_checkout_only(tmp_path: Path) -> None:
    main, away = tmp_path / "main", tmp_path / "away"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", f"--separate-git-dir={away}", str(main))
    commit(main, {"file": ""})
    assert Repository.open(main) == Repository(main, away)
    Repository.open(main).add_worktree(tmp_path / "linked", "linked", "main")
    assert "main checkout" in str(refused("NOT_A_REPOSITORY", Repository.open, tmp_path / "linked"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_repository_that_git_does_not_trust_is_not_taken_for_none(root: Path) -> None:
    for path in (root, root / ".git"):
        os.chown(path, 65534, 65534)
    assert "ownership" in refused("GIT_FAILED", Repository.open, root).details["stderr"]


def test_a_git_directory_that_is_a_link_is_followed(root: Path, tmp_path: Path) -> None:
    (root / ".git").rename(tmp_path / "away")
    (root / ".git").symlink_to(tmp_path / "away")
    assert Repository.open(root) == Repository(root, tmp_path / "away")


def test_without_git_the_error_says_so(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    refused("GIT_MISSING", Repository.open, root)


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.37.9", False), ("1.99.0", False), ("2.9.5", False), ("2.38.0", True), ("2.100.1 (Apple Git)", True)],
)
def test_an_old_git_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fits: bool
) -> None:
    real = shutil.which("git")
    case = f'case "$*" in *version) echo git version "{version}";; *) exec {real} "$@";; esac'
    script(tmp_path / "bin" / "git", case)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    if fits:
        assert Repository.open(root).root == root
    else:
        refused("GIT_TOO_OLD", Repository.open, root)


def test_a_repository_that_went_away_is_reported(root: Path, repo: Repository) -> None:
    shutil.rmtree(root)
    assert str(root) in str(refused("GIT_FAILED", repo.current_branch))


def test_what_git_says_is_in_the_error(root: Path, repo: Repository) -> None:
    (root / ".git" / "index").write_bytes(b"not an index at all")
    error = refused("GIT_FAILED", repo.dirty_files, "main")
    assert "index" in error.details["stderr"]
    assert "index" in error.message


# -- names


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
    refused("BAD_BRANCH_NAME", repo.add_worktree, place / "w", name, "main")
    assert repo.resolve(name) is None
    refused("BRANCH_NOT_FOUND", repo.integrate, "main", name, "no", ANNA)
    assert sorted(repo.root.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["a", "wb/w1/main", "a-b_c.d", "ünï/漢字", "a@b", "a{b}", "a'b\"c", "$(x)", "a;b|c&d", "a=b,c", "x" * 200]
)
def test_a_strange_name_that_git_takes_names_a_branch(repo: Repository, place: Path, name: str) -> None:
    assert repo.add_worktree(place / "w", name, "main") == repo.resolve(name)
    made = commit(place / "w", {"file": ""})
    repo.remove_worktree(place / "w")
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
    assert repo.add_worktree(place / "w", "from-twin", "twin") == later
    git(root, "tag", "made", "main~1")
    repo.add_worktree(place / "v", "made", "main")
    assert git(place / "v", "rev-parse", "HEAD") == later


def test_a_whole_commit_id_is_meant_where_a_branch_has_the_same_name(root: Path, repo: Repository) -> None:
    first = git(root, "rev-parse", "main")
    later = commit(root, {"shared": "4\n"})
    git(root, "update-ref", f"refs/heads/{first}", later)
    assert repo.commits(first, "main", 9)[0].id == later
    assert repo.ahead_behind(first, "main") == (0, 1)


# -- reading


def test_the_current_branch_is_none_when_head_is_detached(root: Path, repo: Repository) -> None:
    assert repo.current_branch() == "main"
    git(root, "checkout", "--quiet", "--detach")
    assert repo.current_branch() is None


def test_the_current_branch_is_that_of_the_main_checkout(repo: Repository, work: Path) -> None:
    assert Repository.open(work).current_branch() == "main"


def test_resolving_finds_branches_only(root: Path, repo: Repository) -> None:
    git(root, "tag", "v1")
    assert repo.resolve("main") == git(root, "rev-parse", "HEAD")
    assert [repo.resolve(n) for n in ("v1", "HEAD", "refs/heads/main", "mai")] == [None] * 4


def test_ancestors_are_told_from_others(root: Path, repo: Repository, work: Path) -> None:
    assert repo.is_ancestor("main", "work")
    assert repo.is_ancestor(git(root, "rev-parse", "main"), "work")
    assert not repo.is_ancestor("work", "main")
    assert not repo.is_ancestor("missing", "main")
    assert not repo.is_ancestor("main", "missing")
    assert not repo.is_ancestor("0" * 40, "main")


def test_commits_are_counted_on_both_sides(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {"more": ""})
    commit(root, {"kept": "4\n"})
    assert (repo.ahead_behind("work", "main"), repo.ahead_behind("main", "work")) == ((2, 1), (1, 2))


@pytest.mark.parametrize("question", ["ahead_behind", "diff_stat", "preview_merge"])
def test_an_unknown_branch_is_not_found(repo: Repository, question: str) -> None:
    for names in (("missing", "main"), ("main", "missing")):
        error = refused("BRANCH_NOT_FOUND", getattr(repo, question), *names)
        assert isinstance(error, NotFound)


def test_a_difference_begins_where_the_branch_left(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {"shared": "1\n2\nthree\nfour\n"})
    commit(root, {"kept": "changed on main\n"})
    assert repo.diff_stat("main", "work") == [FileChange("new", 1, 0), FileChange("shared", 2, 1)]


def test_hostile_file_names_come_out_as_they_are(repo: Repository, work: Path) -> None:
    commit(work, {f"{number}/{name}": "x\n" for number, name in enumerate(HOSTILE_FILES)})
    found = {change.path: change.added for change in repo.diff_stat("main", "work")}
    assert found == {f"{number}/{name}": 1 for number, name in enumerate(HOSTILE_FILES)} | {"new": 1}


def test_a_file_name_that_is_not_utf8_is_shown_with_escapes(repo: Repository, work: Path) -> None:
    Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9")).write_text("")
    commit(work, {})
    assert [change.path for change in repo.diff_stat("main", "work")] == ["caf\\xe9", "new"]


def test_a_binary_file_has_no_lines(repo: Repository, work: Path) -> None:
    (work / "data").write_bytes(bytes(range(256)))
    commit(work, {})
    assert FileChange("data", None, None) in repo.diff_stat("main", "work")


def test_a_rename_is_two_changes_whatever_is_configured(root: Path, repo: Repository, work: Path) -> None:
    git(root, "config", "diff.renames", "copies")
    git(work, "mv", "shared", "moved")
    commit(work, {})
    changes = repo.diff_stat("main", "work")
    assert {FileChange("moved", 3, 0), FileChange("shared", 0, 3)} < set(changes)


def test_a_branch_that_shares_no_commit_is_all_new(root: Path, repo: Repository, place: Path) -> None:
    git(root, "checkout", "--quiet", "--orphan", "lone")
    git(root, "rm", "--quiet", "-rf", ".")
    commit(root, {"alone": "1\n"})
    assert repo.diff_stat("main", "lone") == [FileChange("alone", 1, 0)]
    assert repo.preview_merge("main", "lone") == MergePreview(None, ())
    refused("UNRELATED_HISTORIES", repo.integrate, "lone", "main", "no", ANNA)


def test_nothing_that_the_configuration_names_runs_for_a_difference(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    spy = script(tmp_path / "spy", f"touch {tmp_path / 'ran'}; cat")
    for key in ("diff.external", "diff.spy.command", "diff.spy.textconv", "core.fsmonitor", "core.pager"):
        git(root, "config", key, str(spy))
    write(root, {".gitattributes": "* diff=spy\n"})
    commit(work, {".gitattributes": "* diff=spy\n", "shared": "other\n"})
    (tmp_path / "ran").unlink()
    assert FileChange("shared", 1, 3) in repo.diff_stat("main", "work")
    repo.commits("main", "work", 5)
    repo.preview_merge("main", "work")
    repo.dirty_files("main")
    assert not (tmp_path / "ran").exists()


def test_a_changed_submodule_cannot_hide(root: Path, repo: Repository, work: Path) -> None:
    write(root, {".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = x\n\tignore = all\n'})
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    git(work, "commit", "--quiet", "--message", "sub")
    git(root, "config", "diff.ignoreSubmodules", "all")
    assert FileChange("s", 1, 0) in repo.diff_stat("main", "work")


def test_commits_are_listed_newest_first_up_to_the_limit(root: Path, repo: Repository, work: Path) -> None:
    write(work, {"two": ""})
    git(work, "add", "two")
    when = "2001-02-03T04:05:06Z"
    git(work, "commit", "-qm", "ünï\ncode\n\nbody", GIT_AUTHOR_NAME="Änne 漢", GIT_AUTHOR_DATE=when)
    newest, older = repo.commits("main", "work", 10)
    assert newest == Commit(git(work, "rev-parse", "HEAD"), "Änne 漢", 981_173_106_000_000, "ünï code")
    assert (older.subject, older.author) == ("work", "pat")
    assert repo.commits("main", "work", 1) == [newest]
    assert repo.commits("main", "work", 0) == repo.commits("main", "work", -1) == []
    assert repo.commits("work", "main", 10) == []


@pytest.mark.parametrize(
    ("claimed", "at_us"),
    [
        ("a <b> nonsense", 0),
        ("a <b> 99999999999999999999 +0000", 253_402_300_799_000_000),
        ("a <b> 7 +0000", 7_000_000),
    ],
)
def test_a_commit_with_an_absurd_date_is_still_listed(root: Path, repo: Repository, claimed: str, at_us: int) -> None:
    tree, parent = git(root, "rev-parse", "HEAD^{tree}", "HEAD").split()
    text = f"tree {tree}\nparent {parent}\nauthor {claimed}\ncommitter {claimed}\n\nodd\n"
    odd = git(root, "hash-object", "--literally", "-w", "-t", "commit", "--stdin", stdin=text)
    assert [c.at_us for c in repo.commits("main", odd, 5)] == [at_us]


def test_an_author_in_another_encoding_is_readable(root: Path, repo: Repository) -> None:
    tree, parent = git(root, "rev-parse", "HEAD^{tree}", "HEAD").split()
    who = b"J\xfcrgen <j@x> 1 +0000\n"
    raw = b"tree %b\nparent %b\nauthor %bcommitter %b" % (tree.encode(), parent.encode(), who, who)
    (root / "declared").write_bytes(raw + b"encoding ISO-8859-1\n\ngr\xfcn\n")
    (root / "silent").write_bytes(raw + b"\ngr\xfcn\n")
    found = []
    for name in ("declared", "silent"):
        odd = git(root, "hash-object", "-w", "-t", "commit", name)
        found += [(c.author, c.subject) for c in repo.commits("main", odd, 5)]
    assert found == [("Jürgen", "grün"), ("J\\xfcrgen", "gr\\xfcn")]


# -- preview


def test_a_preview_gives_the_tree_of_the_merge_and_moves_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"kept": "changed on main\n"})
    before = Picture.of(root)
    preview = repo.preview_merge("main", "work")
    assert Picture.of(root) == before
    by_ids = repo.preview_merge(git(root, "rev-parse", "main"), git(root, "rev-parse", "work"))
    git(root, "merge", "--quiet", "work")
    assert preview == by_ids == MergePreview(git(root, "rev-parse", "HEAD^{tree}"), ())


def test_a_preview_lists_the_files_in_conflict_whatever_their_names(root: Path, repo: Repository, work: Path) -> None:
    names = [f"{number}/{name}" for number, name in enumerate(HOSTILE_FILES)]
    commit(work, dict.fromkeys(names, "theirs\n"))
    commit(root, dict.fromkeys(names, "ours\n"))
    preview = repo.preview_merge("main", "work")
    assert (preview.tree, sorted(preview.conflicts)) == (None, sorted(names))


def test_a_file_deleted_here_and_changed_there_is_a_conflict(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {"shared": "changed\n"})
    git(root, "rm", "--quiet", "shared")
    commit(root, {})
    assert repo.preview_merge("main", "work").conflicts == ("shared",)


# -- dirty files


def test_the_main_checkout_tells_what_is_not_committed(root: Path, repo: Repository) -> None:
    commit(root, dict.fromkeys(HOSTILE_FILES, "x\n") | {"staged": "", "deleted": "", "same": ""})
    write(root, dict.fromkeys(HOSTILE_FILES, "y\n") | {"staged": "s", "untracked": "", "x.ignored": ""})
    git(root, "add", "staged")
    (root / "deleted").unlink()
    os.utime(root / "same", (1, 1))
    before = (root / ".git" / "index").read_bytes()
    assert sorted(repo.dirty_files("main")) == sorted([*HOSTILE_FILES, "staged", "deleted"])
    assert (root / ".git" / "index").read_bytes() == before


def test_a_branch_that_is_not_checked_out_here_has_no_dirty_files(root: Path, repo: Repository, work: Path) -> None:
    write(work, {"new": "changed\n"})
    write(root, {"shared": "changed\n"})
    assert repo.dirty_files("work") == repo.dirty_files("missing") == []
    git(root, "checkout", "--quiet", "--detach")
    assert repo.dirty_files("main") == []


def test_git_does_not_run_in_a_submodule_to_see_whether_files_are_dirty(
    root: Path, repo: Repository, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", str(root), "source")
    add = ("submodule", "--quiet", "add", str(tmp_path / "source"), "sub")
    git(root, "-c", "protocol.file.allow=always", *add)
    commit(root, {})
    spy = script(tmp_path / "spy", f"touch {tmp_path / 'ran'}")
    git(root / "sub", "config", "core.fsmonitor", str(spy))
    write(root / "sub", {"shared": "changed\n"})
    assert repo.dirty_files("main") == []
    assert not (tmp_path / "ran").exists()
    commit(root / "sub", {})
    assert repo.dirty_files("main") == ["sub"]


# -- worktrees


def test_a_worktree_has_the_files_of_its_start_on_a_branch_of_its_own(
    root: Path, repo: Repository, place: Path
) -> None:
    first = git(root, "rev-parse", "HEAD")
    later = commit(root, {"shared": "4\n"})
    assert repo.add_worktree(place / "a", "wb/a/main", "main") == later
    assert repo.add_worktree(place / "b", "wb/b/main", first) == first
    assert (place / "a" / "shared").read_text() == "4\n"
    assert git(place / "b", "symbolic-ref", "HEAD") == "refs/heads/wb/b/main"
    assert git(place / "b", "status", "--porcelain") == ""
    assert "Created from main" in git(root, "reflog", "wb/a/main")


def test_a_worktree_may_start_at_a_tag_a_remote_branch_or_a_short_id(root: Path, repo: Repository, place: Path) -> None:
    first = git(root, "rev-parse", "HEAD")
    git(root, "tag", "--annotate", "--message=x", "v1")
    git(root, "update-ref", "refs/remotes/origin/far", first)
    for number, start in enumerate(("v1", "origin/far", first[:12])):
        assert repo.add_worktree(place / str(number), f"b{number}", start) == first
    assert git(root, "config", "--get-regexp", r"^branch\.", ok=(1,)) == ""


@pytest.mark.parametrize(
    "start",
    ["missing", "main~0", "main^{commit}", "main@{0}", "@{-1}", "@", ":/first", "main..main", "", "-f", "main\0"],
)
def test_a_start_that_is_no_plain_name_is_not_found(repo: Repository, place: Path, start: str) -> None:
    before = Picture.of(repo.root)
    refused("BRANCH_NOT_FOUND", repo.add_worktree, place / "w", "work", start)
    assert Picture.of(repo.root) == before


def test_a_file_is_no_start(root: Path, repo: Repository, place: Path) -> None:
    blob = git(root, "rev-parse", "HEAD:shared")
    refused("BRANCH_NOT_FOUND", repo.add_worktree, place / "w", "work", blob)


@pytest.mark.parametrize("name", ["work", "work/below", "main/below"])
def test_a_branch_that_exists_or_is_in_the_way_is_not_replaced(
    repo: Repository, place: Path, work: Path, name: str
) -> None:
    before = Picture.of(repo.root)
    error = refused("BRANCH_EXISTS", repo.add_worktree, place / "x", name, "main")
    assert error.details["branch"] == name.split("/")[0]
    assert Picture.of(repo.root) == before
    assert not (place / "x").exists()


def test_a_branch_is_in_the_way_of_the_one_above_it(root: Path, repo: Repository, place: Path) -> None:
    git(root, "branch", "a/b/c")
    error = refused("BRANCH_EXISTS", repo.add_worktree, place / "x", "a/b", "main")
    assert error.details["branch"] == "a/b/c"


@pytest.mark.parametrize("taken", ["directory", "empty directory", "file", "dangling link", "below a file"])
def test_a_path_that_is_taken_is_left_alone(repo: Repository, place: Path, taken: str) -> None:
    path = place / "w"
    place.mkdir(parents=True)
    match taken:
        case "directory":
            write(path, {"mine": "mine"})
        case "empty directory":
            path.mkdir()
        case "file":
            path.write_text("mine")
        case "dangling link":
            path.symlink_to("nowhere")
        case _:
            path.write_text("mine")
            path = path / "below"
    before = Picture.of(repo.root)
    refused("WORKTREE_PATH_TAKEN", repo.add_worktree, path, "work", "main")
    assert Picture.of(repo.root) == before
    assert os.path.lexists(place / "w")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_path_that_cannot_be_made_is_reported(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    refused("WORKTREE_PATH_UNUSABLE", repo.add_worktree, tmp_path / "locked" / "w", "work", "main")
    assert repo.resolve("work") is None


def filtering(root: Path, command: str) -> None:
    """Commit a file with a filter, and make that filter required; nothing is checked out anew."""
    commit(root, {".gitattributes": "*.f filter=f\n", "a.f": "a\n"})
    git(root, "config", "filter.f.clean", "cat")
    git(root, "config", "filter.f.smudge", command)
    git(root, "config", "filter.f.required", "true")


def test_a_checkout_that_fails_leaves_no_branch_and_no_directory(root: Path, repo: Repository, place: Path) -> None:
    filtering(root, "false")
    before = Picture.of(root)
    refused("GIT_FAILED", repo.add_worktree, place / "w", "work", "main")
    assert Picture.of(root) == before
    assert not (place / "w").exists()
    assert not list((root / ".git").glob("worktrees/*"))


def test_a_checkout_that_hangs_is_ended_with_its_filter_and_leaves_nothing(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    filtering(root, f"echo $$ > {tmp_path / 'pid'}; exec sleep 600")
    before = Picture.of(root)
    refused("GIT_TIMEOUT", replace(repo, checkout_limit=0.5).add_worktree, place / "w", "work", "main")
    assert Picture.of(root) == before
    assert not (place / "w").exists()
    assert not (tmp_path / "pid").exists() or ended(int((tmp_path / "pid").read_text()))


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_of_many_that_want_the_same_branch_one_gets_it(repo: Repository, place: Path) -> None:
    def add(number: int) -> str:
        try:
            repo.add_worktree(place / str(number), "work", "main")
        except Conflict as error:
            return error.code
        return "made"

    with ThreadPoolExecutor(8) as pool:
        results = sorted(pool.map(add, range(8)))
    assert results == ["BRANCH_EXISTS"] * 7 + ["made"]
    assert len(list(place.iterdir())) == len(list((repo.git_dir / "worktrees").iterdir())) == 1
    assert repo.resolve("work") == repo.resolve("main")


def test_of_many_that_want_the_same_path_one_gets_it(repo: Repository, place: Path) -> None:
    def add(number: int) -> str:
        try:
            repo.add_worktree(place / "w", f"work{number}", "main")
        except Conflict as error:
            return error.code
        return "made"

    with ThreadPoolExecutor(8) as pool:
        results = sorted(pool.map(add, range(8)))
    assert results == ["WORKTREE_PATH_TAKEN"] * 7 + ["made"]
    assert len(git(repo.root, "branch", "--list", "work*").splitlines()) == 1


@pytest.mark.parametrize("locked", [False, True])
def test_what_is_recorded_of_a_worktree_that_was_here_gives_way(
    root: Path, repo: Repository, work: Path, locked: bool
) -> None:
    if locked:
        git(root, "worktree", "lock", str(work))
    shutil.rmtree(work)
    repo.add_worktree(work, "again", "work")
    assert (work / "new").read_text() == "new\n"
    assert git(root, "worktree", "list").count("\n") == 1


def test_removing_a_worktree_keeps_its_branch(root: Path, repo: Repository, work: Path) -> None:
    write(work, {"untracked": "", "x.ignored": "", "new": "changed"})
    made = repo.resolve("work")
    repo.remove_worktree(work)
    assert not work.exists()
    assert (records(root), repo.resolve("work")) == ([], made)
    repo.remove_worktree(work)
    repo.add_worktree(work, "again", "work")


@pytest.mark.parametrize("left", ["record", "locked record", "directory", "directory without .git"])
def test_what_is_left_of_a_worktree_is_removed(root: Path, repo: Repository, work: Path, left: str) -> None:
    match left:
        case "record":
            shutil.rmtree(work)
        case "locked record":
            git(root, "worktree", "lock", str(work))
            shutil.rmtree(work)
        case "directory":
            shutil.rmtree(root / ".git" / "worktrees" / "w")
        case _:
            (work / ".git").unlink()
    repo.remove_worktree(work)
    assert not work.exists()
    assert records(root) == []


def test_other_worktrees_stay_also_when_they_are_away(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    for name in ("near", "far", "w"):
        git(root, "worktree", "add", "--quiet", str(tmp_path / name))
    for name in ("far", "w"):
        (tmp_path / name).rename(tmp_path / f"{name} unplugged")
    repo.add_worktree(place / "w", "work", "main")
    assert records(root) == ["far", "near", "w", "w1"]
    repo.remove_worktree(place / "w")
    assert records(root) == ["far", "near", "w"]


def test_a_worktree_that_lies_about_its_place_takes_no_other_with_it(
    root: Path, repo: Repository, work: Path, place: Path
) -> None:
    repo.add_worktree(place / "other", "other", "main")
    liar = root / ".git" / "worktrees" / "w" / "gitdir"
    liar.write_text(f"{place / 'other' / '.git'}\n")
    repo.remove_worktree(work)
    assert git(place / "other", "status", "--porcelain") == ""
    assert records(root) == ["other"]


def test_removing_the_one_that_was_lied_about_removes_it(root: Path, repo: Repository, work: Path, place: Path) -> None:
    repo.add_worktree(place / "other", "other", "main")
    (root / ".git" / "worktrees" / "w" / "gitdir").write_text(f"{place / 'other' / '.git'}\n")
    repo.remove_worktree(place / "other")
    assert work.exists()
    assert not (place / "other").exists()


def test_links_in_a_worktree_are_removed_and_not_followed(repo: Repository, work: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"precious": "kept"})
    (work / "link").symlink_to(tmp_path / "outside")
    repo.remove_worktree(work)
    assert (tmp_path / "outside" / "precious").read_text() == "kept"


def test_a_link_in_the_place_of_a_worktree_is_removed_and_not_followed(
    root: Path, repo: Repository, place: Path, tmp_path: Path
) -> None:
    git(root, "worktree", "add", "--quiet", str(tmp_path / "persons"))
    place.mkdir(parents=True)
    (place / "w").symlink_to(tmp_path / "persons")
    repo.remove_worktree(place / "w")
    assert not (place / "w").is_symlink()
    assert git(tmp_path / "persons", "status", "--porcelain") == ""


@pytest.mark.parametrize("path", ["", "..", ".git", "../repo", "link/repo"])
def test_the_main_checkout_is_never_removed(root: Path, repo: Repository, tmp_path: Path, path: str) -> None:
    (root / "link").symlink_to(tmp_path)
    refused("NOT_A_WORKTREE", repo.remove_worktree, root / path)
    assert repo.current_branch() == "main"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_directories_that_a_worker_closed_are_removed(repo: Repository, work: Path) -> None:
    write(work / "a" / "b", {"c": ""})
    (work / "a" / "b").chmod(0)
    (work / "a").chmod(0o500)
    repo.remove_worktree(work)
    assert not work.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete everywhere")
def test_a_worktree_that_cannot_be_removed_is_reported(repo: Repository, work: Path) -> None:
    work.parent.chmod(0o500)
    try:
        refused("WORKTREE_NOT_REMOVED", repo.remove_worktree, work)
    finally:
        work.parent.chmod(0o700)


# -- integration


def log(root: Path, branch: str = "main") -> str:
    return git(root, "log", "--encoding=UTF-8", "--format=%s|%an <%ae>|%cn <%ce>", "--max-count=1", branch)


def test_a_branch_is_merged_and_the_clean_checkout_follows(root: Path, repo: Repository, work: Path) -> None:
    old, source = git(root, "rev-parse", "main", "work").split()
    write(root, {"untracked": "mine", "x.ignored": "mine"})
    done = repo.integrate(source, "main", "Integrate w\n\nApproved.\0", ANNA)
    assert done == Integration(git(root, "rev-parse", "main"), "merged")
    assert git(root, "rev-parse", "main^1", "main^2").split() == [old, source]
    assert log(root) == f"Integrate w|{ANNA.name} <{ANNA.email}>|{ANNA.name} <{ANNA.email}>"
    assert git(root, "status", "--porcelain", "--ignored") == "?? untracked\n!! .aiswarm/\n!! x.ignored"
    assert (root / "new").read_text() == "new\n"
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_merge_brings_both_sides_together(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"kept": "changed on main\n"})
    assert repo.integrate("work", "main", "both", ANNA).kind == "merged"
    assert ((root / "new").read_text(), (root / "kept").read_text()) == ("new\n", "changed on main\n")
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_that_is_not_checked_out_moves_without_touching_the_checkout(
    root: Path, repo: Repository, work: Path
) -> None:
    git(root, "branch", "other")
    write(root, {"shared": "uncommitted\n", "staged": "staged\n"})
    git(root, "add", "staged")
    before = Picture.of(root)
    done = repo.integrate("work", "other", "merge", ANNA)
    after = Picture.of(root)
    assert (after.files, after.status) == (before.files, before.status)
    assert after.refs != before.refs
    assert done == Integration(git(root, "rev-parse", "other"), "merged")
    assert git(root, "show", "other:new") == "new"
    assert log(root, "other").startswith("merge|Anna")


def test_with_a_detached_head_every_branch_can_move(root: Path, repo: Repository, work: Path) -> None:
    git(root, "checkout", "--quiet", "--detach")
    write(root, {"shared": "uncommitted\n"})
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"
    assert (root / "shared").read_text() == "uncommitted\n"
    assert not (root / "new").exists()


def test_a_branch_that_is_in_the_target_is_not_merged_again(root: Path, repo: Repository, work: Path) -> None:
    first = repo.integrate("work", "main", "once", ANNA)
    write(root, {"shared": "uncommitted\n"})
    before = Picture.of(root)
    assert repo.integrate("work", "main", "twice", ANNA) == Integration(first.commit, "already_merged")
    assert repo.integrate("main", "main", "self", ANNA).kind == "already_merged"
    assert Picture.of(root) == before


@pytest.mark.parametrize("target", ["main", "other"])
def test_a_fast_forward_is_made_only_when_asked_for_and_possible(
    root: Path, repo: Repository, work: Path, target: str
) -> None:
    git(root, "branch", "other")
    source = git(root, "rev-parse", "work")
    assert repo.integrate("work", target, "", ANNA, fast_forward=True) == Integration(source, "fast_forward")
    assert git(root, "rev-parse", target) == source
    assert git(root, "status", "--porcelain") == ""
    commit(work, {"more": ""})
    git(root, "checkout", "--quiet", target)
    commit(root, {"kept": "changed on the target\n"})
    assert repo.integrate("work", target, "", ANNA, fast_forward=True).kind == "merged"


def test_a_conflict_lists_the_files_and_changes_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(work, dict.fromkeys(HOSTILE_FILES, "theirs\n") | {"clean": ""})
    commit(root, dict.fromkeys(HOSTILE_FILES, "ours\n"))
    before = Picture.of(root)
    error = refused("MERGE_CONFLICT", repo.integrate, "work", "main", "no", ANNA)
    assert sorted(error.details["files"]) == sorted(HOSTILE_FILES)
    assert Picture.of(root) == before


@pytest.mark.parametrize("how", ["unstaged", "staged", "deleted", "added", "unmerged"])
def test_a_dirty_target_is_refused_and_nothing_changes(root: Path, repo: Repository, work: Path, how: str) -> None:
    write(root, {"kept": "uncommitted\n"})
    match how:
        case "staged":
            git(root, "add", "kept")
        case "deleted":
            (root / "kept").unlink()
        case "added":
            git(root, "checkout", "--quiet", "kept")
            write(root, {"fresh": ""})
            git(root, "add", "--intent-to-add", "fresh")
        case "unmerged":
            git(root, "stash", "--quiet")
            commit(root, {"kept": "else\n"})
            git(root, "stash", "pop", "--quiet", ok=(1,))
    before = Picture.of(root)
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == (["fresh"] if how == "added" else ["kept"])
    assert "Commit or stash" in error.message
    assert Picture.of(root) == before


def test_a_file_that_was_only_touched_is_not_dirty(root: Path, repo: Repository, work: Path) -> None:
    os.utime(root / "shared", (1, 1))
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"


IN_THE_WAY = {
    "a file": ({"new": "mine"}, ["new"]),
    "an ignored file": ({"secret.ignored": "mine"}, ["secret.ignored"]),
    "a file for a directory": ({"directory": "mine"}, ["directory"]),
    "a directory for a file": ({"new/mine": "mine"}, ["new"]),
    "a hostile name": ({"-a\nb": "mine"}, ["-a\nb"]),
    "several": ({"new": "mine", "untouched": "", "directory/f": "mine"}, ["directory/f", "new"]),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_an_untracked_file_in_the_way_is_kept_and_named(root: Path, repo: Repository, work: Path, case: str) -> None:
    mine, named = IN_THE_WAY[case]
    write(work, {"directory/f": "theirs", "secret.ignored": "theirs", "-a\nb": "theirs"})
    (work / "kept").unlink()
    write(work, {"kept/inside": "theirs"})
    git(work, "add", "--force", "--all")
    git(work, "commit", "--quiet", "--message", "all")
    write(root, mine)
    before = Picture.of(root)
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == named
    assert Picture.of(root) == before


def test_an_untracked_link_in_the_way_is_kept(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    commit(work, {"directory/f": "theirs"})
    (tmp_path / "outside").mkdir()
    (root / "directory").symlink_to(tmp_path / "outside")
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == ["directory"]
    assert not list((tmp_path / "outside").iterdir())


UNFINISHED = {
    "merge": ("merge", "--no-commit", "--no-ff", "side"),
    "cherry-pick": ("cherry-pick", "--no-commit", "side"),
    "rebase": ("rebase", "--quiet", "--exec", "false", "HEAD~1"),
    "bisection": ("bisect", "start"),
}


@pytest.mark.parametrize("operation", UNFINISHED)
def test_an_unfinished_operation_on_the_target_is_refused(
    root: Path, repo: Repository, work: Path, operation: str
) -> None:
    commit(root, {"kept": "later\n"})
    git(root, "branch", "side")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "more")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "last")
    if operation in ("merge", "cherry-pick"):
        head = "MERGE_HEAD" if operation == "merge" else "CHERRY_PICK_HEAD"
        (root / ".git" / head).write_text(git(root, "rev-parse", "side") + "\n")
    else:
        git(root, *UNFINISHED[operation], ok=(0, 1))
    before = Picture.of(root)
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert operation in error.message
    assert (error.details["operation"], error.details["files"]) == (operation, [])
    assert Picture.of(root) == before


def test_an_unfinished_operation_on_another_branch_is_no_obstacle(root: Path, repo: Repository, work: Path) -> None:
    git(root, "checkout", "--quiet", "-b", "other")
    git(root, "bisect", "start")
    git(root, "bisect", "reset")
    (root / ".git" / "MERGE_HEAD").write_text(git(root, "rev-parse", "main") + "\n")
    assert repo.integrate("work", "main", "merge", ANNA).kind == "merged"


def test_a_target_in_another_worktree_is_refused(root: Path, repo: Repository, work: Path, place: Path) -> None:
    repo.add_worktree(place / "ünï", "other", "main")
    before = Picture.of(root)
    error = refused("TARGET_CHECKED_OUT", repo.integrate, "work", "other", "no", ANNA)
    assert error.details["worktree"] == str(place / "ünï")
    assert Picture.of(root) == before
    shutil.rmtree(place / "ünï")
    assert repo.integrate("work", "other", "merge", ANNA).kind == "merged"


def test_a_target_that_is_another_name_of_the_checked_out_branch_moves_that(
    root: Path, repo: Repository, work: Path
) -> None:
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    write(root, {"kept": "uncommitted\n"})
    refused("TARGET_DIRTY", repo.integrate, "work", "alias", "no", ANNA)
    git(root, "checkout", "--quiet", "kept")
    assert repo.integrate("work", "alias", "merge", ANNA).kind == "merged"
    assert git(root, "status", "--porcelain") == ""


def test_an_unknown_target_or_source_is_not_found(repo: Repository, work: Path) -> None:
    refused("BRANCH_NOT_FOUND", repo.integrate, "work", "missing", "no", ANNA)
    refused("BRANCH_NOT_FOUND", repo.integrate, "missing", "main", "no", ANNA)
    refused("BRANCH_NOT_FOUND", repo.integrate, "0" * 40, "main", "no", ANNA)
    refused("BRANCH_NOT_FOUND", repo.integrate, "work", "main~0", "no", ANNA)


def racing(root: Path, work: Path, target: str, command: str) -> None:
    """Make `command` run in the middle of the next merge into `target`, by a merge driver."""
    git(root, "config", "merge.race.driver", f"({command}) >/dev/null 2>&1; exit 0")
    git(root, "checkout", "--quiet", target)
    commit(root, {".gitattributes": "shared merge=race\n", "shared": "ours\n"})
    commit(work, {"shared": "theirs\n"})


def test_a_target_that_moves_during_the_merge_is_not_set_back(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    git(root, "branch", "other")
    racing(root, work, "main", "git update-ref refs/heads/other refs/heads/rival")
    git(root, "checkout", "--quiet", "other")
    git(root, "merge", "--quiet", "main")
    git(root, "branch", "rival", commit(root, {"kept": "rival\n"}))
    git(root, "reset", "--quiet", "--hard", "main")
    git(root, "checkout", "--quiet", "main")
    refused("TARGET_MOVED", repo.integrate, "work", "other", "no", ANNA)
    assert repo.resolve("other") == repo.resolve("rival")


def test_a_checked_out_target_that_moves_during_the_merge_is_not_set_back(
    root: Path, repo: Repository, work: Path
) -> None:
    racing(root, work, "main", "git commit --quiet --allow-empty --message rival")
    git(root, "config", "user.name", "pat")
    git(root, "config", "user.email", "pat")
    old = repo.resolve("main")
    refused("TARGET_MOVED", repo.integrate, "work", "main", "no", ANNA)
    assert log(root).startswith("rival|")
    assert git(root, "rev-parse", "main^") == old
    assert git(root, "status", "--porcelain") == ""


def test_a_checkout_that_leaves_the_target_during_the_merge_stays_where_it_went(
    root: Path, repo: Repository, work: Path
) -> None:
    git(root, "branch", "elsewhere")
    racing(root, work, "main", "git checkout --quiet elsewhere")
    before = repo.resolve("main")
    refused("TARGET_MOVED", repo.integrate, "work", "main", "no", ANNA)
    assert repo.current_branch() == "elsewhere"
    assert repo.resolve("main") == before
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_made_at_the_last_moment_does_not_keep_the_merge_from_the_target(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    switch = "git symbolic-ref HEAD refs/heads/just-made"
    filtering(root, f'echo >> {runs}; if [ "$(wc -l < {runs})" = 2 ]; then {switch}; fi; cat')
    commit(work, {".gitattributes": "*.f filter=f\n", "b.f": "b\n"})
    runs.unlink(missing_ok=True)
    git(root, "branch", "just-made")
    done = repo.integrate("work", "main", "merge", ANNA)
    assert repo.current_branch() == "just-made"
    assert repo.resolve("main") == repo.resolve("just-made") == done.commit
    assert git(root, "status", "--porcelain") == ""


def test_an_edit_during_the_merge_is_kept(root: Path, repo: Repository, work: Path) -> None:
    racing(root, work, "main", "echo edited > kept")
    commit(work, {"kept": "theirs\n"})
    error = refused("TARGET_DIRTY", repo.integrate, "work", "main", "no", ANNA)
    assert error.details["files"] == ["kept"]
    assert (root / "kept").read_text() == "edited\n"


def test_a_locked_index_is_reported_and_nothing_changes(root: Path, repo: Repository, work: Path) -> None:
    before = Picture.of(root)
    (root / ".git" / "index.lock").touch()
    error = refused("GIT_FAILED", repo.integrate, "work", "main", "no", ANNA)
    assert "index.lock" in error.details["stderr"]
    (root / ".git" / "index.lock").unlink()
    assert Picture.of(root) == before


@pytest.mark.parametrize(
    ("smudge", "code"), [("exit 1", "GIT_FAILED"), ("sleep 600", "GIT_TIMEOUT")], ids=["fails", "hangs"]
)
def test_a_filter_that_gives_up_leaves_the_checkout_as_it_was(
    root: Path, repo: Repository, work: Path, smudge: str, code: str
) -> None:
    filtering(root, f'text=$(cat); case "$text" in *bad*) {smudge};; esac; echo "$text"')
    git(work, "merge", "--quiet", "main")
    commit(work, {"a.f": "bad\n", "b": "b\n", "c.f": "bad\n"})
    before = Picture.of(root)
    refused(code, replace(repo, checkout_limit=0.5).integrate, "work", "main", "no", ANNA)
    assert Picture.of(root) == before
    assert not list((root / ".git").glob("*.lock"))
    assert not list((root / ".git").glob("tmp*"))


def test_git_is_ended_so_that_it_can_remove_its_locks(root: Path, repo: Repository, work: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    filtering(root, f'echo >> {runs}; if [ "$(wc -l < {runs})" = 2 ]; then sleep 600; fi; cat')
    commit(work, {".gitattributes": "*.f filter=f\n", "b.f": "b\n"})
    runs.unlink(missing_ok=True)
    refused("GIT_TIMEOUT", replace(repo, checkout_limit=1.0).integrate, "work", "main", "no", ANNA)
    assert not list((root / ".git").rglob("*.lock"))
    assert git(root, "rev-parse", "main") != git(root, "rev-parse", "work")


def test_filters_of_the_person_do_their_work(root: Path, repo: Repository, work: Path, place: Path) -> None:
    filtering(root, "tr a-z A-Z")
    git(root, "config", "filter.f.clean", "tr A-Z a-z")
    git(work, "merge", "--quiet", "main")
    commit(work, {"b.f": "BEE\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "b.f").read_text() == "BEE\n"
    assert git(root, "show", "main:b.f") == "bee"
    repo.add_worktree(place / "v", "more", "main")
    assert (place / "v" / "b.f").read_text() == "BEE\n"
    assert repo.dirty_files("main") == []


def test_attributes_that_name_what_nobody_configured_change_nothing(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {".gitattributes": "* filter=no merge=no diff=no textconv=no\n", "shared": "1\n2\n3\n4\n"})
    commit(root, {"shared": "0\n1\n2\n3\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "shared").read_text() == "0\n1\n2\n3\n4\n"


def test_a_merge_driver_of_the_person_does_its_work(root: Path, repo: Repository, work: Path) -> None:
    racing(root, work, "main", "echo driven > %A")
    git(root, "config", "merge.race.driver", "echo driven > %A")
    assert repo.preview_merge("main", "work").conflicts == ()
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "shared").read_text() == "driven\n"


TASTE = {
    "merge.ff": "false",
    "merge.verifySignatures": "true",
    "merge.autoStash": "true",
    "branch.main.mergeOptions": "--squash -s ours",
    "commit.gpgSign": "true",
    "core.autocrlf": "input",
    "core.safecrlf": "true",
    "core.splitIndex": "true",
    "i18n.commitEncoding": "ISO-8859-1",
    "i18n.logOutputEncoding": "ISO-8859-1",
    "submodule.recurse": "true",
    "diff.noprefix": "true",
    "status.relativePaths": "true",
    "log.showSignature": "true",
    "core.quotePath": "false",
    "color.ui": "always",
    "core.pager": "false",
}


def test_the_taste_of_the_person_does_not_change_what_is_done(root: Path, repo: Repository, work: Path) -> None:
    for key, value in TASTE.items():
        git(root, "config", key, value)
    write(work, {"more": "lf\ncrlf\r\n"})
    made = Checkout(work).commit_all("more", ANNA)
    assert repo.diff_stat("main", "work") == [FileChange("more", 2, 0), FileChange("new", 1, 0)]
    listed = [(c.author, c.subject) for c in repo.commits("main", "work", 5)]
    assert listed == [(ANNA.name, "more"), ("pat", "work")]
    done = repo.integrate("work", "main", "Änderung", ANNA)
    assert git(root, "rev-parse", "main", "main^2").split() == [done.commit, made]
    text = git(root, "cat-file", "commit", "main")
    assert text.endswith("Änderung")
    assert "\nencoding" not in text
    assert git(root, "-c", "color.ui=false", "status", "--porcelain") == ""


def test_a_name_with_an_equals_sign_has_its_merge_options_taken_back_too(
    root: Path, repo: Repository, work: Path
) -> None:
    git(root, "checkout", "--quiet", "-b", "a=b.c")
    git(root, "config", "branch.a=b.c.mergeOptions", "--squash")
    done = repo.integrate("work", "a=b.c", "merge", ANNA)
    assert git(root, "rev-parse", "HEAD") == done.commit


HOOKS = [
    *("applypatch-msg", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit"),
    *("post-merge", "post-checkout", "post-rewrite", "reference-transaction", "post-index-change", "pre-auto-gc"),
    *("pre-rebase", "post-applypatch", "fsmonitor-watchman"),
]


@pytest.mark.parametrize("configured", [False, True], ids=["in .git/hooks", "by core.hooksPath"])
def test_no_hook_ever_runs(
    root: Path, repo: Repository, work: Path, place: Path, tmp_path: Path, configured: bool
) -> None:
    hooks = tmp_path / "hooks" if configured else root / ".git" / "hooks"
    for name in HOOKS:
        script(hooks / name, f"echo {name} >> {tmp_path / 'ran'}")
    if configured:
        git(root, "config", "core.hooksPath", str(hooks))
    git(root, "config", "core.fsmonitor", str(hooks / "fsmonitor-watchman"))
    git(root, "config", "gc.auto", "1")
    git(root, "branch", "other")
    (tmp_path / "ran").unlink(missing_ok=True)

    Repository.open(root)
    write(work, {"more": "more"})
    Checkout(work).commit_all("more", ANNA)
    write(work, {"more": "other"})
    Checkout(work).discard_changes()
    repo.add_worktree(place / "v", "v", "main")
    repo.preview_merge("main", "work")
    repo.dirty_files("main")
    repo.integrate("work", "other", "merge", ANNA)
    repo.integrate("work", "main", "merge", ANNA)
    repo.remove_worktree(place / "v")
    assert not (tmp_path / "ran").exists()
    git(root, "commit", "--quiet", "--allow-empty", "--message", "proof that they would have")
    assert (tmp_path / "ran").exists()


def test_a_sha256_repository_works_alike(tmp_path: Path) -> None:
    root = tmp_path / "long"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(root))
    commit(root, {"shared": "1\n"})
    repo = Repository.open(root)
    start = repo.add_worktree(tmp_path / "w", "work", "main")
    made = commit(tmp_path / "w", {"new": "new\n"})
    git(root, "checkout", "--quiet", "--orphan", "lone")
    commit(root, {}, "alone")
    assert len(start) == len(made) == 64
    assert repo.diff_stat("lone", "work") == [FileChange("new", 1, 0), FileChange("shared", 1, 0)]
    assert repo.integrate(made, "main", "merge", ANNA).kind == "merged"


@pytest.mark.parametrize("name", ["", "  ", "...", "<>", "\n", "a\0b"])
def test_a_name_of_which_git_would_leave_nothing_is_refused(name: str) -> None:
    refused("BAD_IDENTITY", Identity, name, "x@y")


def test_every_other_name_signs(work: Path) -> None:
    names = {"a": "a", "<a>": "a", "a\nb": "ab", "Ä": "Ä", ".a.": "a", "agent-1": "agent-1"}
    for name in names:
        write(work, {"file": name})
        assert Checkout(work).commit_all("", Identity(name, "")) is not None
    assert git(work, "log", "--format=%an", "--max-count=6").splitlines() == [*reversed(names.values())]


# -- a checkout, from inside


def test_everything_but_ignored_files_is_committed(repo: Repository, work: Path) -> None:
    write(work, dict.fromkeys(HOSTILE_FILES, "x") | {"x.ignored": "", "shared": "changed\n"})
    (work / "kept").unlink()
    made = Checkout(work).commit_all("All\n\nof it", ANNA)
    assert made == repo.resolve("work")
    assert git(work, "status", "--porcelain", "--ignored") == "!! x.ignored"
    changed = {change.path for change in repo.diff_stat("main", "work")}
    assert changed == {*HOSTILE_FILES, "shared", "kept", "new"}
    assert log(work, "work") == f"All|{ANNA.name} <{ANNA.email}>|{ANNA.name} <{ANNA.email}>"


def test_nothing_new_is_no_commit(repo: Repository, work: Path) -> None:
    before = repo.resolve("work")
    os.utime(work / "new", (1, 1))
    write(work, {"x.ignored": ""})
    assert Checkout(work).commit_all("nothing", ANNA) is None
    assert repo.resolve("work") == before


@pytest.mark.parametrize("message", ["", "# not a comment", "a\0b", "\ud800", "-m"])
def test_any_message_will_do(work: Path, message: str) -> None:
    write(work, {"file": ""})
    assert Checkout(work).commit_all(message, ANNA)
    expected = message.replace("\0", "").encode("utf-8", "replace").decode()
    assert git(work, "log", "-1", "--format=%B").strip() == expected


def test_a_half_done_merge_is_concluded(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"new": "ours\n"})
    git(work, "merge", "--quiet", "main", ok=(1,))
    write(work, {"new": "both\n"})
    made = Checkout(work).commit_all("resolved", ANNA)
    assert made is not None
    assert repo.is_ancestor("main", "work")
    assert git(work, "show", "work:new") == "both"


def test_a_merge_that_changes_no_file_is_concluded_too(root: Path, repo: Repository, work: Path) -> None:
    commit(root, {"other": "x\n"})
    git(work, "merge", "--quiet", "--no-commit", "-s", "ours", "main")
    assert Checkout(work).commit_all("ours", ANNA)
    assert repo.is_ancestor("main", "work")


def test_the_first_commit_of_a_branch_without_any_is_made(work: Path) -> None:
    git(work, "checkout", "--quiet", "--orphan", "fresh")
    assert Checkout(work).commit_all("fresh", ANNA)
    assert git(work, "rev-list", "--count", "fresh") == "1"


@pytest.mark.parametrize("operation", ["edits", "merge", "rebase", "cherry-pick", "lock", "nested repository"])
def test_discarding_goes_back_to_the_last_commit(root: Path, work: Path, operation: str) -> None:
    last = git(work, "rev-parse", "HEAD")
    commit(root, {"new": "ours\n"})
    write(work, {"x.ignored": "kept"})
    match operation:
        case "edits":
            write(work, dict.fromkeys(HOSTILE_FILES, "x") | {"new": "changed"})
            git(work, "add", "--all")
            (work / "kept").unlink()
        case "merge":
            git(work, "merge", "--quiet", "main", ok=(1,))
        case "rebase":
            git(work, "rebase", "--quiet", "main", ok=(1,))
        case "cherry-pick":
            git(work, "cherry-pick", "main", ok=(1,))
        case "lock":
            (root / ".git" / "worktrees" / "w" / "index.lock").touch()
            write(work, {"new": "changed"})
        case _:
            git(work, "init", "--quiet", "inner")
            write(work / "inner", {"file": ""})
    Checkout(work).discard_changes()
    assert git(work, "status", "--porcelain", "--ignored") == "!! x.ignored"
    assert git(work, "rev-parse", "HEAD") == last
    assert git(work, "symbolic-ref", "HEAD") == "refs/heads/work"
    assert not any((root / ".git" / "worktrees" / "w").glob("*-merge"))
    assert "You are currently" not in git(work, "status")


def test_the_lock_of_a_git_that_was_killed_does_not_keep_work_from_being_committed(root: Path, work: Path) -> None:
    (root / ".git" / "worktrees" / "w" / "index.lock").touch()
    write(work, {"more": ""})
    assert Checkout(work).commit_all("more", ANNA)


@pytest.mark.parametrize("action", ["commit", "discard"])
def test_a_worktree_that_lost_its_git_file_never_reaches_the_main_checkout(
    root: Path, repo: Repository, place: Path, action: str
) -> None:
    repo.add_worktree(place / "w", "work", "main")
    (place / "w" / ".git").unlink()
    write(root, {"shared": "uncommitted\n"})
    before = Picture.of(root)
    checkout = Checkout(place / "w")
    with pytest.raises(Unavailable, match="GIT_FAILED"):
        checkout.commit_all("no", ANNA) if action == "commit" else checkout.discard_changes()
    assert Picture.of(root) == before


def test_a_worker_s_own_object_directory_takes_its_commits(root: Path, work: Path, tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    objects.mkdir()
    env = {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(root / ".git" / "objects")}
    write(work, {"more": ""})
    made = Checkout(work, env).commit_all("more", ANNA)
    assert made is not None
    assert (objects / made[:2] / made[2:]).exists()
    assert not (root / ".git" / "objects" / made[:2] / made[2:]).exists()
