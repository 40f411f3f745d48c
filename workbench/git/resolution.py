"""A merge that stays unfinished in a worktree until its conflicts are resolved. Git runs only in the worktree's box."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.git import predict
from workbench.git.checkout import Checkout
from workbench.git.notebooks import driver
from workbench.git.run import CommitIdentity, as_message, displayed

_MERGE = ("--quiet", "--no-stat", "--no-verify", "--no-autostash", "--no-overwrite-ignore", "--no-commit", "--no-ff")
_MARKERS = ("-e", "^<<<<<<< ", "-e", "^>>>>>>> ")
_SIDES = ("HEAD", "MERGE_HEAD")
_PREVIEW = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z")
_OURS_AND_THEIRS = {"2", "3"}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The unfinished merge in a worktree, if there is one."""

    checkout: Checkout

    def is_open(self) -> bool:
        """Whether a merge is unfinished."""
        return self.checkout.commit_of("MERGE_HEAD") is not None

    def start(self, commit: str, message: str, author: CommitIdentity) -> None:
        """Merge a commit of the user's repository, leaving the conflicts in the files. Nothing is committed.

        Raises:
            Unavailable: ``GIT_FAILED``: the merge could not be started.
        """
        text = f"--message={as_message(message).decode()}"
        result = self.checkout.ask("merge", *_MERGE, text, commit, ok=None, env=author.environment(), settings=driver())
        if not self.is_open():
            raise result.failure()
        for link, inner in self.checkout.submodules():
            path = os.path.relpath(inner.path, self.checkout.path)
            own = self.checkout.ask("rev-parse", "--verify", "--quiet", f"HEAD:{path}", ok=None).text
            if inner.commit_of("HEAD") == own != link and not inner.uncommitted() and not inner.switch_to(link):
                self.checkout.remove_submodule(path)

    def unresolved(self) -> list[str]:
        """The files that are still in conflict.

        A text file is resolved when it has no conflict markers. A binary file, or one that one side deleted, is
        resolved by `git add` or `git rm`.
        """
        result = self.checkout.ask(*_PREVIEW, *_SIDES, ok=(0, 1), settings=driver())
        names = result.fields[1:] if result.code else []
        unresolved = self._find_markers(names) | self._find_unmerged_without_markers()
        conflicts = predict.paths(names)
        return [path for path in conflicts if path in unresolved] + sorted(unresolved.difference(conflicts))

    def abort(self) -> None:
        """Return to the commit before the merge. Later edits are lost."""
        self.checkout.ask("merge", "--abort")
        self.checkout.return_submodules()

    def _find_markers(self, names: Sequence[bytes]) -> set[str]:
        if not names:
            return set()
        paths = (f":(literal){os.fsdecode(name)}" for name in names)
        result = self.checkout.ask("grep", "-l", "-z", "-I", *_MARKERS, "--", *paths, ok=(0, 1))
        return {displayed(name) for name in result.fields}

    def _find_unmerged_without_markers(self) -> set[str]:
        """Unmerged files that cannot have conflict markers."""
        stages: dict[str, set[str]] = {}
        for entry in self.checkout.ask("ls-files", "--unmerged", "-z").fields:
            facts, _, name = entry.partition(b"\t")
            stages.setdefault(displayed(name), set()).add(displayed(facts)[-1])
        rows = self.checkout.ask("diff-tree", "-r", "-z", "--numstat", "--no-renames", *_SIDES).fields
        binary = {displayed(row.split(b"\t", 2)[2]) for row in rows if row.startswith(b"-\t")}
        return {path for path, sides in stages.items() if path in binary or not sides >= _OURS_AND_THEIRS}
