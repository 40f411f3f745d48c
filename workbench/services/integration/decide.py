"""Handles the operator's decision on an integration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import BadInput, Conflict, Hint, WorkbenchError
from workbench.ops import Ctx
from workbench.rules.integration import GateState, Next, Verdict, WorktreeAction, verdict
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration import queue
from workbench.services.integration.merge import merge, next_step, not_merged
from workbench.services.integration.queue import advance, enqueue
from workbench.services.worktrees.places import exclusive
from workbench.services.worktrees.rows import KIND, find_worktree, forget_question, require_worktree_for
from workbench.store.base import Reader, Row, Tx


@approvals.decision_handler(KIND)
async def decide_integration(ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Queue an approved integration; the feed reports its outcome. A rejection leaves the worktree as it is.

    Without a running server nothing works off the queue, so the merge is made at once and its outcome returned. The
    worktree of another machine is merged by that machine's server, into the target in its repository.
    """
    reason, elsewhere = str(choices.get("reason", "")), await _elsewhere(ctx, approval)
    if not yes and elsewhere:
        return await ctx.write(lambda tx: _set_rejected_elsewhere(tx, approval, reason, approvals.person_of(ctx)))
    if not yes:
        return await ctx.local.repositories.shielded(_reject(ctx, approval, reason))
    approvals.check_choices(choices, {"despite_gates"})
    despite = choices.get("despite_gates", False)
    if not isinstance(despite, bool):
        raise BadInput("INVALID_ARGUMENTS", "despite_gates must be true or false.", problems=[])
    if ctx.local.server is not None or elsewhere:
        return await ctx.write(lambda tx: _queue(tx, approval.id, despite, approvals.person_of(ctx), elsewhere))
    outcome = await ctx.local.repositories.shielded(_approve(ctx, approval.id, despite))
    if outcome["state"] == "queued":
        await advance(ctx)
        return await _outcome(ctx, approval.id)
    return outcome


async def _elsewhere(ctx: Ctx, approval: ApprovalInfo) -> str | None:
    """The other machine that has the worktree; None: this one has it."""
    row = await ctx.read(lambda tx: find_worktree(tx, approval.payload["worktree"]))
    return None if row is None or ctx.local.machine.has(row["machine"]) else str(row["machine"])


def _set_rejected_elsewhere(tx: Tx, approval: ApprovalInfo, reason: str, person: str | None) -> dict[str, Any]:
    """Reject the integration of a worktree of another machine, unless that merges it now.

    Raises:
        Conflict: ``WORKTREE_CLOSED``.
    """
    require_worktree_for(tx, approval.payload["worktree"], WorktreeAction.APPROVE)
    return _set_rejected(tx, approval, reason, person)


async def _reject(ctx: Ctx, approval: ApprovalInfo, reason: str) -> dict[str, Any]:
    """Reject with exclusive access, so as not to interrupt a merge that was approved at the same time."""
    async with exclusive(ctx):
        return await ctx.write(lambda tx: _set_rejected(tx, approval, reason, approvals.person_of(ctx)))


def _set_rejected(tx: Tx, approval: ApprovalInfo, reason: str, person: str | None) -> dict[str, Any]:
    name = approval.payload["worktree"]
    outcome = approvals.decide(tx, approval, "rejected", reason, {"worktree": name, "state": "rejected"}, person)
    forget_question(tx, name)
    return outcome


async def _approve(ctx: Ctx, approval_id: int, despite: bool) -> dict[str, Any]:
    async with exclusive(ctx) as repository:
        approval, row = await ctx.read(lambda tx: _require_pending(tx, approval_id))
        try:
            step, approval = await next_step(ctx, repository, row, approval, despite)
        except WorkbenchError as error:
            refusal = error
            await ctx.write(lambda tx: not_merged(tx, approval, refusal))
            raise
        if step is Next.ASK:
            raise _gates_failed(approval)
        if step is Next.MERGE and not await ctx.read(lambda tx: queue.waiting_here(tx, ctx)):
            return await merge(ctx, repository, row, approval)
        return await ctx.write(lambda tx: enqueue(tx, approval, despite, approvals.person_of(ctx)))


def _queue(tx: Tx, approval_id: int, despite: bool, person: str | None, elsewhere: str | None) -> dict[str, Any]:
    approval, _ = _require_pending(tx, approval_id)
    gates = [gate["state"] for gate in approval.payload["gates"]]
    if verdict(gates) is Verdict.FAILED and not despite:
        raise _gates_failed(approval)
    return enqueue(tx, approval, despite, person, elsewhere)


def _gates_failed(approval: ApprovalInfo) -> Conflict:
    failed = [gate["command"] for gate in approval.payload["gates"] if gate["state"] != GateState.PASSED]
    return Conflict(
        "GATES_FAILED",
        f"Gates failed: {', '.join(failed)}.",
        Hint("", "Fix them, or approve with {}.", despite_gates=True),
        gates=failed,
    )


def _require_pending(tx: Reader, approval_id: int) -> tuple[ApprovalInfo, Row]:
    approval = approvals.find(tx, approval_id)
    if approval is None or approval.status != "pending":
        raise approvals.decided_before(approval_id)
    return approval, require_worktree_for(tx, approval.payload["worktree"], WorktreeAction.APPROVE)


async def _outcome(ctx: Ctx, approval_id: int) -> dict[str, Any]:
    """The outcome of a queued integration.

    Raises:
        Conflict: it was refused; the error says why.
    """
    approval = await ctx.read(lambda tx: approvals.find(tx, approval_id))
    outcome = dict(approval.outcome or {}) if approval else {}
    if approval and approval.status == "failed":
        raise Conflict(outcome.get("code", "INTEGRATION_REFUSED"), approval.reason or "", **outcome.get("details", {}))
    return outcome
