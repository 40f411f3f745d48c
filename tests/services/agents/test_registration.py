"""Agents register, wait and are admitted, rejected or revoked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, followed
from tests.services.agents.strangers import come, status
from workbench.app import Workbench
from workbench.errors import NotFound, WorkbenchError
from workbench.model import Level
from workbench.ops import ANONYMOUS, Caller
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def inbox(workbench: Workbench) -> list[int]:
    """The approvals that wait."""
    return [a["id"] for a in (await workbench.call("list_approvals"))["approvals"]]


async def test_a_registered_agent_gets_a_token_that_opens_nothing_until_admission(workbench: Workbench) -> None:
    registration = await come(workbench, persona_id="reviewer", capabilities={"python": True})
    caller = await workbench.identify(registration["token"])
    assert registration["agent_id"] == caller.name == f"pending_{caller.agent}"
    assert (registration["status"], caller.level) == ("pending", Level.ANONYMOUS)
    assert (await workbench.dispatch(caller, "ping", {})) == {"ok": True}
    assert (await workbench.dispatch(caller, "registration_status", {}))["status"] == "pending"
    await given.refuses("NOT_ASSIGNED", workbench.dispatch(caller, "list_tasks", {}))
    (question,) = (await workbench.call("list_approvals"))["approvals"]
    assert question["payload"]["suggested_id"] == "Ada"
    assert question["payload"]["capabilities"] == {"python": True}
    assert (question["kind"], question["requester"]) == ("registration", "anonymous")
    assert await given.kinds(workbench, "agent.*", "approval.*") == ["agent.registered", "approval.requested"]


async def test_a_caller_without_a_token_may_ping_but_not_list_or_claim(workbench: Workbench) -> None:
    assert await workbench.dispatch(ANONYMOUS, "ping", {}) == {"ok": True}
    for name in ("registration_status", "list_tasks", "claim_task", "approve"):
        await given.refuses("TOKEN_REQUIRED", workbench.dispatch(ANONYMOUS, name, {}))


@pytest.mark.sqlite("reads the store's file")
async def test_the_store_keeps_only_the_hash_of_a_token(workbench: Workbench, settings: Settings) -> None:
    token = (await come(workbench))["token"]
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    assert settings.database in files
    assert [path for path in files if token.removeprefix("wba_").encode() in path.read_bytes()] == []


@pytest.mark.parametrize("token", ["wba_" + "x" * 43, "wbo_" + "x" * 43, "", "é", "wba_"])
async def test_an_unknown_token_is_refused(workbench: Workbench, token: str) -> None:
    await come(workbench)
    await given.refuses("INVALID_TOKEN", workbench.identify(token))


async def test_capabilities_have_a_limit(workbench: Workbench) -> None:
    await come(workbench, capabilities={"text": "é" * 1_000})
    for capabilities in ({"text": "x" * 10_000}, {str(n): n for n in range(2_000)}):
        await given.refuses("TOO_LARGE", come(workbench, capabilities=capabilities))
    assert len(await inbox(workbench)) == 1


async def test_a_persona_is_found_in_any_case_and_must_exist(workbench: Workbench) -> None:
    registration = await come(workbench, persona_id="Implementer")
    assert (await status(workbench, registration["token"]))["persona_id"] == "implementer"
    with pytest.raises(NotFound, match=r"PERSONA_NOT_FOUND: There is no persona 'wizard'\. Available: implementer"):
        await come(workbench, persona_id="wizard")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("decision", "after"), [("approve", "assigned"), ("reject", "rejected")])
async def test_registration_status_waits_for_the_decision_or_the_timeout(
    workbench: Workbench, decision: str, after: str
) -> None:
    registration = await come(workbench)
    assert (await status(workbench, registration["token"], wait_seconds=0.05))["status"] == "pending"
    assert not workbench.feed.readers
    waiting = asyncio.create_task(status(workbench, registration["token"], wait_seconds=30))
    await followed(workbench)
    other = await come(workbench, "Bob")
    await workbench.call("approve", approval_id=other["approval_id"])
    await workbench.call(decision, approval_id=registration["approval_id"])
    assert (await waiting)["status"] == after


async def test_an_agent_gets_the_suggested_id_or_the_next_free_one(workbench: Workbench) -> None:
    made = [await come(workbench, "Ada Lovelace") for _ in range(3)]
    questions = (await workbench.call("list_approvals"))["approvals"]
    shown = [question["payload"]["suggested_id"] for question in questions]
    assert shown == ["Ada-Lovelace", "Ada-Lovelace-2", "Ada-Lovelace-3"], "each is offered to one only"
    for registration in made[::-1]:
        await workbench.call("approve", approval_id=registration["approval_id"])
    assert [(await workbench.identify(r["token"])).name for r in made] == [
        *("Ada-Lovelace", "Ada-Lovelace-2", "Ada-Lovelace-3"),
    ]


async def test_admitting_renames_the_agent_and_says_so_everywhere(workbench: Workbench) -> None:
    registration = await come(workbench, persona_id="reviewer")
    decided = await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "ada"})
    granted = {
        **{"name": "Ada", "persona_id": "reviewer", "role": "worker", "tool": "write", "access_level": "self_only"},
        **{"session": None, "team": None, "worktree": None, "expires_at": None},
        **{"definition": None, "self_tools": "write", "definitions": False, "tools": []},
    }
    assert decided["outcome"] == {"agent_id": "ada", "status": "assigned", "granted": granted}
    assert decided["approval"]["outcome"] == decided["outcome"]
    assert (decided["approval"]["status"], decided["approval"]["decided_by"]) == ("approved", "operator")
    caller = await workbench.identify(registration["token"])
    assert caller == Caller(Level.WORKER, "ada", caller.agent, "reviewer", None)
    seen = await status(workbench, registration["token"])
    assert (seen["agent_id"], seen["status"], seen["tool"], seen["role"]) == ("ada", "assigned", "write", "worker")
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert (agent["agent_id"], agent["name"], agent["registration_status"]) == ("ada", "Ada", "assigned")
    assert await given.kinds(workbench, "agent.*", "approval.*") == [
        *("agent.registered", "approval.requested", "agent.assigned", "approval.approved"),
    ]
    assert await workbench.dispatch(caller, "whoami", {}) == {
        **{"agent_id": "ada", "level": "worker", "tool": "write", "access_level": "self_only"},
        **{"persona_id": "reviewer", "session_id": None, "team_id": None, "worktree": None},
        **{"worktree_path": None, "supervised": False},
    }
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert agent["registration_status"] == "active"


@pytest.mark.parametrize(
    ("persona_id", "choices", "level", "persona"),
    [
        (None, {}, Level.WORKER, None),
        ("planner", {}, Level.PLANNER, "planner"),
        ("planner", {"role": "worker"}, Level.WORKER, "planner"),
        ("tester", {"role": "planner"}, Level.PLANNER, "tester"),
        ("planner", {"tool": "read"}, Level.READ, "planner"),
        ("tester", {"tool": "write"}, Level.WORKER, "tester"),
        ("tester", {"persona_id": "Planner"}, Level.PLANNER, "planner"),
        (None, {"persona_id": "reviewer"}, Level.WORKER, "reviewer"),
        ("tester", {"agent_id": None, "role": None, "tool": None}, Level.WORKER, "tester"),
        ("planner", {"persona_id": None}, Level.WORKER, None),
    ],
)
async def test_the_grant_is_the_operators_choice_or_the_personas_suggestion(
    workbench: Workbench, persona_id: str | None, choices: dict[str, Any], level: Level, persona: str | None
) -> None:
    registration = await come(workbench, persona_id=persona_id)
    await workbench.call("approve", approval_id=registration["approval_id"], choices=choices)
    caller = await workbench.identify(registration["token"])
    assert (caller.level, caller.persona) == (level, persona)


NO_CHOICES: list[tuple[dict[str, Any], str]] = [
    ({"agent_id": "bob"}, "AGENT_ID_TAKEN"),
    ({"agent_id": "Bob"}, "AGENT_ID_TAKEN"),
    ({"agent_id": "everyone"}, "BAD_AGENT_ID"),
    ({"agent_id": "a b"}, "BAD_AGENT_ID"),
    ({"agent_id": "operator"}, "BAD_AGENT_ID"),
    ({"agent_id": "<its own>"}, "BAD_AGENT_ID"),
    ({"agent_id": ["x"]}, "INVALID_ARGUMENTS"),
    ({"role": "boss"}, "INVALID_ARGUMENTS"),
    ({"role": ["worker"]}, "INVALID_ARGUMENTS"),
    ({"tool": "sudo"}, "INVALID_ARGUMENTS"),
    ({"persona_id": "wizard"}, "PERSONA_NOT_FOUND"),
    ({"persona_id": 7}, "INVALID_ARGUMENTS"),
    ({"level": "operator"}, "INVALID_ARGUMENTS"),
    ({"agent_id": "ada", "reason": "x"}, "INVALID_ARGUMENTS"),
]


async def test_an_invalid_choice_leaves_the_agent_waiting(workbench: Workbench, admit: Admit) -> None:
    await admit("bob")
    registration = await come(workbench)
    before = await given.kinds(workbench, "*")
    for choices, code in NO_CHOICES:
        sent = {key: registration["agent_id"] if value == "<its own>" else value for key, value in choices.items()}
        with pytest.raises(WorkbenchError, match=code):
            await workbench.call("approve", approval_id=registration["approval_id"], choices=sent)
        assert (await status(workbench, registration["token"]))["status"] == "pending", choices
        assert await inbox(workbench) == [registration["approval_id"]], choices
        assert await given.kinds(workbench, "*") == before, choices
    await workbench.call("approve", approval_id=registration["approval_id"])


REJECTED = "Your registration was rejected: Full house. Ask the operator before you register again."


@pytest.mark.parametrize(
    ("reason", "told"),
    [("Full house.", REJECTED), (None, "Your registration was rejected; no reason was given.")],
)
async def test_a_rejected_agent_learns_the_reason_and_stays_listed(
    workbench: Workbench, reason: str | None, told: str
) -> None:
    registration = await come(workbench)
    how = {"reason": reason} if reason else {}
    decided = await workbench.call("reject", approval_id=registration["approval_id"], **how)
    assert decided["outcome"] == {"agent_id": registration["agent_id"], "status": "rejected"}
    seen = await status(workbench, registration["token"])
    assert (seen["status"], seen["reason"]) == ("rejected", reason)
    error = await given.refuses(
        "REJECTED", workbench.dispatch(await workbench.identify(registration["token"]), "whoami", {})
    )
    assert (seen["message"], error.details) == (error.message, {"reason": reason})
    assert error.message.startswith(told)
    (agent,) = (await workbench.call("list_agents", status="rejected"))["agents"]
    assert agent["agent_id"] == registration["agent_id"]
    assert (await given.kinds(workbench, "agent.*"))[-1] == "agent.rejected"


async def test_an_agent_is_active_from_its_first_heartbeat(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    for _ in range(2):
        await workbench.dispatch(ada.caller, "heartbeat_and_get_tasks", {})
    (agent,) = (await workbench.call("list_agents", status="active"))["agents"]
    assert agent["agent_id"] == "ada"
    assert (await given.kinds(workbench, "agent.*")).count("agent.activated") == 1


async def test_revoking_ends_the_token_and_gives_back_what_the_agent_held(workbench: Workbench, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    task_id = await given.task(workbench)
    await workbench.dispatch(ada.caller, "claim_task", {})
    revoked = await workbench.call("revoke_agent", agent_id="ada", reason="Enough.")
    assert revoked["registration_status"] == "revoked"
    await given.refuses("INVALID_TOKEN", workbench.identify(ada.token))
    claimed = (await workbench.dispatch(bob.caller, "claim_task", {}))["task"]
    assert (claimed["id"], claimed["attempt"], claimed["retry_count"]) == (task_id, 2, 0)
    await given.refuses("LEASE_LOST", workbench.dispatch(ada.caller, "complete_task", {"task_id": task_id}))
    await given.refuses("WRONG_STATE", workbench.call("revoke_agent", agent_id="ada"))


async def test_an_agent_revoked_while_pending_cannot_be_admitted(workbench: Workbench) -> None:
    registration = await come(workbench)
    await workbench.call("revoke_agent", agent_id=registration["agent_id"])
    assert await inbox(workbench) == []
    await given.refuses("ALREADY_DECIDED", workbench.call("approve", approval_id=registration["approval_id"]))
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert agent["registration_status"] == "revoked"


async def test_only_the_operator_revokes_agents_and_only_existing_ones(workbench: Workbench, admit: Admit) -> None:
    planner = (await admit("planner-1", role="planner")).caller
    await given.refuses("FORBIDDEN", workbench.dispatch(planner, "revoke_agent", {"agent_id": "planner-1"}))
    await given.refuses("AGENT_NOT_FOUND", workbench.call("revoke_agent", agent_id="nobody"))


async def test_agents_are_listed_oldest_first_by_state_and_up_to_a_limit(workbench: Workbench, admit: Admit) -> None:
    for name in ("carl", "ada", "bob"):
        await admit(name)
    await come(workbench)

    async def names(**how: Any) -> list[str]:
        return [agent["name"] for agent in (await workbench.call("list_agents", **how))["agents"]]

    assert await names() == ["carl", "ada", "bob", "Ada"]
    assert await names(status="assigned", limit=2) == ["carl", "ada"]
    assert await names(status="revoked") == []
