"""Envelopes from other nodes: any bytes are read or refused, and a malformed item costs only itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rid_lib.ext.utils import sha256_hash_json

from tests.koi.listening import as_sent
from workbench.errors import BadInput
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity, load_or_create
from workbench.koi.incoming import DEEPEST, LARGE, LONGEST_REASON, opened, received
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    EventsPayload,
    EventType,
    FetchBundles,
    KoiEvent,
    PollEvents,
    RidsPayload,
)
from workbench.koi.rids import ForeignRid
from workbench.rules.personalities.rid import AgentPersonality

GOOD = {"rid": "orn:agent.personality:ada/1", "event_type": "NEW"}
MANIFEST = {"rid": GOOD["rid"], "timestamp": "2026-11-23T00:00:00Z", "sha256_hash": "00"}
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> NodeIdentity:
    return load_or_create(tmp_path_factory.mktemp("ada") / "key.pem", "ada")


def nested(levels: int) -> dict[str, Any]:
    """Objects in objects."""
    return dict(json.loads('{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)))


def events(sender: NodeIdentity, *sent: Any) -> bytes:
    return as_sent(sender, json.dumps({"type": "events_payload", "events": sent}, separators=(",", ":")))


# Round trips


@given(contents=st.dictionaries(st.text(), json_values))
def test_a_signed_envelope_is_read_unchanged(ada: NodeIdentity, contents: dict[str, Any]) -> None:
    bundle = Bundle.generate(AgentPersonality("ada", "1"), contents)
    event = KoiEvent(rid=bundle.rid, event_type=EventType.NEW, manifest=bundle.manifest, contents=contents)
    for payload in (EventsPayload(events=[event]), BundlesPayload(bundles=[bundle])):
        incoming = opened(signed(ada, payload, ada.rid))
        assert incoming.malformed == ()
        assert incoming.envelope.payload == payload
        assert incoming.as_sent == incoming.envelope.unsigned_text()
        assert incoming.is_signed_with(ada.public_key)
    assert sha256_hash_json(contents) == bundle.manifest.sha256_hash


@given(raw=st.binary() | st.text().map(str.encode) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        opened(raw)
    assert caught.value.code == "KOI_MALFORMED"


@given(
    strange=st.lists(json_values | st.fixed_dictionaries({**dict.fromkeys(GOOD, json_values), "manifest": json_values}))
)
def test_a_strange_event_does_not_displace_another(ada: NodeIdentity, strange: list[Any]) -> None:
    text = json.dumps({"type": "events_payload", "events": [*strange, GOOD]})
    incoming = opened(as_sent(ada, text))
    payload = incoming.envelope.payload
    assert isinstance(payload, EventsPayload)
    assert len(payload.events) + len(incoming.malformed) == len(strange) + 1
    assert str(payload.events[-1].rid) == GOOD["rid"]
    assert incoming.is_signed_with(ada.public_key)


# One malformed item


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "orn:agent.personality:ada/1",
        {},
        {"rid": GOOD["rid"]},
        GOOD | {"rid": 1},
        GOOD | {"event_type": "OLD"},
        GOOD | {"manifest": {}},
        GOOD | {"manifest": MANIFEST | {"timestamp": "yesterday"}},
        GOOD | {"manifest": MANIFEST | {"sha256_hash": None}},
        GOOD | {"contents": []},
        GOOD | {"contents": nested(DEEPEST)},
        GOOD | {"contents": {"number": 10**400}},
        GOOD | {"manifest": MANIFEST | {"more": nested(DEEPEST)}},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_a_malformed_event_costs_only_itself_and_the_signature_still_covers_it(ada: NodeIdentity, wrong: Any) -> None:
    incoming = opened(events(ada, GOOD, wrong, GOOD))
    payload = incoming.envelope.payload
    assert isinstance(payload, EventsPayload)
    assert [str(event.rid) for event in payload.events] == [GOOD["rid"]] * 2
    [dropped] = incoming.malformed
    assert dropped.code == "KOI_MALFORMED"
    assert dropped.reason.startswith("events[1]: ")
    assert len(dropped.reason) < LONGEST_REASON + 20
    assert incoming.is_signed_with(ada.public_key)


def test_an_endless_number_costs_only_its_event_and_deep_contents_are_read(ada: NodeIdentity) -> None:
    deep = GOOD | {"contents": nested(DEEPEST - 1)}
    raw = events(ada, GOOD | {"contents": {"number": "HUGE"}}, deep).replace(b'"HUGE"', b"1e999")
    assert [dropped.reason for dropped in opened(raw).malformed] == ["events[0]: a number is too large"]


@pytest.mark.parametrize(
    ("payload", "left"),
    [
        ({"type": "rids_payload", "rids": [1, GOOD["rid"]]}, {"rids": [GOOD["rid"]]}),
        ({"type": "fetch_bundles", "rids": [None, GOOD["rid"]]}, {"rids": [GOOD["rid"]]}),
        ({"type": "manifests_payload", "manifests": [{}], "not_found": [GOOD["rid"], {}]}, {"manifests": []}),
        ({"type": "bundles_payload", "bundles": [{"manifest": MANIFEST}], "deferred": [1]}, {"bundles": []}),
    ],
)
def test_a_malformed_item_is_left_out_of_its_envelope(
    ada: NodeIdentity, payload: dict[str, Any], left: dict[str, Any]
) -> None:
    incoming = opened(as_sent(ada, json.dumps(payload)))
    assert incoming.malformed
    assert left.items() <= incoming.envelope.payload.model_dump(mode="json").items()


def test_a_rid_that_this_node_has_no_use_for_is_kept_as_text(ada: NodeIdentity) -> None:
    payload = opened(signed(ada, RidsPayload(rids=[ForeignRid("no RID")]), ada.rid)).envelope.payload
    assert isinstance(payload, RidsPayload)
    assert [str(rid) for rid in payload.rids] == ["no RID"]


# What is refused as a whole


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"null", b"[]", b'"text"', b"{}", b"[" * 100_000, b"\xef\xbb\xbf{}"),
        *(b'{"payload":null}', b'{"payload":[]}', b'{"payload":{}}', b'{"payload":"\xff"}', b'{"payload":"\\ud800"}'),
        b'{"payload":{"type":"events_payload","events":{}}}',
        b'{"payload":{"type":"events_payload","events":NaN}}',
        b'{"payload":{"type":"poll_events","limit":-1}}',
        b'{"payload":{"type":"poll_events","limit":' + b"9" * 5_000 + b"}}",
        b'{"payload":{"type":"poll_events"},"source_node":"orn:koi-net.node:a+b","target_node":"x","signature":""}',
    ],
    ids=lambda raw: raw[:50].decode("ascii", "ignore").replace("\\", ""),
)
def test_bytes_that_are_no_envelope_are_refused_with_a_reason(raw: bytes) -> None:
    with pytest.raises(BadInput, match="no envelope of KOI-net") as caught:
        opened(raw)
    assert len(caught.value.message) < LONGEST_REASON + 100


@pytest.mark.anyio
async def test_the_loop_goes_on_while_a_large_envelope_is_read(ada: NodeIdentity) -> None:
    small, large = events(ada, GOOD), events(ada, *[GOOD] * 2_000)
    assert len(small) < LARGE < len(large)
    reading, turns = asyncio.create_task(received(large)), 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 2
    assert (await reading).is_signed_with(ada.public_key)
    assert (await received(small)).is_signed_with(ada.public_key)
    with pytest.raises(BadInput):
        await received(b" " * (LARGE + 1))


# Signatures


def test_an_envelope_that_was_tampered_with_does_not_verify(ada: NodeIdentity) -> None:
    raw = events(ada, GOOD)
    before = opened(raw)
    assert before.is_signed_with(ada.public_key)
    unsigned = raw[: raw.rindex(b',"signature"')]
    for tampered in (
        raw.replace(b"ada/1", b"ada/2"),
        raw.replace(b'"NEW"', b'"FORGET"'),
        raw[:-1] + b',"payload":{"type":"poll_events"}}',
        raw[:-1] + b',"payload":{"type":"events_payload","events":[]}}',
        b'{"payload":{"type":"poll_events"},' + raw[1:],
        raw[:-1] + b',"signature":"AAAA"}',
        unsigned + b',"signature":""}',
        unsigned + ',"signature":"é"}'.encode(),
    ):
        found = opened(tampered)
        assert not found.is_signed_with(ada.public_key) or found.envelope.payload == before.envelope.payload


def test_fields_that_are_not_known_are_covered_if_they_were_signed_and_harmless_if_not(ada: NodeIdentity) -> None:
    by_the_signer = as_sent(ada, '{"type":"poll_events","limit":0,"more":[1,2]}')
    by_another = signed(ada, PollEvents(), ada.rid).replace(b'"limit":0', b'"limit":0,"more":1')
    for raw in (by_the_signer, by_another):
        assert opened(raw).is_signed_with(ada.public_key)
        assert opened(raw).envelope.payload == PollEvents()


def test_a_signature_is_for_its_sender_and_its_receiver_alone(ada: NodeIdentity, tmp_path: Path) -> None:
    bob = load_or_create(tmp_path / "bob.pem", "bob")
    raw = signed(ada, FetchBundles(rids=[AgentPersonality("ada", "1")]), ada.rid).decode()
    for end in ("source_node", "target_node"):
        changed = raw.replace(f'"{end}":"{ada.rid}"', f'"{end}":"{bob.rid}"')
        assert changed != raw
        for one in (ada, bob):
            assert not opened(changed.encode()).is_signed_with(one.public_key)
