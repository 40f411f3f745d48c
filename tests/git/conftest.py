"""Repositories to work on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.git.parts import add, commit, git, own, write
from workbench.git import Repository


@pytest.fixture(autouse=True)
def _nobody_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
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
    """The directory of worktrees."""
    return root / ".aiswarm" / "worktrees"


@pytest.fixture(scope="session")
def worked(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("worked") / "repo"
    shutil.copytree(template, root)
    work = root / ".aiswarm" / "worktrees" / "w"
    add(Repository(root, root / ".git"), work, "work")
    write(root, {".git/info/exclude": ".aiswarm\n"})
    commit(work, {"new": "new\n"}, "work")
    return root


@pytest.fixture
def work(worked: Path, root: Path, place: Path) -> Path:
    """A worktree with a branch `work`, one commit ahead of `main`."""
    shutil.rmtree(root)
    shutil.copytree(worked, root, symlinks=True)
    own_files = (own(place / "w") / "config", own(place / "w") / "objects" / "info" / "alternates")
    for pointer in (root / ".git" / "worktrees" / "w" / "gitdir", place / "w" / ".git", *own_files):
        pointer.write_text(pointer.read_text().replace(str(worked), str(root)))
    return place / "w"
