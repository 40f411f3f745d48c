"""The file with the MCP servers of a project, as other clients and editors write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.rules.tools.servers import parsed
from workbench.upstream.servers_file import ServersFile

MINE = '"mine": {"command": "python", "args": ["-m", "mine"]}'


def written(directory: Path, text: str) -> ServersFile:
    """The file with a text."""
    (directory / "mcp.json").write_text(text)
    return ServersFile(directory / "mcp.json")


@pytest.mark.parametrize("text", [f'\ufeff{{"mcpServers": {{{MINE}}}}}', f'{{"inputs": [], "servers": {{{MINE}}}}}'])
def test_a_file_of_another_client_or_editor_is_read_and_changed_in_place(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    assert list(file.read().servers) == ["mine"]
    assert list(file.change(lambda entries: entries.update(two={"command": "x"})).servers) == ["mine", "two"]
    changed = json.loads(file.path.read_text())
    assert list(changed) == list(json.loads(text.removeprefix("\ufeff")))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'{{"mcpServers": {{\n  {MINE},\n}}}}', "line 3, column 1: "),
        (f'// mine\n{{"mcpServers": {{{MINE}}}}}', "line 1, column 1: "),
        (f"{{{MINE}}}", 'put mine into an object under the key "mcpServers"'),
        ("[]", "it must be an object with the key"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, problem: str) -> None:
    assert written(tmp_path, text).read().problems[""].startswith(problem)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"command": "x", "env": {"A": "${MY_TOKEN}"}}, {"env": {"A": "env://MY_TOKEN"}}),
        ({"command": "x", "args": ["--key=${env:MY_TOKEN}"]}, {"args": ["--key=env://MY_TOKEN"]}),
        (
            {"url": "https://x.example", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}},
            {"headers": {"Authorization": "Bearer env://MY_TOKEN"}},
        ),
        ({"command": "sh", "args": ["-c", "echo ${HOME} | tool"]}, {"args": ["-c", "echo ${HOME} | tool"]}),
    ],
)
def test_a_variable_of_other_clients_is_a_reference(server: dict[str, Any], expected: dict[str, Any]) -> None:
    found = parsed({"mcpServers": {"one": server}})
    assert not found.problems
    assert expected.items() <= found.servers["one"].model_dump().items()


@pytest.mark.parametrize(
    ("server", "place"),
    [
        ({"command": "x", "args": ["${HOME}"]}, "args: ${HOME}"),
        ({"command": "x", "env": {"C": "${NOPE:-dflt}"}}, "env.C: ${NOPE:-dflt}"),
        ({"command": "x", "cwd": "${workspaceFolder}/a"}, "cwd: ${workspaceFolder}"),
        ({"url": "https://x.example/${TOKEN}"}, "url: ${TOKEN}"),
    ],
)
def test_a_variable_that_would_be_sent_as_it_stands_is_refused(server: dict[str, Any], place: str) -> None:
    assert parsed({"mcpServers": {"one": server}}).problems["one"].startswith(f"{place} is not replaced here")
