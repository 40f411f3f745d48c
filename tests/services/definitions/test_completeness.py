"""The report on a definition: its files, what they say, and what this machine lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.services.definitions.conftest import create
from workbench.app import Workbench
from workbench.errors import NotFound
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

DESCRIBED = {"description": "Reviews changes.", "initialPrompt": "You review changes."}


@pytest.fixture
async def agent(workbench: Workbench, settings: Settings) -> Path:
    """The `agent.yaml` of a definition in which nothing is missing."""
    await create(workbench, **DESCRIBED)
    return settings.home / "agents" / "reviewer" / "agent.yaml"


async def validate(workbench: Workbench) -> dict[str, Any]:
    return await workbench.call("agent_validate", agentTarget="./agents/reviewer")


def places(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["severity"], one["place"]) for one in report["problems"]]


async def test_a_definition_in_which_nothing_is_missing_is_complete(workbench: Workbench, agent: Path) -> None:
    report = await validate(workbench)
    info = await workbench.call("agent_get_info", agentTarget="reviewer")
    assert report == {
        "valid": True,
        "complete": True,
        "problems": [],
        "count": 0,
        "contentHash": info["contentHash"],
    }


async def test_hints_leave_it_complete_and_warnings_do_not(workbench: Workbench, agent: Path) -> None:
    prompt = agent.with_name("prompt.md")
    prompt.unlink()
    report = await validate(workbench)
    assert (report["valid"], report["complete"], places(report)) == (True, True, [("hint", "prompt")])
    agent.write_text(f"{agent.read_text()}settings: {{model: 'openai:x'}}\n")
    report = await validate(workbench)
    assert (report["valid"], report["complete"]) == (True, False)


async def test_files_that_cannot_be_read_are_reported_with_their_line(workbench: Workbench, agent: Path) -> None:
    agent.write_text("metadata:\n  id: a\n  id: b\n")
    report = await validate(workbench)
    [problem] = report["problems"]
    assert (problem["severity"], problem["place"], problem["line"]) == ("error", "agent.yaml", 3)
    assert (report["valid"], report["complete"], report["contentHash"]) == (False, False, None)


async def test_a_rule_that_is_a_link_is_reported(workbench: Workbench, agent: Path) -> None:
    (agent.parent / "rules").mkdir()
    (agent.parent / "rules" / "a.md").symlink_to("/etc/passwd")
    assert [severity for severity, _ in places(await validate(workbench))] == ["error"]


async def test_files_that_are_not_read_are_hints(workbench: Workbench, agent: Path) -> None:
    agent.with_name("notes.txt").write_text("x")
    assert places(await validate(workbench)) == [("hint", "notes.txt")]


async def test_what_this_machine_lacks_is_reported(workbench: Workbench, agent: Path) -> None:
    servers = (
        "mcpServers:\n  here: {command: git}\n  missing: {command: no-such-program}\n  path: {command: /no/such}\n"
    )
    text = agent.read_text().replace("metadata:\n", "metadata:\n  persona: no-such-persona\n", 1)
    agent.write_text(text + servers)
    assert places(await validate(workbench)) == [("error", "metadata.persona"), ("warning", "mcpServers.missing")]


async def test_no_report_contains_a_secret(workbench: Workbench, agent: Path) -> None:
    agent.write_text(f"{agent.read_text()}providers: {{openai: {{OPENAI_API_KEY: 'sk-1234'}}}}\n")
    report = await validate(workbench)
    assert ("warning", "providers.openai.OPENAI_API_KEY") in places(report)
    assert "sk-1234" not in repr(report)


async def test_an_edit_is_noted_when_it_is_validated(workbench: Workbench, agent: Path) -> None:
    agent.with_name("prompt.md").write_text("You review all changes.\n")
    await validate(workbench)
    found = await workbench.call("list_events", kinds=["definition.found"])
    assert len(found["events"]) == 1


async def test_an_agent_that_does_not_exist_is_not_found(workbench: Workbench, agent: Path) -> None:
    for target in ("./agents/nothing", "nothing"):
        with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
            await workbench.call("agent_validate", agentTarget=target)
