"""Checks the arguments of a call against the JSON Schema of its tool. The schema may come from an MCP server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from workbench.rules.naming import similar
from workbench.rules.wire.json_schema import draft_of

SCHEMAS = 1_000
"""Schemas whose validators are kept."""
PROBLEMS = 20
"""How many problems are looked for."""
REASON = 500
"""Characters of a reason."""


def problems(schema: str, arguments: Any) -> list[dict[str, str]]:
    """What is wrong with arguments, or with another value: field and reason, never values.

    Args:
        schema: JSON Schema as JSON text, of the draft that it declares. A schema that is itself wrong, or that refers
            to another place, is left to the tool.
    """
    validator = _validator(schema)
    if validator is None:
        return []
    try:
        found = list(islice(validator.iter_errors(_plain(arguments)), PROBLEMS))
    except Exception:  # the schema may be wrong: an unknown reference, an endless recursion
        return []
    return [{"field": ".".join(map(str, one.absolute_path)) or "arguments", "reason": _reason(one)} for one in found]


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def is_loaded() -> bool:
    """Whether `problems` answers at once. Loading the library that it uses takes seconds where all of its optional
    packages are installed, as Jupyter does; until then, call `problems` in a thread.
    """
    return _library.cache_info().currsize > 0


@cache
def _library() -> tuple[Any, Any]:
    """Makes validators that leave regular expressions to the tool, as some take forever and the schema may come from
    elsewhere; and an empty registry of references."""
    from jsonschema import validators
    from referencing import Registry

    unchecked: Any = {"pattern": None, "patternProperties": None}
    return cache(lambda draft: validators.extend(draft, unchecked)), Registry()  # type: ignore[no-untyped-call]


@lru_cache(SCHEMAS)
def _validator(schema: str) -> Any:
    found = json.loads(schema)
    without_patterns, registry = _library()
    try:
        return without_patterns(draft_of(found))(found, registry=registry)
    except ValueError:
        return None


def _reason(error: Any) -> str:
    """Why a value does not fit, without the value."""
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return f"required, but missing: {', '.join(missing)}"
        case "additionalProperties":
            known = [*error.schema.get("properties", {})]
            return "; ".join(_unknown(name, known) for name in error.instance if name not in known)[:REASON]
        case "type":
            return f"must be of type {error.validator_value}"
        case "enum" | "const":
            return f"must be one of {error.validator_value}"
    return f"does not satisfy {error.validator}: {error.validator_value}"[:REASON]


def _unknown(name: str, known: Sequence[str]) -> str:
    meant = similar(name, known)
    return f"unknown name {name}{meant and f' (did you mean {meant}?)'}"
