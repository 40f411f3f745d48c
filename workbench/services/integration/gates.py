"""Gates: commands that must pass on the result of a merge before the target moves to it (spec 3, integration)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from workbench.ops import Ctx
from workbench.services.worktrees import trials
from workbench.services.worktrees.trials import Trial, TrialResult

Report = Callable[[Sequence[TrialResult]], Awaitable[bool]]
"""Called with the states of the gates; returns False to cancel the run."""


async def run(
    ctx: Ctx, approval_id: int, commit: str, commands: Sequence[str], report: Report
) -> list[TrialResult] | None:
    """Run all commands on a commit, one after another; return their results, or None if the run was cancelled.

    Raises:
        See `trials.on_commit`.
    """
    async with trials.on_commit(ctx, str(approval_id), commit) as trial:
        return await _run_all(ctx, trial, [TrialResult(command) for command in commands], report)


async def _run_all(ctx: Ctx, trial: Trial, gates: list[TrialResult], report: Report) -> list[TrialResult] | None:
    for number, gate in enumerate(gates):

        async def progress(now: TrialResult, number: int = number) -> bool:
            gates[number] = now
            return await report(gates)

        ended = await trials.run(ctx, trial, gate, progress)
        if ended is None:
            return None
        gates[number] = ended
        if not await report(gates):
            return None
    return gates
