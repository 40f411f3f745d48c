"""Integration of worktrees (spec 3): requested, gated, approved by the operator, queued, merged.

Uncommitted work in the user's checkout is never touched. The approval names the commit that is merged: if the branch
moves, the approval is void; if the target moves, the merge is made and gated again. Each module imports only from those
above it:

- `gates`: running commands that must pass on the result of a merge
- `conflicts`: what it would meet as things are now: conflicts, and open tasks
- `proposal`: the approval, with what the operator is shown
- `gate_runner`: running the gates of an approval, and showing their progress in it
- `request`: the operations that request an integration
- `merge`: the next step of an approved integration, and the merge itself
- `queue`: merging approved integrations one after another
- `decide`: the operator's decision
- `recovery`: finishing or undoing what a crash interrupted
"""

from workbench.services.integration import (
    conflicts,
    decide,
    gate_runner,
    gates,
    merge,
    proposal,
    queue,
    recovery,
    request,
)

__all__ = ["conflicts", "decide", "gate_runner", "gates", "merge", "proposal", "queue", "recovery", "request"]
