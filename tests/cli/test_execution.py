"""`workbench run PLAN` carries out a plan with one command, without a server, and goes on where it was."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Type, code
from tests.conftest import git
from workbench.execution.carry_out import only_one
from workbench.state.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

PLAN = """\
plan: tidy
tasks:
  - name: first
    title: Write the first
    persona: implementer
    worktree: one
    run: echo 1 > first.txt
    check: test -s first.txt
  - name: second
    title: Write the second
    persona: implementer
    worktree: two
    run: {second}
    check: test -s second.txt
    after: [first]
    max_retries: 0
  - name: last
    title: Look
    persona: tester
    run: "true"
    after: [second]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN.format(second="echo 2 > second.txt"))
    return file


def test_a_plan_is_carried_out_merged_where_it_is_checked_and_accounted_for(
    run: Type, repository: Path, plan: Path
) -> None:
    ran = run("run", str(plan), "--integrate", "auto-if-checked", "--json")
    account = json.loads(ran.out)
    assert (ran.status, account["verdict"], account["done"]) == (0, "completed", [1, 2, 3])
    assert [account["tasks"][number]["state"] for number in ("1", "2", "3")] == [
        "completed, checked",
        "completed, checked",
        "completed",
    ]
    assert {name: how[:16] for name, how in account["merged"].items()} == dict.fromkeys(
        ("one", "two"), "merged into main"
    )
    assert ((repository / "first.txt").read_text(), (repository / "second.txt").read_text()) == ("1\n", "2\n")
    assert "0 of 3 tasks completed, 3 pending" in ran.err
    assert "3 of 3 tasks completed" in ran.err
    assert "No agent has a process" in run("ps").out, "it ends those that it has started"
    again = run("run", "tidy", "--json")
    assert (again.status, json.loads(again.out)["done"]) == (0, [1, 2, 3])
    assert git("rev-list", "--count", "main", cwd=repository) == "5"


def test_what_failed_is_said_and_the_next_run_goes_on(run: Type, repository: Path, plan: Path) -> None:
    plan.write_text(PLAN.format(second="exit 3"))
    ran = run("run", str(plan))
    assert (ran.status, "1 of 3 tasks done; 1 failed; 1 not done" in ran.out) == (1, True)
    assert "The command ended with status 3" in ran.out
    assert "one waits for your approval" in ran.out
    assert not (repository / "first.txt").exists(), "a merge is asked for"
    morning = run("account", "tidy")
    assert "`workbench approve 3`" in morning.out, "each task has its next command"
    assert "`workbench retry 2`" in morning.out
    account = json.loads(run("account", "tidy", "--json").out)
    assert [account["tasks"][number]["check"] for number in ("1", "2", "3")] == ["passed", "", ""]
    [hour, *_] = account["hours"]
    assert hour["tasks"][:1] == [1]
    assert "completed: 1" in hour["happened"]
    assert any("failed for good: 2" in one["happened"] for one in account["hours"])
    assert code(run("account", "none")) == "PLAN_NOT_FOUND"
    plan.write_text(PLAN.format(second="echo 2 > second.txt"))
    assert run("run", str(plan)).status == 0
    first = json.loads(run("task", "1", "--json").out)["task"]
    assert len(first["attempts"]) == 1, "what was done is not done again"


def test_who_is_missing_what_is_wrong_and_who_is_at_it_already_is_said(
    run: Type, migrated: Settings, repository: Path, tmp_path: Path
) -> None:
    (plan := tmp_path / "plan.yaml").write_text("plan: talk\ntasks:\n  - {name: a, title: A, persona: reviewer}\n")
    missing = run("run", str(plan))
    assert code(missing) == "NO_STAFF"
    assert "--staff reviewer=1:claude" in missing.err
    assert code(run("run", "talk", "--staff", "reviewer=0")) == "BAD_STAFF"
    assert "only for reviewer. Name" in run("run", "talk", "--staff", "reviwer=1:claude").err
    assert code(run("run", "none")) == "PLAN_NOT_FOUND"
    assert code(run("run", "talk", "--staff", "reviewer=1:nobody")) == "PROFILE_NOT_FOUND"
    assert code(run("run", "talk", "--until", "25:00")) == "BAD_SCHEDULE"
    partly = run("run", "talk", "--staff", "*=2", "--partly")
    assert (partly.status, "Nobody is left to do what is open." in partly.out) == (3, True)
    with only_one(migrated, "talk"):
        plan.write_text(plan.read_text().replace("title: A", "title: B"))
        refused = run("run", str(plan), "--staff", "reviewer=1:claude", "--budget", "1usd")
    assert code(refused) == "PLAN_UNDER_WAY"
    assert run("task", "1").out.startswith("1 A\n"), "what is refused changes nothing"
    assert run("budgets", "list", "--json").out.strip() == "[]"


def test_from_a_fresh_repository_to_a_merge_each_command_is_named_by_the_one_before(
    run: Type, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    shown = run("init").out
    for command in (r"`workbench (run plan\.yaml)`", r"`workbench (approve \d+)` merges it"):
        found = re.search(command, shown)
        assert found is not None, shown
        ran = run(*found[1].split())
        assert ran.status == 0
        shown = ran.out
    assert (repository / "FINDINGS.md").read_text() == "344 penguins were measured.\n"
