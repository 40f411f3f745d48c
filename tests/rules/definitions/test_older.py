"""Definitions in two older layouts: what they say is kept, in the names and forms that definitions have now."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.errors import BadInput
from workbench.rules.definitions.conversion import Converted
from workbench.rules.definitions.model import DEFAULT_PROMPT, Include, Mode
from workbench.rules.definitions.older import JSON_AGENT, agent_file, is_part, parse
from workbench.rules.yaml_text import write

METADATA = {
    "name": "Optimizer Agent",
    "version": "1.0.2",
    "description": "Finds tools",
    "iconUrl": "https://example.org/icon.png",
    "documentationUrl": "https://example.org/manual",
    "provider": {"organization": "Example", "url": "https://example.org"},
    "skills": [{"id": "search", "name": "Search", "description": "Finds", "tags": ["tools"]}],
    "created": "2025-04-07T17:32:29.081Z",
    "lastAccessed": "2025-04-08T09:00:00.000Z",
}
SETTINGS = {"maxChatTurns": "30", "temperature": "0", "topP": "0.05", "theme": "dark", "systemPath": "/usr/bin:/bin"}
FILES = {
    JSON_AGENT: json.dumps(
        {
            "metadata": METADATA,
            "settings": SETTINGS,
            "providers": {"claude": {"ANTHROPIC_API_KEY": "env://KEY"}},
            "mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"A": "b"}}},
        }
    ),
    "prompt.md": "You find tools.\n",
    "rules/cite.mdt": '---\n{\n\t"name": "cite",\n\t"priorityLevel": 10,\n\t"include": "always"\n}\n---\nCite.\n',
    "rules/plain.mdt": "No front matter.\r\n",
    "refs/terms.mdt": "---\ndescription: Words\ninclude: agent\n---\n\nA term.\n---\nAnother.\n",
}
YAML: dict[str, Any] = {
    "metadata": METADATA | {"autonomous": True},
    "settings": SETTINGS,
    "systemPrompt": "You find tools.",
    "rules": [{"name": "cite", "text": "Cite.", "embeddings": [[0.1, 1.6e-33]], "hash": "0a"}],
    "references": [],
    "providers": {"ollama": {}, "docker": {"BASE_URL": "http://localhost:12434"}},
    "mcpServers": {},
}


def from_json(**changes: str) -> Converted:
    """Parse the files above with some of them changed or added."""
    return parse(JSON_AGENT, FILES | changes, "optimizer")


def from_yaml(**changes: Any) -> Converted:
    """Parse the YAML file above with some fields changed or added."""
    return parse("a.yaml", {"a.yaml": write(YAML | changes)}, "optimizer")


def mistake(agent: str, files: dict[str, str]) -> str:
    return refused("INVALID_CONFIGURATION", parse, agent, files, "optimizer").message


def test_the_files_of_a_directory_make_a_definition() -> None:
    conversion = from_json()
    definition = conversion.definition
    assert (definition.metadata.id, definition.metadata.name) == ("optimizer", "Optimizer Agent")
    assert definition.metadata.created == METADATA["created"]
    assert definition.metadata.skills[0].tags == ["tools"]
    assert definition.prompt == "You find tools."
    assert [(rule.name, rule.priority_level, rule.include, rule.text) for rule in definition.rules] == [
        ("cite", 10, Include.ALWAYS, "Cite."),
        ("plain", 500, Include.MANUAL, "No front matter."),
    ]
    (reference,) = definition.references
    assert (reference.name, reference.description, reference.text) == ("terms", "Words", "A term.\n---\nAnother.")
    assert definition.mcp_servers["files"].type == "stdio"
    assert conversion.left_out == ()


def test_one_yaml_file_makes_a_definition() -> None:
    definition = from_yaml().definition
    assert definition.prompt == "You find tools."
    assert definition.metadata.mode is Mode.AUTONOMOUS
    assert [(rule.name, rule.text) for rule in definition.rules] == [("cite", "Cite.")]
    assert definition.providers == {"ollama": {}, "docker": {"BASE_URL": "http://localhost:12434"}}


def test_numbers_that_were_text_are_numbers_and_unknown_settings_are_kept() -> None:
    settings = from_json().definition.settings
    assert (settings.max_chat_turns, settings.temperature, settings.top_p) == (30, 0.0, 0.05)
    assert settings.model_extra == {"systemPath": "/usr/bin:/bin", "theme": "dark"}
    other = from_yaml(settings={"build": "2024", "maxChatTurns": "", "theme": None}).definition.settings
    assert (other.model_extra, other.max_chat_turns) == ({"build": "2024", "theme": None}, None)


def test_a_missing_prompt_is_the_usual_one_and_an_empty_one_stays_empty() -> None:
    assert parse(JSON_AGENT, {JSON_AGENT: FILES[JSON_AGENT]}, "x").definition.prompt == DEFAULT_PROMPT
    assert from_yaml(systemPrompt="").definition.prompt == ""


def test_the_latest_model_is_the_model_under_the_name_of_its_provider() -> None:
    conversion = from_yaml(settings={"mostRecentModel": "claude:opus"})
    assert conversion.definition.settings.model == "anthropic:opus"
    assert conversion.changed == (
        "settings.mostRecentModel is settings.model now.",
        "settings.model: 'claude' is named 'anthropic' now.",
    )


def test_exported_tools_are_taken_from_the_metadata_and_set_the_mode() -> None:
    tool = {"name": "find", "description": "", "parameters": {"type": "object"}, "prompt": "Find."}
    definition = from_yaml(metadata=METADATA | {"autonomous": True, "tools": [tool]}).definition
    assert [tool.name for tool in definition.tools] == ["find"]
    assert definition.metadata.mode is Mode.TOOLS


def test_a_provider_gets_the_name_it_has_now_unless_that_is_taken() -> None:
    assert from_json().definition.providers == {"anthropic": {"ANTHROPIC_API_KEY": "env://KEY"}}
    both = from_yaml(providers={"claude": {"ANTHROPIC_API_KEY": "a"}, "anthropic": {"ANTHROPIC_API_KEY": "b"}})
    assert both.definition.providers == {"anthropic": {"ANTHROPIC_API_KEY": "b"}}
    assert both.left_out == ("providers.claude",)


def test_a_provider_without_values_had_its_key_from_the_variable_of_its_name() -> None:
    made = from_yaml(providers={"gemini": {}})
    assert made.definition.providers == {"gemini": {"GOOGLE_API_KEY": "env://GOOGLE_API_KEY"}}
    assert "providers.gemini.GOOGLE_API_KEY is env://GOOGLE_API_KEY" in "".join(made.changed)


def test_names_that_are_not_valid_now_are_replaced_and_none_overwrites_another() -> None:
    rules = [{"name": name, "text": name} for name in ("a.b", "a b", "A-B", "con", "Prüfung")]
    conversion = from_yaml(rules=rules, mcpServers={"Arcade.dev": {"url": "https://example.org"}})
    names = [(rule.name, rule.text) for rule in conversion.definition.rules]
    renamed = [("a-b", "a.b"), ("a-b-2", "a b"), ("A-B-3", "A-B"), ("con-2", "con"), ("Prufung", "Prüfung")]
    assert sorted(names) == sorted(renamed)
    assert list(conversion.definition.mcp_servers) == ["Arcade-dev"]
    assert "rules: 'a.b' is named 'a-b' now." in conversion.changed


def test_a_disabled_rule_is_included_on_request_only() -> None:
    conversion = from_yaml(rules=[{"name": "cite", "text": "Cite.", "enabled": False, "include": "always"}])
    assert conversion.definition.rules[0].include is Include.MANUAL
    assert conversion.changed == ("rules.cite was disabled: it is included on request only.",)


def test_a_conversion_names_omitted_fields_but_not_computed_ones() -> None:
    server = {"command": "npx", "tools": {"read": {"permissionRequired": True, "embeddings": [[1.0]], "hash": "0"}}}
    conversion = from_yaml(
        supervisors=[{"name": "guardian"}],
        metadata=METADATA | {"colour": "red"},
        rules=[{"name": "cite", "text": "Cite.", "owner": "me"}],
        mcpServers={"own": {"type": "internal", "tool": "rules"}, "files": server | {"disabled": True}},
    )
    left_out = ("supervisors", "metadata.colour", "rules.cite.owner", "mcpServers.own", "mcpServers.files.disabled")
    assert sorted(conversion.left_out) == sorted(left_out)
    assert conversion.definition.mcp_servers["files"].tools["read"].permission_required is True


def test_variables_in_headers_and_environments_become_references() -> None:
    headers = {"Authorization": "Bearer ${KEY}", "X-User": "${USER_ID}", "X-Other": "a ${B} c", "X-Plain": "x"}
    conversion = from_yaml(mcpServers={"web": {"url": "https://example.org", "headers": headers}})
    server = conversion.definition.mcp_servers["web"]
    references = {"Authorization": "Bearer env://KEY", "X-User": "env://USER_ID"}
    assert server.model_dump()["headers"] == headers | references
    assert conversion.changed[0] == "mcpServers.web.headers.Authorization refers to the variable KEY as env://KEY now."
    env = from_yaml(mcpServers={"own": {"command": "x", "env": {"A": "${B}"}}}).definition.mcp_servers["own"]
    assert env.model_dump()["env"] == {"A": "env://B"}


def test_the_agent_file_says_which_other_files_belong_to_it() -> None:
    assert agent_file(["prompt.md", "tsagent.json"]) == "tsagent.json"
    assert agent_file(["tsagent.json", "tsagent.yaml"]) == "tsagent.yaml"
    assert agent_file(["agent.yaml", "bob.yaml"]) is None
    own = [path for path in (*FILES, "rules/notes.md", "rules/deep/a.mdt", "a.txt") if is_part("tsagent.json", path)]
    assert own == list(FILES)
    assert [path for path in (*FILES, "tsagent.yaml") if is_part("tsagent.yaml", path)] == ["tsagent.yaml"]


def test_a_byte_order_mark_is_no_part_of_a_text() -> None:
    marked = {path: f"\ufeff{text}" for path, text in FILES.items()}
    assert parse(JSON_AGENT, marked, "optimizer") == from_json()


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (JSON_AGENT, "{", "tsagent.json: it is not JSON."),
        (JSON_AGENT, "[]", "tsagent.json: it is not a mapping."),
        (JSON_AGENT, '{"metadata": []}', "tsagent.json: metadata is not a mapping."),
        (JSON_AGENT, '{"metadata": {}}', "tsagent.json: metadata.name: required."),
        (JSON_AGENT, '{"metadata": {"name": "\\u0000"}}', "tsagent.json: it contains"),
        (JSON_AGENT, '{"metadata": {"name": "A"}, "rules": []}', "tsagent.json: rules belongs in a file of its own."),
        (JSON_AGENT, "[" * 100_000, "tsagent.json: it"),
        ("rules/cite.mdt", "---\na: [\n---\n", "rules/cite.mdt, line 3: "),
        ("rules/cite.mdt", "---\na: *x\n---\n", "rules/cite.mdt, line 2: "),
        ("rules/cite.mdt", "---\n- a\n---\nx", "rules/cite.mdt: it is not a mapping."),
        ("rules/cite.mdt", "---\na: 1\n", "rules/cite.mdt, line 1: the front matter is not closed by `---`."),
        ("rules/cite.mdt", '---\n{"name": 5}\n---\nx', "tsagent.json: rules: an item has no name."),
        ("rules/cite.mdt", "---\n---\n\n", "tsagent.json: rules.0.text: must not be empty."),
        ("tsagent.yaml", "a: &x [1]\nb: *x\n", "tsagent.yaml, line "),
        ("tsagent.yaml", "metadata: {name: A}\nrules: {a: b}\n", "tsagent.yaml: rules is not a list of mappings."),
        ("tsagent.yaml", "metadata: {name: A}\nproviders: [a]\n", "tsagent.yaml: providers is not a mapping."),
        ("tsagent.yaml", "- a\n", "tsagent.yaml: it is not a mapping."),
        ("tsagent.yaml", "", "tsagent.yaml: it is not a mapping."),
        (
            "tsagent.yaml",
            "metadata: {name: A}\nsettings: {temperature: 5}\n",
            "tsagent.yaml: settings.temperature: must be at most 2",
        ),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(path: str, text: str, message: str) -> None:
    agent = path if path == "tsagent.yaml" else JSON_AGENT
    assert mistake(agent, FILES | {path: text}).startswith(message)


def test_no_secret_is_in_what_a_conversion_reports() -> None:
    providers = {"claude": {"ANTHROPIC_API_KEY": "sk-hidden"}, "anthropic": {"ANTHROPIC_API_KEY": "sk-other"}}
    headers = {"Authorization": "Bearer sk-hidden"}
    conversion = from_yaml(providers=providers, mcpServers={"a.b": {"url": "https://example.org", "headers": headers}})
    assert "sk-" not in repr((conversion.changed, conversion.left_out))
    broken = write(YAML | {"mcpServers": {"a": {"url": "nowhere", "headers": headers}}})
    assert "sk-" not in mistake("a.yaml", {"a.yaml": broken})


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*YAML, "name", "text"]), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*YAML, "prompt", "tools", "other"]), JSON_VALUES))
def test_any_fields_are_read_or_refused_with_a_code(fields: dict[str, Any]) -> None:
    try:
        found = parse("a.yaml", {"a.yaml": json.dumps({"metadata": {"name": "A"}} | fields)}, "a")
    except BadInput as error:
        assert error.code == "INVALID_CONFIGURATION"
    else:
        assert found.definition.metadata.name
