"""Removing directories that workers could write."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git.parts import nest
from workbench.system.tree_removal import remove_tree

LEVELS = 3_000


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A directory, removed after a failed test: pytest cannot remove it either."""
    made = tmp_path / "tree"
    made.mkdir()
    yield made
    subprocess.run(["chmod", "-R", "u+rwx", str(tmp_path)], check=True)
    subprocess.run(["rm", "-rf", str(made)], check=True)


def test_a_directory_that_its_owner_may_not_enter_is_removed(tree: Path) -> None:
    for path in (tree / "a", tree / "a" / "b"):
        path.mkdir()
    (tree / "a" / "b" / "file").touch()
    for path in (tree / "a" / "b", tree / "a", tree):
        path.chmod(0)
    assert remove_tree(tree)
    assert not os.path.lexists(tree)


def test_a_deeply_nested_directory_is_removed_and_targets_of_links_stay(tree: Path, tmp_path: Path) -> None:
    kept, shallow = tmp_path / "kept", tmp_path / "shallow"
    for path in (kept, shallow):
        path.mkdir()
    (kept / "file").touch()
    for link in (tree / "link", shallow / "link", tmp_path / "also"):
        link.symlink_to(kept)
    nest(tree, LEVELS)
    for path in (tree, shallow, tmp_path / "also", tmp_path / "absent"):
        assert remove_tree(path)
        assert not os.path.lexists(path)
    assert [path.name for path in kept.iterdir()] == ["file"]


def test_a_path_that_cannot_be_removed_is_reported() -> None:
    assert not remove_tree(Path("/proc/self/status"))
