"""The start of programs: Claude Code, Codex and Gemini CLI for a definition, others by a profile."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.given import refused
from workbench.drivers import PROGRAMS, AgentSetup, Configuration, fit
from workbench.errors import BadInput
from workbench.rules import profile
from workbench.rules.definitions.model import Definition
from workbench.services.processes import profiles
from workbench.state.settings import Settings, shipped
from workbench.trust.withheld import trust, withheld

STDIO = {"command": "files-server", "args": ["--root", "."], "env": {"LEVEL": "1"}, "cwd": "docs"}
HTTP = {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Team": "blue"}}
FREE = {"serverToolDefaults": {"permissionRequired": False}}
SETUP = {"id": "one", "name": "One", "hash": "00ff", "system_prompt": "Be brief.\n", "files": {}}


def definition(**more: Any) -> Definition:
    """A definition with some sections."""
    return Definition.model_validate({"metadata": {"id": "one", "name": "One"}, **more})


def configuration(program: str, files: dict[str, str], found: Definition, **config: str) -> Configuration:
    """The command and files with which a program is started for a definition."""
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


PLACES: dict[str, dict[str, Callable[[Configuration], Any]]] = {
    "claude": {
        "maxChatTurns": lambda made: next((int(x[12:]) for x in made.arguments if x.startswith("--max-turns=")), None),
        "maxOutputTokens": lambda made: made.environment.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS"),
    },
    "codex": {},
    "gemini": {
        "maxChatTurns": lambda made: (
            json.loads(made.files[".gemini/settings.json"]).get("model", {}).get("maxSessionTurns")
        )
    },
}
"""Where a program has each setting that it follows."""
VALUES = {"maxChatTurns": (20, 7), "maxOutputTokens": (1000, 123), "temperature": (0.5, 0.2), "topP": (0.5, 0.9)}
"""A former default, and another value."""


@pytest.mark.parametrize("program", PLACES)
def test_every_setting_reaches_a_program_or_is_named_as_unused(program: str) -> None:
    def made(**settings: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
        found = definition(settings=settings)
        limits = found.settings.model_dump(by_alias=False, include={"max_chat_turns", "max_output_tokens"})
        setup = AgentSetup.model_validate(SETUP | limits)
        configured = PROGRAMS[program].configure(setup, "/scratch", {})
        values = {name: place(configured) for name, place in PLACES[program].items()}
        used = {name: str(value) for name, value in values.items() if value is not None}
        return used, fit(PROGRAMS[program], program, found).unused

    assert made() == ({}, ())
    for name, values in VALUES.items():
        for value in values:
            if name in PLACES[program]:
                assert made(**{name: value}) == ({name: str(value)}, ())
            else:
                assert made(**{name: value}) == ({}, (f"The profile {program} does not use the setting {name}.",))


COMMANDS = {name: yaml.safe_load(shipped("data", "profiles", f"{name}.yaml").read_text())["command"] for name in PLACES}


def limited(program: str, **settings: Any) -> tuple[list[str], dict[str, Any], tuple[str, ...]]:
    """The command of a shipped profile with the limits of a definition, the configuration in a file, and what is not
    used."""
    found = definition(settings=settings)
    setup = AgentSetup.model_validate(SETUP | {"limits": found.settings.limits})
    files = PROGRAMS[program].configure(setup, "/scratch", {}).files
    read: dict[str, Callable[[], dict[str, Any]]] = {
        "claude": dict,
        "codex": lambda: tomllib.loads(files[".codex/config.toml"]),
        "gemini": lambda: json.loads(files[".gemini/settings.json"]),
    }
    command = PROGRAMS[program].limit(COMMANDS[program], setup.limits)
    return command, read[program](), fit(PROGRAMS[program], program, found).unused


def test_claude_code_has_only_the_tools_that_the_profile_and_the_definition_allow() -> None:
    command, _, unused = limited(
        "claude", allowedTools=["Read", "Bash(git diff:*)", "WebFetch"], disallowedTools="Glob"
    )
    options = [
        word for word in command if word.startswith(("--allowedTools", "--tools", "--permission", "--disallowed"))
    ]
    assert options == [
        "--permission-mode=dontAsk",
        "--allowedTools=mcp__workbench",
        "--allowedTools=Bash(git diff:*)",
        "--allowedTools=Read",
        "--tools=Read,Bash,WebFetch",
        "--disallowedTools=Glob",
    ]
    assert unused == ()
    setup = AgentSetup.model_validate(SETUP | {"limits": {"mode": "plan"}})
    words = ["claude", "--dangerously-skip-permissions", "--allowed-tools", "Bash", "Read", "mcp__workbench", "--print"]
    command = PROGRAMS["claude"].limit(words, setup.limits)
    assert command[:5] == [
        "claude",
        "--allowed-tools=Read",
        "--allowed-tools=mcp__workbench",
        "--print",
        "--permission-mode=dontAsk",
    ]
    assert "--disallowedTools=Write" in command


def test_codex_is_read_only_if_not_all_that_writes_is_allowed() -> None:
    command, config, unused = limited("codex", allowedTools=["Read", "Grep"])
    assert "--dangerously-bypass-approvals-and-sandbox" not in command
    assert command[:3] == ["codex", "exec", "--sandbox=read-only"]
    assert (config["web_search"], "features" in config) == ("disabled", False)
    assert PROGRAMS["codex"].is_read_only(definition(settings={"disallowedTools": ["Edit"]}).settings.limits)
    assert [text.partition(":")[0] for text in unused] == [
        "With the profile codex, its agents read by a shell that can write nothing"
    ]
    _, config, _ = limited("codex", allowedTools=["WebSearch"])
    assert config["features"] == {"shell_tool": False, "unified_exec": False}
    command, config, _ = limited("codex", disallowedTools=["WebSearch"])
    assert (command, config["web_search"]) == (COMMANDS["codex"], "disabled")


def test_gemini_cli_is_given_its_own_names_of_tools_and_none_that_it_cannot_limit() -> None:
    _, config, unused = limited("gemini", allowedTools=["Read", "Bash(git:*)", "save_memory"], disallowedTools=["Edit"])
    assert config["tools"] == {"core": ["read_file", "read_many_files", "save_memory"], "exclude": ["replace"]}
    assert unused == ("With the profile gemini, its agents have no Bash: only some uses of it are allowed.",)
    _, config, _ = limited("gemini", permissionMode="plan")
    assert config["tools"]["exclude"] == ["replace", "run_shell_command", "write_file"]


def test_a_profile_that_cannot_limit_its_program_is_refused() -> None:
    with pytest.raises(BadInput, match="limits its program's own tools, which the profile script cannot do"):
        fit(None, "script", definition(settings={"allowedTools": ["Read"]}))
    assert fit(None, "script", definition(settings={"permissionMode": "acceptEdits"})).unused == ()


MANUAL = {"include": "manual"}


@pytest.mark.parametrize(
    ("permission", "server", "allowed", "withheld"),
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
    permission: str, server: dict[str, Any], allowed: tuple[str, ...] | None, withheld: tuple[str, ...]
) -> None:
    wanted = definition(settings={"toolPermission": permission}, mcpServers={"files": STDIO | server})
    found = fit(PROGRAMS["claude"], "claude", wanted)
    if allowed == ():
        assert not found.servers
        assert "files is not used: its tools need a person's permission" in found.unused[0]
    else:
        assert (found.servers["files"].allowed, found.servers["files"].refused) == (allowed, withheld)
        assert not found.unused


def test_the_fit_of_a_program_names_the_settings_it_ignores() -> None:
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


def test_what_an_agent_is_told_of_a_task_does_not_contradict_how_it_is_run(settings: Settings) -> None:
    directory = settings.home / "profiles"
    directory.mkdir(parents=True)
    for name, more in {"heard": "driver: acp", "plain": "driver: text"}.items():
        (directory / f"{name}.yaml").write_text(f"summary: A script.\ncommand: [x]\n{more}\n")
    trust(settings.project, withheld(settings.project))
    prompts = {name: str(profiles.load(settings, name).prompt) for name in ("heard", "plain", "claude")}
    assert [name for name, text in prompts.items() if "exit with status" in text] == ["plain"]
    assert [name for name, text in prompts.items() if "do not claim it" in text] == ["claude"]
    personas = [path.read_text("utf-8") for path in shipped("data", "personas").glob("*.md")]
    assert not [text for text in personas if "heartbeat" in text or "claim a task" in text]


# Launch profiles as data: what a file may say, and what is filled into a template

SHIPPED = sorted(path.stem for path in shipped("data", "profiles").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_valid_and_says_what_it_is(name: str) -> None:
    found = profile.parse(name, shipped("data", "profiles", f"{name}.yaml").read_text("utf-8"))
    assert found.name == name
    assert name not in PROGRAMS or found.program == name
    assert PROGRAMS.keys() <= set(SHIPPED)
    assert found.summary.endswith(".")
    values = dict.fromkeys(profile.FILLED_IN, 'a "quoted" \\ line\nand another')
    for file, text in found.files.items():
        filled = profile.fill(text, values, file=file)
        read = json.loads if file.endswith(".json") else tomllib.loads
        assert read(filled)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "summary: required"),
        ({"summary": ""}, "summary:"),
        ({"summary": "x", "command": []}, "command:"),
        ({"summary": "x", "command": "echo"}, "command:"),
        ({"summary": "x", "comand": ["a"]}, "comand: unknown name"),
        ({"summary": "x", "name": "other"}, "must be that of the file"),
        ({"summary": "x", "files": {"../a": ""}}, "without '..'"),
        ({"summary": "x", "files": {"/a": ""}}, "a path below"),
        ({"summary": "x", "copies": ["a/../../b"]}, "a path below"),
        ({"summary": "x", "answer_file": "a/b"}, "answer_file:"),
        ({"summary": "x", "environment": {"LD_PRELOAD": "x"}}, "must be a variable name"),
        ({"summary": "x", "environment": {"WORKBENCH_URL": "x"}}, "must be a variable name"),
        ({"summary": "x", "passes": ["GIT_DIR"]}, "must be a variable name"),
        ({"summary": "x", "passes": ["A B"]}, "a variable"),
        ({"summary": "x", "connect": [0]}, "connect"),
        ({"summary": "x", "connect": ["anything"]}, "connect"),
        ({"summary": "x", "command": ["a", "{token}"]}, "{token} needs token: true"),
        ({"summary": "x", "command": ["a"], "environment": {"A": "{mcp_config}"}}, "needs token: true"),
        ({"summary": "x", "command": ["a"], "prompt": "{token}"}, "needs token: true"),
        ([], "a mapping"),
        (None, "a mapping"),
    ],
)
def test_an_invalid_profile_is_refused_with_the_reason(said: Any, why: str) -> None:
    error = refused("PROFILE_INVALID", profile.parse, "mine", yaml.safe_dump(said))
    assert why in error.message
    assert error.details == {"profile": "mine"}


@pytest.mark.parametrize("text", ["a: [", "\0", "a: !!int x", "- &a [*a]", "{" * 3000])
def test_a_profile_that_is_no_yaml_is_refused(text: str) -> None:
    refused("PROFILE_INVALID", profile.parse, "mine", text)


@given(st.text(), st.text())
def test_a_filled_in_value_is_not_expanded_again(value: str, other: str) -> None:
    values = {"title": value, "token": other}
    assert profile.fill("<{title}>", values) == f"<{value}>"
    assert profile.fill("{unknown} {Title} {} {{title}}", values) == "{unknown} {Title} {} {" + value + "}"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_value_filled_into_json_or_toml_stays_a_string(value: str) -> None:
    assert json.loads(profile.fill('{"a": "{title}"}', {"title": value}, file="x.json")) == {"a": value}
    assert tomllib.loads(profile.fill('a = "{title}"', {"title": value}, file="x.toml")) == {"a": value}


def test_the_configuration_that_many_clients_read_has_the_address_and_the_token() -> None:
    workbench = profile.mcp_config("http://127.0.0.1:1/mcp", "wba_x")["mcpServers"]["workbench"]
    assert (workbench["url"], workbench["headers"]) == ("http://127.0.0.1:1/mcp", {"Authorization": "Bearer wba_x"})
