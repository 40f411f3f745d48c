"""Definitions are listed, created, copied and deleted; the files are what counts, and each version is recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conftest import Admit, Served
from tests.services.definitions.conftest import create, versions
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused
from workbench.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_definition_is_created_as_files_and_found_by_path_id_and_name(
    workbench: Workbench, settings: Settings
) -> None:
    made = await create(workbench, mode="autonomous", initialSettings={"temperature": 0.1}, initialPrompt="Be brief.")
    folder = settings.home / "agents" / "reviewer"
    assert (folder / "prompt.md").read_text() == "Be brief.\n"
    assert "temperature: 0.1" in (folder / "agent.yaml").read_text()
    assert made["agentPath"] == "./agents/reviewer"
    for target in (made["agentPath"], made["agentId"], "reviewer", str(folder)):
        info = await workbench.call("agent_get_info", agentTarget=target)
        assert (info["id"], info["mode"], info["settings"]["temperature"]) == (made["agentId"], "autonomous", 0.1)
    listed = await workbench.call("agent_list")
    assert [(one["id"], one["path"]) for one in listed["agents"]] == [(made["agentId"], made["agentPath"])]
    assert await versions(workbench) == [("definition.created", "created")]


async def test_a_directory_that_does_not_exist_has_no_definitions_and_the_list_says_so(workbench: Workbench) -> None:
    listed = await workbench.call("agent_list", basePath="./agents/nothing")
    assert (listed["agents"], listed["message"]) == ([], "There is no directory ./agents/nothing.")
    assert (await workbench.call("agent_list", basePath="./agents"))["count"] == 0


async def test_a_definition_is_created_once(workbench: Workbench) -> None:
    await create(workbench)
    with pytest.raises(Conflict, match="AGENT_EXISTS"):
        await create(workbench)
    with pytest.raises(Conflict, match="AGENT_EXISTS"):
        await workbench.call("agent_create", agentPath="./agents/Reviewer", name="other")


async def test_two_definitions_of_one_name_are_ambiguous_and_named(workbench: Workbench) -> None:
    await create(workbench)
    await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/second")
    with pytest.raises(BadInput, match="AMBIGUOUS_TARGET") as raised:
        await workbench.call("agent_get_info", agentTarget="reviewer")
    assert raised.value.details["candidates"] == ["./agents/reviewer", "./agents/second"]


async def test_one_that_cannot_be_read_is_found_by_its_directory_and_its_mistake_is_said(
    workbench: Workbench, settings: Settings
) -> None:
    await create(workbench)
    (settings.home / "agents" / "reviewer" / "agent.yaml").write_text("name: [")
    for operation in ("agent_get_info", "agent_get_settings"):
        with pytest.raises(BadInput, match="INVALID_CONFIGURATION"):
            await workbench.call(operation, agentTarget="reviewer")
    assert (await workbench.call("agent_validate", agentTarget="reviewer"))["valid"] is False
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.call("agent_get_info", agentTarget="review")


async def test_a_copy_has_its_own_id_and_name_and_says_the_same(workbench: Workbench) -> None:
    made = await create(workbench, initialPrompt="Be brief.")
    copy = await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/second", newName="second")
    info = await workbench.call("agent_get_info", agentTarget="second")
    assert info["id"] == copy["agentId"] != made["agentId"]
    with pytest.raises(Conflict, match="AGENT_EXISTS"):
        await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/reviewer")


@pytest.mark.parametrize("confirm", [{}, {"confirm": False}, {"confirm": "true"}, {"confirm": 1}])
async def test_nothing_is_deleted_unless_it_is_confirmed(workbench: Workbench, confirm: dict[str, Any]) -> None:
    await create(workbench)
    with pytest.raises(BadInput, match="CONFIRMATION_REQUIRED"):
        await workbench.call("agent_delete", agentTarget="reviewer", **confirm)
    assert (await workbench.call("agent_list"))["count"] == 1


async def test_what_is_not_of_the_definition_stays_when_it_is_deleted(workbench: Workbench, settings: Settings) -> None:
    await create(workbench)
    folder = settings.home / "agents" / "reviewer"
    (folder / "notes.txt").write_text("mine")
    deleted = await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    assert deleted["left"] == ["notes.txt"]
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.call("agent_get_info", agentTarget="./agents/reviewer")
    assert (await versions(workbench))[-1] == ("definition.deleted", "deleted")


async def test_what_an_editor_changes_is_read_and_recorded(workbench: Workbench, settings: Settings) -> None:
    await create(workbench)
    before = await workbench.call("agent_get_info", agentTarget="reviewer")
    (settings.home / "agents" / "reviewer" / "prompt.md").write_text("Another prompt.\n")
    after = await workbench.call("agent_get_info", agentTarget="reviewer")
    assert before["contentHash"] != after["contentHash"]
    assert (await versions(workbench))[-1] == ("definition.found", "changed outside of Workbench")


async def test_an_agent_manages_definitions_only_as_a_planner_whose_grant_includes_them(
    workbench: Workbench, admit: Admit
) -> None:
    planner = (await admit("ada", persona_id="planner")).caller
    with pytest.raises(Refused, match=r"FORBIDDEN.*its grant does not include definitions"):
        await workbench.dispatch(planner, "agent_list", {})
    await workbench.call("update_agent", agent_id="ada", changes={"definitions": True})
    assert (await workbench.dispatch(await workbench.renewed(planner), "agent_list", {}))["count"] == 0
    await workbench.call("update_agent", agent_id="ada", changes={"role": "worker"})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(await workbench.renewed(planner), "agent_list", {})


async def test_an_agent_is_given_a_definition_by_its_id_or_a_name_that_only_one_has(
    workbench: Workbench, admit: Admit
) -> None:
    made = await create(workbench)
    await admit("ada")

    async def give(definition: str) -> str:
        agent = await workbench.call("update_agent", agent_id="ada", changes={"definition": definition})
        return str(agent["definition"])

    assert await give("reviewer") == "reviewer"
    copy = await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/second")
    with pytest.raises(BadInput, match="AMBIGUOUS_NAME") as raised:
        await give("reviewer")
    assert raised.value.details["candidates"] == sorted([made["agentId"], copy["agentId"]])
    assert await give(copy["agentId"]) == "reviewer"
    with pytest.raises(NotFound, match="DEFINITION_NOT_FOUND"):
        await give("nobody")


async def test_a_definition_that_git_brought_can_be_given_to_an_agent_before_anybody_has_read_it(
    served: Served, settings: Settings, admit: Admit
) -> None:
    folder = settings.home / "agents" / "theirs"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("metadata:\n  id: theirs\n  name: Theirs\n")
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "agent.yaml").write_text("metadata: [\n")
    await admit("ada")
    events: list[dict[str, Any]] = []
    while not events:
        await asyncio.sleep(0.05)
        events = (await served.workbench.call("list_events", kinds=["definition.*"]))["events"]
    assert [(event["kind"], event["data"]["name"]) for event in events] == [("definition.found", "Theirs")]
    given = await served.workbench.call("update_agent", agent_id="ada", changes={"definition": "Theirs"})
    assert given["definition"] == "Theirs"


async def test_arguments_that_do_not_fit_are_a_validation_error(workbench: Workbench) -> None:
    with pytest.raises(BadInput, match="VALIDATION_ERROR") as raised:
        await workbench.call("agent_create", agentPath="./agents/a", name="a", mode="magic")
    assert raised.value.details["problems"][0]["field"] == "mode"
    with pytest.raises(BadInput, match=r"VALIDATION_ERROR: settings\.temperature"):
        await create(workbench, initialSettings={"temperature": 9})
    assert (await workbench.call("agent_list"))["count"] == 0
