"""What `agent_validate` finds in a definition that can be read."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.definitions.completeness import LONG_PROMPT, Severity, findings
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.secrets import MASK

GOOD: dict[str, Any] = {
    "metadata": {"id": "reader", "name": "Reader", "description": "Reads papers."},
    "settings": {"model": "openai:gpt-5"},
    "prompt": "You read papers.",
    "providers": {"openai": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}},
}
TOOL = {"name": "sum", "description": "Sums.", "parameters": {"type": "object"}, "prompt": "Sum."}
TOOLS = {"metadata": {**GOOD["metadata"], "mode": "tools"}}
REMOTE = {"url": "http://example.org/mcp", "headers": {"Accept": "text/plain"}}


def found(**fields: Any) -> list[tuple[Severity, str]]:
    return [(one.severity, one.place) for one in findings(Definition.model_validate(GOOD | fields))]


def test_nothing_is_found_in_a_definition_that_is_whole() -> None:
    assert found() == []
    assert found(**TOOLS, tools=[TOOL]) == []


def test_a_definition_for_command_line_clients_needs_no_model() -> None:
    assert found(settings={}, providers={}) == []


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
        (
            TOOLS | {"tools": [TOOL | {"parameters": {"type": "object", "properties": {"n": {}}}}]},
            Severity.HINT,
            "tools.sum",
        ),
        ({"mcpServers": {"web": REMOTE}}, Severity.WARNING, "mcpServers.web"),
        ({"providers": {"openai": {"OPENAI_API_KEY": "sk-1"}}}, Severity.WARNING, "providers.openai.OPENAI_API_KEY"),
        ({"providers": {"openai": {"OPENAI_API_KEY": MASK}}}, Severity.ERROR, "providers.openai.OPENAI_API_KEY"),
        ({"mcpServers": {"x": {"command": "x", "env": {"X_KEY": MASK}}}}, Severity.ERROR, "mcpServers.x.X_KEY"),
    ],
)
def test_what_is_missing_or_wrong_is_named(fields: dict[str, Any], severity: Severity, place: str) -> None:
    assert found(**fields) == [(severity, place)]


@pytest.mark.parametrize(
    "url", ["https://example.org/mcp", "http://127.0.0.1:9/mcp", "http://[::1]/", "http://localhost/"]
)
def test_headers_may_be_sent_to_this_machine_or_encrypted(url: str) -> None:
    assert found(mcpServers={"web": REMOTE | {"url": url}}) == []


def test_an_empty_prompt_is_enough_with_a_rule_that_is_always_included() -> None:
    assert found(prompt="", rules=[{"name": "r", "text": "x", "include": "always"}]) == []


def test_errors_come_first() -> None:
    order = [severity for severity, _ in found(**TOOLS, settings={}, rules=[{"name": n, "text": "x"} for n in "ab"])]
    assert order == [Severity.ERROR, Severity.WARNING, Severity.HINT]


def test_no_message_contains_a_secret() -> None:
    definition = Definition.model_validate(GOOD | {"providers": {"openai": {"OPENAI_API_KEY": "sk-1\n"}}})
    assert "sk-" not in repr(findings(definition))
