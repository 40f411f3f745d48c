"""`workbench init`: a project with a notebook, a plan and settings to begin with."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import nbformat
import papermill
import pytest

from tests.cli.conftest import Type, data
from tests.conftest import git
from tests.kernel.conftest import started
from tests.users import NOBODY
from workbench.cli.project import OFFERED, settings_text
from workbench.rules.tasks.plan import parse
from workbench.state.settings import Settings
from workbench.trust.withheld import privileged

FILES = ["workbench.ipynb", "plan.yaml", "nbval.cfg", ".aiswarm/settings.toml"]
OWN = """
plan: own
tasks:
  - {name: write, title: Write, persona: implementer, worktree: lab, run: echo 1 > made.txt}
  - {name: fail, title: Fail, persona: implementer, run: exit 3, max_retries: 0}
  - {name: wait, title: Wait for what failed, persona: reviewer, run: exit 0, after: [fail]}
  - {name: think, title: Only an LLM can do it, persona: reviewer}
"""
MORE = "  - {name: more, title: More, persona: implementer, worktree: lab, run: exit 3, max_retries: 0}\n"
OWN_STATES = {
    "write": ("completed", False),
    "fail": ("failed", False),
    "wait": ("pending", True),
    "think": ("pending", False),
}


def test_init_names_the_written_files_and_the_next_step(run: Type, repository: Path) -> None:
    printed = run("init").out
    assert printed.startswith(f"{repository} is a project. Its state is in {repository / '.aiswarm'}.\n")
    assert [line.split()[:2] for line in printed.splitlines()[2:-1]] == [["written", file] for file in FILES]
    assert "`workbench run plan.yaml`" in printed.splitlines()[-1]
    nbformat.validate(nbformat.read(repository / "workbench.ipynb", as_version=4))
    assert [task.name for task in parse((repository / "plan.yaml").read_text()).tasks] == ["measure", "check", "note"]


def test_files_that_exist_stay_as_they_are(run: Type, repository: Path) -> None:
    (repository / "plan.yaml").write_text("mine")
    (repository / "workbench.ipynb").symlink_to("elsewhere.ipynb")
    states = {file["file"]: file["state"] for file in data(run("--json", "init"))["files"]}
    assert states == dict(zip(FILES, ["exists, unchanged", "exists, unchanged", "written", "written"], strict=True))
    assert {file["state"] for file in data(run("--json", "init"))["files"]} == {"exists, unchanged"}
    assert (repository / "plan.yaml").read_text() == "mine"
    assert not (repository / "elsewhere.ipynb").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_who_begins_in_a_colleagues_repository_is_told_how_git_comes_to_use_it(run: Type, repository: Path) -> None:
    for path in (repository, repository / ".git"):
        os.chown(path, NOBODY, NOBODY)
    lead = run("init", "--bare").out
    assert "Its repository cannot be used: " in lead
    assert f"`git config --global --add safe.directory {repository}`" in lead
    assert f"safe.directory {repository}" in run("worktrees", "create", "lab").err


def test_a_dry_run_writes_nothing(run: Type, tmp_path: Path) -> None:
    (place := tmp_path / "new").mkdir()
    (place / "plan.yaml").write_text("mine")
    made = data(run("--project", str(place), "--json", "init", "--dry-run"))
    assert [file["state"] for file in made["files"]] == [
        "would be written",
        "exists",
        "would be written",
        "would be written",
    ]
    assert [path.name for path in place.iterdir()] == ["plan.yaml"]


def test_init_says_that_a_directory_without_git_has_no_worktrees(run: Type, tmp_path: Path) -> None:
    (place := tmp_path / "new").mkdir()
    lead = run("--project", str(place), "init").out.splitlines()[0]
    assert lead.endswith("worktrees and merges need one. Run `git init` there, and make a first commit.")
    assert all(task.worktree is None for task in parse((place / "plan.yaml").read_text()).tasks)
    git("init", "-q", cwd=place)
    (below := place / "below").mkdir()
    for project in (place, below):
        lead = run("--project", str(project), "init", "--bare").out
        assert f"Its repository cannot be used: {place} has no commit yet. Make one with `git commit`." in lead
    git("init", "-q", "--bare", str(tmp_path / "bare"), cwd=tmp_path)
    lead = run("--project", str(tmp_path / "bare"), "init", "--bare").out
    assert f"Its repository cannot be used: {tmp_path / 'bare'} is a bare repository." in lead


def test_a_bare_project_has_its_state_only(run: Type, repository: Path) -> None:
    before = {path.name for path in repository.iterdir()}
    assert run("init", "--bare").out.startswith(f"{repository} is a project.")
    assert {path.name for path in repository.iterdir()} == before
    assert git("status", "--porcelain", cwd=repository) == ""


def test_the_settings_are_the_defaults_in_comments(run: Type, repository: Path, settings: Settings) -> None:
    run("init")
    assert tomllib.loads((repository / ".aiswarm" / "settings.toml").read_text()) == {}
    assert privileged(repository) == []
    lines = [line.removeprefix("# ") for line in settings_text().splitlines() if " = " in line]
    values = tomllib.loads("\n".join(lines))
    assert tuple(values) == OFFERED
    defaults = {name: Settings.model_fields[name].default for name in OFFERED}
    assert {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()} == defaults
    marked = {line.split()[0] for line in lines if line.endswith("# trust")}
    assert marked == Settings.needing_trust(values).keys()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_the_starter_notebook_runs_with_a_plan_of_ones_own(run: Type, repository: Path, tmp_path: Path) -> None:
    """As it is, it runs in `tests/notebooks/test_strict.py`."""
    run("init")
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "A project to begin with", cwd=repository)
    own = tmp_path / "own.yaml"
    own.write_text(OWN)
    for approve, waiting in (("later", ["lab"]), ("auto", [])):
        parameters = {"plan_file": str(own), "approve": approve}
        papermill.execute_notebook(
            repository / "workbench.ipynb", tmp_path / "out.ipynb", parameters, cwd=repository, progress_bar=False
        )
        assert [one["payload"]["worktree"] for one in data(run("--json", "approvals"))] == waiting
        tasks = data(run("--json", "tasks", "--plan", "own"))
        states = {task["name"]: (task["status"], task["blocked"]) for task in tasks}
        assert states == OWN_STATES
    assert (repository / "made.txt").read_text() == "1\n"

    own.write_text(OWN + MORE)
    papermill.execute_notebook(
        repository / "workbench.ipynb", tmp_path / "out.ipynb", parameters, cwd=repository, progress_bar=False
    )
    own.write_text(OWN + MORE.replace("exit 3", "echo 2 > more.txt"))
    papermill.execute_notebook(
        repository / "workbench.ipynb", tmp_path / "out.ipynb", parameters, cwd=repository, progress_bar=False
    )
    assert (repository / "more.txt").read_text() == "2\n"


@pytest.mark.long
def test_a_notebook_makes_its_directory_a_project(repository: Path, tmp_path: Path) -> None:
    with started(tmp_path, cwd=repository) as kernel:
        assert "would be written" in kernel.run("%workbench init --dry-run")
        assert not (repository / "plan.yaml").exists()
        assert "written" in kernel.run("%workbench init")
        kernel.run("%workbench start --port 0")
        assert "exists, unchanged" in kernel.run("%workbench init")
        kernel.run("%workbench stop")
    assert all((repository / file).exists() for file in FILES)
