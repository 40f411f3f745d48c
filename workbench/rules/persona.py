"""A persona's text: Markdown with YAML front matter (`name`, `role`, nothing else is read)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import yaml

from workbench.errors import BadInput
from workbench.model import Role
from workbench.rules.plan import NOT_YAML


@dataclass(frozen=True)
class PersonaText:
    """A parsed persona."""

    id: str
    name: str
    role: Role
    definition: str
    sha256: str


def parse(persona_id: str, text: str) -> PersonaText:
    """Read a persona; its id is the file's stem in lower case, without ``_prompt``.

    Raises:
        BadInput: ``PERSONA_INVALID``.
    """
    meta, body = _front_matter(persona_id, text)
    try:
        role = Role(str(meta.get("role", Role.WORKER)))
    except ValueError:
        raise BadInput(
            "PERSONA_INVALID", f"Persona {persona_id}: `role` is worker or planner.", persona_id=persona_id
        ) from None
    clean_id = persona_id.lower().removesuffix("_prompt")
    return PersonaText(
        id=clean_id,
        name=str(meta.get("name") or clean_id.replace("_", " ").title()),
        role=role,
        definition=body.strip(),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def _front_matter(persona_id: str, text: str) -> tuple[dict[str, object], str]:
    if not text.startswith("---\n"):
        return {}, text
    head, found, body = text[4:].partition("\n---\n")
    if not found:
        raise BadInput("PERSONA_INVALID", f"Persona {persona_id}: the front matter is not closed by `---`.")
    try:
        meta = yaml.safe_load(head)
    except NOT_YAML as error:
        raise BadInput("PERSONA_INVALID", f"Persona {persona_id}: {error}") from None
    if not isinstance(meta, dict):
        raise BadInput("PERSONA_INVALID", f"Persona {persona_id}: the front matter is not a mapping.")
    return meta, body
