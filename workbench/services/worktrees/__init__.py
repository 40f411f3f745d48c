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

from workbench.services.worktrees import (
    cleanup,
    conflicts,
    creation,
    discard,
    imports,
    journal,
    places,
    rescue,
    rows,
    status,
    update,
)

__all__ = [
    "cleanup",
    "conflicts",
    "creation",
    "discard",
    "imports",
    "journal",
    "places",
    "rescue",
    "rows",
    "status",
    "update",
]
