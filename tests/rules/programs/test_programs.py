"""How Claude Code, Codex and Gemini CLI are started for a definition."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml

from workbench.errors import BadInput
from workbench.rules import profile
from workbench.rules.definitions.model import Definition
from workbench.rules.programs import PROGRAMS, AgentSetup, Configuration, fit
from workbench.settings import shipped

STDIO = {"command": "files-server", "args": ["--root", "."], "env": {"LEVEL": "1"}, "cwd": "docs"}
HTTP = {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Team": "blue"}}
FREE = {"serverToolDefaults": {"permissionRequired": False}}
SETUP = {"id": "one", "name": "One", "hash": "00ff", "system_prompt": "Be brief.\n", "files": {}}


def definition(**more: Any) -> Definition:
    """A definition with some sections."""
    return Definition.model_validate({"metadata": {"id": "one", "name": "One"}, **more})


def configuration(program: str, files: dict[str, str], found: Definition, **config: str) -> Configuration:
    """How a program is started for a definition."""
    used = fit(PROGRAMS[program], program, found)
    more = {"provider": used.provider, "model": used.model, "servers": used.servers, "provider_config": config}
    setup = AgentSetup.model_validate(SETUP | more)
    assert AgentSetup.model_validate(json.loads(setup.model_dump_json())) == setup
    return PROGRAMS[program].configure(setup, "/scratch", files)


def test_claude_code_gets_its_prompt_as_a_file_and_its_servers_beside_workbenchs_own() -> None:
    found = definition(
        settings={"model": "anthropic:claude-test"},
        mcpServers={
            "files": STDIO | FREE | {"tools": {"remove": {"permissionRequired": True}}},
            "web": HTTP | {"tools": {"get": {"permissionRequired": False}}},
        },
    )
    own = json.dumps(profile.mcp_config("http://127.0.0.1:1/mcp", "wba_x"))
    made = configuration("claude", {"mcp.json": own}, found, ANTHROPIC_API_KEY="key")
    assert made.arguments == (
        "--append-system-prompt-file=/scratch/system_prompt.md",
        "--model=claude-test",
        "--allowedTools=mcp__files",
        "--disallowedTools=mcp__files__remove",
        "--allowedTools=mcp__web__get",
    )
    assert made.files["system_prompt.md"] == "Be brief.\n"
    servers = json.loads(made.files["mcp.json"])["mcpServers"]
    assert servers["workbench"]["headers"] == {"Authorization": "Bearer wba_x"}
    assert servers["web"] == {"type": "http", "url": HTTP["url"], "headers": HTTP["headers"]}
    assert (servers["files"]["command"], servers["files"]["env"]) == ("/bin/sh", {"LEVEL": "1"})
    assert servers["files"]["args"][2:] == ["sh", "docs", "files-server", "--root", "."]
    assert made.environment == {"ANTHROPIC_API_KEY": "key"}


def test_codex_gets_everything_in_its_configuration() -> None:
    found = definition(
        settings={"model": "openai:gpt-test"},
        mcpServers={
            "files": STDIO | FREE | {"tools": {"remove": {"include": "manual"}}},
            "web": HTTP | {"tools": {"get": {"permissionRequired": False}}},
        },
    )
    before = yaml.safe_load(shipped("data", "profiles", "codex.yaml").read_text("utf-8"))["files"]
    keys = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    made = configuration("codex", before, found, **keys)
    config = tomllib.loads(made.files[".codex/config.toml"])
    assert (config["developer_instructions"], config["model"]) == ("Be brief.\n", "gpt-test")
    assert config["sandbox_mode"] == "danger-full-access"
    assert config["mcp_servers"]["workbench"]["required"] is True
    approve = {"default_tools_approval_mode": "approve"}
    assert config["mcp_servers"]["files"] == {**STDIO, "disabled_tools": ["remove"], **approve}
    web = {"url": HTTP["url"], "http_headers": HTTP["headers"], "enabled_tools": ["get"]}
    assert config["mcp_servers"]["web"] == web | approve
    assert config["model_providers"][config["model_provider"]]["base_url"] == keys["OPENAI_BASE_URL"]
    assert made.environment == {"CODEX_API_KEY": "key"}


def test_gemini_cli_gets_its_prompt_in_place_of_its_own() -> None:
    found = definition(
        providers={"gemini": {"GOOGLE_API_KEY": "key"}},
        mcpServers={"files": STDIO | FREE, "web": HTTP | FREE | {"type": "sse"}},
    )
    before = yaml.safe_load(shipped("data", "profiles", "gemini.yaml").read_text("utf-8"))["files"]
    made = configuration("gemini", before, found, GOOGLE_API_KEY="key")
    config = json.loads(made.files[".gemini/settings.json"])
    assert config["mcpServers"]["workbench"]["trust"] is True
    assert config["mcpServers"]["files"] == STDIO | {"trust": True}
    assert config["mcpServers"]["web"] == HTTP | {"trust": True}
    assert config["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert made.files["system_prompt.md"] == "Be brief.\n"
    assert made.environment == {"GEMINI_SYSTEM_MD": "/scratch/system_prompt.md", "GEMINI_API_KEY": "key"}


MANUAL = {"include": "manual"}


@pytest.mark.parametrize(
    ("permission", "server", "allowed", "refused"),
    [
        ("tool", {}, (), ()),  # a person is to be asked, unless it says otherwise
        ("tool", FREE, None, ()),
        ("always", FREE, (), ()),
        ("never", {}, None, ()),
        ("tool", {"tools": {"a": {"permissionRequired": False}, "b": {}}}, ("a",), ()),
        ("tool", FREE | {"tools": {"a": {"permissionRequired": True}}}, None, ("a",)),
        ("never", {"tools": {"a": MANUAL}}, None, ("a",)),
        ("never", {"serverToolDefaults": MANUAL}, (), ()),
        ("never", {"serverToolDefaults": {"include": "agent"}}, None, ()),
    ],
)
def test_only_tools_that_need_no_person_are_used(
    permission: str, server: dict[str, Any], allowed: tuple[str, ...] | None, refused: tuple[str, ...]
) -> None:
    wanted = definition(settings={"toolPermission": permission}, mcpServers={"files": STDIO | server})
    found = fit(PROGRAMS["claude"], "claude", wanted)
    if allowed == ():
        assert not found.servers
        assert "files is not used: its tools need a person's permission" in found.unused[0]
    else:
        assert (found.servers["files"].allowed, found.servers["files"].refused) == (allowed, refused)
        assert not found.unused


def test_what_a_program_does_not_use_is_said() -> None:
    settings = {"temperature": 0.1, "maxChatTurns": 3, "theme": "dark", "toolPermission": "never"}
    found = definition(settings=settings, mcpServers={"old": {"type": "sse", "url": "http://127.0.0.1:9/sse"}})
    assert fit(PROGRAMS["codex"], "codex", found).unused == (
        "The profile codex cannot use the MCP server old: its type is sse.",
        "The profile codex does not use the setting maxChatTurns.",
        "The profile codex does not use the setting temperature.",
    )
    assert fit(None, "script", found).unused == ("The profile script does not use MCP servers: old.",)


@pytest.mark.parametrize(
    ("program", "sections", "reason"),
    [
        ("claude", {"settings": {"model": "openai:gpt"}}, "models of anthropic or bedrock"),
        ("claude", {"settings": {"model": "nowhere:gpt"}}, "No provider"),
        ("codex", {"mcpServers": {"Workbench": STDIO | FREE}}, "Rename it"),
        ("claude", {"mcpServers": {"web": HTTP | FREE | {"headers": {"X": "${HOME}"}}}}, r"contains \$"),
        ("gemini", {"mcpServers": {"files": STDIO | FREE | {"args": ["$HOME"]}}}, r"contains \$"),
        ("gemini", {"mcpServers": {"files": STDIO | FREE | {"env": {"A": "$HOME"}}}}, r"contains \$"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused(program: str, sections: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        fit(PROGRAMS[program], program, definition(**sections))


def test_the_variables_of_a_program_that_does_not_replace_them_stay_as_they_are() -> None:
    found = fit(PROGRAMS["codex"], "codex", definition(mcpServers={"files": STDIO | FREE | {"args": ["${HOME}"]}}))
    assert list(found.servers) == ["files"]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_each_program_has_a_shipped_profile(name: str) -> None:
    found = profile.parse(name, shipped("data", "profiles", f"{name}.yaml").read_text("utf-8"))
    assert found.program == name
