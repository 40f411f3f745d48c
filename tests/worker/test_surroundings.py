"""The error of a command says what it missed where it ran: the project's files, ignored ones, those of submodules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Admit, Served, git
from tests.worker.working import ran, working
from workbench.worker import supervisor, surroundings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WAIT_SECONDS", 0.2)


async def test_the_error_of_an_attempt_without_a_worktree_names_where_it_ran(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with working(served, ada.token, None):
        task = await ran(served, "cat nowhere", max_retries=0)
        other = await ran(served, "echo wrong; exit 1", max_retries=0)
    assert task["error_message"].endswith(f"nowhere: No such file or directory\n{surroundings.READ_ONLY}")
    assert other["error_message"].endswith("wrong")


@pytest.mark.long
async def test_the_error_of_an_attempt_names_submodules_and_the_ignored_files_it_used(
    served: Served, settle: Admit, repository: Path
) -> None:
    git("clone", "-q", str(repository), "lib", cwd=repository)
    (repository / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib\n')
    (repository / ".gitignore").write_text("data/\n.env\n")
    (repository / "data").mkdir()
    (repository / "data" / "train.csv").write_text("1\n")
    (repository / ".env").write_text("1\n")
    git("add", "-A", cwd=repository)
    git("commit", "-q", "-m", "A submodule", cwd=repository)
    ada, call = await settle("ada", "lab"), served.workbench.call
    async with working(served, ada.token):
        task = await ran(served, "mkdir data; cat data/train.csv lib/f.txt", max_retries=0)
    assert task["error_message"].endswith(
        "\nThe worktree does not have the files of submodules: lib (it is not initialised in your checkout). "
        "Worktrees do not have what git ignores: the project has data. The keys read and "
        "include of the workplace bring it in."
    )
    (worktree,) = (await call("get_worktree_status"))["worktrees"]
    assert worktree["empty_submodules"] == ["lib (it is not initialised in your checkout)"]
    assert (await call("create_worktree", name="other"))["empty_submodules"] == [
        "lib (it is not initialised in your checkout)"
    ]


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("open('data/x'): no", ["data"]),
        ("cat: ./data: no", ["data"]),
        ("/w/lab/data/x", ["data"]),
        ("/home/ada/project/data/x and metadata and data-2", []),
        ("lost a.b/c.txt", ["a.b/c.txt"]),
        ("lost a_b/c.txt", []),
    ],
)
async def test_ignored_files_that_an_output_names_are_found(said: str, names: list[str]) -> None:
    assert surroundings.named(["data", "a.b/c.txt"], said, "/w/lab") == names


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("ModuleNotFoundError: No module named 'lab.rows'", [".venv"]),
        ("sh: 1: try-lab: not found", [".venv"]),
        ("bash: line 1: try-lab: command not found", [".venv"]),
        ("sh: 1: .venv/bin/python: not found", [".venv"]),
        ("No module named 'other'", []),
        ("cat: lab: No such file or directory", []),
    ],
)
async def test_an_environment_with_what_was_not_found_is_found(tmp_path: Path, said: str, found: list[str]) -> None:
    packages = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "lab").mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    (tmp_path / ".venv" / "bin").mkdir()
    (tmp_path / ".venv" / "bin" / "try-lab").touch()
    (tmp_path / "data").mkdir()
    ignored = ["data", ".venv"]
    named = surroundings.named(ignored, said, "/w/lab")
    assert surroundings.environments_with(ignored, named, said, tmp_path) == found
