"""Ways in which a project comes to another place, and a snapshot that shows any change of it."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.conftest import git
from tests.project.every_command import snapshot


def copied(original: Path, to: Path) -> Path:
    return Path(shutil.copytree(original, to, symlinks=True))


def restored(original: Path, to: Path) -> Path:
    with tarfile.open(to.with_suffix(".tar"), "w") as archive:
        archive.add(original, to.name)
    with tarfile.open(to.with_suffix(".tar")) as archive:
        archive.extractall(to.parent)
    return to


def moved(original: Path, to: Path) -> Path:
    return original.rename(to)


def reached_by_another_path(original: Path, to: Path) -> Path:
    (to.parent / "alias").symlink_to(original.parent)
    return to.parent / "alias" / original.name


def reached_by_two_slashes(original: Path, to: Path) -> Path:
    return Path(f"/{original}")


def copied_from_an_earlier_version(original: Path, to: Path) -> Path:
    """In which worktrees named their places by absolute paths."""
    state = original / ".aiswarm"
    for name in ("lab", "spare"):
        path, own = state / "worktrees" / name, state / "repositories" / name
        (path / ".git").write_text(f"gitdir: {own}\n")
        git("config", "core.worktree", str(path), cwd=own)
        (own / "objects" / "info" / "alternates").write_text(f"{original}/.git/objects\n")
    return copied(original, to)


WAYS: Mapping[str, Callable[[Path, Path], Path]] = {
    way.__name__: way
    for way in (
        *(copied, restored, moved, copied_from_an_earlier_version),
        *(reached_by_another_path, reached_by_two_slashes),
    )
}
SAME = ("reached_by_another_path", "reached_by_two_slashes")
"""Those that lead to the same project."""


def contents(project: Path) -> dict[str, object]:
    """Everything in a project but the times of directories, in which git makes its temporary files."""
    return {path: facts for path, facts in snapshot(project).items() if not Path(path).is_dir()}
