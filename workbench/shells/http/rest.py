"""The REST endpoints, as operations declare them: how a request becomes the arguments of one.

There are two families with the same paths. Endpoints without a prefix are those of spec 1's server and return plain
JSON: a list as an array of rows (with the headers `X-Total-Count` and `X-Next-Cursor`), anything else as an object.
Those under `/api` return `{"success": true, "data": …}` with the operation's whole result, like `POST /api/ops/<name>`.
`GET /api/tools` returns its result alone, as spec 4 has it. Both have the same form of errors.

For a new context, and for changes of an agent, the body as a whole is one argument; elsewhere the body's fields are the
arguments. Nothing is decided here: an endpoint is another name for an operation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.errors import BadInput
from workbench.ops import Catalogue, Op

Schema = Mapping[str, Any]


def arguments(
    op: Op, path: Mapping[str, str], query: Iterable[tuple[str, str]], body: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments in a request. The path takes precedence over the body, and the body over the query string.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``: an object in the query string is not JSON.
    """
    body_name = op.rest.body if op.rest else None
    fields = {body_name: dict(body)} if body_name and body else body
    return {**from_query(op, query), **fields, **path}


def by_path(catalogue: Catalogue) -> dict[str, dict[str, Op]]:
    """The operations that have an endpoint, by its path and method."""
    operations: dict[str, dict[str, Op]] = {}
    for op in catalogue.values():
        if op.rest:
            operations.setdefault(op.rest.path, {})[op.rest.method] = op
    return operations


def from_query(op: Op, query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Arguments from a query string: lists by commas or repetition, objects as JSON, the rest as the schema allows.

    A value that fits no schema stays text; the operation's validation reports it.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``.
    """
    arguments: dict[str, Any] = {}
    for name, text in query:
        types = _types(op.input_schema, op.input_schema["properties"].get(name, {}))
        if "array" in types:
            arguments.setdefault(name, []).extend(text.split(","))
        elif "object" in types:
            arguments[name] = _object(op, name, text)
        else:
            arguments[name] = _scalar(types, text)
    return arguments


def _scalar(types: set[str], text: str) -> Any:
    """Convert integers and null. Validation reads booleans and fractions from text itself."""
    if "integer" in types and re.fullmatch(r"-?\d{1,19}", text):
        return int(text)
    return None if text == "null" and "null" in types and "string" not in types else text


def _types(whole: Schema, schema: Schema) -> set[str]:
    """The JSON types that a schema allows."""
    if "$ref" in schema:
        return _types(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
    own = {schema["type"]} if "type" in schema else set()
    return own.union(*(_types(whole, option) for option in schema.get("anyOf", [])))


def _object(op: Op, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        problems = [{"field": name, "reason": "It is not JSON"}]
        raise BadInput(
            "INVALID_ARGUMENTS", f"{op.name}: {name} must be an object, as JSON.", problems=problems
        ) from None
