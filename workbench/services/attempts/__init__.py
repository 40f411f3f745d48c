"""Attempts at tasks as their supervisors make them, and what is kept of those that did not complete their task.

- `supervised`: an attempt begins at a recorded commit, alone in its worktree, and ends when its command has ended
- `work`: what an attempt made, which `workbench.services.worktrees.kept_work` keeps
- `adopt`: merging it into a worktree after all
- `checks`: running the checks that tell whether a task is done
- `calls`: the calls of tools that an agent's program makes itself
- `failures`: the answers to the questions that repeated failures ask, and agents whose budgets are used up
- `sessions`: the conversations of programs that are kept for the next attempt
- `artifacts`: what the files contain that completed tasks name
- `sent_artifacts`: those that come from a machine without a clone
"""

from workbench.services.attempts import (
    adopt,
    artifacts,
    calls,
    checks,
    failures,
    messages,
    sent_artifacts,
    sessions,
    supervised,
    work,
)

__all__ = [
    "adopt",
    "artifacts",
    "calls",
    "checks",
    "failures",
    "messages",
    "sent_artifacts",
    "sessions",
    "supervised",
    "work",
]
