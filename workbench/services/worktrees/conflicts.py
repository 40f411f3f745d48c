"""Coming conflicts: what merging each worktree with its target, and with each other one, would meet (spec 3).

What two commits merge to never changes, so each pair is asked for once.
"""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Generic, TypeVar

from workbench.git import FileChange, Repository
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.services.worktrees.imports import take_over_all
from workbench.services.worktrees.places import heads
from workbench.services.worktrees.rows import open_worktrees
from workbench.store.base import Row

K = TypeVar("K")
V = TypeVar("V")

KEPT = 20_000
"""Predictions that are kept."""
TOLD_PAIRS = 200
TOLD_FILES = 20
"""How many conflicts an event tells."""


class Pair(Wire):
    """Two that would be in conflict: two worktrees, or a worktree and its target (`is_target`)."""

    one: str
    other: str
    is_target: bool
    files: list[str]


class ConflictsPredicted(Wire):
    """All coming conflicts of the active worktrees, and how many pairs were looked at."""

    commits: dict[str, str]
    pairs: list[Pair]
    checked: int
    checked_at: Micros


@dataclass(frozen=True, slots=True)
class Facts:
    """What a branch would bring to a target."""

    ahead: int = 0
    behind: int = 0
    files: Sequence[FileChange] = ()
    conflicts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Sweep:
    """One look at all active worktrees."""

    commits: dict[str, str] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    checked: int = 0

    def overlaps(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """The other worktrees that one would be in conflict with."""
        for pair in self.pairs:
            if not pair.is_target and name in (pair.one, pair.other):
                yield (pair.other if pair.one == name else pair.one), pair.files


class Kept(Generic[K, V]):
    """The newest so many of what was found out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[K, V] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._known

    def __getitem__(self, key: K) -> V:
        self._known.move_to_end(key)
        return self._known[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._known[key] = value
        while len(self._known) > self._limit:
            self._known.popitem(last=False)


class Radar:
    """What is known of merges; one for each project."""

    def __init__(self) -> None:
        self._merges: Kept[tuple[str, str], tuple[str, ...]] = Kept(KEPT)
        self._facts: Kept[tuple[str, str], Facts] = Kept(1_000)
        self._asking = asyncio.Lock()
        self.told: list[dict[str, Any]] = []
        """What the last event said."""

    async def sweep(self, ctx: Ctx, repository: Repository) -> Sweep:
        """Look at all active worktrees, as the person's repository has them."""
        rows = await ctx.read(open_worktrees)
        if not rows:
            return Sweep()
        wanted = {name for row in rows for name in (row["branch_name"], row["integration_target"])}
        return await self._compare(repository, rows, await to_thread(heads, repository, wanted))

    async def _compare(self, repository: Repository, rows: Sequence[Row], commits: dict[str, str]) -> Sweep:
        own = {row["name"]: commits[row["branch_name"]] for row in rows if row["branch_name"] in commits}
        targets = {row["name"]: row["integration_target"] for row in rows}
        to_targets = [(name, targets[name]) for name in own if targets[name] in commits]
        to_others = list(combinations(own, 2))
        asked = {
            **{(name, target, True): (commits[target], own[name]) for name, target in to_targets},
            **{(one, other, False): _in_order(own[one], own[other]) for one, other in to_others},
        }
        found = await self._predict(repository, asked.values())
        pairs = [
            Pair(one=one, other=other, is_target=is_target, files=list(files))
            for (one, other, is_target), key in asked.items()
            if (files := found[key])
        ]
        return Sweep(own, pairs, len(asked))

    async def _predict(
        self, repository: Repository, pairs: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[str, ...]]:
        async with self._asking:
            wanted = list(dict.fromkeys(pairs))
            found = {pair: self._merges[pair] for pair in wanted if pair in self._merges}
            unknown = [pair for pair in wanted if pair not in found]
            previews = await to_thread(repository.predict_merges, unknown) if unknown else []
            for pair, preview in zip(unknown, previews, strict=True):
                self._merges[pair] = found[pair] = preview.conflicts
            return found

    async def facts(self, repository: Repository, own: str | None, target: str | None) -> Facts:
        """What a commit would bring to another one."""
        if own is None or target is None:
            return Facts()
        if (own, target) not in self._facts:
            conflicts = (await self._predict(repository, [(target, own)]))[target, own]
            ahead, behind = await to_thread(repository.ahead_behind, own, target)
            files = await to_thread(repository.diff_stat, target, own)
            self._facts[own, target] = Facts(ahead, behind, files, conflicts)
        return self._facts[own, target]


def _in_order(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)


@op(allow=Level.READ, reads=True)
async def list_conflicts(ctx: Ctx) -> ConflictsPredicted:
    """Which active worktrees would be in conflict, with each other or with their targets, and about which files."""
    found = await look(ctx)
    return ConflictsPredicted(
        commits=found.commits, pairs=found.pairs, checked=found.checked, checked_at=ctx.store.now()
    )


async def look(ctx: Ctx) -> Sweep:
    """Take over what is new, and look at all active worktrees."""
    rows = await ctx.read(open_worktrees)
    if not rows:
        return Sweep()
    repository = await ctx.repositories.open()
    await take_over_all(ctx, repository, rows)
    return await ctx.radar.sweep(ctx, repository)


async def watch(ctx: Ctx) -> None:
    """Look, and tell if other conflicts are coming than were told last."""
    found = await look(ctx)
    told = [
        {"one": pair.one, "other": pair.other, "is_target": pair.is_target, "files": pair.files[:TOLD_FILES]}
        for pair in found.pairs[:TOLD_PAIRS]
    ]
    if told != ctx.radar.told:
        ctx.radar.told = told
        await ctx.write(lambda tx: tx.emit("worktree.conflicts_changed", "worktree:*", pairs=told))
