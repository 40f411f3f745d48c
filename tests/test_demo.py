"""`workbench demo`: the whole quickstart, headless, as a newcomer runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git, typed

pytestmark = pytest.mark.timeout(240)


@pytest.mark.long
def test_the_sample_goes_from_plan_to_merge(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workbench.cli", "demo", "--json"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": ""})
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("Running 00_quickstart.ipynb; its output goes to ")
    assert "IPKernelApp" not in ran.stderr
    summary = json.loads(ran.stdout)
    assert {name: summary[name] for name in ("tasks", "completed", "agents", "worktrees_integrated")} == {
        "tasks": 8,
        "completed": 8,
        "agents": 4,
        "worktrees_integrated": 3,
    }
    assert summary["attempts"] == 9, "one task fails once and succeeds at its second attempt"
    assert summary["events"] > 50
    assert summary["wall_seconds"] > 0
    assert "Stop" in Path(summary["html"]).read_text("utf-8")
    assert all(Path(picture).read_bytes().startswith(b"\x89PNG") for picture in summary["pictures"])
    assert "wba_" not in Path(summary["notebook"]).read_text("utf-8")


def test_a_bad_repository_or_plan_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("bad.yaml").write_text("plan: [")
    for option, value, code in (("--repo", "empty", "NOT_A_REPOSITORY"), ("--plan", "bad.yaml", "PLAN_INVALID")):
        ran = typed("demo", option, value)
        assert (ran.status, ran.err.partition(":")[0]) == (1, code)


PLAN = """\
plan: sums
tasks:
  - {name: add, title: Add, persona: implementer, worktree: sum, run: "echo 3 > sum.txt"}
  - {name: halve, title: Divide, persona: tester, worktree: half, run: "echo by zero; exit 1", max_retries: 0}
  - name: last
    title: Compare
    persona: implementer
    worktree: sum2
    run: [sh, -c, "echo 1 > last.txt"]
    after: [halve]
  - {name: judge, title: Judge all, persona: reviewer, run: "echo 3 failed; JUDGEMENT", max_retries: 0, after: [add]}
  - {name: think, title: Think it over, persona: reviewer, after: [last]}
"""


@pytest.mark.long
def test_a_plan_of_the_user_continues_when_the_demo_runs_again(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    (repository / "plan.yaml").write_text(PLAN.replace("JUDGEMENT", "false"))
    (repository / "test_nothing.py").write_text("def test_nothing(): pass\n")
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "A plan and a test", cwd=repository)
    ran = typed("demo", "--repo", ".", "--plan", "plan.yaml", "--workers", "1")
    assert ran.status == 1, ran.err
    assert "Plan sums: 1 of 5 tasks done; 2 failed; 2 not done; merged: sum." in ran.out
    rows = {line.split()[1]: line for line in ran.out.splitlines() if line[:1].isdigit()}
    assert "merged into main as " in rows["Add"]
    assert "The command ended with status 1: by zero" in rows["Divide"]
    assert "The command ended with status 1: 3 failed" in rows["Judge"], "a command is run, whatever its persona"
    assert "waits for 2" in rows["Compare"]
    assert f"run `workbench --project {repository} task 2`" in ran.out
    assert "run `workbench demo --repo . --plan plan.yaml` again: it goes on with what is left" in ran.out
    assert (repository / "sum.txt").read_text() == "3\n"
    assert git("status", "--porcelain", cwd=repository) == ""

    (repository / "plan.yaml").write_text(PLAN.replace("exit 1", "echo 2 > half.txt").replace("JUDGEMENT", "true"))
    git("commit", "-q", "-a", "-m", "A better plan", cwd=repository)
    ran = typed("--json", "demo", "--repo", ".", "--plan", "plan.yaml")
    assert ran.status == 1, "nobody plays the reviewer of a plan of one's own"
    summary = json.loads(ran.out)
    assert summary["account"]["done"] == [1, 2, 3, 4]
    assert summary["account"]["merged"].keys() == {"sum", "half", "sum2"}
    assert summary["account"]["failed"] == {}
    outcome = "has no command, so an agent of the persona reviewer has to do it"
    assert summary["account"]["waiting"] == {"5": outcome}
    assert summary["next"] == [
        f"For what has no command, connect an agent: run `workbench --project {repository} serve`, and "
        f"`workbench --project {repository} connect` in another terminal."
    ]
    assert summary["attempts"] == 6, "what was done is not done again"
    assert [(repository / name).read_text() for name in ("half.txt", "last.txt")] == ["2\n", "1\n"]
    assert git("status", "--porcelain", cwd=repository) == ""
