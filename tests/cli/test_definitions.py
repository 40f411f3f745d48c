"""`workbench define`: the commands about definitions of agents."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.cli.conftest import Type, data
from tests.cli.test_completion import completions


@pytest.fixture
def define(run: Type) -> Type:
    """`define("show", "reviewer")`: the command about definitions."""
    return functools.partial(run, "define")


@pytest.fixture
def reviewer(define: Type) -> str:
    """The name of a definition."""
    ran = define("create", "reviewer", "--description", "Reads diffs", "--set", "temperature=0.2")
    assert (ran.status, ran.err) == (0, "")
    return "reviewer"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with files to add."""
    (tmp_path / "be-polite.md").write_text("---\ninclude: always\npriorityLevel: 1\n---\n\nUse polite language.\n")
    (tmp_path / "api.md").write_text("GET /penguins lists them.\n")
    (tmp_path / "prompt.md").write_text("You review diffs.\n")
    (tmp_path / "count.yaml").write_text(
        "name: count\nparameters:\n  type: object\n  properties:\n    what: {type: string}\nprompt: Count {what}.\n"
    )
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "latin.md").write_bytes(b"caf\xe9\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("files")
def test_a_definition_is_created_listed_shown_given_a_prompt_and_deleted(define: Type, reviewer: str) -> None:
    assert define().out.splitlines() == [
        "agent     mode         description  path",
        "reviewer  interactive  Reads diffs  ./agents/reviewer",
    ]
    shown = define("show", reviewer).out
    assert "description  Reads diffs" in shown
    assert "temperature      0.2" in shown
    assert define("analytics", reviewer).out == "No agent has worked with it.\n"
    assert define("prompt", reviewer).out.startswith("You are a helpful AI assistant")
    assert define("prompt", reviewer, "prompt.md").status == 0
    assert define("prompt", reviewer).out == "You review diffs.\n"
    assert "mcpServers" in data(define("schema", "--json"))["properties"]
    assert "priorityLevel" in data(define("schema", "front-matter", "--json"))["properties"]
    refused = define("delete", reviewer)
    assert refused.err.startswith("NOT_CONFIRMED: This deletes the definition reviewer in ./agents/reviewer. ")
    assert define("delete", reviewer, "--yes").out == "reviewer was deleted.\n"
    assert define().out.startswith("There are no definitions. ")


def test_a_definition_is_named_by_a_path_of_the_current_directory_too(
    define: Type, reviewer: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = data(define("show", reviewer, "--json"))
    monkeypatch.chdir(repository)
    for target in ("./agents/reviewer", ".aiswarm/agents/reviewer", wanted["id"]):
        assert data(define("show", target, "--json")) == wanted


def test_a_missing_part_of_a_definition_is_not_found(define: Type, reviewer: str) -> None:
    for noun in ("rule", "reference", "tool", "server"):
        shown = define(f"{noun}s", "show", reviewer, "nothing")
        error = f"NOT_FOUND: The definition has no {noun} 'nothing'. `workbench define {noun}s AGENT` lists"
        assert (shown.status, shown.err[: len(error)]) == (1, error)


def test_settings_and_metadata_are_shown_and_changed(define: Type, reviewer: str) -> None:
    assert define("set", reviewer, "model", "anthropic:claude").status == 0
    assert define("describe", reviewer, "version=1.1.0", "description=Reads all diffs").status == 0
    assert data(define("settings", reviewer, "--json"))["settings"]["model"] == "anthropic:claude"
    assert "version      1.1.0" in define("describe", reviewer).out
    assert define("set", reviewer, "temperature", "9").err.startswith("VALIDATION_ERROR: ")
    for value, stored in (('[{"say": "Hello."}]', [{"say": "Hello."}]), ("[sic]", "[sic]")):
        assert define("set", reviewer, "script", value).status == 0
        assert data(define("settings", reviewer, "--json"))["settings"]["script"] == stored


@pytest.mark.parametrize(("noun", "file"), [("rules", "be-polite.md"), ("references", "api.md")])
def test_rules_and_references_are_files(define: Type, reviewer: str, files: Path, noun: str, file: str) -> None:
    name = Path(file).stem
    added = define(noun, "add", reviewer, file, "--description", "About it").out
    assert added == f"reviewer: {noun[:-1]} {name} added.\n"
    shown = define(noun, "show", reviewer, name).out
    assert shown.strip() == (files / file).read_text().split("\n\n")[-1].strip()
    assert define(noun, "update", reviewer, name, "--priority", "7", "--include", "agent").status == 0
    assert define(noun, reviewer).out.splitlines()[1].split() == [name, "7", "agent", "About", "it"]
    assert define(noun, "update", reviewer, name, "prompt.md").status == 0
    assert define(noun, "show", reviewer, name).out == "You review diffs.\n"
    assert define(noun, "delete", reviewer, name).status == 0
    assert define(noun, reviewer).out == f"It has no {noun}.\n"
    assert define(noun, "add", reviewer, "-", "--name", "read", given="Sei höflich.\n", encoding="ascii").status == 0
    assert define(noun, "show", reviewer, "read").out == "Sei höflich.\n"


def test_tools_are_files(define: Type, reviewer: str, files: Path) -> None:
    assert define("describe", reviewer, "mode=tools").status == 0
    assert define("tools", "add", reviewer, "count.yaml").status == 0
    (files / "shown.yaml").write_text(define("tools", "show", reviewer, "count").out.replace("Count", "List"))
    assert define("tools", "update", reviewer, "count", "shown.yaml").status == 0
    assert data(define("tools", "list", reviewer, "--json"))["tools"][0]["prompt"] == "List {what}."
    assert define("tools", "delete", reviewer, "count").status == 0


@pytest.mark.parametrize("noun", ["rules", "references", "tools", "servers", "providers"])
def test_a_section_is_listed_by_its_definition_alone_also_with_options(define: Type, reviewer: str, noun: str) -> None:
    assert data(define(noun, reviewer, "--json")) == data(define(noun, "list", reviewer, "--json"))
    assert "No such command 'lits'" in define(noun, "lits", reviewer).err


def test_servers_are_programs_or_addresses(define: Type, reviewer: str) -> None:
    program = ("--command", "npx -y 'a server'", "--env", "ROOT=/data", "--cwd", "/tmp")
    assert define("servers", "add", reviewer, "files", *program).status == 0
    address = ("--url", "https://example.org/mcp", "--header", "Authorization=env://TOKEN")
    assert define("servers", "add", reviewer, "web", *address).status == 0
    assert define("servers", reviewer).out.splitlines() == [
        "server  type             command or address",
        "files   stdio            npx -y 'a server'",
        "web     streamable-http  https://example.org/mcp",
    ]
    assert "ROOT: /data" in define("servers", "show", reviewer, "files").out
    assert define("servers", "update", reviewer, "web", "--url", "https://example.org/").status == 0
    assert "headers: {}" in define("servers", "show", reviewer, "web").out
    assert define("servers", "delete", reviewer, "web").status == 0


def test_providers_are_installed_checked_and_shown_without_secrets(define: Type, reviewer: str) -> None:
    assert define("providers", "check", reviewer, "openai").out.startswith("OpenAI needs OPENAI_API_KEY")
    key = "OPENAI_API_KEY=env://OPENAI_API_KEY"
    assert define("providers", "check", reviewer, "openai", key).out.startswith("The configuration is valid.")
    assert define("providers", "check", reviewer, "test", "--live").out == "The configuration is valid.\n"
    nowhere = ("OPENAI_API_KEY=sk-secret", "OPENAI_BASE_URL=http://127.0.0.1:9")
    refused = define("providers", "check", reviewer, "openai", *nowhere, "--live").out
    assert refused == "OpenAI cannot be reached (ConnectError). Check its address and the network.\n"
    assert define("providers", "install", reviewer, "openai", key).status == 0
    assert "env://OPENAI_API_KEY" in define("providers", "show", reviewer, "openai").out
    assert define("providers", "update", reviewer, "openai", "OPENAI_API_KEY=sk-secret").status == 0
    assert "sk-secret" not in define("providers", "show", reviewer, "openai").out
    assert "sk-secret" in define("providers", "show", reviewer, "openai", "--reveal").out
    assert define("providers", "uninstall", reviewer, "openai").status == 0
    assert define("providers", "show", reviewer, "openai").out == "openai is not installed.\n"


def test_a_mistake_is_one_line_with_a_code(define: Type, reviewer: str, files: Path) -> None:
    mistakes = {
        ("rules", "add", "reviewer", "latin.md"): "FILE_UNREADABLE: latin.md cannot be read: ",
        ("rules", "add", "reviewer", "nowhere.md"): "FILE_UNREADABLE: nowhere.md cannot be read: ",
        ("tools", "add", "reviewer", "list.yaml"): "FILE_UNREADABLE: list.yaml does not contain a mapping",
        ("tools", "add", "reviewer", "be-polite.md"): "FILE_UNREADABLE: be-polite.md is neither YAML nor JSON: ",
        ("rules", "delete", "reviewer", "x"): "NOT_FOUND: There is no rule 'x'.",
        ("show", "list_tasks"): "AGENT_NOT_FOUND: No agent has the path, id or name 'list_tasks'. `workbench define`",
        (
            "show",
            "nobody",
        ): "AGENT_NOT_FOUND: No agent has the path, id or name 'nobody'. `workbench define` lists them.",
        ("create", "reviewer"): "AGENT_EXISTS: ",
        ("clone", "reviewer", "x", "--path", "../x"): "INVALID_PATH: ",
    }
    for words, error in mistakes.items():
        ran = define(*words)
        assert (ran.status, ran.out, ran.err.count("\n"), ran.err[: len(error)]) == (1, "", 1, error), words


def test_a_command_without_its_arguments_is_bad_usage(define: Type, reviewer: str) -> None:
    for words in (
        ("rules", "add", "reviewer", "-"),
        ("rules", "update", "reviewer", "x"),
        ("servers", "add", "reviewer", "x"),
        ("servers", "add", "reviewer", "x", "--url", "http://x", "--command", "y"),
        ("servers", "add", "reviewer", "x", "--url", "http://x", "--env", "A=b"),
        ("servers", "add", "reviewer", "x", "--url", "http://x", "--cwd", "y"),
        ("servers", "add", "reviewer", "x", "--command", "y", "--header", "A=b"),
        ("servers", "add", "reviewer", "x", "--command", "npx 'y"),
        ("servers", "add", "reviewer", "x", "--command", ""),
        ("create", "x", "--set", "temperature"),
    ):
        ran = define(*words, given="Use polite language.\n")
        assert (ran.status, "BAD_USAGE: " in ran.err) == (2, True), words


def test_the_tab_key_completes_definitions(define: Type, reviewer: str) -> None:
    assert define("create", "Second one").status == 0
    assert completions("define", "show", "rev") == {"reviewer"}
    assert completions("define", "rules", "add", "") == {"reviewer", "./agents/Second one"}
    assert completions("define", "rules", "") >= {"list", "add", "delete"}


def test_an_agent_is_granted_a_definition_and_the_tools_to_change_it(run: Type, reviewer: str) -> None:
    assert run("call", "register", "name=ada", "persona_id=planner").status == 0
    granted = ("--definition", reviewer, "--self-tools", "read", "--role", "planner", "--definitions")
    assert "definition reviewer (which it can read), manages definitions" in run("approve", "ada", *granted).out
    history = run("history", "ada").out
    for change in ("definition: none → reviewer", "own definition: write → read", "manages definitions: no → yes"):
        assert change in history
    assert run("grant", "ada", "--definition", "none", "--no-definitions").status == 0
    assert run("grant", "ada", "--definition", "nobody").err.startswith("DEFINITION_NOT_FOUND: ")


def test_versions_are_listed_and_compared(define: Type, reviewer: str, files: Path) -> None:
    assert define("rules", "add", reviewer, "be-polite.md").status == 0
    first, second = data(define("history", reviewer, "--json"))["versions"]
    assert (first["summary"], second["summary"]) == ("rule be-polite added", "created")
    assert "rule be-polite added" in define("history", reviewer).out
    assert "+Use polite language." in define("diff", reviewer).out
    between = ("--from", first["contentHash"], "--to", second["contentHash"])
    assert "-Use polite language." in define("diff", reviewer, *between).out
    assert define("clone", reviewer, "second").status == 0
    assert "+  name: second" in define("diff", reviewer, "second").out
    assert define("diff", reviewer, reviewer).out == "They do not differ.\n"


def test_a_definition_is_exported_and_imported_without_secrets(define: Type, reviewer: str, files: Path) -> None:
    assert define("providers", "install", reviewer, "openai", "OPENAI_API_KEY=sk-secret").status == 0
    saved = define("export", reviewer, "-o", "reviewer.yaml")
    assert saved.out.startswith("Saved reviewer to reviewer.yaml.\n")
    assert "sk-secret" not in (files / "reviewer.yaml").read_text() + define("export", reviewer).out
    assert define("import", "reviewer.yaml", "third").out == "third was created in ./agents/third.\n"


def test_a_subagent_is_imported_with_its_limits_and_exported_again(define: Type, files: Path) -> None:
    text = (
        "---\nname: critic\ndescription: Judges\ntools: Read, Grep\npermissionMode: plan\ncolor: red\n---\n\nJudge.\n"
    )
    (files / "some-file.md").write_text(text)
    assert define("import", "some-file.md").out == "critic was created in ./agents/critic.\nLeft out: color.\n"
    settings = define("settings", "critic").out
    assert "allowedTools" in settings
    assert define("export", "critic", "--as", "claude-subagent").out == text.replace("color: red\n", "")
    assert define("import", "some-file.md", "--name", "second").out.startswith("second was created in ./agents/second.")
    assert define("import", "some-file.md", "third").out.startswith("third was created in ./agents/third.")
    saved = define("export", "critic", "--as", "skill", "-o", "SKILL.md").out
    assert "Left out: settings.allowedTools." in saved


def test_an_earlier_version_is_restored(define: Type, reviewer: str) -> None:
    assert define("set", reviewer, "temperature", "0.7").status == 0
    version = data(define("history", reviewer, "--json"))["versions"][-1]["contentHash"]
    restored = define("restore", reviewer, "--version", version)
    assert restored.out == f"reviewer: version {version} restored.\n"
    assert "0.7" not in define("settings", reviewer).out


def test_a_definition_is_validated(define: Type, reviewer: str, repository: Path) -> None:
    assert define("validate", reviewer).status == 0
    (rules := repository / ".aiswarm" / "agents" / "reviewer" / "rules").mkdir(exist_ok=True)
    (rules / "x.md").write_text("---\ninclude: [\n---\nText\n")
    ran = define("validate", "./agents/reviewer")
    assert (ran.status, "rules/x.md" in ran.out) == (1, True)


@pytest.mark.long
def test_what_is_not_quite_right_in_a_definition_is_said(define: Type, reviewer: str, repository: Path) -> None:
    assert define("create", "Prüfer").out == "Prüfer was created in ./agents/Prufer.\n"
    assert "No path can be made of the name '数据分析'. Give one with --path." in define("create", "数据分析").err
    assert "it could not be named" in define("create", "a/b").err
    assert "Did you mean temperature?" in define("set", reviewer, "temprature", "0.3").out
    header = ("--url", "https://x.example/mcp", "--header", "Authorization: Bearer env://TOKEN")
    assert define("servers", "add", reviewer, "web", *header).status == 0
    assert define("set", "./agents/ghost", "temperature", "0.3").err.startswith("AGENT_NOT_FOUND")
    state = [path.name for path in (repository / ".aiswarm" / "agents" / ".workbench").iterdir()]
    assert (reviewer in state, "ghost" in state) == (True, False)
    key = "OPENAI_API_KEY=env://NOT_SET_ANYWHERE"
    unset = "The server has no variable NOT_SET_ANYWHERE"
    assert unset in define("providers", "check", reviewer, "openai", key).out
    refused = define("providers", "check", reviewer, "openai", key, "--live")
    assert (refused.status, "no such variable" in refused.out) == (1, True)
    assert "is no whole reference" in define("providers", "install", reviewer, "openai", "OPENAI_API_KEY=env://").err
    define("providers", "install", reviewer, "openai", key)
    assert unset in define("validate", reviewer).out


@pytest.mark.long
def test_trust_is_shown_requested_and_revoked(run: Type, define: Type, reviewer: str) -> None:
    assert define("trust", reviewer).out == "It needs trust for nothing.\n"
    assert define("servers", "add", reviewer, "files", "--command", "no-such-program").status == 0
    assert define("trust", reviewer).out.splitlines()[1].split()[-1] == "yes"
    assert define("servers", "probe", reviewer, "files").status == 1
    assert define("trust", reviewer, "--revoke").status == 0
    assert define("trust", reviewer).out.endswith("--ask opens the question.\n")
    assert define("servers", "probe", reviewer, "files").err.startswith("DEFINITION_NOT_TRUSTED: ")
    line = define("trust", reviewer, "--ask").out.splitlines()[-1]
    command = line.removeprefix("To trust it, run `workbench ").removesuffix("`.").split()
    assert run(*command).status == 0
    assert define("trust", reviewer).out.splitlines()[1].split()[-1] == "yes"


def test_a_definition_begins_with_a_template_or_a_persona(define: Type) -> None:
    templates = [one["name"] for one in data(define("templates", "--json"))]
    assert len(templates) >= 4
    for name in templates:
        assert define("from-template", name).out.endswith(f" was created in ./agents/{name}.\n")
    assert define("from-template", templates[0], "mine").out == "mine was created in ./agents/mine.\n"
    out = define("from-persona", "planner", "--path", "./agents/p").out
    assert out == "Planner was created in ./agents/p.\n"
    assert define("from-template", "nothing").err.startswith("NOT_FOUND: ")


def test_a_definition_in_an_older_layout_is_converted(define: Type, repository: Path) -> None:
    place = repository / ".aiswarm" / "agents" / "old"
    (place / "rules").mkdir(parents=True)
    (place / "tsagent.json").write_text('{"metadata": {"name": "Old"}, "settings": {"temperature": "0.3"}}')
    (place / "rules" / "be-polite.mdt").write_text('---\n{"include": "always"}\n---\nUse polite language.\n')
    assert define("set", "Old", "temperature", "0.4").err.startswith("OLDER_LAYOUT: ")
    assert define("migrate", "Old", "--remove-old").out.startswith("Old was converted from ./agents/old to ")
    assert define("set", "Old", "temperature", "0.4").status == 0
    assert "Use polite language." in define("prompt", "Old", "--composed").out
