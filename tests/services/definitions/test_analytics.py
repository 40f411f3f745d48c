"""The work of a definition's agents is counted by version."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from tests.services.definitions.conftest import Reviewer, create
from workbench.app import Workbench
from workbench.errors import NotFound
from workbench.model import iso
from workbench.services.spawning.definition import SQL
from workbench.store.base import Tx

pytestmark = pytest.mark.anyio


async def attempt(workbench: Workbench, ada: Admitted, how: str, **more: Any) -> None:
    """A task that an agent claims and, if `how` is an operation, ends by it."""
    task_id = await given.task(workbench, max_retries=0)
    await given.done_by(workbench, ada, "claim_task", task_id)
    if how:
        await given.done_by(workbench, ada, how, task_id, **more)


async def start_version(workbench: Workbench, ada: Admitted, version: str) -> None:
    """Record that an agent was started with a version of its definition."""

    def change(tx: Tx) -> None:
        tx.run(SQL.record, agent=ada.caller.agent, definition_hash=version, prompt_hash=None, include=None)
        facts = {"definition": ada.caller.definition, "definition_hash": version}
        tx.emit("agent.spawned", f"agent:{ada.caller.agent}", **facts)

    await workbench.store.write(change)


async def version(workbench: Workbench) -> str:
    """The content hash of the definition as it is now."""
    return str((await workbench.call("agent_get_info", agentTarget="reviewer"))["contentHash"])


async def test_attempts_are_counted_by_version(workbench: Workbench, admit: Admit, reviewer: Reviewer) -> None:
    ada, other = await admit("ada", definition="reviewer"), await admit("other")
    first = await version(workbench)
    await start_version(workbench, ada, first)
    await attempt(workbench, ada, "complete_task")
    await attempt(workbench, ada, "fail_task", error_message="No.", error_class="ValueError")
    await attempt(workbench, ada, "release_task")
    await attempt(workbench, other, "complete_task")
    await reviewer("agent_add_rule", rule={"name": "kind", "text": "Be kind."})
    second = await version(workbench)
    await start_version(workbench, ada, second)
    await attempt(workbench, ada, "")
    figures = await reviewer("agent_analytics")
    names = ("starts", "agents", "tasks", "attempts", "completed", "failed", "givenUp", "running")
    assert [figures[name] for name in names] == [2, 1, 4, 4, 1, 1, 1, 1]
    assert figures["failures"] == [{"errorClass": "ValueError", "count": 1}]
    attempts = [(version["hash"], version["isCurrent"], version["attempts"]) for version in figures["versions"]]
    assert attempts == [(first, False, 3), (second, True, 1)]
    assert figures["versions"][1]["medianSeconds"] is None
    later = iso(workbench.store.now() + 1_000_000)
    none = await reviewer("agent_analytics", since=later)
    assert (none["attempts"], none["starts"], none["versions"], none["firstAt"]) == (0, 0, [], None)


async def test_calls_of_tools_are_counted_by_version(workbench: Workbench, admit: Admit, reviewer: Reviewer) -> None:
    ada = await admit("ada", definition="reviewer")
    await workbench.call("update_agent", agent_id="ada", changes={"tools": ["*"]})
    first = await version(workbench)
    await start_version(workbench, ada, first)
    caller = await workbench.identify(ada.token)
    await workbench.dispatch(caller, "call_tool", {"name": "whoami"})
    with pytest.raises(NotFound):
        await workbench.dispatch(caller, "call_tool", {"name": "get_task", "arguments": {"task_id": 7}})
    figures = await reviewer("agent_analytics")
    assert (figures["toolCalls"], figures["failedToolCalls"]) == (2, 1)
    assert figures["toolSeconds"] >= 0
    assert [(version["hash"], version["toolCalls"]) for version in figures["versions"]] == [(first, 2)]


async def test_a_definition_that_was_never_used_has_figures(reviewer: Reviewer) -> None:
    figures = await reviewer("agent_analytics")
    assert (figures["attempts"], figures["totalSeconds"], figures["versions"], figures["lastAt"]) == (0, 0.0, [], None)
    await reviewer.refused("VALIDATION_ERROR", "agent_analytics", since="yesterday")


async def test_a_newly_given_definition_has_no_version_until_its_agent_starts(
    workbench: Workbench, admit: Admit
) -> None:
    await create(workbench)
    await create(workbench, "other", initialPrompt="Another.")
    ada = await admit("ada", definition="reviewer")
    await start_version(workbench, ada, await version(workbench))
    await workbench.call("update_agent", agent_id="ada", changes={"self_tools": "read"})
    assert (await workbench.call("get_agent", agent_id="ada"))["definition_hash"] == await version(workbench)
    await workbench.call("update_agent", agent_id="ada", changes={"definition": "other"})
    assert (await workbench.call("get_agent", agent_id="ada"))["definition_hash"] is None
    await attempt(workbench, ada, "complete_task")
    figures = await workbench.call("agent_analytics", agentTarget="other")
    assert [version["hash"] for version in figures["versions"]] == [None]
