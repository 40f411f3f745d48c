"""Sessions: in a project, with teams, agents and contexts; gone and back with what is around them."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import NotFound
from workbench.ops import Caller

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def alpha(workbench: Workbench) -> dict[str, Any]:
    """A project."""
    return await workbench.call("create_project", name="alpha")


async def names(workbench: Workbench, caller: Caller | None = None, **how: Any) -> list[str]:
    """The names of the sessions that a caller sees; the operator, if not said."""
    listed = workbench.dispatch(caller, "list_sessions", how) if caller else workbench.call("list_sessions", **how)
    return sorted(session["name"] for session in (await listed)["sessions"])


async def test_a_session_is_made_in_a_project_and_found_by_id_and_by_name(
    workbench: Workbench, alpha: dict[str, Any]
) -> None:
    session = await workbench.call("create_session", project_id=alpha["id"], name="one", description="First.")
    assert (session["project_id"], session["project"]) == (alpha["id"], "alpha")
    assert (session["teams"], session["agents"], session["contexts"], session["deleted_at"]) == (0, 0, 0, None)
    for ref in (session["id"], "one"):
        assert await workbench.call("get_session", session_id=ref) == session
    await workbench.call("delete_project", project_id="alpha")
    for project in ("nowhere", alpha["id"]):
        await given.refuses("PROJECT_NOT_FOUND", given.session(workbench, "two", project))
    (event,) = (await workbench.call("list_events", kinds=["session.*"]))["events"]
    assert (event["kind"], event["subject"]) == ("session.created", f"session:{session['id']}")
    assert (event["session"], event["data"]) == (session["id"], {"project_id": alpha["id"], "name": "one"})


async def test_the_name_of_a_session_is_unique_within_its_project(workbench: Workbench) -> None:
    await workbench.call("create_project", name="beta")
    one, other = await given.session(workbench, "one"), await given.session(workbench, "one", "beta")
    two = await given.session(workbench, "two")
    await given.refuses("NAME_TAKEN", given.session(workbench, "one"))
    await given.refuses("NAME_TAKEN", workbench.call("update_session", session_id=two["id"], name="one"))
    error = await given.refuses("AMBIGUOUS_NAME", workbench.call("get_session", session_id="one"))
    assert sorted(error.details["candidates"]) == sorted([one["id"], other["id"]])
    await workbench.call("delete_project", project_id="beta")
    assert (await workbench.call("get_session", session_id="one"))["id"] == one["id"]
    await workbench.call("delete_session", session_id="two")
    await given.session(workbench, "two")
    await given.refuses("NAME_TAKEN", workbench.call("restore_session", session_id=two["id"]))
    assert await names(workbench, project_id="alpha", deleted=True) == ["two"]


async def test_sessions_are_listed_by_project_and_search_text(workbench: Workbench, alpha: dict[str, Any]) -> None:
    await workbench.call("create_project", name="beta")
    for name, project in (("one", "alpha"), ("two", "alpha"), ("one", "beta")):
        await given.session(workbench, name, project)
    assert await names(workbench, project_id="alpha") == ["one", "two"]
    assert await names(workbench, project_id=alpha["id"], search="TW") == ["two"]
    page = await workbench.call("list_sessions", limit=2)
    rest = await workbench.call("list_sessions", limit=2, cursor=page["next_cursor"])
    assert (page["total"], rest["total"], rest["next_cursor"]) == (3, 3, None)
    assert len({session["id"] for session in page["sessions"] + rest["sessions"]}) == 3
    await given.refuses("PROJECT_NOT_FOUND", names(workbench, project_id="nowhere"))


async def test_a_deleted_session_comes_back_with_all_that_was_in_it(workbench: Workbench, admit: Admit) -> None:
    session = await given.session(workbench, "one")
    await given.team(workbench, "red", "one")
    ada = await admit("ada", team_id="red")
    await admit("bob", session_id="one")
    lost, _ = [await workbench.dispatch(ada.caller, "write", {"content": {"title": t}}) for t in ("lost", "kept")]
    await workbench.call("delete_context", context_id=lost["context_id"])
    await workbench.call("delete_agent", agent_id="bob")
    before = await workbench.call("get_session", session_id="one")
    assert (before["teams"], before["agents"], before["contexts"]) == (1, 1, 1)
    await workbench.call("delete_session", session_id="one")
    assert (await workbench.call("list_teams"))["teams"] == []
    assert (await workbench.call("read"))["data"] == []
    assert await names(workbench, ada.caller) == []
    await given.refuses("SESSION_NOT_FOUND", workbench.dispatch(ada.caller, "write", {"content": {"title": "lost"}}))
    await given.refuses("SESSION_NOT_FOUND", workbench.call("get_session", session_id=session["id"]))
    assert await workbench.call("restore_session", session_id="one") == before
    assert [team["name"] for team in (await workbench.call("list_teams"))["teams"]] == ["red"]
    assert [context["title"] for context in (await workbench.call("read"))["data"]] == ["kept"]
    again = await workbench.dispatch(ada.caller, "write", {"content": {"title": "next"}})
    assert again["sequence_number"] == 3


async def test_sessions_are_deleted_and_restored_with_their_project(workbench: Workbench) -> None:
    made = await given.session(workbench, "one")
    gone = await given.session(workbench, "two")
    await workbench.call("delete_session", session_id="two")
    await workbench.call("delete_project", project_id="alpha")
    assert (await names(workbench), await names(workbench, deleted=True)) == ([], ["one", "two"])
    await given.refuses("SESSION_NOT_FOUND", workbench.call("get_session", session_id=made["id"]))
    for session in (made, gone):
        with pytest.raises(NotFound, match="PROJECT_NOT_FOUND: Its project, 'alpha', is deleted"):
            await workbench.call("restore_session", session_id=session["id"])
    await workbench.call("restore_project", project_id="alpha")
    assert (await names(workbench), await names(workbench, deleted=True)) == (["one"], ["two"])
    assert await workbench.call("get_session", session_id="one") == made


async def test_an_agent_sees_its_own_session_only(workbench: Workbench, admit: Admit) -> None:
    one, two = await given.session(workbench, "one"), await given.session(workbench, "two")
    ada = await admit("ada", session_id="one", access_level="session_level")
    stray = await admit("stray", session_id=None)
    assert (await names(workbench, ada.caller), await names(workbench, stray.caller)) == (["one"], [])
    assert (await workbench.dispatch(ada.caller, "get_session", {"session_id": one["id"]}))["name"] == "one"
    await given.refuses("SESSION_NOT_FOUND", workbench.dispatch(ada.caller, "get_session", {"session_id": two["id"]}))


async def test_every_change_of_a_session_is_an_event_of_that_session(workbench: Workbench) -> None:
    session = await given.session(workbench, "one")
    await workbench.call("update_session", session_id="one", name="uno", description="Renamed.")
    await workbench.call("update_session", session_id="uno")
    await workbench.call("delete_session", session_id="uno")
    await workbench.call("restore_session", session_id="uno")
    events = (await workbench.call("list_events", kinds=["session.*"]))["events"]
    kinds = ["session.created", "session.updated", "session.deleted", "session.restored"]
    assert [event["kind"] for event in events] == kinds
    assert {event["session"] for event in events} == {session["id"]}
    assert events[1]["data"]["changes"] == ["description", "name"]
