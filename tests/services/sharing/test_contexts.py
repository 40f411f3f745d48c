"""Contexts: changed, deleted and restored by their author, and read within the access level."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, Unauthenticated
from workbench.ops import ANONYMOUS, OPERATOR
from workbench.services.sharing.contexts import SQL
from workbench.state.settings import Settings

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
        caller = self.agents[who].caller if who in self.agents else OPERATOR
        return await self.workbench.dispatch(await self.workbench.renewed(caller), name, arguments)

    async def adas(self, name: str, who: str = "ada", **arguments: Any) -> dict[str, Any]:
        """Run an operation about the context that ada has written."""
        return await self.call(f"{name}_context", who, context_id=self.written["ada"], **arguments)

    async def update(self, agent_id: str, **changes: Any) -> None:
        await self.workbench.call("update_agent", agent_id=agent_id, changes=changes)

    async def titles(self, who: str, **how: Any) -> list[str]:
        return [row["title"] for row in (await self.call("read", who, **how))["data"]]


@pytest.fixture
async def world(workbench: Workbench, admit: Admit) -> World:
    """Everybody has written a context of the title of their name."""
    await given.project(workbench)
    for name in ("one", "two"):
        await given.session(workbench, name)
    await given.team(workbench, "red", "one")
    red = {"team_id": "red"}
    places = {"ada": red, "bob": red, "eve": {"session_id": "one"}, "zoe": {"session_id": "two"}}
    made = World(workbench, {name: await admit(name, **place) for name, place in places.items()}, {})
    for name in places:
        content = {"title": name, "content": f"of {name}", "metadata": {"by": name}}
        made.written[name] = (await made.call("write", name, content=content))["context_id"]
    return made


async def test_an_agent_reads_as_far_as_its_access_goes_and_no_filter_shows_more(world: World) -> None:
    ways: list[dict[str, str]] = [{"search": "of"}, {"title": "zoe"}, {"title": "eve"}]
    ways += [{"agent_id": name} for name in world.agents] + [{"agent_id": "zoe", "search": "of"}]
    for level, team, session, seen in (
        ("self_only", "red", "one", ["ada"]),
        ("team_level", "red", "one", ["bob", "ada"]),
        ("session_level", "red", "one", ["eve", "bob", "ada"]),
        ("team_level", None, "one", ["ada"]),
        ("session_level", None, None, ["ada"]),
        ("session_level", None, "two", ["zoe", "ada"]),
    ):
        await world.update("ada", access_level=level, session_id=session, team_id=team)
        assert await world.titles("ada") == seen
        for name, context_id in world.written.items():
            reading = world.call("get_context", "ada", context_id=context_id)
            if name in seen:
                assert (await reading)["title"] == name
            else:
                assert (await given.refusal(reading)).code == "CONTEXT_NOT_FOUND"
        own_session = [{"session_id": session}] if session else []
        for filters, since in product([*ways, *own_session], (None, 0)):
            assert set(await world.titles("ada", filters=filters, since=since)) <= set(seen)
        with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
            await world.titles("ada", filters={"session_id": "one" if session == "two" else "two"})
    assert await world.titles("operator") == ["zoe", "eve", "bob", "ada"]


async def test_the_author_of_a_context_reads_and_changes_all_of_it(world: World) -> None:
    before = await world.adas("get")
    assert (before["title"], before["content"], before["metadata"]) == ("ada", "of ada", {"by": "ada"})
    assert (before["agent_id"], before["session"], before["sequence_number"]) == ("ada", "one", 1)
    assert before["created_at"] == before["updated_at"]
    assert (await world.call("read", "ada"))["data"] == [before]
    assert await world.adas("update") == before
    new: dict[str, Any] = {"content": "quite other words", "metadata": {}}
    changed = await world.adas("update", **new)
    assert changed == before | new | {"updated_at": changed["updated_at"]}
    assert await world.titles("ada", filters={"search": "quite other"}) == ["ada"]
    assert await world.titles("ada", filters={"search": "of ada"}) == []
    assert (await world.adas("update", "operator", title="by the person"))["title"] == "by the person"


async def test_only_its_author_changes_a_context_and_no_stranger_reads_it(world: World) -> None:
    await world.update("bob", access_level="session_level")
    for name in ("update", "delete"):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await world.adas(name, "bob")
        with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND"):
            await world.adas(name, "eve")
    with pytest.raises(Unauthenticated, match="TOKEN_REQUIRED"):
        await world.workbench.dispatch(ANONYMOUS, "get_context", {"context_id": world.written["ada"]})
    await world.adas("delete")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await world.adas("restore", "bob")
    await world.update("ada", tool="read")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await world.adas("restore")


async def test_a_deleted_context_is_gone_until_it_is_restored_and_keeps_its_number(world: World) -> None:
    before = await world.adas("get")
    assert (await world.adas("delete"))["deleted_at"] is not None
    for how in ({}, {"since": 0}, *({"filters": one} for one in WAYS)):
        assert await world.titles("ada", **how) == [], how
    for name in ("get", "update", "delete"):
        with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND"):
            await world.adas(name)
    assert (await world.call("write", "ada", content={"title": "next"}))["sequence_number"] == 4
    assert await world.adas("restore") == before
    with pytest.raises(NotFound, match="CONTEXT_NOT_FOUND: There is no deleted context"):
        await world.adas("restore")


async def test_events_of_a_context_omit_its_content(world: World) -> None:
    await world.adas("update", content="secret plans")
    await world.adas("delete")
    await world.adas("restore")
    events = (await world.workbench.call("list_events", subject=f"context:{world.written['ada']}"))["events"]
    session = (await world.workbench.call("get_session", session_id="one"))["id"]
    team, author = (await world.call("whoami", "ada"))["team_id"], f"agent:{world.agents['ada'].caller.agent}"
    number = {"sequence_number": 1, "team": team, "author": author}
    assert {(event["actor"], event["session"]) for event in events} == {("ada", session)}
    assert [(event["kind"], event["data"]) for event in events] == [
        ("context.written", number),
        ("context.updated", number | {"changes": ["content"]}),
        ("context.deleted", number),
        ("context.restored", number),
    ]


async def test_a_change_beyond_the_limits_is_refused_and_changes_nothing(world: World) -> None:
    before = await world.adas("get")
    for change, code in (
        ({"title": "x" * 501}, "INVALID_ARGUMENTS"),
        ({"content": "é" * 131_073}, "TOO_LARGE"),
        ({"metadata": {"x": "é" * 5_000}}, "TOO_LARGE"),
        ({"metadata": []}, "INVALID_ARGUMENTS"),
    ):
        with pytest.raises(BadInput, match=code):
            await world.adas("update", **change)
    assert await world.adas("get") == before


async def test_a_tool_without_permission_does_not_touch_contexts(world: World) -> None:
    await world.workbench.call("update_agent_tool", tool_id="write", permissions={"read": [], "write": []})
    for name in ("get", "update", "delete"):
        assert (await given.refusal(world.adas(name))).code == "NOT_PERMITTED"
    await world.workbench.call("update_agent_tool", tool_id="write", permissions={"read": ["contexts"]})
    assert (await world.adas("get"))["title"] == "ada"
    for name in ("update", "delete"):
        assert (await given.refusal(world.adas(name))).code == "NOT_PERMITTED"
    assert (await world.adas("get", "operator"))["title"] == "ada"


@pytest.mark.sqlite("SQLite says how it finds the rows")
async def test_no_query_scans_all_contexts(workbench: Workbench, settings: Settings) -> None:
    names = (
        "newest",
        "of_session",
        "of_agent",
        "with_words",
        "numbered_after",
        "changed",
        "get",
        "rows",
        "next_number",
    )
    with closing(sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True)) as db:
        for query in [query for query in SQL if query.name in names]:
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", dict.fromkeys(query.parameters))]
            assert [step for step in plan if step.startswith(("SCAN c", "SCAN contexts", "SCAN s"))] == [], query.name
            if query.name not in ("numbered_after", "changed"):  # of those that are new, which are few
                assert [step for step in plan if "ORDER BY" in step] == [], query.name
    assert set(names) <= {query.name for query in SQL}


async def test_readers_of_a_context_get_the_events_of_others_changes(world: World) -> None:
    await world.update("bob", access_level="team_level")
    await world.adas("update", "operator", title="corrected")
    await world.adas("delete", "operator")
    kinds = ["context.updated", "context.deleted"]
    for reader, seen in (("ada", kinds), ("bob", kinds), ("eve", []), ("zoe", [])):
        events = (await world.call("list_events", reader, kinds=kinds))["events"]
        assert [event["kind"] for event in events] == seen, reader
