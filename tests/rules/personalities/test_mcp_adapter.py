"""Profiles as the spec's servers list them."""

from __future__ import annotations

from typing import Any

from rid_lib.types import KoiNetNode

from workbench.rules.personalities.mcp_adapter import get_agent, get_all_tools, get_tools_for_agent, list_agents
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.personalities.traits import parse

ADD = {"is_callable": True, "description": "Add.", "input_schema": {"type": "object", "required": ["a"]}}


def profile(name: str = "helpful-agent", mcp_url: str | None = "http://h:1/agents/a", **traits: Any) -> Any:
    return PersonalityProfile(
        rid=AgentPersonality(name, "1.0"), node_rid=KoiNetNode("n", "0" * 64), mcp_url=mcp_url, traits=parse(traits)
    )


def test_agents_are_resources() -> None:
    assert list_agents([profile(description="Helps\nwith sums"), profile("b", None)]) == [
        {
            "id": "agent:helpful-agent",
            "type": "agent_profile",
            "description": "Helps with sums",
            "url": "http://h:1/agents/a",
        },
        {"id": "agent:b", "type": "agent_profile", "description": "Personality of the agent b", "url": None},
    ]


def test_a_resource_has_the_whole_profile() -> None:
    made = profile(mood="calm")
    read = get_agent(made)
    assert (read["id"], read["type"]) == ("agent:helpful-agent", "agent_profile")
    assert PersonalityProfile.model_validate(read["content"]) == made


def test_callable_traits_are_tools_with_the_address_that_calls_them() -> None:
    assert get_tools_for_agent(profile(calculate=ADD, mood="calm")) == [
        {
            "name": "calculate",
            "description": "Add.",
            "input_schema": {"type": "object", "required": ["a"]},
            "url": "http://h:1/agents/a/tools/call/calculate",
        }
    ]


def test_a_tool_without_a_schema_takes_any_object_and_a_name_is_quoted_in_its_address() -> None:
    [tool] = get_tools_for_agent(profile(**{"a b": {"is_callable": True}}))
    assert tool["input_schema"] == {"type": "object"}
    assert tool["url"] == "http://h:1/agents/a/tools/call/a%20b"


def test_tools_of_all_agents_have_the_agents_name_before_theirs() -> None:
    found = get_all_tools([profile(calculate=ADD), profile("other", None, calculate=ADD)])
    assert [(tool["name"], tool["url"]) for tool in found] == [
        ("helpful-agent.calculate", "http://h:1/agents/a/tools/call/calculate"),
        ("other.calculate", None),
    ]
