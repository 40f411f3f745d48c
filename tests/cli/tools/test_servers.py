"""The commands about the MCP servers of a project, without a server that would start them."""

from __future__ import annotations

import json

from tests.cli.conftest import Type, data
from workbench.state.settings import Settings


def test_a_server_is_added_changed_switched_and_removed(run: Type) -> None:
    added = run("tools", "servers", "add", "files", "--command", "files-server --all", "--env", "TOKEN=env://T").out
    assert added == "files is stopped. It is used when the servers of the project run.\n"
    assert run("tools", "servers", "update", "files", "--url", "https://example.org/mcp").status == 0
    assert run("tools", "servers", "disable", "files").out == "files is disabled.\n"
    [row] = run("tools", "servers").out.splitlines()[1:]
    assert row.split() == ["files", "disabled", "0", "https://example.org/mcp"]
    assert "is stopped" in run("tools", "servers", "enable", "files").out
    assert "https://example.org/mcp" in run("tools", "servers", "show", "files").out
    assert run("tools", "servers", "log", "files").out == "files wrote nothing to its standard error.\n"
    assert run("tools", "servers", "remove", "files").out == "Removed files.\n"
    assert data(run("--json", "tools", "servers"))["servers"] == []


def test_a_file_that_came_with_the_repository_is_not_trusted(run: Type, settings: Settings) -> None:
    run("init")
    settings.tool_servers_file.write_text(json.dumps({"mcpServers": {"files": {"command": "files-server"}}}))
    [one] = data(run("--json", "tools", "servers"))["servers"]
    assert (one["state"], one["tools"]) == ("untrusted", [])
