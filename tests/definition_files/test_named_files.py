"""Which files of definitions a program runs: those whose change must be trusted again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from workbench.definition_files.named_files import named_files
from workbench.rules.definitions.model import Definition
from workbench.rules.definitions.trust import Files


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    """A rule in the directory of a definition."""
    path = tmp_path / ".aiswarm" / "agents" / "one" / "rules" / "run.md"
    path.parent.mkdir(parents=True)
    path.write_text("echo harmless\n")
    return path


def files_of(tmp_path: Path, **server: Any) -> Files:
    """The named files of a definition with one server."""
    definition = Definition.model_validate({"metadata": {"id": "one", "name": "One"}, "mcpServers": {"run": server}})
    home = tmp_path / ".aiswarm"
    return named_files(definition, home / "agents" / "one", tmp_path, [home / "agents"])


@pytest.mark.parametrize(
    "server",
    [
        {"command": "sh", "args": [".aiswarm/agents/one/rules/run.md"]},
        {"command": "sh", "args": ["rules/run.md"]},
        {"command": ".aiswarm/agents/one/rules/run.md"},
        {"command": "bash", "args": ["--rcfile=rules/run.md"]},
        {"command": "sh", "args": ["run.md"], "cwd": ".aiswarm/agents/one/rules"},
        {"command": "sh", "args": ["run.md"], "cwd": "~/.aiswarm/agents/one/rules"},
        {"command": "sh", "env": {"ENV": "rules/run.md"}},
        {"command": "sh", "args": ["link"]},
    ],
)
def test_a_file_named_by_a_program_of_a_definition_is_hashed(
    server: dict[str, Any], rule: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to(rule)
    before = files_of(tmp_path, **server)
    assert before == {"run": {str(rule): hashlib.sha256(b"echo harmless\n").hexdigest()}}
    rule.write_text("reboot\n")
    assert files_of(tmp_path, **server) != before


def test_a_large_file_is_not_read_and_other_words_and_files_do_not_count(rule: Path, tmp_path: Path) -> None:
    with rule.open("wb") as file:
        file.truncate(20 << 20)
    found = files_of(tmp_path, command="sh", args=[str(rule)])
    assert found["run"][str(rule)].startswith(f"{20 << 20} bytes, changed at ")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "server.py").write_text("")
    for server in (
        {"command": "npx", "args": ["-y", "server"]},
        {"command": "python", "args": ["tools/server.py"]},
        {"command": "sh", "args": ["rules", "rules/other.md", "a\0b"[:1], "x" * 9_000]},
        {"url": "http://127.0.0.1:9/mcp"},
    ):
        assert files_of(tmp_path, **server) == {}
