"""The inbox: everything that needs the operator's approval.

Generic: whoever opens an approval registers the handler that runs when it is decided.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint, NotFound, WorkbenchError
from workbench.model import LARGEST_INT, Int64, Level, Micros, Wire
from workbench.ops import OPERATOR, Caller, Ctx, RestRoute, op
from workbench.ops.parameters import ApprovalId
from workbench.rules.naming import like_pattern
from workbench.rules.secrets.executed import GivenData
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Limit, Search
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

HUB_USER = "JUPYTERHUB_USER"
"""The variable in which JupyterHub says to whom a server belongs: users of its containers all have one name there."""
LONGEST_PERSON = 200
REFRESH_SECONDS = 1.0
"""The longest wait for approvals to be brought up to date before they are shown."""

Status = Literal["pending", "approved", "rejected", "failed"]
Verdict = Literal["approved", "rejected", "failed"]

CHOICES = (
    "For a registration: agent_id, name, session_id, team_id, persona_id, role, tool, access_level, expires_at "
    "(ISO 8601) or expires_in_seconds, definition, self_tools (off, read or write), definitions and tools. An absent "
    "choice gets a default; null means none. For an integration: despite_gates, true to merge although "
    "gates failed or are still running. For a tool_call: remember (once; `always`: allow all calls of the tool as "
    "it is; `conversation` or `task`: those of the same one) and arguments (a pattern for each argument, in which * is "
    "any text: allow only such calls). For a peer_call: remember (`always`: all calls of the trait by that node). "
    "For a plan: without (names or ids of tasks to leave out), comment (for its agent), comments (by task), tokens, "
    "usd or attempts (what it may spend). For a question: content (the answer by field; an agent's: answer); of a "
    "server also action (`cancel`: not answered); reject declines."
)
_EVENTS: dict[Verdict, str] = {
    "approved": "approval.approved",
    "rejected": "approval.rejected",
    "failed": "approval.failed",
}


class ApprovalInfo(Wire):
    """A request for the operator's approval, and the decision."""

    id: int
    kind: str
    status: Status
    requester: str
    asker: str | None
    """The name of the person who asked; null: no person did."""
    subject: str
    payload: GivenData
    created_at: Micros
    decided_at: Micros | None
    decided_by: str | None
    person: str | None
    """The name of the person who decided; null: no person did."""
    reason: str | None
    outcome: GivenData | None
    changes_requested_at: Micros | None
    """When changes were requested last; get_requested_changes has the comments."""
    settled: bool
    """Whether it is decided and its effect has ended; an approved integration may still be queued."""


class ApprovalPage(Wire):
    """Approvals, oldest first."""

    approvals: list[ApprovalInfo]


class DecidedApprovals(Wire):
    """Decided approvals, the newest decision first."""

    approvals: list[ApprovalInfo]
    next_cursor: str | None


class Decision(Wire):
    """A decided approval and the outcome."""

    approval: ApprovalInfo
    outcome: dict[str, Any]


class OneDecision(Wire):
    """The result of one of several decisions: an outcome, or an error."""

    approval_id: int
    ok: bool
    outcome: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Decisions(Wire):
    """The results of several decisions, in the order of the request."""

    decisions: list[OneDecision]


ApprovalIds = Annotated[
    list[Int64], Field(min_length=1, max_length=2_000, description="Ids of approvals; see list_approvals.")
]
RejectionReason = Annotated[
    str, Field(max_length=1_000, description="Why, and what to do about it: the requester gets this text.")
]

DecisionHandler = Callable[[Ctx, ApprovalInfo, bool, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""`(ctx, approval, approved, choices) -> outcome`: carries out a decision about approvals of one kind.

It records the decision itself with `decide`, in the transaction of its own change; raising an error
leaves the approval pending.
"""


def decision_handler(kind: str) -> Callable[[DecisionHandler], DecisionHandler]:
    """Register a service's function as the handler that runs when an approval of `kind` is decided."""

    def mark(fn: DecisionHandler) -> DecisionHandler:
        fn.approval_kind = kind  # type: ignore[attr-defined]
        return fn

    return mark


def ask(
    tx: Tx,
    kind: str,
    subject: str,
    payload: Mapping[str, Any],
    requester: str | None = None,
    asker: str | None = None,
) -> int:
    """Request an approval for a requester, by default the actor of the transaction; its id.

    Args:
        asker: the person who asks; see `person_of`.
    """
    values = {"kind": kind, "requester": requester or tx.actor, "asker": asker, "subject": subject}
    row = tx.one(SQL.add, values, payload=json.dumps(payload), now=tx.now)
    assert row is not None
    approval_id = int(row["id"])
    about = {"kind": kind, "about": subject, "requester": requester_of(tx, requester or tx.actor)}
    tx.emit("approval.requested", f"approval:{approval_id}", **about, **({"asker": asker} if asker else {}))
    return approval_id


def open_question(tx: Reader, kind: str, subject: str) -> ApprovalInfo | None:
    """The pending approval of a kind about a subject, if there is one."""
    row = tx.one(SQL.open_about, kind=kind, subject=subject)
    return _approval(row) if row else None


def person_of(ctx: Ctx) -> str | None:
    """The name of the person who calls; None if no person does.

    It is who clicked, if that is another than the user of the hub to whom the server belongs; else the setting
    `person`, that user, or the system's.
    """
    if ctx.caller.name != OPERATOR.name or ctx.caller.level is not OPERATOR.level:  # over HTTP it has an address too
        return None
    with suppress(OSError, KeyError, ImportError):  # a container's user may have no name
        owner = os.environ.get(HUB_USER)
        guest = ctx.caller.person[:LONGEST_PERSON] if ctx.caller.person not in (None, owner) else None
        return guest or ctx.settings.person or owner or getpass.getuser()
    return None


def decide(
    tx: Tx,
    approval: ApprovalInfo,
    status: Verdict,
    reason: str = "",
    outcome: Mapping[str, Any] | None = None,
    person: str | None = None,
) -> dict[str, Any]:
    """Record a decision, in the transaction of its effect; the outcome as it is stored.

    Args:
        person: see `person_of`.

    Raises:
        Conflict: ``ALREADY_DECIDED``.
    """
    stored = dict(outcome or {})
    if not _close(tx, approval, status, reason, stored, person):
        raise decided_before(approval.id)
    return stored


def withdraw(tx: Tx, approval: ApprovalInfo, reason: str) -> None:
    """Close a pending approval, because what it is about has changed or is gone."""
    _close(tx, approval, "failed", reason, {})


def _close(
    tx: Tx, approval: ApprovalInfo, status: Verdict, reason: str, outcome: Mapping[str, Any], person: str | None = None
) -> bool:
    """Close an approval; False if it is not pending."""
    values = {"id": approval.id, "status": status, "by": tx.actor, "reason": reason or None, "now": tx.now}
    if not tx.run(SQL.decide, values | {"outcome": json.dumps(outcome), "person": person}):
        return False
    _emit(tx, _EVENTS[status], approval, reason=reason, **({"person": person} if person else {}))
    return True


def find(tx: Reader, approval_id: int) -> ApprovalInfo | None:
    """An approval in any state."""
    row = tx.one(SQL.get, id=approval_id)
    return _approval(row) if row else None


def amend(tx: Tx, approval: ApprovalInfo, payload: Mapping[str, Any], *, quiet: bool = False) -> None:
    """Change the payload of an approval, in the transaction that makes it out of date.

    Args:
        quiet: emit no event, because only progress has changed, such as the output of a gate that runs.
    """
    if dict(payload) == approval.payload:
        return
    tx.run(SQL.amend, id=approval.id, payload=json.dumps(payload))
    if not quiet:
        _emit(tx, "approval.updated", approval)


def note_changes(tx: Tx, approval: ApprovalInfo, request_id: int) -> None:
    """Record that changes were requested in what a pending approval is about; whoever waits for it is told."""
    tx.run(SQL.note_changes, id=approval.id, now=tx.now)
    _emit(tx, "approval.changes_requested", approval, request_id=request_id)


def reopen(tx: Tx, approval: ApprovalInfo, undoes: int) -> None:
    """Ask again what was rejected; `undoes` is the id of the event of the rejection."""
    tx.run(SQL.reopen, id=approval.id)
    _emit(tx, "approval.reopened", approval, undoes=undoes)


def conclude(
    tx: Tx, approval: ApprovalInfo, status: Verdict, reason: str, outcome: Mapping[str, Any]
) -> dict[str, Any]:
    """Record the final outcome of an approval whose effect ended after the decision."""
    stored = dict(outcome)
    values = {"id": approval.id, "status": status, "reason": reason or approval.reason, "outcome": json.dumps(stored)}
    tx.run(SQL.conclude, values)
    _emit(tx, _EVENTS[status] if status != approval.status else "approval.updated", approval, reason=reason)
    return stored


def _emit(tx: Tx, kind: str, approval: ApprovalInfo, **data: Any) -> None:
    about = {"kind": approval.kind, "about": approval.subject, "requester": requester_of(tx, approval.requester)}
    tx.emit(kind, f"approval:{approval.id}", **about, **data)


def requester_of(tx: Reader, name: str) -> str | None:
    """The subject of the agent with this name, or with this former one; None for other requesters."""
    row = tx.one(SQL.requester, name=name)
    return f"agent:{row['id']}" if row else None


@op(
    allow=Level.OPERATOR,
    reads=True,
    command="approvals",
    rest=RestRoute("GET", "/approvals", rows="approvals"),
    refreshed_by="approval worktree",
)
async def list_approvals(
    ctx: Ctx,
    status: Annotated[
        Status | Literal["decided"] | None, Field(description="Only approvals in this state; null: all.")
    ] = "pending",
    kind: Annotated[
        str | None,
        Field(description="Only this kind, such as registration, integration or question."),
    ] = None,
    subject: Annotated[str | None, Field(max_length=200, description="Only about this, as worktree:NAME.")] = None,
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many.")] = 200,
) -> ApprovalPage:
    """List the inbox: what needs the operator's approval, oldest first. `decided` ones: the newest decision first."""
    await _refresh(ctx)
    only = {"status": status, "kind": kind, "subject": subject, "limit": limit}
    rows = await ctx.read(lambda tx: tx.all(SQL.list_decided if status == "decided" else SQL.list, only))
    return ApprovalPage(approvals=[_approval(row) for row in rows])


@op(allow=Level.OPERATOR, reads=True, tool=False, command="approvals --all")
async def list_decided_approvals(
    ctx: Ctx,
    search: Search = None,
    kind: Annotated[
        str | None,
        Field(description="Only this kind, such as registration, integration or question."),
    ] = None,
    decision: Annotated[Verdict | None, Field(description="Only those decided like this.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> DecidedApprovals:
    """List what was decided, the newest decision first: who decided, when, why, and the outcome."""
    before_at, before_id = paging.decode(cursor, int, int) if cursor else (LARGEST_INT, LARGEST_INT)
    only = {"search": like_pattern(search), "kind": kind, "status": decision}
    where = {**only, "before_at": before_at, "before_id": before_id, "limit": limit + 1}
    rows = await ctx.read(lambda tx: tx.all(SQL.list_decided_by, where))
    page, more = paging.cut(rows, limit, "decided_at", "id")
    return DecidedApprovals(approvals=[_approval(row) for row in page], next_cursor=more)


def pending(tx: Reader, kind: str) -> list[ApprovalInfo]:
    """The pending approvals of a kind, oldest first."""
    return [_approval(row) for row in tx.all(SQL.pending, kind=kind)]


async def is_pending(ctx: Ctx, kind: str) -> bool:
    """Whether any approval of a kind is pending."""
    return await ctx.store.read_inline(lambda tx: tx.one(SQL.is_pending, kind=kind)) is not None


def pending_about(tx: Reader, subject: str) -> list[ApprovalInfo]:
    """The pending approvals of any kind about a subject."""
    return [_approval(row) for row in tx.all(SQL.pending_about, subject=subject)]


async def _refresh(ctx: Ctx) -> None:
    """Bring pending approvals up to date before they are shown.

    While the servers run, they do so all the time; then this does not wait long for what changed just now.
    """
    limit = REFRESH_SECONDS if ctx.local.server is not None else None
    for refresh in ctx.approval_refreshers:
        with suppress(TimeoutError):
            await asyncio.wait_for(refresh(ctx), limit)


@op(allow=Level.PLANNER, reads=True, command="approvals")
async def get_approval(
    ctx: Ctx,
    approval_id: ApprovalId,
    wait_seconds: Annotated[float, Field(ge=0, description="Wait this long for the decision and its outcome.")] = 0,
) -> ApprovalInfo:
    """Get an approval that you requested, its decision, who decided, the reason, and the outcome.

    With wait_seconds, wait for the decision, or until changes are requested. An approved integration is `queued` until
    it is merged.
    """
    began = ctx.store.now()

    def is_answered(approval: ApprovalInfo) -> bool:
        asked_at = approval.changes_requested_at
        return approval.settled or (asked_at is not None and asked_at >= began)  # an earlier request was seen before

    await _refresh(ctx)
    return await ctx.feed.until(
        lambda tx: _require_visible(tx, ctx.caller, approval_id),
        is_answered,
        "approval.*",
        subject=f"approval:{approval_id}",
        seconds=min(wait_seconds, ctx.settings.wait_limit_seconds),
    )


@op(allow=Level.OPERATOR, rest=RestRoute("POST", "/approvals/{approval_id}/approve"))
async def approve(
    ctx: Ctx,
    approval_id: ApprovalId,
    choices: Annotated[dict[str, Any], Field(description=CHOICES)] = {},
) -> Decision:
    """Approve a request. An integration may be `queued` first; get_approval waits until it has ended."""
    return await _decide(ctx, approval_id, True, choices)


@op(allow=Level.OPERATOR, rest=RestRoute("POST", "/approvals/{approval_id}/reject"))
async def reject(ctx: Ctx, approval_id: ApprovalId, reason: RejectionReason = "") -> Decision:
    """Reject a request. The requester gets the reason."""
    return await _decide(ctx, approval_id, False, {"reason": reason})


@op(allow=Level.OPERATOR, command="approve")
async def approve_many(
    ctx: Ctx,
    approval_ids: ApprovalIds,
    choices: Annotated[dict[str, Any], Field(description="The same for all, without agent_id; see approve.")] = {},
) -> Decisions:
    """Approve several requests. One that fails does not affect the others."""
    if "agent_id" in choices and len(approval_ids) > 1:
        raise BadInput("INVALID_ARGUMENTS", "Several agents cannot have one agent_id; omit it.", problems=[])
    return await _decide_many(ctx, approval_ids, True, choices)


@op(allow=Level.OPERATOR, command="reject")
async def reject_many(ctx: Ctx, approval_ids: ApprovalIds, reason: RejectionReason = "") -> Decisions:
    """Reject several requests for one reason. One that fails does not affect the others."""
    return await _decide_many(ctx, approval_ids, False, {"reason": reason})


async def _decide_many(ctx: Ctx, approval_ids: Sequence[int], approved: bool, choices: Mapping[str, Any]) -> Decisions:
    async def one(approval_id: int) -> OneDecision:
        try:
            decision = await _decide(ctx, approval_id, approved, choices)
        except WorkbenchError as error:
            return OneDecision(approval_id=approval_id, ok=False, error=error.as_dict())
        return OneDecision(approval_id=approval_id, ok=True, outcome=decision.outcome)

    return Decisions(decisions=list(await asyncio.gather(*map(one, dict.fromkeys(approval_ids)))))


async def _decide(ctx: Ctx, approval_id: int, approved: bool, choices: Mapping[str, Any]) -> Decision:
    before = await _get(ctx, approval_id)
    if before.status != "pending":
        raise decided_before(approval_id)
    outcome = await ctx.decision_handlers[before.kind](ctx, before, approved, choices)
    return Decision(approval=await _get(ctx, approval_id), outcome=outcome)


async def _get(ctx: Ctx, approval_id: int) -> ApprovalInfo:
    return await ctx.read(lambda tx: _require(tx, approval_id))


def _require(tx: Reader, approval_id: int) -> ApprovalInfo:
    if (approval := find(tx, approval_id)) is None:
        raise NotFound("APPROVAL_NOT_FOUND", f"There is no approval {approval_id}.", Hint("list_approvals"))
    return approval


def _require_visible(tx: Reader, caller: Caller, approval_id: int) -> ApprovalInfo:
    """An approval that the caller may see: an agent those that it requested, the operator all."""
    if caller.level is not Level.OPERATOR and not tx.one(SQL.requested_by, id=approval_id, agent=caller.agent):
        raise NotFound("APPROVAL_NOT_FOUND", f"There is no approval {approval_id} that you requested.")
    return _require(tx, approval_id)


def check_choices(choices: Mapping[str, Any], known: set[str]) -> None:
    """Refuse choices that this kind of approval does not have.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    if unknown := sorted(set(choices) - known):
        raise BadInput("INVALID_ARGUMENTS", f"This approval has no choice {', '.join(unknown)}.", problems=unknown)


def decided_before(approval_id: int) -> Conflict:
    """The error for an approval that is already decided."""
    return Conflict(
        "ALREADY_DECIDED",
        f"Approval {approval_id} is already decided; nothing was changed.",
        Hint("list_decided_approvals", "{} says how and by whom."),
    )


def _approval(row: Row) -> ApprovalInfo:
    outcome = json.loads(row["outcome"]) if row["outcome"] else None
    settled = row["status"] != "pending" and (outcome or {}).get("state") != "queued"
    return ApprovalInfo(**{**dict(row), "payload": json.loads(row["payload"]), "outcome": outcome, "settled": settled})
