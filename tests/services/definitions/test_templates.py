"""Definitions made of templates and of personas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

TEMPLATES = sorted(path.name for path in (Path(__file__).parents[3] / "data" / "definitions").iterdir())


async def info(workbench: Workbench, target: str) -> dict[str, Any]:
    return await workbench.call("agent_get_info", agentTarget=target)


async def test_the_templates_are_listed_with_what_they_consist_of(workbench: Workbench) -> None:
    listed = (await workbench.call("agent_list_templates"))["templates"]
    assert [one["name"] for one in listed] == TEMPLATES == ["analyst", "implementer", "reviewer", "text-tools"]
    tools = listed[-1]
    assert (tools["title"], tools["mode"], tools["tools"]) == (
        "Text tools",
        "tools",
        ["summarize", "extract", "compare"],
    )
    assert all(one["description"] and one["rules"] for one in listed)


@pytest.mark.parametrize("template", TEMPLATES)
async def test_a_template_becomes_a_definition_that_lacks_nothing(workbench: Workbench, template: str) -> None:
    made = await workbench.call("agent_create_from_template", templateName=template)
    assert made["agentPath"] == f"./agents/{template}"
    found = await info(workbench, made["agentId"])
    assert (found["metadata"]["version"], found["id"]) == ("1.0.0", made["agentId"])
    assert found["metadata"]["created"]
    report = await workbench.call("agent_validate", agentTarget=made["agentPath"])
    assert [one for one in report["problems"] if one["place"] != "settings.model"] == []


async def test_its_name_and_directory_can_be_chosen_and_two_of_one_template_are_two_agents(
    workbench: Workbench,
) -> None:
    first = await workbench.call("agent_create_from_template", templateName="reviewer")
    second = await workbench.call(
        "agent_create_from_template", templateName="reviewer", agentPath="./agents/strict", name="Strict"
    )
    assert first["agentId"] != second["agentId"]
    assert (await info(workbench, "Strict"))["path"] == "./agents/strict"
    with pytest.raises(Conflict, match="AGENT_EXISTS"):
        await workbench.call("agent_create_from_template", templateName="reviewer")


async def test_an_unknown_template_is_refused_with_those_there_are(workbench: Workbench) -> None:
    for name in ("poet", "../reviewer", "."):
        with pytest.raises(NotFound, match="The templates: analyst, implementer"):
            await workbench.call("agent_create_from_template", templateName=name)
    with pytest.raises(BadInput, match="INVALID_PATH"):
        await workbench.call("agent_create_from_template", templateName="reviewer", agentPath="../out")


async def test_a_persona_becomes_a_definition_that_takes_its_work(workbench: Workbench, settings: Settings) -> None:
    text = "---\nname: The Editor\n---\n\nYou edit.\n\nKindly.\n"
    await workbench.call("save_persona", persona_id="editor", text=text)
    made = await workbench.call("agent_create_from_persona", personaId="Editor")
    found = await info(workbench, made["agentId"])
    assert (found["name"], found["path"], found["mode"]) == ("The Editor", "./agents/editor", "autonomous")
    assert found["metadata"]["persona"] == "editor"
    assert (settings.home / "agents" / "editor" / "prompt.md").read_text() == "You edit.\n\nKindly.\n"
    with pytest.raises(NotFound, match="PERSONA_NOT_FOUND"):
        await workbench.call("agent_create_from_persona", personaId="poet")


async def test_how_a_definition_began_is_recorded(workbench: Workbench) -> None:
    await workbench.call("agent_create_from_template", templateName="analyst")
    await workbench.call("agent_create_from_persona", personaId="tester")
    events = (await workbench.call("list_events", kinds=["definition.created"]))["events"]
    assert [event["data"]["summary"] for event in events] == [
        "created from the template analyst",
        "created from the persona tester",
    ]
