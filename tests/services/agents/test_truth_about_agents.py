"""What is said of agents that left, were deleted or revoked, and of rules that admit none any more."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.services.access.authentication import identify

pytestmark = pytest.mark.anyio


async def presence(workbench: Workbench, agent_id: str = "ada") -> str:
    """The presence of an agent."""
    return str((await workbench.call("get_agent", agent_id=agent_id))["presence"])


@pytest.fixture
async def ada(admit: Admit) -> Admitted:
    """An agent that was admitted and has not been there yet."""
    return await admit("ada")


async def test_an_agent_that_left_is_offline(workbench: Workbench, ada: Admitted) -> None:
    await given.claim(workbench, ada, await given.task(workbench))
    assert await presence(workbench) == "active"
    await workbench.dispatch(ada.caller, "deregister_agent", {})
    assert await presence(workbench) == "inactive"


async def test_a_deleted_agent_is_told_that_it_can_be_restored(workbench: Workbench, ada: Admitted) -> None:
    await workbench.call("delete_agent", agent_id="ada")
    assert "can restore it" in str(await given.refuses("INVALID_TOKEN", identify(workbench.store, ada.token)))
    await workbench.call("restore_agent", agent_id="ada")
    assert (await identify(workbench.store, ada.token)).name == "ada"


async def test_a_grant_of_a_revoked_agent_is_refused_and_a_former_id_is_named(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    await workbench.call("update_agent", agent_id="ada", changes={"agent_id": "lovelace"})
    bob = await admit("bob")
    refused = await given.refuses(
        "AGENT_ID_TAKEN", workbench.call("update_agent", agent_id=bob.agent_id, changes={"agent_id": "ada"})
    )
    assert "formerly of lovelace" in str(refused)
    await workbench.call("revoke_agent", agent_id="bob")
    await given.refuses("WRONG_STATE", workbench.call("update_agent", agent_id="bob", changes={"tool": "read"}))


async def test_a_rule_says_why_it_admits_none_any_more(workbench: Workbench) -> None:
    await given.project(workbench)
    night = await given.session(workbench, "night")
    grants = {"session_id": night["id"]}
    await workbench.call("add_admission_rule", name="all", pattern="*", grants=grants)
    assert [rule["problem"] for rule in (await workbench.call("list_admission_rules"))["rules"]] == [None]
    await workbench.call("delete_session", session_id=night["id"])
    (rule,) = (await workbench.call("list_admission_rules"))["rules"]
    assert rule["problem"].startswith("There is no session")
