"""Every fault that is known is made here, found, told, and mended without losing work."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, git
from tests.services.worktrees.lab import commit, worktree_row
from workbench.app import Workbench
from workbench.store.base import Tx
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

ENDED = 2**22 + 1
"""A pid that no process has."""
GONE = "1" * 40
WORK = Query(
    "work",
    "INSERT INTO attempt_work (task_id, attempt, agent_id, key_hash, state, kept_commit, over_at) "
    "VALUES (:task, 1, :agent, 'x', 'over', :kept, 1)",
)
PROCESS = Query(
    "process",
    "INSERT INTO processes (agent_id, profile, pid, started, mark, spawned_at) "
    "VALUES (:agent, 'script', :pid, 1.0, NULL, 1)",
)
LATE = Query("late", "UPDATE task_status SET lease_expires_at = 1 WHERE task_id = :task")


def keep(tx: Tx, values: Mapping[str, Any]) -> None:
    """Record that the work of an attempt is kept."""
    tx.run(WORK, values)


async def faults(workbench: Workbench) -> list[tuple[str, str]]:
    """The kinds and names of the faults that are found."""
    return [(fault["kind"], fault["name"]) for fault in (await workbench.call("find_faults"))["faults"]]


async def mend_all(workbench: Workbench) -> None:
    """Mend every fault, each once: what was mended is not there to be mended again."""
    for fault in (await workbench.call("find_faults"))["faults"]:
        mending = {"kind": fault["kind"], "name": fault["name"], "description": f"{fault['says']} {fault['mend']}"}
        other = mending | {"description": "Something else."}
        await given.refuses("FAULT_NOT_FOUND", workbench.call("mend_fault", **other))
        assert (await workbench.call("mend_fault", **mending))["done"]
        await given.refuses("FAULT_NOT_FOUND", workbench.call("mend_fault", **mending))


@pytest.mark.long
async def test_worktrees_without_rows_and_rows_without_worktrees_are_mended(workbench: Workbench) -> None:
    settings = workbench.settings
    place = await given.worktree(workbench)
    tip = commit(place)
    await worktree_row(workbench)  # which imports it
    (place / "uncommitted.txt").write_text("only here")
    rmtree(settings.repositories / "lab")
    git("worktree", "add", "-q", "--detach", str(settings.worktrees / "ghost"), cwd=settings.project)
    (settings.worktrees / "ghost" / "work.txt").write_text("work")
    assert await faults(workbench) == [("worktree_lost", "lab"), ("worktree_unknown", "ghost")]
    await mend_all(workbench)
    assert await faults(workbench) == []
    assert (git("rev-parse", "HEAD", cwd=place), (place / "new.txt").read_text()) == (tip, "new\n")
    ghost, lab = sorted(settings.trash.iterdir())
    assert (ghost / "files" / "work.txt").read_text() == "work"
    assert (lab / "files" / "uncommitted.txt").read_text() == "only here"
    again = commit(place, "more.txt")
    assert (await worktree_row(workbench))["commit"] == again
    assert "worktrees/ghost" not in git("worktree", "list", cwd=settings.project)


async def test_references_of_no_attempt_and_kept_work_without_one_are_mended(
    workbench: Workbench, repository: Path, admit: Admit
) -> None:
    ada = await admit("ada")
    here = git("commit-tree", "-p", "HEAD", "-m", "Kept", "HEAD^{tree}", cwd=repository)
    for kept in (here, GONE):
        task = await given.task(workbench)
        await given.claim(workbench, ada, task)
        await given.end(workbench, ada, task)
        values = {"task": task, "agent": ada.caller.agent, "kept": kept}
        await workbench.store.write(partial(keep, values=values))
    stray = git("commit-tree", "-p", "HEAD", "-m", "Stray", "HEAD^{tree}", cwd=repository)
    git("update-ref", "refs/workbench/attempts/99/1", stray, cwd=repository)
    for name in ("attempts/98/1", "links/lost"):
        (broken := repository / ".git/refs/workbench" / name).parent.mkdir(parents=True)
        broken.write_text(GONE + "\n")
    git("update-ref", "refs/workbench/links/other", stray, cwd=repository)
    ref = "refs/workbench/attempts"
    git("update-ref", f"{ref}/1/1", here, cwd=repository)
    for name, text in (("97/1", "\0" * 41), ("1/1", "")):  # of kept work, too
        (broken := repository / ".git" / ref / name).parent.mkdir(exist_ok=True)
        broken.write_text(text)
    dangling = [f"{ref}/1/1", f"{ref}/97/1", f"{ref}/98/1", "refs/workbench/links/lost", f"{ref}/99/1"]
    expected = [("ref_dangling", name) for name in dangling] + [("work_lost", f"{ref}/{n}/1") for n in (1, 2)]
    assert await faults(workbench) == expected
    await mend_all(workbench)
    assert await faults(workbench) == []
    assert git("for-each-ref", "--format=%(refname) %(objectname)", ref, cwd=repository) == f"{ref}/1/1 {here}"
    (bundle,) = workbench.settings.trash.glob("*.bundle")
    assert stray in git("bundle", "list-heads", str(bundle), cwd=repository)


async def test_a_lease_that_no_process_renews_is_ended(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    task = await given.task(workbench)
    await workbench.store.write(lambda tx: tx.run(PROCESS, agent=ada.caller.agent, pid=ENDED))
    await given.claim(workbench, ada, task)
    assert await faults(workbench) == []
    await workbench.store.write(lambda tx: tx.run(LATE, task=task))
    assert await faults(workbench) == [("lease", str(task))]
    await mend_all(workbench)
    assert (await faults(workbench), (await given.task_now(workbench, task))["status"]) == ([], "pending")
    assert (await given.kinds(workbench, "fault.*")) == ["fault.mended"]


@pytest.mark.sqlite("PostgreSQL refuses rows that refer to none")
async def test_rows_that_refer_to_none_are_cleared_or_removed(workbench: Workbench) -> None:
    parent = await given.task(workbench)
    child = await given.task(workbench, "child", parent_task_id=parent)
    with closing(sqlite3.connect(workbench.settings.database, isolation_level=None)) as db:
        db.execute("DELETE FROM tasks WHERE id = ?", (parent,))
    assert ("orphans", "tasks.parent_id") in await faults(workbench)
    await mend_all(workbench)
    assert await faults(workbench) == []
    assert await given.rows(workbench, "SELECT id, parent_id FROM tasks") == [(child, None)]
    assert await given.rows(workbench, "SELECT task_id FROM task_status") == [(child,)]
