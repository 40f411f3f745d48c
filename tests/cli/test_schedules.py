"""`workbench run PLAN --every 6h`: the server carries a plan out, and goes on with it when its process is killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.conftest import typed
from workbench.shells import detached
from workbench.state.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

PLAN = """\
plan: tidy
tasks:
  - {name: wait, title: Wait, persona: implementer, worktree: lab, run: 'until [ -e go ]; do sleep 0.05; done'}
  - {name: write, title: Write, persona: implementer, worktree: lab, run: echo 1 > it.txt, after: [wait]}
"""


def execution() -> psutil.Process | None:
    """The process of the execution that was scheduled."""
    marks = [
        process for process in psutil.process_iter(["cmdline"]) if "--scheduled" in (process.info["cmdline"] or ())
    ]
    return next((one for one in marks if str(Path.cwd()) in one.info["cmdline"] and one.is_running()), None)


def schedule() -> dict[str, Any]:
    (only,) = json.loads(typed("schedules", "--json").out)
    return dict(only)


def test_a_scheduled_plan_is_carried_out_by_the_server_also_when_its_process_is_killed(
    migrated: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setenv("WORKBENCH_PROJECT", str(repository))
    Path("plan.yaml").write_text(PLAN)
    assert (
        "has no task for planer, only for implementer."
        in typed("run", "plan.yaml", "--at", "22:00", "--staff", "planer=1").err
    )
    without = typed("run", "plan.yaml", "--at", "22:00", "--every", "weekday")
    assert "`workbench start --detach --on-boot` starts one" in without.out
    detached.start(migrated, 0)
    try:
        said = typed("run", "plan.yaml", "--every", "6h", "--integrate", "ask").out
        assert said.startswith("The plan tidy is carried out at ")
        assert "then every 6h, by the server. `workbench schedules` shows" in said
        Path("tidy").write_text("plan: others\ntasks: []\n")  # a file of that name is none of its business
        lab = migrated.worktree("lab")
        given.wait_until(lambda: '"in_progress"' in typed("tasks", "--json").out, "the first task is under way")
        assert typed("run", "plan.yaml").err.startswith("PLAN_UNDER_WAY: ")
        killed = execution()
        assert killed is not None
        os.kill(killed.pid, signal.SIGKILL)
        given.wait_until(lambda: (one := execution()) and one.pid != killed.pid, "it is begun again")
        (lab / "go").touch()
        given.wait_until(lambda: schedule()["ended_at"], "the account")
        ended = schedule()
        assert (ended["status"], ended["outcome"]) == (0, "Plan tidy: 2 of 2 tasks done; not merged: lab.")
        first = json.loads(typed("task", "1", "--json").out)["task"]
        assert len(first["attempts"]) == 1, "its agent went on meanwhile"
        assert "No agent has a process" in typed("ps").out, "also those that the killed one had started have ended"
        assert "2 of 2 tasks completed" in migrated.execution_log("tidy").read_text()
        assert typed("schedules", "cancel", "tidy").out == "tidy is not scheduled any more.\n"
        assert typed("schedules").out.startswith("Nothing is scheduled.")
    finally:
        detached.stop(migrated, end_workers=True)
