"""What others do at the wrong moment, or name alike, gives nobody more than was granted, and loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Admit, git
from tests.services.definitions.conftest import create
from workbench.app import Workbench
from workbench.definitions.journal import Journal
from workbench.errors import NotFound, WorkbenchError
from workbench.ops import OPERATOR, Caller
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

EVIL = "mcpServers:\n  evil:\n    command: steal\n"


@pytest.fixture
def home(settings: Settings) -> Path:
    """The directory of the definitions."""
    return settings.home / "agents"


async def code_of(call: Any) -> str:
    with pytest.raises(WorkbenchError) as caught:
        await call
    return caught.value.code


async def test_what_somebody_else_writes_right_after_the_operator_is_not_trusted_as_the_operators(
    workbench: Workbench, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(workbench)
    real = Journal.commit

    def commit(self: Journal, *arguments: Any) -> bool:
        done = real(self, *arguments)
        with (home / "reviewer" / "agent.yaml").open("a") as file:
            file.write(EVIL)
        return done

    monkeypatch.setattr(Journal, "commit", commit)
    await workbench.call("agent_add_rule", agentTarget="reviewer", rule={"name": "a", "text": "x"})
    monkeypatch.undo()
    trust = await workbench.call("agent_get_trust", agentTarget="reviewer")
    assert [(need["name"], need["trusted"]) for need in trust["needs"]] == [("mcpServers.evil", False)]
    history = await workbench.call("agent_history", agentTarget="reviewer")
    assert [version["summary"] for version in history["versions"]][:2] == [
        "changed outside of Workbench",
        "rule a added",
    ]


async def test_an_agent_does_not_get_the_definition_that_is_named_like_the_id_of_its_deleted_one(
    workbench: Workbench, admit: Admit
) -> None:
    made = await create(workbench)
    ada = await admit("ada", definition="reviewer")
    assert await workbench.dispatch(ada.caller, "list_rules", {}) == {"rules": []}
    await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    await workbench.call("agent_create", agentPath="./agents/other", name=made["agentId"])
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.dispatch(ada.caller, "add_rule", {"rule": {"name": "a", "text": "x"}})
    assert (await workbench.call("agent_list_rules", agentTarget="./agents/other"))["count"] == 0


@pytest.mark.parametrize("confirm", [None, "true", "True", 1, "yes", [True], {"confirm": True}, False])
async def test_only_true_confirms_a_deletion(workbench: Workbench, confirm: Any) -> None:
    await create(workbench)
    arguments = {} if confirm is None else {"confirm": confirm}
    assert await code_of(workbench.call("agent_delete", agentTarget="reviewer", **arguments)) == "CONFIRMATION_REQUIRED"
    assert (await workbench.call("agent_list"))["count"] == 1


async def test_a_deletion_keeps_foreign_files_and_names_them(workbench: Workbench, home: Path) -> None:
    await create(workbench)
    (home / "reviewer" / "data").mkdir()
    (home / "reviewer" / "data" / "table.csv").write_text("mine")
    (home / "reviewer" / "rules").mkdir(exist_ok=True)
    (home / "reviewer" / "rules" / ".cite.md.swp").write_text("mine")
    done = await workbench.call("agent_delete", agentTarget="reviewer", confirm=True)
    assert done["left"] == ["data", "rules/.cite.md.swp"]
    assert (home / "reviewer" / "data" / "table.csv").read_text() == "mine"


async def test_a_clone_onto_itself_or_into_itself_changes_nothing(workbench: Workbench, home: Path) -> None:
    await create(workbench)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for path in ("./agents/reviewer", "./agents/reviewer/copy", "./agents/REVIEWER", str(home / "reviewer")):
        clone = workbench.call("agent_clone", sourceAgent="reviewer", targetPath=path)
        assert await code_of(clone) == "AGENT_EXISTS"
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert after == before


async def test_a_branch_that_is_checked_out_between_two_calls_is_what_is_read_and_recorded(
    workbench: Workbench, home: Path, repository: Path
) -> None:
    await create(workbench, initialPrompt="One.")
    git("add", "--force", ".aiswarm/agents/reviewer", cwd=repository)
    git("commit", "-q", "-m", "One", cwd=repository)
    git("checkout", "-q", "-b", "other", cwd=repository)
    (home / "reviewer" / "prompt.md").write_text("Two.\n")
    git("commit", "-q", "-a", "-m", "Two", cwd=repository)
    for branch, prompt in (("main", "One.\n"), ("other", "Two.\n"), ("main", "One.\n")):
        git("checkout", "-q", branch, cwd=repository)
        await workbench.call("agent_add_rule", agentTarget="reviewer", rule={"name": "a", "text": prompt})
        assert (home / "reviewer" / "prompt.md").read_text() == prompt
        assert git("status", "--porcelain", cwd=repository).endswith("agents/reviewer/rules/")
        await workbench.call("agent_delete_rule", agentTarget="reviewer", ruleName="a")
    assert git("status", "--porcelain", cwd=repository) == ""


async def test_the_longest_text_that_is_accepted_is_read_again(workbench: Workbench) -> None:
    await create(workbench)
    rule = {"name": "long", "text": "é" * 200_000}
    await workbench.call("agent_add_rule", agentTarget="reviewer", rule=rule)
    found = await workbench.call("agent_get_rule", agentTarget="reviewer", ruleName="long")
    assert found["rule"]["text"] == rule["text"]
    rule["text"] += "é"
    assert await code_of(workbench.call("agent_add_rule", agentTarget="reviewer", rule=rule)) == "VALIDATION_ERROR"


async def test_a_misspelt_name_is_answered_with_the_one_that_is_meant(workbench: Workbench) -> None:
    await create(workbench)
    with pytest.raises(NotFound, match=r"name reviever\. Did you mean"):
        await workbench.call("agent_get_info", agentTarget="reviever")


SECRET = "sk-7f3a9c-written-out"
SECTIONS = f"""
providers:
  openai: {{OPENAI_API_KEY: {SECRET}}}
mcpServers:
  files: {{command: /bin/true, env: {{FILES_TOKEN: {SECRET}, DATABASE: "postgres://me:{SECRET}@db/x"}}}}
  web: {{url: "https://example.org/mcp", headers: {{Authorization: "Bearer {SECRET}", X-Api-Key: {SECRET}}}}}
"""


async def test_a_secret_that_is_written_out_is_in_no_answer_error_event_log_or_table(
    workbench: Workbench, settings: Settings, home: Path, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    made = await create(workbench)
    with (home / "reviewer" / "agent.yaml").open("a") as file:
        file.write(SECTIONS)
    ada = await admit("ada", role="planner", definitions=True, definition="reviewer")
    said = [await _answers(workbench, caller, made["agentId"]) for caller in (OPERATOR, ada.caller)]
    events = await workbench.call("list_events", limit=200)
    approvals = await workbench.call("list_approvals")
    assert SECRET not in "".join([*said, str(events), str(approvals), caplog.text])
    stored = [path for path in settings.home.rglob("*") if path.is_file() and not path.is_relative_to(home)]
    assert settings.database in stored
    assert [path for path in stored if SECRET.encode() in path.read_bytes()] == []


async def _answers(workbench: Workbench, caller: Caller, target: str) -> str:
    """What all operations that read a definition answer, and some that fail."""
    said = []
    for name, operation in workbench.catalogue.items():
        if not name.startswith("agent_") or "agentTarget" not in operation.parameters:
            continue
        if operation.reads or name in ("agent_clone", "agent_request_trust", "agent_probe_mcp_server"):
            given = {"serverName": "files", "providerType": "openai", "config": {"OPENAI_API_KEY": "x"}}
            given |= {"targetPath": f"./agents/copy-by-{caller.name}"}
            given |= dict.fromkeys(("ruleName", "referenceName", "toolName"), "none")
            arguments = {key: value for key, value in given.items() if key in operation.parameters}
            try:
                said.append(str(await workbench.dispatch(caller, name, {"agentTarget": target} | arguments)))
            except WorkbenchError as error:
                said.append(str(error.as_dict()))
    assert len(said) > 15
    return "".join(said)
