"""How MCP servers are configured, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from workbench.rules.definitions.mcp_servers import McpServer

SERVER: TypeAdapter[Any] = TypeAdapter(McpServer)


@pytest.mark.parametrize("name", ["read_file", "fs.read-file", "fs/read", "ns:tool", "A1"])
def test_names_of_tools(name: str) -> None:
    assert name in SERVER.validate_python({"command": "x", "tools": {name: {}}}).tools


@pytest.mark.parametrize("name", ["", "x,Bash", "Bash(rm *)", "a b", "a\n", "*", "é", "x" * 201])
def test_what_a_list_of_tools_could_not_hold_is_no_name_of_one(name: str) -> None:
    with pytest.raises(ValidationError):
        SERVER.validate_python({"command": "x", "tools": {name: {"permissionRequired": False}}})
