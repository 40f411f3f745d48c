"""Predicts the conflicts of worktrees with their targets and with each other.

The result of merging two given commits never changes, so it is cached.
"""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from cachetools import LRUCache

from workbench.errors import NotFound
from workbench.git.repository import FileChange, Repository

MERGES_CACHED = 20_000
FACTS_CACHED = 1_000
TRIALS_CACHED = 1_000

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Branches:
    """The branch of a worktree, and its target."""

    own: str
    target: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What merging a branch into a target would change."""

    ahead: int = 0
    behind: int = 0
    files: Sequence[FileChange] = ()
    conflicts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PredictedConflict:
    """A predicted conflict in some files, between two worktrees or between a worktree and its target branch."""

    one: str
    other: str
    is_target: bool
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class Scan:
    """All worktrees compared with their targets and each other: commits by worktree, conflicts, pairs checked."""

    commits: Mapping[str, str] = field(default_factory=dict)
    conflicts: Sequence[PredictedConflict] = ()
    checked: int = 0

    def overlaps(self, name: str) -> Iterator[tuple[str, Sequence[str]]]:
        """The other worktrees that conflict with this one, and the files."""
        for found in self.conflicts:
            if not found.is_target and name in (found.one, found.other):
                yield (found.other if found.one == name else found.one), found.files


class MergePredictions:
    """A cache of predicted merges; one for each project."""

    def __init__(self) -> None:
        self._merges: LRUCache[Pair, tuple[str, ...]] = LRUCache(MERGES_CACHED)
        self._facts: LRUCache[Pair, Facts] = LRUCache(FACTS_CACHED)
        self._trials: LRUCache[Pair, str | None] = LRUCache(TRIALS_CACHED)
        self._predicting = asyncio.Lock()
        self.announced: list[dict[str, Any]] = []
        """The conflicts in the last event."""

    async def scan(self, repository: Repository, worktrees: Mapping[str, Branches]) -> Scan:
        """Compare worktrees, by their branches in the user's repository.

        Args:
            worktrees: their branches, by name.
        """
        if not worktrees:
            return Scan()
        wanted = {branch for branches in worktrees.values() for branch in (branches.own, branches.target)}
        commits = await to_thread(repository.heads, wanted)
        own = {name: commits[branches.own] for name, branches in worktrees.items() if branches.own in commits}
        targets = {name: worktrees[name].target for name in own if worktrees[name].target in commits}
        comparisons = {
            **{(name, target, True): (commits[target], own[name]) for name, target in targets.items()},
            **{(one, other, False): _in_order(own[one], own[other]) for one, other in combinations(own, 2)},
        }
        found = await self._predict(repository, comparisons.values())
        conflicts = [
            PredictedConflict(one, other, is_target, files)
            for (one, other, is_target), pair in comparisons.items()
            if (files := found[pair])
        ]
        return Scan(own, conflicts, len(comparisons))

    async def facts(self, repository: Repository, own: str | None, target: str | None) -> Facts:
        """What merging the commit `own` into `target` would change; nothing if either is missing."""
        if own is None or target is None:
            return Facts()
        if (own, target) not in self._facts:
            conflicts = (await self._predict(repository, [(target, own)]))[target, own]
            ahead, behind = await to_thread(repository.ahead_behind, own, target)
            files = await to_thread(repository.diff_stat, target, own)
            self._facts[own, target] = Facts(ahead, behind, files, conflicts)
        return self._facts[own, target]

    async def consequences(
        self, repository: Repository, own: str, target: str, others: Mapping[str, str]
    ) -> dict[str, Sequence[str]]:
        """Which branches would conflict with the target once the commit `own` is merged into it, and in which files.

        Branches that conflict with the target already are left out; if `own` does, all are.

        Args:
            others: the commits of the branches, by name.
        """
        merged = await self._trial(repository, target, own)
        if merged is None or not others:
            return {}
        pairs = [(onto, commit) for commit in others.values() for onto in (target, merged)]
        try:
            found = await self._predict(repository, pairs)
        except NotFound:  # the trial commit, which nothing refers to, was pruned
            del self._trials[target, own]
            raise
        return {
            name: found[merged, commit]
            for name, commit in others.items()
            if found[merged, commit] and not found[target, commit]
        }

    async def _trial(self, repository: Repository, target: str, own: str) -> str | None:
        if (target, own) not in self._trials:
            self._trials[target, own] = await to_thread(repository.trial_merge, target, own)
        return self._trials[target, own]

    async def _predict(self, repository: Repository, pairs: Iterable[Pair]) -> dict[Pair, tuple[str, ...]]:
        async with self._predicting:
            wanted = list(dict.fromkeys(pairs))
            found = {pair: self._merges[pair] for pair in wanted if pair in self._merges}
            unknown = [pair for pair in wanted if pair not in found]
            previews = await to_thread(repository.predict_merges, unknown) if unknown else []
            for pair, preview in zip(unknown, previews, strict=True):
                self._merges[pair] = found[pair] = preview.conflicts
            return found


def _in_order(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)
