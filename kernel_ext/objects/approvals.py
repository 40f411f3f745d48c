"""The inbox as objects of a notebook: `wb.approvals`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from kernel_ext.decisions import wait_for_decisions
from kernel_ext.objects.kinds import NotebookSession, ObjectKind
from kernel_ext.objects.rows import Listing, Row
from workbench.cli.approvals import (
    AGENT_QUESTION,
    NONE_WAITS,
    PLAN,
    QUESTION,
    approval_page,
    decided_table,
    outcome_text,
    pending_about,
    settle,
    waiting_table,
)
from workbench.cli.integration import changes_requested, comment_at
from workbench.cli.output import Note
from workbench.errors import BadInput, Interrupted, from_dict
from workbench.present.tables import Table, TablePage

if TYPE_CHECKING:
    from IPython.lib.pretty import PrettyPrinter

MOST = 500


class Approval(Row):
    """A request that needs a decision. `await approval` waits until it is decided and what it started has ended."""

    _KIND: ClassVar[ObjectKind[Approval]]

    id: int
    kind: str
    status: str
    requester: str
    asker: str | None
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

    def approve(self, *, wait: bool = True, **choices: Any) -> Note:
        """Approve it, and say what came of it: `approval.approve(agent_id="ada", role="planner")`.

        A merge is waited for, gates included. An interrupt ends the wait, not the merge.

        Args:
            wait: False: return while the merge is still queued.
            choices: see the operation ``approve``.

        Raises:
            WorkbenchError: see the operation ``approve``; also why the merge was refused, such as ``TARGET_DIRTY``.
            Interrupted: ``WAIT_INTERRUPTED``.
        """
        try:
            return self._approve(wait, choices)
        except KeyboardInterrupt:
            name = f"wb.approvals[{self.id}]"
            message = f"The cell was interrupted. What was approved goes on: {name} shows how it stands."
            raise Interrupted("WAIT_INTERRUPTED", message) from None

    def _approve(self, wait: bool, choices: Mapping[str, Any]) -> Note:
        approval = self._call("approve", approval_id=self.id, choices=dict(choices))
        decision = {"approval_id": self.id, "ok": True, "outcome": approval["outcome"]}
        decision = settle(self._notebook.call, decision, lambda: True) if wait else decision
        self.refresh()
        if not decision["ok"]:
            raise from_dict(decision["error"])
        outcome = decision["outcome"]
        return Note("\n".join([f"{outcome_text(outcome)}.", *outcome.get("decides", ())]), decision)

    @property
    def tasks(self) -> Any:
        """The tasks that an agent proposes, each followed by its subtasks.

        Raises:
            NotFound: ``APPROVAL_NOT_FOUND``: it is about something else.
        """
        return self._notebook.call("list_proposed_tasks", approval_id=self.id, limit=1_000)

    def answer(self, content: str | Mapping[str, Any] = MappingProxyType({}), /, **fields: Any) -> Note:
        """Answer the question of an agent: `approval.answer("Use CSV")`; or of a server: `approval.answer(name="Ada")`;
        `reject()` declines, `dismiss()` cancels that of a server.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``. Conflict: ``CALL_ENDED``, ``ALREADY_DECIDED``.
        """
        return self.approve(content={**({"answer": content} if isinstance(content, str) else content), **fields})

    def dismiss(self) -> Note:
        """Do not answer the question of a server; it is told that nobody has."""
        return self.approve(action="cancel")

    def reject(self, reason: str = "") -> Note:
        """Reject it; the requester gets the reason.

        Raises:
            WorkbenchError: see the operation ``reject``.
        """
        self._change("reject", approval_id=self.id, reason=reason)
        return Note(f"Rejected {self.id}.", self.as_dict())

    def request_changes(
        self, note: str = "", *, comments: Mapping[str, str] = MappingProxyType({}), persona: str | None = None
    ) -> Note:
        """Tell the agents of the worktree that it would merge what to change first. The question stays open.

        Args:
            note, comments, persona: see `Worktree.request_changes`.

        Raises:
            BadInput: ``NOT_A_MERGE``, ``NOTHING_REQUESTED``, ``INVALID_ARGUMENTS``. WorkbenchError: see the operation
                ``request_changes``.
        """
        if self.kind != "integration":
            raise BadInput("NOT_A_MERGE", f"Approval {self.id} is not about a merge. .reject(reason) says why not.")
        answer = requested_changes(self._call, self.payload["worktree"], note, comments, persona)
        self.refresh()
        return answer

    def __await__(self) -> Generator[Any, None, Approval]:
        """Wait for the decision, with buttons to decide; an interrupt ends the wait, and the question stays open."""
        yield from wait_for_decisions(self._notebook.host, [self.id]).__await__()
        self.refresh()
        return self

    def _render(self) -> TablePage:
        name = f"wb.approvals[{self.id}]"
        how = f'`{name}.approve()` approves it, `{name}.reject("why")` rejects it.'
        if self.kind in (QUESTION, AGENT_QUESTION):
            how = f"`{name}.answer(field=value)` answers it, `{name}.reject()` declines, `{name}.dismiss()` cancels."
        if self.kind == PLAN:
            how = (
                f'`{name}.tasks` has its tasks. `{name}.approve()` lets them begin, `{name}.approve(without=["a"], '
                f'comment="…", comments={{"b": "…"}}, usd=20)` a part of them, `{name}.reject("why")` cancels them.'
            )
        return approval_page(self._values, how)


def requested_changes(
    call: Callable[..., Any], worktree: str, note: str, comments: Mapping[str, str], persona: str | None
) -> Note:
    """See `Worktree.request_changes`."""
    try:
        marked = [comment_at(place, text) for place, text in comments.items()]
    except ValueError as error:
        raise BadInput("INVALID_ARGUMENTS", f"comments: {error}", problems=[]) from None
    assignee = {} if persona is None else {"persona_id": persona}
    return changes_requested(call("request_changes", worktree_name=worktree, note=note, comments=marked, **assignee))


class Approvals(Listing[Approval]):
    """The questions that wait for a decision: `wb.approvals[3].approve()`, `wb.approvals["lint"]`.

    `wb.approvals(status=None)` has those that are decided too.
    """

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Approval._KIND)


class Decided(list[dict[str, Any]]):
    """What became of approvals: a list in every way, but shown as a table."""

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        alone = len(printer.stack) <= 1 and not cycle
        printer.text(self._table().text() if alone else repr(self))

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        return decided_table(self, "No approval was named.")


def approval_table(approvals: Sequence[Mapping[str, Any]], empty: str) -> Table:
    """Approvals; if any is decided, with the decisions."""
    table = decided_table if any(approval["status"] != "pending" for approval in approvals) else waiting_table
    return table(approvals, empty)


def _approval(notebook: NotebookSession, key: Any) -> Mapping[str, Any]:
    """The approval with an id, or else the pending one about this agent, worktree, definition or tool.

    Raises:
        NotFound: ``APPROVAL_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    if isinstance(key, str) and not key.isdecimal():
        waiting = notebook.call("list_approvals", status="pending", limit=MOST)["approvals"]
        key = pending_about(waiting, key)
    return notebook.call("get_approval", approval_id=key)


Approval._KIND = ObjectKind(
    Approval,
    "list_approvals",
    "approvals",
    "id",
    approval_table,
    NONE_WAITS,
    _approval,
    first={"limit": MOST},
    tab="inbox",
)
