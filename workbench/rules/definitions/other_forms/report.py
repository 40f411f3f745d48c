"""What an import reports while it reads: what is written in another way, and what has no place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.rules.definitions.conversion import Converted
from workbench.rules.definitions.layout import validated
from workbench.rules.definitions.model import Definition, normal
from workbench.rules.definitions.names import fitting

SUMMARY = 2_000
"""Characters of the longest description."""


@dataclass(slots=True)
class ImportReport:
    """Collects the report of one import.

    Args:
        changed: what is written in another way now, a sentence each.
        left_out: the places of what has no place here, some with the reason.
    """

    changed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def leave_out(self, place: str, reason: str = "") -> None:
        """Note something that has no place here."""
        self.left_out.append(f"{place}: {reason}" if reason else place)

    def unknown(self, given: Mapping[str, Any], known: Iterable[str], place: str = "") -> None:
        """Note the keys that no part of a definition is made of."""
        for key in given:
            if key not in known:
                self.leave_out(f"{place}.{key}" if place else key)

    def description(self, value: Any, place: str = "description") -> str:
        """A description, as long as it may be."""
        text = "" if value is None else str(value).strip()
        if len(text) > SUMMARY:
            self.leave_out(place, f"all after its first {SUMMARY:,} characters")
        return text[:SUMMARY].rstrip()


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file of another program says.

    Args:
        form: of the file, such as ``claude-subagent``.
        name: the one that it gives itself; empty if it gives none.
    """

    form: str
    name: str
    converted: Converted


def made(
    form: str, name: Any, fields: Mapping[str, Any], report: ImportReport, definition_id: str, file: str
) -> Imported:
    """What a file says, from the fields of a definition.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    own = str(name).strip() if name is not None else ""
    metadata = {"id": definition_id, "name": "unnamed", **fields.get("metadata", {})}
    definition = validated(Definition, {**fields, "metadata": metadata}, file or form)
    return Imported(form, own, Converted(definition, tuple(report.changed), tuple(report.left_out)))


def rule(name: str, text: str, report: ImportReport, **more: Any) -> dict[str, Any] | None:
    """A rule; None if its text is empty."""
    if not normal(text).strip():
        report.leave_out("its text", "it is empty")
        return None
    return {"name": fitting(name), "text": text, **more}
