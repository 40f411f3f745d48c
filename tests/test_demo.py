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


@pytest.mark.long
def test_a_task_that_fails_for_good_ends_the_demo_and_says_why(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "plan: p\ntasks:\n"
        "  - {name: a, title: Divide, persona: implementer, worktree: w, run: 'echo by zero; exit 1', max_retries: 0}\n"
        "  - {name: b, title: Wait, persona: implementer, worktree: w, run: 'true', after: [a]}\n"
    )
    command = [sys.executable, "-m", "workbench.cli", "demo", "--plan", str(plan)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "'Divide' has failed" in done.stderr
    assert "by zero" in done.stderr
