"""Worktrees as objects of a notebook: `wb.worktrees`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kernel_ext.objects.approvals import Approval
from kernel_ext.objects.rows import Kind, Listing, Notebook, Row
from workbench.cli.worktrees import NO_WORKTREES, worktree_table
from workbench.tables import Page


class Worktree(Row):
    """An active worktree; a cell shows what it would merge."""

    KIND: ClassVar[Kind[Worktree]]

    name: str
    branch_name: str
    integration_target: str
    status: str
    path: str
    created_by: str
    created_at: str
    integrated_commit: str | None
    confined: str | None
    commit: str | None
    ahead: int
    behind: int
    files: list[dict[str, Any]]
    added: int
    removed: int
    dirty: list[str]
    agents: list[str]
    open_tasks: int
    last_activity: str | None
    conflicts: list[str]
    overlaps: list[dict[str, Any]]
    approval_id: int | None
    approval: dict[str, Any] | None
    queue_place: int | None
    merging: bool
    problem: str | None

    @property
    def diff(self) -> Any:
        """What it changed since it forked, as a unified diff."""
        return self._notebook.run(["worktrees", "diff", "--", self.name])

    def update(self) -> dict[str, Any]:
        """Merge its target into it: whether it was `merged`, and the files that conflict, which change nothing.

        Raises:
            WorkbenchError: see the operation ``update_worktree``.
        """
        made = self._notebook.call("update_worktree", worktree_name=self.name)
        self.refresh()
        return made

    def integrate(self, target: str | None = None) -> Approval:
        """Request to merge it: `wb.worktrees["fix"].integrate().approve()`.

        Raises:
            WorkbenchError: see the operation ``integrate_worktree``.
        """
        chosen = {} if target is None else {"target_branch": target}
        made = self._notebook.call("integrate_worktree", worktree_name=self.name, **chosen)
        found = self._notebook.call("get_approval", approval_id=made["approval_id"])
        return Approval(self._notebook, found, whole=True)

    def discard(self, reason: str, *, force: bool = False) -> dict[str, Any]:
        """Remove it and end its agents; its branch is kept.

        Args:
            force: also if work would be lost from the worktree; it is put into a bundle.

        Raises:
            WorkbenchError: see the operation ``discard_worktree``.
        """
        return self._notebook.call("discard_worktree", worktree_name=self.name, reason=reason, force=force)

    def _shown(self) -> Page:
        page: Page = self._notebook.run(["worktrees", "status", "--", self.name])
        return page


class Worktrees(Listing[Worktree]):
    """The active worktrees: `wb.worktrees["fix"].integrate()`."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook, Worktree.KIND)


def _worktree(notebook: Notebook, key: Any) -> Mapping[str, Any]:
    [found] = notebook.call("get_worktree_status", worktree_name=key)["worktrees"]
    return dict(found)


Worktree.KIND = Kind(
    Worktree,
    "get_worktree_status",
    "worktrees",
    "name",
    worktree_table,
    NO_WORKTREES,
    _worktree,
    words={"name": "worktree_name"},
    brief="list_worktrees",
)
