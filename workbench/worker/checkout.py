"""The worktree that a worker works in: git runs in its box, and its commits are imported into the person's repository.

Nothing in the worktree is trusted. Commits reach the person's repository only by `import_branch`, which computes every
hash anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from workbench.confinement import Box
from workbench.confinement.starter import Starter
from workbench.errors import WorkbenchError
from workbench.git import Checkout, CommitIdentity, Repository, unverified
from workbench.process import inherited_mark
from workbench.worker import scratch, surroundings
from workbench.worker.startup import WorkerConfig, WorktreePlace

T = TypeVar("T")

log = logging.getLogger(__name__)


class WorkerCheckout:
    """A worktree with a repository of its own, for the one worker that works there."""

    def __init__(self, config: WorkerConfig, worktree: WorktreePlace) -> None:
        self._config = config
        self._worktree = worktree
        self._lock = asyncio.Lock()
        self._known: dict[str, str] = {}
        self._opened: Repository | None = None
        self._base: str | None = None

    def begin(self, attempt: Mapping[str, Any], commit: str | None) -> None:
        """An attempt, by which operations name it, begins at `commit`."""
        self._base = commit

    async def prepare(self) -> None:
        """Update the person's branches in the worktree, to compare and merge with.

        A failure does not end the attempt: those branches stay as they were.
        """
        try:
            commits = await asyncio.to_thread(lambda: self._repository().branches())
            commits.pop(self._worktree.branch, None)
            changes = {name: commit for name, commit in commits.items() if self._known.get(name) != commit}
            if changes:
                await self._git(lambda checkout: checkout.learn_branches(changes))
            self._known = commits
        except WorkbenchError as error:  # such as a branch of the worktree's own that is in the way
            log.warning("some branches of the worktree are not up to date: %s", error.message)

    async def commit(self, message: str, author: CommitIdentity) -> str | None:
        """Commit all changes and import the branch into the person's repository; its commit, if it has moved.

        Raises:
            Unavailable: ``GIT_FAILED``, …. WorkbenchError: ``IMPORT_REFUSED``, ``WORKTREE_ELSEWHERE``.
        """
        return await self._git(lambda checkout: self._commit(checkout, message, author))

    def _commit(self, checkout: Checkout, message: str, author: CommitIdentity) -> str | None:
        checkout.commit_all(message, author)
        checkout.attach(self._worktree.branch)
        repository, branch = self._repository(), self._worktree.branch
        with repository.lock():
            commit = repository.import_branch(checkout, branch, max_bytes=self._config.import_bytes)
        return commit if commit != self._base else None

    async def hand_over(self, names: Sequence[str]) -> Sequence[str]:
        """Have the server reach the files among the artifacts of an attempt that is committed; the names of all."""
        return names

    async def leave(self, message: str, author: CommitIdentity) -> None:
        """An attempt that did not complete its task has left its changes, which the server sees."""

    async def missing(self, output: str) -> str:
        """Sentences about what the worktree lacks: submodules, ignored files and environments that the output names."""
        return await asyncio.to_thread(self._explain_missing, output)

    def _explain_missing(self, output: str) -> str:
        try:
            return explain_missing(self._repository(), self._worktree.path, self._config.box, output, self._base)
        except WorkbenchError as error:
            log.warning("what the worktree does not have is unknown: %s", error.message)
            return ""

    def _repository(self) -> Repository:
        """The person's repository; opened once, because that takes several git commands."""
        if self._opened is None:
            self._opened = Repository.open(self._config.project)
        return self._opened

    async def _git(self, work: Callable[[Checkout], T]) -> T:
        """Run git in a thread, one at a time. Cancelling waits until git has ended."""
        async with self._lock:
            task = asyncio.ensure_future(asyncio.to_thread(self._run_in_box, work))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                await asyncio.wait({task})
                raise

    def _run_in_box(self, work: Callable[[Checkout], T]) -> T:
        unverified.require_sound(self._worktree.git_dir)
        with scratch.directory(self._config.scratch, "git") as directory, Starter() as starter:
            box = replace(self._config.box, scratch=directory, connect=())
            environment, place = box.environment(os.environ) | inherited_mark(), self._worktree.path
            checkout = Checkout(place, self._worktree.git_dir, box.guarded, environment)
            seen_at = box.inside(place.resolve())
            return work(replace(checkout, seen_at=seen_at, told=box.told, start=starter.started))


def explain_missing(repository: Repository, worktree: Path, box: Box, output: str, commit: str | None = None) -> str:
    """Sentences about what a worktree lacks that an output names. Blocks.

    Args:
        box: of the command that wrote it.
        commit: the one whose submodules are looked for.

    Raises:
        Unavailable: ``GIT_FAILED``, ….
    """
    submodules = repository.empty_submodules(worktree, commit) if commit else []
    ignored = [path for path in repository.ignored() if _lacks(worktree, path, box, repository.root)]
    named = surroundings.named(ignored, output, str(worktree.resolve()))
    named += surroundings.node_modules_with(set(ignored) - set(named), output, repository.root)
    environments = surroundings.environments_with(ignored, named, output, repository.root)
    return surroundings.of_worktree(submodules, [path for path in named if path not in environments], environments)


def _lacks(worktree: Path, path: str, box: Box, project: Path) -> bool:
    """Whether a worktree has nothing at a path of the project. A mount leaves an empty directory when it ends."""
    there = worktree / path
    with contextlib.suppress(OSError):  # such as a directory that a command has closed
        if not there.is_symlink() and there.is_dir() and not any(there.iterdir()):
            return all(mount.at != project / path for mount in box.mounts)
    return not os.path.lexists(there)
