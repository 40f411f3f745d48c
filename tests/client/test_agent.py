"""The client for agents in Python, against served workbenches, across breaks, and as a process of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests import given
from tests.conftest import Admit, Child, Served, limited, nested
from workbench.client import Agent, SyncAgent, subscription
from workbench.client import agent as module
from workbench.client.retry import backoff
from workbench.errors import BadInput, NotFound, Refused, Unauthenticated, Unavailable
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(served: Served) -> str:
    await given.project(served.workbench)
    return str((await given.session(served.workbench, "Day one"))["id"])


@pytest.fixture
def decide(served: Served) -> Callable[..., Any]:
    """`await decide("approve", choices={…})`: a person answers the next registration."""

    async def decided(how: str, **more: Any) -> None:
        async with served.workbench.feed.subscribe("approval.requested", after=0) as asked:
            approval = int((await anext(asked)).subject.partition(":")[2])
        await served.workbench.call(how, approval_id=approval, **more)

    return decided


def at_once() -> Iterator[float]:
    """Pauses for who waits for nearly nothing between attempts to connect."""
    return itertools.repeat(0.01)


def port_of(served: Served) -> int:
    port = urlsplit(served.info.url).port
    assert port is not None
    return port


# Entering


async def test_an_agent_registers_waits_and_works(
    served: Served, decide: Any, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.store.log_sync._fdatasync", lambda fd: time.sleep(0.1))  # also while that is synced
    kept: list[str] = []
    choices = {"agent_id": "ada", "session_id": session}
    deciding = asyncio.create_task(decide("approve", choices=choices))
    async with Agent(served.info.url, name="Ada L.", capabilities={"nlp": True}, keep=kept.append) as agent:
        assert (agent.agent_id, [agent.token]) == ("ada", kept)
        written = await agent.write("First", "…", {"draft": True})
        assert (written["status"], written["sequence_number"]) == ("success", 1)
        [row] = (await agent.read("contexts", limit=5))["data"]
        assert (row["title"], row["metadata"]) == ("First", {"draft": True})
        assert (await agent.call("whoami"))["agent_id"] == "ada"
    await deciding
    async with Agent(served.info.ws_url, token=kept[0]) as again:
        assert again.agent_id == "ada"


async def test_a_rejection_is_raised_with_its_reason(served: Served, decide: Any) -> None:
    deciding = asyncio.create_task(decide("reject", reason="Not today"))
    with pytest.raises(Refused, match=r"REJECTED.*Not today"):
        async with Agent(served.info.url, name="Eve"):
            pass
    await deciding


async def test_a_token_that_is_not_admitted_yet_waits_for_admission(served: Served) -> None:
    registration = await served.workbench.call("register", name="Ada")
    coming = asyncio.create_task(Agent(served.info.url, token=registration["token"]).__aenter__())
    async with served.workbench.feed.subscribe() as anything:
        await served.workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "ada"})
        await anext(anything)
    agent = await coming
    assert agent.agent_id == "ada"
    await agent.__aexit__()


async def test_an_agent_that_may_not_enter_gets_the_reason(served: Served, admit: Admit) -> None:
    async def enter(**choices: str) -> None:
        async with Agent(served.info.url, **choices):
            raise AssertionError

    ada = await admit("ada")
    with pytest.raises(Unauthenticated, match="TOKEN_REQUIRED"):
        await enter(agent_id="ada")
    with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
        await enter(token=f"wba_{'x' * 43}")
    await served.workbench.call("allow_agent", agent_id="somebody")
    with pytest.raises(Refused, match="NOT_ALLOWLISTED"):
        await enter(token=ada.token)
    await served.servers.stop()
    with pytest.raises(Unavailable, match="NO_SERVER"):
        await enter()


async def test_an_agent_that_a_migration_brought_needs_its_id_only(served: Served, admit: Admit) -> None:
    await admit("old")
    brought = Query("brought", "UPDATE agents SET id_only = 1 WHERE assigned_agent_id = :agent_id")
    await served.workbench.store.write(lambda tx: tx.run(brought, agent_id="old"))
    async with Agent(served.info.url, agent_id="old") as agent:
        assert (await agent.call("whoami"))["agent_id"] == "old"


# Calls


async def test_the_client_raises_the_errors_of_the_server(served: Served, admit: Admit) -> None:
    ada = await admit("ada", tool="read")
    async with Agent(served.info.url, token=ada.token) as agent:
        with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
            await agent.call("get_task", task_id=10**9)
        with pytest.raises(Refused, match="FORBIDDEN"):
            await agent.write("No", "…")
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await agent.read(limit=0)
        with pytest.raises(NotFound, match="UNKNOWN_OPERATION"):
            await agent.call("dance")


async def test_arguments_that_are_not_json_fail_and_delay_no_other_call(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with Agent(served.info.url, token=ada.token) as agent:
        for unfit in (float("nan"), object(), "\ud800"):
            with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
                await agent.call("ping", unfit=unfit)
        asked = [agent.call("ping"), agent.call("ping", deep=nested(81)), agent.call("ping")]
        first, second, third = await asyncio.gather(*asked, return_exceptions=True)
        assert (first, third) == ({"ok": True}, {"ok": True})
        assert isinstance(second, BadInput)


@limited(max_frame_bytes=4_096)
async def test_a_message_that_is_too_large_fails_and_the_agent_lives(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with Agent(served.info.url, token=ada.token, chance=lambda: 0.99) as agent:
        for action in ("get_task", "write"):
            with pytest.raises(BadInput, match="TOO_LARGE"):
                await agent.call(action, padding="x" * 5_000)
        assert (await agent.call("whoami"))["agent_id"] == "ada"


@limited(max_messages_per_second=20)
async def test_a_flood_of_calls_fails_and_others_succeed(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with Agent(served.info.url, token=ada.token) as agent:
        asked = await asyncio.gather(*[agent.call("whoami") for _ in range(400)], return_exceptions=True)
        refused = [answer for answer in asked if isinstance(answer, Refused)]
        assert refused
        assert {answer.code for answer in refused} == {"FLOODING"}
        assert (await agent.call("whoami"))["agent_id"] == "ada"


async def test_many_calls_at_once_are_all_answered(served: Served, admit: Admit) -> None:
    ada = await admit("ada")
    async with Agent(served.info.url, token=ada.token) as agent:
        answers = await asyncio.gather(*[agent.call("whoami") for _ in range(300)])
    assert {answer["agent_id"] for answer in answers} == {"ada"}


# Breaks


@pytest.fixture
async def steady(served: Served, admit: Admit) -> AsyncIterator[Agent]:
    """An agent in its session that waits for nothing between attempts to connect."""
    ada = await admit("ada")
    async with Agent(served.info.url, token=ada.token, pauses=at_once) as agent:
        yield agent


async def test_after_a_break_reads_are_sent_again_and_changes_fail(served: Served, steady: Agent) -> None:
    last = (await steady.call("list_events", after=None))["next_after"]
    before = served.workbench.feed.readers
    change = asyncio.create_task(steady.call("heartbeat_and_get_tasks", wait_seconds=30))
    reading = asyncio.create_task(steady.call("list_events", after=last, wait_seconds=30, kinds=["task.created"]))
    while served.workbench.feed.readers < before + 2:
        await asyncio.sleep(0.001)
    await served.servers.stop()
    with pytest.raises(Unavailable, match="NO_SERVER"):
        await change
    await served.servers.start(port_of(served))
    await given.task(served.workbench, "New", "tester")
    assert [event["kind"] for event in (await reading)["events"]] == ["task.created"]


async def test_a_call_during_a_break_is_sent_when_it_is_over(served: Served, steady: Agent) -> None:
    await served.servers.stop()
    asked = asyncio.create_task(steady.call("whoami"))
    await served.servers.start(port_of(served))
    assert (await asked)["agent_id"] == "ada"


@pytest.mark.parametrize("named", ["by name", "by the current directory"])
async def test_an_agent_finds_the_server_again_where_it_is_restarted(
    served: Served, admit: Admit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    ada, project, old = await admit("ada"), served.workbench.settings.project, port_of(served)
    monkeypatch.chdir(project)
    found = project if named == "by name" else None
    async with (
        Agent(served.info.url, token=ada.token, pauses=at_once, project=found) as agent,
        aclosing(agent.subscribe("task.created", after=0)) as events,
    ):
        first = asyncio.create_task(anext(events))
        await agent.call("whoami")
        await served.servers.stop()
        monkeypatch.chdir("/")
        async with given.another_server(old, tmp_path / "other"):
            asked = asyncio.create_task(agent.call("whoami"))
            assert (await served.servers.start(0)).url != served.info.url
            assert (await asked)["agent_id"] == "ada"
            await given.task(served.workbench, "New", "tester")
            assert (await first)["data"]["title"] == "New"


async def test_the_project_tells_an_agent_where_its_server_is(
    served: Served, admit: Admit, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await admit("ada")
    async with Agent("http://127.0.0.1:1", token=ada.token, project=repository) as agent:
        assert agent.agent_id == "ada"
    (removed := tmp_path / "removed").mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    async with Agent(served.info.url, token=ada.token) as agent:
        assert agent.agent_id == "ada"


async def test_the_token_of_an_agent_is_sent_to_the_server_of_its_project_only(
    served: Served, admit: Admit, repository: Path
) -> None:
    ada, texts = await admit("ada"), list[str | bytes]()

    async def listen(socket: ServerConnection) -> None:
        async for text in socket:
            texts.append(text)

    async with Agent(served.info.url, token=ada.token, pauses=at_once, project=repository) as agent:
        await served.servers.stop()
        connected = asyncio.Event()
        async with serve(listen, "127.0.0.1", port_of(served), process_request=lambda *_: connected.set()):
            asked = asyncio.create_task(agent.call("whoami"))
            await connected.wait()
            await served.servers.start(0)
            assert (await asked)["agent_id"] == "ada"
    assert texts == []


async def test_waiting_for_admission_continues_after_a_break(served: Served, decide: Any) -> None:
    agent = Agent(served.info.url, name="Ada", pauses=at_once)
    coming = asyncio.create_task(agent.__aenter__())
    while agent.token is None:
        await asyncio.sleep(0.001)
    await served.servers.stop()
    await served.servers.start(port_of(served))
    await decide("approve", choices={"agent_id": "ada"})
    assert await coming is agent
    assert (await agent.call("whoami"))["agent_id"] == "ada"
    await agent.__aexit__()


async def test_a_revoked_agent_fails_and_does_not_reconnect(served: Served, steady: Agent) -> None:
    await served.workbench.call("revoke_agent", agent_id="ada")
    with pytest.raises((Unauthenticated, Unavailable)):
        await steady.call("heartbeat_and_get_tasks")
    with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
        while True:
            await steady.call("whoami")


async def test_an_agent_gives_up_when_the_server_is_away_too_long(served: Served, admit: Admit) -> None:
    ada, times, pauses = await admit("ada"), iter(range(0, 10**6, 100)), list[float]()

    def noted() -> Iterator[float]:
        for pause in backoff(lambda: 0.0):
            pauses.append(pause)
            yield 0.0

    clock = lambda: float(next(times))  # noqa: E731
    async with Agent(served.info.url, token=ada.token, pauses=noted, clock=clock) as agent:
        await served.servers.stop()
        with pytest.raises(Unavailable, match="NO_SERVER"):
            await agent.call("whoami")
    assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]


# Events


async def test_events_go_on_across_breaks_without_gap_or_repetition(served: Served, steady: Agent) -> None:
    call, titles = served.workbench.call, []
    async with aclosing(steady.subscribe("task.created", after=0)) as events:
        for number in range(9):
            await call("create_task", title=str(number), persona_id="tester")
            if number % 3 == 1:
                titles.append((await anext(events))["data"]["title"])
                await served.servers.stop()
            if number % 3 == 2:
                await served.servers.start(port_of(served))
        while len(titles) < 9:
            titles.append((await anext(events))["data"]["title"])
    assert titles == [str(number) for number in range(9)]


async def test_subscriptions_are_kept_apart_end_with_their_reader_and_may_be_refused(
    served: Served, steady: Agent
) -> None:
    async with (
        aclosing(steady.subscribe("task.*", after=0)) as tasks,
        aclosing(steady.subscribe("agent.*", after=0)) as agents,
        aclosing(steady.subscribe(after=-1)) as none,
    ):
        assert (await anext(agents))["kind"] == "agent.registered"
        await given.task(served.workbench, "One", "tester")
        assert (await anext(tasks))["kind"] == "task.created"
        assert (await anext(agents))["kind"] == "agent.assigned"
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await anext(none)
    assert (await steady.call("unsubscribe"))["ended"] == 0


async def test_a_slow_reader_misses_nothing(served: Served, steady: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "UNREAD_LIMIT", 3)
    async with aclosing(steady.subscribe("task.created", after=0)) as events:
        for number in range(30):
            await given.task(served.workbench, str(number), "tester")
        assert [(await anext(events))["data"]["title"] for _ in range(30)] == [str(n) for n in range(30)]


# Without a loop, and as a process


async def test_a_synchronous_agent_works_alike_and_leaves_no_thread_when_refused(
    served: Served, admit: Admit, session: str
) -> None:
    stranger = SyncAgent(served.info.url, token=f"wba_{'x' * 43}")
    with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
        await asyncio.to_thread(stranger.__enter__)
    assert [thread for thread in threading.enumerate() if thread.name == "workbench-agent"] == []
    ada = await admit("ada", session_id=session)

    def work() -> list[Any]:
        with SyncAgent(served.info.url, token=ada.token) as agent:
            agent.write("Title", "content")
            rows = agent.read()["data"]
            event = next(iter(agent.subscribe("context.written", after=0)))
            return [agent.agent_id, agent.token, rows[0]["title"], event["kind"], agent.call("ping")]

    assert await asyncio.to_thread(work) == ["ada", ada.token, "Title", "context.written", {"ok": True}]


async def test_the_agent_of_the_documentation_works(
    served: Served, decide: Any, admit: Admit, session: str, child: Child, tmp_path: Path
) -> None:
    example = (module.__doc__ or "").partition("A whole agent::\n")[2].partition("\nThe agent stays connected")[0]
    script, token = tmp_path / "oracle.py", tmp_path / "token"
    script.write_text(textwrap.dedent(example))
    assert len([line for line in script.read_text().splitlines() if line.strip()]) <= 25
    process = child(script, served.info.url, token)
    choices = {"agent_id": "oracle", "session_id": session, "access_level": "session_level"}
    await decide("approve", choices=choices)
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "admitted as oracle\n"
    content = {"title": "Is it done?", "content": ""}
    await served.workbench.call("write", content=content, session_id=session)
    assert await asyncio.to_thread(process.wait) == 0
    [answer, question] = (await served.workbench.call("read"))["data"]
    assert (answer["title"], answer["content"]) == ("Answer", "Is it done? Yes.")
    assert answer["metadata"] == {"to": question["id"]}
    assert token.read_text().startswith("wba_")
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.read_text() not in json.dumps(await served.workbench.call("list_agents"))
