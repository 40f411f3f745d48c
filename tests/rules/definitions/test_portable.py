"""Definitions as one file, which restores everything except secrets, and their differences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.rules.definitions.comparison import (
    MOST_CHARACTERS,
    MOST_LINES,
    DefinitionDifference,
    Status,
    differences,
)
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.portable import export_text, import_text

METADATA = {"id": "reader", "name": "Reader", "created": "2026-01-01T00:00:00Z", "skills": [{"id": "s", "name": "S"}]}
WHOLE = {
    "metadata": METADATA | {"mode": "tools", "persona": "reviewer"},
    "settings": {"temperature": 0.2, "houseStyle": ["plain", {"short": True}]},
    "prompt": "You read papers.\n\n- all: of {them}\n# not a comment\n",
    "rules": [{"name": "cite", "text": "---\nCite: what\n---", "include": "always", "priorityLevel": 1}],
    "references": [{"name": "style", "text": "  indented\n\ttabbed  \nend"}],
    "tools": [{"name": "sum", "parameters": {"type": "object", "properties": {"n": {}}}, "prompt": "Sum {n}."}],
    "providers": {"openai": {"OPENAI_API_KEY": "env://KEY"}, "test": {}},
    "mcpServers": {"git": {"command": "git-mcp", "args": ["-x"]}, "web": {"type": "sse", "url": "http://localhost/x"}},
}


def definition(**fields: Any) -> Definition:
    return Definition.model_validate({"metadata": METADATA, **fields})


def test_a_definition_without_secrets_survives_an_export_and_import() -> None:
    text, replaced = export_text(definition(**WHOLE))
    assert (import_text(text), replaced) == (definition(**WHOLE), {})
    comment, marker, *rest = text.splitlines()
    assert comment.startswith("# ")
    assert [marker, rest[0]] == ["workbenchAgent: 1", "metadata:"]
    assert "prompt: |-\n  Read.\n  Then write.\n" in export_text(definition(prompt="Read.\nThen write."))[0]


@given(st.text(max_size=300), st.text(min_size=1, max_size=300).filter(str.strip))
def test_any_text_survives_an_export_and_import(prompt: str, rule: str) -> None:
    try:
        one = definition(prompt=prompt, rules=[{"name": "r", "text": rule}])
    except ValueError:
        return
    assert import_text(export_text(one)[0]) == one


def test_secrets_become_references() -> None:
    text, replaced = export_text(
        definition(
            providers={"openai": {"OPENAI_API_KEY": "sk-1234"}},
            mcpServers={
                "hub-1": {"url": "https://example.org", "headers": {"X-Api-Key": "sk-5678", "Accept": "text/plain"}},
                "box": {"command": "box", "env": {"BOX_TOKEN": "sk-9012", "MODE": "fast"}},
            },
        )
    )
    assert replaced == {
        "providers.openai.OPENAI_API_KEY": "env://OPENAI_API_KEY",
        "mcpServers.hub-1.X-Api-Key": "env://HUB_1_X_API_KEY",
        "mcpServers.box.BOX_TOKEN": "env://BOX_BOX_TOKEN",
    }
    assert "sk-" not in text
    imported = import_text(text)
    assert imported.providers == {"openai": {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}}
    assert imported.mcp_servers["box"].model_dump()["env"] == {"BOX_TOKEN": "env://BOX_BOX_TOKEN", "MODE": "fast"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no exported agent"),
        ("[]", "no exported agent"),
        ("metadata: {id: x, name: X}\n", "no exported agent"),
        ("workbenchAgent: 2\n", "its format is 2"),
        ("workbenchAgent: 1\n", "metadata"),
        ("workbenchAgent: 1\nmetadata: {id: x, name: X}\nextra: 1\n", "extra"),
        ("workbenchAgent: 1\nmetadata: {id: ../x, name: X}\n", "metadata.id"),
        ("workbenchAgent: 1\nmetadata: &a {id: x, name: X}\nsettings: *a\n", "line"),
        ("a: [", "line"),
        ("x: !!python/object:os.system {}\n", "line"),
    ],
)
def test_other_files_are_refused_with_the_reason(text: str, reason: str) -> None:
    message = refused("INVALID_CONFIGURATION", import_text, text).message
    assert message.startswith("This file cannot be imported: ")
    assert reason in message


@pytest.mark.long
def test_a_definition_that_is_too_large_is_not_exported() -> None:
    rules = [{"name": f"r{number}", "text": "x" * 200_000} for number in range(21)]
    refused("TOO_LARGE", export_text, definition(rules=rules))


# Differences

RULE = {"name": "cite", "text": "Cite what you read.", "include": "always"}


def patches(old: Definition, new: Definition) -> dict[str, str | None]:
    return {difference.path: difference.patch for difference in differences(old, new)}


def test_equal_definitions_do_not_differ_whenever_they_were_created() -> None:
    metadata = METADATA | {"created": "2026-02-01T00:00:00Z"}
    assert differences(definition(rules=[RULE]), definition(rules=[RULE], metadata=metadata)) == []


def test_a_changed_setting_is_one_line() -> None:
    patch = patches(definition(settings={"temperature": 0.2}), definition(settings={"temperature": 0.3}))
    assert patch.keys() == {"agent.yaml"}
    lines = (patch["agent.yaml"] or "").splitlines()
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ["-  temperature: 0.2", "+  temperature: 0.3"]


def test_rules_are_added_changed_and_removed() -> None:
    old = definition(rules=[RULE, {"name": "gone", "text": "x"}])
    new = definition(rules=[RULE | {"text": "Cite all."}, {"name": "new", "text": "y"}])
    assert [(difference.path, difference.status) for difference in differences(old, new)] == [
        ("rules/cite.md", Status.CHANGED),
        ("rules/gone.md", Status.REMOVED),
        ("rules/new.md", Status.ADDED),
    ]


def test_secrets_are_masked() -> None:
    old = definition(providers={"openai": {"OPENAI_API_KEY": "sk-old"}})
    new = definition(providers={"openai": {"OPENAI_API_KEY": "sk-new", "OPENAI_BASE_URL": "http://localhost"}})
    found = repr(differences(old, new))
    assert "sk-" not in found
    assert "http://localhost" in found


def test_long_texts_are_named_without_a_patch() -> None:
    long = "\n".join(map(str, range(MOST_LINES + 1)))
    assert differences(definition(), definition(prompt=long)) == [
        DefinitionDifference("prompt.md", Status.CHANGED, None)
    ]


def test_patches_stop_where_they_would_be_too_long_together() -> None:
    rules = [{"name": f"r{n}", "text": "x" * 150_000} for n in range(4)]
    found = differences(definition(), definition(rules=rules))
    assert [one.patch is None for one in found] == [False, False, True, True]
    assert sum(len(one.patch or "") for one in found) <= MOST_CHARACTERS


@given(st.text(max_size=200), st.text(max_size=200))
def test_every_difference_of_prompts_is_found(old: str, new: str) -> None:
    one, other = definition(prompt=old), definition(prompt=new)
    assert bool(differences(one, other)) == (one != other)
