"""`wb.definitions`, in a kernel that serves a project."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.kernel.conftest import Kernel

pytestmark = [pytest.mark.timeout(120), pytest.mark.long]


@pytest.fixture
def running(running: Kernel) -> Kernel:
    running.run('reviewer = wb.definitions.create("reviewer", description="Reads diffs", initialPrompt="You review.")')
    return running


def test_definitions_are_listed_and_found(running: Kernel) -> None:
    assert running.run("list(wb.definitions), len(wb.definitions)") == "(['reviewer'], 1)"
    assert running.run("wb.definitions").splitlines()[1].split()[0] == "reviewer"
    assert running.run('"reviewer" in wb.definitions, "nobody" in wb.definitions') == "(True, False)"
    assert running.run('wb.definitions.get("nobody") is None') == "True"
    assert "Reads diffs" in running.run('wb.definitions["./agents/reviewer"]')
    running.fail_in_a_line({'wb.definitions["nobody"]': "AGENT_NOT_FOUND: "})


def test_assigning_a_field_of_a_definition_writes_its_files(running: Kernel, repository: Path) -> None:
    running.run('reviewer.prompt = "You review diffs."')
    running.run('reviewer.settings["temperature"] = 0.2')
    running.run('reviewer.metadata["version"] = "1.1.0"')
    running.run('reviewer.rules["be-polite"] = {"text": "Use polite language.", "include": "always"}')
    running.run('reviewer.references["api"] = "GET /penguins lists them."')
    running.run('reviewer.servers["files"] = {"command": "files-server"}')
    running.run('reviewer.providers["openai"] = {"OPENAI_API_KEY": "env://OPENAI_API_KEY"}')
    place = repository / ".aiswarm" / "agents" / "reviewer"
    head = (place / "agent.yaml").read_text()
    for line in ("temperature: 0.2", "version: 1.1.0", "command: files-server", "env://OPENAI_API_KEY"):
        assert line in head
    assert (place / "prompt.md").read_text() == "You review diffs.\n"
    assert "Use polite language." in (place / "rules" / "be-polite.md").read_text()
    assert "Use polite language." in running.run("print(reviewer.composed_prompt)")
    running.run('reviewer.rules["be-polite"]["text"] = "Be brief."')
    running.run('reviewer.servers["files"]["args"].append("--all"); reviewer.servers["files"]["env"]["LANG"] = "C"')
    running.run('one = reviewer.servers["files"]; one["args"] += ["--now"]; one["args"][0] = "--some"')
    assert (place / "rules" / "be-polite.md").read_text().rstrip().endswith("Be brief.")
    server = yaml.safe_load((place / "agent.yaml").read_text())["mcpServers"]["files"]
    assert (server["args"], server["env"]) == (["--some", "--now"], {"LANG": "C"})
    assert running.fail('del reviewer.rules["be-polite"]["text"]')["evalue"].startswith("FIELD_READ_ONLY: ")


def test_an_unknown_or_read_only_field_of_a_definition_cannot_be_assigned(running: Kernel) -> None:
    wrong = {
        'reviewer.promt = "You review."': "UNKNOWN_FIELD: Definition has no field 'promt'. Did you mean prompt",
        "reviewer.promt": "UNKNOWN_FIELD: Definition has no field 'promt'. Did you mean prompt",
        'reviewer.composed_prompt = "You review."': "FIELD_READ_ONLY: Definition.composed_prompt cannot be assigned: ",
        "reviewer.settings = {}": "FIELD_READ_ONLY: Definition.settings cannot be assigned: ",
    }
    running.fail_in_a_line(wrong)
    assert running.run("reviewer.prompt") == "'You review.'"


def test_assigning_again_changes_and_deleting_deletes_and_a_bad_value_is_refused(running: Kernel) -> None:
    running.run('reviewer.rules["be-polite"] = {"text": "Use polite language.", "include": "always"}')
    running.run('reviewer.rules["be-polite"] = {"priorityLevel": 7}')
    assert running.run('[reviewer.rules["be-polite"][key] for key in ("include", "priorityLevel")]') == "['always', 7]"
    assert running.run("reviewer.rules").splitlines()[1].split() == ["be-polite", "7", "always"]
    running.run('del reviewer.rules["be-polite"]')
    assert running.run("dict(reviewer.rules)") == "{}"
    assert running.fail('reviewer.rules["be-polite"]')["evalue"].startswith("NOT_FOUND: There is no rule 'be-polite'.")
    running.run('reviewer.settings["temperature"] = 0.2; del reviewer.settings["temperature"]')
    assert running.fail('reviewer.settings["temperature"] = 9')["evalue"].startswith("VALIDATION_ERROR: ")
    assert running.run('reviewer.settings["temperature"] is None') == "True"
    for name, value in (("servers", '{"url": "https://example.org/mcp"}'), ("providers", "{}")):
        running.run(f'reviewer.{name}["test"] = {value}; reviewer.{name}["test"] = {value}')
        assert running.run(f"list(reviewer.{name})") == "['test']"
        running.run(f'del reviewer.{name}["test"]')
        assert running.run(f"len(reviewer.{name})") == "0"


def test_a_copy_is_a_definition_of_its_own(running: Kernel) -> None:
    running.run('copy = reviewer.clone("second"); copy.prompt = "You review twice."; reviewer.delete()')
    assert running.run("list(wb.definitions), copy.prompt") == "(['second'], 'You review twice.')"


def test_a_definition_shows_its_versions_and_is_what_is_chatted_with_and_spawned(running: Kernel) -> None:
    running.run('reviewer.prompt = "You review diffs."; before = reviewer.hash; reviewer.prompt = "You sleep."')
    assert running.run("reviewer.name, reviewer.path") == "('reviewer', './agents/reviewer')"
    assert running.run("reviewer.id == reviewer.info['id']") == "True"
    assert "system prompt changed" in running.run("reviewer.history(limit=1)")
    assert "-You review diffs." in running.run("reviewer.diff(since=before)")
    running.run("reviewer.restore(before)")
    assert running.run("reviewer.prompt, reviewer.hash == before") == "('You review diffs.', True)"
    assert "Nothing is wrong" in running.run("reviewer.validate()")
    running.run('other = reviewer.clone("other")')
    assert "other" in running.run("reviewer.diff(other)")
    assert running.run('wb.chat(reviewer, model="test:x").info["definition"]') == "'reviewer'"
    assert running.run('reviewer.chat(model="test:x").info["definition"]') == "'reviewer'"
    spawned = 'wb.call("spawn_agent", definition=reviewer, persona_id="tester")["definition_id"] == reviewer.id'
    assert running.run(spawned) == "True"
    assert running.run('reviewer.spawn(persona_id="tester")["definition_id"] == reviewer.id') == "True"


def test_a_file_of_another_program_is_imported_and_exported(running: Kernel, repository: Path) -> None:
    text = "---\nname: critic\ndescription: Judges\ntools: Read, Grep\ncolor: red\n---\n\nJudge.\n"
    (repository / "critic.md").write_text(text)
    found = f'critic = wb.definitions.import_("{repository}/critic.md")'
    assert running.run(found) == "Left out: color.\n"
    assert running.run('critic.settings["allowedTools"]') == "['Read', 'Grep']"
    assert "tools: Read, Grep" in running.run('print(critic.export("claude-subagent"))')


def test_tab_offers_the_keys_and_the_commands_are_magics_too(running: Kernel) -> None:
    running.run('reviewer.rules["be-polite"] = "Use polite language."')
    assert running.complete('wb.definitions["') == ["reviewer"]
    assert running.complete('reviewer.rules["') == ["be-polite"]
    assert running.complete("%workbench define show rev") == ["reviewer"]
    for line in ("define", "define show reviewer"):
        assert "Reads diffs" in running.run(f"%workbench {line}")
    assert "be-polite" in running.run("%workbench define rules reviewer")


def test_an_object_stays_the_same_definition_when_its_name_changes_or_becomes_anothers(running: Kernel) -> None:
    running.run('found = wb.definitions["reviewer"]; found.metadata["name"] = "renamed"')
    running.run('reviewer.settings["temperature"] = 0.2')
    running.run('wb.definitions.create("reviewer", path="./agents/next", initialPrompt="You are another.")')
    assert running.run("found.prompt, reviewer.prompt") == "('You review.', 'You review.')"
    assert running.run("found.info['name'], dict(found.rules)") == "('renamed', {})"
