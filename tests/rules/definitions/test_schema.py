"""The published JSON Schemas, against files: what Workbench writes fits them, and what does not fit is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from tests.rules.definitions.test_layout import AGENT, DEFINITIONS, FILES, applied
from workbench.errors import BadInput
from workbench.rules import front_matter
from workbench.rules.definitions.layout import change, parse
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.schema import File, of_file
from workbench.rules.yaml_text import load

SCHEMAS = {file: Draft202012Validator(of_file(file)) for file in File}
TEMPLATES = sorted((Path(__file__).parents[3] / "data" / "definitions").iterdir())


def is_described(path: str, text: str) -> bool:
    """Whether a file fits its schema."""
    if path == File.AGENT:
        return bool(SCHEMAS[File.AGENT].is_valid(load(text)))
    return path == "prompt.md" or bool(SCHEMAS[File.FRONT_MATTER].is_valid(front_matter.split(text)[0]))


def is_read(files: dict[str, str]) -> bool:
    try:
        parse(files)
    except BadInput:
        return False
    return True


@pytest.mark.parametrize("file", File)
def test_a_schema_is_valid_itself(file: File) -> None:
    Draft202012Validator.check_schema(of_file(file))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_the_files_of_a_template_fit(template: Path) -> None:
    files = {path.relative_to(template).as_posix(): path.read_text("utf-8") for path in template.rglob("*.*")}
    assert [path for path, text in files.items() if not is_described(path, text)] == []
    assert change(files, parse(files)) == {}


@given(DEFINITIONS)
def test_what_is_written_fits(definition: Definition) -> None:
    files = applied({}, change({}, definition))
    assert [path for path, text in files.items() if not is_described(path, text)] == []


SERVERS = {
    "files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"A": "b"}, "cwd": "/tmp"},
    "web": {
        "url": "https://example.org/mcp",
        "headers": {"Authorization": "env://TOKEN"},
        "serverToolDefaults": {"permissionRequired": False},
        "tools": {"search": {"include": "agent"}},
    },
}
TOOL = {"name": "find", "description": "x", "parameters": {"type": "object"}, "prompt": "Find."}


@pytest.mark.parametrize(
    "parts",
    [
        {"mcpServers": SERVERS},
        {"tools": [TOOL]},
        {"providers": {"openai": {"OPENAI_API_KEY": "env://KEY"}}},
        {"settings": {"model": "openai:gpt", "houseStyle": ["plain"]}},
        {"metadata": {"id": "a", "name": "A", "skills": [{"id": "x", "name": "X", "tags": ["y"]}], "created": "2025"}},
    ],
)
def test_every_section_is_described(parts: dict[str, Any]) -> None:
    definition = Definition.model_validate({"metadata": {"id": "a", "name": "A"}} | parts)
    assert is_described(File.AGENT, change({}, definition)["agent.yaml"] or "")
    assert SCHEMAS[File.AGENT].is_valid({"metadata": {"id": "a", "name": "A"}} | parts)


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
def test_what_does_not_fit_is_refused_by_both(path: str, text: str) -> None:
    assert not is_described(path, text)
    assert not is_read(FILES | {path: text})
