"""Integrated and discarded worktrees stay visible: what became of them, who decided it, and when."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from tests import given
from tests.conftest import git
from tests.services.worktrees.lab import ask, commit, one
from workbench.app import Workbench

pytestmark = pytest.mark.anyio


async def test_closed_worktrees_stay_visible_if_their_name_is_reused(workbench: Workbench, repository: Path) -> None:
    tip = commit(await given.worktree(workbench))
    question = await ask(workbench)
    decided = (await workbench.call("approve", approval_id=question))["approval"]
    place = await given.worktree(workbench, branch_name="wb/lab/2")
    commit(place, "more.txt")
    pending = await ask(workbench)
    await workbench.call("discard_worktree", worktree_name="lab", reason="Dead end", delete_branch=True, force=True)
    await given.worktree(workbench, branch_name="wb/lab/3")
    discarded, integrated = (await workbench.call("list_closed_worktrees"))["worktrees"]
    assert (integrated["name"], integrated["status"], integrated["last_commit"]) == ("lab", "integrated", tip)
    assert integrated["integrated_commit"] == git("rev-parse", "main", cwd=repository)
    assert integrated["approval"] == {
        "approval_id": question,
        "requester": "operator",
        "requested_at": decided["created_at"],
        "decision": "approved",
        "decided_by": "operator",
        "person": getpass.getuser(),
        "decided_at": decided["decided_at"],
        "decision_reason": None,
    }
    assert (discarded["status"], discarded["reason"], discarded["branch_kept"]) == ("discarded", "Dead end", False)
    assert (discarded["closed_by"], discarded["integrated_commit"]) == ("operator", None)
    assert Path(discarded["bundle"]).is_file()
    assert (discarded["approval"]["approval_id"], discarded["approval"]["decision"]) == (pending, "rejected")


@pytest.mark.long
async def test_active_ones_are_listed_oldest_first_the_history_by_pages_and_any_by_name(workbench: Workbench) -> None:
    for name in ("b", "a", "c"):
        await given.worktree(workbench, name)
    await workbench.call("discard_worktree", worktree_name="a")
    assert [w["name"] for w in (await workbench.call("get_worktree_status"))["worktrees"]] == ["b", "c"]
    assert (await one(workbench, "a"))["status"] == "discarded"
    await given.refuses("WORKTREE_NOT_FOUND", one(workbench, "z"))
    for name in ("b", "c"):
        await workbench.call("discard_worktree", worktree_name=name)
    first = await workbench.call("list_closed_worktrees", limit=2)
    assert [w["name"] for w in first["worktrees"]] == ["c", "b"]
    rest = await workbench.call("list_closed_worktrees", limit=2, before=first["next_before"])
    assert ([w["name"] for w in rest["worktrees"]], rest["next_before"]) == (["a"], None)
    named = await workbench.call("list_closed_worktrees", worktree_name="b")
    assert [w["name"] for w in named["worktrees"]] == ["b"]
