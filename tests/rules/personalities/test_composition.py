"""What a profile is made from, and which source counts."""

from __future__ import annotations

from rid_lib.types import KoiNetNode

from workbench.rules.definitions.model import Metadata, Skill
from workbench.rules.personalities.composition import Home, Sources, compose, function_trait
from workbench.rules.personalities.traits import parse

REVIEWER = Metadata(
    id="r1", name="Reviewer", description="Reads code", skills=[Skill(id="python", name="Python", tags=["code"])]
)


def values(sources: Sources) -> dict[str, object]:
    return {trait.name: trait.value for trait in compose(sources)}


def test_a_definition_and_a_persona_become_traits() -> None:
    made = values(Sources(definition=REVIEWER, persona=("Reviewer of code", "worker")))
    assert made == {
        "description": "Reads code",
        "mode": "interactive",
        "skills": [{"id": "python", "name": "Python", "description": "", "tags": ["code"], "examples": []}],
        "persona": "Reviewer of code",
        "role": "worker",
    }


def test_what_is_empty_is_no_trait() -> None:
    assert values(Sources(definition=Metadata(id="a", name="A"))) == {"mode": "interactive"}
    assert compose(Sources()) == []


def test_a_trait_set_by_hand_counts_more_than_the_definition_and_a_function_more_than_both() -> None:
    add = function_trait("mode", "Add.", {"type": "object"}, None, version="1")
    by_hand = parse({"description": "Reads it all", "mode": "quiet"})
    made = {t.name: t for t in compose(Sources(definition=REVIEWER, by_hand=by_hand, functions=[add]))}
    assert made["description"].value == "Reads it all"
    assert made["mode"] == add
    assert (add.type, add.is_callable, add.input_schema, add.version) == ("function", True, {"type": "object"}, "1")


def test_the_order_of_the_sources_does_not_change_the_profile() -> None:
    one, other = parse({"b": 1, "a": 2}), parse({"a": 2, "b": 1})
    assert compose(Sources(by_hand=one)) == compose(Sources(by_hand=other))


def test_a_profile_has_the_addresses_of_its_server() -> None:
    home = Home(KoiNetNode("lab", "0" * 64), "http://127.0.0.1:8765")
    profile = home.profile("ada", "1.0", parse({"a": 1}))
    assert str(profile.rid) == "orn:agent.personality:ada/1.0"
    assert profile.base_url == "http://127.0.0.1:8765/koi-net"
    assert profile.mcp_url == "http://127.0.0.1:8765/agents/ada"
    assert home.profile("a b", "1", []).mcp_url == "http://127.0.0.1:8765/agents/a%20b"
