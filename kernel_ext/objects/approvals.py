"""The inbox as objects of a notebook: `wb.approvals`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar

from kernel_ext.decisions import wait_for_decisions
from kernel_ext.objects.rows import Kind, Row, got_by
from workbench.cli.approvals import NONE_WAITS, decided_table, waiting_table
from workbench.tables import Table

MOST = 500


class Approval(Row):
    """A request that needs a decision. `await approval` waits until it is decided and what it started has ended."""

    KIND: ClassVar[Kind[Approval]]

    id: int
    kind: str
    status: str
    requester: str
    subject: str
    payload: dict[str, Any]
    created_at: str
    decided_at: str | None
    decided_by: str | None
    person: str | None
    reason: str | None
    outcome: Any
    changes_requested_at: str | None
    settled: bool

    def approve(self, **choices: Any) -> None:
        """Approve it: `approval.approve(agent_id="ada", role="planner")`.

        Args:
            choices: see the operation ``approve``.

        Raises:
            WorkbenchError: see the operation ``approve``.
        """
        self._changed("approve", approval_id=self.id, choices=choices)

    def reject(self, reason: str = "") -> None:
        """Reject it; the requester gets the reason.

        Raises:
            WorkbenchError: see the operation ``reject``.
        """
        self._changed("reject", approval_id=self.id, reason=reason)

    def __await__(self) -> Generator[Any, None, Approval]:
        """Wait for the decision, with buttons to decide; an interrupt ends the wait, and the question stays open."""
        yield from wait_for_decisions(self._notebook.host, [self.id]).__await__()
        self.refresh()
        return self


def approval_table(found: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Approvals; if any is decided, with the decisions."""
    shown = decided_table if any(one["status"] != "pending" for one in found) else waiting_table
    return shown(found, empty)


Approval.KIND = Kind(
    Approval,
    "list_approvals",
    "approvals",
    "id",
    approval_table,
    NONE_WAITS,
    got_by("get_approval", "approval_id"),
    first={"limit": MOST},
    tab="inbox",
)
