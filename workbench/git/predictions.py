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
    """The changes that merging a branch into a target would make."""

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
        for conflict in self.conflicts:
            if not conflict.is_target and name in (conflict.one, conflict.other):
                yield (conflict.other if conflict.one == name else conflict.one), conflict.files


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
        branch_names = {branch for branches in worktrees.values() for branch in (branches.own, branches.target)}
        commits = await to_thread(repository.heads, branch_names)
        own = {name: commits[branches.own] for name, branches in worktrees.items() if branches.own in commits}
        targets = {name: worktrees[name].target for name in own if worktrees[name].target in commits}
        comparisons = {
            **{(name, target, True): (commits[target], own[name]) for name, target in targets.items()},
            **{(one, other, False): _order(own[one], own[other]) for one, other in combinations(own, 2)},
        }
        files_by_pair = await self._predict(repository, comparisons.values())
        conflicts = {key: files for key, pair in comparisons.items() if (files := files_by_pair[pair])}
        merged_into = {name: (own[name], commits[target]) for name, target in targets.items()}
        made = [
            PredictedConflict(one, other, is_target, files)
            for one, other, is_target in conflicts
            if (files := await self._made_by_both(repository, (one, other, is_target), conflicts, targets, merged_into))
        ]
        return Scan(own, made, len(comparisons))

    async def _made_by_both(
        self,
        repository: Repository,
        key: tuple[str, str, bool],
        conflicts: Mapping[tuple[str, str, bool], tuple[str, ...]],
        targets: Mapping[str, str],
        merged_into: Mapping[str, Pair],
    ) -> tuple[str, ...]:
        """The files in conflict between two worktrees, without those that are listed with the target already: one of
        the worktrees has them from there, and the other conflicts with them."""
        one, other, is_target = key
        files = conflicts[key]
        for name, opposite in () if is_target else ((one, other), (other, one)):
            with_target = conflicts.get((opposite, targets.get(name, ""), True), ())
            if with_target:
                changed = {file.path for file in (await self.facts(repository, *merged_into[name])).files}
                files = tuple(file for file in files if file in changed or file not in with_target)
        return files

    async def facts(self, repository: Repository, own: str | None, target: str | None) -> Facts:
        """The changes that merging the commit `own` into `target` would make; none if either is missing."""
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
        """The branches that would conflict with the target once the commit `own` is merged into it, with the files.

        Branches that conflict with the target already are left out; if `own` does, all are.

        Args:
            others: the commits of the branches, by name.
        """
        trial = await self._trial_commit(repository, target, own)
        if trial is None or not others:
            return {}
        pairs = [(onto, commit) for commit in others.values() for onto in (target, trial)]
        try:
            files_by_pair = await self._predict(repository, pairs)
        except NotFound:  # the trial commit, which nothing refers to, was pruned
            del self._trials[target, own]
            raise
        return {
            name: files_by_pair[trial, commit]
            for name, commit in others.items()
            if files_by_pair[trial, commit] and not files_by_pair[target, commit]
        }

    async def _trial_commit(self, repository: Repository, target: str, own: str) -> str | None:
        if (target, own) not in self._trials:
            self._trials[target, own] = await to_thread(repository.trial_merge, target, own)
        return self._trials[target, own]

    async def _predict(self, repository: Repository, pairs: Iterable[Pair]) -> dict[Pair, tuple[str, ...]]:
        async with self._predicting:
            unique_pairs = list(dict.fromkeys(pairs))
            files_by_pair = {pair: self._merges[pair] for pair in unique_pairs if pair in self._merges}
            unknown = [pair for pair in unique_pairs if pair not in files_by_pair]
            previews = await to_thread(repository.predict_merges, unknown) if unknown else []
            for pair, preview in zip(unknown, previews, strict=True):
                self._merges[pair] = files_by_pair[pair] = preview.conflicts
            return files_by_pair


def _order(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)
