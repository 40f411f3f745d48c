"""Progress reports of a trait reach its caller at another node, signed and at a limited rate."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from tests import given
from tests.conftest import Served
from tests.koi.listening import always, listening, response
from tests.services.personalities.test_trait_calls import allow, code_of, finish, here, is_cancelled, take_call, there
from tests.services.personalities.two_nodes import Side
from tests.shells.mcp.sessions import session
from workbench.errors import Conflict
from workbench.koi.envelope import signed
from workbench.koi.incoming import opened
from workbench.koi.payloads import Payload, TraitCall, TraitProgress, TraitResult
from workbench.koi.requests import FOLLOWED, LARGEST_REPORT, KoiPeer
from workbench.model import iso
from workbench.ops import OPERATOR
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.personalities import incoming_calls
from workbench.services.tools.tool import ToolOutcome

pytestmark = [pytest.mark.anyio, pytest.mark.long]

__all__ = ["here", "there"]
Seen = tuple[float, float | None, str | None]


@pytest.fixture(autouse=True)
async def _allowed(here: Side, there: Side) -> None:
    await allow(here, there)


class Following:
    """A call of the trait by the operator there, with what is reported of it."""

    def __init__(self, there: Side) -> None:
        self.seen: asyncio.Queue[Seen] = asyncio.Queue()
        around = Surroundings(progress=self._note)
        calling = there.workbench.call_tool(OPERATOR, "ada__mean", {}, around)
        self.call: asyncio.Task[ToolOutcome] = asyncio.create_task(calling)

    async def _note(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.put_nowait((progress, total, message))


async def report(here: Side, call_id: str, done: float, message: str | None = None) -> None:
    """Report as the kernel here, that runs the call."""
    await here.call("report_tool_progress", host_id="k", call_id=call_id, progress=done, total=3, message=message)


async def test_the_caller_at_another_node_gets_the_progress_of_the_call(here: Side, there: Side) -> None:
    here.ctx.secrets.add(["sk-very-secret-1234"])
    following = Following(there)
    call_id = (await take_call(here))["call_id"]
    await report(here, call_id, 1, "one of three, with sk-very-secret-1234 \x1b[2J")
    progress, total, message = await following.seen.get()
    assert (progress, total) == (1, 3)
    assert message is not None
    assert message.startswith("one of three")
    assert "sk-very" not in message
    assert "\x1b" not in message
    await report(here, call_id, 2)
    assert await following.seen.get() == (2, 3, None)
    await finish(here, call_id)
    assert (await following.call).value == "2.0"


async def test_an_mcp_client_gets_the_progress_of_a_function_of_another_project(here: Side, there: Side) -> None:
    seen: asyncio.Queue[tuple[float, str | None]] = asyncio.Queue()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.put_nowait((progress, message))

    served = Served(there.workbench, there.info, there.servers)
    async with session(served, there.workbench.operator_token) as client:
        call = asyncio.create_task(client.call_tool("ada__mean", {}, progress_callback=note))
        call_id = (await take_call(here))["call_id"]
        await report(here, call_id, 1, "half of it")
        while (await seen.get())[1] != "half of it":
            pass
        await finish(here, call_id)
        assert not (await call).is_error


async def test_the_caller_is_told_that_the_operator_there_is_asked_and_did_not_decide(here: Side, there: Side) -> None:
    await allow(here, there, "ask")
    there.workbench._ctx = there.ctx._replace(settings=there.ctx.settings.model_copy(update={"koi_call_seconds": 2.0}))
    following = Following(there)
    assert await following.seen.get() == (0, None, "It waits for the operator of here.")
    with pytest.raises(Conflict, match=r"NOT_DECIDED.*The operator of here did not decide.*It did not begin"):
        await following.call
    assert await here.question(0) == []
    following = Following(there)
    [asked] = await here.question()
    await here.call("approve", approval_id=asked["id"])
    while (seen := await following.seen.get())[2] != "The operator of here has allowed it, and it runs.":
        assert seen[2] == "It waits for the operator of here."
    following.call.cancel()


async def test_a_call_whose_tool_asks_the_operator_something_has_begun(
    here: Side, there: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asks(ctx: Any, scope: Any, name: str, arguments: Any, around: Surroundings) -> None:
        assert around.follow is not None
        for approval_id in (None, 7):
            around.follow("c1", approval_id)
        await asyncio.Event().wait()

    monkeypatch.setattr(incoming_calls, "calls", SimpleNamespace(call=asks))
    there.workbench._ctx = there.ctx._replace(settings=there.ctx.settings.model_copy(update={"koi_call_seconds": 2.0}))
    following = Following(there)
    assert await following.seen.get() == (0, None, "It waits for the operator of here.")
    assert (await given.refusal(following.call)).code == "TOOL_TIMEOUT"


async def reporting(here: Side, there: Side) -> tuple[Following, str]:
    following, call_id = Following(there), (await take_call(here))["call_id"]
    await report(here, call_id, 1)
    await following.seen.get()
    return following, call_id


async def test_a_call_that_reports_is_cancelled_and_refused_as_every_other(here: Side, there: Side) -> None:
    following, call_id = await reporting(here, there)
    following.call.cancel()
    assert await is_cancelled(here, call_id)
    following, _ = await reporting(here, there)
    await here.call("block_peer", peer=there.rid)
    assert await code_of(following.call) == "KOI_BLOCKED"


async def test_servers_that_stop_end_a_call_that_reports_with_a_code(here: Side, there: Side) -> None:
    following, _ = await reporting(here, there)
    await here.servers.stop()
    assert await code_of(following.call) == "TOOL_INTERRUPTED"


def call_of(there: Side) -> TraitCall:
    rid, sent_at = AgentPersonality("ada", "1.0"), iso(there.ctx.store.now())
    return TraitCall(call_id="c1", sent_at=sent_at, rid=rid, trait="mean", arguments={}, caller="eve", seconds=30.0)


async def sent(here: Side, there: Side, **headers: str) -> httpx2.Response:
    """The answer to a call; the kernel here reports twice while it runs."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        body = signed(there.identity, call_of(there), here.identity.rid)
        posting = client.post(f"{here.info.url}/agents/ada/tools/call/mean", content=body, headers=headers)
        answering = asyncio.create_task(posting)
        call_id = (await take_call(here))["call_id"]
        for number in range(50):
            await report(here, call_id, number, "x" * 900)
        await finish(here, call_id)
        return await answering


async def test_a_caller_that_does_not_ask_for_reports_gets_the_answer_alone(here: Side, there: Side) -> None:
    response = await sent(here, there)
    assert response.headers["content-type"] == "application/json"
    assert isinstance(opened(response.content).envelope.payload, TraitResult)


async def test_reports_are_signed_few_and_short_and_the_answer_is_the_last_line(here: Side, there: Side) -> None:
    response = await sent(here, there, Accept=FOLLOWED)
    assert response.headers["content-type"] == FOLLOWED
    *reports, answer = response.content.split(b"\n")
    assert 1 <= len(reports) < 50
    for line in [*reports, answer]:
        assert opened(line).is_signed_with(here.identity.public_key)
        assert len(line) <= LARGEST_REPORT
    found = [opened(line).envelope.payload for line in reports]
    assert [one.number for one in found if isinstance(one, TraitProgress)] == list(range(1, len(reports) + 1))
    assert isinstance(opened(answer).envelope.payload, TraitResult)


def by(one: Side, other: Side, payload: Payload) -> bytes:
    """A payload that a node has signed for another one."""
    return signed(one.identity, payload, other.identity.rid)


@pytest.mark.parametrize("kind", [FOLLOWED, "application/json"])
async def test_malformed_progress_reports_harm_no_call(here: Side, there: Side, kind: str) -> None:
    progress = TraitProgress(call_id="c1", number=1, progress=1)
    wrong = [
        b"{",
        b"",
        by(there, there, progress),
        by(here, there, TraitResult(call_id="c1")),
        b"x" * (LARGEST_REPORT + 1),
    ]
    answer = by(here, there, TraitResult(call_id="c1", content=[{"type": "text", "text": "done"}]))
    body = b"\n".join([*wrong, answer] if kind == FOLLOWED else [answer])
    presence, seen = there.ctx.node.presence, []
    assert presence is not None

    async def respond(asked: bytes) -> bytes:
        return response(body, headers=f"Content-Type: {kind}\r\n")

    async def note(payload: Payload) -> None:
        seen.append(payload)

    async with listening(always(respond)) as url:
        peer = KoiPeer(here.identity.rid, url, here.identity.public_key)
        found = await presence.client.follow(peer, "/tools/call/mean", call_of(there), seconds=20, report=note)
    assert isinstance(found, TraitResult)
    assert found.content == [{"type": "text", "text": "done"}]
    assert not [one for one in seen if isinstance(one, TraitProgress)]
