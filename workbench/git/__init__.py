"""The git program (2.38 or newer), one class for each side of the fence.

`Repository` is the person's repository: it always works on the main checkout and its git
directory, and never runs git in a linked worktree, where a worker may have written what git would
believe. `Checkout` is one linked worktree, for the process that works in it.

Both run git without hooks, file system monitor, external diff and automatic gc, without the
caller's `GIT_*` variables, and with a time limit. Filters and merge drivers do run: they come from
the person's own configuration, and files would be wrong without them.

Everything blocks; call it from a thread. Paths and authors that are not UTF-8 are shown with
backslash escapes. Every method may raise `Unavailable`: ``GIT_FAILED`` (`details.stderr`),
``GIT_TIMEOUT``, ``GIT_MISSING``.
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
