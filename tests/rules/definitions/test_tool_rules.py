"""What a definition says about its tools: whether a person is asked first, and which a model is offered."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.definitions.mcp_servers import StdioServer
from workbench.rules.definitions.model import Definition, Metadata, Settings
from workbench.rules.definitions.tool_rules import Statement, is_on_request, statement

DEFAULTS = "mcpServers.hub.serverToolDefaults"


def definition(permission: str = "tool", **server: Any) -> Definition:
    """A definition with one MCP server, `hub`."""
    hub = StdioServer.model_validate({"command": "hub", **server})
    settings = Settings.model_validate({"toolPermission": permission})
    return Definition(metadata=Metadata(id="1", name="Helper"), settings=settings, mcp_servers={"hub": hub})


@pytest.mark.parametrize(
    ("made", "tool", "expected"),
    [
        (definition(), "post", None),
        (definition("always"), "post", Statement(True, "settings.toolPermission")),
        (definition("never"), "post", Statement(False, "settings.toolPermission")),
        (definition(serverToolDefaults={"permissionRequired": False}), "post", Statement(False, DEFAULTS)),
        (
            definition(serverToolDefaults={"permissionRequired": False}, tools={"post": {"permissionRequired": True}}),
            "post",
            Statement(True, "mcpServers.hub.tools.post"),
        ),
        (
            definition(serverToolDefaults={"permissionRequired": True}, tools={"post": {"include": "manual"}}),
            "post",
            Statement(True, DEFAULTS),
        ),
    ],
)
def test_the_rule_of_a_tool_counts_before_that_of_its_server(
    made: Definition, tool: str, expected: Statement | None
) -> None:
    assert statement(made, "hub", tool) == expected


def test_rules_of_servers_are_about_no_other_tools() -> None:
    made = definition(serverToolDefaults={"permissionRequired": False, "include": "manual"})
    assert statement(made, "other", "post") is None
    assert statement(made, None, "add") is None
    assert not is_on_request(made, None, "add")


def test_a_manual_tool_is_offered_on_request_only() -> None:
    made = definition(serverToolDefaults={"include": "manual"}, tools={"look": {"include": "always"}})
    assert is_on_request(made, "hub", "post")
    assert not is_on_request(made, "hub", "look")
