"""A target means one definition or is refused: an id is no name, and an ambiguous target lists the candidates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.definitions.conftest import Reviewer, refused
from tests.services.definitions.rows import GOOD, TARGETS
from workbench.ops import OPERATOR, Caller
from workbench.rules.definitions.names import is_id

pytestmark = pytest.mark.anyio

WAYS: tuple[tuple[str, dict[str, Any], str], ...] = (
    *((name, good, parameter) for name, good in GOOD.items() for parameter in sorted(good.keys() & TARGETS)),
    ("create_conversation", {}, "definition"),
    ("publish_personality", {"name": "ada"}, "definition"),
    ("start_run", {"name": "run"}, "definitions"),
    ("update_agent", {"agent_id": "ada"}, "changes"),
)
"""Every parameter that takes a target, with the other arguments of its operation."""
TWO = ["./agents/other", "./agents/reviewer"]


def place(reviewer: Reviewer, files: Mapping[str, str]) -> None:
    """Files that came with a clone."""
    for name, text in files.items():
        path = reviewer.folder.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".workbench" not in path.parts
    }


ID = "{id}"
"""The id of the reviewer."""
SHADOWS: Mapping[str, tuple[dict[str, str], dict[str, bool]]] = {
    "its name as an id": ({"other/agent.yaml": "metadata: {id: reviewer, name: Other}\n"}, {}),
    "its name as the stem of an older file": ({"x/reviewer.yaml": "metadata: {name: Other}\nsystemPrompt: EVIL\n"}, {}),
    "its name as the id in an older file": ({"x/o.yaml": "metadata: {id: reviewer, name: Other}\n"}, {}),
    "its path as a name": ({"other/agent.yaml": "metadata: {id: o, name: ./agents/reviewer}\n"}, {}),
    "its id as a name": ({"other/agent.yaml": f"metadata: {{id: o, name: {ID}}}\n"}, {}),
    "its id": ({"other/agent.yaml": f"metadata: {{id: {ID}, name: Other}}\n"}, {"id": True}),
    "its name": ({"other/agent.yaml": "metadata: {id: o, name: reviewer}\n"}, {"name": True}),
    "its name in an older file": ({"other/tsagent.json": '{"metadata": {"name": "reviewer"}}'}, {"name": True}),
}
"""What a clone brings that stands for the reviewer, and the targets that mean two then."""


@pytest.mark.parametrize(("files", "twofold"), SHADOWS.values(), ids=SHADOWS.keys())
async def test_a_cloned_definition_is_never_taken_for_another(
    reviewer: Reviewer, files: dict[str, str], twofold: dict[str, bool]
) -> None:
    own = (await reviewer("agent_get_info"))["id"]
    place(reviewer, {name: text.replace(ID, own) for name, text in files.items()})
    targets = {"path": "./agents/reviewer", "absolute": str(reviewer.folder), "id": own, "name": "reviewer"}
    before = tree(reviewer.folder.parent)
    for kind, target in targets.items():
        if twofold.get(kind):
            error = await given.refusal(reviewer("agent_get_info", agentTarget=target))
            assert (error.code, error.details) == ("AMBIGUOUS_TARGET", {"candidates": TWO})
        else:
            await reviewer("agent_set_system_prompt", agentTarget=target, prompt=f"By {kind}.")
            assert (reviewer.folder / "prompt.md").read_text() == f"By {kind}.\n"
    changed = {name for name, content in tree(reviewer.folder.parent).items() if before.get(name) != content}
    assert changed == {str(reviewer.folder / "prompt.md")}


async def test_every_operation_with_a_target_refuses_an_ambiguous_name(reviewer: Reviewer, admit: Admit) -> None:
    await admit("ada")
    place(reviewer, {"other/agent.yaml": "metadata: {id: o, name: reviewer}\n"})
    await reviewer("agent_get_info", agentTarget="./agents/other")
    before, failures = tree(reviewer.folder.parent), []
    for name, arguments, parameter in WAYS:
        target = {"changes": {"definition": "reviewer"}, "definitions": ["reviewer"]}.get(parameter, "reviewer")
        error = await given.refusal(reviewer.workbench.call(name, **arguments | {parameter: target}))
        if error.code != "AMBIGUOUS_TARGET" or error.details["candidates"] != TWO:
            failures.append((name, parameter, str(error)))
    assert failures == []
    assert tree(reviewer.folder.parent) == before


async def test_a_definition_that_cannot_be_read_keeps_the_name_of_its_directory(reviewer: Reviewer) -> None:
    reviewer.file.write_text("metadata: [")
    place(reviewer, {"other/agent.yaml": "metadata: {id: o, name: reviewer}\n"})
    assert "./agents/other, ./agents/reviewer" in await reviewer.refused("AMBIGUOUS_TARGET", "agent_get_info")
    (reviewer.folder.parent / "other" / "agent.yaml").unlink()
    await refused("AGENT_EXISTS", reviewer.workbench, "agent_create", agentPath="./agents/new", name="reviewer")


async def test_a_new_name_must_not_be_taken_or_look_like_an_id(reviewer: Reviewer) -> None:
    call, path = reviewer.workbench, "./agents/new"
    identifier = (await reviewer("agent_get_info"))["id"]
    other = (await call.call("agent_create", agentPath="./agents/mine", name="mine"))["agentPath"]
    content = "workbenchAgent: 1\nmetadata: {id: x, name: mine}\n"
    for code, name in (
        ("AGENT_EXISTS", "reviewer"),
        ("VALIDATION_ERROR", identifier),
        ("VALIDATION_ERROR", identifier.upper()),
    ):
        for tool, arguments in (
            ("agent_create", {"agentPath": path, "name": name}),
            ("agent_clone", {"sourceAgent": "mine", "targetPath": path, "newName": name}),
            ("agent_create_from_template", {"templateName": "reviewer", "agentPath": path, "name": name}),
            ("agent_create_from_persona", {"personaId": "tester", "agentPath": path, "name": name}),
            ("agent_import", {"agentPath": path, "content": content, "newName": name}),
            ("agent_update_metadata", {"agentTarget": other, "metadata": {"name": name}}),
        ):
            await refused(code, call, tool, **arguments)
            step = [{"tool": tool, "arguments": arguments}]
            await refused(code, call, "agent_bulk", changes=step)
    created = [{"tool": "agent_create", "arguments": {"agentPath": f"./agents/{one}", "name": "twin"}} for one in "ab"]
    await refused("AGENT_EXISTS", call, "agent_bulk", changes=created)


async def test_an_import_takes_no_id_that_stands_for_another(reviewer: Reviewer, admit: Admit) -> None:
    ada = await admit("ada", persona_id="planner", definitions=True)
    own = (await reviewer("agent_get_info"))["id"]

    async def imported(caller: Caller, identifier: str) -> bool:
        content = f"workbenchAgent: 1\nmetadata: {{id: {identifier}, name: Helper}}\nprompt: EVIL\n"
        arguments = {"agentPath": "./agents/zz", "content": content}
        made = await reviewer.workbench.dispatch(caller, "agent_import", arguments)
        await reviewer.workbench.call("agent_delete", agentTarget="./agents/zz", confirm=True)
        assert is_id(made["agentId"])
        assert made["keptId"] == (made["agentId"] == identifier)
        return bool(made["keptId"])

    planner = await reviewer.workbench.renewed(ada.caller)
    assert not await imported(planner, "reviewer")
    assert not await imported(OPERATOR, "reviewer")
    assert not await imported(planner, own)
    assert not await imported(OPERATOR, own)
    text = reviewer.file.read_text()
    reviewer.file.write_text("metadata: [")
    assert not await imported(planner, own)
    assert not await imported(OPERATOR, own)
    reviewer.file.write_text(text)
    await reviewer("agent_delete", confirm=True)
    assert not await imported(planner, own)
    assert await imported(OPERATOR, own)
    assert await imported(planner, "01a21a28-32aa-7bed-ae8f-0a8bc37feea4")


async def test_a_migration_replaces_a_worded_id_and_keeps_its_records(reviewer: Reviewer, admit: Admit) -> None:
    call, rule = reviewer.workbench.call, {"rule": {"name": "a", "text": "b"}}
    place(reviewer, {"old/agent.yaml": "# mine\nmetadata:\n  id: word # keep\n  name: Old\n"})
    await call("agent_add_rule", agentTarget="Old", rule={"name": "first", "text": "b"})
    ada = (await admit("ada", definition="Old")).caller
    await reviewer.workbench.dispatch(ada, "add_rule", rule)
    error = await reviewer.refused("AGENT_NOT_FOUND", "agent_get_info", agentTarget="word")
    assert "./agents/old is no UUID" in error
    assert "agent_migrate" in error
    migration = await call("agent_migrate", agentTarget="Old")
    assert migration["changed"] == [f"metadata.id: 'word' is {migration['agentId']} now."]
    assert (reviewer.folder.parent / "old" / "agent.yaml").read_text().startswith("# mine\n")
    rules = await reviewer.workbench.dispatch(await reviewer.workbench.renewed(ada), "list_rules", {})
    assert [rule["name"] for rule in rules["rules"]] == ["a", "first"]
    summaries = [
        version["summary"] for version in (await call("agent_history", agentTarget=migration["agentId"]))["versions"]
    ]
    assert (summaries[0], "rule first added" in summaries) == ("id replaced", True)
    await refused("NOTHING_TO_MIGRATE", reviewer.workbench, "agent_migrate", agentTarget="Old")
