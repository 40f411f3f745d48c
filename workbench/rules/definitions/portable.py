"""A definition as one file, to keep or to give away: YAML without secrets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import ValidationError

from workbench.errors import BadInput
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets.references import variable
from workbench.rules.definitions.secrets.written_out import replace_secrets
from workbench.rules.reasons import reason
from workbench.rules.yaml_text import InvalidYaml, load, write

LARGEST = 4_000_000
"""Characters of the longest file that is written, or read."""
VERSION = 1
KEY = "workbenchAgent"
"""What tells an export: its value is the version of the format."""
_HEAD = "# An agent definition. Import it with `workbench define import FILE`, or the tool agent_import.\n"


def export_text(definition: Definition) -> tuple[str, dict[str, str]]:
    """The file of a definition, and the secrets that are not in it.

    A secret that is written out becomes a reference to an environment variable; references stay.

    Returns:
        The text; and each reference that took the place of a secret, by the place such as
        ``providers.openai.OPENAI_API_KEY``.

    Raises:
        BadInput: ``TOO_LARGE``.
    """
    safe, replaced = without_secrets(definition)
    fields = safe.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = _HEAD + write({KEY: VERSION} | fields)
    if len(text) > LARGEST:
        raise BadInput("TOO_LARGE", f"The file would exceed {LARGEST:,} characters. Copy the directory instead.")
    return text, replaced


def without_secrets(definition: Definition) -> tuple[Definition, dict[str, str]]:
    """A definition with references in place of the secrets that it has written out; the references, by place."""
    replaced: dict[str, str] = {}

    def refer(place: str, secret: str) -> str:
        replaced[place := _unused(place, replaced)] = reference = _reference(place)
        return reference

    return replace_secrets(definition, refer, whole=True), replaced


def import_text(text: str) -> Definition:
    """The definition in a file that `export_text` wrote, or a person has edited since.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``; `details.line` says where, if that is known.
    """
    try:
        fields = load(text)
    except InvalidYaml as error:
        where = f"line {error.line}: " if error.line else ""
        raise _invalid(f"{where}{error}", **({"line": error.line} if error.line else {})) from None
    if not isinstance(fields, dict) or KEY not in fields:
        raise _invalid(f"it is no exported agent: it has no {KEY!r}")
    if (version := fields.pop(KEY)) != VERSION:
        raise _invalid(f"its format is {version!r}; this version of Workbench reads {VERSION}")
    try:
        return Definition.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _invalid(f"{'.'.join(map(str, first['loc']))}: {reason(first)}") from None


def _unused(place: str, taken: Collection[str]) -> str:
    """A place as it is called; with a number, if another secret is called so."""
    names = (place, *(f"{place}.{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _reference(place: str) -> str:
    """A reference to a variable that is named like the key; of a server, after its name; of a text, like its place."""
    section, *names = place.split(".", 2)
    if section not in ("providers", "mcpServers"):
        return variable(place)
    owner, key = names
    return variable(key) if section == "providers" else variable(key, owner)


def _invalid(reason: str, **details: Any) -> BadInput:
    return BadInput("INVALID_CONFIGURATION", f"This file cannot be imported: {reason}.", **details)
