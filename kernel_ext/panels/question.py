"""The output of a cell that waits for decisions: their cards with buttons, then the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import traitlets

from kernel_ext.panels.desk import Desk, inbox_table
from kernel_ext.panels.rows import Tables
from workbench.cli.approvals import decider
from workbench.present.tables import Table

if TYPE_CHECKING:
    from kernel_ext.hosting.host import KernelHost


class CellQuestion(Desk):
    """The approvals that a cell waits for. Display it, and call `answered` or `interrupted` at the end.

    Args:
        host: a started `KernelHost`.
        approval_ids: the pending approvals among those that the cell waits for.
    """

    _summarised: ClassVar[Sequence[str]] = ("approvals",)
    approval_ids = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, host: KernelHost, approval_ids: Iterable[int]) -> None:
        super().__init__(host)
        self.approval_ids = list(approval_ids)

    def sections(self, tables: Tables) -> list[tuple[str, Table]]:
        """The approvals, and how to decide without buttons."""
        waiting = [row for row in tables["approvals"].values() if row["id"] in self.approval_ids]
        numbers = " ".join(map(str, self.approval_ids))
        how = f"Decide in the panel, or with `workbench approve {numbers}` in a terminal."
        return [("This cell waits for your decision", inbox_table(waiting, note=how))]

    def answered(self, approvals: Sequence[Mapping[str, Any]]) -> None:
        """Show what was decided in place of the cards."""
        self._end(*(_decision(approval) for approval in approvals))

    def interrupted(self) -> None:
        """Show that the cell has not waited to the end."""
        numbers = ", ".join(map(str, self.approval_ids))
        self._end(f"The cell was stopped before everything was decided. Approvals it waited for: {numbers}.")

    def _end(self, *lines: str) -> None:
        self.replace(*lines)
        self.close()

    def _keep(self, tables: Tables, *, ended: bool = False) -> None:
        """Keep nothing: what was decided stands in its place."""


def _decision(approval: Mapping[str, Any]) -> str:
    reason = f": {approval['reason']}" if approval.get("reason") else "."
    payload = approval["payload"]
    name = payload.get("name") or payload.get("worktree") or payload.get("tool") or approval["subject"]
    kind = approval["kind"].replace("_", " ")
    return f"{approval['status'].capitalize()} by {decider(approval)}: the {kind} of {name}{reason}"
