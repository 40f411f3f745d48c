"""The tools read and write of agents: contexts in order and without gaps, and reading everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as given_any
from hypothesis import strategies as st

from tests import given
from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, WorkbenchError
from workbench.ops import Caller
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

ONCE_FOR_ALL = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
async def hall(workbench: Workbench) -> Workbench:
    """A project open, with two sessions."""
    await given.project(workbench)
    for name in ("one", "two"):
        await given.session(workbench, name)
    return workbench


async def write(workbench: Workbench, title: str, session_id: str = "one", **more: Any) -> dict[str, Any]:
    return await workbench.call("write", session_id=session_id, content={"title": title, **more})


async def pages(read: Callable[..., Awaitable[dict[str, Any]]], name: str = "title", **how: Any) -> list[list[str]]:
    """A field of all that is read, page by page."""
    found, cursor = [], None
    while not found or cursor:
        page = await read("read", cursor=cursor, **how)
        found.append([row[name] for row in page["data"]])
        cursor = page["next_cursor"]
    return found


def called_by(workbench: Workbench, caller: Caller) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Calls operations as an agent."""
    return lambda name, **arguments: workbench.dispatch(caller, name, arguments)


async def titles(workbench: Workbench, **how: Any) -> list[str]:
    """The titles of what the operator reads, newest first."""
    return [row["title"] for row in (await workbench.call("read", **{"limit": 500} | how))["data"]]


async def test_write_answers_as_the_specification_says(hall: Workbench, admit: Admit) -> None:
    ada = await admit("ada", session_id="one")
    done = await hall.dispatch(ada.caller, "write", {"resource_type": "contexts", "content": {"title": "t"}})
    written = done.pop("context_id")
    assert done == {"resource_type": "contexts", "sequence_number": 1, "status": "success"}
    read = await hall.dispatch(ada.caller, "read", {})
    assert (read["resource_type"], read["next_cursor"]) == ("contexts", None)
    assert [(row["id"], row["title"]) for row in read["data"]] == [(written, "t")]
    with pytest.raises(BadInput, match=r"BAD_RESOURCE_TYPE: .*'tasks'.* Use one of: contexts\."):
        await hall.call("write", resource_type="tasks", content={"title": "t"}, session_id="one")
    with pytest.raises(BadInput, match="BAD_RESOURCE_TYPE") as refused:
        await hall.call("read", resource_type="secrets")
    assert refused.value.details["known"] == ["contexts", "sessions", "projects", "teams", "agents", "tasks"]


@pytest.mark.timeout(60)
async def test_concurrent_writes_number_contexts_without_gaps_or_repeats(hall: Workbench, admit: Admit) -> None:
    agents = [await admit(f"a{number}", session_id="one") for number in range(8)]
    other = await admit("other", session_id="two")
    too_large = {"title": "no", "content": "x" * 262_145}

    async def writes(agent: Any, contents: list[dict[str, Any]]) -> list[Any]:
        calls = [hall.dispatch(agent.caller, "write", {"content": content}) for content in contents]
        return await asyncio.gather(*calls, return_exceptions=True)

    contents = [too_large if number % 4 == 3 else {"title": str(number)} for number in range(20)]
    answers = await asyncio.gather(*(writes(agent, contents) for agent in (*agents, other)))
    numbers = [[a["sequence_number"] for a in answer if not isinstance(a, BaseException)] for answer in answers]
    assert sorted(number for those in numbers[:-1] for number in those) == list(range(1, 8 * 15 + 1))
    assert sorted(numbers[-1]) == list(range(1, 16))
    failed = [a for answer in answers for a in answer if isinstance(a, BaseException)]
    assert {getattr(error, "code", error) for error in failed} == {"TOO_LARGE"}
    kept = (await hall.call("read", limit=500, filters={"session_id": "one"}))["data"]
    assert [row["sequence_number"] for row in kept] == list(range(120, 0, -1))


NOT_WRITTEN: list[tuple[dict[str, Any], str]] = [
    ({}, "INVALID_ARGUMENTS"),
    ({"title": "  "}, "INVALID_ARGUMENTS"),
    ({"title": "x" * 501}, "INVALID_ARGUMENTS"),
    ({"title": "x", "author": "me"}, "INVALID_ARGUMENTS"),
    ({"content": {"not": "text"}}, "INVALID_ARGUMENTS"),
    ({"content": "é" * 131_073}, "TOO_LARGE"),
    ({"title": "x", "metadata": {"x": "é" * 5_000}}, "TOO_LARGE"),
]


async def test_a_refused_context_leaves_no_event_and_the_largest_allowed_is_kept(hall: Workbench) -> None:
    for content, code in NOT_WRITTEN:
        with pytest.raises(BadInput, match=code):
            await hall.call("write", session_id="one", content=content)
        assert (await hall.call("list_events", kinds=["context.*"]))["events"] == [], content
    large = {"content": "é" * 131_072, "metadata": {"x": "y" * 9_992}}
    done = await write(hall, "é" * 500, **large)
    assert done["sequence_number"] == 1
    context = await hall.call("get_context", context_id=done["context_id"])
    assert {key: context[key] for key in large} == large


async def test_an_agent_writes_to_its_own_session_only(hall: Workbench, admit: Admit) -> None:
    ada, stray = await admit("ada", session_id="one"), await admit("stray", session_id=None)
    content = {"content": {"title": "t"}}
    two = (await hall.call("get_session", session_id="two"))["id"]
    for session in (two, "two", "one"):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await hall.dispatch(ada.caller, "write", content | {"session_id": session})
    for caller in (stray.caller, None):
        with pytest.raises(BadInput, match="SESSION_REQUIRED"):
            await (hall.dispatch(caller, "write", content) if caller else hall.call("write", **content))
    with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
        await write(hall, "t", "three")
    assert await titles(hall) == []


UNKNOWN_FILTERS: list[tuple[str, dict[str, Any], str]] = [
    ("contexts", {"colour": "red"}, "session_id, agent_id, search, title, sequence_after"),
    ("contexts", {"sequence_after": 2**63}, "sequence_after"),
    ("contexts", {"sequence_after": "x"}, "sequence_after"),
    ("projects", {"name": "x"}, "search"),
    ("sessions", {"team_id": "x"}, "project_id, search"),
    ("teams", {"project_id": "x"}, "session_id, search"),
    ("agents", {"search": "x"}, "status, team_id, session_id"),
    ("agents", {"status": "asleep"}, "status, team_id, session_id"),
    ("tasks", {"title": "x"}, "status, persona_id"),
]


async def test_filters_bounds_and_cursors_that_make_no_sense_are_refused(hall: Workbench) -> None:
    for resource_type, filters, known in UNKNOWN_FILTERS:
        with pytest.raises(BadInput, match=f"INVALID_ARGUMENTS: filters.*The filters are .*{known}") as refused:
            await hall.call("read", resource_type=resource_type, filters=filters)
        assert refused.value.details["problems"][0]["field"] == f"filters.{next(iter(filters))}"
    for how in ({"limit": 0}, {"limit": 501}, {"since": "yesterday"}, {"since": "2030-01-01T00:00:00"}):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await hall.call("read", **how)
    for title in ("a", "b"):
        await write(hall, title)
    cursor = (await hall.call("read", limit=1))["next_cursor"]
    with pytest.raises(BadInput, match="BAD_CURSOR"):
        await hall.call("read", resource_type="sessions", cursor=cursor)


async def test_contexts_are_found_by_their_words(hall: Workbench, admit: Admit) -> None:
    ada = await admit("ada", session_id="two")
    await write(hall, "Plan A", content="Measure the bills of penguins")
    await write(hall, "Plan B", content="Weigh the penguins; see plan a", session_id="two")
    await hall.dispatch(ada.caller, "write", {"content": {"title": "Café", "content": "¿Qué?"}})
    for search, found in {
        "penguins": ["Plan B", "Plan A"],
        "PENGUINS bills": ["Plan A"],
        'penguins NOT "bills': [],
        "plan": ["Plan B", "Plan A"],
        "peng": [],
        "cafe": ["Café"],
        "?!": [],
        "": ["Café", "Plan B", "Plan A"],
    }.items():
        assert await titles(hall, filters={"search": search}) == found, search
    two: dict[str, Any] = {"session_id": "two"}
    for filters, titled in (
        ({"title": "Plan A"}, ["Plan A"]),
        ({"title": "Plan"}, []),
        ({"title": "Plan A", "search": "weigh"}, []),
        (two | {"search": "penguins"}, ["Plan B"]),
        ({"agent_id": "ada"}, ["Café"]),
        ({"agent_id": "ada", "session_id": "one"}, []),
        (two | {"sequence_after": 1}, ["Café"]),
        (two | {"sequence_after": 1, "agent_id": "ada"}, ["Café"]),
        (two | {"sequence_after": 2}, []),
        (two | {"sequence_after": 0, "search": "qué"}, ["Café"]),
    ):
        assert await titles(hall, filters=filters) == titled, filters


@ONCE_FOR_ALL
@given_any(text=st.text(max_size=30) | st.text('ab"*:()-^+{}\0 NEAR', max_size=30))
async def test_any_search_text_is_taken_literally(hall: Workbench, text: str) -> None:
    try:
        assert await titles(hall, filters={"search": text}) == []
    except BadInput as error:
        assert error.code == "INVALID_ARGUMENTS"  # half a character is no JSON


async def test_contexts_changed_since_a_time_are_read_newest_first(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        await given.project(workbench)
        await given.session(workbench, "one")
        ids = []
        for title in ("a", "b", "c"):
            clock.forward(1)
            ids.append((await write(workbench, title))["context_id"])
        since = clock.now
        clock.forward(1)
        assert await titles(workbench, since=since) == []
        await workbench.call("update_context", context_id=ids[0], content="changed")
        await write(workbench, "d")
        assert await titles(workbench, since=since) == ["d", "a"]
        assert await titles(workbench, since=since, filters={"search": "changed"}) == ["a"]
        created_at = (await workbench.call("get_context", context_id=ids[2]))["created_at"]
        assert await titles(workbench, since=created_at) == ["d", "a"]
        assert await titles(workbench, since="2001-01-01T00:00:00+02:00") == ["d", "c", "b", "a"]
        assert await pages(workbench.call, since=since, limit=1) == [["d"], ["a"]]
        assert (await workbench.call("read", resource_type="projects", since=since))["data"] == []
        await workbench.call("update_project", project_id="alpha", description="New.")
        assert len((await workbench.call("read", resource_type="projects", since=since))["data"]) == 1
        callers = {}
        for name in ("a", "b", "c"):
            clock.forward(10)
            since = clock.now - 1
            registration = await workbench.call("register", name=name, persona_id="implementer")
            await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": name})
            callers[name] = await workbench.identify(registration["token"])
            await given.task(workbench, name, assigned_agent_id=name)
        clock.forward(10)
        await workbench.dispatch(callers["a"], "claim_task", {})
        await workbench.dispatch(callers["a"], "heartbeat", {})
        for resource_type, field in (("agents", "agent_id"), ("tasks", "title")):
            assert await pages(workbench.call, field, resource_type=resource_type, since=since) == [["a", "c"]]


@ONCE_FOR_ALL
@given_any(st.lists(st.booleans(), max_size=12), st.integers(1, 5), st.booleans(), st.sampled_from([None, 0]))
async def test_pages_add_up_to_the_whole_despite_writes_between_them(
    hall: Workbench, wordy: list[bool], limit: int, searching: bool, since: int | None
) -> None:
    session = (await hall.call("create_session", project_id="alpha", name=str(uuid4())))["id"]
    for number, with_word in enumerate(wordy):
        await write(hall, str(number), session, content="word" if with_word else "other")
    filters = {"session_id": session} | ({"search": "word"} if searching else {})
    seen: list[str] = []
    cursor, more = None, True
    while more:
        page = await hall.call("read", limit=limit, cursor=cursor, filters=filters, since=since)
        seen += [row["title"] for row in page["data"]]
        cursor, more = page["next_cursor"], page["next_cursor"] is not None
        await write(hall, "later", session, content="word")
    assert seen == [str(number) for number, with_word in reversed([*enumerate(wordy)]) if with_word or not searching]


async def test_pages_of_all_resources_continue_while_rows_are_deleted(hall: Workbench) -> None:
    for number in range(7):
        await write(hall, str(number), ("one", "two")[number % 2])

    async def read_and_delete(name: str, **how: Any) -> dict[str, Any]:
        page = await hall.call(name, **how)
        for row in page["data"]:
            await hall.call("delete_context", context_id=row["id"])
        return page

    assert await pages(read_and_delete, limit=3) == [[*"654"], [*"321"], ["0"]]


async def test_agents_tasks_and_contexts_of_a_team_are_read_in_pages(hall: Workbench, admit: Admit) -> None:
    await hall.call("create_team", name="red", session_id="one")
    agents = [await admit(name, team_id="red", access_level="team_level") for name in ("ada", "bob", "eve")]
    for number in range(10):
        await hall.dispatch(agents[number % 3].caller, "write", {"content": {"title": str(number)}})
    assert await pages(called_by(hall, agents[0].caller), limit=3) == [[*"987"], [*"654"], [*"321"], ["0"]]
    for number in range(3):
        await given.task(hall, str(number))
    for resource_type, field, names in (("agents", "agent_id", ["ada", "bob", "eve"]), ("tasks", "title", [*"012"])):
        found = await pages(hall.call, field, resource_type=resource_type, limit=2)
        assert [len(page) for page in found] == [2, 1]
        assert sorted(name for page in found for name in page) == names


async def test_an_agent_reads_contexts_after_a_number_of_its_own_session(hall: Workbench, admit: Admit) -> None:
    ada = await admit("ada", session_id="two", access_level="session_level")
    await hall.dispatch(ada.caller, "write", {"content": {"title": "elsewhere"}})
    await hall.call("update_agent", agent_id="ada", changes={"session_id": "one"})
    for title in ("a", "b", "c"):
        await write(hall, title)
    call = called_by(hall, await hall.renewed(ada.caller))
    assert await pages(call, limit=1, filters={"sequence_after": 1}) == [["c"], ["b"]]
    assert await pages(call) == [["c", "b", "a", "elsewhere"]]


@pytest.mark.parametrize("resource_type", ["projects", "sessions", "teams"])
async def test_the_hierarchy_is_read_as_it_is_listed(hall: Workbench, admit: Admit, resource_type: str) -> None:
    for name, session in (("red", "one"), ("blue", "two")):
        await hall.call("create_team", name=name, session_id=session)
    ada = await admit("ada", team_id="red")
    for call in (hall.call, called_by(hall, ada.caller)):
        read, rows = await call("read", resource_type=resource_type, limit=1), await call(f"list_{resource_type}")
        assert (read["data"], read["total"]) == (rows[resource_type][:1], rows["total"])
    assert read["total"] == 1


LEVELS = {"self_only": ["ada"], "team_level": ["ada", "bob"], "session_level": ["ada", "bob", "eve"]}
"""The agents that ada sees."""


@pytest.mark.parametrize("level", LEVELS)
async def test_the_access_level_limits_which_agents_are_read(hall: Workbench, admit: Admit, level: str) -> None:
    await hall.call("create_team", name="red", session_id="one")
    ada = await admit("ada", team_id="red", access_level=level)
    await admit("bob", team_id="red")
    await admit("eve", session_id="one")
    await admit("zoe", session_id="two")

    async def read(**filters: str) -> list[str]:
        arguments = {"resource_type": "agents", "filters": filters}
        return sorted(row["agent_id"] for row in (await hall.dispatch(ada.caller, "read", arguments))["data"])

    assert await read() == LEVELS[level]
    assert await read(team_id="red") == [name for name in LEVELS[level] if name != "eve"]
    active, assigned = [await read(session_id="one", status=status) for status in ("active", "assigned")]
    assert sorted(active + assigned) == LEVELS[level]
    assert await read(status="revoked") == []
    listed = await hall.dispatch(ada.caller, "list_agents", {})
    read_all = await hall.dispatch(ada.caller, "read", {"resource_type": "agents"})
    assert [row["agent_id"] for row in read_all["data"]] == [row["agent_id"] for row in listed["agents"]]
    assert read_all["total"] == listed["total"] == len(LEVELS[level])


@pytest.mark.parametrize("level", LEVELS)
async def test_tasks_are_read_as_they_are_listed_without_other_sessions(
    hall: Workbench, admit: Admit, level: str
) -> None:
    ada = await admit("ada", session_id="one", access_level=level)
    made = {}
    for title, session in {"of one": "one", "of two": "two", "of none": None}.items():
        made[title] = await given.task(hall, title, session_id=session)
    await hall.dispatch(ada.caller, "claim_task", {"task_id": made["of one"]})

    async def read(**filters: str) -> list[dict[str, Any]]:
        arguments = {"resource_type": "tasks", "filters": filters}
        return list((await hall.dispatch(ada.caller, "read", arguments))["data"])

    assert [row["title"] for row in await read()] == ["of one", "of none"]
    assert await read() == (await hall.dispatch(ada.caller, "list_tasks", {}))["tasks"]
    assert [row["title"] for row in await read(status="pending", persona_id="Implementer")] == ["of none"]
    assert await read(persona_id="tester") == []
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await hall.dispatch(ada.caller, "get_task", {"task_id": made["of two"]})


async def test_changed_permissions_of_a_tool_hold_from_the_next_read_and_write(hall: Workbench, admit: Admit) -> None:
    ada = await admit("ada", session_id="one")

    async def code(name: str, **arguments: Any) -> str:
        try:
            await hall.dispatch(await hall.renewed(ada.caller), name, arguments)
        except WorkbenchError as error:
            return error.code
        return "ok"

    content = {"title": "t"}
    everything = ("contexts", "sessions", "projects", "teams", "agents", "tasks")
    assert [await code("read", resource_type=name) for name in everything] == ["ok"] * 6
    for allowed in everything:
        await hall.call("update_agent_tool", tool_id="write", permissions={"read": [allowed]})
        found = [await code("read", resource_type=name) for name in everything]
        assert found == ["ok" if name == allowed else "NOT_PERMITTED" for name in everything]
    assert await code("write", content=content) == "NOT_PERMITTED"
    await hall.call("update_agent_tool", tool_id="write", permissions={"write": ["contexts"]})
    assert await code("write", content=content) == "ok"
    assert [row["title"] for row in (await hall.call("read"))["data"]] == ["t"]
    await hall.call("update_agent_tool", tool_id="write", enabled=False)
    assert (await code("write", content=content), await code("read")) == ("TOOL_DISABLED", "ok")
    with pytest.raises(Refused, match="TOOL_DISABLED"):  # who was let in before it was switched off
        await hall.dispatch(ada.caller, "write", {"content": content})
