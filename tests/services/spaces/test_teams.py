"""Teams: in a session or waiting for one, moved with their members, gone and back."""

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
async def sessions(workbench: Workbench) -> dict[str, str]:
    """Two sessions of a project, by name."""
    await workbench.call("create_project", name="alpha")
    made = [await workbench.call("create_session", project_id="alpha", name=name) for name in ("one", "two")]
    return {session["name"]: session["id"] for session in made}


async def names(workbench: Workbench, caller: Caller | None = None, **how: Any) -> list[str]:
    """The names of the teams that a caller sees; the operator, if not said."""
    listed = workbench.dispatch(caller, "list_teams", how) if caller else workbench.call("list_teams", **how)
    return sorted(team["name"] for team in (await listed)["teams"])


async def place(workbench: Workbench, agent_id: str) -> tuple[str | None, str | None]:
    """Session and team of an agent, by name."""
    agent = await workbench.call("get_agent", agent_id=agent_id)
    return agent["session"], agent["team"]


async def test_a_team_is_made_in_a_session_or_without_one(workbench: Workbench, sessions: dict[str, str]) -> None:
    red, blue = await given.team(workbench, "red", "one"), await given.team(workbench, "blue")
    assert (red["session_id"], red["session"], red["agents"]) == (sessions["one"], "one", 0)
    assert (blue["session_id"], blue["session"]) == (None, None)
    assert await workbench.call("get_team", team_id="red") == red
    assert (await names(workbench), await names(workbench, session_id="one")) == (["blue", "red"], ["red"])
    assert await names(workbench, search="LU") == ["blue"]
    assert await workbench.call("update_team", team_id="red") == red
    changed = await workbench.call("update_team", team_id="blue", description="Blues.")
    assert (changed["name"], changed["description"]) == ("blue", "Blues.")
    await given.refuses("SESSION_NOT_FOUND", given.team(workbench, "green", "three"))
    events = (await workbench.call("list_events", kinds=["team.created"]))["events"]
    assert [(event["kind"], event["session"]) for event in events] == [
        ("team.created", sessions["one"]),
        ("team.created", None),
    ]


async def test_the_name_of_a_team_is_unique_within_its_session(workbench: Workbench) -> None:
    for session in ("one", "two", None):
        await given.team(workbench, "red", session)
        await given.refuses("NAME_TAKEN", given.team(workbench, "red", session))
    blue = await given.team(workbench, "blue", "one")
    await given.refuses("NAME_TAKEN", workbench.call("update_team", team_id=blue["id"], name="red"))


async def test_a_team_moves_with_its_members(workbench: Workbench, sessions: dict[str, str], admit: Admit) -> None:
    red, other = await given.team(workbench, "red", "one"), await given.team(workbench, "red", "two")
    for name in ("ada", "bob"):
        await admit(name, team_id=red["id"])
    await admit("eve", session_id="one")
    await given.refuses("NAME_TAKEN", workbench.call("move_team", team_id=red["id"], session_id="two"))
    await given.refuses("SESSION_NOT_FOUND", workbench.call("move_team", team_id=red["id"], session_id="three"))
    await workbench.call("move_team", team_id=red["id"], session_id="one")
    assert await place(workbench, "ada") == ("one", "red")
    await workbench.call("delete_team", team_id=other["id"])
    moved = await workbench.call("move_team", team_id="red", session_id="two")
    assert (moved["session"], moved["agents"]) == ("two", 2)
    places = [await place(workbench, name) for name in ("ada", "bob", "eve")]
    assert places == [("two", "red"), ("two", "red"), ("one", None)]
    assert (await workbench.call("move_team", team_id="red", session_id=None))["session_id"] is None
    assert await place(workbench, "ada") == (None, "red")
    events = (await workbench.call("list_events", kinds=["team.moved"]))["events"]
    assert [(event["subject"], event["session"], event["data"]) for event in events] == [
        (f"team:{red['id']}", sessions["two"], {"left": sessions["one"], "agents": 2}),
        (f"team:{red['id']}", None, {"left": sessions["two"], "agents": 2}),
    ]


async def test_a_deleted_team_comes_back_with_its_members(workbench: Workbench, admit: Admit) -> None:
    team = await given.team(workbench, "red", "one")
    await admit("ada", team_id="red")
    deleted = await workbench.call("delete_team", team_id="red")
    assert (deleted["deleted_at"] is not None, await names(workbench)) == (True, [])
    await given.refuses("TEAM_NOT_FOUND", workbench.call("get_team", team_id=team["id"]))
    other = await given.team(workbench, "red", "one")
    await given.refuses("NAME_TAKEN", workbench.call("restore_team", team_id="red"))
    await workbench.call("delete_team", team_id=other["id"])
    restored = await workbench.call("restore_team", team_id=team["id"])
    assert restored == team | {"agents": 1}


async def test_a_team_is_gone_with_its_session_and_project_and_back_with_them(workbench: Workbench) -> None:
    team = await given.team(workbench, "red", "one")
    for noun, name in (("session", "one"), ("project", "alpha")):
        await workbench.call(f"delete_{noun}", **{f"{noun}_id": name})
        assert (await names(workbench), await names(workbench, deleted=True)) == ([], ["red"])
        with pytest.raises(NotFound, match="SESSION_NOT_FOUND: Its session, 'one', is deleted"):
            await workbench.call("restore_team", team_id=team["id"])
        await workbench.call(f"restore_{noun}", **{f"{noun}_id": name})
        assert await workbench.call("get_team", team_id="red") == team


@pytest.mark.parametrize(
    ("level", "seen"), [("self_only", ["red"]), ("team_level", ["red"]), ("session_level", ["blue", "red"])]
)
async def test_an_agent_sees_its_team_and_with_access_to_the_session_all_of_that(
    workbench: Workbench, admit: Admit, level: str, seen: list[str]
) -> None:
    for name, session in (("red", "one"), ("blue", "one"), ("green", "two"), ("grey", None)):
        await given.team(workbench, name, session)
    ada = await admit("ada", team_id="red", access_level=level)
    stray = await admit("stray", session_id=None, access_level=level)
    assert (await names(workbench, ada.caller), await names(workbench, stray.caller)) == (seen, [])
    await given.refuses("TEAM_NOT_FOUND", workbench.dispatch(ada.caller, "get_team", {"team_id": "green"}))
    await workbench.call("delete_team", team_id="red")
    assert await names(workbench, ada.caller, deleted=True) == []
