"""One linked worktree, seen from inside by the process that works there."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench.git.run import NOBODY, Done, Identity, as_message, run

_COMMIT = ("--quiet", "--no-verify", "--allow-empty-message", "--cleanup=whitespace", "--file=-")
_GIVE_UP = (("rebase", "--abort"), ("am", "--abort"), ("cherry-pick", "--quit"))


@dataclass(frozen=True, slots=True)
class Checkout:
    """A linked worktree.

    Unlike `Repository` this runs git *inside* the worktree, and so believes what is written there:
    only a worker's own process may use it, and only while nothing else works in the worktree.
    `environment` is added to git's, `GIT_*` variables too; `limit` is in seconds.
    """

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    limit: float = 600.0

    def commit_all(self, message: str, author: Identity) -> str | None:
        """Commit everything but ignored files; the commit, or None if there is nothing new.

        A half-done merge is concluded, whatever its files hold.
        """
        self._unlock()
        self._git("add", "--all")
        if not (self._has_staged() or self._is_merging()):
            return None
        self._git("commit", *_COMMIT, stdin=as_message(message), env=author.environment())
        return self._git("rev-parse", "HEAD").text

    def discard_changes(self) -> None:
        """Go back to the last commit.

        Changes, untracked files and half-done merges and rebases are gone; ignored files stay.
        """
        self._unlock()
        for give_up in _GIVE_UP:
            self._git(*give_up, ok=None)
        self._git("reset", "--hard", "--quiet")
        self._git("clean", "-ffd", "--quiet")

    def _has_staged(self) -> bool:
        how = ("--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=none")
        return self._git("diff", *how, ok=(0, 1)).code == 1

    def _is_merging(self) -> bool:
        return self._git("rev-parse", "--quiet", "--verify", "MERGE_HEAD", ok=(0, 1)).code == 0

    def _unlock(self) -> None:
        """Remove the lock of a git that was killed: nothing else runs here now."""
        lock = self._git("rev-parse", "--git-path", "index.lock").text
        (self.path / lock).unlink(missing_ok=True)

    def _git(
        self,
        *arguments: str,
        ok: Container[int] | None = (0,),
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> Done:
        # Were .git found by searching, a worktree that lost it would lead to the main checkout.
        places = {"GIT_DIR": str(self.path / ".git"), "GIT_WORK_TREE": str(self.path)}
        extra = {**NOBODY, **self.environment, **places, **(env or {})}
        return run(arguments, self.path, extra, self.limit, stdin).expect(ok)
