"""The status of a worktree, its difference from its target, and its history."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from tests import given
from tests.conftest import git
from tests.services.worktrees.lab import ask, commit, worktree_row
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def test_the_status_tells_commits_files_conflicts_and_open_tasks(workbench: Workbench, repository: Path) -> None:
    place = await given.worktree(workbench)
    assert (await worktree_row(workbench))["files"] == []
    commit(place, "new.txt", "a\nb\n")
    tip = commit(place, "README.md", "# Theirs\n")
    (place / "blob").write_bytes(b"\0\1")
    (place / "uncommitted.txt").write_text("not yet")
    commit(repository, "README.md", "# Mine\n")
    for worktree in ("lab", "lab", "other"):
        await given.task(workbench, "t", "tester", target_worktree=worktree)
    await workbench.call("cancel_task", task_id=1)
    found = await worktree_row(workbench)
    assert (found["commit"], found["ahead"], found["behind"]) == (tip, 2, 1)
    assert {f["path"]: (f["added"], f["removed"]) for f in found["files"]} == {"new.txt": (2, 0), "README.md": (1, 1)}
    assert (found["conflicts"], found["agents"], found["open_tasks"]) == (["README.md"], [], 1)


async def test_status_restores_a_deleted_branch_and_survives_a_deleted_target(
    workbench: Workbench, repository: Path
) -> None:
    git("branch", "dev", cwd=repository)
    tip = commit(await given.worktree(workbench, source_branch="dev"))
    assert (await worktree_row(workbench))["commit"] == tip
    for branch in ("wb/lab/main", "dev"):
        git("update-ref", "-d", f"refs/heads/{branch}", cwd=repository)
    worktree = await worktree_row(workbench)
    assert (worktree["commit"], worktree["ahead"], worktree["conflicts"]) == (tip, 0, [])
    assert git("rev-parse", "wb/lab/main", cwd=repository) == tip
    await given.refuses("BRANCH_NOT_FOUND", ask(workbench))


@pytest.mark.long
async def test_the_difference_is_shown_file_by_file_also_once_merged(workbench: Workbench) -> None:
    place = await given.worktree(workbench)
    (place / "blob").write_bytes(b"\0\1")
    commit(place, "sub.txt", "a\nb\n")
    tip = commit(place, "README.md", "# Theirs\n")
    diff = await workbench.call("get_worktree_diff", worktree_name="lab")
    assert (diff["worktree"], diff["target"], diff["commit"]) == ("lab", "main", tip)
    files = {file["path"]: file for file in diff["files"]}
    assert {name: file["status"] for name, file in files.items()} == {"README.md": "M", "blob": "A", "sub.txt": "A"}
    assert "-# A project\n+# Theirs\n" in files["README.md"]["patch"]
    assert (files["sub.txt"]["added"], files["blob"]["binary"], files["blob"]["patch"]) == (2, True, None)
    only = await workbench.call("get_worktree_diff", worktree_name="lab", path="README.md")
    assert [file["path"] for file in only["files"]] == ["README.md"]
    await workbench.call("approve", approval_id=await ask(workbench))
    assert (await workbench.call("get_worktree_diff", worktree_name="lab"))["files"] == diff["files"]
    assert (await workbench.call("get_worktree_diff", worktree_name="lab", uncommitted=True))["files"] == []


async def test_the_diff_shows_uncommitted_files_on_request(workbench: Workbench) -> None:
    place = await given.worktree(workbench)
    assert (await worktree_row(workbench))["dirty"] == []
    (place / "README.md").write_text("# Changed\n")
    (place / "new").mkdir()
    (place / "new" / "one.txt").write_text("new\n")
    files = (await workbench.call("get_worktree_diff", worktree_name="lab", uncommitted=True))["files"]
    assert [(file["path"], file["status"]) for file in files] == [("README.md", "M"), ("new/one.txt", "A")]
    below = await workbench.call("get_worktree_diff", worktree_name="lab", uncommitted=True, path="new")
    assert [file["path"] for file in below["files"]] == ["new/one.txt"]
    assert (await worktree_row(workbench))["dirty"] == ["README.md", "new/"]
    commit(place, "more.txt")
    assert (await worktree_row(workbench))["dirty"] == []


async def test_a_long_difference_is_cut(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"max_diff_bytes": 2_000})) as workbench:
        place = await given.worktree(workbench)
        commit(place, "a.txt", "short\n")
        commit(place, "b.txt", "long\n" * 10_000)
        first, second = (await workbench.call("get_worktree_diff", worktree_name="lab"))["files"]
        assert ("+short" in first["patch"], first["truncated"]) == (True, False)
        assert (second["patch"], second["truncated"], second["added"]) == (None, True, 10_000)


@pytest.mark.long
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
        "asker": getpass.getuser(),
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
async def test_active_worktrees_are_listed_oldest_first_closed_ones_by_pages_and_any_by_name(
    workbench: Workbench,
) -> None:
    for name in ("b", "a", "c"):
        await given.worktree(workbench, name)
    await workbench.call("discard_worktree", worktree_name="a")
    assert [w["name"] for w in (await workbench.call("get_worktree_status"))["worktrees"]] == ["b", "c"]
    assert (await worktree_row(workbench, "a"))["status"] == "discarded"
    await given.refuses("WORKTREE_NOT_FOUND", worktree_row(workbench, "z"))
    for name in ("b", "c"):
        await workbench.call("discard_worktree", worktree_name=name)
    first = await workbench.call("list_closed_worktrees", limit=2)
    assert [w["name"] for w in first["worktrees"]] == ["c", "b"]
    rest = await workbench.call("list_closed_worktrees", limit=2, before=first["next_before"])
    assert ([w["name"] for w in rest["worktrees"]], rest["next_before"]) == (["a"], None)
    named = await workbench.call("list_closed_worktrees", worktree_name="b")
    assert [w["name"] for w in named["worktrees"]] == ["b"]
