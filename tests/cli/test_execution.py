"""`workbench run PLAN` carries out a plan with one command, without a server, and goes on where it was."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Type, code
from tests.conftest import admitted, git
from workbench.app import Workbench
from workbench.execution.carry_out import only_one
from workbench.state.settings import Settings
from workbench.state.settings_file import settings_path

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


def test_what_failed_is_said_and_the_next_run_goes_on(
    run: Type, migrated: Settings, repository: Path, plan: Path
) -> None:
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
    (migrated.worktree("one") / "more.txt").write_text("not checked")
    git("add", ".", cwd=migrated.worktree("one"))
    git("commit", "-qm", "More", cwd=migrated.worktree("one"))
    changed = run("run", "tidy", "--integrate", "auto-if-checked").out
    assert "one has changed since its last check, so it is not merged at once." in changed
    assert "merged: two; not merged: one" in changed
    (repository / "first.txt").write_text("mine")
    git("add", ".", cwd=repository)
    git("commit", "-qm", "Mine", cwd=repository)
    account = run("account", "tidy").out
    assert ("one cannot be merged as it is. " in account, "`workbench worktrees resolve one`" in account) == (
        True,
        True,
    )


def test_a_budget_holds_a_plan_up_and_the_next_run_leaves_what_was_raised(run: Type, plan: Path) -> None:
    ran = run("run", str(plan), "--budget", "1 attempt", "--integrate", "auto-if-checked")
    assert (ran.status, "1 of 3 tasks done" in ran.out) == (3, True)
    (budget,) = json.loads(run("budgets", "list", "--json").out)
    assert (budget["scope"], budget["used_up"], budget["waiting"]) == ("plan:tidy", ["attempts"], [2, 3])
    (asked,) = (one for one in json.loads(run("approvals", "--json").out) if one["kind"] == "budget")
    assert "1 attempt of 1 attempt; 2 tasks waiting" in run("approvals").out
    assert code(run("approve", str(asked["id"]), "--budget", "1 attempt")) == "BUDGET_NOT_RAISED"
    assert run("approve", str(asked["id"]), "--budget", "5 attempts").status == 0
    run("budgets", "set", "plan:tidy", "--attempts", "0")
    (asked,) = (one for one in json.loads(run("approvals", "--json").out) if one["kind"] == "budget")
    nothing = run("run", "tidy").out
    assert f"`workbench approve {asked['id']} --budget AMOUNTS` raises the budget of plan tidy" in nothing
    assert run("approve", str(asked["id"]), "--budget", "5 attempts").status == 0
    again = run("run", "tidy", "--budget", "0 attempts", "--integrate", "auto-if-checked")
    assert (again.status, "3 of 3 tasks done" in again.out) == (0, True)
    for wrong in ("", "1", "-1usd", "1usd,2usd"):
        assert code(run("run", "tidy", "--budget", wrong)) == "BAD_BUDGET"


def test_who_is_missing_what_is_wrong_and_who_is_at_it_already_is_said(
    run: Type, migrated: Settings, repository: Path, tmp_path: Path
) -> None:
    (plan := tmp_path / "plan.yaml").write_text("plan: talk\ntasks:\n  - {name: a, title: A, persona: reviewer}\n")
    missing = run("run", str(plan))
    assert code(missing) == "NO_STAFF"
    assert "--staff reviewer=1:claude" in missing.err
    assert code(run("run", "talk", "--staff", "reviewer=0")) == "BAD_STAFF"
    assert "only for reviewer. Name" in run("run", "talk", "--staff", "reviwer=1:claude").err
    plan.write_text(plan.read_text().replace("title: A", "title: B"))
    nowhere = run("run", "plam.yaml")
    assert nowhere.err.startswith("PLAN_NOT_FOUND: There is no file and no plan 'plam.yaml'. `workbench plans` lists")
    for option in ("--at", "--every"):
        assert code(run("run", str(plan), option, "")) == "BAD_SCHEDULE", (
            "a variable that is not set begins nothing now"
        )
    assert code(run("run", "talk", "--staff", "reviewer=1:nobody")) == "PROFILE_NOT_FOUND"
    assert code(run("run", "talk", "--until", "25:00")) == "BAD_SCHEDULE"
    partly = run("run", "talk", "--staff", "*=2", "--partly")
    assert (partly.status, "Nobody is left to do what is open." in partly.out) == (3, True)
    with only_one(migrated, "talk"):
        refused = run("run", str(plan), "--staff", "reviewer=1:claude", "--budget", "1usd")
    assert code(refused) == "PLAN_UNDER_WAY"
    assert run("task", "1").out.startswith("1 A\n"), "what is refused changes nothing"
    assert run("budgets", "list", "--json").out.strip() == "[]"
    assert run("budgets", "set", "plan:talk", "--usd", "2.5", "--attempts", "0").out == (
        "plan:talk may spend $2.50, 0 attempts.\n"
    )
    headings, row = run("budgets", "list").out.splitlines()
    assert row[headings.index("used up") :].split() == ["attempts", "no"]


PROPOSED = """
plan: zoo
budget: 30usd
tasks:
  - {name: feed, title: Feed, persona: implementer, run: "true"}
  - {name: clean, title: Clean, persona: implementer, worktree: lab, run: "true"}
"""


async def propose(settings: Settings) -> None:
    """A planner proposes a plan that may spend much."""
    async with Workbench.open(settings) as workbench:
        planner = await admitted(workbench, "pam", role="planner")
        await workbench.dispatch(planner.caller, "create_plan", {"text": PROPOSED})


def test_a_planners_plan_is_a_question_and_nothing_of_it_is_begun_before_the_answer(
    run: Type, repository: Path, migrated: Settings
) -> None:
    asyncio.run(propose(migrated))
    ran = run("run", "zoo")
    assert (ran.status, "Only your decisions are waited for." in ran.out) == (3, True)
    assert "`workbench approve 2` lets the plan zoo begin; `workbench proposed 2` lists its tasks." in ran.out
    assert "waits for your approval 2" in ran.out
    assert json.loads(run("worktrees", "--json").out) == []
    assert run("approve", "zoo", "--without", "clean").status == 0
    ran = run("run", "zoo", "--json")
    assert (ran.status, json.loads(ran.out)["done"]) == (0, [1])


def test_from_a_fresh_repository_to_a_merge_each_command_is_named_by_the_one_before(
    run: Type, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    shown = run("init").out
    for command in (r"`workbench (run plan\.yaml)`", r"`workbench (approve \d+)` merges"):
        found = re.search(command, shown)
        assert found is not None, shown
        ran = run(*found[1].split())
        assert ran.status == 0
        shown = ran.out
    assert (repository / "FINDINGS.md").read_text() == "344 penguins were measured.\n"


def test_the_account_names_the_command_for_what_was_cancelled_and_for_what_is_not_there(
    run: Type, repository: Path, tmp_path: Path
) -> None:
    task = '{{name: {0}, title: T, persona: implementer, run: "true", needs: {{{1}}}}}'
    (tmp_path / "plan.yaml").write_text(
        f"plan: p\ntasks: [{task.format('a', 'cpu: 1')}, {task.format('b', 'telescope: 1')}]\n"
    )
    assert run("plan", str(tmp_path / "plan.yaml")).status == 0
    assert run("cancel", "1").status == 0
    shown = run("account", "p").out
    assert "`workbench retry 1`" in shown
    assert "`workbench resources`" in shown
    assert run("retry", "1").status == 0


def test_what_a_plan_does_not_get_is_said_and_of_its_ended_agents_only_the_newest_is_to_be_restarted(
    run: Type, repository: Path, plan: Path
) -> None:
    task = "{name: a, title: A, persona: implementer, worktree: one, run: exit 1, max_retries: 0}"
    plan.write_text(f"plan: tidy\ninclude: [.env]\ntasks: [{task}]\n")
    settings_path(repository).write_text('setup = "true"\n')
    for _ in range(2):
        ran = run("run", str(plan))
        assert "Not used, because you have not trusted it: .aiswarm/settings.toml (setup). `workbench trust`" in ran.err
        assert ran.status == 1
        assert "The workplace of the plan (include) opens no more than your settings do" in ran.err
        assert "The key include of the plan is not used, because you have not trusted it." in ran.out
    assert run("retry", "1").status == 0
    assert "Restart one-implementer-2. (workbench restart one-implementer-2)" in run("status").out
