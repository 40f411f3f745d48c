"""Differences as text, of every kind of change and of files that are anything."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.git.parts import HOSTILE_FILES, MEGABYTE, add, commit, git, script, write
from tests.given import refused
from workbench.errors import WorkbenchError
from workbench.git import FileChange, FileDiff, Repository


def shown(repo: Repository, **more: Any) -> dict[str, FileDiff]:
    """The changes of the branch, by path."""
    return {file.path: file for file in repo.diff("main", "work", max_bytes=more.pop("max_bytes", MEGABYTE), **more)}


def test_a_difference_shows_every_kind_of_change(root: Path, repo: Repository, place: Path) -> None:
    commit(root, {"m": "1\n2\n3\n", "d": "d\n", "r": "r\n" * 9, "t": "t\n", "mode": "x\n"})
    add(repo, place / "w", "work")
    work = place / "w"
    write(work, {"m": "1\ntwo\n3\n", "a/new": "a\n", "moved": "r\n" * 9})
    for name in ("d", "r", "t"):
        (work / name).unlink()
    (work / "t").symlink_to("m")
    (work / "mode").chmod(0o755)
    (work / "bin").write_bytes(b"\0\1")
    commit(work, {})
    found = shown(repo)
    assert {path: (f.status, f.old_path, f.added, f.removed, f.binary) for path, f in found.items()} == {
        "a/new": ("A", None, 1, 0, False),
        "bin": ("A", None, None, None, True),
        "d": ("D", None, 0, 1, False),
        "m": ("M", None, 1, 1, False),
        "mode": ("M", None, 0, 0, False),
        "moved": ("R", "r", 0, 0, False),
        "t": ("T", None, 1, 1, False),
    }
    assert str(found["m"].patch).endswith("@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n")
    assert "deleted file mode 100644" in str(found["t"].patch)
    assert "new file mode 120000" in str(found["t"].patch)
    assert "new mode 100755" in str(found["mode"].patch)
    assert "rename from r\nrename to moved\n" in str(found["moved"].patch)
    assert found["bin"].patch is None
    assert not any(file.truncated for file in found.values())


def test_patches_apply(root: Path, repo: Repository, work: Path) -> None:
    commit(work, {"shared": "1\n2\nthree", "a/b": "new\n", "ü n": "diff --git a/x b/x\n"})
    (work / "kept").unlink()
    commit(work, {})
    text = "".join(str(file.patch) for file in shown(repo).values())
    git(root, "update-index", "--refresh")
    git(root, "apply", "--index", "-", stdin=text)
    assert git(root, "write-tree") == git(root, "rev-parse", "work^{tree}")


def test_text_that_looks_like_a_patch_is_only_text_and_bytes_are_escaped(repo: Repository, work: Path) -> None:
    lies = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"
    (work / "latin").write_bytes("grün\n".encode("latin-1"))
    commit(work, {"lies": lies, "shared": f"1\n{lies}"})
    found = shown(repo)
    assert {*found} == {"latin", "lies", "shared", "new"}
    assert str(found["lies"].patch).count("+diff --git a/x b/x") == 1
    assert "+gr\\xfcn" in str(found["latin"].patch)


def test_hostile_names_are_shown_unchanged(repo: Repository, work: Path) -> None:
    commit(work, {f"{number}/{name}": "x\n" for number, name in enumerate(HOSTILE_FILES)})
    names = {f"{number}/{name}" for number, name in enumerate(HOSTILE_FILES)}
    assert {*shown(repo)} == {*names, "new"}
    for name in names:
        assert [*shown(repo, path=name)] == [name]


def test_a_difference_can_be_limited_to_one_file_or_directory(repo: Repository, work: Path) -> None:
    commit(work, {"d/a": "", "d/b": "", "dd": ""})
    assert [*shown(repo, path="d")] == [*shown(repo, path="d/")] == ["d/a", "d/b"]
    for nothing in ("missing", "../x", "*", ":/", ":(exclude)d", "/etc"):
        with suppress(WorkbenchError):
            assert shown(repo, path=nothing) == {}
    assert repo.diff("main", "main", max_bytes=MEGABYTE) == []
    refused("BRANCH_NOT_FOUND", repo.diff, "main", "missing", max_bytes=1)


@pytest.mark.parametrize("most", [0, 1, 300, 5_000, 100_000])
def test_a_long_difference_is_cut_between_files_and_marked(repo: Repository, work: Path, most: int) -> None:
    commit(work, {f"f{number}": "line\n" * 200 for number in range(10)})
    files = list(shown(repo, max_bytes=most).values())
    assert [file.added for file in files] == [200] * 10 + [1]
    whole = [file.patch is not None for file in files]
    assert whole == sorted(whole, reverse=True)
    assert [file.truncated for file in files] == [not there for there in whole]
    assert sum(len(file.patch or "") for file in files) <= most
    assert all(whole) == (most == 100_000)


def test_nothing_that_attributes_or_settings_name_runs_when_a_repository_is_looked_at(
    root: Path, repo: Repository, work: Path, tmp_path: Path
) -> None:
    spy = script(tmp_path / "spy", f"touch {tmp_path / 'ran'}; cat")
    keys = ("diff.external", "diff.spy.command", "diff.spy.textconv", "core.fsmonitor", "core.pager", "pager.diff")
    taste = {"color.ui": "always", "diff.noprefix": "true", "diff.mnemonicPrefix": "true"}
    for key, value in (taste | dict.fromkeys(keys, str(spy))).items():
        git(root, "config", key, value)
    write(root, {".gitattributes": "* diff=spy\n"})
    commit(work, {".gitattributes": "* diff=spy\n", "shared": "other\n"})
    (tmp_path / "ran").unlink(missing_ok=True)
    patch = str(shown(repo)["shared"].patch)
    assert patch.startswith("diff --git a/shared b/shared\n")
    assert FileChange("shared", 1, 3) in repo.diff_stat("main", "work")
    repo.commits("main", "work", 5)
    repo.preview_merge("main", "work")
    repo.dirty_files("main")
    assert not (tmp_path / "ran").exists()
