"""Many changes of definitions at once: all of them, or none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.definitions.conftest import Reviewer, create, versions
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, Refused, Unavailable
from workbench.ops import collect
from workbench.services import SERVICES
from workbench.services.definitions.bulk import OPERATIONS
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

APART = {"agent_bulk", "agent_migrate", "agent_probe_mcp_server", "agent_request_trust"}
"""Tools that do more than to change definitions, so that they cannot be combined."""


def change(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def add_rule(target: str, name: str, text: str = "x") -> dict[str, Any]:
    return change("agent_add_rule", agentTarget=target, rule={"name": name, "text": text})


async def bulk(workbench: Workbench, *changes: dict[str, Any], **options: Any) -> dict[str, Any]:
    return await workbench.call("agent_bulk", changes=list(changes), **options)


def files(settings: Settings) -> dict[str, str]:
    """All files of definitions."""
    agents = settings.home / "agents"
    found = (path for path in agents.rglob("*") if path.is_file() and ".workbench" not in path.parts)
    return {str(path.relative_to(agents)): path.read_text() for path in found}


def test_every_tool_that_changes_definitions_can_be_combined() -> None:
    changing = {op.name for op in collect(SERVICES).values() if op.requires and not op.reads}
    assert {name for name in changing if name.startswith("agent_")} - OPERATIONS.keys() == APART


async def test_later_changes_of_a_bulk_see_the_earlier_ones(workbench: Workbench, settings: Settings) -> None:
    await create(workbench)
    done = await bulk(
        workbench,
        change("agent_create", agentPath="./agents/tester", name="Tester"),
        add_rule("Tester", "first"),
        add_rule("./agents/tester", "second"),
        change("agent_delete_rule", agentTarget="Tester", ruleName="first"),
        change("agent_clone", sourceAgent="Tester", targetPath="./agents/copy", newName="Copy"),
        change("agent_delete", agentTarget="reviewer", confirm=True),
    )
    assert [(agent["path"], agent["action"]) for agent in done["agents"]] == [
        ("./agents/tester", "created"),
        ("./agents/copy", "created"),
        ("./agents/reviewer", "deleted"),
    ]
    assert done["results"][0]["agentPath"] == "./agents/tester"
    assert done["message"] == "Done. Agents: 3; tools: 6."
    assert sorted(name for name in files(settings) if "rules" in name) == [
        "copy/rules/second.md",
        "tester/rules/second.md",
    ]
    listed = await workbench.call("agent_list")
    assert [agent["name"] for agent in listed["agents"]] == ["Copy", "Tester"]
    assert (await workbench.call("agent_get_info", agentTarget="Tester"))["id"] == done["results"][0]["agentId"]


async def test_each_bulk_change_is_recorded_after_an_editors_edit(reviewer: Reviewer) -> None:
    (reviewer.folder / "prompt.md").write_text("Edited.\n")
    await bulk(reviewer.workbench, add_rule("reviewer", "a"), add_rule("reviewer", "b"))
    assert await versions(reviewer.workbench) == [
        ("definition.created", "created"),
        ("definition.found", "changed outside of Workbench"),
        ("definition.changed", "rule a added"),
        ("definition.changed", "rule b added"),
    ]
    history = await reviewer("agent_history")
    assert history["versions"][0]["contentHash"] == history["contentHash"]
    assert history["count"] == 4


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (add_rule("reviewer", "a"), "ALREADY_EXISTS"),
        (add_rule("reviewer", "not valid"), "VALIDATION_ERROR"),
        (add_rule("nothing", "a"), "AGENT_NOT_FOUND"),
        (add_rule("./agents/deleted", "a"), "AGENT_NOT_FOUND"),
        (add_rule("deleted", "a"), "AGENT_NOT_FOUND"),
        (change("agent_delete", agentTarget="reviewer"), "CONFIRMATION_REQUIRED"),
        (change("agent_create", agentPath="./agents/tester/inside", name="x"), "AGENT_EXISTS"),
        (change("agent_create", agentPath="./agents/Tester", name="x"), "AGENT_EXISTS"),
        (change("agent_create", agentPath="./agents/reviewer", name="x"), "AGENT_EXISTS"),
        (change("agent_create", agentPath="/etc/x", name="x"), "INVALID_PATH"),
        (change("agent_get_info", agentTarget="reviewer"), "UNKNOWN_OPERATION"),
        (change("agent_bulk", changes=[]), "UNKNOWN_OPERATION"),
        (change("reject", approval_id=1), "UNKNOWN_OPERATION"),
    ],
)
async def test_a_bulk_change_with_one_mistake_changes_nothing(
    workbench: Workbench, settings: Settings, wrong: dict[str, Any], code: str
) -> None:
    await create(workbench)
    await create(workbench, "deleted")
    before, events = files(settings), await versions(workbench)
    tester = change("agent_create", agentPath="./agents/tester", name="Tester")
    delete = change("agent_delete", agentTarget="deleted", confirm=True)
    failed = await given.refusal(bulk(workbench, tester, add_rule("reviewer", "a"), delete, wrong))
    assert (failed.code, failed.details["change"]) == (code, 4)
    assert failed.message.startswith(f"Change 4 ({wrong['tool']}), so nothing is changed: ")
    assert (files(settings), await versions(workbench)) == (before, events)
    left = {path.name for path in (settings.home / "agents").iterdir() if path.name[0] != "."}
    assert left == {"reviewer", "deleted"}


async def test_a_dry_run_shows_the_differences_and_changes_nothing(workbench: Workbench, settings: Settings) -> None:
    await create(workbench)
    before, events = files(settings), await versions(workbench)
    tester = change("agent_create", agentPath="./agents/deep/tester", name="Tester")
    shown = await bulk(workbench, add_rule("reviewer", "a", "Be kind."), tester, dryRun=True)
    assert shown["message"] == "Dry run, nothing changed. Agents: 2; tools: 2."
    [file] = shown["agents"][0]["changes"]
    assert (file["path"], file["status"]) == ("rules/a.md", "added")
    assert "+Be kind." in file["patch"]
    assert (files(settings), await versions(workbench)) == (before, events)
    assert not (settings.home / "agents" / "deep").exists()
    with pytest.raises(BadInput, match="VALIDATION_ERROR"):
        await bulk(workbench, tester, dryRun="true")


async def test_a_definition_created_and_deleted_in_one_bulk_leaves_no_files(
    workbench: Workbench, settings: Settings
) -> None:
    done = await bulk(
        workbench,
        change("agent_create", agentPath="./agents/tester", name="Tester"),
        change("agent_delete", agentTarget="Tester", confirm=True),
    )
    assert (done["agents"], files(settings)) == ([], {})


async def test_a_bulk_change_keeps_concurrent_changes_of_others(reviewer: Reviewer) -> None:
    many = [add_rule("reviewer", f"r{number}") for number in range(30)]
    others = [reviewer("agent_add_rule", rule={"name": f"o{n}", "text": "x"}) for n in range(3)]
    await asyncio.gather(bulk(reviewer.workbench, *many), *others)
    assert (await reviewer("agent_list_rules"))["count"] == 33


async def test_a_bulk_change_of_a_constantly_edited_definition_is_refused_as_busy(
    reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def edited(replacements: object) -> bool:
        counted.append(1)
        (reviewer.folder / "prompt.md").write_text(f"{len(counted)}\n")
        return False

    monkeypatch.setattr("workbench.services.definitions.bulk.replace_together", edited)
    with pytest.raises(Unavailable, match="DEFINITION_BUSY"):
        await bulk(reviewer.workbench, add_rule("reviewer", "a"))
    assert len(counted) == 5


async def test_a_definition_in_an_older_layout_is_not_changed(workbench: Workbench, settings: Settings) -> None:
    old = settings.home / "agents" / "old"
    old.mkdir(parents=True)
    (old / "tsagent.json").write_text('{"metadata": {"name": "Old"}}')
    with pytest.raises(Conflict, match="OLDER_LAYOUT"):
        await bulk(workbench, add_rule("Old", "a"))


async def test_a_planner_combines_changes_if_its_grant_includes_definitions(workbench: Workbench, admit: Admit) -> None:
    await create(workbench)
    planner = (await admit("ada", persona_id="planner")).caller
    arguments = {"changes": [add_rule("reviewer", "a")]}
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(planner, "agent_bulk", arguments)
    await workbench.call("update_agent", agent_id=planner.name, changes={"definitions": True})
    done = await workbench.dispatch(await workbench.renewed(planner), "agent_bulk", arguments)
    assert done["message"] == "Done. Agents: 1; tools: 1."
    history = await workbench.call("agent_history", agentTarget="reviewer")
    assert history["versions"][0]["by"] == planner.name


async def test_a_definition_imported_in_bulk_is_not_trusted_at_once(reviewer: Reviewer) -> None:
    content = (await reviewer("agent_export"))["content"] + "mcpServers: {git: {command: git-mcp}}\n"
    imports = change("agent_import", agentPath="./agents/foreign", content=content, newName="Foreign")
    await bulk(reviewer.workbench, imports)
    assert (await reviewer("agent_get_trust", agentTarget="Foreign"))["trusted"] is False
