"""Definitions are exported to one file, and imported from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.definitions.conftest import create
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.settings import Settings

pytestmark = pytest.mark.anyio


async def export(workbench: Workbench, target: str = "reviewer") -> dict[str, Any]:
    return await workbench.call("agent_export", agentTarget=target)


async def test_a_deleted_definition_is_restored_whole_from_its_export(workbench: Workbench) -> None:
    made = await create(workbench, description="Reviews.", initialSettings={"temperature": 0.1})
    await workbench.call("agent_add_rule", agentTarget="reviewer", rule={"name": "cite", "text": "Cite."})
    before = await workbench.call("agent_get_info", agentTarget="reviewer")
    exported = await export(workbench)
    assert (exported["filename"], exported["secrets"]) == ("reviewer.agent.yaml", [])
    await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    imported = await workbench.call("agent_import", agentPath="./agents/reviewer", content=exported["content"])
    assert (imported["agentId"], imported["keptId"]) == (made["agentId"], True)
    assert imported["contentHash"] == exported["contentHash"]
    assert await workbench.call("agent_get_info", agentTarget="reviewer") == before
    summaries = [one["summary"] for one in (await history(workbench))["versions"]]
    assert summaries == ["imported", "deleted", "rule cite added", "created"]


async def history(workbench: Workbench) -> dict[str, Any]:
    return await workbench.call("agent_history", agentTarget="reviewer")


async def test_a_copy_gets_an_id_of_its_own(workbench: Workbench) -> None:
    made = await create(workbench)
    content = (await export(workbench))["content"]
    copy = await workbench.call("agent_import", agentPath="./agents/copy", content=content, newName="Copy")
    assert copy["keptId"] is False
    assert copy["agentId"] != made["agentId"]
    assert (await workbench.call("agent_get_info", agentTarget="Copy"))["id"] == copy["agentId"]


async def test_secrets_are_not_exported(workbench: Workbench, settings: Settings) -> None:
    await create(workbench)
    agent = settings.home / "agents" / "reviewer" / "agent.yaml"
    agent.write_text(f"{agent.read_text()}providers: {{openai: {{OPENAI_API_KEY: sk-1234}}}}\n")
    exported = await export(workbench)
    assert "sk-1234" not in repr(exported)
    assert exported["secrets"] == [{"place": "providers.openai.OPENAI_API_KEY", "reference": "env://OPENAI_API_KEY"}]
    await workbench.call("agent_import", agentPath="./agents/copy", content=exported["content"])
    copy = (settings.home / "agents" / "copy" / "agent.yaml").read_text()
    assert "OPENAI_API_KEY: env://OPENAI_API_KEY" in copy


@pytest.mark.parametrize("content", ["", "x", "workbenchAgent: 1\nmetadata: {id: a}\n", "workbenchAgent: 1\n\x07"])
async def test_other_files_are_not_imported(workbench: Workbench, settings: Settings, content: str) -> None:
    with pytest.raises(BadInput, match="INVALID_CONFIGURATION"):
        await workbench.call("agent_import", agentPath="./agents/x", content=content)
    assert not (settings.home / "agents" / "x").exists()


async def test_nothing_is_imported_over_another_agent_or_outside(workbench: Workbench) -> None:
    await create(workbench)
    content = (await export(workbench))["content"]
    with pytest.raises(Conflict, match="AGENT_EXISTS"):
        await workbench.call("agent_import", agentPath="./agents/reviewer", content=content)
    with pytest.raises(BadInput, match="INVALID_PATH"):
        await workbench.call("agent_import", agentPath="./agents/../../x", content=content)
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await export(workbench, "nothing")
