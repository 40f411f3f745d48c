"""Profiles as the spec's MCP servers list them (spec 5, 4.7 to 4.9).

Only the spec's names and shapes are kept. The schema of a tool's arguments is its own, or that of any object; a tool
whose agent has no address has the address None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from workbench.rules.personalities.profile import PersonalityProfile, PersonalityTrait

PREFIX = "agent:"
"""Before an agent's name, in the id of a resource."""
RESOURCE_TYPE = "agent_profile"
ANY_OBJECT = {"type": "object"}


def resource_id(name: str) -> str:
    """The id of an agent's profile."""
    return f"{PREFIX}{name}"


def list_agents(profiles: Iterable[PersonalityProfile]) -> list[dict[str, Any]]:
    """Profiles as resources."""
    return [
        {
            "id": resource_id(profile.rid.name),
            "type": RESOURCE_TYPE,
            "description": described(profile),
            "url": profile.mcp_url,
        }
        for profile in profiles
    ]


def get_agent(profile: PersonalityProfile) -> dict[str, Any]:
    """A profile as a resource with its content."""
    content = profile.model_dump(mode="json")
    return {"id": resource_id(profile.rid.name), "type": RESOURCE_TYPE, "content": content}


def get_tools_for_agent(profile: PersonalityProfile) -> list[dict[str, Any]]:
    """The callable traits of an agent as tools."""
    return [_tool(profile, trait) for trait in profile.tools]


def get_all_tools(profiles: Iterable[PersonalityProfile]) -> list[dict[str, Any]]:
    """The tools of agents; a name is ``<agent>.<trait>``, so that it is unique among them."""
    return [
        {**tool, "name": f"{profile.rid.name}.{tool['name']}"}
        for profile in profiles
        for tool in get_tools_for_agent(profile)
    ]


def described(profile: PersonalityProfile) -> str:
    """What an agent says about itself, on one line."""
    told = profile.get_trait("description")
    if told is not None and isinstance(told.value, str) and told.value.strip():
        return " ".join(told.value.split())
    return f"Personality of the agent {profile.rid.name}"


def tool_url(profile: PersonalityProfile, trait: str) -> str | None:
    """Where a trait is called; None if the agent has no address."""
    return f"{profile.mcp_url}/tools/call/{quote(trait, safe='')}" if profile.mcp_url else None


def _tool(profile: PersonalityProfile, trait: PersonalityTrait) -> dict[str, Any]:
    return {
        "name": trait.name,
        "description": trait.description,
        "input_schema": trait.input_schema or ANY_OBJECT,
        "url": tool_url(profile, trait.name),
    }
