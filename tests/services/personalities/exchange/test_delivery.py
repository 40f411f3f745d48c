"""An event that a peer does not accept, for any reason, delays no other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.koi.listening import always, listening, response
from tests.services.personalities.nodes import NEW, Here, Other, event
from workbench.errors import Refused, Unavailable
from workbench.koi.envelope import signed
from workbench.koi.incoming import opened
from workbench.koi.nodes import EdgeType
from workbench.koi.payloads import EventsPayload, FetchManifests, ManifestsPayload
from workbench.koi.requests import KoiPeer
from workbench.services.personalities.exchange import delivery, reconciliation

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

BAD_SIGNATURE = ("400 Bad Request", b'{"type":"error_response","error":"invalid_signature"}')
FAILED = ("500 Internal Server Error", b"Internal Server Error")
NEVER = ("422 Unprocessable Entity", b'{"detail":"no"}')
Answer = tuple[str, bytes]


@dataclass
class Picky:
    """A node that answers some events in a way of its own.

    Attributes:
        answers: by the name of a personality, the answer to a request that has an event about it.
        to_all: the answer to every request with events or without.
        accepted: the names of the personalities of which it has accepted events, in order.
        requests: how many it has received.
        meanwhile: what happens while it answers.
    """

    node: Other
    here: Here
    answers: dict[str, Answer] = field(default_factory=dict)
    to_all: Answer | None = None
    accepted: list[str] = field(default_factory=list)
    requests: int = 0
    meanwhile: Callable[[], Awaitable[object]] | None = None
    url: str = ""

    @property
    def peer(self) -> KoiPeer:
        """The address and key of the peer."""
        return KoiPeer(self.node.rid, self.url, self.node.identity.public_key)

    async def deliver(self) -> None:
        await delivery.deliver(self.here.ctx, self.peer)

    async def answer(self, raw: bytes) -> bytes:
        """The response to an envelope."""
        self.requests += 1
        if self.meanwhile is not None:
            await self.meanwhile()
        payload = opened(raw).envelope.payload
        if isinstance(payload, FetchManifests):
            return response(signed(self.node.identity, ManifestsPayload(manifests=[]), self.here.rid))
        assert isinstance(payload, EventsPayload)
        names: list[Any] = [getattr(event.rid, "name", None) for event in payload.events]
        found = [self.answers[name] for name in names if name in self.answers]
        if self.to_all or found:
            status, body = self.to_all or found[0]
            return response(body, status)
        self.accepted += names
        return response(b"null")


@pytest.fixture
async def picky(here: Here, ada: Other) -> AsyncIterator[Picky]:
    """A subscriber of this node's personalities."""
    made = Picky(ada, here)
    async with listening(always(made.answer)) as url:
        made.url = f"{url}/koi-net"
        await here.receive(ada, event(NEW, ada.node(base_url=made.url)), ada.edge(here.rid, ada.rid))
        yield made


async def rejections(here: Here) -> Mapping[str, tuple[str, bool]]:
    """By the name of a personality, the code and whether it is final."""
    found = (await here.workbench.call("get_peer", peer="ada"))["rejections"]
    return {one["rid"].split(":")[2].split("/")[0]: (one["code"], one["is_final"]) for one in found}


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        (BAD_SIGNATURE, ("KOI_REFUSED", True)),
        (FAILED, ("KOI_BAD_ANSWER", False)),
        (NEVER, ("KOI_BAD_ANSWER", True)),
    ],
)
@pytest.mark.parametrize("names", [("bad",), ("bad", "one", "two"), ("one", "bad", "two")], ids=" ".join)
async def test_an_event_that_a_peer_always_rejects_is_recorded_and_the_others_arrive(
    here: Here, picky: Picky, names: tuple[str, ...], answer: Answer, recorded: tuple[str, bool]
) -> None:
    picky.answers["bad"] = answer
    for name in names:
        await here.publish(name)
    await picky.deliver()
    assert picky.accepted == [name for name in names if name != "bad"]
    assert await rejections(here) == {"bad": recorded}
    assert await here.outbox() == set()
    await here.publish("later")
    await picky.deliver()
    assert picky.accepted[-1] == "later"


@pytest.mark.parametrize("answer", [BAD_SIGNATURE, FAILED])
async def test_events_wait_if_the_peer_rejects_every_request(here: Here, picky: Picky, answer: Answer) -> None:
    picky.to_all = answer
    for name in ("one", "two"):
        await here.publish(name)
    with pytest.raises((Refused, Unavailable)):
        await picky.deliver()
    assert picky.requests == 2  # both together, and none at all
    assert await rejections(here) == {}
    picky.to_all = None
    await picky.deliver()
    assert picky.accepted == ["one", "two"]


@pytest.mark.parametrize("answer", [BAD_SIGNATURE, FAILED])
async def test_an_event_is_not_blamed_for_what_has_just_ended(here: Here, picky: Picky, answer: Answer) -> None:
    async def recovers() -> None:
        picky.to_all = answer if picky.requests == 1 else None

    picky.meanwhile = recovers
    await here.publish("one")
    await picky.deliver()
    assert picky.accepted == ["one"]
    assert await rejections(here) == {}


@pytest.mark.parametrize(("answer", "is_sent_again"), [(FAILED, True), (NEVER, False), (BAD_SIGNATURE, False)])
async def test_a_comparison_resends_the_events_that_a_peer_failed_to_accept(
    here: Here, picky: Picky, answer: Answer, is_sent_again: bool
) -> None:
    picky.answers["bad"] = answer
    await here.publish("bad")
    await picky.deliver()
    picky.answers.clear()
    await reconciliation.compare(here.ctx, picky.peer)
    await picky.deliver()
    assert picky.accepted == (["bad"] if is_sent_again else [])
    assert set(await rejections(here)) == (set() if is_sent_again else {"bad"})


async def test_what_is_published_after_a_peer_began_to_poll_waits_though_an_event_is_on_its_way(
    here: Here, ada: Other, picky: Picky
) -> None:
    async def polls_from_now_on() -> None:
        here.clock.forward(1)
        await here.receive(ada, ada.edge(here.rid, ada.rid, edge_type=EdgeType.POLL))
        await here.publish("later")

    picky.meanwhile = polls_from_now_on
    await here.publish("early")
    await picky.deliver()
    assert picky.accepted == ["early"]
    assert await here.outbox() == {("ada", "orn:agent.personality:later/1", "NEW")}
