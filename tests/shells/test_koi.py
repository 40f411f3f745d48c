"""The endpoints of a KOI node: access to them, and refusals before any signature is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Served
from tests.shells.conftest import Visit, error_of
from workbench.app import Workbench
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity, load_or_create
from workbench.koi.node import Presence
from workbench.koi.payloads import (
    ErrorResponse,
    ErrorType,
    EventsPayload,
    FetchBundles,
    FetchManifests,
    FetchRids,
    Payload,
    PollEvents,
)
from workbench.koi.requests import BROADCAST, BUNDLES, MANIFESTS, POLL, RIDS, PeerClient
from workbench.rules.personalities.role_config import AgentConfig
from workbench.shells import koi_roles
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

REQUESTS: dict[str, Payload] = {
    BROADCAST: EventsPayload(events=[]),
    POLL: PollEvents(),
    RIDS: FetchRids(),
    MANIFESTS: FetchManifests(),
    BUNDLES: FetchBundles(rids=[]),
}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a fresh project, where strangers may ask twice a minute, and nodes 20 times."""
    limits = {"max_anonymous_requests_per_minute": 2, "max_koi_requests_per_minute": 20}
    return settings.model_copy(update={**limits, "max_koi_request_bytes": 65_536})


@pytest.fixture
def stranger(tmp_path: Path) -> NodeIdentity:
    """A node that the project has never met."""
    return load_or_create(tmp_path / "stranger.pem", "stranger")


def take_part(workbench: Workbench) -> NodeIdentity:
    """Let the project's node take part in a network."""
    identity = load_or_create(workbench.settings.home / "koi" / "key.pem", "here")
    client = PeerClient(identity, seconds=1, largest=1_000)
    workbench._ctx.node.presence = Presence(identity, "http://127.0.0.1:1/koi-net", client)
    return identity


async def test_an_unknown_node_gets_the_error_of_the_protocol(
    served: Served, visit: Visit, stranger: NodeIdentity
) -> None:
    for path in REQUESTS:
        answer = await visit().post(f"/koi-net{path}", content=b"{}")
        assert error_of(answer) == (503, "KOI_NOT_JOINED"), path
    here = take_part(served.workbench)
    for path, payload in REQUESTS.items():
        answer = await visit().post(f"/koi-net{path}", content=signed(stranger, payload, here.rid))
        assert answer.status_code == 400, path
        assert ErrorResponse.model_validate(answer.json()).error == ErrorType.UNKNOWN_NODE


async def test_a_malformed_or_too_large_envelope_gets_a_coded_refusal(served: Served, visit: Visit) -> None:
    take_part(served.workbench)
    for body in (b"", b"null", b"{}", b"[]", b"not JSON", b"\xff", b'{"payload": []}'):
        answer = await visit().post("/koi-net/events/broadcast", content=body)
        assert error_of(answer) == (400, "KOI_MALFORMED"), body
    answer = await visit().post("/koi-net/events/broadcast", content=b" " * 65_537)
    assert error_of(answer) == (400, "TOO_LARGE")
    assert error_of(await visit().get("/koi-net/events/broadcast")) == (405, "METHOD_NOT_ALLOWED")
    assert error_of(await visit().post("/koi-net/nothing")) == (404, "NO_SUCH_ENDPOINT")


async def test_nodes_have_a_limit_of_their_own_and_web_pages_do_not_get_through(served: Served, visit: Visit) -> None:
    for headers in ({"Origin": "https://example.org"}, {"Host": "example.org"}):
        answer = await visit().post("/koi-net/events/poll", content=b"{}", headers=headers)
        assert error_of(answer)[1] in ("BAD_ORIGIN", "BAD_HOST")
    asked = [await visit().post("/koi-net/events/poll", content=b"{}") for _ in range(21)]
    assert [error_of(answer)[1] for answer in asked] == ["KOI_NOT_JOINED"] * 20 + ["RATE_LIMITED"]
    assert (await visit().get("/api/ops")).status_code == 200  # strangers are not limited by nodes


async def test_a_stand_alone_agent_keeps_what_was_set_by_hand_until_its_file_changes(workbench: Workbench) -> None:
    config = AgentConfig(name="ada", base_url="http://127.0.0.1:8101/koi-net")

    async def mood() -> Any:
        own = await workbench.call("get_own_personality", name="ada")
        return next(trait["value"] for trait in own["traits"] if trait["name"] == "mood")

    await koi_roles._publish(workbench, config, {"mood": "calm"})
    await workbench.call("update_traits", name="ada", traits={"mood": "tired"})
    await koi_roles._publish(workbench, config, {"mood": "calm"})  # it is started again
    assert await mood() == "tired"
    await koi_roles._publish(workbench, config, {"mood": "keen"})
    assert await mood() == "keen"
