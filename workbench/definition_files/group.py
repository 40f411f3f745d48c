"""Changes of several definitions: all of them are made, or none, whatever is killed meanwhile.

All are locked and prepared; then a file, the mark, is created, and from then on all of them count. Whoever finds one
that a killed process left makes it if the mark exists, and drops it if not. The mark of a killed process stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.definition_files.directory import DefinitionDirectory, Pending
from workbench.definition_files.journal import StagedChange
from workbench.rules.definitions.model import Definition
from workbench.system import atomic_file


@dataclass(frozen=True, slots=True)
class Replacement:
    """A definition that replaces another. `before` is None for a new one, `after` for one that is removed."""

    directory: DefinitionDirectory
    before: Definition | None
    after: Definition | None


def replace_together(replacements: Sequence[Replacement]) -> bool:
    """Replace definitions, each in another directory; False if one of them is not as it was `before`. Blocks.

    Raises:
        WorkbenchError: see `DefinitionDirectory.change`; ``PROJECT_UNWRITABLE``: nothing is changed, or, if the disk
            fails in between, the next process that reads each definition makes the rest of the change.
    """
    ordered = sorted(replacements, key=lambda one: one.directory.path)  # so that no two wait for each other
    with ExitStack() as held:
        for one in ordered:
            held.enter_context(one.directory.locked())
        found = {one.directory: one.directory.pending(one.before, one.after) for one in ordered}
        changes = {directory: change for directory, change in found.items() if change is not None}
        if len(changes) < len(ordered):
            return False
        if not _carry_out(changes):
            return False
        for one in ordered:
            if one.after is None:
                one.directory.remove_empty()
    return True


def _carry_out(changes: Mapping[DefinitionDirectory, Pending]) -> bool:
    if not changes:
        return True
    mark = next(iter(changes)).journal.new_mark()
    plans = _prepare(changes, mark)
    if plans is None:
        return False
    for directory, plan in plans.items():
        directory.journal.carry_out(plan)
    with suppress(OSError):
        mark.unlink()
    return True


def _prepare(
    changes: Mapping[DefinitionDirectory, Pending], mark: Path
) -> dict[DefinitionDirectory, StagedChange] | None:
    """Prepare all changes and let them count; None if something has changed meanwhile."""
    is_made = False
    try:
        plans = {directory: directory.journal.prepare(change.changes, mark) for directory, change in changes.items()}
        if all(directory.is_at(change.before) for directory, change in changes.items()):
            atomic_file.replace(mark, "")
            is_made = True
        return plans if is_made else None
    finally:
        if not is_made:
            _withdraw(changes)


def _withdraw(changes: Mapping[DefinitionDirectory, Pending]) -> None:
    for directory, change in changes.items():
        directory.journal.withdraw()
        if not change.before:
            directory.remove_empty()
