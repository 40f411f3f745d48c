"""Stock nodes of koi-net: that the oracle works as its tests suppose, and how it refuses requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from tests.oracle import NODE, PERSONALITY, Failed, Stock
from workbench.errors import Refused, Unavailable
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity, load_or_create
from workbench.koi.nodes import NodeProfile, NodeType
from workbench.koi.payloads import Bundle, EventsPayload, EventType, FetchRids, KoiEvent, Payload, RidsPayload
from workbench.koi.requests import BROADCAST, RIDS, KoiPeer, PeerClient
from workbench.koi.rids import parse_node
from workbench.rules.personalities.rid import AgentPersonality

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(180)]


async def test_a_stock_agent_and_a_stock_coordinator_share_a_personality(stock: Stock) -> None:
    coordinator = await stock("coordinator")
    agent = await stock("agent", first_contact={"rid": coordinator.rid, "url": coordinator.url})
    rid, contents = f"{PERSONALITY}:ada/1", {"rid": f"{PERSONALITY}:ada/1", "traits": []}
    await coordinator.knows(agent.rid)

    async def is_subscribed() -> bool:
        edges = [await agent.ask("cached", rid=rid) for rid in await agent.ask("rids", "orn:koi-net.edge")]
        return any(edge and PERSONALITY in edge["contents"]["rid_types"] for edge in edges)

    await agent.until(is_subscribed)
    published = await agent.ask("publish", rid=rid, contents=contents)
    assert await coordinator.knows(rid) == published
    await agent.ask("forget", rid=rid)
    await coordinator.lacks(rid)
    with pytest.raises(Failed, match="Error"):
        await agent.ask("cached", rid="no RID")


async def test_a_stock_node_refuses_malformed_requests_and_keeps_working(stock: Stock, tmp_path: Path) -> None:
    coordinator = await stock("coordinator")
    ada, eve = (load_or_create(tmp_path / f"{name}.pem", name) for name in ("ada", "eve"))
    peer = KoiPeer(parse_node(coordinator.rid), coordinator.url, coordinator.info["profile"]["public_key"])
    async with asking(ada) as client:
        assert await refusal_of(client, peer, FetchRids()) == "unknown_node"
        assert await refusal_of(client, peer, introduction(ada, eve.public_key), BROADCAST) == "invalid_key"
        await client.ask(peer, BROADCAST, introduction(ada, ada.public_key))
        await coordinator.knows(str(ada.rid))
        assert isinstance(await client.ask(peer, RIDS, FetchRids()), RidsPayload)

        tampered = signed(ada, FetchRids(rid_types=[NODE]), peer.rid).replace(NODE.encode(), b"orn:koi-net.edge", 1)
        assert await post(peer, RIDS, tampered) == (400, "invalid_signature")
        assert await post(peer, RIDS, b'{"payload": 1}') == (422, None)
        other = KoiPeer(eve.rid, peer.base_url, peer.public_key)
        assert await refusal_of(client, other, FetchRids()) == "invalid_target"
        with pytest.raises(Unavailable) as error:
            await client.ask(peer, BROADCAST, events(f"{PERSONALITY}:no-version", ada))
        assert (error.value.code, error.value.details) == ("KOI_BAD_ANSWER", {"status": 422})
        async with asking(replace(eve, rid=ada.rid)) as foreign:
            assert (
                await refusal_of(foreign, peer, events(f"{PERSONALITY}:eve/1", ada), BROADCAST) == "invalid_signature"
            )

        await client.ask(peer, BROADCAST, events(f"{PERSONALITY}:ada/1", ada))
        await coordinator.knows(f"{PERSONALITY}:ada/1")
    assert await coordinator.ask("rids", PERSONALITY) == [f"{PERSONALITY}:ada/1"]


@asynccontextmanager
async def asking(identity: NodeIdentity) -> AsyncIterator[PeerClient]:
    client = PeerClient(identity, seconds=10, largest=1_000_000)
    yield client
    await client.close()


def introduction(node: NodeIdentity, key: str) -> EventsPayload:
    """The event with which a node introduces itself."""
    profile = NodeProfile(node_type=NodeType.PARTIAL, public_key=key).model_dump(mode="json")
    made = Bundle.generate(node.rid, profile)
    return EventsPayload(
        events=[KoiEvent(rid=made.rid, event_type=EventType.NEW, manifest=made.manifest, contents=made.contents)]
    )


def events(rid: str, node: NodeIdentity) -> EventsPayload:
    """Events about a personality, whose RID koi-net may be unable to read."""
    made = Bundle.generate(AgentPersonality("ada", "1"), {"rid": rid, "node_rid": str(node.rid)})
    event = KoiEvent(rid=made.rid, event_type=EventType.NEW, manifest=made.manifest, contents=made.contents)
    return EventsPayload(events=[event.model_copy(update={"rid": rid})])


async def refusal_of(client: PeerClient, peer: KoiPeer, payload: Payload, path: str = RIDS) -> str:
    """The error of the protocol by which a peer refuses a request."""
    with pytest.raises(Refused) as error:
        await client.ask(peer, path, payload)
    assert error.value.code == "KOI_REFUSED"
    return str(error.value.details["error"])


async def post(peer: KoiPeer, path: str, body: bytes) -> tuple[int, str | None]:
    """The status of the answer to a body, and the error in it."""
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as http:
        response = await http.post(peer.base_url + path, content=body, headers={"Content-Type": "application/json"})
    return response.status_code, response.json().get("error")
