"""Messages that stop a stock node of koi-net: each is refused with a code and counted, and nothing else is lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from rid_lib import RID
from rid_lib.types import KoiNetEdge

from tests.koi.listening import always, listening, response
from tests.services.personalities.nodes import NEW, UPDATE, Here, Other, event
from workbench.errors import BadInput
from workbench.koi.envelope import signed
from workbench.koi.incoming import opened
from workbench.koi.nodes import edge_rid
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    EventsPayload,
    FetchBundles,
    FetchManifests,
    KoiEvent,
    ManifestsPayload,
    Payload,
)
from workbench.koi.requests import BROADCAST, RIDS
from workbench.model import SECOND
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.exchange import receiving
from workbench.services.personalities.pipeline import final

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ODD = AgentPersonality("odd", "1")


def wrong_events(here: Here, ada: Other, bob: Other) -> dict[str, list[KoiEvent]]:
    """Malformed events of ada, by the code with which each is refused."""

    def new(rid: RID, contents: dict[str, Any]) -> KoiEvent:
        return event(NEW, ada.bundle(rid, contents))

    odd = ada.personality("odd", mood="calm")
    return {
        "KOI_CONTENTS_INVALID": [
            new(edge_rid(here.rid, ada.rid), {"source": "nobody"}),
            new(bob.rid, {"node_type": "OTHER"}),
            new(ODD, ada.profile("odd") | {"node_rid": "orn:example.other:1"}),
            new(ODD, ada.profile("odd") | {"traits": {"a": 1}}),
        ],
        "KOI_WRONG_RID": [
            new(KoiNetEdge("0" * 64), ada.edge(here.rid, ada.rid).contents or {}),
            new(ODD, {}),
            new(ODD, ada.profile("elsewhere")),
            odd.model_copy(update={"rid": AgentPersonality("elsewhere", "1")}),
        ],
        "KOI_RID_INVALID": [
            new(AgentPersonality("a" * 300, "1"), ada.profile("a" * 300)),
            KoiEvent.model_validate({"rid": "orn:example.note:1", "event_type": "NEW"}),
        ],
        "KOI_INVALID_KEY": [event(NEW, bob.node(public_key=None))],
        "KOI_NO_MANIFEST": [KoiEvent(rid=ODD, event_type=NEW)],  # the sender does not have it either
        "KOI_NO_CONTENTS": [odd.model_copy(update={"contents": None})],
        "KOI_HASH_MISMATCH": [odd.model_copy(update={"contents": ada.profile("odd")})],
        "KOI_TOO_LARGE": [ada.personality("odd", story="x" * 300_000)],
        "KOI_FROM_THE_FUTURE": [ada.personality("odd", at=here.clock.now + 301 * SECOND)],
    }


async def test_a_wrong_event_is_counted_by_its_code_and_harms_no_other(here: Here, ada: Other, bob: Other) -> None:
    await here.meet(ada)
    registry, refusals = set(), dict[str, int]()
    for code, events in wrong_events(here, ada, bob).items():
        for number, wrong in enumerate(events, 1):
            before, after = f"before-{code}-{number}", f"after-{code}-{number}"
            soon = here.clock.now + 299 * SECOND  # clocks may differ by that
            status, _ = await here.receive(ada, ada.personality(before, at=soon), wrong, ada.personality(after))
            registry |= {f"{before}/1", f"{after}/1"}
            refusals[code] = number
            assert (status, await here.refusals(), await here.registry()) == (200, refusals, registry), wrong


async def test_an_internal_error_costs_one_event(here: Here, ada: Other, monkeypatch: pytest.MonkeyPatch) -> None:
    put = final._put_personality

    def failing(tx: object, profile: object, bundle: object) -> None:
        put(tx, profile, bundle)  # type: ignore[arg-type]
        if profile.rid.name == "bad":  # type: ignore[attr-defined]
            raise ZeroDivisionError

    monkeypatch.setattr(final, "_put_personality", failing)
    await here.meet(ada)
    await here.receive(ada, ada.personality("before"), ada.personality("bad"), ada.personality("after"))
    assert await here.registry() == {"before/1", "after/1"}
    assert await here.refusals() == {"KOI_FAILED": 1}
    published = [subject for kind, subject in await here.events() if kind == "personality.published"]
    assert published == ["personality:before/1", "personality:after/1"]


async def test_malformed_envelopes_and_requests_at_the_wrong_endpoint_are_refused(here: Here, ada: Other) -> None:
    wrong = [b"", b"null", b"[]", b'{"payload": {}}', b"\xff\xfe", b'{"payload":' * 500, b"{" + b'"a":1,' * 10]
    for raw in wrong:
        with pytest.raises(BadInput, match="KOI_MALFORMED"):
            await receiving.answer(here.ctx, BROADCAST, raw)
    assert await here.refusals() == {"KOI_MALFORMED": len(wrong)}
    with pytest.raises(BadInput, match="KOI_MALFORMED"):
        await here.ask(ada, RIDS, EventsPayload(events=[]))


@dataclass
class Provider:
    """The endpoints of another node: it provides some bundles."""

    node: Other
    bundles: dict[RID, Bundle] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def provide(self, provided: KoiEvent, contents: dict[str, Any] | None = None) -> None:
        """Have what an event is about, perhaps with other contents."""
        assert provided.manifest is not None
        self.bundles[provided.rid] = Bundle(manifest=provided.manifest, contents=contents or provided.contents or {})

    async def answer(self, raw: bytes) -> bytes:
        envelope = opened(raw).envelope
        self.asked.append(envelope.payload.type)
        return response(signed(self.node.identity, self._payload(envelope.payload), envelope.source_node))

    def _payload(self, payload: Payload) -> Payload:
        assert isinstance(payload, FetchManifests | FetchBundles)
        found = [self.bundles[rid] for rid in payload.rids if rid in self.bundles]
        if isinstance(payload, FetchManifests):
            return ManifestsPayload(manifests=[bundle.manifest for bundle in found])
        return BundlesPayload(bundles=found)


@pytest.fixture
async def provider(here: Here, ada: Other) -> AsyncIterator[Provider]:
    """The endpoints of ada, who is known here."""
    made = Provider(ada)
    async with listening(always(made.answer)) as url:
        await here.receive(ada, event(NEW, ada.node(base_url=f"{url}/koi-net")))
        yield made


async def test_missing_parts_of_an_event_are_fetched_from_its_sender_unless_known(
    here: Here, ada: Other, provider: Provider
) -> None:
    known, first, second = (ada.personality(name) for name in ("known", "first", "second"))
    await here.receive(ada, known)
    await here.receive(ada, known.model_copy(update={"contents": None, "event_type": UPDATE}))
    assert provider.asked == []
    provider.provide(first)
    provider.provide(second)
    without_contents = second.model_copy(update={"contents": None})
    await here.receive(
        ada, KoiEvent(rid=first.rid, event_type=NEW), without_contents, KoiEvent(rid=ODD, event_type=NEW)
    )
    assert await here.registry() == {"known/1", "first/1", "second/1"}
    assert provider.asked == ["fetch_manifests", "fetch_bundles"]
    assert await here.refusals() == {"KOI_NO_MANIFEST": 1}


async def test_a_bundle_that_was_fetched_is_checked_like_any_other(
    here: Here, ada: Other, bob: Other, provider: Provider
) -> None:
    stolen = bob.personality("helper")
    for contents in ({"rid": str(stolen.rid)}, None):
        provider.provide(stolen, contents)
        await here.receive(ada, KoiEvent(rid=stolen.rid, event_type=NEW))
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_HASH_MISMATCH": 1, "KOI_NOT_THE_OWNER": 1}


async def test_a_fetch_is_answered_with_the_bundles_that_this_node_has(here: Here, ada: Other) -> None:
    await here.publish("own")
    await here.meet(ada)
    status, body = await here.ask(ada, "/bundles/fetch", FetchBundles(rids=[AgentPersonality("own", "1"), ada.rid]))
    assert status == 200
    answered = opened(body)
    assert answered.envelope.target_node == ada.rid
    assert answered.is_signed_with(here.identity.public_key)
    names = [bundle["manifest"]["rid"] for bundle in json.loads(body)["payload"]["bundles"]]
    assert names == ["orn:agent.personality:own/1", str(ada.rid)]
