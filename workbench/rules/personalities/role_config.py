"""The configuration of a stand-alone agent or coordinator (spec 5, 8): a JSON object, and the environment.

`KOI_MCP_CONFIG` holds a JSON object that is merged into the file's, and `KOI_MCP_<SECTION>_<FIELD>`, such as
`KOI_MCP_AGENT_NAME`, a single value; the latter takes precedence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import BadInput
from workbench.rules.reasons import reason

WHOLE = "KOI_MCP_CONFIG"
PREFIX = "KOI_MCP_"
ENDPOINTS = "/koi-net"


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.rstrip("/") != ENDPOINTS:
        raise ValueError(f"an address is http://HOST:PORT{ENDPOINTS}")
    if parts.port is None:
        raise ValueError("the address has no port")
    return url.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
Port = Annotated[int, Field(ge=1, le=65_535)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AgentConfig(_Section):
    """An agent: its profile, and the address of its node.

    Args:
        traits: values by name; or objects with `description`, `value`, `is_callable`, `input_schema`, and `function`,
            the Python function ``module:name`` that a call runs.
        mcp_port: the specification's port for the agent's own endpoints; see `unserved_port`.
    """

    name: Name
    version: str = Field("1.0", min_length=1, max_length=64)
    base_url: Address
    mcp_port: Port | None = None
    traits: dict[str, Any] = {}


class CoordinatorConfig(_Section):
    """A coordinator. `mcp_registry_port`: the specification's port for the registry; see `unserved_port`."""

    name: Name
    base_url: Address
    mcp_registry_port: Port | None = None


class NetworkConfig(_Section):
    """The node that is contacted first. `first_contact_rid`: who that has to be. `first_contact_may_call`: it may call
    the agent's tools without a question."""

    first_contact: Address | None = None
    first_contact_rid: str | None = None
    first_contact_may_call: bool = False


class RoleConfig(_Section):
    """What a file and the environment say."""

    agent: AgentConfig | None = None
    coordinator: CoordinatorConfig | None = None
    network: NetworkConfig = NetworkConfig()


def load(text: str, environment: Mapping[str, str]) -> RoleConfig:
    """The configuration in a file with this text and in an environment.

    Raises:
        BadInput: ``KOI_CONFIG_INVALID``; `details.problems` has all problems.
    """
    found = _object(text, "the file")
    if environment.get(WHOLE):
        found = merged(found, _object(environment[WHOLE], WHOLE))
    found = merged(found, _single_values(environment))
    try:
        return RoleConfig.model_validate(found)
    except ValidationError as error:
        problems = [
            {"field": ".".join(map(str, one["loc"])), "reason": reason(one)} for one in error.errors(include_url=False)
        ]
        first = "; ".join(f"{one['field']}: {one['reason']}" for one in problems[:5])
        raise BadInput("KOI_CONFIG_INVALID", f"The configuration is wrong: {first}.", problems=problems) from None


def unserved_port(config: AgentConfig | CoordinatorConfig) -> str | None:
    """What a person has to know about a port of the specification at which nothing is served; None if there is none."""
    is_agent = isinstance(config, AgentConfig)
    port = config.mcp_port if isinstance(config, AgentConfig) else config.mcp_registry_port
    parts = urlsplit(config.base_url)
    if port is None or port == parts.port:
        return None
    place = f"{parts.scheme}://{parts.netloc}" + (f"/agents/{config.name}" if is_agent else "")
    name = "mcp_port" if is_agent else "mcp_registry_port"
    return f"Nothing is served at the {name} {port}: the endpoints that the specification has there are at {place}."


def merged(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both objects: values of the other replace those of the base, except that objects are merged in turn."""
    result = dict(base)
    for name, value in other.items():
        present = result.get(name)
        both = isinstance(present, Mapping) and isinstance(value, Mapping)
        result[name] = merged(present, value) if both else value  # type: ignore[arg-type]
    return result


def _single_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """The variables that set one value, also of a field that there is not, which is refused. Empty ones set nothing."""
    sections = set(RoleConfig.model_fields)
    found: dict[str, Any] = {}
    for variable, value in environment.items():
        section, _, name = variable.removeprefix(PREFIX).partition("_")
        if variable.startswith(PREFIX) and section.lower() in sections and value:
            found.setdefault(section.lower(), {})[name.lower()] = value
    return found


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadInput("KOI_CONFIG_INVALID", f"The configuration in {where} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise BadInput("KOI_CONFIG_INVALID", f"The configuration in {where} must be a JSON object.")
    return found
