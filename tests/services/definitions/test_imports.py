"""Files of other programs as definitions of a project: named, not trusted, with warnings of secrets."""

from __future__ import annotations

import pytest

from tests.rules.definitions.other_files import FILES, MCP, SUBAGENT
from tests.services.definitions.conftest import refused
from workbench.app import Workbench

pytestmark = pytest.mark.anyio


async def test_every_form_is_imported_under_its_own_name_or_the_stem_of_its_file(workbench: Workbench) -> None:
    for number, file in enumerate(FILES):
        found = await workbench.call(
            "agent_import", content=file.text, fileName=file.path, agentPath=f"./agents/n{number}"
        )
        assert found["form"] == file.form
        assert found["message"] == f"{file.name} was created in ./agents/n{number}."
        assert len(found["leftOut"]) == len(file.left_out)
        await workbench.call("agent_delete", agentTarget=file.name, confirm=True)


async def test_a_file_that_names_no_agent_needs_a_name(workbench: Workbench) -> None:
    assert "Give a name" in await refused("NAME_REQUIRED", workbench, "agent_import", content=MCP)
    found = await workbench.call("agent_import", content=MCP, newName="Prüfer Eins")
    assert found["agentPath"] == "./agents/Prufer-Eins"


async def test_what_an_imported_subagent_starts_is_asked_for_and_its_limits_are_settings(workbench: Workbench) -> None:
    await workbench.call("agent_import", content=SUBAGENT)
    trust = await workbench.call("agent_get_trust", agentTarget="code-reviewer")
    assert (trust["trusted"], [need["name"] for need in trust["needs"]]) == (False, ["mcpServers.github"])
    settings = (await workbench.call("agent_get_settings", agentTarget="code-reviewer"))["settings"]
    assert settings["allowedTools"] == ["Read", "Grep", "Glob", "Bash(git diff:*)"]
    await workbench.call("agent_set_setting", agentTarget="code-reviewer", key="allowedTools", value="Read, Grep")
    settings = (await workbench.call("agent_get_settings", agentTarget="code-reviewer"))["settings"]
    assert (settings["allowedTools"], settings["permissionMode"]) == (["Read", "Grep"], "plan")


async def test_a_secret_in_an_imported_server_is_warned_of_masked_and_not_exported(workbench: Workbench) -> None:
    content = MCP.replace("Bearer ${GITHUB_PAT}", "Bearer ghp_0123456789abcdefghij0123456789abcdef")
    found = await workbench.call("agent_import", content=content, fileName="repo/.mcp.json")
    assert any("Authorization" in warning for warning in found["warnings"])
    shown = [
        await workbench.call("agent_list_mcp_servers", agentTarget="mcp"),
        await workbench.call("agent_export", agentTarget="mcp"),
        await workbench.call("agent_export", agentTarget="mcp", form="claude-subagent"),
    ]
    assert "ghp_" not in repr([found, *shown])
    assert "${GITHUB_AUTHORIZATION}" in shown[2]["content"]
