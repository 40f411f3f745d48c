"""Worktrees as objects of a notebook: `wb.worktrees`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from kernel_ext.objects.approvals import Approval, requested_changes
from kernel_ext.objects.kinds import NotebookSession, ObjectKind
from kernel_ext.objects.rows import Listing, Row
from workbench.cli.output import Note
from workbench.cli.worktrees import NO_WORKTREES, worktree_table
from workbench.present.tables import TablePage


class Worktree(Row):
    """An active worktree; a cell shows what it would merge."""

    _KIND: ClassVar[ObjectKind[Worktree]]

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
    empty_submodules: list[str]
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
        made: dict[str, Any] = self._call("update_worktree", worktree_name=self.name)
        self.refresh()
        return made

    def integrate(self, target: str | None = None) -> Approval:
        """Request to merge it: `wb.worktrees["fix"].integrate().approve()`.

        Raises:
            WorkbenchError: see the operation ``integrate_worktree``.
        """
        chosen = {} if target is None else {"target_branch": target}
        made = self._call("integrate_worktree", worktree_name=self.name, **chosen)
        found = self._call("get_approval", approval_id=made["approval_id"])
        return Approval(self._notebook, found, whole=True)

    def resolve(self, step: str = "start") -> dict[str, Any]:
        """Resolve its conflicts with its target: which files have them, and where.

        Args:
            step: ``start``: merge the target, leaving conflicts in the files; ``finish``: commit the resolved merge;
                ``abort``: return to the state before it.

        Raises:
            WorkbenchError: see the operation ``resolve_worktree``.
        """
        made: dict[str, Any] = self._call("resolve_worktree", worktree_name=self.name, step=step)
        self.refresh()
        return made

    def request_changes(
        self, note: str = "", *, comments: Mapping[str, str] = MappingProxyType({}), persona: str | None = None
    ) -> Note:
        """Tell its agents what to change before it is merged; a request to merge it stays open.

        Args:
            note: what to change, about all of it.
            comments: on lines, by their place: ``{"model.py:3-5": "Sort first."}``.
            persona: also create a task in the worktree for this persona.

        Raises:
            BadInput: ``NOTHING_REQUESTED``, ``INVALID_ARGUMENTS``. WorkbenchError: see the operation
                ``request_changes``.
        """
        return requested_changes(self._call, self.name, note, comments, persona)

    def discard(self, reason: str, *, force: bool = False) -> dict[str, Any]:
        """Remove it and end its agents; its branch is kept.

        Args:
            force: also if work would be lost from the worktree; it is put into a bundle.

        Raises:
            WorkbenchError: see the operation ``discard_worktree``.
        """
        made: dict[str, Any] = self._call("discard_worktree", worktree_name=self.name, reason=reason, force=force)
        return made

    def _shown(self) -> TablePage:
        page: TablePage = self._notebook.run(["worktrees", "status", "--", self.name])
        return page


class Worktrees(Listing[Worktree]):
    """The active worktrees: `wb.worktrees["fix"].integrate()`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Worktree._KIND)


def _worktree(notebook: NotebookSession, key: Any) -> Mapping[str, Any]:
    [found] = notebook.call("get_worktree_status", worktree_name=key)["worktrees"]
    return dict(found)


Worktree._KIND = ObjectKind(
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
