"""Definitions are listed, created, copied and deleted; the files are what counts, and each version is recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, Served, git
from tests.services.definitions.conftest import Reviewer, create, refused, versions
from workbench.app import Workbench
from workbench.definition_files.journal import Journal
from workbench.errors import BadInput, NotFound, Refused
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


def files(folder: Path) -> dict[Path, bytes]:
    """All files below a directory."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_definition_is_files_found_by_path_id_and_name(workbench: Workbench, settings: Settings) -> None:
    definition = await create(
        workbench, mode="autonomous", initialSettings={"temperature": 0.1}, initialPrompt="Be brief."
    )
    folder = settings.home / "agents" / "reviewer"
    assert (folder / "prompt.md").read_text() == "Be brief.\n"
    assert "temperature: 0.1" in (folder / "agent.yaml").read_text()
    assert definition["agentPath"] == "./agents/reviewer"
    for target in (definition["agentPath"], definition["agentId"], "reviewer", str(folder)):
        info = await workbench.call("agent_get_info", agentTarget=target)
        assert (info["id"], info["mode"], info["settings"]["temperature"]) == (definition["agentId"], "autonomous", 0.1)
    listed = await workbench.call("agent_list")
    assert [(agent["id"], agent["path"]) for agent in listed["agents"]] == [
        (definition["agentId"], definition["agentPath"])
    ]
    with pytest.raises(NotFound, match=r"name 'reviever'\. Did you mean"):
        await workbench.call("agent_get_info", agentTarget="reviever")
    for path in ("./agents/reviewer", "./agents/Reviewer"):
        await refused("AGENT_EXISTS", workbench, "agent_create", agentPath=path, name="other")
    assert await versions(workbench) == [("definition.created", "created")]


async def test_a_directory_that_does_not_exist_has_no_definitions_and_the_list_says_so(workbench: Workbench) -> None:
    listed = await workbench.call("agent_list", basePath="./agents/nothing")
    assert (listed["agents"], listed["message"]) == ([], "There is no directory ./agents/nothing.")
    assert (await workbench.call("agent_list", basePath="./agents"))["count"] == 0


async def test_an_unreadable_definition_is_found_by_its_directory_only(reviewer: Reviewer) -> None:
    reviewer.file.write_text("name: [")
    for operation in ("agent_get_info", "agent_get_settings"):
        await reviewer.refused("INVALID_CONFIGURATION", operation)
    assert (await reviewer("agent_validate"))["valid"] is False
    await reviewer.refused("AGENT_NOT_FOUND", "agent_get_info", agentTarget="review")


async def test_a_copy_has_its_own_id_and_only_a_unique_name_assigns_a_definition(
    workbench: Workbench, settings: Settings, admit: Admit
) -> None:
    made = await create(workbench)
    await admit("ada")

    async def give(definition: str) -> str:
        agent = await workbench.call("update_agent", agent_id="ada", changes={"definition": definition})
        return str(agent["definition"])

    assert await give("reviewer") == "reviewer"
    copy = await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/second")
    await refused(
        "AGENT_EXISTS", workbench, "agent_clone", sourceAgent="reviewer", targetPath="./agents/x", newName="reviewer"
    )
    assert copy["agentId"] != made["agentId"]
    file = settings.home / "agents" / "second" / "agent.yaml"
    file.write_text(file.read_text().replace("name: second", "name: reviewer"))
    await workbench.call("agent_get_info", agentTarget=copy["agentPath"])
    for call in (give("reviewer"), workbench.call("agent_get_info", agentTarget="reviewer")):
        with pytest.raises(BadInput, match="AMBIGUOUS_TARGET") as raised:
            await call
        assert raised.value.details["candidates"] == ["./agents/reviewer", "./agents/second"]
    assert await give(copy["agentId"]) == await give(copy["agentPath"]) == "reviewer"
    with pytest.raises(NotFound, match="DEFINITION_NOT_FOUND"):
        await give("nobody")


async def test_a_clone_onto_itself_or_into_itself_changes_nothing(reviewer: Reviewer) -> None:
    before = files(reviewer.folder.parent)
    for path in ("./agents/reviewer", "./agents/reviewer/copy", "./agents/REVIEWER", str(reviewer.folder)):
        clone = {"sourceAgent": "reviewer", "targetPath": path}
        await refused("AGENT_EXISTS", reviewer.workbench, "agent_clone", **clone)
    assert files(reviewer.folder.parent) == before


async def test_a_deletion_needs_true_and_keeps_and_names_foreign_files(reviewer: Reviewer) -> None:
    await reviewer.refused("CONFIRMATION_REQUIRED", "agent_delete")
    for confirm in ("true", "True", 1, "yes", [True], {"confirm": True}, False, None):
        await reviewer.refused("CONFIRMATION_REQUIRED", "agent_delete", confirm=confirm)
    for name in ("notes.txt", "data/table.csv", "rules/.cite.md.swp"):
        (reviewer.folder / name).parent.mkdir(exist_ok=True)
        (reviewer.folder / name).write_text("mine")
    deleted = await reviewer("agent_delete", confirm=True)
    assert deleted["left"] == ["data", "notes.txt", "rules/.cite.md.swp"]
    assert files(reviewer.folder) == {
        reviewer.folder / name: b"mine" for name in ("data/table.csv", *deleted["left"][1:])
    }
    await reviewer.refused("AGENT_NOT_FOUND", "agent_get_info", agentTarget="./agents/reviewer")
    assert (await versions(reviewer.workbench))[-1] == ("definition.deleted", "deleted")


async def test_a_change_made_in_an_editor_is_read_and_recorded(reviewer: Reviewer) -> None:
    before = await reviewer("agent_get_info")
    (reviewer.folder / "prompt.md").write_text("Another prompt.\n")
    after = await reviewer("agent_get_info")
    assert before["contentHash"] != after["contentHash"]
    assert (await versions(reviewer.workbench))[-1] == ("definition.found", "changed outside of Workbench")


async def test_only_a_planner_whose_grant_says_so_manages_definitions(workbench: Workbench, admit: Admit) -> None:
    planner = (await admit("ada", persona_id="planner")).caller
    with pytest.raises(Refused, match=r"FORBIDDEN.*its grant does not include definitions"):
        await workbench.dispatch(planner, "agent_list", {})
    await workbench.call("update_agent", agent_id="ada", changes={"definitions": True})
    assert (await workbench.dispatch(await workbench.renewed(planner), "agent_list", {}))["count"] == 0
    await workbench.call("update_agent", agent_id="ada", changes={"role": "worker"})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(await workbench.renewed(planner), "agent_list", {})


@pytest.mark.long
async def test_a_definition_that_git_brought_can_be_assigned_unread(
    served: Served, settings: Settings, admit: Admit
) -> None:
    for name, text in (("theirs", "metadata:\n  id: theirs\n  name: Theirs\n"), ("broken", "metadata: [\n")):
        folder = settings.home / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.yaml").write_text(text)
    await admit("ada")
    events: list[dict[str, Any]] = []
    while not events:
        await asyncio.sleep(0.05)
        events = (await served.workbench.call("list_events", kinds=["definition.*"]))["events"]
    assert [(event["kind"], event["data"]["name"]) for event in events] == [("definition.found", "Theirs")]
    agent = await served.workbench.call("update_agent", agent_id="ada", changes={"definition": "Theirs"})
    assert agent["definition"] == "Theirs"


async def test_arguments_that_do_not_fit_are_a_validation_error(workbench: Workbench) -> None:
    with pytest.raises(BadInput, match="VALIDATION_ERROR") as raised:
        await create(workbench, mode="magic")
    assert raised.value.details["problems"][0]["field"] == "mode"
    with pytest.raises(BadInput, match=r"VALIDATION_ERROR: settings\.temperature"):
        await create(workbench, initialSettings={"temperature": 9})
    assert (await workbench.call("agent_list"))["count"] == 0


async def test_the_longest_accepted_text_is_read_back(reviewer: Reviewer) -> None:
    rule = {"name": "long", "text": "é" * 200_000}
    await reviewer("agent_add_rule", rule=rule)
    assert (await reviewer("agent_get_rule", ruleName="long"))["rule"]["text"] == rule["text"]
    rule["text"] += "é"
    await reviewer.refused("VALIDATION_ERROR", "agent_add_rule", rule=rule)


# What others do at the wrong moment, or name alike


async def test_a_change_right_after_the_operators_own_is_not_trusted(
    reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Journal.commit

    def commit(self: Journal, *arguments: Any) -> bool:
        done = real(self, *arguments)
        reviewer.append("mcpServers:\n  evil:\n    command: steal\n")
        return done

    monkeypatch.setattr(Journal, "commit", commit)
    await reviewer("agent_add_rule", rule={"name": "a", "text": "x"})
    monkeypatch.undo()
    trust = await reviewer("agent_get_trust")
    assert [(need["name"], need["trusted"]) for need in trust["needs"]] == [("mcpServers.evil", False)]
    newest = [version["summary"] for version in (await reviewer("agent_history"))["versions"]][:2]
    assert newest == ["changed outside of Workbench", "rule a added"]


async def test_no_new_definition_can_be_named_after_the_id_of_a_deleted_one(workbench: Workbench, admit: Admit) -> None:
    definition = await create(workbench)
    ada = await admit("ada", definition="reviewer")
    assert await workbench.dispatch(ada.caller, "list_rules", {}) == {"rules": []}
    await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    await refused("VALIDATION_ERROR", workbench, "agent_create", agentPath="./agents/other", name=definition["agentId"])
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.dispatch(ada.caller, "add_rule", {"rule": {"name": "a", "text": "x"}})


async def test_a_branch_checked_out_between_two_calls_is_read(reviewer: Reviewer, repository: Path) -> None:
    prompt = reviewer.folder / "prompt.md"
    prompt.write_text("One.\n")
    git("add", "--force", ".aiswarm/agents/reviewer", cwd=repository)
    git("commit", "-q", "-m", "One", cwd=repository)
    git("checkout", "-q", "-b", "other", cwd=repository)
    prompt.write_text("Two.\n")
    git("commit", "-q", "-a", "-m", "Two", cwd=repository)
    for branch, text in (("main", "One.\n"), ("other", "Two.\n"), ("main", "One.\n")):
        git("checkout", "-q", branch, cwd=repository)
        await reviewer("agent_add_rule", rule={"name": "a", "text": text})
        assert prompt.read_text() == text
        assert git("status", "--porcelain", cwd=repository).endswith("agents/reviewer/rules/")
        await reviewer("agent_delete_rule", ruleName="a")
    assert git("status", "--porcelain", cwd=repository) == ""
