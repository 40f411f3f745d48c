"""Signs envelopes with koi-net, for tests where koi-net cannot run. Run by koi-net's Python, which has no Workbench:

    $(.venv/bin/python -c "from tests.oracle import koi_net_python; print(koi_net_python())") tests/koi/golden.py

It writes `golden.json`. The keys are made for the occasion and thrown away.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from koi_net.protocol import Event, EventType, PrivateKey, SignedEnvelope, UnsignedEnvelope
from koi_net.protocol.api.models import (
    BundlesPayload,
    EventsPayload,
    FetchBundles,
    FetchManifests,
    FetchRids,
    ManifestsPayload,
    PollEvents,
    RidsPayload,
)
from rid_lib import RID
from rid_lib.ext import Bundle
from rid_lib.types import KoiNetEdge, KoiNetNode

CONTENTS: dict[str, dict[str, Any]] = {
    "none": {"value": None, "list": [None, {"deep": None}]},
    "floats": {"f": [0.1, 1.0, -0.0, 1e-7, 1e20, 1.5e300, 5e-324, 123456789.12345679], "i": [0, -1, 2**53, 10**20]},
    "unicode": {"é": 'naïve ☃ 𝔘𝔫𝔦 \u2028 \x00 " \\ / \t', "": "empty key", "𐐀": 1, "\ufffd": 2},
    "empty": {"list": [], "object": {}, "text": "", "false": False, "nested": [[], [[]], {"a": {}}]},
    "order": {"b": 1, "a": {"z": 1, "y": 2}, "10": 1, "9": 2},
    "profile": {
        "rid": "orn:agent.personality:profile/1",
        "node_rid": "orn:koi-net.node:golden+0",
        "base_url": None,
        "mcp_url": None,
        "traits": [
            {"name": "mood", "description": "how it feels", "type": "float", "value": 0.5, "is_callable": False}
        ],
    },
}
BUNDLES = {
    name: Bundle.generate(RID.from_string(f"orn:agent.personality:{name}/1"), value) for name, value in CONTENTS.items()
}
EDGE = KoiNetEdge("0" * 64)
FOREIGN = Bundle.generate(RID.from_string("orn:slack.message:T/C/1.5"), {"text": "hello"})
LINK = RID.from_string("https://example.org/a?b=c#d")
REQUESTS = {
    **{
        f"event with {name}": EventsPayload(events=[Event.from_bundle(EventType.NEW, bundle)])
        for name, bundle in BUNDLES.items()
    },
    "poll": PollEvents(),
    "poll some": PollEvents(limit=7),
    "fetch all rids": FetchRids(),
    "fetch rids": FetchRids(rid_types=[KoiNetNode, KoiNetEdge, type(FOREIGN.rid)]),
    "fetch manifests": FetchManifests(rid_types=[KoiNetNode], rids=[EDGE]),
    "fetch bundles": FetchBundles(rids=[EDGE, FOREIGN.rid]),
}
ANSWERS = {
    "no events": EventsPayload(events=[]),
    "many events": EventsPayload(
        events=[
            *(Event.from_bundle(EventType.UPDATE, bundle) for bundle in BUNDLES.values()),
            Event.from_rid(EventType.FORGET, EDGE),
            Event.from_manifest(EventType.NEW, BUNDLES["none"].manifest),
            Event.from_bundle(EventType.NEW, FOREIGN),
            Event.from_rid(EventType.FORGET, LINK),
        ]
    ),
    "rids": RidsPayload(rids=[EDGE, FOREIGN.rid]),
    "no rids": RidsPayload(rids=[]),
    "manifests": ManifestsPayload(manifests=[bundle.manifest for bundle in BUNDLES.values()], not_found=[EDGE]),
    "bundles": BundlesPayload(bundles=[*BUNDLES.values(), FOREIGN], not_found=[EDGE], deferred=[EDGE]),
}


def main() -> None:
    signer, other = PrivateKey.generate(), PrivateKey.generate()
    source, target = (key.public_key().to_node_rid(name) for key, name in ((signer, "golden"), (other, "here")))

    def signed(payload: Any) -> SignedEnvelope[Any]:
        return UnsignedEnvelope(payload=payload, source_node=source, target_node=target).sign_with(signer)

    sent = {name: signed(payload).model_dump_json(exclude_none=True) for name, payload in (REQUESTS | ANSWERS).items()}
    answered = {f"answer: {name}": served(signed(payload), type(payload)) for name, payload in ANSWERS.items()}
    packages = {name: version(name) for name in ("koi-net", "rid-lib", "pydantic", "fastapi")}
    made = {
        "made_with": packages | {"python": platform.python_version()},
        "source": str(source),
        "target": str(target),
        "public_key": signer.public_key().to_der(),
        "other_public_key": other.public_key().to_der(),
        "envelopes": sent | answered,
    }
    Path(__file__).with_name("golden.json").write_text(json.dumps(made, indent=1) + "\n")


def served(envelope: SignedEnvelope[Any], payload: type) -> str:
    """An envelope as koi-net's server answers with it."""
    app = FastAPI()
    model = SignedEnvelope[payload]  # type: ignore[valid-type]
    app.add_api_route("/", lambda: envelope, response_model=model, response_model_exclude_none=True)
    text: str = TestClient(app).get("/").text
    return text


if __name__ == "__main__":
    main()
