"""The configurations of a project's MCP servers: secrets in them are masked, named, and kept."""

from __future__ import annotations

import json

import pytest

from tests import given
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio
SECRET = "sekret-of-the-person"
SERVERS = {
    "program": {"command": "x", "args": ["--token", SECRET], "env": {"OTHER": "4fTn0vLx2-Zq7-aB3dE"}},
    "address": {"url": f"https://x.example/mcp?key={SECRET}", "headers": {"X-Custom": f"Bearer {SECRET}"}},
}
WARNINGS = {
    "program": [("args.token", "env://TOKEN"), ("OTHER", "env://OTHER")],
    "address": [("url.key", "env://KEY"), ("X-Custom", "env://X_CUSTOM")],
}


@pytest.mark.parametrize("name", SERVERS)
async def test_a_secret_is_masked_named_with_a_reference_and_kept_if_its_mask_comes_back(
    name: str, workbench: Workbench, settings: Settings
) -> None:
    server = await workbench.call("add_tool_server", name=name, config=SERVERS[name])
    written = json.loads(settings.tool_servers_file.read_text())["mcpServers"]
    assert written[name] == SERVERS[name]
    assert server["warnings"] == [
        f"{key} is written out in .aiswarm/mcp.json. Use a reference such as {reference} instead."
        for key, reference in WARNINGS[name]
    ]
    listed = await workbench.call("list_tool_servers")
    told = json.dumps([server, listed, await workbench.call("list_approvals", status=None)])
    assert [secret for secret in (SECRET, "4fTn0vLx2") if secret in told] == []
    await workbench.call("update_tool_server", name=name, config=server["config"])
    assert json.loads(settings.tool_servers_file.read_text())["mcpServers"] == written
    refused = await given.refusal(workbench.call("add_tool_server", name="other", config=server["config"]))
    assert refused.code == "INVALID_CONFIGURATION"
