"""The difference between two states of a profile."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rid_lib.types import KoiNetNode

from tests.rules.personalities.test_traits import NAMES, VALUES
from workbench.rules.personalities.differences import Field, ProfileDifference, difference
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.personalities.traits import parse

TRAITS = st.dictionaries(NAMES, VALUES, max_size=5)


def profile(traits: dict[str, Any], mcp_url: str | None = None) -> PersonalityProfile:
    return PersonalityProfile(
        rid=AgentPersonality("ada", "1"),
        node_rid=KoiNetNode("lab", "0" * 64),
        mcp_url=mcp_url,
        traits=parse({name: {"value": value} for name, value in traits.items()}),
    )


def apply_difference(traits: dict[str, Any], found: ProfileDifference) -> dict[str, Any]:
    result = {name: value for name, value in traits.items() if name not in {trait.name for trait in found.removed}}
    result |= {trait.name: trait.value for trait in found.added}
    values = {(trait.name, field.name): field.after for trait in found.changed for field in trait.fields}
    return result | {name: after for (name, field), after in values.items() if field == "value"}


@given(TRAITS, TRAITS)
def test_a_difference_leads_from_one_state_to_the_other_and_there_is_none_to_itself(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert apply_difference(before, difference(profile(before), profile(after))) == after
    turned = dict(reversed(before.items()))
    assert difference(profile(before), profile(turned)).is_empty


def test_true_and_1_differ_and_so_do_two_addresses() -> None:
    [changed] = difference(profile({"a": True}), profile({"a": 1})).changed
    of_type, of_value = Field(name="type", before="bool", after="int"), Field(name="value", before=True, after=1)
    assert changed.fields == [of_type, of_value]
    found = difference(profile({}), profile({}, "http://127.0.0.1:1/agents/ada"))
    assert found.fields == [Field(name="mcp_url", before=None, after="http://127.0.0.1:1/agents/ada")]


def test_without_a_profile_everything_is_added_or_removed() -> None:
    whole = profile({"a": 1})
    assert difference(None, whole).added == difference(whole, None).removed == whole.traits
    assert difference(None, whole).fields == []
