"""The MCP servers that the agents of a definition use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.definitions.test_lifecycle import create
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.rules.definitions.secrets import MASK

pytestmark = pytest.mark.anyio

PROGRAM = {"command": "mcp-files", "args": ["."], "env": {"FILES_TOKEN": "t-0123456789", "LANG": "C"}}
WEB = {"url": "https://example.org/mcp", "headers": {"Authorization": "env://WEB_TOKEN"}}


async def call(workbench: Workbench, name: str, **arguments: Any) -> dict[str, Any]:
    """Call an operation on the definition."""
    return await workbench.call(name, agentTarget="reviewer", **arguments)


async def test_a_server_is_added_listed_changed_and_deleted(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_add_mcp_server", serverName="web", config=WEB)
    await call(workbench, "agent_add_mcp_server", serverName="files", config={"command": "mcp-files"})
    listed = await call(workbench, "agent_list_mcp_servers")
    assert {name: server["type"] for name, server in listed["servers"].items()} == {
        "files": "stdio",
        "web": "streamable-http",
    }
    assert WEB.items() <= listed["servers"]["web"].items()
    assert listed["count"] == 2
    await call(workbench, "agent_update_mcp_server", serverName="web", config=WEB | {"type": "sse"})
    assert (await call(workbench, "agent_get_mcp_server", serverName="web"))["server"]["type"] == "sse"
    await call(workbench, "agent_delete_mcp_server", serverName="web")
    assert (await call(workbench, "agent_get_mcp_server", serverName="web"))["server"] is None


async def test_a_name_is_taken_also_in_upper_case(workbench: Workbench) -> None:
    await create(workbench)
    await call(workbench, "agent_add_mcp_server", serverName="web", config=WEB)
    with pytest.raises(Conflict, match="ALREADY_EXISTS"):
        await call(workbench, "agent_add_mcp_server", serverName="Web", config=PROGRAM)
    with pytest.raises(NotFound, match=r"Its servers: web\."):
        await call(workbench, "agent_update_mcp_server", serverName="Web", config=WEB)


async def test_a_secret_stays_when_only_rules_of_tools_change(workbench: Workbench) -> None:
    await create(workbench)
    done = await call(workbench, "agent_add_mcp_server", serverName="files", config=PROGRAM)
    assert "FILES_TOKEN is written out" in done["warnings"][0]
    shown = (await call(workbench, "agent_get_mcp_server", serverName="files"))["server"]
    assert shown["env"] == {"FILES_TOKEN": MASK, "LANG": "C"}
    changed = shown | {"tools": {"delete": {"permissionRequired": True}}}
    await call(workbench, "agent_update_mcp_server", serverName="files", config=changed)
    file = workbench.settings.home / "agents" / "reviewer" / "agent.yaml"
    assert "t-0123456789" in file.read_text()
    with pytest.raises(BadInput, match=r"INVALID_CONFIGURATION.*FILES_TOKEN is masked"):
        await call(workbench, "agent_update_mcp_server", serverName="files", config=changed | {"command": "mail"})
    with pytest.raises(BadInput, match=r"INVALID_CONFIGURATION.*FILES_TOKEN is masked"):
        await call(workbench, "agent_add_mcp_server", serverName="other", config=shown)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"command": ""},
        {"command": "a", "url": "https://example.org"},
        {"url": "ftp://example.org"},
        {"url": "https://user:password@example.org"},
        {"command": "a", "env": {"LD_PRELOAD": "x"}},
        {"command": "a", "env": {"WORKBENCH_TOKEN": "x"}},
        {"command": "a", "args": ["\n\0"]},
        {"url": "https://example.org", "headers": {"A": "x\r\nB: y"}},
        {"type": "carrier-pigeon", "url": "https://example.org"},
        {"command": "a", "tools": {"t": {"include": "never"}}},
    ],
)
async def test_a_server_that_could_not_be_used_is_refused(workbench: Workbench, config: dict[str, Any]) -> None:
    await create(workbench)
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await call(workbench, "agent_add_mcp_server", serverName="files", config=config)
    assert (await call(workbench, "agent_list_mcp_servers"))["count"] == 0
