"""Which form a file has, by its content and its name, and what it says as a definition."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from workbench.errors import BadInput
from workbench.rules.definitions import older
from workbench.rules.definitions.conversion import Converted, convert
from workbench.rules.definitions.other_forms import configurations, markdown
from workbench.rules.definitions.other_forms.report import Imported
from workbench.rules.definitions.portable import KEY as OWN_KEY
from workbench.rules.definitions.portable import import_text
from workbench.rules.wire import json_safety
from workbench.rules.yaml_text import InvalidYaml, load

KNOWN = (
    "an export of Workbench, a subagent, a skill (SKILL.md), instructions (AGENTS.md, CLAUDE.md), a rule of Cursor, "
    "MCP servers (mcpServers or servers), settings of Gemini CLI, config.toml of Codex, or a tsagent file"
)
OWN = "workbench"
_MARKDOWN = (".md", ".mdc", ".markdown", ".cursorrules", ".windsurfrules")
_YAML = (".yaml", ".yml")


def read(text: str, file: str, definition_id: str) -> Imported:
    """What a file says as a definition.

    Args:
        file: its path, of which the last directory and the name may tell its form; empty if that is not known.
        definition_id: its id if the file names none.

    Raises:
        BadInput: ``INVALID_CONFIGURATION``.
    """
    text = text.removeprefix("\ufeff")
    name = PurePosixPath(file).name
    if name.endswith(".mdt"):
        entry = {"name": PurePosixPath(name).stem, "include": "always"} | older.entry(name, text)
        return _converted("tsagent-rule", convert(name, _named({"rules": [entry]}), definition_id))
    if name.endswith(_MARKDOWN) or (text.startswith("---\n") and not name.endswith(_YAML)):
        return markdown.read(text, file, definition_id)
    if text.lstrip().startswith(("{", "//", "/*")) or name.endswith((".json", ".jsonc")):
        return _of_json(text, file, definition_id)
    if name.endswith(".toml") or (toml := _toml(text)):
        content = toml if not name.endswith(".toml") else _toml(text, file)
        return configurations.of_codex(content, file, definition_id)
    return _of_yaml(text, name, definition_id)


def _of_json(text: str, file: str, definition_id: str) -> Imported:
    try:
        content = json_safety.decode_configuration(text)
    except ValueError as error:
        raise _invalid(str(error)) from None
    if not isinstance(content, dict):
        raise _invalid("it is not an object")
    if OWN_KEY in content:
        return _of_yaml(text, file, definition_id)
    within = content.get("mcp")
    if isinstance(content.get("servers"), Mapping) or (isinstance(within, Mapping) and "servers" in within):
        return configurations.of_servers(content, file, definition_id)
    if isinstance(content.get("metadata"), Mapping):
        return _of_tsagent(older.JSON_AGENT, text, definition_id)
    if configurations.is_gemini(file, content):
        return configurations.of_gemini(content, file, definition_id)
    if isinstance(content.get("mcpServers"), Mapping):
        return configurations.of_servers(content, file, definition_id)
    raise _invalid(f"it is none of these: {KNOWN}")


def _of_yaml(text: str, name: str, definition_id: str) -> Imported:
    try:
        content = load(text)
    except InvalidYaml as error:
        if not name.endswith(_YAML) and OWN_KEY not in text and "metadata" not in text:
            raise _invalid(f"it is none of these: {KNOWN}") from None
        where = f"line {error.line}: " if error.line else ""
        raise _invalid(f"{where}{error}", **({"line": error.line} if error.line else {})) from None
    if isinstance(content, dict) and OWN_KEY in content:
        definition = import_text(text)
        return Imported(OWN, definition.metadata.name, Converted(definition))
    if isinstance(content, dict) and ("metadata" in content or older.PROMPT_KEY in content):
        return _of_tsagent(older.YAML_AGENTS[0], text, definition_id)
    if isinstance(content, dict) or name.endswith(_YAML):
        raise _invalid(f"it is none of these: {KNOWN}")
    return markdown.read(text, name, definition_id)


def _of_tsagent(agent: str, text: str, definition_id: str) -> Imported:
    converted = older.parse(agent, {agent: text}, definition_id)
    if agent == older.JSON_AGENT:
        beside = "prompt.md, rules/*.mdt, refs/*.mdt: they are beside the file; agent_migrate converts its directory"
        converted = Converted(converted.definition, converted.changed, (*converted.left_out, beside))
    return _converted("tsagent", converted)


def _converted(form: str, converted: Converted) -> Imported:
    name = converted.definition.metadata.name
    return Imported(form, "" if name == _UNNAMED else name, converted)


_UNNAMED = "unnamed"


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": _UNNAMED}} | fields


def _toml(text: str, file: str = "") -> dict[str, Any]:
    """What TOML contains; empty if it is none, unless it is of a file with that suffix."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if not file:
            return {}
        raise _invalid(str(error)) from None


def _invalid(reason: str, **details: Any) -> BadInput:
    return BadInput("INVALID_CONFIGURATION", f"This file cannot be imported: {reason}.", **details)
