"""The prompt of a definition, its offers and rules of tools, and the report on what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.definitions.completeness import LONG_PROMPT, Severity, findings
from workbench.rules.definitions.composition import offer, system_prompt
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.tool_rules import is_on_request, statement
from workbench.rules.secrets.forms import MASK

IDENTITY = {"metadata": {"id": "r1", "name": "Reviewer"}}


def entry(name: str, include: str = "agent", description: str = "") -> dict[str, str]:
    return {"name": name, "include": include, "description": description, "text": f"Text of {name}."}


ENTRIES = {
    "prompt": "Read.",
    "rules": [entry("tests", description="When there are tests"), entry("style"), entry("always", "always")],
    "references": [entry("paper"), entry("by-hand", "manual")],
}
OFFERED = """# More on request

Read these with get_rule and get_reference when they apply:

"""


def test_rules_and_references_on_request_are_named_at_the_end_of_the_prompt() -> None:
    reviewer = Definition.model_validate(IDENTITY | ENTRIES)
    lines = ["- rule `style`", "- rule `tests`: When there are tests", "- reference `paper`"]
    assert offer(reviewer) == OFFERED + "\n".join(lines)
    assert offer(reviewer, ["style", "paper"]) == OFFERED + lines[1]
    assert offer(reviewer, ["style", "paper", "tests"]) == ""
    assert offer(Definition.model_validate(IDENTITY)) == ""
    read = ["style", "by-hand"]
    prompt = system_prompt(reviewer, read, offers=False)
    assert prompt.startswith("Read.\n\n# Rules\n\n")
    texts = ("Text of always.", "Text of style.", "# References", "Text of by-hand.")
    positions = [prompt.index(text) for text in texts]
    assert positions == sorted(positions)
    assert "Text of tests." not in prompt
    assert "Text of paper." not in prompt
    assert system_prompt(reviewer, read, offers=True) == f"{prompt}\n\n{offer(reviewer, ['style'])}"


# Whether a person is asked before a tool is called, and which tools a model is offered

DEFAULTS = "mcpServers.hub.serverToolDefaults"
SETTING = "settings.toolPermission"
FREE, ASKED = {"permissionRequired": False}, {"permissionRequired": True}


def hub(permission: str = "tool", **server: Any) -> Definition:
    """A definition with one MCP server, `hub`."""
    servers = {"hub": {"command": "hub", **server}}
    sections = {"settings": {"toolPermission": permission}, "mcpServers": servers}
    return Definition.model_validate(IDENTITY | sections)


@pytest.mark.parametrize(
    ("permission", "server", "expected"),
    [
        ("tool", {}, None),
        ("always", {}, (True, SETTING)),
        ("never", {}, (False, SETTING)),
        ("tool", {"serverToolDefaults": FREE}, (False, DEFAULTS)),
        ("tool", {"serverToolDefaults": FREE, "tools": {"post": ASKED}}, (True, "mcpServers.hub.tools.post")),
        ("tool", {"serverToolDefaults": ASKED, "tools": {"post": {"include": "manual"}}}, (True, DEFAULTS)),
    ],
)
def test_the_rule_of_a_tool_counts_before_that_of_its_server(
    permission: str, server: dict[str, Any], expected: tuple[bool, str] | None
) -> None:
    found = statement(hub(permission, **server), "hub", "post")
    assert (found and (found.asks, found.place)) == expected


def test_rules_of_a_server_cover_only_its_tools_and_manual_tools_need_a_request() -> None:
    made = hub(serverToolDefaults=FREE | {"include": "manual"}, tools={"look": {"include": "always"}})
    assert statement(made, "other", "post") is None
    assert statement(made, None, "add") is None
    assert not is_on_request(made, None, "add")
    assert is_on_request(made, "hub", "post")
    assert not is_on_request(made, "hub", "look")


# What `agent_validate` finds in a definition that can be read

GOOD: dict[str, Any] = {
    "metadata": {"id": "reader", "name": "Reader", "description": "Reads papers."},
    "settings": {"model": "openai:gpt-5"},
    "prompt": "You read papers.",
    "providers": {"openai": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}},
}
TOOL = {"name": "sum", "description": "Sums.", "parameters": {"type": "object"}, "prompt": "Sum."}
TOOLS = {"metadata": {**GOOD["metadata"], "mode": "tools"}}
UNDESCRIBED = {"type": "object", "properties": {"n": {}}}
REMOTE = {"url": "http://example.org/mcp", "headers": {"Accept": "text/plain"}}


def found(**fields: Any) -> list[tuple[Severity, str]]:
    return [(finding.severity, finding.place) for finding in findings(Definition.model_validate(GOOD | fields))]


def test_a_complete_definition_has_no_findings() -> None:
    assert found() == []
    assert found(**TOOLS, tools=[TOOL]) == []
    assert found(settings={}, providers={}) == [], "command line clients need no model"
    assert found(prompt="", rules=[{"name": "r", "text": "x", "include": "always"}]) == []
    for url in ("https://example.org/mcp", "http://127.0.0.1:9/mcp", "http://[::1]/", "http://localhost/"):
        assert found(mcpServers={"web": REMOTE | {"url": url}}) == [], url


@pytest.mark.parametrize(
    ("fields", "severity", "place"),
    [
        ({"metadata": {"id": "a", "name": "A"}}, Severity.HINT, "metadata.description"),
        ({"prompt": ""}, Severity.ERROR, "prompt"),
        ({"prompt": Definition.model_fields["prompt"].default}, Severity.HINT, "prompt"),
        ({"prompt": "x" * (LONG_PROMPT + 1)}, Severity.HINT, "prompt"),
        ({"settings": {}}, Severity.WARNING, "settings.model"),
        ({"settings": {"model": "unknown:x"}}, Severity.ERROR, "settings.model"),
        ({"settings": {"model": "claude:x"}}, Severity.WARNING, "settings.model"),
        ({"providers": GOOD["providers"] | {"bedrock": {}}}, Severity.ERROR, "providers.bedrock"),
        ({"providers": GOOD["providers"] | {"unknown": {}}}, Severity.ERROR, "providers.unknown"),
        ({"rules": [{"name": "r", "text": "x", "include": "agent"}]}, Severity.WARNING, "rules.r"),
        ({"references": [{"name": "a", "text": "x"}, {"name": "b", "text": "x"}]}, Severity.HINT, "references.b"),
        (TOOLS, Severity.ERROR, "tools"),
        ({"tools": [TOOL]}, Severity.WARNING, "tools"),
        (TOOLS | {"tools": [TOOL | {"description": ""}]}, Severity.WARNING, "tools.sum"),
        (TOOLS | {"tools": [TOOL | {"parameters": UNDESCRIBED}]}, Severity.HINT, "tools.sum"),
        ({"mcpServers": {"web": REMOTE}}, Severity.WARNING, "mcpServers.web"),
        ({"providers": {"openai": {"OPENAI_API_KEY": "sk-1"}}}, Severity.WARNING, "providers.openai.OPENAI_API_KEY"),
        ({"providers": {"openai": {"OPENAI_API_KEY": MASK}}}, Severity.ERROR, "providers.openai.OPENAI_API_KEY"),
        ({"mcpServers": {"x": {"command": "x", "env": {"X_KEY": MASK}}}}, Severity.ERROR, "mcpServers.x.X_KEY"),
    ],
)
def test_a_missing_or_wrong_field_is_named(fields: dict[str, Any], severity: Severity, place: str) -> None:
    assert found(**fields) == [(severity, place)]


def test_errors_come_first() -> None:
    order = [severity for severity, _ in found(**TOOLS, settings={}, rules=[{"name": n, "text": "x"} for n in "ab"])]
    assert order == [Severity.ERROR, Severity.WARNING, Severity.HINT]


def test_no_message_contains_a_secret() -> None:
    definition = Definition.model_validate(GOOD | {"providers": {"openai": {"OPENAI_API_KEY": "sk-1\n"}}})
    assert "sk-" not in repr(findings(definition))
