"""Git worktrees: one directory and branch for each branch of work (spec 3); made, looked at, updated, given up.

A worktree has a repository of its own, which its workers may do anything to. Its commits are taken over into the
person's repository, checked, before they are shown, merged or removed; git runs there in a box only. What happens
among files is written down before it begins, so that a crash in any step leaves nothing half done.

- `rows`: a worktree as it is stored and shown, and what may be done to it
- `takeover`: what was committed there, into the person's repository
- `saving`: what would be lost with a worktree, found and written into the trash
- `steps`: what happens among files, written down before; finished or undone after a crash
- `making`: a new one, with a branch
- `updating`: what is new on its target, brought in
- `discarding`: giving it up
"""

from workbench.services.worktrees.creation import create_worktree
from workbench.services.worktrees.discard import discard_worktree
from workbench.services.worktrees.imports import commit_of, no_branch, take_over, take_over_all
from workbench.services.worktrees.journal import begin, finish_removal, settle_steps
from workbench.services.worktrees.rows import (
    KIND,
    SQL,
    Branch,
    Worktree,
    WorktreeName,
    check_owner,
    close_worktree,
    open_worktrees,
    require_own_worktree,
    require_worktree,
    require_worktree_for,
    set_worktree_status,
    worktree_of,
)
from workbench.services.worktrees.update import update_worktree

__all__ = [
    "KIND",
    "SQL",
    "Branch",
    "Worktree",
    "WorktreeName",
    "begin",
    "check_owner",
    "close_worktree",
    "commit_of",
    "create_worktree",
    "discard_worktree",
    "finish_removal",
    "no_branch",
    "open_worktrees",
    "require_own_worktree",
    "require_worktree",
    "require_worktree_for",
    "set_worktree_status",
    "settle_steps",
    "take_over",
    "take_over_all",
    "update_worktree",
    "worktree_of",
]
