"""The definitions of a project: found by path, id or name, below the directories that are allowed, and cached."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from workbench.definition_files.directory import DefinitionDirectory, Print, Snapshot, is_settled
from workbench.definition_files.older import definition_at
from workbench.definition_files.places import Places
from workbench.errors import BadInput, Conflict, Hint, NotFound, WorkbenchError
from workbench.present.inert import inert_line
from workbench.rules.definitions.model import Definition, DefinitionMetadata
from workbench.rules.definitions.names import is_id
from workbench.rules.naming import similar

SNAPSHOTS = 300
HEADS = 10_000
PROBES = 4
"""MCP servers that are tried at once; further ones wait."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DefinitionListing:
    """Definitions as they are listed.

    Args:
        found: the path of each as it is shown, with what it is.
        problems: why those that cannot be read cannot, each with its path.
        exists: whether the directory below which they were searched exists.
    """

    found: list[tuple[str, DefinitionMetadata]]
    problems: list[str]
    exists: bool = True


@dataclass(frozen=True, slots=True)
class DefinitionChange:
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
        self._heads: dict[str, tuple[Print, DefinitionMetadata]] = {}

    @property
    def roots(self) -> tuple[Path, ...]:
        """The directories below which definitions are: resolved paths."""
        return self._places.roots

    # Finding.

    def find(self, target: str) -> DefinitionDirectory:
        """The directory of the only definition that a target means: by its path, its id, or its name.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``INVALID_PATH``; ``AMBIGUOUS_TARGET``: `details.candidates` are
                the paths.
        """
        found = self._meant(target)
        if len(found) > 1:
            raise self._ambiguous(target, found)
        if found:
            return found[0]
        quoted = f"'{inert_line(target)}'"
        if worded := [self.display_path(one.key) for one, head in self.heads() if head.id == target]:
            text = f"The id {quoted} in {', '.join(worded)} is no UUID, so it names nobody."
            raise NotFound("AGENT_NOT_FOUND", text, Hint("agent_migrate", "Use the path, or give it an id with {}."))
        text = f"No agent has the path, id or name {quoted}."
        if meant := similar(target, (head.name for _, head in self.heads())):
            raise NotFound("AGENT_NOT_FOUND", f"{text} Did you mean {meant}?")
        raise NotFound("AGENT_NOT_FOUND", text, Hint("agent_list"))

    def _meant(self, target: str) -> list[DefinitionDirectory]:
        """The definitions that a target means, by path. One with a separator is a path and nothing else."""
        path = self._path_if_any(target)
        place = [] if path is None else [definition_at(path) or DefinitionDirectory(path)]
        if _is_path(target):
            return place
        others = [one for one in self.directories() if one.path != path and self._is_called(one, target)]
        return [*place, *others]

    def _is_called(self, directory: DefinitionDirectory, target: str) -> bool:
        """Whether a definition has an id or name. Ids are UUIDs, which no name is: a word that an older file has in
        their place is no target. One that cannot be read has the name of its directory, so that what is wrong can be
        said, and so that nobody else is taken for it.
        """
        try:
            head = self.head(directory)
        except WorkbenchError:
            return directory.path.name == target
        return target == (head.id if is_id(target) else head.name)

    def require_free(self, name: str, own: DefinitionDirectory) -> None:
        """Refuse a name by which another definition is found already.

        Args:
            own: the definition that shall have it.

        Raises:
            Conflict: ``AGENT_EXISTS``.
        """
        for other in self.directories():
            if other.path != own.path and self._is_called(other, name):
                shown = self.display_path(other.key)
                text = f"{shown} is called '{inert_line(name)}' already. Choose another name."
                raise Conflict("AGENT_EXISTS", text)

    def find_id(self, definition_id: str) -> DefinitionDirectory:
        """The directory of the definition that records name by an id, which may be a word of an older file.

        Raises:
            NotFound: ``AGENT_NOT_FOUND``. BadInput: ``AMBIGUOUS_TARGET``.
        """
        found = [directory for directory, head in self.heads() if head.id == definition_id]
        if len(found) > 1:
            raise self._ambiguous(definition_id, found)
        if not found:
            raise NotFound("AGENT_NOT_FOUND", f"There is no agent with the id {inert_line(definition_id)}.")
        return found[0]

    def _ambiguous(self, target: str, found: Sequence[DefinitionDirectory]) -> BadInput:
        paths = [self.display_path(one.key) for one in found]
        text = f"'{inert_line(target)}' means {len(paths)} agents. Name one by its path: {', '.join(paths)}."
        return BadInput("AMBIGUOUS_TARGET", text, candidates=paths)

    def directories(self, below: Path | None = None) -> Iterator[DefinitionDirectory]:
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
        is_path = _is_path(target)
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

    def listing(self, below: str | None = None) -> DefinitionListing:
        """The definitions, or those below a directory, which may be a definition itself.

        Raises:
            BadInput: ``INVALID_PATH``.
        """
        place = None if below is None else self._places.resolve(below, or_root=True)
        listing = DefinitionListing([], [], place is None or place.is_dir())
        for directory in self.directories(place):
            try:
                listing.found.append((self.display_path(directory.key), self.head(directory)))
            except WorkbenchError as error:
                listing.problems.append(f"{self.display_path(directory.key)}: {error.message}")
        return listing

    def heads(self) -> Iterator[tuple[DefinitionDirectory, DefinitionMetadata]]:
        """The definitions with what they are; those that cannot be read are left out."""
        for directory in self.directories():
            with suppress(WorkbenchError):
                yield directory, self.head(directory)

    def head(self, directory: DefinitionDirectory) -> DefinitionMetadata:
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

    def read(self, directory: DefinitionDirectory) -> Snapshot:
        """A definition as it is now; from the cache, if none of its files has changed.

        Raises:
            WorkbenchError: see `DefinitionDirectory.read`.
        """
        known = self._snapshots.get(directory.key)
        if known is not None and not directory.is_unfinished() and directory.signature() == known.signature:
            return known
        snapshot = directory.read()
        if snapshot.is_settled:
            _put(self._snapshots, directory.key, snapshot, SNAPSHOTS)
        return snapshot

    def servers(self, directory: DefinitionDirectory) -> Collection[str]:
        """The names of a definition's MCP servers; none if it cannot be read."""
        with suppress(WorkbenchError):
            return self.read(directory).definition.mcp_servers.keys()
        return ()

    # Changing.

    def create(self, directory: DefinitionDirectory, definition: Definition) -> Snapshot:
        """Write a new definition.

        Raises:
            Conflict: ``AGENT_EXISTS``, also for its name. Unavailable: see `DefinitionDirectory.change`.
        """
        self.require_free(definition.metadata.name, directory)
        return directory.create(definition)

    def change(self, directory: DefinitionDirectory, edit: Callable[[Definition], Definition]) -> DefinitionChange:
        """Change a definition; see `DefinitionDirectory.change`.

        Raises:
            Conflict: ``AGENT_EXISTS``: another one has its new name.
        """
        before: list[Definition] = []

        def noting(definition: Definition) -> Definition:
            before.append(definition)
            return self._edited(directory, definition, edit)

        after = directory.change(noting)
        return DefinitionChange(before[-1], after)

    def _edited(
        self, own: DefinitionDirectory, before: Definition, edit: Callable[[Definition], Definition]
    ) -> Definition:
        after = edit(before)
        if after.metadata.name != before.metadata.name:
            self.require_free(after.metadata.name, own)
        return after

    def remove(self, directory: DefinitionDirectory) -> tuple[Snapshot, list[str]]:
        """Remove a definition; what it was, and what is left in its directory because it is not of the definition.

        Raises:
            WorkbenchError: see `DefinitionDirectory.read` and `DefinitionDirectory.change`.
        """
        with directory.locked():
            snapshot = directory.read()
            return snapshot, directory.remove()

    def vacant(self, path: str) -> DefinitionDirectory:
        """The directory for a new definition.

        Raises:
            BadInput: ``INVALID_PATH``. Conflict: ``AGENT_EXISTS``.
        """
        return DefinitionDirectory(self._places.vacant(path))


def _is_path(target: str) -> bool:
    return "/" in target or "\\" in target or target in (".", "..")


def _put(cache: dict[str, T], key: str, value: T, size: int) -> None:
    if len(cache) >= size:
        cache.clear()
    cache[key] = value
