"""Runs git (2.38 or newer) on the user's repository, and confined in worktrees.

`Repository` is the user's repository. It works on the main checkout and its git directory. It never runs git in a
worktree and trusts no file there, because a worker may have written it. `Checkout` is one worktree, seen from inside:
every git command there goes through `wrap`, which confines it to what the worker may do anyway.

A worktree has a repository of its own, which borrows the objects of the user's repository and shares nothing else; the
user's repository borrows nothing from it. Its commits are **imported**: git writes a bundle inside the box; outside,
its objects stay in quarantine until their ids are computed, each is checked as by ``fsck``, and everything they refer
to is present. Then one branch moves. Git's record of the worktree (``.git/worktrees/…``) belongs to the user's
repository: it shows in ``git worktree list`` and keeps the branch from being checked out elsewhere. Whatever a worker
writes, the user's git keeps working.

A worker can read the objects of all branches. It can write nothing of the user's repository.

Git runs without hooks, file system monitor, external diff and automatic gc, without the caller's `GIT_*` variables, and
with a time limit. A worktree gets the filters and merge drivers of the user's configuration, the ignore rules and the
line endings as they are when it is created; they run there, in its box. Outside, no filter runs over the files of a
worktree. Filters do run when an integration updates the user's checkout, and merge drivers when a merge is made or
predicted.

All functions block; call them from a thread. Hold `Repository.lock` to create, import, integrate or remove. Paths and
authors that are not UTF-8 are shown with backslash escapes. Every method may raise `Unavailable`: ``GIT_FAILED``
(`details.stderr`), ``GIT_TIMEOUT``, ``GIT_MISSING``.

Do not run git by hand in a worktree without a box: a worker controls its settings, which may name programs.
"""

from workbench.git.checkout import Checkout
from workbench.git.commits import Commit
from workbench.git.diff import FileDiff
from workbench.git.included import IncludedFile
from workbench.git.integration import Integration
from workbench.git.predict import MergePreview
from workbench.git.protected import changed
from workbench.git.repository import FileChange, FileContent, Repository, Size
from workbench.git.resolution import Resolution
from workbench.git.run import CommitIdentity, Start, Wrap, git_version

__all__ = [
    "Checkout",
    "Commit",
    "CommitIdentity",
    "FileChange",
    "FileContent",
    "FileDiff",
    "IncludedFile",
    "Integration",
    "MergePreview",
    "Repository",
    "Resolution",
    "Size",
    "Start",
    "Wrap",
    "changed",
    "git_version",
]
