"""Profiles as the spec's servers list them."""

from __future__ import annotations

from typing import Any

from rid_lib.types import KoiNetNode

from workbench.rules.personalities.mcp_adapter import get_agent, get_all_tools, get_tools_for_agent, list_agents
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.personalities.traits import parse

URL = "http://h:1/agents/a"
ADD = {"is_callable": True, "description": "Add.", "input_schema": {"type": "object", "required": ["a"]}}


def profile(name: str = "helpful-agent", mcp_url: str | None = URL, **traits: Any) -> Any:
    return PersonalityProfile(
        rid=AgentPersonality(name, "1.0"), node_rid=KoiNetNode("n", "0" * 64), mcp_url=mcp_url, traits=parse(traits)
    )


def test_agents_are_resources_with_the_whole_profile() -> None:
    ada = {"id": "agent:helpful-agent", "type": "agent_profile", "description": "Helps with sums", "url": URL}
    other = {"id": "agent:b", "type": "agent_profile", "description": "Personality of the agent b", "url": None}
    made = profile(description="Helps\nwith sums")
    assert list_agents([made, profile("b", None)]) == [ada, other]
    read = get_agent(made)
    assert (read["id"], read["type"]) == ("agent:helpful-agent", "agent_profile")
    assert PersonalityProfile.model_validate(read["content"]) == made


def test_callable_traits_are_tools_with_the_address_that_calls_them() -> None:
    described = {"description": "Add.", "input_schema": {"type": "object", "required": ["a"]}}
    tool = {"name": "calculate", **described, "url": f"{URL}/tools/call/calculate"}
    assert get_tools_for_agent(profile(calculate=ADD, mood="calm")) == [tool]
    [tool] = get_tools_for_agent(profile(**{"a b": {"is_callable": True}}))
    assert (tool["input_schema"], tool["url"]) == ({"type": "object"}, f"{URL}/tools/call/a%20b")
    found = get_all_tools([profile(calculate=ADD), profile("other", None, calculate=ADD)])
    assert [(tool["name"], tool["url"]) for tool in found] == [
        ("helpful-agent.calculate", f"{URL}/tools/call/calculate"),
        ("other.calculate", None),
    ]
