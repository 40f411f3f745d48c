"""Merges into a branch that the user may be working on, without touching uncommitted work.

The merge commit is made first. Then the branch moves to it, if it has not moved meanwhile; if the main checkout is on
that branch, git updates its files as well, or refuses to do either.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.errors import Conflict, NotFound, Unavailable
from workbench.git import predict
from workbench.git.names import is_object_id
from workbench.git.plumbing import Plumbing
from workbench.git.run import PATCH_FREE, CommitIdentity, GitResult, as_message, displayed

_IN_PROGRESS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_START": "bisection",
}
_EDITED = b" M"
_RULING = (b".gitattributes", b".gitmodules")
_RETURNS_TO = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_FAST_FORWARD = (
    *("--quiet", "--no-stat", "--ff-only", "--no-autostash"),
    *("--no-overwrite-ignore", "--no-verify-signatures"),
)


@dataclass(frozen=True, slots=True)
class Integration:
    """The result of `Repository.integrate`: the commit that the target branch is at, and how it got there."""

    commit: str
    kind: Literal["merged", "fast_forward", "already_merged"]


def main_branches(repository: Plumbing) -> set[str | None]:
    """The branch that the main checkout is on, and the one it returns to after a rebase or bisection."""
    branches = {repository.current_branch()}
    for name in _RETURNS_TO:
        with suppress(OSError):
            text = os.fsdecode((repository.own_dir / name).read_bytes())
            branches.add(text.strip().removeprefix("refs/heads/"))
    return branches


def uncommitted(repository: Plumbing) -> list[str]:
    """The tracked files of the main checkout that differ from its last commit."""
    return [file for file, _ in _edits(repository)]


def _edits(repository: Plumbing) -> list[tuple[str, bool]]:
    """Those files, and whether each is only edited: nothing is staged, and it does not configure git."""
    # Files inside a submodule do not count, and checking them would run git inside it.
    options = ("--untracked-files=no", "--no-renames", "--ignore-submodules=dirty")
    rows = repository.read("status", "--porcelain=v1", "-z", *options).fields
    return [(displayed(row[3:]), row[:2] == _EDITED and not row.endswith(_RULING)) for row in rows]


def check_worktrees(repository: Plumbing, branch: str, besides: Path | None = None) -> None:
    """Refuse a branch that is checked out in another worktree than the person's checkout.

    Raises:
        Conflict: ``TARGET_CHECKED_OUT``.
    """
    ref = b"refs/heads/" + os.fsencode(branch)
    output = repository.read("worktree", "list", "--porcelain", "-z").out
    first = 0 if repository.record else 1  # the main checkout, which has no record
    for record in output.split(b"\0\0")[first:]:
        facts = dict(line.partition(b" ")[::2] for line in record.split(b"\0"))
        if facts.get(b"branch") == ref and b"prunable" not in facts and not _is_at(facts[b"worktree"], besides):
            raise checked_out(branch, displayed(facts[b"worktree"]))


def _is_at(path: bytes, place: Path | None) -> bool:
    """Whether `path` leads to the directory `place`, which may have several paths, such as by a bind mount."""
    with suppress(OSError):
        return place is not None and (os.fsencode(place) == path or place.samefile(os.fsdecode(path)))
    return False


def refuse_checked_out(repository: Plumbing, branch: str, besides: Path | None = None) -> None:
    """Refuse a branch that is checked out in the main checkout or a linked worktree other than `besides`.

    Raises:
        Conflict: ``TARGET_CHECKED_OUT``.
    """
    if branch in main_branches(repository):
        raise checked_out(branch, displayed(os.fsencode(repository.root)))
    check_worktrees(repository, branch, besides)


def checked_out(branch: str, place: str) -> Conflict:
    """The error for a branch that must not move, because the checkout at `place` would not follow."""
    text = f"{branch} is checked out in {place}. Switch that worktree to another branch."
    return Conflict("TARGET_CHECKED_OUT", text, worktree=place)


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge to make; see `Repository.integrate`."""

    repository: Plumbing
    message: str
    author: CommitIdentity
    fast_forward: bool

    def into(self, branch: str, source: str, merged: str | None = None) -> Integration:
        """Merge the commit `source` into `branch`."""
        target = self.repository.follow(f"refs/heads/{branch}") or branch
        old, new = self._commit_of(target), self.repository.commit(source)
        if self.repository.contains(old, new):
            return Integration(old, "already_merged")
        is_here = self._is_here(target)
        if merged is not None:
            self._require_merge_of(target, merged, old, new)
        commit = merged or self._make_commit(target, old, new)
        if is_here:
            self._require_room(target, old, commit)
        (self._move_checkout if is_here else self._move)(target, old, commit)
        return Integration(commit, "fast_forward" if commit == new else "merged")

    def commit(self, branch: str, source: str) -> str:
        """The commit that `into` would move `branch` to; its current one if it already contains `source`."""
        target = self.repository.follow(f"refs/heads/{branch}") or branch
        old, new = self._commit_of(target), self.repository.commit(source)
        return old if self.repository.contains(old, new) else self._make_commit(target, old, new)

    def _make_commit(self, target: str, old: str, new: str) -> str:
        if self.fast_forward and self.repository.contains(new, old):
            return new
        return self._merge(target, old, new)

    def _require_merge_of(self, target: str, merged: str, old: str, new: str) -> None:
        """Refuse a commit that is not the merge of `old` and `new`."""
        if merged == new and self.fast_forward and self.repository.contains(new, old):
            return
        exists = is_object_id(merged) and self.repository.parse(merged) == merged
        facts = self.repository.read("rev-parse", f"{merged}^@", f"{merged}^{{tree}}") if exists else None
        *parents, tree = facts.text.split() if facts else [""]
        if parents != [old, new] or predict.merge(self.repository, old, new).tree != tree:
            raise _moved_error(target)

    def _commit_of(self, branch: str) -> str:
        if commit := self.repository.resolve(branch):
            return commit
        text = f"There is no branch {branch[:80]!r}. `git branch` lists branches."
        raise NotFound("BRANCH_NOT_FOUND", text)

    def _is_here(self, target: str) -> bool:
        """Whether the main checkout is on `target`.

        Raises:
            Conflict: ``TARGET_CHECKED_OUT``, ``TARGET_DIRTY``: `target` must not move.
        """
        if target not in main_branches(self.repository):
            check_worktrees(self.repository, target)
            return False
        directory = self.repository.own_dir
        busy = next((what for name, what in _IN_PROGRESS.items() if (directory / name).exists()), "")
        if busy:
            raise _dirty_error(
                target, uncommitted(self.repository), f"has a {busy} in progress. Finish or abort it", busy
            )
        return True

    def _require_room(self, target: str, old: str, new: str) -> None:
        """Refuse uncommitted changes that the merge would touch. Others stay as they are, such as a notebook that runs.

        Raises:
            Conflict: ``TARGET_DIRTY``.
        """
        files = self._find_obstacles(old, new)
        if files:
            raise _dirty_error(target, files, f"has uncommitted changes in {_summarise(files)}. Commit or stash them")

    def _find_obstacles(self, old: str, new: str) -> list[str]:
        """The uncommitted files in the way: edited files that the merge changes, and all with other changes."""
        changed = {displayed(name) for name in self._diff_names(old, new, "ADMT").fields}
        return [file for file, is_edited in _edits(self.repository) if not is_edited or file in changed]

    def _merge(self, target: str, old: str, new: str) -> str:
        preview = predict.merge(self.repository, old, new)
        if preview.conflicts:
            raise Conflict(
                "MERGE_CONFLICT",
                f"{target} and {new[:12]} both changed {_summarise(preview.conflicts)}. Merge {target} "
                "into the source branch, resolve it there and integrate again.",
                files=list(preview.conflicts),
            )
        if preview.tree is None:
            raise Conflict(
                "UNRELATED_HISTORIES",
                f"{target} and {new[:12]} have no common ancestor. Start a branch from {target}.",
            )
        commit, text = ("-p", old, "-p", new, preview.tree), as_message(self.message)
        result = self.repository.write("commit-tree", *commit, stdin=text, env=self.author.environment())
        return result.text

    def _move(self, target: str, old: str, new: str) -> None:
        reason = ("-m", f"workbench: integrate {new[:12]}")
        ref = (f"refs/heads/{target}", new, old)
        try:
            self.repository.write("update-ref", *reason, *ref, env=self.author.environment())
        except Unavailable:
            if self.repository.resolve(target) != old:
                raise _moved_error(target) from None
            raise

    def _move_checkout(self, target: str, old: str, new: str) -> None:
        self._rehearse(old, new)
        if self.repository.current_branch() != target:
            raise _moved_error(target)
        merge = self._merge_checkout(target, new)
        reached = self.repository.resolve(target)
        if merge.code == 0 and reached == old:
            # Meanwhile HEAD was switched to another branch, and the merge moved that one instead.
            self._move(target, old, new)
        elif merge.code:
            if reached != old or self.repository.current_branch() != target:
                raise _moved_error(target)
            files = self._find_obstacles(old, new) or self._find_overwritten(old, new)
            if merge.code == 1 and files:
                raise _dirty_error(target, files, f"would lose {_summarise(files)}. Move or commit them")
            raise merge.failure()

    def _merge_checkout(self, target: str, new: str) -> GitResult:
        # `-c` cannot reset branch.<name>.mergeOptions if the name contains a '='.
        reset = {"GIT_CONFIG_KEY_0": f"branch.{target}.mergeOptions", "GIT_CONFIG_VALUE_0": ""}
        reason = {"GIT_REFLOG_ACTION": "workbench: integrate"}
        env = {**self.author.environment(), **reason, "GIT_CONFIG_COUNT": "1", **reset}
        limit = self.repository.checkout_limit
        return self.repository.write("merge", *_FAST_FORWARD, new, env=env, limit=limit, ok=None)

    def _rehearse(self, old: str, new: str) -> None:
        """Write the changed files elsewhere first, as a filter that fails would leave the checkout half updated."""
        changed, limit = self._diff_names(old, new, "d"), self.repository.checkout_limit
        with tempfile.TemporaryDirectory(dir=self.repository.git_dir) as scratch:
            env, into = {"GIT_INDEX_FILE": f"{scratch}/index"}, f"--prefix={scratch}/files/"
            self.repository.write("read-tree", new, env=env)
            options = ("checkout-index", "--quiet", "-z", "--stdin", into)
            self.repository.write(*options, stdin=changed.out, env=env, limit=limit)

    def _find_overwritten(self, old: str, new: str) -> list[str]:
        """Untracked files in the checkout, at or above paths that `new` adds."""
        root, paths = self.repository.root, set[Path]()
        for name in self._diff_names(old, new, "A").fields:
            added = root / os.fsdecode(name)
            paths.update(path for path in (added, *added.parents) if path.is_symlink() or path.is_file())
            paths.update({added} if added.is_dir() else ())
        paths -= {root / os.fsdecode(name) for name in self._diff_names(old, new, "D").fields}
        return sorted(displayed(os.fsencode(path.relative_to(root))) for path in paths if root in path.parents)

    def _diff_names(self, old: str, new: str, kinds: str) -> GitResult:
        options = ("--name-only", f"--diff-filter={kinds}")
        return self.repository.read("diff-tree", "-r", *options, *PATCH_FREE, old, new)


def _summarise(files: Sequence[str]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more


def _dirty_error(target: str, files: list[str], what: str, operation: str | None = None) -> Conflict:
    message = f"The checkout of {target} {what}, then integrate again."
    return Conflict("TARGET_DIRTY", message, files=files, operation=operation)


def _moved_error(target: str) -> Conflict:
    return Conflict("TARGET_MOVED", f"{target} moved meanwhile. Integrate again.")
