"""The format of definitions: its JSON Schemas, and the conversion of older layouts by an operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rules.definitions.test_older import FILES, YAML
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict
from workbench.rules.definitions.schema import File, of_file
from workbench.rules.yaml_text import write
from workbench.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def agents(settings: Settings) -> Path:
    """Where the definitions are; one of each older layout is there."""
    root = settings.home / "agents"
    for name, text in {**{f"finder/{name}": text for name, text in FILES.items()}, "writer.yaml": write(YAML)}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


async def migrate(workbench: Workbench, target: str, **more: Any) -> dict[str, Any]:
    return await workbench.call("agent_migrate", agentTarget=target, **more)


@pytest.mark.parametrize("file", File)
async def test_the_schema_of_each_file_is_returned(workbench: Workbench, file: File) -> None:
    assert (await workbench.call("agent_get_schema", file=file))["jsonSchema"] == of_file(file)


async def test_older_definitions_are_listed_read_and_refused_to_be_changed(workbench: Workbench, agents: Path) -> None:
    listed = await workbench.call("agent_list")
    assert [one["path"] for one in listed["agents"]] == ["./agents/finder", "./agents/writer.yaml"]
    assert (await workbench.call("agent_list_rules", agentTarget="./agents/writer.yaml"))["count"] == 1
    with pytest.raises(Conflict, match=r"OLDER_LAYOUT: writer\.yaml has .* Convert it with agent_migrate"):
        await workbench.call("agent_add_rule", agentTarget="./agents/writer.yaml", rule={"name": "a", "text": "b"})


async def test_a_check_of_one_says_to_convert_it(workbench: Workbench, agents: Path) -> None:
    for path in ("./agents/writer.yaml", "./agents/finder"):
        report = await workbench.call("agent_validate", agentTarget=path)
        assert any("Convert it with agent_migrate" in problem["message"] for problem in report["problems"])
        assert not any("This file is not read" in problem["message"] for problem in report["problems"])


async def test_a_directory_is_converted_in_its_place_and_keeps_its_files(workbench: Workbench, agents: Path) -> None:
    made = await migrate(workbench, "finder")
    assert (made["agentPath"], made["agentId"], made["leftOut"]) == ("./agents/finder", "finder", [])
    assert made["changed"] == ["providers: 'claude' is named 'anthropic' now."]
    assert (agents / "finder" / "tsagent.json").read_text() == FILES["tsagent.json"]
    assert json.loads(FILES["tsagent.json"])["metadata"]["name"] in (agents / "finder" / "agent.yaml").read_text()
    await workbench.call("agent_add_rule", agentTarget="finder", rule={"name": "a", "text": "b"})
    assert (await workbench.call("agent_list_rules", agentTarget="finder"))["count"] == 3
    (event,) = (await workbench.call("list_events", kinds=["definition.created"]))["events"]
    assert event["data"]["summary"] == "converted from ./agents/finder"


async def test_a_file_is_converted_to_a_directory_and_removed_if_that_is_asked_for(
    workbench: Workbench, agents: Path
) -> None:
    made = await migrate(workbench, "./agents/writer.yaml", keepOld=False)
    assert made["agentPath"] == "./agents/writer"
    assert not (agents / "writer.yaml").exists()
    assert (agents / "writer" / "rules" / "cite.md").read_text().endswith("\nCite.\n")


async def test_a_conversion_that_would_lose_something_is_refused(workbench: Workbench, agents: Path) -> None:
    (agents / "writer.yaml").write_text(write(YAML | {"supervisors": []}))
    with pytest.raises(Conflict, match="MIGRATION_INCOMPLETE: Without the old files, supervisors would be lost"):
        await migrate(workbench, "./agents/writer.yaml", keepOld=False)
    assert (await migrate(workbench, "./agents/writer.yaml"))["leftOut"] == ["supervisors"]
    with pytest.raises(Conflict, match="NOTHING_TO_MIGRATE"):
        await migrate(workbench, "writer")


async def test_secrets_of_an_older_definition_are_masked(workbench: Workbench, agents: Path) -> None:
    (agents / "writer.yaml").write_text(write(YAML | {"providers": {"claude": {"ANTHROPIC_API_KEY": "sk-hidden"}}}))
    made = await migrate(workbench, "./agents/writer.yaml")
    events = await workbench.call("list_events", kinds=["definition.*"])
    assert "sk-hidden" not in json.dumps([made, events])
    assert "sk-hidden" in (agents / "writer" / "agent.yaml").read_text()
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await migrate(workbench, "writer", keepOld="maybe")
