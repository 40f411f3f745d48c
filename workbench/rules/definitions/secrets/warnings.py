"""Warnings about secrets that are written out where a reference would keep them out of files and of git."""

from __future__ import annotations

from collections import Counter

from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets.references import variable
from workbench.rules.definitions.secrets.written_out import places
from workbench.rules.secrets.executed import warning_of


def warnings_of(after: Definition, before: Definition | None = None) -> list[str]:
    """What is wrong with the secrets that a definition has written out, and what to do.

    Args:
        before: as it was: what it had then is not named again.
    """
    found = Counter(places(after)) - Counter(places(before) if before else ())
    return list(dict.fromkeys(_warning(place) for place, _ in found))


def warning(key: str, file: str) -> str:
    """What is wrong with a secret that is written out, and what to do."""
    return f"{key} is written out in {file}. Use a reference such as {variable(key)} instead."


def _warning(place: str) -> str:
    section, _, rest = place.partition(".")
    if section in ("providers", "mcpServers"):
        return warning(rest.partition(".")[2], "agent.yaml, and git would keep it")
    return warning_of(place)
