"""Masks secrets in the arguments and results of tools: those that a schema marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.rules.secrets.forms import MASK


def masked(value: Any, schema: Mapping[str, Any] | bool) -> Any:
    """A JSON value with what its schema marks as ``format: password`` replaced by `MASK`.

    Args:
        schema: the JSON Schema of the value; references are followed within it.
    """
    return _marked_masked(value, schema, schema, frozenset())


def marked(value: Any, schema: Mapping[str, Any] | bool) -> frozenset[str]:
    """The texts in a JSON value that its schema marks as ``format: password``."""
    return frozenset(_differing(value, masked(value, schema)))


def _differing(value: Any, shown: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(shown, dict):
        for key, one in value.items():
            yield from _differing(one, shown[key])
    elif isinstance(value, list) and isinstance(shown, list):
        for one, other in zip(value, shown, strict=True):
            yield from _differing(one, other)
    elif value != shown:
        yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | list():
            for one in value.values() if isinstance(value, dict) else value:
                yield from _texts(one)
        case int() | float() if not isinstance(value, bool):
            yield repr(value)


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
