"""Admission without a question: admission rules, and the allowlist."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from tests.services.agents.strangers import come
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.model import FeedEvent, Level
from workbench.ops import ANONYMOUS
from workbench.services.sharing.events import may_see
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

HERE = replace(ANONYMOUS, address="127.0.0.1")
ELSEWHERE = replace(ANONYMOUS, address="192.0.2.7")


@pytest.fixture
def listed(settings: Settings) -> Path:
    """The allowlist's file."""
    settings.home.mkdir(exist_ok=True)
    return settings.home / "allowlist.txt"


async def test_a_rule_admits_at_once_and_leaves_its_name_in_the_history(workbench: Workbench) -> None:
    grants = {"persona_id": "tester", "tool": "read", "access_level": "session_level"}
    await workbench.call("add_admission_rule", name="my scripts", pattern="script-*", grants=grants)
    registration = await come(workbench, "script-7", HERE)
    assert (registration["agent_id"], registration["status"]) == ("script-7", "assigned")
    caller = await workbench.identify(registration["token"])
    assert (caller.level, caller.persona, caller.access) == (Level.READ, "tester", "session_level")
    (approval,) = (await workbench.call("list_approvals", status="approved"))["approvals"]
    assert (approval["decided_by"], approval["reason"]) == ("rule:my scripts", "by the rule my scripts")
    events = (await workbench.call("list_events", subject="script-7"))["events"]
    assert [(event["kind"], event["actor"]) for event in events] == [
        ("agent.registered", "anonymous"),
        ("agent.assigned", "rule:my scripts"),
    ]


COMERS: list[tuple[Any, str, str]] = [
    (HERE, "script-1", "assigned"),
    (HERE, "Script-1", "pending"),
    (HERE, "another", "pending"),
    (ELSEWHERE, "script-1", "pending"),
    (ELSEWHERE, "anywhere-1", "assigned"),
    (replace(ANONYMOUS, address="127.0.0.2"), "script-1", "pending"),
    (replace(ANONYMOUS, address="not an address"), "script-1", "pending"),
]


async def test_an_admission_rule_matches_a_name_and_an_origin(workbench: Workbench) -> None:
    await workbench.call("add_admission_rule", name="here", pattern="script-*")
    await workbench.call("add_admission_rule", name="there", pattern="anywhere-?", loopback_only=False)
    for caller, name, status in COMERS:
        registration = await come(workbench, name, caller)
        assert (caller.address, name, registration["status"]) == (caller.address, name, status)


async def test_removing_an_admission_rule_keeps_the_agents_it_admitted(workbench: Workbench) -> None:
    await workbench.call("add_admission_rule", name="all", pattern="*")
    admitted = await come(workbench, "ada", HERE)
    assert [rule["name"] for rule in (await workbench.call("list_admission_rules"))["rules"]] == ["all"]
    await workbench.call("remove_admission_rule", name="all")
    assert (await workbench.call("list_admission_rules"))["rules"] == []
    assert (await come(workbench, "bob", HERE))["status"] == "pending"
    assert (await workbench.identify(admitted["token"])).level is Level.WORKER
    await given.refuses("RULE_NOT_FOUND", workbench.call("remove_admission_rule", name="all"))


async def test_the_first_matching_rule_decides_and_each_agent_gets_a_unique_id(workbench: Workbench) -> None:
    await workbench.call("add_admission_rule", name="readers", pattern="a*", grants={"tool": "read"})
    await workbench.call("add_admission_rule", name="writers", pattern="*")
    made = [await come(workbench, name, HERE) for name in ("ada", "ada", "bob")]
    assert [one["agent_id"] for one in made] == ["ada", "ada-2", "bob"]
    levels = [(await workbench.identify(one["token"])).level for one in made]
    assert levels == [Level.READ, Level.READ, Level.WORKER]


NO_RULES: list[tuple[dict[str, Any], str]] = [
    ({"name": "taken", "pattern": "*"}, "NAME_TAKEN"),
    ({"name": "x", "pattern": ""}, "INVALID_ARGUMENTS"),
    ({"name": "", "pattern": "*"}, "INVALID_ARGUMENTS"),
    ({"name": "x", "pattern": "*", "grants": {"agent_id": "ada"}}, "INVALID_ARGUMENTS"),
    ({"name": "x", "pattern": "*", "grants": {"level": "operator"}}, "INVALID_ARGUMENTS"),
    ({"name": "x", "pattern": "*", "grants": {"persona_id": "wizard"}}, "PERSONA_NOT_FOUND"),
    ({"name": "x", "pattern": "*", "grants": {"session_id": "nowhere"}}, "SESSION_NOT_FOUND"),
]


async def test_an_invalid_admission_rule_is_refused(workbench: Workbench) -> None:
    await workbench.call("add_admission_rule", name="taken", pattern="t*")
    for rule, code in NO_RULES:
        with pytest.raises(WorkbenchError, match=code):
            await workbench.call("add_admission_rule", **rule)
        assert len((await workbench.call("list_admission_rules"))["rules"]) == 1, rule


async def test_a_rule_with_an_impossible_grant_leaves_the_question_to_the_operator(
    workbench: Workbench,
) -> None:
    await given.project(workbench)
    session = await given.session(workbench, "s")
    await workbench.call("add_admission_rule", name="all", pattern="*", grants={"session_id": session["id"]})
    await workbench.call("delete_session", session_id=session["id"])
    registration = await come(workbench, "ada", HERE)
    assert (registration["status"], "rule" in registration["message"]) == ("pending", False)
    assert len((await workbench.call("list_approvals"))["approvals"]) == 1
    (event,) = (await workbench.call("list_events", kinds=["rule.failed"]))["events"]
    assert (event["subject"], event["data"]["code"]) == ("rule:all", "SESSION_NOT_FOUND")
    caller = await workbench.identify(registration["token"])
    assert not may_see(replace(caller, level=Level.WORKER), FeedEvent(**event | {"at": 0}))


async def test_registrations_of_strangers_are_limited_in_total_and_for_each_address(settings: Settings) -> None:
    few = settings.model_copy(update={"max_pending_per_address": 2, "max_pending_agents": 3})
    async with Workbench.open(few) as workbench:
        first, _ = [await come(workbench, by=ELSEWHERE) for _ in range(2)]
        await given.refuses("TOO_MANY_PENDING", come(workbench, by=ELSEWHERE))
        await come(workbench, by=HERE)
        await given.refuses("TOO_MANY_PENDING", come(workbench, by=HERE))
        await workbench.call("reject", approval_id=first["approval_id"])
        await come(workbench, by=HERE)
        await workbench.call("update_agent_tool", tool_id="register", enabled=False)
        await given.refuses("TOOL_DISABLED", come(workbench, by=replace(ANONYMOUS, address="192.0.2.8")))
        assert (await workbench.call("register", name="mine"))["status"] == "pending"
        assert len((await workbench.call("list_approvals"))["approvals"]) == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
async def test_an_admission_fails_when_the_allowlist_cannot_be_written(workbench: Workbench, listed: Path) -> None:
    listed.write_text("root\n")
    registration = await come(workbench, "ada", HERE)
    listed.parent.chmod(0o500)
    try:
        await given.refuses("PROJECT_UNWRITABLE", workbench.call("approve", approval_id=registration["approval_id"]))
    finally:
        listed.parent.chmod(0o700)
    assert (await workbench.call("approve", approval_id=registration["approval_id"]))["outcome"]["status"] == "assigned"


async def test_an_agent_missing_from_the_allowlist_is_refused_from_its_next_message(
    workbench: Workbench, admit: Admit, listed: Path
) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    listed.write_text("# nobody yet, which means everyone\n\n")
    assert (await workbench.identify(bob.token)).level is Level.WORKER
    listed.write_text("# trusted\nada   # my own\n")
    assert (await workbench.renewed(ada.caller)).level is Level.WORKER
    await given.refuses("NOT_ALLOWLISTED", workbench.dispatch(await workbench.renewed(bob.caller), "whoami", {}))
    listed.write_text("ada\nbob\n")
    assert (await workbench.renewed(bob.caller)).level is Level.WORKER
    listed.write_bytes(b"ada\n\xff\xfe")
    await given.refuses("ALLOWLIST_UNREADABLE", workbench.identify(ada.token))


async def test_admitting_and_renaming_agents_update_the_allowlist(
    workbench: Workbench, admit: Admit, listed: Path
) -> None:
    listed.write_text("# trusted\nroot\n")
    ada = await admit("ada")
    await workbench.call("update_agent", agent_id="ada", changes={"agent_id": "eva"})
    await workbench.call("add_admission_rule", name="all", pattern="*")
    bob = await come(workbench, "bob", HERE)
    assert listed.read_text() == "# trusted\nroot\neva\nbob\n"
    assert [(await workbench.identify(token)).level for token in (ada.token, bob["token"])] == [Level.WORKER] * 2


async def test_editing_the_allowlist_from_the_desk_keeps_the_ids_of_the_setting(
    settings: Settings, listed: Path
) -> None:
    fixed = settings.model_copy(update={"allowed_agents": "root, ada"})
    async with Workbench.open(fixed) as workbench:
        shown = await workbench.call("list_allowlist")
        assert (shown["ids"], shown["fixed"]) == (["ada", "root"], ["ada", "root"])
        await given.refuses("FIXED_BY_SETTING", workbench.call("disallow_agent", agent_id="root"))
        for name in ("bob", "cy"):
            ids = (await workbench.call("allow_agent", agent_id=name))["ids"]
        assert ids == ["ada", "bob", "cy", "root"]
        assert (await workbench.call("disallow_agent", agent_id="bob"))["ids"] == ["ada", "cy", "root"]
        assert listed.read_text() == "cy\n"
        await given.refuses("AGENT_NOT_FOUND", workbench.call("disallow_agent", agent_id="bob"))
