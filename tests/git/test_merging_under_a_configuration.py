"""Merging under the person's filters, drivers, preferences, hooks and identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.parts import ANNA, add, bring, commit, filtering, git, inside, racing, remove, script, write
from tests.given import refused
from workbench.git import CommitIdentity, FileChange, Repository

pytestmark = pytest.mark.long


def test_filters_of_the_person_do_their_work(root: Path, repo: Repository, place: Path) -> None:
    filtering(root, "tr a-z A-Z")
    git(root, "config", "filter.f.clean", "tr A-Z a-z")
    add(repo, place / "w", "work")
    commit(place / "w", {"b.f": "BEE\n"})
    repo.integrate("work", "main", "merge", ANNA)
    assert (root / "b.f").read_text() == "BEE\n"
    assert git(root, "show", "main:b.f") == "bee"
    add(repo, place / "v", "more")
    assert (place / "v" / "b.f").read_text() == "BEE\n"
    assert inside(place / "v").uncommitted() == []
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


def test_git_preferences_of_the_person_do_not_change_commits_and_merges(
    root: Path, repo: Repository, work: Path
) -> None:
    for key, value in TASTE.items():
        git(root, "config", key, value)
    write(work, {"more": "lf\ncrlf\r\n"})
    commit_id = inside(work).commit_all("more", ANNA)
    bring(work)
    assert repo.diff_stat("main", "work") == [FileChange("more", 2, 0), FileChange("new", 1, 0)]
    listed = [(c.author, c.subject) for c in repo.commits("main", "work", 5)]
    assert listed == [(ANNA.name, "more"), ("pat", "work")]
    done = repo.integrate("work", "main", "Änderung", ANNA)
    assert git(root, "rev-parse", "main", "main^2").split() == [done.commit, commit_id]
    text = git(root, "cat-file", "commit", "main")
    assert text.endswith("Änderung")
    assert "\nencoding" not in text
    assert git(root, "-c", "color.ui=false", "status", "--porcelain") == ""


def test_merge_options_of_a_name_with_an_equals_sign_are_taken_back(root: Path, repo: Repository, work: Path) -> None:
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
    inside(work).commit_all("more", ANNA)
    bring(work)
    write(work, {"more": "other"})
    inside(work).discard_changes()
    add(repo, place / "v", "v", "main")
    repo.preview_merge("main", "work")
    repo.dirty_files("main")
    repo.integrate("work", "other", "merge", ANNA)
    repo.integrate("work", "main", "merge", ANNA)
    remove(repo, place / "v")
    assert not (tmp_path / "ran").exists()
    git(root, "commit", "--quiet", "--allow-empty", "--message", "proof that they would have")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["", "  ", "...", "<>", "\n", "a\0b"])
def test_a_name_of_which_git_would_leave_nothing_is_refused(name: str) -> None:
    refused("BAD_IDENTITY", CommitIdentity, name, "x@y")


def test_every_other_name_can_be_the_author_of_a_commit(work: Path) -> None:
    names = {"a": "a", "<a>": "a", "a\nb": "ab", "Ä": "Ä", ".a.": "a", "agent-1": "agent-1"}
    for name in names:
        write(work, {"file": name})
        assert inside(work).commit_all("", CommitIdentity(name, "")) is not None
    assert git(work, "log", "--format=%an", "--max-count=6").splitlines() == [*reversed(names.values())]
