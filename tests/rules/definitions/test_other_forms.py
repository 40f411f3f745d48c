"""Files of other programs become definitions, which name what is lost; and definitions become such files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomli_w

from tests.given import refused
from tests.rules.definitions.other_files import FILES, OtherFile
from workbench.errors import BadInput
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.other_forms.forms import read
from workbench.rules.definitions.other_forms.markdown import head_and_body
from workbench.rules.definitions.other_forms.report import Imported, ImportReport
from workbench.rules.definitions.other_forms.written import ExportForm, write
from workbench.rules.definitions.portable import export_text
from workbench.rules.wire import json_safety
from workbench.rules.yaml_text import load
from workbench.rules.yaml_text import write as write_yaml

ID = "01890a5d-ac96-774b-bcce-b302099a8057"


def imported(text: str, path: str = "") -> Imported:
    return read(text, path, ID)


def said(definition: Definition) -> dict[str, Any]:
    """What a definition says, without its id and name."""
    sections = definition.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    sections["metadata"] = {key: value for key, value in sections["metadata"].items() if key not in ("id", "name")}
    return {key: value for key, value in sections.items() if value != {}}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_a_file_of_another_program_becomes_a_definition_that_names_its_losses(file: OtherFile) -> None:
    found = imported(file.text, file.path)
    stem = file.path.rpartition("/")[2].lstrip(".").partition(".")[0]
    assert (found.form, found.name or stem) == (file.form, file.name)
    assert said(found.converted.definition) == file.says
    lost = found.converted.left_out
    assert [entry[: len(start)] for entry, start in zip(lost, file.left_out, strict=False)] == file.left_out
    assert len(lost) == len(file.left_out)


@pytest.mark.parametrize("file", [file for file in FILES if file.back], ids=lambda file: file.path)
def test_an_imported_file_is_exported_again_equal_in_all_that_it_can_say(file: OtherFile) -> None:
    definition = imported(file.text, file.path).converted.definition
    definition = definition.model_copy(update={"metadata": definition.metadata.model_copy(update={"name": file.name})})
    if file.back == "workbench":
        text, path = export_text(definition)[0], "x.yaml"
    else:
        export = write(definition, ExportForm(str(file.back)))
        text, path = export.text, export.file
        assert export.left_out == ()
    again = imported(text, path)
    assert again.name == file.name
    assert said(again.converted.definition) == file.says
    assert again.converted.left_out == () or file.back == "skill"


@pytest.mark.parametrize("arguments", ["3", '"-y x"'])
def test_a_command_in_parts_with_arguments_that_are_no_list_is_left_out(arguments: str) -> None:
    [lost] = imported(f'{{"mcpServers": {{"a": {{"command": ["npx"], "args": {arguments}}}}}}}').converted.left_out
    assert lost.startswith("mcpServers.a")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[1]", "x.json"),
        ("{", "x.json"),
        ('{"a": 1}', "x.json"),
        ("a = ", "x.toml"),
        ("a: 1", "x.yaml"),
        ("a: [", "x.yaml"),
        ("workbenchAgent: 7\nmetadata: {}\n", "x.yaml"),
    ],
)
def test_a_file_of_no_known_form_is_refused(text: str, path: str) -> None:
    assert "cannot be imported" in refused("INVALID_CONFIGURATION", imported, text, path).message


def test_a_file_that_is_no_configuration_is_told_what_can_be_imported() -> None:
    error = refused("INVALID_CONFIGURATION", imported, "Notes: the table: of masses\n", "notes.txt")
    assert "it is none of these: an export of Workbench" in error.message


def test_a_form_is_known_by_its_content_alone() -> None:
    for file in FILES:
        if file.form in ("claude-subagent", "mcp-json", "vscode-mcp", "gemini-settings", "codex-config", "tsagent"):
            assert imported(f"\ufeff{file.text}").form == file.form


@pytest.mark.parametrize(
    ("mode", "kept"), [("plan", True), ("dontAsk", True), ("acceptEdits", True), ("bypassPermissions", False)]
)
def test_a_permission_mode_is_kept_unless_it_gives_more_than_profiles_do(mode: str, kept: bool) -> None:
    found = imported(f"---\nname: a\ndescription: b\npermissionMode: {mode}\n---\nWork.\n").converted
    assert found.definition.settings.permission_mode == (mode if kept else None)
    assert [entry.partition(":")[0] for entry in found.left_out] == ([] if kept else ["permissionMode"])


def test_a_subagent_without_tools_is_not_limited_and_one_with_an_empty_list_has_none() -> None:
    def limits(line: str) -> Any:
        return imported(f"---\nname: a\ndescription: b\n{line}---\nWork.\n").converted.definition.settings.allowed_tools

    assert limits("") is None
    assert limits("tools: '*'\n") is None
    assert limits("tools: []\n") == []
    assert limits("tools:\n  - Read\n  - Grep\n") == ["Read", "Grep"]


def test_what_a_subagent_cannot_say_of_a_definition_is_named() -> None:
    definition = Definition.model_validate(
        {
            "metadata": {"id": ID, "name": "Team Critic", "persona": "reviewer"},
            "settings": {"model": "openai:gpt-5", "temperature": 0.1},
            "prompt": "Judge.",
            "rules": [{"name": "cite", "text": "Cite.", "include": "always"}, {"name": "calm", "text": "Be calm."}],
            "providers": {"openai": {"OPENAI_API_KEY": "sk-1234"}},
            "mcpServers": {
                "hub": {"url": "https://hub.example/mcp", "headers": {"Authorization": "Bearer op://v/i/f"}}
            },
        }
    )
    export = write(definition, ExportForm.CLAUDE_SUBAGENT)
    assert [entry.partition(":")[0] for entry in export.left_out] == [
        "metadata.name",
        "settings.model",
        "mcpServers.hub.headers.Authorization",
        "settings.temperature",
        "providers.openai",
        "metadata.persona",
        "rules.calm",
        "rules.cite",
    ]
    assert export.file == "team-critic.md"
    assert "sk-1234" not in export.text
    assert "# Rules\n\n## cite\n\nCite." in export.text


ODD = (None, 1, "x", [], {"a": 1}, [["a"]])


def with_odd_values(value: Any) -> Iterator[Any]:
    """A value with an odd one in place of each of its parts, in turn."""
    yield from ODD
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for odd in with_odd_values(part):
            changed: Any = value.copy()
            changed[key] = odd
            yield changed


@pytest.mark.long
def test_any_value_at_any_place_is_read_or_refused() -> None:
    report = ImportReport()
    for file in FILES:
        if file.path.endswith((".md", ".mdc")):
            head, body = head_and_body(file.text, report)
            texts = [f"---\n{write_yaml(one)}---\n{body}" for one in with_odd_values(head)]
        elif file.path.endswith(".json"):
            texts = [json.dumps(one) for one in with_odd_values(json_safety.decode_configuration(file.text))]
        elif file.path.endswith(".toml"):
            odd = with_odd_values(tomllib.loads(file.text))
            texts = [tomli_w.dumps(one) for one in odd if isinstance(one, dict) and is_toml(one)]
        else:
            texts = [write_yaml(one) for one in with_odd_values(load(file.text))] if ".yaml" in file.path else []
        for text in texts:
            try:
                definition = imported(text, file.path).converted.definition
                for form in (ExportForm.CLAUDE_SUBAGENT, ExportForm.SKILL):
                    write(definition, form)
            except BadInput as error:
                assert error.code == "INVALID_CONFIGURATION"


def is_toml(value: Any) -> bool:
    """Whether TOML can say a value: it has no null."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is not None and all(map(is_toml, parts))
