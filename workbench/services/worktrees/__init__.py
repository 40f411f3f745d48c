"""Git worktrees: a directory and a branch for each line of work (spec 3).

A worktree has a repository of its own, in which its workers may change anything. Its commits are checked and imported
into the user's repository before they are shown, merged or removed; git runs in a worktree only inside its box. File
operations are recorded in a journal before they begin, so that after a crash each is finished or undone.

- `rows`: a worktree as it is stored and shown, and who may change it
- `places`: where its files are, its box, and exclusive access to the user's repository
- `creation`, `update`, `discard`: creating one, merging its target into it, removing it
- `resolve`: resolving the conflicts with its target
- `imports`: importing its commits into the user's repository
- `rescue`: saving work that would be lost with a worktree
- `kept_work`: the work of attempts that did not complete their task, taken off the branch and kept
- `journal`: file operations in progress, finished or undone after a crash
- `status`, `conflicts`: changes, differences, predicted merge conflicts
- `sending`: its branch as a bundle, for its worker on another machine
- `notebooks`: the outputs of a notebook's cells, before and after
- `closed`: worktrees that were integrated or discarded
- `checkouts`: what attempts without a worktree read
- `cleanup`, `disk`: what is left over, and what all of it takes on the disk
"""

from workbench.services.worktrees import (
    checkouts,
    cleanup,
    closed,
    conflicts,
    creation,
    discard,
    disk,
    imports,
    journal,
    kept_work,
    notebooks,
    places,
    rescue,
    resolve,
    rows,
    sending,
    status,
    update,
)

__all__ = [
    "checkouts",
    "cleanup",
    "closed",
    "conflicts",
    "creation",
    "discard",
    "disk",
    "imports",
    "journal",
    "kept_work",
    "notebooks",
    "places",
    "rescue",
    "resolve",
    "rows",
    "sending",
    "status",
    "update",
]
