"""Messages that stop a stock node of koi-net: each is refused with a code and counted, and nothing else is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rid_lib.types import KoiNetEdge

from tests.services.personalities.nodes import NEW, UPDATE, Here, Other, event
from workbench.errors import BadInput
from workbench.koi.envelope import signed
from workbench.koi.incoming import opened
from workbench.koi.nodes import edge_rid
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    Event,
    EventsPayload,
    FetchBundles,
    FetchManifests,
    ManifestsPayload,
    Payload,
)
from workbench.koi.requests import BROADCAST, RIDS
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import receiving
from workbench.services.personalities.pipeline import final

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

Wrong = Callable[[Here, Other, Other], Event]
STOPPERS: dict[str, tuple[Wrong, str]] = {
    "contents that are no edge": (
        lambda here, ada, bob: event(NEW, ada.bundle(edge_rid(here.rid, ada.rid), {"source": "nobody"})),
        "KOI_CONTENTS_INVALID",
    ),
    "an edge between others": (
        lambda here, ada, bob: event(NEW, ada.bundle(KoiNetEdge("0" * 64), ada.edge(here.rid, ada.rid).contents or {})),
        "KOI_WRONG_RID",
    ),
    "contents that are no node": (
        lambda here, ada, bob: event(NEW, ada.bundle(bob.rid, {"node_type": "OTHER"})),
        "KOI_CONTENTS_INVALID",
    ),
    "a node without a key": (
        lambda here, ada, bob: event(NEW, bob.node(public_key=None)),
        "KOI_INVALID_KEY",
    ),
    "a RID alone, of something that the sender does not have": (
        lambda here, ada, bob: Event(rid=AgentPersonality("missing", "1"), event_type=NEW),
        "KOI_NO_MANIFEST",
    ),
    "a manifest alone, of something that the sender does not have": (
        lambda here, ada, bob: ada.personality("missing").model_copy(update={"contents": None}),
        "KOI_NO_CONTENTS",
    ),
    "empty contents": (
        lambda here, ada, bob: event(NEW, ada.bundle(AgentPersonality("empty", "1"), {})),
        "KOI_WRONG_RID",
    ),
    "a RID that is too long": (
        lambda here, ada, bob: event(NEW, ada.bundle(AgentPersonality("a" * 300, "1"), ada.profile("a" * 300))),
        "KOI_RID_INVALID",
    ),
    "another type of RID": (
        lambda here, ada, bob: Event.model_validate({"rid": "orn:example.note:1", "event_type": "NEW"}),
        "KOI_RID_INVALID",
    ),
    "a profile whose owner is no node": (
        lambda here, ada, bob: event(
            NEW, ada.bundle(AgentPersonality("odd", "1"), ada.profile("odd") | {"node_rid": "orn:example.other:1"})
        ),
        "KOI_CONTENTS_INVALID",
    ),
    "a profile with traits of another form": (
        lambda here, ada, bob: event(
            NEW, ada.bundle(AgentPersonality("odd", "1"), ada.profile("odd") | {"traits": {"a": 1}})
        ),
        "KOI_CONTENTS_INVALID",
    ),
    "a profile that is too large": (
        lambda here, ada, bob: ada.personality("large", story="x" * 300_000),
        "KOI_TOO_LARGE",
    ),
}


@pytest.mark.parametrize("wrong", STOPPERS)
async def test_one_wrong_event_harms_no_other(here: Here, ada: Other, bob: Other, wrong: str) -> None:
    make, code = STOPPERS[wrong]
    await here.receive(ada, *ada.handshake())
    status, _ = await here.receive(ada, ada.personality("before"), make(here, ada, bob), ada.personality("after"))
    assert status == 200
    assert await here.registry() == {"before/1", "after/1"}
    assert await here.refusals() == {code: 1}


async def test_an_error_in_this_node_costs_one_event(here: Here, ada: Other, monkeypatch: pytest.MonkeyPatch) -> None:
    put = final._put_personality

    def failing(tx: object, profile: object, bundle: object) -> None:
        put(tx, profile, bundle)  # type: ignore[arg-type]
        if profile.rid.name == "bad":  # type: ignore[attr-defined]
            raise ZeroDivisionError

    monkeypatch.setattr(final, "_put_personality", failing)
    await here.receive(ada, *ada.handshake())
    await here.receive(ada, ada.personality("before"), ada.personality("bad"), ada.personality("after"))
    assert await here.registry() == {"before/1", "after/1"}
    assert await here.refusals() == {"KOI_FAILED": 1}
    published = [subject for kind, subject in await here.events() if kind == "personality.published"]
    assert published == ["personality:before/1", "personality:after/1"]


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b'{"payload": {}}', b"\xff\xfe", b'{"payload":' * 500, b"{" + b'"a":1,' * 10]
)
async def test_what_is_no_envelope_is_refused_and_counted(here: Here, raw: bytes) -> None:
    with pytest.raises(BadInput, match="KOI_MALFORMED"):
        await receiving.answer(here.ctx, BROADCAST, raw)
    assert await here.refusals() == {"KOI_MALFORMED": 1}


async def test_a_request_at_the_wrong_endpoint_is_refused(here: Here, ada: Other) -> None:
    with pytest.raises(BadInput, match="KOI_MALFORMED"):
        await here.ask(ada, RIDS, EventsPayload(events=[]))


@dataclass
class Provider:
    """The endpoints of another node, on a real port: it provides some bundles."""

    node: Other
    bundles: dict[str, Bundle] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, raw: bytes) -> bytes:
        envelope = opened(raw).envelope
        self.asked.append(envelope.payload.type)
        return signed(self.node.identity, self._payload(envelope.payload), envelope.source_node)

    def _payload(self, payload: Payload) -> Payload:
        if isinstance(payload, FetchManifests):
            found = [self.bundles[str(rid)].manifest for rid in payload.rids if str(rid) in self.bundles]
            return ManifestsPayload(manifests=found)
        assert isinstance(payload, FetchBundles)
        return BundlesPayload(bundles=[self.bundles[str(rid)] for rid in payload.rids if str(rid) in self.bundles])


@contextmanager
def serving(provider: Provider) -> Iterator[str]:
    """Its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = provider.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/koi-net"
        finally:
            server.shutdown()
            thread.join()


async def test_what_an_event_lacks_is_fetched_from_its_sender_at_once(here: Here, ada: Other) -> None:
    provider = Provider(ada)
    with serving(provider) as url:
        introduced = event(NEW, ada.node(base_url=url))
        first, second = ada.personality("first"), ada.personality("second")
        for one in (first, second):
            assert one.manifest is not None
            provider.bundles[str(one.rid)] = Bundle(manifest=one.manifest, contents=one.contents or {})
        await here.receive(ada, introduced)
        await here.receive(
            ada,
            Event(rid=first.rid, event_type=NEW),
            second.model_copy(update={"contents": None}),
            Event(rid=AgentPersonality("missing", "1"), event_type=NEW),
        )
    assert await here.registry() == {"first/1", "second/1"}
    assert provider.asked == ["fetch_manifests", "fetch_bundles"]
    assert await here.refusals() == {"KOI_NO_MANIFEST": 1}


async def test_what_is_known_already_is_not_fetched(here: Here, ada: Other) -> None:
    provider = Provider(ada)
    with serving(provider) as url:
        known = ada.personality("helper")
        await here.receive(ada, event(NEW, ada.node(base_url=url)), known)
        await here.receive(ada, known.model_copy(update={"contents": None, "event_type": UPDATE}))
    assert provider.asked == []
    assert await here.refusals() == {}


async def test_a_bundle_that_was_fetched_is_checked_like_any_other(here: Here, ada: Other, bob: Other) -> None:
    provider = Provider(ada)
    with serving(provider) as url:
        stolen = bob.personality("helper")
        assert stolen.manifest is not None
        provider.bundles[str(stolen.rid)] = Bundle(manifest=stolen.manifest, contents={"rid": str(stolen.rid)})
        await here.receive(ada, event(NEW, ada.node(base_url=url)))
        await here.receive(ada, Event(rid=stolen.rid, event_type=NEW))
        provider.bundles[str(stolen.rid)] = Bundle(manifest=stolen.manifest, contents=stolen.contents or {})
        await here.receive(ada, Event(rid=stolen.rid, event_type=NEW))
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_HASH_MISMATCH": 1, "KOI_NOT_THE_OWNER": 1}


async def test_others_are_answered_with_what_this_node_has(here: Here, ada: Other) -> None:
    await here.publish("own")
    await here.receive(ada, *ada.handshake())
    status, body = await here.ask(ada, "/bundles/fetch", FetchBundles(rids=[AgentPersonality("own", "1"), ada.rid]))
    assert status == 200
    answered = opened(body)
    assert answered.envelope.target_node == ada.rid
    assert answered.is_signed_with(here.ctx.node.presence.identity.public_key)  # type: ignore[union-attr]
    names = [bundle["manifest"]["rid"] for bundle in json.loads(body)["payload"]["bundles"]]
    assert names == ["orn:agent.personality:own/1", str(ada.rid)]
