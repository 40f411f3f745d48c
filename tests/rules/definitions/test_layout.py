"""Definitions as files: read, changed and written again with the smallest difference, as their JSON Schemas say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.given import refused
from workbench.rules import front_matter
from workbench.rules.definitions.layout import change, parse
from workbench.rules.definitions.model import Definition, Include, Mode
from workbench.rules.definitions.schema import DefinitionFile, of_file
from workbench.rules.yaml_text import load

AGENT = """\
# The reader of the lab.
metadata:
  id: reader  # never changes
  name: Reader

# Found by trying.
settings:
  temperature: 0.2
  houseStyle: [plain, short]  # ours
"""
RULE = """\
---
# Discussed on Monday.
priorityLevel: 10
include: always  # since the pilot
---

Cite what you read.
"""
FILES = {"agent.yaml": AGENT, "prompt.md": "You read papers.\n", "rules/cite.md": RULE}


def changed(files: dict[str, str], **updates: Any) -> dict[str, str | None]:
    """The files that change with some fields of the definition in them."""
    definition = parse(files)
    fields = definition.model_dump(by_alias=True)
    return change(files, Definition.model_validate(fields | updates))


def mistake(files: dict[str, str]) -> str:
    return refused("INVALID_CONFIGURATION", parse, files).message


def test_a_definition_is_read_from_its_files() -> None:
    definition = parse(FILES)
    assert (definition.metadata.id, definition.metadata.mode) == ("reader", Mode.INTERACTIVE)
    assert definition.settings.temperature == 0.2
    assert definition.settings.model_extra == {"houseStyle": ["plain", "short"]}
    assert definition.prompt == "You read papers."
    (rule,) = definition.rules
    assert (rule.name, rule.priority_level, rule.include) == ("cite", 10, Include.ALWAYS)
    assert rule.text == "Cite what you read."


def test_one_field_changes_one_line_and_keeps_the_comments() -> None:
    assert changed(FILES) == {}
    metadata = {"id": "reader", "name": "Reader"}
    versioned = {"agent.yaml": AGENT.replace("  name: Reader\n", "  name: Reader\n  version: 1.1.0\n")}
    assert changed(FILES, metadata=metadata | {"version": "1.1.0"}) == versioned
    linked = {"agent.yaml": AGENT.replace("  name: Reader", "  name: Reader\n  iconUrl: https://example.org/i")}
    assert changed(FILES | linked, metadata=metadata) == {"agent.yaml": AGENT}


def test_a_written_default_stays_in_the_file() -> None:
    text = AGENT.replace("  name: Reader", "  name: Reader\n  mode: interactive  # it talks") + (
        "providers: {}\nmcpServers:\n  web: {type: http, url: 'https://example.org', headers: {}}\n"
        "tools:\n- {name: a, description: '', parameters: {type: object}, prompt: A.}\n"
        "- {name: b, description: '', parameters: {type: object}, prompt: B.}\n"
    )
    files = FILES | {"agent.yaml": text}
    assert changed(files) == {}
    settings = {"temperature": 0.3, "houseStyle": ["plain", "short"]}
    assert changed(files, settings=settings) == {"agent.yaml": text.replace("0.2", "0.3")}
    tool = {"name": "b", "parameters": {"type": "object"}, "prompt": "B."}
    line = "- {name: a, description: '', parameters: {type: object}, prompt: A.}\n"
    assert changed(files, tools=[tool]) == {"agent.yaml": text.replace(line, "")}


def test_a_rule_is_edited_and_removed_in_its_own_file_only() -> None:
    rule = {"name": "cite", "priorityLevel": 20, "include": "always", "text": "Cite what you read."}
    assert changed(FILES, rules=[rule]) == {"rules/cite.md": RULE.replace("10", "20")}
    shorter = RULE.replace("Cite what you read.", "Cite.")
    assert changed(FILES, rules=[rule | {"priorityLevel": 10, "text": "Cite."}]) == {"rules/cite.md": shorter}
    for files in (FILES, FILES | {"notes.txt": "x", "rules/deep/er.md": "x", "rules/.swp": "x"}):
        assert changed(files, rules=[]) == {"rules/cite.md": None}


def test_a_rule_with_a_new_name_keeps_its_comments_and_states_no_more_than_before() -> None:
    rule = {"name": "quote", "priorityLevel": 10, "include": "always", "text": "Cite what you read."}
    assert changed(FILES, rules=[rule]) == {"rules/quote.md": RULE, "rules/cite.md": None}
    later = RULE.replace("10", "20")
    assert changed(FILES, rules=[rule | {"priorityLevel": 20}]) == {"rules/quote.md": later, "rules/cite.md": None}
    named = {"rules/cite.md": RULE.replace("---\n#", "---\nname: cite  # short\n#", 1)}
    found = changed(FILES | named, rules=[rule])
    assert found == {
        "rules/quote.md": named["rules/cite.md"].replace("name: cite", "name: quote"),
        "rules/cite.md": None,
    }
    plain = {"rules/cite.md": "Cite.\n"}
    assert changed(FILES | plain, rules=[{"name": "quote", "text": "Cite."}]) == {
        "rules/quote.md": "Cite.\n",
        "rules/cite.md": None,
    }


def test_without_its_last_setting_a_file_states_none() -> None:
    kept = AGENT.partition("settings:")[0]
    assert changed(FILES, settings={}) == {"agent.yaml": f"{kept}settings: {{}}\n"}


def test_a_plain_text_file_is_a_rule_with_the_usual_values() -> None:
    (rule,) = parse(FILES | {"rules/cite.md": "Cite.\r\n"}).rules
    assert (rule.text, rule.priority_level, rule.include) == ("Cite.", 500, Include.MANUAL)


def test_a_new_definition_is_written_in_blocks_with_the_identity_first() -> None:
    definition = Definition.model_validate(
        {
            "metadata": {"id": "r", "name": "R"},
            "rules": [{"name": "cite", "description": "How", "text": "Cite.\nAlways."}],
            "mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}},
        }
    )
    written = change({}, definition)
    assert written["agent.yaml"] == (
        "metadata:\n  id: r\n  name: R\nmcpServers:\n  files:\n    command: npx\n    args:\n      - -y\n      - files\n"
    )
    assert written["rules/cite.md"] == (
        "---\nname: cite\ndescription: How\npriorityLevel: 500\ninclude: manual\n---\n\nCite.\nAlways.\n"
    )


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("agent.yaml", "- a\n", "agent.yaml, line 1: it is not a mapping."),
        ("agent.yaml", "a: &x 1\nb: *x\n", "agent.yaml, line 2: aliases are not allowed."),
        ("agent.yaml", AGENT + "metadata: {}\n", "agent.yaml, line 10: the key 'metadata' is given twice."),
        ("agent.yaml", AGENT + "extra: 1\n", "agent.yaml: unknown key 'extra'; the keys are metadata, "),
        ("agent.yaml", AGENT.replace("0.2", "5"), "agent.yaml: settings.temperature: must be at most 2"),
        ("agent.yaml", "metadata: {id: r}\n", "agent.yaml: metadata.name: required."),
        ("rules/cite.md", "---\na: 1\n", "rules/cite.md, line 1: the front matter is not closed by `---`."),
        ("rules/cite.md", "---\na: [\n---\n", "rules/cite.md, line 3: "),
        ("rules/cite.md", "---\nname: other\n---\nx\n", "rules/cite.md: its name is 'other', but the file is named"),
        ("rules/cite.md", "---\n---\n\n", "rules/cite.md: text: must not be empty."),
        ("rules/CITE.md", "x", "rules/: cite occurs twice"),
        ("prompt.md", "x" * 200_001, "prompt.md: must have at most 200,000 characters."),
        ("agent.yaml", "metadata: {name: r}\n", "agent.yaml: metadata.id: required: a UUID of its own"),
        ("rules/con.md", "x", "rules/con.md: name: is the name of a device on Windows."),
        ("rules/a b.md", "x", "rules/a b.md: name: may have only letters, digits, _ and -"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(path: str, text: str, message: str) -> None:
    assert mistake(FILES | {path: text}).startswith(message)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1).filter(str.strip)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.from_regex(r"[a-z0-9_-]{1,9}", fullmatch=True).filter(
                lambda name: name not in ("con", "prn", "aux", "nul")
            ),
            "text": TEXTS,
        },
        optional={"description": TEXTS, "priorityLevel": st.integers(0, 999), "include": st.sampled_from(Include)},
    ),
    max_size=3,
    unique_by=lambda entry: entry["name"],
)
DEFINITIONS = st.fixed_dictionaries(
    {
        "metadata": st.just({"id": "x", "name": "X"}),
        "settings": st.fixed_dictionaries({"temperature": st.floats(0, 2)}),
        "prompt": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")),
        "rules": ENTRIES,
        "references": ENTRIES,
    }
).map(lambda fields: Definition.model_validate(fields))


def apply_changes(files: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    """The files after changes."""
    return {path: text for path, text in (files | changes).items() if text is not None}


@given(DEFINITIONS, DEFINITIONS)
def test_a_written_definition_is_read_back_equal(first: Definition, second: Definition) -> None:
    files = apply_changes({}, change({}, first))
    assert parse(files) == first
    files = apply_changes(files, change(files, second))
    assert parse(files) == second
    assert change(files, second) == {}


# The published JSON Schemas

TEMPLATES = sorted((Path(__file__).parents[3] / "data" / "definitions").iterdir())
IDENTITY = {"metadata": {"id": "a", "name": "A"}}


def schema(file: DefinitionFile) -> Draft202012Validator:
    return Draft202012Validator(of_file(file))


def undescribed(files: Mapping[str, str | None]) -> list[str]:
    """The files that do not fit their schema."""
    agent, rule = schema(DefinitionFile.AGENT), schema(DefinitionFile.FRONT_MATTER)
    return [
        path
        for path, text in files.items()
        if path != "prompt.md"
        and not (
            agent.is_valid(load(text)) if path == DefinitionFile.AGENT else rule.is_valid(front_matter.split(text)[0])
        )
    ]


@pytest.mark.parametrize("file", DefinitionFile)
def test_a_schema_is_valid_itself(file: DefinitionFile) -> None:
    Draft202012Validator.check_schema(of_file(file))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_the_files_of_a_template_fit(template: Path) -> None:
    files = {path.relative_to(template).as_posix(): path.read_text("utf-8") for path in template.rglob("*.*")}
    assert undescribed(files) == []
    assert change(files, parse(files)) == {}


@given(DEFINITIONS)
def test_a_written_definition_fits_its_schema(definition: Definition) -> None:
    assert undescribed(change({}, definition)) == []


WEB = {
    "url": "https://example.org/mcp",
    "headers": {"Authorization": "env://TOKEN"},
    "serverToolDefaults": {"permissionRequired": False},
    "tools": {"search": {"include": "agent"}},
}
PROGRAM = {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"A": "b"}, "cwd": "/tmp"}
SECTIONS = {
    "mcpServers": {"files": PROGRAM, "web": WEB},
    "tools": [{"name": "find", "description": "x", "parameters": {"type": "object"}, "prompt": "Find."}],
    "providers": {"openai": {"OPENAI_API_KEY": "env://KEY"}},
    "settings": {"model": "openai:gpt", "houseStyle": ["plain"]},
    "metadata": {"id": "a", "name": "A", "skills": [{"id": "x", "name": "X", "tags": ["y"]}], "created": "2025"},
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_is_described(section: str) -> None:
    parts = IDENTITY | {section: SECTIONS[section]}
    assert undescribed(change({}, Definition.model_validate(parts))) == []
    assert schema(DefinitionFile.AGENT).is_valid(parts)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("agent.yaml", ""),
        ("agent.yaml", "- a\n"),
        ("agent.yaml", "metadata: {id: a}\n"),
        ("agent.yaml", "metadata: {id: a b, name: A}\n"),
        ("agent.yaml", "metadata: {id: a, name: A, mode: fast}\n"),
        ("agent.yaml", AGENT + "rules: []\n"),
        ("agent.yaml", AGENT.replace("0.2", "5")),
        ("agent.yaml", AGENT.replace("0.2", "warm")),
        ("agent.yaml", AGENT + "providers:\n  open ai: {}\n"),
        ("agent.yaml", AGENT + "providers:\n  openai: [KEY]\n"),
        ("agent.yaml", AGENT + "tools:\n  - name: find\n"),
        ("agent.yaml", AGENT + "mcpServers:\n  a: {}\n"),
        ("agent.yaml", AGENT + "mcpServers:\n  a b: {command: x}\n"),
        ("agent.yaml", AGENT + "mcpServers:\n  a: {command: x, url: 'https://example.org'}\n"),
        ("agent.yaml", AGENT + "mcpServers:\n  a: {url: 'https://example.org', headers: {'a b': c}}\n"),
        ("agent.yaml", AGENT + "mcpServers:\n  a: {command: x, tools: {b: {include: never}}}\n"),
        ("rules/cite.md", "---\npriorityLevel: 1000\n---\nx\n"),
        ("rules/cite.md", "---\npriorityLevel: high\n---\nx\n"),
        ("rules/cite.md", "---\ninclude: never\n---\nx\n"),
        ("rules/cite.md", "---\nowner: me\n---\nx\n"),
    ],
)
def test_files_that_do_not_fit_are_refused_by_the_schema_and_the_parser(path: str, text: str) -> None:
    assert undescribed(FILES | {path: text}) == [path]
    mistake(FILES | {path: text})
