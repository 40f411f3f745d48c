"""`workbench demo`: the whole quickstart, headless, as a newcomer runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git

pytestmark = pytest.mark.timeout(240)

PLAN = """\
plan: greetings
tasks:
  - {name: hello, title: Write hello, persona: implementer, worktree: hello, run: "echo hello > hello.txt"}
  - name: world
    title: Write world
    persona: tester
    worktree: world
    run: [sh, -c, "echo world > world.txt"]
    after: [hello]
  - {name: judge, title: Judge both, persona: reviewer, after: [hello, world]}
"""


def demo(*arguments: str, cwd: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "workbench.cli", "demo", "--json", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": ""})
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Running 00_quickstart.ipynb; its output goes to ")
    assert "IPKernelApp" not in done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@pytest.mark.long
def test_the_sample_goes_from_plan_to_merge(tmp_path: Path) -> None:
    summary = demo(cwd=tmp_path)
    assert {name: summary[name] for name in ("tasks", "completed", "agents", "worktrees_integrated")} == {
        "tasks": 8,
        "completed": 8,
        "agents": 5,
        "worktrees_integrated": 3,
    }
    assert summary["attempts"] == 9, "one task fails once and succeeds at its second attempt"
    assert summary["events"] > 50
    assert summary["wall_seconds"] > 0
    assert "Stop" in Path(summary["html"]).read_text("utf-8")
    assert all(Path(picture).read_bytes().startswith(b"\x89PNG") for picture in summary["pictures"])
    assert "wba_" not in Path(summary["notebook"]).read_text("utf-8")


@pytest.mark.long
def test_it_works_on_a_repository_and_a_plan_of_ones_own_with_one_worker_at_a_time(
    repository: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    (repository / "test_nothing.py").write_text("def test_nothing(): pass\n")
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "A test", cwd=repository)
    summary = demo("--repo", str(repository), "--plan", str(plan), "--workers", "1", cwd=tmp_path)
    assert (summary["tasks"], summary["completed"], summary["worktrees_integrated"]) == (3, 3, 2)
    assert (repository / "hello.txt").read_text() == "hello\n"
    assert (repository / "world.txt").read_text() == "world\n"
    assert git("status", "--porcelain", cwd=repository) == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--repo", "{tmp}/empty"), "NOT_A_REPOSITORY"), (("--plan", "{tmp}/bad.yaml"), "PLAN_INVALID")],
)
def test_what_cannot_work_is_a_clear_error(arguments: tuple[str, str], code: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.yaml").write_text("plan: [")
    words = [word.format(tmp=tmp_path) for word in arguments]
    command = [sys.executable, "-m", "workbench.cli", "demo", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{code}: ")


FAILING = """\
plan: sums
tasks:
  - {name: add, title: Add, persona: implementer, worktree: sum, run: "echo 3 > sum.txt"}
  - {name: halve, title: Divide, persona: implementer, worktree: half, run: "echo by zero; exit 1", max_retries: 0}
  - {name: last, title: Compare, persona: implementer, worktree: sum2, run: "echo 1 > last.txt", after: [halve]}
"""


def ended(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "workbench.cli", "demo", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": ""})


@pytest.mark.long
def test_it_ends_with_an_account_and_goes_on_when_it_is_run_again(repository: Path) -> None:
    (repository / "plan.yaml").write_text(FAILING)
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "A plan", cwd=repository)
    ran = ended("--repo", ".", "--plan", "plan.yaml", "--workers", "2", cwd=repository)
    assert ran.returncode == 1, ran.stderr
    assert "Plan sums: 1 of 3 tasks done; 1 failed; 1 not done; merged: sum; not merged: half, sum2." in ran.stdout
    rows = {line.split()[1]: line for line in ran.stdout.splitlines() if line[:1].isdigit()}
    assert "merged into main as " in rows["Add"]
    assert "The command ended with status 1. … by zero" in rows["Divide"]
    assert "waits for 2" in rows["Compare"]
    assert f"run `workbench --project {repository} task 2`" in ran.stdout
    assert "run `workbench demo --repo . --plan plan.yaml` again: it goes on with what is left" in ran.stdout
    assert (repository / "sum.txt").read_text() == "3\n"
    assert git("status", "--porcelain", cwd=repository) == ""

    (repository / "plan.yaml").write_text(FAILING.replace("exit 1", "echo 2 > half.txt"))
    git("commit", "-q", "-a", "-m", "A better plan", cwd=repository)
    summary = demo("--repo", ".", "--plan", "plan.yaml", cwd=repository)
    assert summary["account"]["done"] == [1, 2, 3]
    assert summary["account"]["merged"].keys() == {"sum", "half", "sum2"}
    assert summary["account"]["failed"] == summary["account"]["waiting"] == {}
    assert "Everything is done and merged." in summary["next"][0]
    assert summary["attempts"] == 4, "what was done is not done again"
    assert git("status", "--porcelain", cwd=repository) == ""
