"""Tables of the arguments and results that a JSON Schema describes. Anybody may have written it: it may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.present.tables import Table

DEPTH = 5
"""How far a type is followed: one that refers to itself would have no end."""


def arguments_table(schema: Any) -> Table:
    """The name, type, default and description of each argument."""
    named = schema.get("required") if isinstance(schema, Mapping) else None
    required = named if isinstance(named, list) else ()
    rows = [
        [name, _type(part, schema), "required" if name in required else _default(part), _description(part)]
        for name, part in _properties(schema).items()
    ]
    return Table(["name", "type", "default", "description"], rows, "It takes none.")


def result_table(schema: Any) -> Table:
    """The name, type and description of each field of a result."""
    rows = [[name, _type(part, schema), _description(part)] for name, part in _properties(schema).items()]
    return Table(["name", "type", "description"], rows, "It is not declared.")


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = _resolve(schema, schema).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _resolve(part: Any, schema: Any) -> Mapping[str, Any]:
    """The definition that a part of a schema refers to, or the part itself; empty if it is no object."""
    if not isinstance(part, Mapping):
        return {}
    if "$ref" not in part:
        return part
    definitions = schema.get("$defs")
    definition = definitions.get(str(part["$ref"]).rpartition("/")[2]) if isinstance(definitions, Mapping) else None
    return definition if isinstance(definition, Mapping) else {}


def _type(part: Any, schema: Any, depth: int = DEPTH) -> str:
    """The type of a value, in words."""
    resolved = _resolve(part, schema)
    if depth == 0:
        return "anything"
    for choice in ("anyOf", "oneOf"):
        if isinstance(branches := resolved.get(choice), list) and branches:
            return " or ".join(dict.fromkeys(_type(branch, schema, depth - 1) for branch in branches))
    if isinstance(resolved.get("enum"), list):
        return " | ".join(map(str, resolved["enum"]))
    if "const" in resolved:
        return str(resolved["const"])
    kind = resolved.get("type", "anything")
    if kind == "array":
        return f"list of {_type(resolved.get('items'), schema, depth - 1)}"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _default(part: Any) -> str:
    default = part.get("default") if isinstance(part, Mapping) else None
    return "" if default in (None, "", [], {}) else str(default)


def _description(part: Any) -> str:
    return str(part.get("description", "")) if isinstance(part, Mapping) else ""
