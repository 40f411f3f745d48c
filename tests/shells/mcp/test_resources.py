"""Resources over MCP: what a caller may read by address is what it may read with the tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, INVALID_REQUEST

from tests import given
from tests.conftest import Admit, Admitted, Served
from tests.services.worktrees.lab import commit
from tests.shells.mcp.sessions import session
from workbench.shells.mcp.backend import NOT_FOUND_OF_SESSIONS
from workbench.shells.mcp.resources import NEWEST

pytestmark = pytest.mark.anyio

NOT_FOUND = {"legacy": NOT_FOUND_OF_SESSIONS, "auto": INVALID_PARAMS}
PLAN = """
plan: penguins
tasks:
  - {name: count, title: Count them, persona: implementer}
  - {name: report, title: Report, persona: implementer, after: [count]}
"""
LISTED = ("plans", "worktrees", "tasks", "contexts", "personalities")
EVERYTHING = [f"workbench://{name}" for name in LISTED]


async def text_of(client: Client, uri: str) -> str:
    [found] = (await client.read_resource(uri)).contents
    assert found.uri == uri
    return str(found.text)  # type: ignore[union-attr]


async def uris_of(client: Client) -> list[str]:
    return [resource.uri for resource in (await client.list_resources(cache_mode="refresh")).resources]


async def error_of(client: Client, uri: str) -> tuple[int, str]:
    """The two codes of a resource that cannot be read."""
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value.code, caught.value.data["code"]


async def tasks_in_two_sessions(served: Served, admit: Admit) -> tuple[Admitted, Admitted]:
    """Two agents; each session has a task, 1 and 2."""
    await given.project(served.workbench)
    agents = []
    for name in ("ada", "bob"):
        await given.session(served.workbench, name)
        await given.task(served.workbench, name, session_id=name)
        agents.append(await admit(name, session_id=name))
    return agents[0], agents[1]


async def test_a_resource_is_what_the_operation_returns(served: Served, admit: Admit, era: str) -> None:
    await served.workbench.call("create_plan", text=PLAN)
    await given.project(served.workbench)
    await given.session(served.workbench, "one")
    ada = await admit("ada", session_id="one")
    written = await served.workbench.dispatch(ada.caller, "write", {"content": {"title": "Note", "content": "Ç"}})
    same: dict[str, tuple[str, dict[str, Any]]] = {
        "workbench://tasks": ("list_tasks", {"sort": "newest"}),
        "workbench://tasks/1": ("get_task", {"task_id": 1}),
        "workbench://plans": ("list_plans", {}),
        "workbench://contexts": ("read", {"resource_type": "contexts", "limit": 100}),
        f"workbench://contexts/{written['context_id']}": ("get_context", {"context_id": written["context_id"]}),
        "workbench://worktrees": ("get_worktree_status", {}),
    }
    async with session(served, ada.token, era) as client:
        for uri, (name, arguments) in same.items():
            result = await served.workbench.dispatch(ada.caller, name, arguments)
            assert json.loads(await text_of(client, uri)) == result


async def test_a_plan_is_a_checklist_and_a_worktree_a_diff(served: Served, admit: Admit, era: str) -> None:
    await served.workbench.call("create_plan", text=PLAN)
    ada = await admit("ada")
    await served.workbench.dispatch(ada.caller, "claim_task", {"task_id": 1})
    await served.workbench.dispatch(ada.caller, "complete_task", {"task_id": 1})
    place = await given.worktree(served.workbench)
    async with session(served, ada.token, era) as client:
        checklist = await text_of(client, "workbench://plans/penguins")
        assert "- [x] Count them" in checklist
        assert "- [ ] Report" in checklist
        assert await text_of(client, "workbench://worktrees/lab/diff") == ""
        commit(place, "birds.txt", "penguin\n")
        diff = await text_of(client, "workbench://worktrees/lab/diff")
        assert "+++ b/birds.txt" in diff
        assert diff.endswith("+penguin")


async def test_a_resource_that_the_tools_refuse_cannot_be_read(served: Served, admit: Admit, era: str) -> None:
    ada, bob = await tasks_in_two_sessions(served, admit)
    mine = (await served.workbench.dispatch(bob.caller, "write", {"content": {"title": "mine"}}))["context_id"]
    async with session(served, ada.token, era) as client:
        assert json.loads(await text_of(client, "workbench://tasks/1"))["title"] == "ada"
        assert [task["id"] for task in json.loads(await text_of(client, "workbench://tasks"))["tasks"]] == [1]
        assert await error_of(client, "workbench://tasks/2") == (NOT_FOUND[era], "TASK_NOT_FOUND")
        assert await error_of(client, f"workbench://contexts/{mine}") == (NOT_FOUND[era], "CONTEXT_NOT_FOUND")
        assert await error_of(client, "workbench://approvals") == (INVALID_REQUEST, "FORBIDDEN")
        assert await error_of(client, "workbench://approvals/1") == (INVALID_REQUEST, "FORBIDDEN")
        assert await error_of(client, "workbench://plans/nowhere") == (NOT_FOUND[era], "PLAN_NOT_FOUND")
        assert await error_of(client, "workbench://plans/%FF%00") == (INVALID_PARAMS, "INVALID_ARGUMENTS")
        assert await error_of(client, "workbench://tasks/9999999999999999999") == (INVALID_PARAMS, "INVALID_ARGUMENTS")
        assert await error_of(client, "workbench://nowhere") == (NOT_FOUND[era], "RESOURCE_NOT_FOUND")
        assert await uris_of(client) == [*EVERYTHING, "workbench://tasks/1"]
    async with session(served, era=era) as client:
        assert await uris_of(client) == []
        assert (await client.list_resource_templates()).resource_templates == []
        assert await error_of(client, "workbench://tasks/1") == (INVALID_REQUEST, "TOKEN_REQUIRED")


async def test_a_planner_reads_the_approvals_that_it_requested(served: Served, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    other = (await served.workbench.call("register", name="bob"))["approval_id"]
    worktree = await served.workbench.dispatch(pam.caller, "create_worktree", {"name": "lab"})
    commit(Path(worktree["path"]))
    own = await served.workbench.dispatch(pam.caller, "integrate_worktree", {"worktree_name": "lab"})
    async with session(served, pam.token) as client:
        found = json.loads(await text_of(client, f"workbench://approvals/{own['approval_id']}"))
        assert found["requester"] == "pam"
        assert await error_of(client, f"workbench://approvals/{other}") == (INVALID_PARAMS, "APPROVAL_NOT_FOUND")
    async with session(served, served.workbench.operator_token) as client:
        assert (await uris_of(client))[:1] == ["workbench://approvals"]
        assert f"workbench://approvals/{other}" in await uris_of(client)


async def test_a_list_of_resources_names_the_newest_and_does_not_grow(served: Served) -> None:
    for number in range(NEWEST + 5):
        await given.task(served.workbench, f"Task\x1b[31m {number}")
    async with session(served, served.workbench.operator_token) as client:
        listed = [resource for resource in (await client.list_resources()).resources if "tasks/" in resource.uri]
        assert len(listed) == NEWEST
        assert listed[0].uri == f"workbench://tasks/{NEWEST + 5}"
        assert listed[0].title == f"Task {NEWEST + 5} (pending): Task\\u001b[31m {NEWEST + 4}"
        assert json.loads(await text_of(client, "workbench://tasks/1"))["title"] == "Task\x1b[31m 0"


async def test_a_project_without_a_repository_has_all_other_resources(served: Served) -> None:
    (served.workbench.settings.project / ".git").rename(served.workbench.settings.project / "no-git")
    await given.task(served.workbench, "Count")
    async with session(served, served.workbench.operator_token) as client:
        assert "workbench://tasks/1" in await uris_of(client)


async def test_a_defect_is_reported_without_its_text(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object, **__: object) -> dict[str, Any]:
        raise ValueError("secret")

    async with session(served, served.workbench.operator_token, "legacy") as client:
        monkeypatch.setattr(served.workbench, "dispatch", fails)
        with pytest.raises(MCPError) as caught:
            await client.read_resource("workbench://tasks")
    assert caught.value.data["code"] == "INTERNAL_ERROR"
    assert "secret" not in str(caught.value)
    assert "ValueError: secret" in caplog.text


async def test_the_schema_of_definitions_is_offered_to_those_who_may_define(served: Served, admit: Admit) -> None:
    names = {"workbench://schemas/agent": "agent.yaml", "workbench://schemas/front-matter": "front-matter"}
    ada = await admit("ada", role="planner", definitions=True)
    async with session(served, ada.token, "auto") as client:
        for uri, file in names.items():
            described = await served.workbench.call("agent_get_schema", file=file)
            assert json.loads(await text_of(client, uri)) == described["jsonSchema"]
        assert names.keys() <= set(await uris_of(client))
    bob = await admit("bob", role="planner")
    async with session(served, bob.token, "auto") as client:
        assert not names.keys() & set(await uris_of(client))
        assert (await error_of(client, "workbench://schemas/agent"))[1] == "FORBIDDEN"
