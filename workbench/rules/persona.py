"""Parses a persona: Markdown with YAML front matter: `name`, `role`, `lease_seconds`, `check`, `budget`, `needs`, keys
of a workplace.

Other keys are ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import BadInput
from workbench.model import Role
from workbench.rules import budgets, front_matter, needs, workplace
from workbench.rules.naming import NOTHING
from workbench.rules.tasks import check
from workbench.rules.wire import json_safety
from workbench.rules.yaml_text import InvalidYaml

SUFFIX = "_prompt"
"""An optional suffix of the file name, after the id."""

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")


@dataclass(frozen=True)
class PersonaText:
    """A parsed persona."""

    id: str
    name: str
    role: Role
    definition: str
    sha256: str
    lease_seconds: float | None = None
    workplace: Mapping[str, Any] = field(default_factory=dict)
    """The keys of a workplace that it states; see `workbench.rules.workplace.parse`."""
    check: Any = None
    """The check of its tasks that have none of their own; see `workbench.rules.tasks.check`."""
    budget: Mapping[str, Any] | None = None
    """What its tasks may spend together; see `workbench.rules.budgets`."""
    needs: Mapping[str, Any] | None = None
    """What its tasks need that do not say it; see `workbench.rules.needs`."""


def check_id(persona_id: str) -> str:
    """Check the id of a persona, which is also a file name.

    Raises:
        BadInput: ``PERSONA_INVALID``.
    """
    if persona_id in NOTHING or not _ID.fullmatch(persona_id):
        raise BadInput(
            "PERSONA_INVALID",
            "A persona's id has 1 to 50 lower-case letters, digits, '_' or '-', begins with a letter or digit, and is "
            "not none or null.",
        )
    return persona_id


def parse(persona_id: str, text: str) -> PersonaText:
    """Parse a persona, with any line endings. Its id is the file's stem in lower case, without ``_prompt``.

    Raises:
        BadInput: ``PERSONA_INVALID``.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    meta, body = _front_matter(persona_id, text)
    try:
        role = Role(str(meta.get("role", Role.WORKER)))
    except ValueError:
        raise BadInput(
            "PERSONA_INVALID", f"Persona {persona_id}: `role` must be worker or planner.", persona_id=persona_id
        ) from None
    clean_id = persona_id.lower().removesuffix(SUFFIX)
    name = str(meta.get("name") or clean_id.replace("_", " ").title())
    try:
        json_safety.check([name, text])
    except ValueError as error:
        raise BadInput("PERSONA_INVALID", f"Persona {persona_id}: {error}.", persona_id=persona_id) from None
    return PersonaText(
        id=clean_id,
        name=name,
        role=role,
        definition=body.strip(),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        lease_seconds=_lease(persona_id, meta.get("lease_seconds")),
        workplace=_workplace(persona_id, meta),
        check=_term(persona_id, "check", check.in_short, meta),
        budget=_term(persona_id, "budget", budgets.in_short, meta),
        needs=_term(persona_id, "needs", needs.in_short, meta),
    )


def _lease(persona_id: str, seconds: object) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 86_400:
        raise BadInput(
            "PERSONA_INVALID",
            f"Persona {persona_id}: `lease_seconds` must be a positive number up to 86400.",
            persona_id=persona_id,
        )
    return float(seconds)


def _workplace(persona_id: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return workplace.parse({key: meta[key] for key in workplace.KEYS if key in meta}, f"Persona {persona_id}")
    except BadInput as error:
        raise BadInput("PERSONA_INVALID", error.message, persona_id=persona_id) from None


def _term(persona_id: str, key: str, in_short: Callable[[Any], Any], meta: Mapping[str, Any]) -> Any:
    try:
        return in_short(meta.get(key))
    except ValueError as error:
        text = f"Persona {persona_id}: `{key}`: {error}."
        raise BadInput("PERSONA_INVALID", text, persona_id=persona_id) from None


def _front_matter(persona_id: str, text: str) -> tuple[dict[str, Any], str]:
    try:
        return front_matter.split(text)
    except InvalidYaml as error:
        place = f"line {error.line}: " if error.line else ""
        raise BadInput("PERSONA_INVALID", f"Persona {persona_id}: {place}{error}.") from None
