"""Requests to call a trait that are refused: each with a code, and without any effect."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.koi.listening import listening, response
from tests.services.personalities.conftest import NewSide
from tests.services.personalities.two_nodes import Side
from workbench.errors import Unavailable
from workbench.koi.envelope import signed
from workbench.koi.identity import load_or_create
from workbench.koi.incoming import opened
from workbench.koi.payloads import Payload, PollEvents, TraitCall, TraitResult
from workbench.model import SECOND, iso
from workbench.rules.personalities.rid import AgentPersonality

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CROSSED = "KOI_OUTDATED"
VALUES = ([1, 2], "[1, 2]", 3, True, {"a": None})
MOOD = {"description": "How it feels.", "value": "calm"}


@pytest.fixture(autouse=True)
def _all_is_closed() -> Iterator[None]:
    """Each test closes what it opens."""
    gc.collect()
    yield
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
    assert [str(one.message) for one in warned] == []


@pytest.fixture
async def here(new_side: NewSide) -> AsyncIterator[Side]:
    """The project whose trait is called."""
    async with new_side("here") as opened_side:
        await opened_side.publish("bob", mood=MOOD, age={"value": 7, "is_callable": False})
        yield opened_side


@pytest.fixture
async def there(new_side: NewSide, here: Side) -> AsyncIterator[Side]:
    """The project that may call it."""
    async with new_side("there", here) as opened_side:
        await here.call("set_peer_permission", peer=opened_side.rid, permission="always")
        yield opened_side


def call_of(there: Side, **more: Any) -> TraitCall:
    """A call that is in order, but for `more`."""
    rid, sent_at = AgentPersonality("bob", "1.0"), iso(there.ctx.store.now())
    described = {"call_id": "c1", "sent_at": sent_at, "rid": rid, "trait": "mood", "arguments": {}, "caller": "eve"}
    return TraitCall.model_validate({**described, "seconds": 30.0, **more})


async def post(here: Side, body: bytes | str, path: str = "bob/tools/call/mood", **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=30) as client:
        return await client.post(f"{here.info.url}/agents/{path}", content=body, headers=headers)


async def send(here: Side, there: Side, payload: Payload, path: str = "bob/tools/call/mood") -> httpx2.Response:
    return await post(here, signed(there.identity, payload, here.identity.rid), path)


def result_of(response: httpx2.Response, here: Side) -> TraitResult:
    """The result in an answer that the node here has signed."""
    assert response.status_code == 200
    incoming = opened(response.content)
    assert incoming.is_signed_with(here.identity.public_key)
    assert isinstance(incoming.envelope.payload, TraitResult)
    return incoming.envelope.payload


def code_of(response: httpx2.Response, here: Side) -> str:
    error = result_of(response, here).error
    assert error is not None
    return str(error["code"])


async def sent(here: Side, there: Side, path: str = "bob/tools/call/mood", **call: Any) -> str:
    """The code of the error in the answer to a call that the node there has signed."""
    return code_of(await send(here, there, call_of(there, **call), path), here)


async def permit(here: Side, there: Side, permission: str, **more: Any) -> None:
    await here.call("set_peer_permission", peer=there.rid, permission=permission, **more)


async def refusals(here: Side, there: Side) -> dict[str, int]:
    """The numbers of the other node's refused calls, by code. Events that crossed while both met are no calls."""
    peer = await here.call("get_peer", peer=there.rid)
    return {one["code"]: one["count"] for one in peer["refusals"] if one["code"] != CROSSED}


async def count_refusals(here: Side, there: Side) -> int:
    """The number of refused calls of any sender."""
    return int((await here.call("get_network"))["refused"])


async def test_a_call_in_order_is_answered_and_is_not_run_again(
    here: Side, there: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = signed(there.identity, call_of(there), here.identity.rid)
    result = result_of(await post(here, body), here)
    assert (result.call_id, result.content, result.error) == ("c1", [{"type": "text", "text": "calm"}], None)
    assert code_of(await post(here, body), here) == "CALL_REPLAYED"
    here.ctx.node.received_calls._received.clear()  # as after a restart
    assert code_of(await post(here, body), here) == "CALL_REPLAYED"
    assert len(await here.records()) == 1
    with monkeypatch.context() as patch:
        patch.setattr(here.ctx.node, "presence", None)  # it takes part no more
        response = await post(here, body)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "KOI_NOT_JOINED")


async def test_an_unsigned_trait_call_is_refused_and_counted_for_no_node(
    here: Side, there: Side, tmp_path: Path
) -> None:
    unsigned = [b"", b"{}", b"[1]", b'{"payload": {"type": "trait_call"}}', b"\xff"]
    for body in unsigned:
        response = await post(here, body)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "CALL_NOT_SIGNED"), body
    response = await send(here, there, PollEvents())
    assert (response.status_code, response.json()["error"]["code"]) == (400, "KOI_MALFORMED")
    assert await refusals(here, there) == {}
    assert await count_refusals(here, there) == len(unsigned) + 1

    body = signed(there.identity, call_of(there), here.identity.rid)
    assert (await post(here, body.replace(b'"eve"', b'"eva"'))).json()["error"] == "invalid_signature"
    wrong_target = signed(there.identity, call_of(there), there.identity.rid)
    assert (await post(here, wrong_target)).json()["error"] == "invalid_target"
    stranger = load_or_create(tmp_path / "stranger.pem", "stranger")
    unknown = signed(stranger, call_of(there), here.identity.rid)
    assert (await post(here, unknown)).json()["error"] == "unknown_node"
    assert await here.records() == []


async def test_an_outdated_call_or_one_for_another_trait_is_refused(here: Side, there: Side) -> None:
    numbers = count(1)

    async def code(path: str = "bob/tools/call/mood", **more: Any) -> str:
        return await sent(here, there, path, call_id=f"c{next(numbers)}", **more)

    for seconds in (-61, 61):
        assert await code(sent_at=iso(there.ctx.store.now() + seconds * SECOND)) == "CALL_TOO_OLD", seconds
    for sent_at in ("yesterday", "", "99999-01-01", "0001-01-01"):
        assert await code(sent_at=sent_at) in ("KOI_MALFORMED", "CALL_TOO_OLD"), sent_at
    for other in ({"trait": "other"}, {"rid": AgentPersonality("ada", "1")}, {"rid": here.identity.rid}):
        assert await code(**other) == "KOI_MALFORMED", other
    await there.publish("eve", mood=MOOD)
    await here.knows("eve", "mood")  # which is the node's there: no third one calls it through this one
    for agent, trait in (("nobody", "mood"), ("bob", "hope"), ("bob", "age"), ("eve", "mood")):
        found = await code(f"{agent}/tools/call/{trait}", rid=AgentPersonality(agent, "1.0"), trait=trait)
        assert found == "UNKNOWN_TOOL", (agent, trait)
    assert await code(rid=AgentPersonality("bob", "9")) == "UNKNOWN_TOOL"  # published is 1.0
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    await here.publish("cleo", mood={**MOOD, "input_schema": schema})
    before = await refusals(here, there)
    assert await code("cleo/tools/call/mood", rid=AgentPersonality("cleo", "1.0")) == "INVALID_ARGUMENTS"
    assert await refusals(here, there) == before  # what fails is no refusal of the node
    assert [one["error_code"] for one in await here.records()] == ["INVALID_ARGUMENTS"]


async def test_every_refused_call_is_counted_for_its_node(here: Side, there: Side) -> None:
    call = call_of(there)
    await send(here, there, call)
    assert code_of(await send(here, there, call), here) == "CALL_REPLAYED"
    old = iso(there.ctx.store.now() - 90 * SECOND)
    assert await sent(here, there, call_id="c2", sent_at=old) == "CALL_TOO_OLD"
    assert await sent(here, there, "bob/tools/call/hope", call_id="c3", trait="hope") == "UNKNOWN_TOOL"
    await permit(here, there, "never")
    assert await sent(here, there, call_id="c4") == "TOOL_FORBIDDEN"
    await permit(here, there, "always", calls_per_minute=1)
    await send(here, there, call_of(there, call_id="c5"))
    assert await sent(here, there, call_id="c6") == "RATE_LIMITED"
    await here.call("block_peer", peer=there.rid)
    assert await sent(here, there, call_id="c7") == "KOI_BLOCKED"
    codes = ["CALL_REPLAYED", "CALL_TOO_OLD", "KOI_BLOCKED", "RATE_LIMITED", "TOOL_FORBIDDEN", "UNKNOWN_TOOL"]
    assert await refusals(here, there) == dict.fromkeys(codes, 1)
    assert await count_refusals(here, there) == len(codes)
    peer = await here.call("get_peer", peer=there.rid)
    assert peer["peer"]["refused"] == len(codes)
    [limited] = [one for one in peer["refusals"] if one["code"] == "RATE_LIMITED"]
    assert limited["last_reason"].startswith("bob__mood: This node may send 1 such calls a minute.")


async def test_a_call_waits_as_long_as_its_caller_and_is_counted_if_the_operator_refuses_it(
    here: Side, there: Side
) -> None:
    await permit(here, there, "ask")
    assert await sent(here, there, seconds=0.2) == "NOT_DECIDED"
    assert await here.question(0) == []
    calling = asyncio.create_task(sent(here, there, call_id="c2"))
    [asked] = await here.question()
    await here.call("reject", approval_id=asked["id"])
    assert await calling == "TOOL_DENIED"
    assert await refusals(here, there) == {"TOOL_DENIED": 1}


async def test_a_caller_with_a_token_sends_plain_arguments_and_an_agent_needs_a_grant(here: Side) -> None:
    token = f"Bearer {here.workbench.operator_token}"
    response = await post(here, b'{"anything": 1}', Authorization=token)
    assert (response.status_code, response.json()["result"]) == (200, "calm")
    await here.publish("dan", **{f"v{at}": {"value": value} for at, value in enumerate(VALUES)})
    for at, value in enumerate(VALUES):
        assert (await post(here, b"{}", f"dan/tools/call/v{at}", Authorization=token)).json()["result"] == value
    tool = await here.call("get_tool", name="dan__v0")
    assert (tool["read_only"], tool["destructive"], tool["open_world"]) == (True, False, False)  # it returns a value
    assert (await post(here, b"", "bob/tools/call/age", Authorization=token)).json()["error"]["code"] == "UNKNOWN_TOOL"
    assert (await post(here, b"[1]", Authorization=token)).json()["error"]["code"] == "BAD_MESSAGE"
    wrong = await post(here, b"{}", Authorization="Bearer wbo_wrong")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "INVALID_TOKEN")

    registration = await here.call("register", name="eve", persona_id="implementer")
    token = f"Bearer {registration['token']}"
    assert (await post(here, b"{}", Authorization=token)).status_code in (401, 403)
    await here.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "eve"})
    assert (await post(here, b"{}", Authorization=token)).status_code == 403
    await here.call("update_agent", agent_id="eve", changes={"tools": ["bob"]})
    await here.call("set_tool_permission", name="bob__mood", permission="always")
    assert (await post(here, b"{}", Authorization=token)).json()["result"] == "calm"


async def test_a_node_that_forgot_this_one_is_introduced_to_it_again(here: Side, new_side: NewSide) -> None:
    async with new_side("late") as late:
        await late.believe(here, here.info.url, "bob", mood=MOOD)
        call = asyncio.create_task(late.call("call_tool", name="bob__mood", arguments={}))
        [asked] = await here.question()
        await here.call("approve", approval_id=asked["id"])
        assert (await call)["result"] == "calm"


@pytest.mark.parametrize("status", ["200 OK", "307 Temporary Redirect\r\nLocation: {here}", "400 Bad Request"])
async def test_nothing_is_sent_to_an_address_where_the_node_itself_does_not_answer(
    here: Side, new_side: NewSide, status: str
) -> None:
    reached = []

    async def service(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append((await reader.readuntil(b"\r\n")).decode())
        head = status.format(here=f"{here.info.url}/koi-net/rids/fetch")
        writer.write(response(b"null", head, "Connection: close\r\n"))

    async with listening(service) as address, new_side("late") as late:
        await late.believe(here, address, "bob", mood=MOOD)
        with pytest.raises(Unavailable, match="KOI_BAD_ANSWER"):
            await late.call("call_tool", name="bob__mood", arguments={"a": 1})
    paths = {line.split()[1] for line in reached}
    assert "/koi-net/rids/fetch" in paths
    assert not any(path.startswith("/agents") for path in paths)
