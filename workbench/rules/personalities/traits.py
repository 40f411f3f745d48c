"""Traits as people write them: a dict from names to values, or to values with a description (spec 5, 4.4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from workbench.errors import BadInput, Conflict
from workbench.rules.personalities.profile import MOST_TRAITS, PersonalityTrait
from workbench.rules.reasons import reason
from workbench.rules.wire import json_safety

LARGEST_TRAITS = 240_000
"""Bytes of all traits of a profile, as JSON."""
LARGEST_NUMBER = 2**53 - 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .:-]{0,127}")
_MARKS = frozenset({"value", "description", "is_callable"})
_FIELDS = frozenset(PersonalityTrait.model_fields) - {"name"}


def parse(traits: Mapping[str, Any]) -> list[PersonalityTrait]:
    """Traits from a dict.

    A value is a trait's value, and decides its type. An object is a whole trait if it has only fields of traits, and
    among them `value`, `description` or `is_callable`; any other object is a value.

    Raises:
        BadInput: ``INVALID_TRAIT``: `details.trait` is its name.
    """
    return [_trait(name, value) for name, value in traits.items()]


def changed(traits: Iterable[PersonalityTrait], changes: Mapping[str, Any]) -> list[PersonalityTrait]:
    """Traits with changes of them, as `parse` takes them.

    A new value of a trait that exists keeps its description. `None` removes a trait; ``{"value": None}`` is the value
    `None`.

    Raises:
        BadInput: ``INVALID_TRAIT``.
    """
    result = {trait.name: trait for trait in traits}
    for name, change in changes.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = _updated(result.get(name), name, change)
    return list(result.values())


def require_room(traits: Sequence[PersonalityTrait]) -> None:
    """Refuse more traits than a profile may have.

    Raises:
        BadInput: ``TOO_MANY_TRAITS``, ``TRAITS_TOO_LARGE``.
    """
    if len(traits) > MOST_TRAITS:
        raise BadInput("TOO_MANY_TRAITS", f"A profile may have at most {MOST_TRAITS:,} traits. Remove some.")
    size = sum(len(trait.model_dump_json().encode()) for trait in traits)
    if size > LARGEST_TRAITS:
        raise BadInput(
            "TRAITS_TOO_LARGE",
            f"The traits have {size:,} bytes as JSON; a profile may have {LARGEST_TRAITS:,}. Publish less, or a "
            "link to it.",
        )


def require_no_functions(changes: Iterable[str], functions: Iterable[str]) -> None:
    """Refuse changes of traits that are functions: what they are, their code decides.

    Raises:
        Conflict: ``TRAIT_IS_FUNCTION``.
    """
    if bound := sorted(set(changes) & set(functions)):
        raise Conflict(
            "TRAIT_IS_FUNCTION",
            f"{bound[0]} is a function that a process offers. Change the function there, or choose another name.",
            traits=bound,
        )


def _updated(before: PersonalityTrait | None, name: str, change: Any) -> PersonalityTrait:
    if before is None or _is_whole(change):
        return _trait(name, change)
    fields = before.model_dump() | {"value": change, "type": type(change).__name__}
    return _made(name, fields)


def _trait(name: str, value: Any) -> PersonalityTrait:
    if not _is_whole(value):
        return _made(name, PersonalityTrait.from_value(_checked(name), _plain(name, value)).model_dump())
    of_value = {"type": type(value.get("value")).__name__, "description": f"{name} trait"}
    return _made(name, of_value | dict(value))


def _is_whole(value: Any) -> bool:
    """Whether it is a trait with its fields, and no value."""
    return isinstance(value, Mapping) and bool(_MARKS & value.keys()) and value.keys() <= _FIELDS


def _made(name: str, fields: Mapping[str, Any]) -> PersonalityTrait:
    _checked(name)
    _plain(name, dict(fields))
    try:
        return PersonalityTrait.model_validate({**fields, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _invalid(name, f"{'.'.join(map(str, first['loc']))}: {reason(first)}") from None


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise _invalid(
            name, "a name has 1 to 128 letters, digits, spaces and _.:-, and begins with a letter, a digit or _"
        )
    return name


def _plain(name: str, value: Any) -> Any:
    """A value that every node reads as the same JSON."""
    try:
        json_safety.check(value)
        json.loads(json.dumps(value), parse_int=_exact)
    except ValueError as error:
        raise _invalid(name, f"its value cannot be sent as JSON: {error}") from None
    return value


def _exact(digits: str) -> int:
    """A whole number that other languages do not round; hashes of contents are over rounded numbers."""
    number = int(digits)
    if abs(number) > LARGEST_NUMBER:
        raise ValueError(f"{digits[:40]} is too large a number; send it as a text")
    return number


def _invalid(name: str, reason: str) -> BadInput:
    return BadInput("INVALID_TRAIT", f"The trait {name[:128]!r}: {reason}.", trait=name[:128])
