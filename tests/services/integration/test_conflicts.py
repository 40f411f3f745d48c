"""The conflicts of a pending integration are shown as they are now, not as they were at the request."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, git
from tests.services.worktrees.lab import ask, commit, worktree_row
from workbench.app import Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def shown(workbench: Workbench, approval_id: int) -> dict[str, Any]:
    """The payload of a pending approval."""
    approvals = (await workbench.call("list_approvals"))["approvals"]
    return dict(next(a["payload"] for a in approvals if a["id"] == approval_id))


async def updates(workbench: Workbench) -> int:
    """The number of updates of approvals."""
    return len((await workbench.call("list_events", kinds=["approval.updated"]))["events"])


async def test_conflicts_and_open_tasks_are_shown_as_they_are_now(workbench: Workbench, repository: Path) -> None:
    commit(await given.worktree(workbench), "README.md", "# Theirs\n")
    question = await ask(workbench)
    assert (await shown(workbench, question))["conflicts"] == []
    commit(repository, "README.md", "# Mine\n")
    task = await given.task(workbench, "Tests", target_worktree="lab")
    now = await shown(workbench, question)
    assert (now["conflicts"], now["behind"]) == (["README.md"], 1)
    assert (now["open_tasks"], now["open_task_ids"]) == (1, [task])
    assert (await worktree_row(workbench))["conflicts"] == ["README.md"]
    assert (await workbench.call("get_approval", approval_id=question))["payload"] == now
    git("reset", "-q", "--hard", "HEAD~1", cwd=repository)
    await workbench.call("cancel_task", task_id=task)
    now = await shown(workbench, question)
    assert (now["conflicts"], now["behind"], now["open_tasks"]) == ([], 0, 0)
    await workbench.call("approve", approval_id=question)
    assert (repository / "README.md").read_text() == "# Theirs\n"


async def test_an_approval_names_the_worktrees_it_would_bring_into_conflict(workbench: Workbench) -> None:
    places = {name: await given.worktree(workbench, name) for name in ("a", "b", "c", "d")}
    commit(places["a"], "README.md", "# A\n")
    question = await ask(workbench, "a")
    assert (await shown(workbench, question))["makes_conflict"] == []
    commit(places["b"], "README.md", "# B\n")
    commit(places["c"], "README.md", "# C\n")
    commit(places["d"], "other.txt")
    expected = [{"worktree": name, "files": ["README.md"]} for name in ("b", "c")]
    assert (await shown(workbench, question))["makes_conflict"] == expected
    git("reset", "-q", "--hard", "HEAD~1", cwd=places["c"])
    assert (await shown(workbench, question))["makes_conflict"] == expected[:1]
    await workbench.call("approve", approval_id=question)
    assert {name: (await worktree_row(workbench, name))["conflicts"] for name in "bcd"} == {
        "b": ["README.md"],
        "c": [],
        "d": [],
    }


async def test_an_already_conflicting_worktree_is_not_named(workbench: Workbench, repository: Path) -> None:
    places = {name: await given.worktree(workbench, name) for name in ("a", "b")}
    commit(repository, "README.md", "# Mine\n")
    commit(places["b"], "README.md", "# B\n")
    git("merge", "-q", "--ff-only", git("rev-parse", "main", cwd=repository), cwd=places["a"])
    commit(places["a"], "README.md", "# A\n")
    assert (await shown(workbench, await ask(workbench, "a")))["makes_conflict"] == []
    assert (await worktree_row(workbench, "b"))["conflicts"] == ["README.md"]


async def test_an_update_is_announced_once_and_only_of_a_change(workbench: Workbench, repository: Path) -> None:
    commit(await given.worktree(workbench), "README.md", "# Theirs\n")
    question = await ask(workbench)
    before = await updates(workbench)
    for _ in range(3):
        await shown(workbench, question)
    assert await updates(workbench) == before
    commit(repository, "mine.txt")
    assert (await shown(workbench, question))["behind"] == 1
    assert await updates(workbench) == before
    commit(repository, "README.md", "# Mine\n")
    for _ in range(3):
        await shown(workbench, question)
    assert await updates(workbench) == before + 1


async def test_a_server_announces_new_conflicts_of_a_pending_integration(served: Served, repository: Path) -> None:
    workbench = served.workbench
    commit(await given.worktree(workbench), "README.md", "# Theirs\n")
    question = await ask(workbench)
    before = await updates(workbench)
    commit(repository, "README.md", "# Mine\n")
    while await updates(workbench) == before:
        await asyncio.sleep(0.05)
    assert (await shown(workbench, question))["conflicts"] == ["README.md"]
    (event,) = (await workbench.call("list_events", kinds=["approval.updated"]))["events"][before:]
    assert (event["subject"], event["actor"]) == (f"approval:{question}", "system")


async def test_decided_approvals_are_listed_newest_first(workbench: Workbench) -> None:
    for name in ("Ada", "Bob", "Eve"):
        await workbench.call("register", name=name)
    await workbench.call("reject", approval_id=2, reason="Not now")
    await workbench.call("approve", approval_id=1)
    approvals = (await workbench.call("list_approvals", status="decided"))["approvals"]
    assert [(a["id"], a["status"], a["decided_by"], a["reason"]) for a in approvals] == [
        (1, "approved", "operator", None),
        (2, "rejected", "operator", "Not now"),
    ]
    about = approvals[1]["subject"]
    assert [a["id"] for a in (await workbench.call("list_approvals", status=None, subject=about))["approvals"]] == [2]
