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

CLOSED = ("integrated", "discarded")


class Worktree(Row):
    """An active worktree; a cell shows what it would merge."""

    _KIND: ClassVar[ObjectKind[Worktree]]

    name: str
    branch_name: str
    integration_target: str
    status: str
    machine: str
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

    def diff(self) -> Any:
        """What it changed since it forked, as a unified diff."""
        return self._notebook.run(["worktrees", "diff", "--", self.name])

    def update(self) -> dict[str, Any]:
        """Merge its target into it: whether it was `merged`, and the files that conflict, which change nothing.

        Raises:
            WorkbenchError: see the operation ``update_worktree``.
        """
        merge: dict[str, Any] = self._call("update_worktree", worktree_name=self.name)
        self.refresh()
        return merge

    def integrate(self, target: str | None = None) -> Approval:
        """Request to merge it: `wb.worktrees["fix"].integrate().approve()`.

        Raises:
            WorkbenchError: see the operation ``integrate_worktree``.
        """
        branch = {} if target is None else {"target_branch": target}
        request = self._call("integrate_worktree", worktree_name=self.name, **branch)
        approval = self._call("get_approval", approval_id=request["approval_id"])
        return Approval(self._notebook, approval, whole=True)

    def resolve(self, step: str = "start") -> dict[str, Any]:
        """Resolve its conflicts with its target: which files have them, and where.

        Args:
            step: ``start``: merge the target, leaving conflicts in the files; ``finish``: commit the resolved merge;
                ``abort``: return to the state before it.

        Raises:
            WorkbenchError: see the operation ``resolve_worktree``.
        """
        conflicts: dict[str, Any] = self._call("resolve_worktree", worktree_name=self.name, step=step)
        self.refresh()
        return conflicts

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
        discarded: dict[str, Any] = self._call("discard_worktree", worktree_name=self.name, reason=reason, force=force)
        return discarded

    def _render(self) -> TablePage:
        page: TablePage = self._notebook.run(["worktrees", "status", "--", self.name])
        return page


class Worktrees(Listing[Worktree]):
    """The active worktrees: `wb.worktrees["fix"].integrate()`."""

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Worktree._KIND)

    def create(self, name: str, **more: Any) -> Worktree:
        """Create a worktree with a branch of its own: `wb.worktrees.create("fix", base="main")`.

        Args:
            more: other arguments of the operation `create_worktree`.

        Raises:
            WorkbenchError: see the operation ``create_worktree``.
        """
        self._make("create_worktree", name=name, **more)
        return self[name]

    def __contains__(self, key: object) -> bool:
        """Whether it is active: a closed one is found by its name, too."""
        name = key._key if isinstance(key, Row) else key
        return super().__contains__(key) and self._kind.read(self._notebook, name)["status"] not in CLOSED


def _worktree(notebook: NotebookSession, key: Any) -> Mapping[str, Any]:
    [worktree] = notebook.call("get_worktree_status", worktree_name=key)["worktrees"]
    return dict(worktree)


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
