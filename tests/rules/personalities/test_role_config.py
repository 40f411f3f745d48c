"""The configuration of stand-alone roles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.personalities.role_config import load, merged, unserved_port
from workbench.state.settings import shipped

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


def agent_of(config: dict[str, Any], **environment: str) -> tuple[Any, Any]:
    """The agent of a configuration, and its network."""
    found = load(json.dumps(config), environment)
    assert found.coordinator is None
    return found.agent, found.network


def test_a_file_configures_an_agent() -> None:
    agent, network = agent_of(AGENT)
    assert (agent.name, agent.traits["mood"]) == ("helpful-agent", "helpful")
    assert network.first_contact == "http://localhost:9000/koi-net"


def test_the_environment_overrides_the_file_and_a_single_value_overrides_the_object() -> None:
    agent, network = agent_of(
        AGENT,
        KOI_MCP_CONFIG='{"agent": {"name": "other", "traits": {"mood": "curious"}}}',
        KOI_MCP_AGENT_NAME="last",
        KOI_MCP_AGENT_MCP_PORT="8200",
        KOI_MCP_NETWORK_FIRST_CONTACT="http://127.0.0.1:1/koi-net",
    )
    assert (agent.name, agent.mcp_port, agent.version) == ("last", 8200, "1.0")
    assert (agent.traits["mood"], agent.traits["calculate"]["is_callable"]) == ("curious", True)
    assert network.first_contact == "http://127.0.0.1:1/koi-net"


def test_an_empty_variable_sets_nothing_and_one_of_a_field_that_there_is_not_is_refused() -> None:
    text = '{"agent": {"name": "ada", "base_url": "http://127.0.0.1:8101/koi-net"}}'
    agent = load(text, {"KOI_MCP_CONFIG": "", "KOI_MCP_AGENT_VERSION": ""}).agent
    assert agent is not None
    assert agent.version == "1.0"
    with pytest.raises(BadInput, match=r"agent\.colour"):
        load(text, {"KOI_MCP_AGENT_COLOUR": "red"})


def test_a_port_at_which_nothing_is_served_is_named_with_where_the_endpoints_are() -> None:
    agent, _ = agent_of(AGENT)
    said = unserved_port(agent) or ""
    assert "mcp_port 8101" in said
    assert said.endswith("at http://localhost:8100/agents/helpful-agent.")
    for port in (8100, None):
        assert unserved_port(agent.model_copy(update={"mcp_port": port})) is None


def test_the_environment_alone_configures_a_coordinator() -> None:
    variables = {"NAME": "hub", "BASE_URL": "http://127.0.0.1:9000/koi-net", "MCP_REGISTRY_PORT": "9001"}
    found = load("{}", {f"KOI_MCP_COORDINATOR_{name}": value for name, value in variables.items()})
    assert found.coordinator is not None
    assert (found.coordinator.name, found.agent) == ("hub", None)
    assert unserved_port(found.coordinator) == (
        "Nothing is served at the mcp_registry_port 9001: the endpoints that the specification has there are at "
        "http://127.0.0.1:9000."
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent.name", ""),
        ("agent.name", "two words"),
        ("agent.base_url", "ftp://localhost:1/koi-net"),
        ("agent.base_url", "http://localhost/koi-net"),
        ("agent.base_url", "http://localhost:8100"),
        ("agent.mcp_port", 0),
        ("agent.moods", []),
        ("network.first_contact", 3),
        ("agents", {}),
    ],
)
def test_a_wrong_field_of_a_configuration_is_named(field: str, value: Any) -> None:
    section, _, name = field.partition(".")
    config = merged(AGENT, {section: {name: value} if name else value})
    error = refused("KOI_CONFIG_INVALID", load, json.dumps(config), {})
    assert [problem["field"] for problem in error.details["problems"]] == [field]


def test_a_configuration_that_is_no_object_or_has_a_bad_port_is_refused() -> None:
    out_of_range = json.dumps(merged(AGENT, {"agent": {"base_url": "http://localhost:99999/koi-net"}}))
    for text, environment in (("{", {}), ("[]", {}), ("{}", {"KOI_MCP_CONFIG": "nothing"}), (out_of_range, {})):
        refused("KOI_CONFIG_INVALID", load, text, environment)


@given(_OBJECTS, _OBJECTS)
def test_merged_objects_have_all_of_the_other_and_what_it_leaves_of_the_base(
    base: dict[str, Any], other: dict[str, Any]
) -> None:
    result = merged(base, other)
    assert merged(result, other) == result
    assert set(result) == set(base) | set(other)
    assert all(result[name] == value for name, value in other.items() if not isinstance(value, dict))
    assert all(result[name] == value for name, value in base.items() if name not in other)


def test_the_shipped_examples_are_valid() -> None:
    for name in ("coordinator", "helpful-agent", "creative-agent"):
        found = load(shipped("data", "koi", f"{name}.json").read_text("utf-8"), {})
        role = found.coordinator or found.agent
        assert role is not None
        assert role.name == name
