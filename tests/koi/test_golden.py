"""Envelopes that koi-net 2.1.2 has signed, in `golden.json`: they verify here, where koi-net need not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rid_lib.ext.utils import sha256_hash_json

from workbench.koi.identity import belongs, is_signed
from workbench.koi.incoming import opened
from workbench.koi.payloads import BundlesPayload, EventsPayload

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text())
KEY, OTHER_KEY = GOLDEN["public_key"], GOLDEN["other_public_key"]
ENVELOPES = [pytest.param(text.encode(), id=name) for name, text in GOLDEN["envelopes"].items()]


@pytest.mark.parametrize("raw", ENVELOPES)
def test_an_envelope_of_koi_net_verifies_as_it_was_sent_and_written_again(raw: bytes) -> None:
    incoming = opened(raw)
    envelope = incoming.envelope
    assert incoming.malformed == ()
    assert (str(envelope.source_node), str(envelope.target_node)) == (GOLDEN["source"], GOLDEN["target"])
    assert belongs(KEY, envelope.source_node)
    assert incoming.is_signed_with(KEY)
    assert is_signed(KEY, envelope.signature, envelope.unsigned_text())
    assert not incoming.is_signed_with(OTHER_KEY)
    assert not belongs(OTHER_KEY, envelope.source_node)


@pytest.mark.parametrize("raw", ENVELOPES)
def test_an_envelope_that_was_reformatted_on_its_way_still_verifies(raw: bytes) -> None:
    sent = json.loads(raw)
    reordered = {name: sent[name] for name in ("signature", "target_node", "source_node", "payload")}
    for text in (json.dumps(sent, indent=2), json.dumps(reordered)):
        assert opened(text.encode()).is_signed_with(KEY)


@pytest.mark.parametrize("raw", ENVELOPES)
def test_the_contents_of_koi_net_have_the_hash_that_their_manifest_says(raw: bytes) -> None:
    payload = opened(raw).envelope.payload
    if isinstance(payload, BundlesPayload):
        found = [(bundle.manifest, bundle.contents) for bundle in payload.bundles]
    elif isinstance(payload, EventsPayload):
        found = [(event.manifest, event.contents) for event in payload.events if event.manifest and event.contents]
    else:
        found = []
    for manifest, contents in found:
        assert manifest is not None
        assert manifest.sha256_hash == sha256_hash_json(contents)
