"""The configuration of stand-alone roles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.rules.personalities.role_config import load, merged, unserved_port
from workbench.settings import shipped

AGENT = {
    "agent": {
        "name": "helpful-agent",
        "version": "1.0",
        "base_url": "http://localhost:8100/koi-net",
        "mcp_port": 8101,
        "traits": {"mood": "helpful", "calculate": {"description": "Adds.", "is_callable": True}},
    },
    "network": {"first_contact": "http://localhost:9000/koi-net/"},
}
_VALUES = st.recursive(
    st.integers() | st.text(max_size=3), lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3)
)
_OBJECTS = st.dictionaries(st.text(max_size=2), _VALUES, max_size=4)


def test_a_file_configures_an_agent() -> None:
    found = load(json.dumps(AGENT), {})
    assert found.agent is not None
    assert (found.agent.name, found.agent.traits["mood"]) == ("helpful-agent", "helpful")
    assert (found.coordinator, found.network.first_contact) == (None, "http://localhost:9000/koi-net")


def test_the_environment_overrides_the_file_and_a_single_value_overrides_the_object() -> None:
    environment = {
        "KOI_MCP_CONFIG": '{"agent": {"name": "other", "traits": {"mood": "curious"}}}',
        "KOI_MCP_AGENT_NAME": "last",
        "KOI_MCP_AGENT_MCP_PORT": "8200",
        "KOI_MCP_NETWORK_FIRST_CONTACT": "http://127.0.0.1:1/koi-net",
    }
    found = load(json.dumps(AGENT), environment)
    assert found.agent is not None
    assert (found.agent.name, found.agent.mcp_port, found.agent.version) == ("last", 8200, "1.0")
    assert (found.agent.traits["mood"], found.agent.traits["calculate"]["is_callable"]) == ("curious", True)
    assert found.network.first_contact == "http://127.0.0.1:1/koi-net"


def test_a_port_at_which_nothing_is_served_is_named_with_where_the_endpoints_are() -> None:
    agent = load(json.dumps(AGENT), {}).agent
    assert agent is not None
    said = unserved_port(agent)
    assert said is not None
    assert "mcp_port 8101" in said
    assert said.endswith("at http://localhost:8100/agents/helpful-agent.")
    assert unserved_port(agent.model_copy(update={"mcp_port": 8100})) is None
    assert unserved_port(agent.model_copy(update={"mcp_port": None})) is None
    hub = {"coordinator": {"name": "hub", "base_url": "http://127.0.0.1:9000/koi-net", "mcp_registry_port": 9001}}
    coordinator = load(json.dumps(hub), {}).coordinator
    assert coordinator is not None
    assert unserved_port(coordinator) == (
        "Nothing is served at the mcp_registry_port 9001: the endpoints that the specification has there are at "
        "http://127.0.0.1:9000."
    )


def test_the_environment_alone_configures_a_coordinator() -> None:
    variables = {"KOI_MCP_COORDINATOR_NAME": "hub", "KOI_MCP_COORDINATOR_BASE_URL": "http://127.0.0.1:9000/koi-net"}
    found = load("{}", variables)
    assert found.coordinator is not None
    assert (found.coordinator.name, found.agent) == ("hub", None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agent": {"name": ""}}, "agent.name"),
        ({"agent": {"name": "two words"}}, "agent.name"),
        ({"agent": {"base_url": "ftp://localhost:1/koi-net"}}, "agent.base_url"),
        ({"agent": {"base_url": "http://localhost/koi-net"}}, "agent.base_url"),
        ({"agent": {"base_url": "http://localhost:8100"}}, "agent.base_url"),
        ({"agent": {"mcp_port": 0}}, "agent.mcp_port"),
        ({"agent": {"moods": []}}, "agent.moods"),
        ({"network": {"first_contact": 3}}, "network.first_contact"),
        ({"agents": {}}, "agents"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        load(json.dumps(merged(AGENT, change)), {})
    assert refused.value.code == "KOI_CONFIG_INVALID"
    assert [one["field"] for one in refused.value.details["problems"]] == [field]


@pytest.mark.parametrize(("text", "environment"), [("{", {}), ("[]", {}), ("{}", {"KOI_MCP_CONFIG": "nothing"})])
def test_what_is_no_object_is_refused(text: str, environment: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="KOI_CONFIG_INVALID"):
        load(text, environment)


def test_a_port_out_of_range_in_an_address_is_refused() -> None:
    with pytest.raises(BadInput, match="KOI_CONFIG_INVALID"):
        load(json.dumps(merged(AGENT, {"agent": {"base_url": "http://localhost:99999/koi-net"}})), {})


@given(_OBJECTS, _OBJECTS)
def test_merged_objects_have_all_of_the_other_and_what_it_leaves_of_the_base(
    base: dict[str, Any], other: dict[str, Any]
) -> None:
    result = merged(base, other)
    assert merged(result, other) == result
    assert set(result) == set(base) | set(other)
    assert all(result[name] == value for name, value in other.items() if not isinstance(value, dict))
    assert all(result[name] == value for name, value in base.items() if name not in other)


@pytest.mark.parametrize("name", ["coordinator", "helpful-agent", "creative-agent"])
def test_the_shipped_examples_are_valid(name: str) -> None:
    found = load(shipped("data", "koi", f"{name}.json").read_text("utf-8"), {})
    role = found.coordinator or found.agent
    assert role is not None
    assert role.name == name
