"""Runs the gates of requested integrations, and shows their progress in the approvals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.rules import integration as rules
from workbench.rules.integration import GateState
from workbench.rules.secrets.executed import with_masks
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.integration import gates, proposal
from workbench.services.resources import leases
from workbench.services.worktrees.places import gates_held
from workbench.services.worktrees.trials import TrialResult
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

_ENDED = frozenset({GateState.PASSED, GateState.FAILED, GateState.TIMEOUT})


@duty("running gates", 5.0, wakes=True)
async def check_all(ctx: Ctx) -> None:
    """Run the gates of every integration that has not been checked yet, oldest first; none beside a task that is
    alone on the machine."""
    if await ctx.read(lambda tx: leases.alone(tx, ctx.local.machine.only)):
        return
    for row in await ctx.read(lambda tx: tx.all(SQL.unchecked, machine=ctx.local.machine.only)):
        await check(ctx, int(row["approval_id"]))


async def check(ctx: Ctx, approval_id: int) -> bool:
    """Run the gates of one integration, showing their progress in its approval.

    Returns False if another process is running them.
    """
    with gates_held(ctx.settings, approval_id) as is_held:
        if not is_held:
            return False
        while (approval := await ctx.read(lambda tx: _to_check(tx, approval_id))) is not None:
            await _check(ctx, approval)
    return True


def _to_check(tx: Reader, approval_id: int) -> ApprovalInfo | None:
    request = tx.one(proposal.SQL.get, id=approval_id)
    approval = approvals.find(tx, approval_id)
    if request is None or request["checked"] or approval is None or not approval.payload["merged_commit"]:
        return None
    return approval


async def _check(ctx: Ctx, approval: ApprovalInfo) -> None:
    commit = approval.payload["merged_commit"]
    commands = [gate["command"] for gate in approval.payload["gates"]]

    async def report(now: Sequence[TrialResult]) -> bool:
        shown = [gate.as_json() for gate in now]
        return await ctx.write(lambda tx: _show(tx, approval.id, commit, shown))

    try:
        await gates.run(ctx, approval.id, commit, commands, report)
    except WorkbenchError as error:
        output = f"{error.code}: {error.message}"
        await report([TrialResult(command, GateState.FAILED, output=output) for command in commands])


def _show(tx: Tx, approval_id: int, commit: str, shown: list[dict[str, Any]]) -> bool:
    """Show the states of the gates in the approval; False if it no longer needs them."""
    approval = _to_check(tx, approval_id)
    if approval is None or approval.payload["merged_commit"] != commit:
        return False
    states = proposal.states(approval.payload)
    new_states = [gate["state"] for gate in shown] != states
    approvals.amend(tx, approval, rules.with_lines({**approval.payload, "gates": shown}), quiet=not new_states)
    for before, gate in zip(states, shown, strict=True):
        if gate["state"] in _ENDED and before not in _ENDED:
            _emit_ended(tx, approval, gate)
    if rules.verdict(gate["state"] for gate in shown) is not rules.Verdict.OPEN:
        tx.run(proposal.SQL.set_checked, id=approval_id, checked=1)
    return True


def _emit_ended(tx: Tx, approval: ApprovalInfo, gate: Mapping[str, Any]) -> None:
    """Emit how a gate ended, without its output: the approval has that until the gates are run again."""
    about = {"worktree": approval.payload["worktree"], "commit": approval.payload["merged_commit"]}
    result = {name: with_masks(gate[name]) for name in ("command", "state", "exit_code", "seconds")}
    requester = approvals.requester_of(tx, approval.requester)
    tx.emit("gate.ended", f"approval:{approval.id}", requester=requester, approval=approval.id, **about, **result)
