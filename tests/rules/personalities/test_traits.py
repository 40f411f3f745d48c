"""Traits as people write them, and changes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rid_lib.ext.utils import sha256_hash_json

from workbench.errors import BadInput, Conflict
from workbench.rules.personalities.profile import MOST_TRAITS, PersonalityTrait
from workbench.rules.personalities.traits import (
    LARGEST_NUMBER,
    LARGEST_TRAITS,
    changed,
    parse,
    require_no_functions,
    require_room,
)

NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_ .:-]{0,20}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = st.integers(-LARGEST_NUMBER, LARGEST_NUMBER) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


def parsed(value: Any) -> PersonalityTrait:
    [trait] = parse({"mood": value})
    return trait


@pytest.mark.parametrize(
    ("value", "of_type"), [("calm", "str"), (3, "int"), (True, "bool"), (["a"], "list"), ({"a": 1}, "dict")]
)
def test_a_simple_value_decides_the_type(value: Any, of_type: str) -> None:
    assert parsed(value) == PersonalityTrait(name="mood", description="mood trait", type=of_type, value=value)


def test_an_object_with_fields_of_traits_is_a_trait() -> None:
    assert parsed({"description": "Calculates", "is_callable": True}) == PersonalityTrait(
        name="mood", description="Calculates", type="NoneType", is_callable=True
    )
    assert parsed({"value": 5, "type": "score"}).type == "score"


def test_an_object_with_other_fields_is_a_value() -> None:
    assert parsed({"value": 5, "unit": "m"}).value == {"value": 5, "unit": "m"}
    assert parsed({"type": "cat"}).value == {"type": "cat"}


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_every_json_value_can_be_published_under_value(traits: dict[str, Any]) -> None:
    made = parse({name: {"value": value} for name, value in traits.items()})
    assert {trait.name: trait.value for trait in made} == traits
    assert all(sha256_hash_json(trait.model_dump(mode="json")) for trait in made)


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.dictionaries(NAMES, VALUES, max_size=5))
def test_changes_replace_what_they_name_and_nothing_else(before: dict[str, Any], changes: dict[str, Any]) -> None:
    whole = {name: {"value": value} for name, value in changes.items()}
    after = {t.name: t.value for t in changed(parse({n: {"value": v} for n, v in before.items()}), whole)}
    assert after == before | changes


def test_a_new_value_keeps_the_description_and_none_removes() -> None:
    before = parse({"mood": {"value": "calm", "description": "How it feels"}, "age": 3})
    after = changed(before, {"mood": 7, "age": None, "unknown": None})
    assert after == [PersonalityTrait(name="mood", description="How it feels", type="int", value=7)]


@pytest.mark.parametrize(
    "traits",
    [
        {"": 1},
        {"a/b": 1},
        {"\n": 1},
        {"a" * 129: 1},
        {"a": float("nan")},
        {"a": "\ud800"},
        {"a": {"value": 2**53}},
        {"a": [-(2**60)]},
        {"a": {"value": 1, "description": 5}},
        {"a": {"value": 1, "input_schema": "no"}},
        {"a": {1, 2}},
    ],
)
def test_what_cannot_be_a_trait_is_refused_by_name(traits: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="INVALID_TRAIT") as refused:
        parse(traits)
    assert refused.value.details["trait"] == next(iter(traits))[:128]


def test_a_profile_has_limits() -> None:
    with pytest.raises(BadInput, match="TOO_MANY_TRAITS"):
        require_room(parse({f"t{n}": 1 for n in range(MOST_TRAITS + 1)}))
    require_room(parse({f"t{n}": 1 for n in range(MOST_TRAITS)}))
    empty = sum(len(trait.model_dump_json()) for trait in parse({"a": "", "b": ""}))
    require_room(parse({"a": "ä", "b": "x" * (LARGEST_TRAITS - empty - 2)}))
    with pytest.raises(BadInput, match="TRAITS_TOO_LARGE") as refused:
        require_room(parse({"a": "ä", "b": "x" * (LARGEST_TRAITS - empty - 1)}))
    assert refused.value.code == "TRAITS_TOO_LARGE"
    assert f"have {LARGEST_TRAITS + 1:,} bytes" in str(refused.value)


def test_traits_that_are_functions_are_not_set_by_hand() -> None:
    require_no_functions(["mood"], ["add"])
    with pytest.raises(Conflict, match="TRAIT_IS_FUNCTION"):
        require_no_functions(["mood", "add"], ["add"])
