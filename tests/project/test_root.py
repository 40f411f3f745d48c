"""Which project a directory belongs to: never one above the repository it is in, and never another user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import git
from workbench.state.root import find_project

STRANGER = 65_534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


def directories(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True)


def test_the_nearest_state_within_the_repository_is_the_project(repository: Path) -> None:
    directories(repository / "part" / ".aiswarm", repository / "part" / "deep", repository / "other")
    assert find_project(repository / "part" / "deep") == repository / "part"
    assert find_project(repository / "other") == repository
    directories(repository / ".aiswarm")
    assert find_project(repository / "other") == repository


def test_state_above_a_repository_does_not_take_it_over(tmp_path: Path, repository: Path) -> None:
    directories(tmp_path / "plain", repository / "src")
    assert find_project(tmp_path / "plain") == tmp_path / "plain"
    directories(tmp_path / ".aiswarm")
    assert find_project(tmp_path / "plain") == tmp_path
    assert find_project(repository / "src") == find_project(repository) == repository


@as_root
def test_a_directory_of_another_user_is_neither_a_project_nor_its_repository(tmp_path: Path, repository: Path) -> None:
    mine = tmp_path / "mine"
    directories(tmp_path / ".aiswarm", mine, repository / "part" / ".aiswarm", tmp_path / "above" / ".git")
    for strange in (tmp_path / ".aiswarm", repository / "part" / ".aiswarm", tmp_path / "above" / ".git"):
        os.chown(strange, STRANGER, STRANGER)
    assert find_project(mine) == mine
    assert find_project(repository / "part") == repository
    (below := tmp_path / "above" / "mine").mkdir()
    assert find_project(below) == below
    os.chown(below, STRANGER, STRANGER)
    assert find_project(below) == tmp_path / "above"


def test_a_workers_worktree_belongs_to_the_project_whatever_it_contains(repository: Path) -> None:
    place = repository / ".aiswarm" / "worktrees" / "lab"
    directories(place / "sub" / ".aiswarm" / "deep", place / ".git")
    for path in (place, place / "sub", place / "sub" / ".aiswarm" / "deep"):
        assert find_project(path) == repository


def test_finding_the_project_runs_no_program_and_ignores_git_configuration(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "git"
    directories(program.parent, tmp_path / "victim" / ".aiswarm")
    git("config", "core.worktree", str(tmp_path / "victim"), cwd=repository)
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert find_project(repository) == repository
    assert not (tmp_path / "ran").exists()


def test_a_linked_worktree_of_the_users_is_a_repository(tmp_path: Path, repository: Path) -> None:
    git("worktree", "add", "-q", str(tmp_path / "linked"), cwd=repository)
    directories(tmp_path / "linked" / "src", tmp_path / ".aiswarm")
    assert find_project(tmp_path / "linked" / "src") == tmp_path / "linked"
