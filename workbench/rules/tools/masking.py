"""Masks secrets in the arguments and results of tools: those that a schema marks, and those that are known."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

MASK = "••••••"
SHORTEST_SECRET = 6
"""Shorter values are not searched for in texts: they would occur by chance."""


def masked(value: Any, schema: Mapping[str, Any] | bool, secrets: Collection[str] = ()) -> Any:
    """A JSON value with what its schema marks as ``format: password``, and every known secret, replaced by `MASK`.

    Args:
        schema: the JSON Schema of the value; references are followed within it.
        secrets: values that are secret wherever they occur, also within longer texts and in keys.
    """
    return _known_masked(_marked_masked(value, schema, schema, frozenset()), _searched(secrets))


def _marked_masked(value: Any, schema: Any, root: Any, followed: frozenset[str]) -> Any:
    if not isinstance(schema, Mapping):
        return value
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return value if value is None else MASK
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in _list(schema.get(key)):
            value = _marked_masked(value, branch, root, followed)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        value = _marked_masked(value, _target(root, reference), root, followed | {reference})
    if isinstance(value, dict):
        return {key: _marked_masked(one, _of_key(schema, key), root, frozenset()) for key, one in value.items()}
    if isinstance(value, list):
        return [_marked_masked(one, _of_index(schema, index), root, frozenset()) for index, one in enumerate(value)]
    return value


def _of_key(schema: Mapping[str, Any], key: str) -> Any:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    return schema.get("additionalProperties")


def _of_index(schema: Mapping[str, Any], index: int) -> Any:
    first = _list(schema.get("prefixItems"))
    return first[index] if index < len(first) else schema.get("items")


def _target(root: Any, reference: str) -> Any:
    """What a reference such as ``#/$defs/Key`` names; None if it is not in the schema."""
    found = root
    path, _, fragment = reference.partition("#")
    if path:
        return None
    for part in fragment.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _searched(secrets: Collection[str]) -> list[str]:
    """The texts to search for: secrets, their lines, and both as JSON writes them; those that contain others first."""
    parts = {part for secret in secrets for part in (secret, *secret.splitlines())}
    written = {json.dumps(part, ensure_ascii=is_ascii)[1:-1] for part in parts for is_ascii in (True, False)}
    return sorted((text for text in parts | written if len(text) >= SHORTEST_SECRET), key=len, reverse=True)


def _known_masked(value: Any, secrets: list[str]) -> Any:
    if not secrets:
        return value
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case dict():
            return {_known_masked(key, secrets): _known_masked(one, secrets) for key, one in value.items()}
        case list():
            return [_known_masked(one, secrets) for one in value]
        case int() | float() if not isinstance(value, bool):
            return MASK if any(secret in repr(value) for secret in secrets) else value
    return value
