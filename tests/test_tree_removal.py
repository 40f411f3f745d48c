"""Removing directories that workers could write."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.tree_removal import remove_tree

LEVELS = 3_000


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A directory, removed after a failed test: pytest cannot remove it either."""
    made = tmp_path / "tree"
    made.mkdir()
    yield made
    subprocess.run(["chmod", "-R", "u+rwx", str(tmp_path)], check=True)
    subprocess.run(["rm", "-rf", str(made)], check=True)


def nest(directory: Path, levels: int) -> None:
    """Create directories within each other."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_a_directory_nested_thousands_of_levels_deep_is_removed(tree: Path) -> None:
    nest(tree, LEVELS)
    assert remove_tree(tree)
    assert not tree.exists()


def test_a_directory_that_its_owner_may_not_enter_is_removed(tree: Path) -> None:
    for path in (tree / "a", tree / "a" / "b"):
        path.mkdir()
    (tree / "a" / "b" / "file").touch()
    for path in (tree / "a" / "b", tree / "a", tree):
        path.chmod(0)
    assert remove_tree(tree)
    assert not os.path.lexists(tree)


def test_links_are_removed_and_what_they_lead_to_stays(tree: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tree / "link").symlink_to(kept)
    nest(tree, LEVELS)
    (tmp_path / "also").symlink_to(kept)
    assert remove_tree(tree)
    assert remove_tree(tmp_path / "also")
    assert [path.name for path in kept.iterdir()] == ["file"]


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "absent")


def test_what_cannot_be_removed_is_reported() -> None:
    assert not remove_tree(Path("/proc/self/status"))
