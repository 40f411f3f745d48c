"""`workbench box`: a command in a worktree's box, and what it was refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Type, code
from tests.cli.test_worktrees import worktree
from workbench.confinement import abilities

pytestmark = pytest.mark.skipif(not abilities().abi, reason="this system has no Landlock")


@pytest.fixture
def data(on_disk: Path) -> Path:
    """A file outside of every box."""
    (file := on_disk / "data.csv").write_text("1,2,3")
    return file


def test_a_checked_command_tells_what_its_box_refused(run: Type, data: Path) -> None:
    worktree(run, count="344\n")
    checked = run("box", "check", "lab", "--", "sh", "-c", f"cat count.md {data}")
    assert checked.status == 1
    assert checked.out == "344\n"
    assert f"{data} cannot be read" in checked.err
    assert "confinement_read opens it" in checked.err
    assert run("box", "check", "lab", "--", "true").err.endswith("No refusal was seen.\n")


def test_a_command_is_checked_without_a_worktree_on_the_files_of_head(run: Type, repository: Path, data: Path) -> None:
    checked = run("--json", "box", "check", "--", "sh", "-c", f"cat README.md; echo - > {data}.new; exit 3")
    found = json.loads(checked.out)
    assert (checked.status, found["exit_status"]) == (3, 3)
    assert [row["what"] for row in found["refusals"]] == [f"{data}.new cannot be written"]
    assert (repository / "README.md").read_text() in checked.err
    assert not list((repository / ".aiswarm" / "gates").glob("*")), "nothing is left of its worktree"


def test_a_check_names_what_the_worktree_does_not_have(run: Type, repository: Path) -> None:
    worktree(run, count="344\n")
    (repository / ".git" / "info" / "exclude").write_text("/data\n/node_modules\n/.venv\n")
    (repository / "data").mkdir()
    (repository / "data" / "x.csv").touch()
    (repository / "node_modules" / "odd").mkdir(parents=True)
    (repository / "node_modules" / "odd" / "package.json").touch()
    (packages := repository / ".venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (repository / ".venv" / "pyvenv.cfg").touch()
    (packages / "_lab.pth").write_text(f"{repository}/src\n")
    (repository / "src" / "lab").mkdir(parents=True)
    for said, key in (
        ("No such file or directory: 'data/x.csv'", "the project has data. The keys read and include"),
        ("Error: Cannot find module 'odd'", "the project has node_modules. The keys read and include"),
        ("No module named 'lab'", "what was not found in .venv: the key environment"),
    ):
        assert key in run("box", "check", "lab", "--", "sh", "-c", f'echo "{said}" >&2; exit 1').err


def test_a_command_that_fails_without_settings_that_are_not_trusted_says_so(run: Type, repository: Path) -> None:
    worktree(run, count="344\n")
    (repository / ".aiswarm" / "settings.toml").write_text('read = ["README.md"]\nintegration_gates = ["true"]\n')
    for command in ("box check lab -- false", "worktrees run lab -- false"):
        assert "sets read, but you have not trusted it" in run(*command.split()).err


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace here")
def test_an_explained_command_need_not_print_its_refusals(run: Type, data: Path) -> None:
    explained = run("box", "explain", "--", "sh", "-c", f"cat {data} 2> /dev/null; exit 0")
    assert explained.status == 0
    assert f"{data} cannot be read" in explained.err


def test_without_strace_an_explanation_says_how_to_find_all(
    run: Type, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.confinement.traces.shutil.which", lambda _: None)
    explained = run("box", "explain", "--", "cat", str(data))
    assert f"{data} cannot be read" in explained.err
    assert "apt install strace" in explained.err


@pytest.mark.long
def test_a_worktree_is_set_up_before_the_first_command_that_a_person_runs_there(
    run: Type, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree(run)
    monkeypatch.setenv("WORKBENCH_SETUP", "echo ready >> set.up; echo prepared")
    assert run("worktrees", "run", "lab", "--", "cat", "set.up").status == 0
    checked = run("box", "check", "lab", "--", "cat", "set.up")
    assert (checked.status, checked.out) == (0, "ready\n"), checked.err
    assert run("box", "check", "--", "cat", "set.up").out == "ready\n", "so are the files of HEAD"
    assert (repository / ".aiswarm" / "logs" / "setup-lab.log").read_text() == "prepared\n"
    for setup, seconds, reason in (
        ("echo broken; exit 3", "60", "ended with status 3: broken"),
        ("sleep 60", "1", "1 s"),
    ):
        monkeypatch.setenv("WORKBENCH_SETUP", setup)
        monkeypatch.setenv("WORKBENCH_SETUP_SECONDS", seconds)
        failed = run("worktrees", "run", "lab", "--", "echo", "run")
        assert re.search(rf"\nSETUP_FAILED: .*{reason}", failed.err)
        assert "run" not in failed.out


def test_the_command_stands_behind_two_hyphens(run: Type) -> None:
    refused = run("box", "check", "pytest")
    assert refused.status == 2
    assert "such as `-- pytest`" in refused.err
    assert code(run("box", "check", "nowhere", "--", "true")) == "WORKTREE_NOT_FOUND"
