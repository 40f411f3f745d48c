"""Personalities as they are in the store, without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rid_lib.ext.utils import sha256_hash_json
from rid_lib.types import KoiNetNode

from workbench.app import Workbench
from workbench.koi.identity import load_or_create
from workbench.koi.node import Presence
from workbench.koi.requests import PeerClient
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.rules.personalities.traits import parse
from workbench.services.personalities.self_node import key_file
from workbench.store.base import Tx
from workbench.store.queries import Query

ALICE, COORDINATOR = KoiNetNode("alice", "a" * 64), KoiNetNode("coordinator", "c" * 64)
LATEST = Query("latest", "UPDATE personalities SET is_latest = 0 WHERE name = :name")
BUNDLE = Query(
    "bundle",
    "INSERT INTO koi_bundles (rid, rid_type, manifest, manifest_at, sha256, contents, owner, origin, first_seen, "
    "last_seen, changed_at) VALUES (:rid, 'orn:agent.personality', '{}', :at, :sha256, :contents, :owner, :origin, "
    ":at, :at, :at) ON CONFLICT (rid) DO UPDATE SET manifest_at = :at, sha256 = :sha256, contents = :contents, "
    "last_seen = :at, changed_at = :at",
)
PERSONALITY = Query(
    "personality",
    "INSERT INTO personalities (rid, name, version, owner, tools, is_latest) VALUES (:rid, :name, :version, :owner, "
    ":tools, 1) ON CONFLICT (rid) DO UPDATE SET tools = :tools, is_latest = 1",
)
HISTORY = Query(
    "history",
    "INSERT INTO personality_history (rid, name, event_type, sha256, contents, origin, manifest_at, at) "
    "VALUES (:rid, :name, :event_type, :sha256, :contents, :origin, :at, :at)",
)
FORGET = (
    Query("forget_personality", "DELETE FROM personalities WHERE rid = :rid"),
    Query("forget_bundle", "DELETE FROM koi_bundles WHERE rid = :rid"),
)
NODE = Query(
    "node",
    "INSERT INTO koi_nodes (rid, name, node_type, public_key, first_seen, last_seen, failures) "
    "VALUES (:rid, :name, 'FULL', '', :at, :at, :failures)",
)
OWNER = Query("owner", "INSERT INTO personality_owners (name, owner, since) VALUES (:name, :owner, 1)")
NETWORK = Query(
    "network", "INSERT INTO koi_network (one, joined, name, changed_by, changed_at) VALUES (1, 1, 'me', 'me', 0)"
)


def profile(name: str, version: str = "1.0", node: KoiNetNode = ALICE, **traits: Any) -> PersonalityProfile:
    """A profile of a node that answers nowhere."""
    rid = AgentPersonality(name, version)
    return PersonalityProfile(rid=rid, node_rid=node, mcp_url=f"http://h/agents/{name}", traits=parse(traits))


async def know(
    workbench: Workbench,
    made: PersonalityProfile,
    at: int = 1,
    event_type: str = "NEW",
    origin: KoiNetNode | None = None,
) -> None:
    """Store a profile as the pipeline does."""
    values = _values(made, at, event_type) | {"origin": str(origin or made.node_rid)}

    def change(tx: Tx) -> None:
        for query in (LATEST, BUNDLE, PERSONALITY, HISTORY):
            tx.run(query, values)
        tx.emit("personality.published", f"personality:{made.rid.reference}")

    await workbench.store.write(change)


async def forget(workbench: Workbench, made: PersonalityProfile, at: int = 1) -> None:
    values = _values(made, at, "FORGET") | {"origin": str(made.node_rid), "contents": None, "sha256": None}
    await workbench.store.write(lambda tx: [tx.run(query, values) for query in (*FORGET, HISTORY)])


async def meet(workbench: Workbench, node: KoiNetNode, failures: int = 0) -> None:
    """Store a node that this one has met."""
    await workbench.store.write(lambda tx: tx.run(NODE, rid=str(node), name=node.name, at=1, failures=failures))


async def own(workbench: Workbench, name: str, owner: KoiNetNode) -> None:
    await workbench.store.write(lambda tx: tx.run(OWNER, name=name, owner=str(owner)))


async def join(workbench: Workbench) -> None:
    await workbench.store.write(lambda tx: tx.run(NETWORK))


def _values(made: PersonalityProfile, at: int, event_type: str) -> dict[str, Any]:
    return {
        "rid": str(made.rid),
        "name": made.rid.name,
        "version": made.rid.version,
        "owner": str(made.node_rid),
        "tools": len(made.tools),
        "sha256": sha256_hash_json(made.model_dump(mode="json")),
        "contents": made.model_dump_json(),
        "event_type": event_type,
        "at": at,
    }


@asynccontextmanager
async def online(
    workbench: Workbench, base_url: str = "http://127.0.0.1:2/koi-net", name: str = "lab"
) -> AsyncIterator[KoiNetNode]:
    """Take part in a network that has no other nodes."""
    identity = load_or_create(key_file(workbench.settings), name)
    client = PeerClient(identity, seconds=5, largest=1_000_000)
    workbench._ctx.node.presence = Presence(identity, base_url, client)
    try:
        yield identity.rid
    finally:
        workbench._ctx.node.presence = None
        await client.close()
