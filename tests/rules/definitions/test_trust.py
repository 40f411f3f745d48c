"""The needs of a definition that require trust, and the changes that require it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.trust import TrustKind, added, needs
from workbench.rules.secrets.forms import MASK

PROGRAM = {"command": "npx", "args": ["-y", "server"], "env": {"API_TOKEN": "env://TOKEN", "LEVEL": "1"}}


def definition(**sections: Any) -> Definition:
    """A definition with some sections."""
    return Definition.model_validate({"metadata": {"id": "one", "name": "One"}, **sections})


def with_server(**fields: Any) -> Definition:
    """A definition with one server."""
    return definition(mcpServers={"files": fields})


def test_prompts_rules_references_tools_and_questions_need_no_trust() -> None:
    entry = {"name": "polite", "text": "Be polite.", "include": "always"}
    tool = {"name": "greet", "parameters": {"type": "object"}, "prompt": "Greet."}
    assert needs(definition(prompt="You work.", rules=[entry], references=[entry], tools=[tool])) == []
    assert needs(definition(providers={"test": {}})) == [], "it has no configuration"
    for permission in ("always", "tool"):
        assert needs(definition(settings={"toolPermission": permission})) == []


def test_a_program_is_shown_with_its_arguments_its_directory_and_its_variables() -> None:
    (need,) = needs(with_server(**PROGRAM, cwd="/srv"))
    assert (need.kind, need.name) == (TrustKind.PROGRAM, "mcpServers.files")
    assert need.details == {
        "command": "npx",
        "arguments": ["-y", "server"],
        "environment": {"API_TOKEN": "env://TOKEN", "LEVEL": "1"},
        "directory": "/srv",
    }
    assert need.summary == ('mcpServers.files: starts "npx" "-y" "server" in /srv with API_TOKEN=env://TOKEN, LEVEL=1')


@pytest.mark.parametrize(
    "change",
    [
        {"command": "node"},
        {"args": ["-y", "other"]},
        {"args": ["-y server"]},
        {"env": {"API_TOKEN": "env://OTHER", "LEVEL": "1"}},
        {"env": {"API_TOKEN": "written out", "LEVEL": "1"}},
        {"env": {"API_TOKEN": "env://TOKEN", "LEVEL": "1", "NODE_OPTIONS": "--require ./x.js"}},
        {"cwd": "/tmp"},
    ],
)
def test_a_changed_program_is_another_need(change: dict[str, Any]) -> None:
    before, after = needs(with_server(**PROGRAM)), needs(with_server(**PROGRAM | change))
    assert added(before, after) == after
    assert added(after, after) == []


def test_a_changed_secret_is_another_need_though_it_is_never_shown() -> None:
    before, after = (needs(with_server(**PROGRAM | {"env": {"API_TOKEN": value}})) for value in ("hunter2", "hunter3"))
    assert added(before, after) == after
    assert before[0].details == after[0].details
    assert before[0].details["environment"] == {"API_TOKEN": MASK}
    assert "hunter" not in str([before, after])


def test_a_file_that_a_program_runs_and_that_changes_is_another_need() -> None:
    server = with_server(command="sh", args=["rules/run.md"])
    before, after = (needs(server, {"files": {"agents/one/rules/run.md": sha}}) for sha in ("0a", "0b"))
    assert added(before, after) == after
    assert after[0].details["files"] == {"agents/one/rules/run.md": "0b"}


def test_changing_how_a_servers_tools_are_offered_needs_no_new_trust() -> None:
    before = needs(with_server(**PROGRAM))
    after = needs(with_server(**PROGRAM, tools={"list": {"include": "manual", "permissionRequired": True}}))
    assert before == after


def test_a_server_is_shown_with_its_headers_but_not_with_secrets() -> None:
    headers = {"Authorization": "Bearer hunter2", "X-Team": "blue"}
    (need,) = needs(with_server(url="https://example.org/mcp", headers=headers))
    assert need.kind is TrustKind.SERVER
    assert need.details == {
        "type": "streamable-http",
        "url": "https://example.org/mcp",
        "headers": {"Authorization": MASK, "X-Team": "blue"},
    }


def test_the_address_that_gets_a_providers_secret_is_part_of_the_need() -> None:
    key = {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}
    before = needs(definition(providers={"openai": key}))
    after = needs(definition(providers={"openai": key | {"OPENAI_BASE_URL": "http://evil.example"}}))
    assert [need.kind for need in before] == [TrustKind.PROVIDER]
    assert added(before, after) == after


def test_each_tool_that_runs_without_a_question_is_a_need() -> None:
    server = PROGRAM | {
        "serverToolDefaults": {"permissionRequired": False},
        "tools": {"write": {"permissionRequired": False}, "read": {"permissionRequired": True}, "list": {}},
    }
    found = needs(definition(settings={"toolPermission": "never"}, mcpServers={"files": server}))
    names = [need.name.removeprefix("mcpServers.files.") for need in found if need.kind is TrustKind.PERMISSION]
    assert names == ["settings.toolPermission", "serverToolDefaults", "tools.write"]
    assert found[0].summary == "settings.toolPermission: tools that run without asking you: all"


def test_every_character_of_a_need_for_trust_is_shown() -> None:
    (need,) = needs(with_server(command="sh", args=["-c", "echo harmless\n\u202ereboot \u001b[2K"]))
    assert need.details["arguments"] == ["-c", "echo harmless\\n\\u202ereboot \\x1b[2K"]
    assert json.dumps(need.details)
    assert need.summary.isprintable()


def test_programs_that_look_alike_are_different_needs() -> None:
    one, other = (needs(with_server(command="sh", args=[text])) for text in ("a\n", "a\\n"))
    assert one[0].details == other[0].details
    assert added(one, other) == other
