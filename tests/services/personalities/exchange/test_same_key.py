"""What a node does about newer versions of its own, and about another node with its key; without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.koi.listening import always, listening, response
from tests.services.personalities.exchange.test_reconciliation import Answer, Serve, serve, waiting
from tests.services.personalities.nodes import FORGET, UPDATE, Here, Other, event
from workbench.errors import Refused
from workbench.koi.envelope import signed
from workbench.koi.incoming import opened
from workbench.koi.node import Presence
from workbench.koi.nodes import EdgeStatus
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    EventsPayload,
    FetchBundles,
    FetchManifests,
    ManifestsPayload,
    Payload,
    TraitCall,
)
from workbench.koi.requests import BROADCAST
from workbench.model import SECOND
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.exchange import receiving, reconciliation, same_key
from workbench.services.personalities.pipeline.run import handle

__all__ = ["serve"]

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

HELPER = AgentPersonality("helper", "1")
ELSEWHERE = "http://127.0.0.1:9/koi-net"


@pytest.fixture
def presence(here: Here) -> Presence:
    """This node, which began to take part now."""
    presence = here.ctx.node.presence
    assert presence is not None
    presence.began = here.clock.now
    return presence


def itself(here: Here) -> Other:
    """Who signs with the key of this node."""
    return Other(here.identity, here.clock)


def having(*known: Bundle) -> Answer:
    """The answers of a peer that has these bundles."""

    async def answer(asked: Payload) -> Payload:
        if isinstance(asked, FetchBundles):
            return BundlesPayload(bundles=[one for one in known if one.rid in asked.rids])
        assert isinstance(asked, FetchManifests)
        manifests = [one.manifest for one in known]
        kinds = [one for one in manifests if str(one.rid).startswith(tuple(asked.rid_types))]
        return ManifestsPayload(manifests=[one for one in manifests if one.rid in asked.rids] if asked.rids else kinds)

    return answer


async def sent(here: Here, node: Other) -> dict[str, tuple[str, Any, int]]:
    """What a node would be sent of personalities and nodes: the event, the first trait, and the date, by name."""
    found = {}
    for one in await waiting(here, node):
        if one is not None and one.manifest is not None and "edge" not in str(one.rid):
            traits = (one.contents or {}).get("traits") or [{"value": None}]
            found[getattr(one.rid, "name", "")] = (str(one.event_type), traits[0]["value"], one.manifest.at)
    return found


async def test_what_a_peer_has_in_a_newer_form_from_before_a_start_is_dated_anew_and_sent(
    here: Here, ada: Other, serve: Serve, presence: Presence
) -> None:
    await here.publish("helper", mood="one")
    here.clock.forward(60)
    former = itself(here)
    newer = former.bundle(HELPER, former.profile("helper", mood="two"))
    later = former.bundle(AgentPersonality("later", "1"), former.profile("later"))
    here.clock.forward(60)
    presence.began = here.clock.now
    here.clock.forward(1)
    await reconciliation.compare(here.ctx, await serve(ada, having(newer, later)))
    assert await sent(here, ada) == {
        "helper": (UPDATE, "one", here.clock.now),
        "later": (FORGET, None, here.clock.now),
    }
    known = here.ctx.node.directory.find("helper")
    assert known is not None
    assert known.manifest_at == here.clock.now
    assert presence.same_key is None


async def test_what_a_peer_has_in_a_newer_form_than_was_published_since_the_start_is_left_and_said(
    here: Here, ada: Other, serve: Serve, presence: Presence
) -> None:
    await here.publish("helper", mood="one")
    here.clock.forward(60)
    newer = itself(here).bundle(HELPER, itself(here).profile("helper", mood="two"))
    later = itself(here).bundle(AgentPersonality("later", "1"), itself(here).profile("later"))
    peer = await serve(ada, having(newer, later))
    await reconciliation.compare(here.ctx, peer)
    assert await sent(here, ada) == {}
    assert "Another node uses the key of this one" in str((await here.workbench.call("get_network"))["problem"])
    await reconciliation.compare(here.ctx, await serve(ada, having()))
    assert (await here.workbench.call("get_network"))["problem"] is None


async def test_what_a_peer_dates_in_the_future_changes_no_date_here(
    here: Here, ada: Other, serve: Serve, presence: Presence
) -> None:
    await here.publish("helper", mood="one")
    presence.began = here.clock.now + SECOND
    future = here.clock.now + 3_600 * SECOND
    claimed = itself(here).bundle(HELPER, itself(here).profile("helper", mood="two"), future)
    here.clock.forward(60)
    await reconciliation.compare(here.ctx, await serve(ada, having(claimed)))
    known = here.ctx.node.directory.find("helper")
    assert known is not None
    assert known.manifest_at <= here.clock.now


async def test_what_a_subscriber_lacks_is_sent_with_a_date_after_that_of_a_lost_withdrawal(
    here: Here, ada: Other, serve: Serve, presence: Presence
) -> None:
    await here.publish("helper", mood="one")
    here.clock.forward(60)
    presence.began = here.clock.now
    peer = await serve(ada, having())
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.APPROVED))
    await reconciliation.compare(here.ctx, peer)
    assert (await sent(here, ada))["helper"] == ("NEW", "one", here.clock.now)


async def test_a_peer_with_another_bundle_of_this_node_is_sent_its_own(
    here: Here, ada: Other, serve: Serve, presence: Presence
) -> None:
    contents = presence.profile().model_dump(mode="json", by_alias=True)
    await handle(here.ctx, [event(UPDATE, Bundle.generate(here.rid, contents))], None)
    here.clock.forward(60)
    newer = itself(here).bundle(here.rid, contents | {"base_url": ELSEWHERE})
    presence.began = here.clock.now
    await reconciliation.compare(here.ctx, await serve(ada, having(newer)))
    assert [kind for kind, _, at in (await sent(here, ada)).values() if at > newer.manifest.at] == [UPDATE]


@pytest.mark.parametrize("is_answered", [True, False], ids=["this question", "another one"])
async def test_another_node_with_the_key_counts_if_it_answers_the_question_that_was_asked(
    here: Here, presence: Presence, is_answered: bool
) -> None:
    received: list[Payload] = []

    async def respond(body: bytes) -> bytes:
        asked = opened(body).envelope.payload
        received.append(asked)
        if not isinstance(asked, FetchBundles):
            return response(b"null")
        answer = BundlesPayload(bundles=[itself(here).node()], not_found=asked.rids[1:] if is_answered else [])
        return response(signed(here.identity, answer, here.rid))

    async with listening(always(respond)) as url:
        assert await same_key.probe(here.ctx, presence, f"{url}/koi-net") is is_answered
    assert presence.same_key == (f"{url}/koi-net" if is_answered else None)
    told = [one.events[0].contents for one in received if isinstance(one, EventsPayload)]
    assert [(one or {})["base_url"] for one in told] == ([presence.base_url] if is_answered else [])


@pytest.mark.parametrize(("seconds_ago", "is_noted"), [(0, True), (3_600, False)])
async def test_another_node_with_the_key_tells_where_it_is_unless_what_it_said_is_old(
    here: Here, presence: Presence, seconds_ago: int, is_noted: bool
) -> None:
    contents = presence.profile().model_dump(mode="json", by_alias=True) | {"base_url": ELSEWHERE}
    bundle = itself(here).bundle(here.rid, contents, here.clock.now - seconds_ago * SECOND)
    status, body = await here.ask(itself(here), BROADCAST, EventsPayload(events=[event(UPDATE, bundle)]))
    assert (status, json.loads(body)) == (200, None)
    assert presence.same_key == (ELSEWHERE if is_noted else None)
    assert await here.ctx.read(lambda tx: bundles.find(tx, here.rid)) is None


async def test_a_call_with_the_key_of_this_node_is_of_an_unknown_node(here: Here, presence: Presence) -> None:
    call = TraitCall(call_id="c", sent_at="", rid=HELPER, trait="act", arguments={}, caller="", seconds=1)
    incoming = opened(signed(here.identity, call, here.rid))
    with pytest.raises(Refused, match="not known"):
        await receiving.check(here.ctx, incoming)
