"""Merging what a worktree holds (spec 3): asked for, gated, approved by a person, queued, merged.

Uncommitted work in the person's checkout is never touched. The approval names the commit that is merged; a branch
that moved since voids it, and a target that moved is merged, and gated, anew. The modules, each of which imports only
from those above it:

- `gates`: commands that have to pass on the result of a merge.
- `questions`: what a person is shown, and what is recorded as approved.
- `checking`: running the gates of a question, and telling in it how they stand.
- `asking`: the operations that put a question.
- `merging`: what is next with what was approved, and the merge itself.
- `queue`: what was approved and waits, one after another.
- `deciding`: a person's yes or no.
- `recovery`: what a crash left.
"""

from workbench.services.integration import (
    decide,
    gate_runner,
    gates,
    merge,
    proposal,
    queue,
    recovery,
    request,
)

__all__ = ["decide", "gate_runner", "gates", "merge", "proposal", "queue", "recovery", "request"]
