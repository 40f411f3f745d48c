"""Changes of definitions that are collected in memory, and then made all together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.definition_files.directory import DefinitionDirectory, Snapshot
from workbench.definition_files.group import Replacement
from workbench.definition_files.older import OlderDefinition
from workbench.definition_files.registry import DefinitionChange, Registry
from workbench.errors import Conflict, NotFound
from workbench.rules.definitions.composition import content_hash
from workbench.rules.definitions.model import Definition, DefinitionMetadata
from workbench.store.base import Tx


class RegistryDraft(Registry):
    """A registry whose changes are visible in it alone until they are committed.

    Args:
        registry: the definitions that are changed.
    """

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry._places.base, registry.roots)
        self._registry = registry
        self._drafted: dict[str, _Drafted] = {}
        self.records: list[Callable[[Tx], None]] = []
        """What is to be written to the store with the changes."""

    # Reading.

    def directories(self, below: Path | None = None) -> Iterator[DefinitionDirectory]:
        """See `Registry.directories`."""
        known = (one for one in self._registry.directories(below) if one.key not in self._drafted)
        mine = (one.directory for one in self._drafted.values() if one.wanted and _is_below(one.directory, below))
        return iter(sorted((*known, *mine), key=lambda one: one.key))

    def head(self, directory: DefinitionDirectory) -> DefinitionMetadata:
        """See `Registry.head`."""
        if directory.key in self._drafted:
            return self.read(directory).definition.metadata
        return self._registry.head(directory)

    def read(self, directory: DefinitionDirectory) -> Snapshot:
        """See `Registry.read`."""
        drafted = self._drafted.get(directory.key)
        if drafted is None:
            return self._registry.read(directory)
        if drafted.wanted is None:
            raise NotFound("AGENT_NOT_FOUND", f"There is no agent in {directory.path}: it was deleted before.")
        return Snapshot(directory.path, drafted.wanted, content_hash(drafted.wanted), (), is_settled=True)

    def is_drafted(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is of a change, and not of what was found."""
        drafted = self._drafted.get(str(snapshot.path))
        return drafted is not None and drafted.found != snapshot.definition

    # Changing.

    def vacant(self, path: str) -> DefinitionDirectory:
        """See `Registry.vacant`."""
        directory = super().vacant(path)
        for other in self._drafted.values():
            if other.wanted and _overlap(other.directory.path, directory.path):
                shown = self.display_path(other.directory.path)
                raise Conflict("AGENT_EXISTS", f"{path!r} is not free: {shown} is created before.")
        return directory

    def create(self, directory: DefinitionDirectory, definition: Definition) -> Snapshot:
        """See `Registry.create`."""
        directory.require_empty()
        self.require_free(definition.metadata.name, directory)
        return self._keep(directory, None, definition)

    def change(self, directory: DefinitionDirectory, edit: Callable[[Definition], Definition]) -> DefinitionChange:
        """See `Registry.change`."""
        before = self._changeable(directory).definition
        return DefinitionChange(before, self._keep(directory, before, self._edited(directory, before, edit)))

    def remove(self, directory: DefinitionDirectory) -> tuple[Snapshot, list[str]]:
        """See `Registry.remove`."""
        before = self._changeable(directory)
        self._drafted.setdefault(directory.key, _Drafted(directory, before.definition, None)).wanted = None
        return before, directory.foreign()

    def replacements(self) -> list[Replacement]:
        """What is changed by now."""
        found = (Replacement(one.directory, one.found, one.wanted) for one in self._drafted.values())
        return [one for one in found if one.before != one.after]

    def _changeable(self, directory: DefinitionDirectory) -> Snapshot:
        """A definition as it is in the draft.

        Raises:
            Conflict: ``OLDER_LAYOUT``.
        """
        if isinstance(directory, OlderDefinition):
            directory.locked()  # raises
        return self.read(directory)

    def _keep(self, directory: DefinitionDirectory, before: Definition | None, wanted: Definition) -> Snapshot:
        self._drafted.setdefault(directory.key, _Drafted(directory, before, None)).wanted = wanted
        return self.read(directory)


@dataclass
class _Drafted:
    """A definition that is changed: as it was found, None if it is new; and as it shall be, None if it is removed."""

    directory: DefinitionDirectory
    found: Definition | None
    wanted: Definition | None


def _is_below(directory: DefinitionDirectory, folder: Path | None) -> bool:
    return folder is None or directory.path.is_relative_to(folder)


def _overlap(one: Path, other: Path) -> bool:
    """Whether one lies in the other, or they differ by upper and lower case only."""
    return one.is_relative_to(other) or other.is_relative_to(one) or str(one).lower() == str(other).lower()
