"""The versions of a definition: recorded ones, commits in git, and their differences."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import git
from tests.services.definitions.conftest import create
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound
from workbench.rules.definitions.former_settings import DEFAULTS
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

RULE = {"name": "cite", "text": "Cite what you read."}


@pytest.fixture
async def folder(workbench: Workbench, settings: Settings) -> Path:
    """The directory of a definition that was created and then given a rule."""
    await create(workbench, initialPrompt="Review.")
    await workbench.call("agent_add_rule", agentTarget="reviewer", rule=RULE)
    return settings.home / "agents" / "reviewer"


async def history(workbench: Workbench, **arguments: Any) -> dict[str, Any]:
    return await workbench.call("agent_history", **({"agentTarget": "./agents/reviewer"} | arguments))


async def diff(workbench: Workbench, **arguments: Any) -> dict[str, Any]:
    return await workbench.call("agent_diff", **({"agentTarget": "./agents/reviewer"} | arguments))


async def version(workbench: Workbench, summary: str) -> str:
    """The content hash of the version with a summary."""
    versions = (await history(workbench))["versions"]
    return next(str(version["contentHash"]) for version in versions if version["summary"] == summary)


def commit(folder: Path, message: str) -> str:
    git("add", "--all", ".", cwd=folder)
    git("commit", "-q", "-m", message, cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


def changed_files(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["path"], change["status"]) for change in found["changes"]]


async def test_recorded_changes_are_listed_newest_first(workbench: Workbench, folder: Path) -> None:
    found = await history(workbench)
    summaries = [(version["action"], version["summary"]) for version in found["versions"]]
    assert summaries == [("changed", "rule cite added"), ("created", "created")]
    assert {(version["by"], version["source"]) for version in found["versions"]} == {("operator", "workbench")}
    info = await workbench.call("agent_get_info", agentTarget="reviewer")
    assert found["contentHash"] == found["versions"][0]["contentHash"] == info["contentHash"]
    assert found["committed"] is None
    assert (await history(workbench, limit=1))["count"] == 1
    found = await diff(workbench)  # of the last recorded change, without commits
    assert changed_files(found) == [("rules/cite.md", "added")]
    assert found["to"]["contentHash"] == (await history(workbench))["contentHash"]
    for target in ("./agents/nothing", "nothing"):
        with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
            await history(workbench, agentTarget=target)
    (folder / "agent.yaml").write_text("metadata: [")
    assert (await history(workbench))["versions"][0]["summary"] == "rule cite added", "it is found by its path"


async def test_an_editors_edit_is_recorded_when_it_is_found(workbench: Workbench, folder: Path) -> None:
    (folder / "prompt.md").write_text("Review well.\n")
    for _ in range(2):
        newest, *older = (await history(workbench))["versions"]
        assert (newest["action"], newest["by"], len(older)) == ("found", None, 2)
    assert newest["contentHash"] != older[0]["contentHash"]
    (folder / "prompt.md").write_text("Review better.\n")
    await workbench.call("agent_delete_rule", agentTarget="reviewer", ruleName="cite")
    newest, edited, *_ = (await history(workbench))["versions"]
    assert [(one["action"], one["by"]) for one in (newest, edited)] == [("changed", "operator"), ("found", None)]
    found = await diff(workbench, fromVersion=edited["contentHash"], toVersion=newest["contentHash"])
    assert changed_files(found) == [("rules/cite.md", "removed")]


async def test_a_change_of_comments_makes_no_version(workbench: Workbench, folder: Path) -> None:
    agent = folder / "agent.yaml"
    agent.write_text(f"# A comment.\n{agent.read_text()}")
    assert (await history(workbench))["count"] == 2


async def test_commits_are_listed_with_the_content_that_they_have(workbench: Workbench, folder: Path) -> None:
    first = commit(folder, "Add the reviewer")
    page = await history(workbench)
    [committed] = [version for version in page["versions"] if version["source"] == "git"]
    assert (committed["commit"], committed["summary"], committed["by"]) == (first, "Add the reviewer", "Person")
    assert committed["contentHash"] == page["contentHash"]
    assert page["committed"] is True
    await workbench.call("agent_delete_rule", agentTarget="reviewer", ruleName="cite")
    assert (await history(workbench))["committed"] is False


async def test_a_commit_with_a_broken_definition_has_no_hash(workbench: Workbench, folder: Path) -> None:
    good = (folder / "agent.yaml").read_bytes()
    (folder / "agent.yaml").write_text("metadata: [")
    commit(folder, "Break it")
    (folder / "agent.yaml").write_bytes(good)
    commit(folder, "Mend it")
    hashes = {version["summary"]: version["contentHash"] for version in (await history(workbench))["versions"]}
    assert hashes["Break it"] is None
    assert hashes["Mend it"] == hashes["rule cite added"]


async def test_a_diff_without_versions_shows_uncommitted_changes(workbench: Workbench, folder: Path) -> None:
    committed = commit(folder, "Add the reviewer")
    assert (await diff(workbench))["equal"] is True
    (folder / "prompt.md").write_text("Review well.\n")
    found = await diff(workbench)
    assert (found["from"]["version"], found["to"]["version"]) == (committed, "files")
    patch = "--- a/prompt.md\n+++ b/prompt.md\n@@ -1 +1 @@\n-Review.\n+Review well.\n"
    assert found["changes"] == [{"path": "prompt.md", "status": "changed", "patch": patch}]


async def test_any_two_versions_are_compared(workbench: Workbench, folder: Path) -> None:
    commit(folder, "Add the reviewer")
    await workbench.call("agent_add_rule", agentTarget="reviewer", rule=RULE | {"name": "brief"})
    created = await version(workbench, "created")
    assert changed_files(await diff(workbench, fromVersion=created, toVersion="HEAD")) == [("rules/cite.md", "added")]
    assert changed_files(await diff(workbench, fromVersion="HEAD", toVersion=created[:6])) == [
        ("rules/cite.md", "removed")
    ]
    both = [("rules/brief.md", "added"), ("rules/cite.md", "added")]
    assert changed_files(await diff(workbench, fromVersion=created)) == both


async def test_a_version_recorded_with_former_defaults_equals_the_current_files(
    workbench: Workbench, folder: Path
) -> None:
    await workbench.call("agent_set_setting", agentTarget="reviewer", key="temperature", value=0.2)
    recorded = (await history(workbench))["contentHash"]
    query = Query("state", "UPDATE definition_contents SET content = :content WHERE hash = :hash")
    for key, content in await given.rows(workbench, "SELECT hash, content FROM definition_contents"):
        older = json.dumps({**json.loads(content), "settings": {**DEFAULTS, "temperature": 0.2}})
        await workbench.store.write(lambda tx, key=key, older=older: tx.run(query, hash=key, content=older))
    assert (await diff(workbench, fromVersion=recorded))["equal"]


async def test_two_definitions_are_compared(workbench: Workbench, folder: Path) -> None:
    await workbench.call("agent_clone", sourceAgent="reviewer", targetPath="./agents/other", newName="other")
    await workbench.call("agent_delete_rule", agentTarget="other", ruleName="cite")
    found = await diff(workbench, otherAgent="other")
    assert changed_files(found) == [("agent.yaml", "changed"), ("rules/cite.md", "removed")]
    assert (found["from"]["path"], found["to"]["path"]) == ("./agents/reviewer", "./agents/other")


async def test_a_deleted_definition_keeps_its_versions(workbench: Workbench, folder: Path) -> None:
    commit(folder, "Add the reviewer")
    await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    for target in ("reviewer", "./agents/reviewer"):
        page = await history(workbench, agentTarget=target)
        recorded = [version["summary"] for version in page["versions"] if version["source"] == "workbench"]
        assert recorded == ["deleted", "rule cite added", "created"]
        assert page["contentHash"] is None
    created = await version(workbench, "created")
    assert changed_files(await diff(workbench, fromVersion=created, toVersion="HEAD")) == [("rules/cite.md", "added")]
    with pytest.raises(NotFound, match="VERSION_NOT_FOUND"):
        await diff(workbench, fromVersion=created)


async def test_without_a_readable_repository_the_recorded_versions_are_listed(
    workbench: Workbench, folder: Path, repository: Path
) -> None:
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / ".git" / "config").write_text("[broken")
    page = await history(workbench)
    assert page["count"] == 2
    assert page["message"].startswith("The commits are left out: git rev-parse failed")
    shutil.rmtree(repository / ".git")
    page = await history(workbench)
    assert (page["count"], page["message"], page["committed"]) == (2, None, None)


async def test_secrets_are_in_no_version(workbench: Workbench, folder: Path) -> None:
    agent = folder / "agent.yaml"
    agent.write_text(f"{agent.read_text()}providers:\n  openai:\n    OPENAI_API_KEY: sk-1234\n")
    commit(folder, "Add a key")
    agent.write_text(agent.read_text().replace("sk-1234", "sk-5678\n    OPENAI_BASE_URL: http://localhost"))
    found = [await history(workbench), await diff(workbench), await diff(workbench, toVersion="HEAD")]
    assert "sk-" not in repr(found)
    assert changed_files(found[1]) == [("agent.yaml", "changed")]


async def test_versions_that_do_not_exist_are_not_found(workbench: Workbench, folder: Path) -> None:
    commit(folder, "Add the reviewer")
    for name in ("abcdef", "0" * 40, "HEAD~1", "main", "--all", "fil", "../x", ""):
        with pytest.raises((NotFound, BadInput), match=r"VERSION_NOT_FOUND|VALIDATION_ERROR"):
            await diff(workbench, fromVersion=name)


async def test_an_earlier_version_is_restored_and_is_a_version_itself(workbench: Workbench, folder: Path) -> None:
    created, present = await version(workbench, "created"), (await history(workbench))["contentHash"]
    await workbench.call("agent_restore", agentTarget="reviewer", version=created[:8])
    assert not (folder / "rules" / "cite.md").exists()
    newest = (await history(workbench))["versions"][0]
    assert (newest["contentHash"], newest["summary"]) == (created, f"version {created} restored")
    await workbench.call("agent_restore", agentTarget="reviewer", version=present)
    assert (folder / "rules" / "cite.md").exists()
    with pytest.raises(NotFound, match="VERSION_NOT_FOUND"):
        await workbench.call("agent_restore", agentTarget="reviewer", version="abcdef")


async def test_a_deleted_definition_is_restored_with_its_id(workbench: Workbench, folder: Path) -> None:
    before = await workbench.call("agent_get_info", agentTarget="reviewer")
    await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    await workbench.call("agent_restore", agentTarget="reviewer", version=before["contentHash"])
    after = await workbench.call("agent_get_info", agentTarget="reviewer")
    assert (after["id"], after["contentHash"]) == (before["id"], before["contentHash"])


async def test_a_mask_in_a_version_stands_for_what_is_there_now_or_is_refused_with_its_place(
    workbench: Workbench, folder: Path
) -> None:
    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        return await workbench.call(name, agentTarget="reviewer", **arguments)

    server = {"command": "hub", "env": {"HUB_TOKEN": "first-of-the-secrets"}}
    await call("agent_add_mcp_server", serverName="hub", config=server)
    await call("agent_install_provider", providerType="openai", config={"OPENAI_API_KEY": "sk-first"})
    old = (await history(workbench))["contentHash"]
    await call("agent_update_mcp_server", serverName="hub", config=server | {"env": {"HUB_TOKEN": "env://HUB"}})
    await call("agent_update_provider", providerType="openai", config={"OPENAI_API_KEY": "sk-second"})
    await call("agent_delete_rule", ruleName="cite")
    await call("agent_restore", version=old)
    text = (folder / "agent.yaml").read_text()
    assert "env://HUB" in text
    assert "sk-second" in text
    assert (folder / "rules" / "cite.md").exists()
    await call("agent_uninstall_provider", providerType="openai")
    before = (folder / "agent.yaml").read_text()
    with pytest.raises(BadInput, match=r"providers\.openai\.OPENAI_API_KEY is masked"):
        await call("agent_restore", version=old)
    await call("agent_update_mcp_server", serverName="hub", config={"command": "elsewhere"})
    await call("agent_install_provider", providerType="openai", config={"OPENAI_API_KEY": "sk-third"})
    with pytest.raises(BadInput, match=r"mcpServers\.hub\.HUB_TOKEN is masked"):
        await call("agent_restore", version=old)
    assert "command: hub" in before


async def test_an_export_in_which_a_secret_is_masked_is_refused_with_its_place(workbench: Workbench) -> None:
    head = "workbenchAgent: 1\nmetadata: {id: x, name: x}\n"
    content = f"{head}mcpServers:\n  hub:\n    command: hub\n    env:\n      HUB_TOKEN: ••••••\n"
    with pytest.raises(BadInput, match=r"mcpServers\.hub\.env\.HUB_TOKEN is masked"):
        await workbench.call("agent_import", content=content)


async def test_what_a_restored_version_needs_is_asked_for_unless_it_is_trusted(
    workbench: Workbench, folder: Path
) -> None:
    agent = folder / "agent.yaml"
    before = agent.read_text()
    agent.write_text(f"{before}mcpServers:\n  found: {{command: found}}\n")
    cloned = (await history(workbench))["contentHash"]
    agent.write_text(before)
    await workbench.call("agent_restore", agentTarget="reviewer", version=cloned)
    assert not (await workbench.call("agent_get_trust", agentTarget="reviewer"))["trusted"]
