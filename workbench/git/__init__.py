"""The git program (2.38 or newer), one class for each side of the fence, and what crosses it.

`Repository` is the person's repository. It works on the main checkout and its git directory, and
never runs git in a worktree, nor believes a file there: a worker may have written what git would
believe. `Checkout` is one worktree, seen from inside: every git command there goes through `wrap`,
which confines it to what the worker may do anyway.

A worktree has a repository of its own, which borrows the person's objects and shares nothing else;
the person's borrows nothing back. What is committed there is **imported**: git writes a bundle
inside the box, and on this side its objects wait in quarantine until their names are computed anew,
each is checked as ``fsck`` does, and all they build on is here. Then one branch moves. Git's record
of the worktree (``.git/worktrees/…``) is the person's: it shows in ``git worktree list`` and keeps
its branch from being checked out elsewhere. Whatever a worker writes, the person's git works.

A worker can read the objects of all branches. Nothing that is the person's is writable for it.

Both sides run git without hooks, file system monitor, external diff and automatic gc, without the
caller's `GIT_*` variables, and with a time limit. Filters and merge drivers do run: they come from
the person's own configuration, and files would be wrong without them. A worktree gets them, what
is ignored and how lines end as they are when it is made.

Everything blocks; call it from a thread. Who makes, imports, integrates or removes holds
`Repository.lock`. Paths and authors that are not UTF-8 are shown with backslash escapes. Every
method may raise `Unavailable`: ``GIT_FAILED`` (`details.stderr`), ``GIT_TIMEOUT``, ``GIT_MISSING``.

Do not run git in a worktree by hand, unconfined: its settings are a worker's, and may name programs.
"""

from workbench.git.checkout import Checkout
from workbench.git.diff import FileDiff
from workbench.git.integration import Integration
from workbench.git.predict import MergePreview
from workbench.git.protected import changed
from workbench.git.repository import Commit, FileChange, Repository
from workbench.git.run import Identity, Wrap

__all__ = [
    "Checkout",
    "Commit",
    "FileChange",
    "FileDiff",
    "Identity",
    "Integration",
    "MergePreview",
    "Repository",
    "Wrap",
    "changed",
]
