"""The difference table of runs: a row for each parameter, metric and circumstance, a column for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECTIONS = ("run", "parameters", "metrics", "git", "definitions", "environment")
Facts = Mapping[str, Mapping[str, Any]]
"""What is known of a run: values by name, by section. Of an object in the environment, each value is compared."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table.

    Args:
        values: one for each run, None where the run has none.
    """

    section: str
    name: str
    values: tuple[Any, ...]

    @property
    def differs(self) -> bool:
        """Whether the runs have different values."""
        first, *others = self.values
        return not all(_same(first, other) for other in others)


def lines(runs: Sequence[Facts]) -> list[Line]:
    """All rows, by section; within one, names in the order in which they first appear.

    What a sweep tries is a parameter and also a circumstance: a circumstance that is also a parameter is left out.
    """
    flat = [{**run, "environment": _flat(run.get("environment", {}))} for run in runs]
    found = [
        Line(section, name, tuple(run.get(section, {}).get(name) for run in flat))
        for section in SECTIONS
        for name in dict.fromkeys(name for run in flat for name in run.get(section, {}))
    ]
    tried = [(line.name, line.values) for line in found if line.section == "parameters"]
    return [line for line in found if line.section != "environment" or (line.name, line.values) not in tried]


def _flat(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values by name; those of an object as `object.name`, such as `packages.numpy`."""
    return {
        f"{name}.{inner}" if inner else name: each
        for name, value in values.items()
        for inner, each in (value.items() if isinstance(value, Mapping) else [("", value)])
    }


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; 1 equals 1.0, but not true."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
