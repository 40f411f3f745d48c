"""The content of a file that a task names as an artifact; nothing outside of the project is ever opened."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, git
from workbench.app import Workbench
from workbench.errors import NotFound, Refused, Unavailable

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


async def made(
    workbench: Workbench, agent: Admitted, artifacts: Sequence[str], worktree: str | None = None
) -> dict[str, Any]:
    """A task that an agent completed with these artifacts."""
    task = await given.whole_task(workbench, target_worktree=worktree)
    await given.claim(workbench, agent, task["id"])
    await given.done_by(workbench, agent, "complete_task", task["id"], artifacts=artifacts)
    return task


async def shown(workbench: Workbench, task: dict[str, Any], name: str) -> dict[str, Any]:
    """The content of one of its artifacts."""
    return await workbench.call("get_task_artifact", task_id=task["id"], name=name)


async def test_a_file_is_read_at_the_commit_that_completed_the_task(
    workbench: Workbench, settle: Admit, admit: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    (repository / "out").mkdir()
    (repository / "out" / "plot.png").write_bytes(PNG)
    git("add", ".", cwd=repository)
    git("commit", "-qm", "Plot", cwd=repository)
    commit = git("rev-parse", "HEAD", cwd=repository)
    (repository / "out" / "plot.png").write_bytes(b"later")
    task = await made(workbench, ada, ["out/plot.png", f"commit:{commit}"])
    found = await shown(workbench, task, "out/plot.png")
    assert (found["source"], found["commit"], found["path"]) == ("commit", commit, "out/plot.png")
    assert (found["form"], found["picture_type"], found["bytes"]) == ("picture", "image/png", len(PNG))
    assert base64.b64decode(found["data"]) == PNG


async def test_a_file_in_no_commit_is_read_in_the_worktree_or_of_a_task_without_one_in_the_project(
    workbench: Workbench, settle: Admit, admit: Admit, repository: Path
) -> None:
    ada = await settle("ada", "lab")
    place = workbench.settings.worktrees / "lab" / "rows.csv"
    place.write_text("a,b\n1,2\n")
    (place.parent / "out").mkdir()
    for name in ("notes.md", ".env"):
        (repository / name).write_text("# Notes")
    commit = git("rev-parse", "HEAD", cwd=repository)
    theirs = ["notes.md", ".env", str(repository / ".env"), "out"]
    task = await made(workbench, ada, ["rows.csv", str(place), *theirs, f"commit:{commit}"], "lab")
    for name in ("rows.csv", str(place)):
        found = await shown(workbench, task, name)
        assert (found["source"], found["commit"], found["path"]) == ("worktree", None, "rows.csv")
        assert (found["form"], found["columns"], found["rows"]) == ("table", ["a", "b"], [["1", "2"]])
    for name in theirs:
        await given.refuses("ARTIFACT_UNREADABLE", shown(workbench, task, name))
    found = await shown(workbench, await made(workbench, await admit("bob"), ["notes.md"]), "notes.md")
    assert (found["source"], found["text"]) == ("project", "# Notes")


OUTSIDE = ["../secret.txt", "out/../../secret.txt", "/etc/passwd", ".aiswarm/origin", ".git/config", "link.txt"]


async def test_an_unnamed_outside_or_linked_file_is_not_opened_as_an_artifact(
    workbench: Workbench, admit: Admit
) -> None:
    project = workbench.settings.project
    (project / "notes.md").write_text("# Notes")
    (project.parent / "secret.txt").write_text("theirs")
    (project / "link.txt").symlink_to(project.parent / "secret.txt")
    task = await made(workbench, await admit("ada"), ["commit:1", "https://example.org/x", *OUTSIDE])
    for name in ("notes.md", "commit:1", "https://example.org/x"):
        with pytest.raises(NotFound, match="ARTIFACT_NOT_FOUND"):
            await shown(workbench, task, name)
    for name in OUTSIDE:
        with pytest.raises(Unavailable, match="ARTIFACT_UNREADABLE"):
            await shown(workbench, task, name)


async def test_only_the_operator_opens_artifacts(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada", role="planner")
    task = await made(workbench, ada, ["notes.md"])
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "get_task_artifact", {"task_id": task["id"], "name": "notes.md"})
