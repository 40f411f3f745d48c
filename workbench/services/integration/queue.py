"""The queue of approved integrations: merged one after another, each onto the result of the one before."""

from __future__ import annotations

from typing import Any

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Repository
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.rules.integration import Next, WorktreeAction
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration import proposal
from workbench.services.integration.gate_runner import check
from workbench.services.integration.merge import merge, next_step
from workbench.services.integration.proposal import is_checked, put_question
from workbench.services.worktrees.places import exclusive
from workbench.services.worktrees.rows import forget_question, require_worktree, set_worktree_status
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

_TRANSIENT = frozenset({"GIT_BUSY", "TARGET_MOVED"})
"""Errors that pass by themselves: the queue tries again."""


def enqueue(
    tx: Tx, approval: ApprovalInfo, despite: bool, person: str | None, elsewhere: str | None = None
) -> dict[str, Any]:
    """Add an approved integration to the queue; return the approval's outcome.

    Args:
        elsewhere: the other machine whose server merges it; None: this one does.
    """
    name = approval.payload["worktree"]
    set_worktree_status(tx, name, WorktreeAction.APPROVE)
    tx.run(proposal.SQL.put, id=approval.id, name=name, checked=int(is_checked(approval)))
    tx.run(SQL.enqueue, id=approval.id, despite=int(despite), now=tx.now)
    tx.emit("worktree.integrating", f"worktree:{name}", approval=approval.id)
    outcome = {"worktree": name, "state": "queued", "commit": None}
    outcome |= {"machine": elsewhere} if elsewhere else {}
    return approvals.decide(tx, approval, "approved", outcome=outcome, person=person)


@duty("merging what is approved", 5.0, wakes=True)
async def advance(ctx: Ctx) -> None:
    """Work off the queue from its front: run the gates that must run, merge what is ready.

    Stops while another process runs the gates of the first one.

    Raises:
        Unavailable: ``GIT_BUSY``, errors of the store. Conflict: ``TARGET_MOVED``. Nothing is lost; call it again.
    """
    while (waiting := await ctx.read(lambda tx: waiting_here(tx, ctx))) != []:
        first = int(waiting[0]["approval_id"])
        step = await ctx.local.repositories.shielded(_advance(ctx, first))
        if step is Next.CHECK and not await check(ctx, first):
            return


def waiting_here(tx: Reader, ctx: Ctx) -> list[Row]:
    """The approved integrations of this machine's worktrees, in the order in which they are merged."""
    return tx.all(SQL.queue, machine=ctx.local.machine.only)


async def _advance(ctx: Ctx, approval_id: int) -> Next | None:
    """Take the next step with the front of the queue; if its gates must run, leave that to the caller."""
    async with exclusive(ctx) as repository:
        waiting = await ctx.read(lambda tx: _find_waiting(tx, approval_id))
        if waiting is None:
            return None
        request, approval, row = waiting
        try:
            step, approval = await next_step(ctx, repository, row, approval, bool(request["despite_gates"]))
            if step is Next.MERGE:
                await merge(ctx, repository, row, approval)
            elif step is Next.ASK:
                raise Conflict("GATES_FAILED", "The gates failed on the merge with the current target.")
        except WorkbenchError as error:
            if error.code in _TRANSIENT or error.is_of_store:
                raise
            await _send_back(ctx, repository, row, approval, error)
            return None
        return step


def _find_waiting(tx: Reader, approval_id: int) -> tuple[Row, ApprovalInfo, Row] | None:
    request, approval = tx.one(proposal.SQL.get, id=approval_id), approvals.find(tx, approval_id)
    if request is None or approval is None or request["state"] != "queued":
        return None
    return request, approval, require_worktree(tx, request["worktree"])


async def _send_back(ctx: Ctx, repository: Repository, row: Row, approval: ApprovalInfo, error: WorkbenchError) -> None:
    """Take an integration out of the queue, and open a new approval that says why, unless its branch has moved."""
    name = row["name"]
    why = {key: value for key, value in error.as_dict().items() if key != "status"}

    def change(tx: Tx) -> None:
        set_worktree_status(tx, name, WorktreeAction.SEND_BACK)
        forget_question(tx, name)
        outcome = {"worktree": name, "state": "refused", "commit": None, **why}
        approvals.conclude(tx, approval, "failed", error.message, outcome)
        tx.emit("worktree.refused", f"worktree:{name}", code=error.code, **error.details)

    await ctx.write(change)
    if error.code == "APPROVAL_VOID":
        return
    payload = approval.payload
    row = await ctx.read(lambda tx: require_worktree(tx, name))
    try:
        await put_question(ctx, repository, row, payload["target"], payload.get("fast_forward", False), why, approval)
    except WorkbenchError as failure:
        code = failure.code
        await ctx.write(lambda tx: tx.emit("worktree.refused", f"worktree:{name}", code=code))
