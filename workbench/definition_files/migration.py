"""Converts definitions from older layouts. What the old files say is never lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.definition_files.directory import DefinitionDirectory, Snapshot
from workbench.definition_files.older import OlderDefinition
from workbench.definition_files.registry import Registry
from workbench.errors import Conflict
from workbench.rules.definitions.conversion import Converted
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.names import is_id


@dataclass(frozen=True, slots=True)
class Migration:
    """A definition that was converted.

    Args:
        source: where it was.
        changed: what is written in another way now, a sentence each.
        left_out: the places of what only the old files contain.
    """

    after: Snapshot
    source: Path
    changed: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion that can be made: of an older definition to a directory, which then has the definition."""

    old: OlderDefinition
    new: DefinitionDirectory
    converted: Converted
    definition: Definition
    keep: bool
    replaces: str | None
    """The id of the older definition, which the new one takes the place of under another id."""

    def make(self, registry: Registry) -> Migration:
        """Write the new files, and then remove the old ones unless they are kept.

        Raises:
            Conflict: ``AGENT_EXISTS``. Unavailable: see `DefinitionDirectory.change`.
        """
        is_same_place = self.new.path == self.old.path
        if is_same_place:
            self.new.complete(self.definition)
        else:
            self.new.create(self.definition)
        if not self.keep:
            self.old.discard(is_converted_here=is_same_place)
        changed = self.converted.changed
        if self.replaces:
            changed = (*changed, new_id(self.replaces, self.definition.metadata.id))
        return Migration(registry.read(self.new), self.old.path, changed, self.converted.left_out)


def new_id(old: str, new: str) -> str:
    """What a conversion says of an id that it replaced."""
    return f"metadata.id: {old!r} is {new} now."


def prepare(registry: Registry, target: str, to: str | None, *, keep: bool, unused: str) -> Conversion:
    """The conversion of a definition to the current layout. Nothing is written yet.

    Args:
        to: a new directory; None: the one where it is, or for a single file one beside it that is named like it.
        keep: the old files stay.
        unused: an id for the new definition, if the older one has none that it can keep.

    Raises:
        WorkbenchError: see `Registry.find`, `Registry.read` and `Registry.vacant`. Conflict: ``NOTHING_TO_MIGRATE``;
            ``MIGRATION_INCOMPLETE``: the old files cannot be removed, because only they contain something.
    """
    old = registry.find(target)
    if not isinstance(old, OlderDefinition):
        registry.head(old)
        raise Conflict("NOTHING_TO_MIGRATE", f"{registry.display_path(old.path)} has the current layout.")
    converted = old.convert()
    if converted.left_out and not keep:
        raise Conflict(
            "MIGRATION_INCOMPLETE",
            f"Without the old files, {', '.join(converted.left_out)} would be lost. Keep them.",
            left_out=list(converted.left_out),
        )
    is_replaced = to is None or not keep
    before = converted.definition.metadata
    shared = any(head.id == before.id and not (is_replaced and one.path == old.path) for one, head in registry.heads())
    metadata = before if is_id(before.id) and not shared else before.model_copy(update={"id": unused})
    definition = converted.definition.model_copy(update={"metadata": metadata})
    replaces = before.id if metadata is not before and not shared else None
    return Conversion(old, _place(registry, old, to), converted, definition, keep, replaces)


def _place(registry: Registry, old: OlderDefinition, to: str | None) -> DefinitionDirectory:
    if to is None and not old.is_single_file:
        return DefinitionDirectory(old.path)
    return registry.vacant(to or str(old.path.with_suffix("")))
