"""The next step of an approved integration, and the merge itself, which happens as a whole or not at all."""

from __future__ import annotations

import logging
from asyncio import to_thread
from typing import Any

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Repository
from workbench.ops import OPERATOR, SYSTEM, Ctx
from workbench.rules import integration as rules
from workbench.rules.integration import Next, WorktreeAction, WorktreeState
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration import proposal
from workbench.services.integration.proposal import is_checked, merge_commit, message, states, waiting_gates
from workbench.services.processes import termination
from workbench.services.worktrees.imports import commit_of, import_branch
from workbench.services.worktrees.journal import begin, finish_removal
from workbench.services.worktrees.kept_work import put_away_worktree, require_put_away
from workbench.services.worktrees.places import COMMITTER, is_there, place_of
from workbench.services.worktrees.rows import (
    Closing,
    close_worktree,
    forget_question,
    require_worktree,
    set_worktree_status,
)
from workbench.store.base import Row, Tx

log = logging.getLogger(__name__)

_VOID = frozenset({"APPROVAL_VOID", "MERGE_CONFLICT", "UNRELATED_HISTORIES", "NOTHING_TO_INTEGRATE"})
"""Errors that end the approval; after any other, the operator can fix the cause and approve again."""


async def next_step(
    ctx: Ctx, repository: Repository, row: Row, approval: ApprovalInfo, despite: bool
) -> tuple[Next, ApprovalInfo]:
    """The next step of an approved integration, and its approval, updated. Call with exclusive access.

    If the target has moved, the merge is made again and the approval shows it.

    Raises:
        Conflict: ``APPROVAL_VOID``, ``MERGE_CONFLICT``, ``UNRELATED_HISTORIES``, ``NOTHING_TO_INTEGRATE``,
            ``WORK_NOT_PUT_AWAY``.
        NotFound: ``BRANCH_NOT_FOUND``.
    """
    what = approval.payload
    await require_put_away(ctx, repository, row["name"])
    source = await _source(ctx, repository, row)
    target = await to_thread(commit_of, repository, what["target"])
    has_moved = target != what["target_commit"]
    step = rules.next_step(
        source_moved=source != what["source_commit"],
        target_moved=has_moved,
        gates=states(what) if what.get("merged_commit") else states({"gates": waiting_gates(ctx)}),
        despite_gates=despite,
    )
    if step is Next.VOID:
        raise Conflict(
            "APPROVAL_VOID",
            f"{what['branch']} has moved since it was approved. Request its integration again.",
        )
    if has_moved or not what.get("merged_commit"):
        approval = await _merge_again(ctx, repository, approval, target)
    return step, approval


async def _source(ctx: Ctx, repository: Repository, row: Row) -> str | None:
    """The newest commit of a worktree's branch; if its files are gone, the last imported one."""
    if await to_thread(is_there, place_of(ctx, row)):
        return await import_branch(ctx, repository, row)
    return await to_thread(repository.resolve, row["branch_name"])


async def _merge_again(ctx: Ctx, repository: Repository, approval: ApprovalInfo, target_commit: str) -> ApprovalInfo:
    """Make the merge commit with the current target, without moving a branch; the gates must run again."""
    merged = await to_thread(merge_commit, repository, approval)
    waiting = waiting_gates(ctx)
    changes = {"target_commit": target_commit, "merged_commit": merged, "conflicts": [], "gates": waiting}

    def change(tx: Tx) -> ApprovalInfo:
        approvals.amend(tx, approval, rules.with_lines({**approval.payload, **changes}))
        tx.run(proposal.SQL.set_checked, id=approval.id, checked=int(not waiting))
        return approvals.find(tx, approval.id) or approval

    return await ctx.write(change)


async def merge(ctx: Ctx, repository: Repository, row: Row, approval: ApprovalInfo) -> dict[str, Any]:
    """Merge the commit that the approval shows; return the outcome. Call with exclusive access.

    Raises:
        Conflict: ``TARGET_DIRTY``, ``MERGE_CONFLICT``, ``TARGET_MOVED``, ``TARGET_CHECKED_OUT``; the target is
            unchanged.
    """
    payload = approval.payload
    await ctx.write(lambda tx: _set_merging(tx, approval))
    try:
        merged = await to_thread(
            repository.integrate,
            payload["source_commit"],
            payload["target"],
            message(approval),
            COMMITTER,
            fast_forward=payload.get("fast_forward", False),
            merged=payload["merged_commit"],
        )
    except WorkbenchError as error:
        if await to_thread(repository.is_ancestor, payload["merged_commit"], payload["target"]):
            return await finish(ctx, repository, row, approval, payload["merged_commit"])  # what failed came after
        refusal = error
        await ctx.write(lambda tx: not_merged(tx, approval, refusal))
        raise
    return await finish(ctx, repository, row, approval, merged.commit)


def _set_merging(tx: Tx, approval: ApprovalInfo) -> None:
    name = approval.payload["worktree"]
    if approval.status == "pending":
        set_worktree_status(tx, name, WorktreeAction.APPROVE)
        tx.run(proposal.SQL.put, id=approval.id, name=name, checked=int(is_checked(approval)))
    tx.run(proposal.SQL.set_state, id=approval.id, state="merging")


def not_merged(tx: Tx, approval: ApprovalInfo, error: WorkbenchError) -> None:
    """Record a failed merge: a queued integration stays queued; any other stays pending, unless `_VOID` ends it."""
    name = approval.payload["worktree"]
    if approval.status == "approved":
        tx.run(proposal.SQL.set_state, id=approval.id, state="queued")
        return
    if require_worktree(tx, name)["status"] == WorktreeState.INTEGRATING:
        set_worktree_status(tx, name, WorktreeAction.SEND_BACK)
        tx.run(proposal.SQL.set_state, id=approval.id, state="asked")
    if error.code in _VOID:
        approvals.decide(tx, approval, "failed", error.message)
        forget_question(tx, name)
    tx.emit("worktree.refused", f"worktree:{name}", code=error.code, **error.details)


def _approver(tx: Tx, approval: ApprovalInfo) -> str:
    """Who approved a merge that is done. Without a queue, only the operator merges, also if recovery finishes it."""
    return approval.decided_by or (OPERATOR.name if tx.actor == SYSTEM.name else tx.actor)


async def finish(ctx: Ctx, repository: Repository, row: Row, approval: ApprovalInfo, commit: str) -> dict[str, Any]:
    """Record a completed merge, close its worktree, terminate its agents; return the approval's outcome."""
    name, target = row["name"], approval.payload["target"]

    def change(tx: Tx) -> dict[str, Any]:
        close_worktree(tx, row, WorktreeAction.FINISH, commit, Closing(approval.id, target, approval.reason or ""))
        begin(tx, ctx.local.machine, "rescue", place_of(ctx, row), row["branch_name"], None)
        decides = approval.payload.get("decides", [])
        outcome = {"worktree": name, "state": "integrated", "commit": commit, "decides": decides}
        with tx.acting(_approver(tx, approval)):
            tx.emit("worktree.integrated", f"worktree:{name}", commit=commit, target=target)
            if approval.status == "pending":
                return approvals.decide(tx, approval, "approved", outcome=outcome, person=approvals.person_of(ctx))
            return approvals.conclude(tx, approval, "approved", "", outcome)

    outcome = await ctx.write(change)
    await termination.end_all(ctx, "the worktree was integrated", name)
    try:
        await put_away_worktree(ctx, repository, name)
    except WorkbenchError as error:  # it is merged: what agents left there is saved with the files
        log.warning("worktree %s: %s", name, error)
    await finish_removal(ctx, repository, name)
    return outcome
