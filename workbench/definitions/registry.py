"""The definitions of a project: found by path, id or name, below the directories that are allowed, and cached."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from workbench.definitions.directory import Directory, Print, Snapshot, is_settled
from workbench.definitions.older import definition_at
from workbench.definitions.places import Places
from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.inert import inert_line
from workbench.rules.definitions.model import Definition, Metadata
from workbench.rules.spelling import similar

SNAPSHOTS = 300
HEADS = 10_000
PROBES = 4
"""MCP servers that are tried at once; further ones wait."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """Definitions as they are listed.

    Args:
        found: the path of each as it is shown, with what it is.
        problems: why those that cannot be read cannot, each with its path.
        exists: whether the directory below which they were searched exists.
    """

    found: list[tuple[str, Metadata]]
    problems: list[str]
    exists: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """A definition before a change, and after it."""

    before: Definition
    after: Snapshot


class Registry:
    """The definitions below some directories. Every method blocks; several threads may call them.

    Args:
        base: relative paths begin here.
        roots: definitions are in these directories, or below them.
    """

    def __init__(self, base: Path, roots: Sequence[Path]) -> None:
        self.changing = asyncio.Lock()
        """Held while a definition is changed and the change is recorded: one at a time in this process."""
        self.probing = asyncio.Semaphore(PROBES)
        """Held while an MCP server is tried."""
        self._places = Places(base, roots)
        # Reading and writing an item of a dictionary is atomic, unlike that of an LRU cache.
        self._snapshots: dict[str, Snapshot] = {}
        self._heads: dict[str, tuple[Print, Metadata]] = {}

    @property
    def roots(self) -> tuple[Path, ...]:
        """The directories below which definitions are: resolved paths."""
        return self._places.roots

    # Finding.

    def find(self, target: str) -> Directory:
        """The directory of a definition, by its path, its id, or its name, in this order.

        One that cannot be read has no name: it is found by that of its directory, so that what is wrong can be said.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``INVALID_PATH``; ``AMBIGUOUS_TARGET``: `details.candidates` are
                the paths.
        """
        if (path := self._path_if_any(target)) is not None:
            return definition_at(path) or Directory(path)
        heads = list(self.heads())
        for key in ("id", "name"):
            if found := self._with(key, target, heads):
                return found
        if broken := self._unreadable(target, {directory.key for directory, _ in heads}):
            return broken
        meant = similar(target, (head.name for _, head in heads))
        question = f" Did you mean {meant}?" if meant else " agent_list lists them."
        raise NotFound("AGENT_NOT_FOUND", f"No agent has the path, id or name {inert_line(target)}.{question}")

    def _unreadable(self, name: str, readable: Set[str]) -> Directory | None:
        """The only directory of a name whose definition cannot be read."""
        found = [one for one in self.directories() if one.key not in readable and Path(one.key).name == name]
        return found[0] if len(found) == 1 else None

    def find_id(self, definition_id: str) -> Directory:
        """The directory of the definition with an id; other than with `find`, a path or a name counts for nothing.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``AMBIGUOUS_TARGET``.
        """
        if found := self._with("id", definition_id, self.heads()):
            return found
        raise NotFound("AGENT_NOT_FOUND", f"There is no agent with the id {inert_line(definition_id)}.")

    def _with(self, key: str, value: str, heads: Iterable[tuple[Directory, Metadata]]) -> Directory | None:
        """The definition with an id or name, if there is one."""
        found = [directory for directory, head in heads if getattr(head, key) == value]
        if len(found) > 1:
            raise _ambiguous(key, value, [self.display_path(one.key) for one in found])
        return found[0] if found else None

    def directories(self, below: Path | None = None) -> Iterator[Directory]:
        """The directories of all definitions, or of those below a directory, sorted by path."""
        if below is not None and (found := definition_at(below)):
            return iter([found])
        return self._places.search(below)

    def display_path(self, path: str | Path) -> str:
        """A path as it is shown: from the base, if it is below it."""
        return self._places.display(path)

    def place(self, path: str) -> Path:
        """The directory that a path names, which need not exist.

        Raises:
            BadInput: ``INVALID_PATH``: it is not below the directories that are allowed, or no valid path.
        """
        return self._places.resolve(path)

    def _path_if_any(self, target: str) -> Path | None:
        """The path that a target is, if it looks like one or there is a definition at it."""
        is_path = "/" in target or "\\" in target or target in (".", "..")
        try:
            place = self.place(target)
        except BadInput:
            if is_path:
                raise
            return None
        return place if is_path or definition_at(place) else None

    # Reading.

    def get(self, target: str) -> Snapshot:
        """A definition by its path, id or name; see `find` and `read`."""
        return self.read(self.find(target))

    def listing(self, below: str | None = None) -> Listing:
        """The definitions, or those below a directory, which may be a definition itself.

        Raises:
            BadInput: ``INVALID_PATH``.
        """
        place = None if below is None else self._places.resolve(below, or_root=True)
        listing = Listing([], [], place is None or place.is_dir())
        for directory in self.directories(place):
            try:
                listing.found.append((self.display_path(directory.key), self.head(directory)))
            except WorkbenchError as error:
                listing.problems.append(f"{self.display_path(directory.key)}: {error.message}")
        return listing

    def heads(self) -> Iterator[tuple[Directory, Metadata]]:
        """The definitions with what they are; those that cannot be read are left out."""
        for directory in self.directories():
            with suppress(WorkbenchError):
                yield directory, self.head(directory)

    def head(self, directory: Directory) -> Metadata:
        """What a definition is, without its rules and references; cached.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``INVALID_CONFIGURATION``, ``INVALID_PATH``.
        """
        known = self._heads.get(directory.key)
        if known is not None and known[0] == directory.print_of_agent():
            return known[1]
        now = time.time_ns()
        found, metadata = directory.head()
        if is_settled(found, now):
            _put(self._heads, directory.key, (found, metadata), HEADS)
        return metadata

    def read(self, directory: Directory) -> Snapshot:
        """A definition as it is now; from the cache, if none of its files has changed.

        Raises:
            WorkbenchError: see `Directory.read`.
        """
        known = self._snapshots.get(directory.key)
        if known is not None and not directory.is_unfinished() and directory.signature() == known.signature:
            return known
        snapshot = directory.read()
        if snapshot.is_settled:
            _put(self._snapshots, directory.key, snapshot, SNAPSHOTS)
        return snapshot

    # Changing.

    def create(self, directory: Directory, definition: Definition) -> Snapshot:
        """Write a new definition.

        Raises:
            Conflict: ``AGENT_EXISTS``. Unavailable: see `Directory.change`.
        """
        return directory.create(definition)

    def change(self, directory: Directory, edit: Callable[[Definition], Definition]) -> Change:
        """Change a definition; see `Directory.change`."""
        before: list[Definition] = []

        def noting(definition: Definition) -> Definition:
            before.append(definition)
            return edit(definition)

        after = directory.change(noting)
        return Change(before[-1], after)

    def remove(self, directory: Directory) -> tuple[Snapshot, list[str]]:
        """Remove a definition; what it was, and what is left in its directory because it is not of the definition.

        Raises:
            WorkbenchError: see `Directory.read` and `Directory.change`.
        """
        with directory.locked():
            snapshot = directory.read()
            return snapshot, directory.remove()

    def vacant(self, path: str) -> Directory:
        """The directory for a new definition.

        Raises:
            BadInput: ``INVALID_PATH``. Conflict: ``AGENT_EXISTS``.
        """
        return Directory(self._places.vacant(path))


def _ambiguous(key: str, target: str, candidates: list[str]) -> BadInput:
    return BadInput(
        "AMBIGUOUS_TARGET",
        f"{len(candidates)} agents have the {key} {inert_line(target)}. Name one by its path: {', '.join(candidates)}.",
        candidates=candidates,
    )


def _put(cache: dict[str, T], key: str, value: T, size: int) -> None:
    if len(cache) >= size:
        cache.clear()
    cache[key] = value
