"""How two definitions differ, file by file, as text. Secrets are masked, and the time of creation does not count."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from workbench.rules.definitions import layout
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets.written_out import masked

MOST_LINES = 5_000
"""Lines of a file up to which its patch is made: the time that takes can grow with their square."""
MOST_CHARACTERS = 400_000
"""Characters of all patches together."""
_CONTEXT = 3


class Status(StrEnum):
    """What happened to a file."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class DefinitionDifference:
    """How a file differs.

    Args:
        patch: a unified diff; None if it is too long.
    """

    path: str
    status: Status
    patch: str | None


def differences(old: Definition, new: Definition) -> list[DefinitionDifference]:
    """The files that differ, by path, as both definitions are written to empty directories."""
    room, found = MOST_CHARACTERS, []
    for path, before, after in _changes(_files(old), _files(new)):
        patch = _patch(path, before or "", after or "")
        if patch is not None and len(patch) > room:
            patch = None
        room -= len(patch or "")
        found.append(DefinitionDifference(path, _status(before, after), patch))
    return found


def _files(definition: Definition) -> dict[str, str]:
    metadata = definition.metadata.model_copy(update={"created": None})
    shown = masked(definition.model_copy(update={"metadata": metadata}))
    return {path: text for path, text in layout.change({}, shown).items() if text is not None}


def _changes(old: dict[str, str], new: dict[str, str]) -> Iterator[tuple[str, str | None, str | None]]:
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            yield path, old.get(path), new.get(path)


def _status(before: str | None, after: str | None) -> Status:
    if before is None:
        return Status.ADDED
    return Status.REMOVED if after is None else Status.CHANGED


def _patch(path: str, before: str, after: str) -> str | None:
    old, new = (text.split("\n")[:-1] for text in (before, after))  # each ends with a line break, or is empty
    if max(len(old), len(new)) > MOST_LINES:
        return None
    return "\n".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=_CONTEXT, lineterm="")) + "\n"
