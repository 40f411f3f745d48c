"""`wb.help`: what operations do, take, return and fail with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import NotFound
from workbench.model import Level
from workbench.ops import collect
from workbench.ops.operation import Op
from workbench.rules.spelling import similar
from workbench.services import SERVICES
from workbench.tables import Page, Table

WHO = {
    Level.ANONYMOUS: "anyone",
    Level.READ: "agents",
    Level.WORKER: "agents that may write",
    Level.PLANNER: "planners",
    Level.OPERATOR: "the operator",
}


def described(name: str | None) -> Table | Page:
    """An operation, or all.

    Raises:
        NotFound: ``UNKNOWN_OPERATION``.
    """
    operations = collect(SERVICES)
    if name is None:
        rows = [[one.name, _who(one), one.summary] for one in operations.values()]
        return Table(
            ["operation", "who may call it", "what it does"], rows, note='wb.help("create_task") describes create_task.'
        )
    if name not in operations:
        near = similar(name, operations)
        hint = f"Did you mean {near}?" if near else "wb.help() lists them."
        raise NotFound("UNKNOWN_OPERATION", f"There is no operation {name!r}. {hint}")
    return _page(operations[name])


def _page(operation: Op) -> Page:
    """Its help, arguments and result."""
    schema = operation.input_schema
    required = set(schema.get("required", ()))
    rows = [
        [name, _type(part, schema), _default(name, part, required), part.get("description", "")]
        for name, part in schema.get("properties", {}).items()
    ]
    result = operation.output_schema
    fields = [[name, _type(part, result), part.get("description", "")] for name, part in _fields(result).items()]
    about = Table([], [], f"{operation.help}\n\nWho may call it: {_who(operation)}.")
    return Page(
        [
            (operation.name, about),
            ("Arguments", Table(["name", "type", "default", "description"], rows, "It takes none.")),
            ("Result", Table(["name", "type", "description"], fields, "Nothing.")),
        ],
        {"name": operation.name, "arguments": schema, "result": result},
    )


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _resolved(schema, schema).get("properties", {})
    return found


def _resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a part of a schema refers to."""
    if "$ref" not in part:
        return part
    found: Mapping[str, Any] = schema["$defs"][part["$ref"].rpartition("/")[2]]
    return found


def _type(part: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """The type of a value, in words."""
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(_type(branch, schema) for branch in part["anyOf"]))
    found = _resolved(part, schema)
    if "enum" in found:
        return " | ".join(map(str, found["enum"]))
    if "const" in found:
        return str(found["const"])
    if found.get("type") == "array":
        return f"list of {_type(found.get('items', {}), schema)}"
    return str(found.get("type", "anything"))


def _default(name: str, part: Mapping[str, Any], required: set[str]) -> str:
    if name in required:
        return "required"
    return "" if part.get("default") in (None, "", [], {}) else str(part["default"])


def _who(operation: Op) -> str:
    """Who may call it."""
    return WHO[Level(operation.allow)]
