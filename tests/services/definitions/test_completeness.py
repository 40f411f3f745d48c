"""The report on a definition: its files, their mistakes, and what this machine lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.definitions.conftest import Reviewer, create
from workbench.app import Workbench
from workbench.rules.definitions.former_settings import DEFAULTS

pytestmark = pytest.mark.anyio


@pytest.fixture
async def reviewer(workbench: Workbench) -> Reviewer:
    """A definition in which nothing is missing."""
    await create(workbench, description="Reviews changes.", initialPrompt="You review changes.")
    return Reviewer(workbench)


def places(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(problem["severity"], problem["place"]) for problem in report["problems"]]


async def test_a_definition_in_which_nothing_is_missing_is_complete_and_an_edit_is_noted(reviewer: Reviewer) -> None:
    content_hash = (await reviewer("agent_get_info"))["contentHash"]
    whole = {"valid": True, "complete": True, "problems": [], "count": 0, "contentHash": content_hash}
    assert await reviewer("agent_validate") == whole
    (reviewer.folder / "prompt.md").write_text("You review all changes.\n")
    await reviewer("agent_validate")
    assert len((await reviewer.workbench.call("list_events", kinds=["definition.found"]))["events"]) == 1
    for target in ("./agents/nothing", "nothing"):
        await reviewer.refused("AGENT_NOT_FOUND", "agent_validate", agentTarget=target)


async def test_settings_that_a_former_version_wrote_are_named_until_the_next_change(reviewer: Reviewer) -> None:
    reviewer.append(f"settings: {json.dumps({**DEFAULTS})}\n")
    report = await reviewer("agent_validate")
    assert (places(report), report["complete"]) == ([("hint", "settings")], True)
    assert (await reviewer("agent_get_settings"))["settings"]["temperature"] is None
    await reviewer("agent_set_setting", key="temperature", value=0.5)
    assert places(await reviewer("agent_validate")) == []
    assert (await reviewer("agent_get_settings"))["settings"]["temperature"] == 0.5


async def test_a_definition_with_hints_is_complete_and_one_with_warnings_is_not(reviewer: Reviewer) -> None:
    (reviewer.folder / "prompt.md").unlink()
    (reviewer.folder / "notes.txt").write_text("x")
    report = await reviewer("agent_validate")
    assert (report["valid"], report["complete"]) == (True, True)
    assert places(report) == [("hint", "prompt"), ("hint", "notes.txt")]
    reviewer.append("settings: {model: 'openai:x'}\n")
    report = await reviewer("agent_validate")
    assert (report["valid"], report["complete"]) == (True, False)


async def test_files_that_cannot_be_read_are_reported_with_their_line(reviewer: Reviewer) -> None:
    reviewer.file.write_text("metadata:\n  id: a\n  id: b\n")
    report = await reviewer("agent_validate")
    [problem] = report["problems"]
    assert (problem["severity"], problem["place"], problem["line"]) == ("error", "agent.yaml", 3)
    assert (report["valid"], report["complete"], report["contentHash"]) == (False, False, None)


async def test_a_linked_rule_file_is_reported(reviewer: Reviewer) -> None:
    (reviewer.folder / "rules").mkdir()
    (reviewer.folder / "rules" / "a.md").symlink_to("/etc/passwd")
    assert [severity for severity, _ in places(await reviewer("agent_validate"))] == ["error"]


async def test_validation_reports_missing_personas_and_programs_but_no_secret(reviewer: Reviewer) -> None:
    text = reviewer.file.read_text().replace("metadata:\n", "metadata:\n  persona: no-such-persona\n", 1)
    servers = "{here: {command: git}, missing: {command: no-such-program}, path: {command: /no/such}}"
    reviewer.file.write_text(f"{text}mcpServers: {servers}\n")
    expected = [("error", "metadata.persona"), ("warning", "mcpServers.missing")]
    assert places(await reviewer("agent_validate")) == expected
    reviewer.append("providers: {openai: {OPENAI_API_KEY: 'sk-1234'}}\n")
    report = await reviewer("agent_validate")
    assert ("warning", "providers.openai.OPENAI_API_KEY") in places(report)
    assert "sk-1234" not in repr(report)
