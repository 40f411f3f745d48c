"""Envelopes that koi-net 2.1.2 has signed, in `golden.json`: they verify here, where koi-net need not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rid_lib.ext.utils import sha256_hash_json

from workbench.koi.identity import belongs, is_signed
from workbench.koi.incoming import opened

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text())
KEY, OTHER_KEY = GOLDEN["public_key"], GOLDEN["other_public_key"]


@pytest.mark.parametrize("name", GOLDEN["envelopes"])
def test_an_envelope_of_koi_net_verifies_as_it_was_sent_written_again_and_reformatted(name: str) -> None:
    text = GOLDEN["envelopes"][name]
    incoming = opened(text.encode())
    envelope = incoming.envelope
    assert incoming.malformed == ()
    assert (str(envelope.source_node), str(envelope.target_node)) == (GOLDEN["source"], GOLDEN["target"])
    assert belongs(KEY, envelope.source_node)
    assert incoming.is_signed_with(KEY)
    assert is_signed(KEY, envelope.signature, envelope.unsigned_text())
    assert not incoming.is_signed_with(OTHER_KEY)
    assert not belongs(OTHER_KEY, envelope.source_node)
    sent = json.loads(text)
    reordered = {part: sent[part] for part in ("signature", "target_node", "source_node", "payload")}
    for changed in (json.dumps(sent, indent=2), json.dumps(reordered)):
        assert opened(changed.encode()).is_signed_with(KEY)


def test_the_contents_of_koi_net_have_the_hash_that_their_manifest_says() -> None:
    number = 0
    for text in GOLDEN["envelopes"].values():
        payload = opened(text.encode()).envelope.payload
        items = getattr(payload, "bundles", []) + getattr(payload, "events", [])
        for item in (item for item in items if item.manifest and item.contents):
            assert item.manifest.sha256_hash == sha256_hash_json(item.contents)
            number += 1
    assert number > 20
