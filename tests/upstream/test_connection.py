"""The connection to an MCP server: it is watched, and made again when the server is lost. A real process each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.upstream.servers import LARGEST, connecting, http_server, program, running
from workbench.errors import Unavailable
from workbench.upstream import connection
from workbench.upstream.call import ElicitationReply, ServerQuestion
from workbench.upstream.client import Target
from workbench.upstream.connection import ServerState, Upstream, UpstreamLimits
from workbench.upstream.offers import MOST_TOOLS, Offers, list_offers
from workbench.upstream.program_transport import LogTail, ServerProgram

if TYPE_CHECKING:
    from mcp.client import Client

pytestmark = [pytest.mark.anyio, pytest.mark.long]

ERAS = ["legacy", "auto"]
ADD = {"a": 1, "b": 2}


@pytest.fixture(params=["program", "http"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The tests' server, on standard input and output, and at a URL."""
    if request.param == "program":
        yield program()
        return
    with http_server() as address:
        yield address


def server_process() -> psutil.Process:
    """The process of the only server."""
    [server] = [child for child in psutil.Process().children() if "tools_server.py" in " ".join(child.cmdline())]
    return server


@pytest.mark.parametrize("era", ERAS)
async def test_every_feature_of_a_server_works_over_every_transport_in_every_era(target: Target, era: str) -> None:
    async with running(connecting(target, era), check=1_000) as watched:
        upstream = await watched.ready()
        assert {"add", "count", "fill", "grow", "hang", "paint"} < set(upstream.offers.tools)
        assert upstream.about == "small 1.5"
        await _calls_with_progress(upstream)
        await _questions_reach_the_caller_whose_call_it_is(upstream)
        with pytest.raises(Unavailable, match=r"TOOL_SERVER_ERROR.*(?i:sampling)"):
            await upstream.call("sample", {})
        await _an_answer_that_is_too_large_is_an_error_of_its_call_alone(upstream)
        await upstream.call("grow", {})
        await watched.until(lambda one: "more" in one.offers.tools)
        assert (await upstream.call("more", {})).is_error is False
        hanging = asyncio.create_task(upstream.call("hang", {}))
        assert (await upstream.call("add", ADD)).structured_content == {"result": 3}  # the other one is on its way
    with pytest.raises(Unavailable) as failed:
        await hanging
    assert failed.value.code == "TOOL_SERVER_DOWN", failed.value
    assert upstream.state is ServerState.STOPPED


async def _calls_with_progress(upstream: Upstream) -> None:
    steps: list[tuple[float, str | None]] = []

    async def note(done: float, total: float | None, text: str | None) -> None:
        steps.append((done, text))

    assert (await upstream.call("add", ADD)).structured_content == {"result": 3}
    assert (await upstream.call("count", {"to": 2}, note)).is_error is False
    assert steps[-1] == (1, "number 1")
    assert (await upstream.call("add", {"a": "x"})).is_error is True


async def _questions_reach_the_caller_whose_call_it_is(upstream: Upstream) -> None:
    asked: list[ServerQuestion] = []

    async def ask(question: ServerQuestion) -> ElicitationReply:
        asked.append(question)
        return ElicitationReply("accept", {"colour": "red"})

    done = await upstream.call("paint", {"what": "the door"}, ask=ask)
    assert done.structured_content == {"result": "red"}
    assert [question.message for question in asked] == ["Which colour for the door?"]
    assert asked[0].schema["properties"]["colour"]["type"] == "string"
    done = await upstream.call("paint", {"what": "the door"})
    assert done.structured_content == {"result": "no colour for the door"}
    said = "“Which colour for the door?” and was told that this was cancelled: nobody can be asked for this caller."
    assert said in str(done.content[-1])


async def _an_answer_that_is_too_large_is_an_error_of_its_call_alone(upstream: Upstream) -> None:
    other = asyncio.create_task(upstream.call("fill", {"size": LARGEST // 4}))
    with pytest.raises(Unavailable, match=f"TOOL_RESULT_TOO_LARGE.*{LARGEST:,} bytes"):
        await upstream.call("fill", {"size": 50 << 20})
    assert len(str((await other).structured_content)) > LARGEST // 4
    assert upstream.state is ServerState.READY


async def test_a_question_that_could_be_of_several_calls_is_declined() -> None:
    async def ask(question: ServerQuestion) -> ElicitationReply:
        raise AssertionError("it could be the answer to the other call")

    async with running(connecting(program(), "legacy")) as watched:
        upstream = await watched.ready()
        hanging = asyncio.create_task(upstream.call("hang", {}))
        await asyncio.sleep(0)  # it is under way
        done = await upstream.call("paint", {"what": "the door"}, ask=ask)
        assert done.structured_content == {"result": "no colour for the door"}
        hanging.cancel()


@pytest.mark.parametrize("era", ERAS)
async def test_a_flood_of_progress_is_thinned_and_a_cancellation_reaches_the_server(tmp_path: Path, era: str) -> None:
    steps: list[float] = []

    async def note(done: float, total: float | None, text: str | None) -> None:
        steps.append(done)

    mark, tail = tmp_path / "cancelled", LogTail()
    async with running(connecting(program(f"cancelled={mark}"), era, tail)) as watched:
        upstream = await watched.ready()
        flooding = asyncio.create_task(upstream.call("count", {"to": 6_000}, note))
        assert (await upstream.call("add", ADD)).structured_content == {"result": 3}
        await flooding
        assert len(steps) < 2_000
        assert steps == sorted(steps)

        hanging = asyncio.create_task(upstream.call("hang", {}))
        while "hang began" not in tail.text:
            await asyncio.sleep(0.02)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        async with asyncio.timeout(20):
            while not mark.exists():
                await asyncio.sleep(0.02)
        assert (await upstream.call("add", ADD)).structured_content == {"result": 3}


async def test_a_server_that_dies_in_mid_call_or_while_it_is_idle_is_started_again() -> None:
    async with running(connecting(program()), check=1_000) as watched:
        upstream = await watched.ready()
        with pytest.raises(Unavailable, match=r"TOOL_SERVER_DOWN.*it ended before it had answered"):
            await upstream.call("exit_now", {})
        await watched.until(lambda one: one.state is ServerState.FAILED)
        assert "add" in upstream.offers.tools, "its tools stay listed while it is down"
        with pytest.raises(Unavailable, match="TOOL_SERVER_DOWN"):
            await upstream.call("add", ADD)
        await watched.ready()
        assert (await upstream.call("add", ADD)).structured_content == {"result": 3}

        server_process().kill()
        await watched.until(lambda one: one.state is not ServerState.READY)
        await watched.ready()


async def test_a_server_that_dies_right_after_it_has_listed_its_tools_is_not_taken_for_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed, goes_on = asyncio.Event(), asyncio.Event()

    async def list_and_wait(client: Client, name: str) -> Offers:
        offers = await list_offers(client, name)
        listed.set()
        await goes_on.wait()
        return offers

    async with running(connecting(program())) as watched:
        upstream = await watched.ready()
        monkeypatch.setattr(connection, "list_offers", list_and_wait)
        await upstream.call("grow", {})
        await listed.wait()
        with pytest.raises(Unavailable, match="TOOL_SERVER_DOWN"):
            await upstream.call("exit_now", {})
        goes_on.set()
        await watched.until(lambda one: one.restarts > 0 or one.state is ServerState.READY)
        assert upstream.restarts > 0


async def test_a_server_that_hangs_while_it_is_idle_is_ended_and_one_that_is_busy_is_not() -> None:
    async with running(connecting(program(), "legacy"), check=0.1) as watched:
        upstream = await watched.ready()
        usual, upstream._limits = upstream._limits, UpstreamLimits(start=0.5, check=0.1)
        for busy in ("sleep", "grow_and_sleep"):  # longer than it may take to answer
            done = await upstream.call(busy, {"seconds": 1.5})
            assert done.structured_content == {"result": "slept"}
            assert (upstream.state, upstream.restarts) == (ServerState.READY, 0)
        (server := server_process()).suspend()
        await watched.until(lambda one: one.state is ServerState.FAILED)
        assert upstream.problem == "it did not answer within 0.5 s"
        upstream._limits = usual
        await watched.until(lambda one: one.state is ServerState.READY)
        assert not server.is_running()


async def test_a_server_that_does_not_answer_in_time_is_down_until_it_does(tmp_path: Path) -> None:
    switch = tmp_path / "on"
    async with running(connecting(program(f"switch={switch}")), start=1.0) as watched:
        upstream = await watched.until(lambda one: one.state is ServerState.FAILED)
        assert upstream.problem == "it did not answer within 1 s"
        assert await asyncio.wait_for(upstream.settled(), 1) is None
        switch.touch()


async def test_a_program_or_a_url_where_no_server_is_has_a_reason_and_is_tried_again(tmp_path: Path) -> None:
    with http_server() as address:
        pass
    for nothing, problem in (
        (ServerProgram(["/no/such/program"], {}, tmp_path), "No such file"),
        (address, "ConnectError"),
    ):
        async with running(connecting(nothing)) as watched:
            upstream = await watched.until(lambda one: one.state is ServerState.FAILED)
            assert problem in (upstream.problem or "")
            await watched.until(lambda one: one.restarts > 0)


async def test_a_tool_that_takes_too_long_is_given_up_but_not_while_it_asks() -> None:
    async def ask(question: ServerQuestion) -> ElicitationReply:
        await asyncio.sleep(2.2)  # longer than a call may take
        return ElicitationReply("accept", {"colour": "red"})

    async with running(connecting(program()), answer=2.0) as watched:
        upstream = await watched.ready()
        done = await upstream.call("paint", {"what": "the door"}, ask=ask)
        assert done.structured_content == {"result": "red"}
        with pytest.raises(Unavailable, match="TOOL_TIMEOUT"):
            await upstream.call("hang", {})


async def test_500_tools_are_listed_and_of_1500_the_first() -> None:
    tail = LogTail()
    async with running(connecting(program("tools=500"), tail=tail)) as watched:
        offers = (await watched.ready()).offers
        assert len([name for name in offers.tools if name.startswith("tool_")]) == 500
        assert "greetings from the tests' server" in tail.text, "what it writes to its standard error is kept"
    async with running(connecting(program("tools=1500"), largest=10 << 20)) as watched:
        offers = (await watched.ready()).offers
        assert len(offers.tools) == MOST_TOOLS
        assert offers.left_out > 500
        assert "the first 1,000 tools are used" in offers.problems[0]
