"""The sources of a profile, and their precedence."""

from __future__ import annotations

from rid_lib.types import KoiNetNode

from workbench.rules.definitions.model import DefinitionMetadata, Skill
from workbench.rules.personalities.composition import Home, Sources, compose, function_trait
from workbench.rules.personalities.traits import parse

REVIEWER = DefinitionMetadata(
    id="r1", name="Reviewer", description="Reads code", skills=[Skill(id="python", name="Python", tags=["code"])]
)


def values(sources: Sources) -> dict[str, object]:
    return {trait.name: trait.value for trait in compose(sources)}


def test_a_definition_and_a_persona_become_traits_without_empty_ones() -> None:
    skill = {"id": "python", "name": "Python", "description": "", "tags": ["code"], "examples": []}
    of_the_definition = {"description": "Reads code", "mode": "interactive", "skills": [skill]}
    of_the_persona = {"persona": "Reviewer of code", "role": "worker"}
    made = values(Sources(definition=REVIEWER, persona=("Reviewer of code", "worker")))
    assert made == of_the_definition | of_the_persona
    assert values(Sources(definition=DefinitionMetadata(id="a", name="A"))) == {"mode": "interactive"}
    assert compose(Sources()) == []


def test_a_function_overrides_a_trait_set_by_hand_which_overrides_the_definition() -> None:
    add = function_trait("mode", "Add.", {"type": "object"}, None, version="1")
    by_hand = parse({"mode": "quiet", "description": "Reads it all"})
    found = compose(Sources(definition=REVIEWER, by_hand=by_hand, functions=[add]))
    assert found == compose(Sources(definition=REVIEWER, by_hand=by_hand[::-1], functions=[add]))
    made = {trait.name: trait for trait in found}
    assert made["description"].value == "Reads it all"
    assert made["mode"] == add
    assert (add.type, add.is_callable, add.input_schema, add.version) == ("function", True, {"type": "object"}, "1")


def test_a_profile_has_the_addresses_of_its_server() -> None:
    home = Home(KoiNetNode("lab", "0" * 64), "http://127.0.0.1:8765")
    profile = home.profile("ada", "1.0", parse({"a": 1}))
    assert str(profile.rid) == "orn:agent.personality:ada/1.0"
    assert profile.base_url == "http://127.0.0.1:8765/koi-net"
    assert profile.mcp_url == "http://127.0.0.1:8765/agents/ada"
    assert home.profile("a b", "1", []).mcp_url == "http://127.0.0.1:8765/agents/a%20b"
