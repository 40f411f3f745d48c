"""Traits as people write them, and changes of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rid_lib.ext.utils import sha256_hash_json

from tests.given import refused
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


def parse_trait(value: Any) -> PersonalityTrait:
    [trait] = parse({"mood": value})
    return trait


def test_a_simple_value_decides_the_type() -> None:
    for of_type, value in {"str": "calm", "int": 3, "bool": True, "list": ["a"], "dict": {"a": 1}}.items():
        assert parse_trait(value) == PersonalityTrait(name="mood", description="mood trait", type=of_type, value=value)


def test_an_object_with_fields_of_traits_is_a_trait_and_one_with_others_a_value() -> None:
    calculates = PersonalityTrait(name="mood", description="Calculates", type="NoneType", is_callable=True)
    assert parse_trait({"description": "Calculates", "is_callable": True}) == calculates
    assert parse_trait({"value": 5, "type": "score"}).type == "score"
    for value in ({"value": 5, "unit": "m"}, {"type": "cat"}):
        assert parse_trait(value).value == value


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.dictionaries(NAMES, VALUES, max_size=5))
def test_any_json_value_can_be_a_trait_and_changes_replace_only_named_traits(
    before: dict[str, Any], changes: dict[str, Any]
) -> None:
    made = parse({name: {"value": value} for name, value in before.items()})
    assert {trait.name: trait.value for trait in made} == before
    assert all(sha256_hash_json(trait.model_dump(mode="json")) for trait in made)
    after = changed(made, {name: {"value": value} for name, value in changes.items()})
    assert {trait.name: trait.value for trait in after} == before | changes


def test_a_new_value_keeps_the_description_and_none_removes() -> None:
    before = parse({"mood": {"value": "calm", "description": "How it feels"}, "age": 3})
    after = changed(before, {"mood": 7, "age": None, "unknown": None})
    assert after == [PersonalityTrait(name="mood", description="How it feels", type="int", value=7)]


def test_an_invalid_trait_is_refused_by_name() -> None:
    for name in ("", "a/b", "\n", "a" * 129):
        assert refused("INVALID_TRAIT", parse, {name: 1}).details["trait"] == name[:128]
    described = [{"value": 2**53}, {"value": 1, "description": 5}, {"value": 1, "input_schema": "no"}]
    for value in (float("nan"), "\ud800", [-(2**60)], {1, 2}, *described):
        assert refused("INVALID_TRAIT", parse, {"a": value}).details["trait"] == "a"


def test_a_profile_has_limits() -> None:
    refused("TOO_MANY_TRAITS", require_room, parse({f"t{n}": 1 for n in range(MOST_TRAITS + 1)}))
    require_room(parse({f"t{n}": 1 for n in range(MOST_TRAITS)}))
    empty = sum(len(trait.model_dump_json()) for trait in parse({"a": "", "b": ""}))
    require_room(parse({"a": "ä", "b": "x" * (LARGEST_TRAITS - empty - 2)}))
    large = parse({"a": "ä", "b": "x" * (LARGEST_TRAITS - empty - 1)})
    assert f"have {LARGEST_TRAITS + 1:,} bytes" in str(refused("TRAITS_TOO_LARGE", require_room, large))


def test_traits_that_are_functions_are_not_set_by_hand() -> None:
    require_no_functions(["mood"], ["add"])
    refused("TRAIT_IS_FUNCTION", require_no_functions, ["mood", "add"], ["add"])
