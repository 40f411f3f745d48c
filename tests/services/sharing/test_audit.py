"""The history of an agent says what changed from what to what, who did it and why, by names."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import NotFound

pytestmark = pytest.mark.anyio

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


@pytest.fixture
async def ada(workbench: Workbench, admit: Admit) -> Admitted:
    """An agent that was admitted into the session `north` and its team `red`."""
    await given.project(workbench)
    for name in ("north", "south"):
        await given.session(workbench, name)
    await given.team(workbench, "red", "north")
    admitted: Admitted = await admit("ada", session_id="north", team_id="red")
    return admitted


async def history(workbench: Workbench, agent_id: str = "ada", **more: Any) -> list[dict[str, Any]]:
    """The entries of an agent's history, newest first."""
    entries: list[dict[str, Any]] = (await workbench.call("get_agent_history", agent_id=agent_id, **more))["entries"]
    return entries


def changes(entry: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    """The changes of an entry: old and new values by field."""
    return {change["field"]: (change["old"], change["new"]) for change in entry["changes"]}


async def test_the_history_of_an_agent_shows_each_change_with_actor_and_reason(
    workbench: Workbench, ada: Admitted
) -> None:
    entry = next(event for event in await history(workbench) if event["kind"] == "agent.assigned")
    granted = {"id": "ada", "session": "north", "team": "red", "role": "worker", "tool": "write"}
    assert changes(entry) == {field: (None, value) for field, value in granted.items()}
    new = {"session_id": "south", "tool": "read", "expires_at": "2031-02-03T04:05:06Z"}
    async with workbench.connected(ada.caller, "websocket", "a"):
        await workbench.call("update_agent", agent_id="ada", changes=new, reason="She moves on.")
    entry = next(event for event in await history(workbench) if event["kind"] == "agent.updated")
    assert (entry["actor"], entry["reason"]) == ("operator", "She moves on.")
    assert changes(entry) == {
        "session": ("north", "south"),
        "team": ("red", None),
        "tool": ("write", "read"),
        "expiry": (None, "2031-02-03T04:05:06.000Z"),
    }
    await workbench.call("update_agent", agent_id="ada", changes={"expires_at": None})
    assert changes((await history(workbench))[0]) == {"expiry": ("2031-02-03T04:05:06.000Z", None)}
    await workbench.call("revoke_agent", agent_id="ada", reason="Done.")
    entries = await history(workbench)
    assert (entries[0]["kind"], entries[0]["reason"]) == ("agent.revoked", "Done.")
    assert UUID.search(str(entries)) is None


async def test_a_history_is_found_by_a_former_id_and_after_the_agent_was_deleted(
    workbench: Workbench, ada: Admitted
) -> None:
    await workbench.call("update_agent", agent_id="ada", changes={"agent_id": "ada-2"})
    assert changes((await history(workbench, "ada"))[0]) == {"id": ("ada", "ada-2")}
    await workbench.call("delete_agent", agent_id="ada-2")
    assert (await history(workbench, "ada-2"))[0]["kind"] == "agent.deleted"
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await history(workbench, "eve")


async def test_a_long_history_comes_in_pages(workbench: Workbench, ada: Admitted) -> None:
    whole, paged, before = await history(workbench), [], None
    while before is not None or not paged:
        page = await workbench.call("get_agent_history", agent_id="ada", limit=2, before=before)
        paged += page["entries"]
        before = page["next_before"]
    assert paged == whole
    assert [entry["id"] for entry in whole] == sorted((entry["id"] for entry in whole), reverse=True)


async def test_an_agent_sees_the_history_of_the_agents_that_it_sees(
    workbench: Workbench, admit: Admit, ada: Admitted
) -> None:
    bob = (await admit("bob", session_id="south")).caller
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.dispatch(bob, "get_agent_history", {"agent_id": "ada"})
    mine = await workbench.dispatch(ada.caller, "get_agent_history", {"agent_id": "ada"})
    assert mine["entries"] == await history(workbench)
