"""Recovery after a crash: interrupted merges, and files of gates that no longer run."""

from __future__ import annotations

from asyncio import to_thread

from workbench.git import Repository
from workbench.ops import Ctx
from workbench.ops.duties import recovers, repairs
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration import proposal
from workbench.services.integration.merge import finish
from workbench.services.worktrees import trials
from workbench.services.worktrees.journal import unfinished
from workbench.services.worktrees.places import exclusive, gates_held
from workbench.services.worktrees.rows import KIND, require_worktree, set_worktree_status
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@repairs
async def settle_merges(ctx: Ctx, repository: Repository) -> None:
    """Settle interrupted merges: finish those that are in the target, undo the others."""
    for row in await ctx.read(lambda tx: tx.all(SQL.cut_off, machine=ctx.local.machine.only)):
        await _settle(ctx, repository, row["name"], row["approval_id"])


async def _settle(ctx: Ctx, repository: Repository, name: str, approval_id: int | None) -> None:
    def query(tx: Reader) -> tuple[Row, ApprovalInfo | None]:
        subject = f"worktree:{name}"
        approval = approvals.find(tx, approval_id) if approval_id else approvals.open_question(tx, KIND, subject)
        return require_worktree(tx, name), approval

    row, approval = await ctx.read(query)
    if approval is not None:
        payload = approval.payload
        if await to_thread(repository.is_ancestor, payload["source_commit"], payload["target"]):
            merged = payload.get("merged_commit")
            is_there = merged and await to_thread(repository.is_ancestor, merged, payload["target"])
            commit = merged if is_there else await to_thread(repository.resolve, payload["target"])
            await finish(ctx, repository, row, approval, str(commit))
            return

    def change(tx: Tx) -> None:
        if approval is not None and approval.status == "approved":
            tx.run(proposal.SQL.set_state, id=approval.id, state="queued")
            return
        set_worktree_status(tx, name, WorktreeAction.SEND_BACK)
        if approval is not None:
            tx.run(proposal.SQL.set_state, id=approval.id, state="asked")
        tx.emit("worktree.refused", f"worktree:{name}", code="INTERRUPTED")

    await ctx.write(change)


@recovers
async def recover(ctx: Ctx) -> None:
    """Settle everything that a crash interrupted, if there has ever been a worktree."""
    if await ctx.read(lambda tx: unfinished(tx, ctx.local.machine) or tx.all(proposal.SQL.branches)):
        async with exclusive(ctx):
            pass
    await clear_gates(ctx)


async def clear_gates(ctx: Ctx) -> None:
    """Remove the files of gates that no process is running."""
    for home in sorted(ctx.settings.gates.glob("*/")) if ctx.settings.gates.is_dir() else ():
        if home.name.isdecimal():
            number = int(home.name)
            with gates_held(ctx.settings, number) as is_held:
                if is_held:
                    await ctx.local.repositories.shielded(trials.remove(ctx, home.name))
