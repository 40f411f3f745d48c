"""Steps of the tests of worktrees: create one, commit in it, request its integration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conftest import git
from workbench.app import Workbench

GOING_ON = {"waiting", "running"}


def commit(place: Path, name: str = "new.txt", text: str = "new\n") -> str:
    """Commit a file, as a worker would; the commit."""
    (place / name).write_text(text)
    git("add", "--all", cwd=place)
    git("commit", "-q", "-m", f"Change {name}", cwd=place)
    return git("rev-parse", "HEAD", cwd=place)


async def ask(workbench: Workbench, name: str = "lab", **more: Any) -> int:
    """Ask for the integration of a worktree; the approval's id."""
    request = await workbench.call("integrate_worktree", worktree_name=name, **more)
    assert request["state"] == "awaiting_approval"
    return int(request["approval_id"])


async def worktree_row(workbench: Workbench, name: str = "lab") -> dict[str, Any]:
    """The status of a worktree."""
    (worktree,) = (await workbench.call("get_worktree_status", worktree_name=name))["worktrees"]
    return dict(worktree)


async def approval(workbench: Workbench, approval_id: int) -> dict[str, Any]:
    """An approval, whatever its state."""
    approvals = (await workbench.call("list_approvals", status=None))["approvals"]
    return next(a for a in approvals if a["id"] == approval_id)


def everything(root: Path) -> tuple[str, str, str]:
    """The state that a refused integration must not change: refs and files of the person's checkout."""
    readme = (root / "README.md").read_text()
    # What a worker committed is taken in meanwhile.
    refs = "\n".join(line for line in git("for-each-ref", cwd=root).splitlines() if "/wb/" not in line)
    return refs, git("status", "--porcelain", cwd=root), readme


async def settled(workbench: Workbench, approval_id: int) -> dict[str, Any]:
    """An approval once its gates have run."""
    async with workbench.feed.subscribe("approval.*") as news:
        while not GOING_ON.isdisjoint(states(found := await approval(workbench, approval_id))):
            await anext(news)
    return found


def states(found: dict[str, Any]) -> list[str]:
    """The states of an approval's gates."""
    return [gate["state"] for gate in found["payload"]["gates"]]


async def finished(workbench: Workbench, approval_id: int) -> dict[str, Any]:
    """An approval once it is decided and its effect has ended."""
    found: dict[str, Any] = {"settled": False}
    while not found["settled"]:
        found = await workbench.call("get_approval", approval_id=approval_id, wait_seconds=20)
    return found
