"""The operations that request the integration of a worktree."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import Refused
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration.gate_runner import check
from workbench.services.integration.proposal import put_question
from workbench.services.worktrees.places import exclusive
from workbench.services.worktrees.rows import Branch, WorktreeName, require_here, require_own_worktree
from workbench.trust.withheld import set_but_not_trusted


class MadeConflict(Wire):
    """A worktree that would conflict with the target after the merge, and in which files."""

    worktree: str
    files: list[str]


class IntegrationAsked(Wire):
    """The state of a requested integration; get_approval with wait_seconds waits for the decision and its reason.

    `decides` has lines for whoever decides: the worktree's tasks, the gates, what was checked, and unusual files.
    `conflicts` are those with the target, and `makes_conflict` those that the merge would cause. The merge closes the
    worktree, which ends the work on its `open_tasks`.
    """

    state: Literal["awaiting_approval", "queued", "integrated"]
    approval_id: int
    worktree: str
    target_branch: str
    commit: str | None
    conflicts: list[str]
    makes_conflict: list[MadeConflict]
    open_tasks: int
    open_task_ids: list[int]
    decides: list[str]


Target = Annotated[Branch | None, Field(description="Where to merge it; by default the branch it was forked from.")]
FastForward = Annotated[
    bool | None,
    Field(description="Fast-forward where possible; by default as the setting integration_fast_forward says."),
]


@op(
    allow=Level.PLANNER,
    command=Command(
        "integrate NAME",
        options=("target_branch", "fast_forward"),
        names={"target": "target_branch", "fast-forward/merge-commit": "fast_forward"},
        help="Request the merge of a worktree; `approve` then merges it.",
        also="worktrees integrate",
    ),
)
async def integrate_worktree(
    ctx: Ctx,
    worktree_name: WorktreeName,
    target_branch: Target = None,
    require_human_approval: Annotated[
        bool, Field(description="False merges at once; refused unless the operator's settings allow it.")
    ] = True,
    fast_forward: FastForward = None,
) -> IntegrationAsked:
    """Request the operator's approval to merge a worktree into its target. Repeating it returns the same approval.

    get_approval with wait_seconds waits for the decision and its reason.
    """
    if not require_human_approval and ctx.settings.integration_requires_approval:
        raise Refused(
            "APPROVAL_REQUIRED",
            "Integrations need the operator's approval here. Omit require_human_approval, or have the operator change "
            "the setting integration_requires_approval."
            + await asyncio.to_thread(set_but_not_trusted, ctx.settings.project, "integration_requires_approval"),
        )
    requested = await _request(ctx, worktree_name, target_branch, fast_forward)
    if require_human_approval:
        return requested
    outcome = (await approvals.approve(ctx, requested.approval_id)).outcome
    return requested.model_copy(update={"state": outcome["state"], "commit": outcome["commit"]})


@op(allow=Level.PLANNER, tool=False)
async def request_integration(
    ctx: Ctx, worktree_name: WorktreeName, target_branch: Target = None, fast_forward: FastForward = None
) -> IntegrationAsked:
    """Like integrate_worktree, always with the operator's approval."""
    return await _request(ctx, worktree_name, target_branch, fast_forward)


async def _request(ctx: Ctx, name: str, target: str | None, fast_forward: bool | None) -> IntegrationAsked:
    approval = await ctx.local.repositories.shielded(_put(ctx, name, target, fast_forward))
    if ctx.local.server is None:
        await check(ctx, approval.id)
    payload = approval.payload
    return IntegrationAsked(
        state="awaiting_approval",
        approval_id=approval.id,
        worktree=name,
        target_branch=payload["target"],
        commit=None,
        conflicts=payload["conflicts"],
        makes_conflict=payload.get("makes_conflict", []),
        open_tasks=payload.get("open_tasks", 0),
        open_task_ids=payload.get("open_task_ids", []),
        decides=payload.get("decides", []),
    )


async def _put(ctx: Ctx, name: str, target: str | None, fast_forward: bool | None) -> ApprovalInfo:
    async with exclusive(ctx) as repository:
        row = require_here(
            ctx, await ctx.read(lambda tx: require_own_worktree(tx, ctx.caller, name, WorktreeAction.APPROVE))
        )
        forward = ctx.settings.integration_fast_forward if fast_forward is None else fast_forward
        return await put_question(ctx, repository, row, target or row["integration_target"], forward)
