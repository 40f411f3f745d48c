"""Definitions are made of templates, personas, exported files and older layouts; the JSON Schemas of their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rules.definitions.test_older import FILES, YAML
from tests.services.definitions.conftest import Reviewer, create, refused
from workbench.app import Workbench
from workbench.rules.definitions.names import is_id
from workbench.rules.definitions.schema import DefinitionFile, of_file
from workbench.rules.yaml_text import write
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

TEMPLATES = sorted(path.name for path in (Path(__file__).parents[3] / "data" / "definitions").iterdir())


async def info(workbench: Workbench, target: str) -> dict[str, Any]:
    return await workbench.call("agent_get_info", agentTarget=target)


async def from_template(workbench: Workbench, template: str, **more: Any) -> dict[str, Any]:
    return await workbench.call("agent_create_from_template", templateName=template, **more)


# Templates and personas


async def test_the_templates_are_listed_with_what_they_consist_of(workbench: Workbench) -> None:
    listed = (await workbench.call("agent_list_templates"))["templates"]
    assert [one["name"] for one in listed] == TEMPLATES == ["analyst", "implementer", "reviewer", "text-tools"]
    tools = ["summarize", "extract", "compare"]
    assert [listed[-1][key] for key in ("title", "mode", "tools")] == ["Text tools", "tools", tools]
    assert all(one["description"] and one["rules"] for one in listed)


@pytest.mark.parametrize("template", TEMPLATES)
async def test_a_template_becomes_a_complete_definition(workbench: Workbench, template: str) -> None:
    definition = await from_template(workbench, template)
    assert definition["agentPath"] == f"./agents/{template}"
    found = await info(workbench, definition["agentId"])
    assert (found["metadata"]["version"], found["id"]) == ("1.0.0", definition["agentId"])
    assert found["metadata"]["created"]
    report = await workbench.call("agent_validate", agentTarget=definition["agentPath"])
    assert [problem for problem in report["problems"] if problem["place"] != "settings.model"] == []


async def test_one_template_makes_two_definitions_and_an_unknown_one_is_refused(workbench: Workbench) -> None:
    first = await from_template(workbench, "reviewer")
    second = await from_template(workbench, "reviewer", agentPath="./agents/strict", name="Strict")
    assert first["agentId"] != second["agentId"]
    assert (await info(workbench, "Strict"))["path"] == "./agents/strict"
    for code, name, more in (
        ("AGENT_EXISTS", "reviewer", {}),
        ("INVALID_PATH", "reviewer", {"agentPath": "../out"}),
        *(("NOT_FOUND", name, {}) for name in ("poet", "../reviewer", ".")),
    ):
        error = await refused(code, workbench, "agent_create_from_template", templateName=name, **more)
        assert ("The templates: analyst, implementer" in error) == (code == "NOT_FOUND")


async def test_a_persona_becomes_a_definition_that_takes_its_work(workbench: Workbench, settings: Settings) -> None:
    text = "---\nname: The Editor\n---\n\nYou edit.\n\nKindly.\n"
    await workbench.call("save_persona", persona_id="editor", text=text)
    from_persona = await workbench.call("agent_create_from_persona", personaId="Editor")
    found = await info(workbench, from_persona["agentId"])
    assert (found["name"], found["path"], found["mode"]) == ("The Editor", "./agents/editor", "autonomous")
    assert found["metadata"]["persona"] == "editor"
    assert (settings.home / "agents" / "editor" / "prompt.md").read_text() == "You edit.\n\nKindly.\n"
    await refused("PERSONA_NOT_FOUND", workbench, "agent_create_from_persona", personaId="poet")
    await from_template(workbench, "analyst")
    events = (await workbench.call("list_events", kinds=["definition.created"]))["events"]
    assert [event["data"]["summary"] for event in events] == [
        "created from the persona editor",
        "created from the template analyst",
    ]


# Exported files


async def import_text(workbench: Workbench, content: str, name: str = "copy", **more: Any) -> dict[str, Any]:
    return await workbench.call("agent_import", agentPath=f"./agents/{name}", content=content, **more)


async def test_a_deleted_definition_is_restored_whole_from_its_export(workbench: Workbench) -> None:
    definition = await create(workbench, description="Reviews.", initialSettings={"temperature": 0.1})
    reviewer = Reviewer(workbench)
    await reviewer("agent_add_rule", rule={"name": "cite", "text": "Cite."})
    before, exported = await reviewer("agent_get_info"), await reviewer("agent_export")
    assert (exported["filename"], exported["secrets"]) == ("reviewer.agent.yaml", [])
    await reviewer("agent_delete", confirm=True)
    back = await import_text(workbench, exported["content"], "reviewer")
    assert (back["agentId"], back["keptId"], back["contentHash"]) == (
        definition["agentId"],
        True,
        exported["contentHash"],
    )
    assert await reviewer("agent_get_info") == before
    summaries = [version["summary"] for version in (await reviewer("agent_history"))["versions"]]
    assert summaries == ["imported", "deleted", "rule cite added", "created"]


async def test_a_copy_gets_an_id_of_its_own_and_no_secrets(workbench: Workbench, reviewer: Reviewer) -> None:
    reviewer.append("providers: {openai: {OPENAI_API_KEY: sk-1234}}\n")
    exported = await reviewer("agent_export")
    assert "sk-1234" not in repr(exported)
    assert exported["secrets"] == [{"place": "providers.openai.OPENAI_API_KEY", "reference": "env://OPENAI_API_KEY"}]
    copy = await import_text(workbench, exported["content"], newName="Copy")
    assert (copy["keptId"], copy["agentId"]) == (False, (await info(workbench, "Copy"))["id"])
    assert copy["agentId"] != (await reviewer("agent_get_info"))["id"]
    assert "OPENAI_API_KEY: env://OPENAI_API_KEY" in (reviewer.folder.parent / "copy" / "agent.yaml").read_text()


async def test_an_import_refuses_foreign_files_taken_names_and_paths_outside(reviewer: Reviewer) -> None:
    content = (await reviewer("agent_export"))["content"]
    foreign = ("workbenchAgent: 1\nmetadata: {id: a}\n", "workbenchAgent: 1\n\x07")
    for code, path, text in (
        *(("NAME_REQUIRED", "./agents/x", text) for text in ("", "x")),
        *(("INVALID_CONFIGURATION", "./agents/x", text) for text in foreign),
        ("AGENT_EXISTS", "./agents/reviewer", content),
        ("INVALID_PATH", "./agents/../../x", content),
    ):
        await refused(code, reviewer.workbench, "agent_import", agentPath=path, content=text)
    assert not (reviewer.folder.parent / "x").exists()
    await reviewer.refused("AGENT_NOT_FOUND", "agent_export", agentTarget="nothing")


# Older layouts


@pytest.fixture
def agents(settings: Settings) -> Path:
    """The directory of definitions, with one of each older layout."""
    root = settings.home / "agents"
    for name, text in {**{f"finder/{name}": text for name, text in FILES.items()}, "writer.yaml": write(YAML)}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


async def migrate(workbench: Workbench, target: str, **more: Any) -> dict[str, Any]:
    return await workbench.call("agent_migrate", agentTarget=target, **more)


@pytest.mark.parametrize("file", DefinitionFile)
async def test_the_schema_of_each_file_is_returned(workbench: Workbench, file: DefinitionFile) -> None:
    assert (await workbench.call("agent_get_schema", file=file))["jsonSchema"] == of_file(file)


async def test_older_definitions_are_listed_and_read_but_not_changed(workbench: Workbench, agents: Path) -> None:
    listed = await workbench.call("agent_list")
    assert [agent["path"] for agent in listed["agents"]] == ["./agents/finder", "./agents/writer.yaml"]
    writer = {"agentTarget": "./agents/writer.yaml"}
    assert (await workbench.call("agent_list_rules", **writer))["count"] == 1
    error = await refused("OLDER_LAYOUT", workbench, "agent_add_rule", **writer, rule={"name": "a", "text": "b"})
    assert error.startswith("OLDER_LAYOUT: writer.yaml has ")
    assert "Convert it with agent_migrate" in error
    for path in ("./agents/writer.yaml", "./agents/finder"):
        report = await workbench.call("agent_validate", agentTarget=path)
        assert any("Convert it with agent_migrate" in problem["message"] for problem in report["problems"])
        assert not any("This file is not read" in problem["message"] for problem in report["problems"])


async def test_a_directory_is_converted_in_its_place_and_keeps_its_files(workbench: Workbench, agents: Path) -> None:
    migration = await migrate(workbench, "./agents/finder")
    assert (migration["agentPath"], is_id(migration["agentId"]), migration["leftOut"]) == ("./agents/finder", True, [])
    changed = ["providers: 'claude' is named 'anthropic' now.", f"metadata.id: 'finder' is {migration['agentId']} now."]
    assert migration["changed"] == changed
    assert (agents / "finder" / "tsagent.json").read_text() == FILES["tsagent.json"]
    assert json.loads(FILES["tsagent.json"])["metadata"]["name"] in (agents / "finder" / "agent.yaml").read_text()
    await workbench.call("agent_add_rule", agentTarget=migration["agentId"], rule={"name": "a", "text": "b"})
    assert (await workbench.call("agent_list_rules", agentTarget="./agents/finder"))["count"] == 3
    (event,) = (await workbench.call("list_events", kinds=["definition.created"]))["events"]
    assert event["data"]["summary"] == "converted from ./agents/finder"


async def test_converting_a_file_to_a_directory_loses_nothing_and_may_remove_the_file(
    workbench: Workbench, agents: Path
) -> None:
    file = {"agentTarget": "./agents/writer.yaml", "keepOld": False}
    (agents / "writer.yaml").write_text(write(YAML | {"supervisors": []}))
    error = await refused("MIGRATION_INCOMPLETE", workbench, "agent_migrate", **file)
    assert "Without the old files, supervisors would be lost" in error
    (agents / "writer.yaml").write_text(write(YAML))
    assert (await workbench.call("agent_migrate", **file))["agentPath"] == "./agents/writer"
    assert not (agents / "writer.yaml").exists()
    assert (agents / "writer" / "rules" / "cite.md").read_text().endswith("\nCite.\n")


async def test_a_migration_names_the_omitted_fields_and_masks_secrets(workbench: Workbench, agents: Path) -> None:
    more = {"supervisors": [], "providers": {"claude": {"ANTHROPIC_API_KEY": "sk-hidden"}}}
    (agents / "writer.yaml").write_text(write(YAML | more))
    migration = await migrate(workbench, "./agents/writer.yaml")
    assert migration["leftOut"] == ["supervisors"]
    assert "sk-hidden" not in json.dumps([migration, await workbench.call("list_events", kinds=["definition.*"])])
    assert "sk-hidden" in (agents / "writer" / "agent.yaml").read_text()
    for code, options in (("NOTHING_TO_MIGRATE", {}), ("VALIDATION_ERROR", {"keepOld": "maybe"})):
        await refused(code, workbench, "agent_migrate", agentTarget="./agents/writer", **options)
