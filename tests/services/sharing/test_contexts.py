"""Contexts: changed, deleted and restored by who wrote them, and read as far as access goes."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, Unauthenticated, WorkbenchError
from workbench.ops import ANONYMOUS, OPERATOR
from workbench.services.sharing.contexts import SQL
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

WAYS = ({"search": "ada"}, {"agent_id": "ada"}, {"session_id": "one"}, {"sequence_after": 0}, {"title": "ada"})
"""Filters that are looked up in ways of their own."""


@dataclass
class World:
    """Two sessions; ada and bob are the red team of the first, eve is beside them, zoe is in the second."""

    workbench: Workbench
    agents: dict[str, Admitted]
    written: dict[str, str]

    async def call(self, name: str, who: str, **arguments: Any) -> dict[str, Any]:
        """Run an operation as an agent, or as the operator."""
        caller = self.agents[who].caller if who in self.agents else OPERATOR
        return await self.workbench.dispatch(await self.workbench.renewed(caller), name, arguments)

    async def titles(self, who: str, **how: Any) -> list[str]:
        """The titles of the contexts somebody reads."""
        return [row["title"] for row in (await self.call("read", who, **how))["data"]]


@pytest.fixture
async def world(workbench: Workbench, admit: Admit) -> World:
    """Everybody has written a context of the title of their name."""
    await workbench.call("create_project", name="alpha")
    for name in ("one", "two"):
        await workbench.call("create_session", project_id="alpha", name=name)
    await workbench.call("create_team", name="red", session_id="one")
    places = {
        "ada": {"team_id": "red"},
        "bob": {"team_id": "red"},
        "eve": {"session_id": "one"},
        "zoe": {"session_id": "two"},
    }
    agents = {name: await admit(name, **place) for name, place in places.items()}
    made = World(workbench, agents, {})
    for name in agents:
        content = {"title": name, "content": f"of {name}", "metadata": {"by": name}}
        made.written[name] = (await made.call("write", name, content=content))["context_id"]
    return made


@pytest.mark.parametrize(
    ("level", "team", "session", "seen"),
    [
        ("self_only", "red", "one", "ada"),
        ("team_level", "red", "one", "bob ada"),
        ("session_level", "red", "one", "eve bob ada"),
        ("team_level", None, "one", "ada"),
        ("session_level", None, None, "ada"),
        ("session_level", None, "two", "zoe ada"),
    ],
)
async def test_an_agent_reads_as_far_as_its_access_goes(
    world: World, level: str, team: str | None, session: str | None, seen: str
) -> None:
    changes = {"access_level": level, "session_id": session, "team_id": team}
    await world.workbench.call("update_agent", agent_id="ada", changes=changes)
    assert await world.titles("ada") == seen.split()
    assert await world.titles("operator") == ["zoe", "eve", "bob", "ada"]
    for name, context_id in world.written.items():
        if name in seen.split():
            assert (await world.call("get_context", "ada", context_id=context_id))["title"] == name
        else:
            with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND"):
                await world.call("get_context", "ada", context_id=context_id)


@pytest.mark.parametrize("level", ["self_only", "team_level", "session_level"])
async def test_no_filter_shows_more_than_access_does(world: World, level: str) -> None:
    await world.workbench.call("update_agent", agent_id="ada", changes={"access_level": level})
    seen = set(await world.titles("ada"))
    ways = [{"search": "of"}, {"title": "zoe"}, {"title": "eve"}, {"session_id": "one"}, {"agent_id": "ada"}]
    ways += [{"agent_id": name} for name in ("bob", "eve", "zoe")] + [{"agent_id": "zoe", "search": "of"}]
    for filters, since in product(ways, (None, 0)):
        assert set(await world.titles("ada", filters=filters, since=since)) <= seen
    with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
        await world.titles("ada", filters={"session_id": "two"})


async def test_a_context_is_shown_with_all_that_was_said(world: World) -> None:
    found = await world.call("get_context", "ada", context_id=world.written["ada"])
    assert (found["title"], found["content"], found["metadata"]) == ("ada", "of ada", {"by": "ada"})
    assert (found["agent_id"], found["session"], found["sequence_number"]) == ("ada", "one", 1)
    assert found["created_at"] == found["updated_at"]
    assert (await world.call("read", "ada"))["data"] == [found]


async def test_who_wrote_a_context_changes_it(world: World) -> None:
    mine = {"context_id": world.written["ada"]}
    before = await world.call("get_context", "ada", **mine)
    assert await world.call("update_context", "ada", **mine) == before
    changed = await world.call("update_context", "ada", **mine, content="quite other words", metadata={})
    assert changed == before | {
        "content": "quite other words",
        "metadata": {},
        "updated_at": changed["updated_at"],
    }
    assert await world.titles("ada", filters={"search": "quite other"}) == ["ada"]
    assert await world.titles("ada", filters={"search": "of ada"}) == []
    assert (await world.call("update_context", "operator", **mine, title="by the person"))["title"] == "by the person"


async def test_nobody_else_changes_it(world: World) -> None:
    await world.workbench.call("update_agent", agent_id="bob", changes={"access_level": "session_level"})
    for name in ("update_context", "delete_context"):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await world.call(name, "bob", context_id=world.written["ada"])
        with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND"):
            await world.call(name, "eve", context_id=world.written["ada"])
    await world.call("delete_context", "ada", context_id=world.written["ada"])
    with pytest.raises(Refused, match="FORBIDDEN"):
        await world.call("restore_context", "bob", context_id=world.written["ada"])
    await world.workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await world.call("restore_context", "ada", context_id=world.written["ada"])


async def test_a_deleted_context_is_gone_until_it_is_restored_and_keeps_its_number(world: World) -> None:
    mine = {"context_id": world.written["ada"]}
    before = await world.call("get_context", "ada", **mine)
    deleted = await world.call("delete_context", "ada", **mine)
    assert deleted["deleted_at"] is not None
    for how in ({}, {"since": 0}, *({"filters": one} for one in WAYS)):
        assert await world.titles("ada", **how) == [], how
    for name in ("get_context", "update_context", "delete_context"):
        with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND"):
            await world.call(name, "ada", **mine)
    assert (await world.call("write", "ada", content={"title": "next"}))["sequence_number"] == 4
    assert await world.call("restore_context", "ada", **mine) == before
    with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND: There is no deleted context"):
        await world.call("restore_context", "ada", **mine)


async def test_what_happens_to_a_context_is_told_without_what_it_says(world: World) -> None:
    mine = {"context_id": world.written["ada"]}
    await world.call("update_context", "ada", **mine, content="secret plans")
    await world.call("delete_context", "ada", **mine)
    await world.call("restore_context", "ada", **mine)
    events = (await world.workbench.call("list_events", subject=f"context:{mine['context_id']}"))["events"]
    session = (await world.workbench.call("get_session", session_id="one"))["id"]
    team, author = (await world.call("whoami", "ada"))["team_id"], f"agent:{world.agents['ada'].caller.agent}"
    assert {(event["data"].pop("team"), event["data"].pop("author")) for event in events} == {(team, author)}
    assert [(event["kind"], event["actor"], event["session"], event["data"]) for event in events] == [
        ("context.written", "ada", session, {"sequence_number": 1}),
        ("context.updated", "ada", session, {"sequence_number": 1, "changes": ["content"]}),
        ("context.deleted", "ada", session, {"sequence_number": 1}),
        ("context.restored", "ada", session, {"sequence_number": 1}),
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"title": "x" * 501}, "INVALID_ARGUMENTS"),
        ({"content": "é" * 131_073}, "TOO_LARGE"),
        ({"metadata": {"x": "é" * 5_000}}, "TOO_LARGE"),
        ({"metadata": []}, "INVALID_ARGUMENTS"),
    ],
)
async def test_a_change_beyond_the_limits_is_refused_and_changes_nothing(
    world: World, change: dict[str, Any], code: str
) -> None:
    mine = {"context_id": world.written["ada"]}
    before = await world.call("get_context", "ada", **mine)
    with pytest.raises(BadInput, match=code):
        await world.call("update_context", "ada", **mine, **change)
    assert await world.call("get_context", "ada", **mine) == before


async def test_a_stranger_does_not_read(world: World) -> None:
    with pytest.raises(Unauthenticated, match="TOKEN_REQUIRED"):
        await world.workbench.dispatch(ANONYMOUS, "get_context", {"context_id": world.written["ada"]})


async def test_a_tool_that_may_not_touch_contexts_does_not(world: World) -> None:
    mine = {"context_id": world.written["ada"]}

    async def codes() -> list[str]:
        found = []
        for name in ("get_context", "update_context", "delete_context"):
            try:
                await world.call(name, "ada", **mine)
            except WorkbenchError as error:
                found.append(error.code)
        return found

    await world.workbench.call("update_agent_tool", tool_id="write", permissions={"read": [], "write": []})
    assert await codes() == ["NOT_PERMITTED"] * 3
    await world.workbench.call("update_agent_tool", tool_id="write", permissions={"read": ["contexts"]})
    assert await codes() == ["NOT_PERMITTED"] * 2
    assert (await world.workbench.call("get_context", **mine))["title"] == "ada"


@pytest.mark.parametrize(
    "name",
    ["newest", "of_session", "of_agent", "with_words", "numbered_after", "changed", "get", "rows", "next_number"],
)
async def test_no_question_reads_through_all_contexts(workbench: Workbench, settings: Settings, name: str) -> None:
    query = next(query for query in SQL if query.name == name)
    db = sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True)
    try:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", dict.fromkeys(query.parameters))]
    finally:
        db.close()
    assert [step for step in plan if step.startswith(("SCAN c", "SCAN contexts", "SCAN s"))] == []
    sorted_ = [step for step in plan if "ORDER BY" in step]
    assert sorted_ == [] or name in ("numbered_after", "changed")  # of those that are new, which are few


@pytest.mark.parametrize(("reader", "sees"), [("ada", True), ("bob", True), ("eve", False), ("zoe", False)])
async def test_who_may_read_a_context_gets_the_events_of_what_others_do_to_it(
    world: World, reader: str, sees: bool
) -> None:
    await world.workbench.call("update_agent", agent_id="bob", changes={"access_level": "team_level"})
    await world.workbench.call("update_context", context_id=world.written["ada"], title="corrected")
    await world.workbench.call("delete_context", context_id=world.written["ada"])
    found = (await world.call("list_events", reader, kinds=["context.updated", "context.deleted"]))["events"]
    assert [event["kind"] for event in found] == (["context.updated", "context.deleted"] if sees else [])
