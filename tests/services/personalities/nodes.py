"""A node without a network: it is handed messages signed with the keys of others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rid_lib import RID
from rid_lib.types import KoiNetNode

from tests.conftest import Clock
from workbench.app import Workbench
from workbench.errors import Refused, Unavailable
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity, load_or_create
from workbench.koi.nodes import EdgeProfile, EdgeStatus, EdgeType, NodeProfile, NodeType, edge_rid
from workbench.koi.payloads import Bundle, ErrorResponse, EventsPayload, EventType, KoiEvent, Payload
from workbench.koi.requests import BROADCAST
from workbench.koi.rids import PERSONALITY
from workbench.ops import Ctx
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.exchange import receiving
from workbench.services.personalities.peers import rejections
from workbench.services.personalities.peers import rows as peers
from workbench.services.personalities.pipeline.run import Handled, handle
from workbench.store.base import Row, Tx
from workbench.store.queries import Query

NEW, UPDATE, FORGET = EventType.NEW, EventType.UPDATE, EventType.FORGET


@dataclass(frozen=True)
class Other:
    """Another node: its key, and what it would send."""

    identity: NodeIdentity
    clock: Clock

    @property
    def rid(self) -> KoiNetNode:
        return self.identity.rid

    def bundle(self, rid: RID, contents: dict[str, Any], at: int | None = None) -> Bundle:
        return Bundle.generate(rid, contents, at or self.clock.now)

    def profile(self, name: str, version: str = "1", **traits: Any) -> dict[str, Any]:
        return contents_of(self.rid, name, version, **traits)

    def personality(self, name: str, version: str = "1", at: int | None = None, **traits: Any) -> KoiEvent:
        """A NEW personality of its own."""
        return event(NEW, self.bundle(AgentPersonality(name, version), self.profile(name, version, **traits), at))

    def node(self, **changed: Any) -> Bundle:
        made = NodeProfile(
            base_url="http://127.0.0.1:1/koi-net", node_type=NodeType.FULL, public_key=self.identity.public_key
        )
        return self.bundle(self.rid, made.model_dump(mode="json") | changed)

    def handshake(self) -> list[KoiEvent]:
        return [KoiEvent(rid=self.rid, event_type=FORGET), event(NEW, self.node())]

    def edge(
        self,
        source: KoiNetNode,
        target: KoiNetNode,
        status: EdgeStatus = EdgeStatus.PROPOSED,
        *types: str,
        edge_type: EdgeType = EdgeType.WEBHOOK,
    ) -> KoiEvent:
        wanted = list(types) or [PERSONALITY]
        made = EdgeProfile(source=source, target=target, edge_type=edge_type, status=status, rid_types=wanted)
        return event(NEW, self.bundle(edge_rid(source, target), made.model_dump(mode="json")))


def contents_of(node: KoiNetNode, name: str, version: str, **traits: Any) -> dict[str, Any]:
    """A personality of a node, as it is sent."""
    listed = [{"name": key, "value": value, "type": type(value).__name__} for key, value in traits.items()]
    return {"rid": f"{PERSONALITY}:{name}/{version}", "node_rid": str(node), "traits": listed}


def event(event_type: EventType, bundle: Bundle) -> KoiEvent:
    return KoiEvent(rid=bundle.rid, event_type=event_type, manifest=bundle.manifest, contents=bundle.contents)


def forget(name: str, version: str = "1") -> KoiEvent:
    """A personality is forgotten, as koi-net says it."""
    return KoiEvent(rid=AgentPersonality(name, version), event_type=FORGET)


@dataclass
class Here:
    workbench: Workbench
    ctx: Ctx
    clock: Clock

    @property
    def identity(self) -> NodeIdentity:
        assert self.ctx.node.presence is not None
        return self.ctx.node.presence.identity

    @property
    def rid(self) -> KoiNetNode:
        return self.identity.rid

    async def publish(self, name: str, version: str = "1", **traits: Any) -> Handled:
        rid, contents = AgentPersonality(name, version), contents_of(self.rid, name, version, **traits)
        return await handle(self.ctx, [KoiEvent(rid=rid, event_type=NEW, contents=contents)], None)

    async def forget(self, *rids: RID) -> None:
        """Forget something of its own, and tell others."""
        await handle(self.ctx, [KoiEvent(rid=rid, event_type=FORGET) for rid in rids], None)

    async def meet(self, *others: Other) -> None:
        """Have other nodes introduce themselves."""
        for one in others:
            await self.receive(one, *one.handshake())

    def limit(self, **settings: int) -> None:
        self.ctx = self.ctx._replace(settings=self.ctx.settings.model_copy(update=settings))

    def trait(self, name: str, trait: str) -> Any:
        """The value of a trait of a personality that it knows in memory."""
        known = self.ctx.node.directory.find(name)
        found = known and known.profile.get_trait(trait)
        return found and found.value

    async def receive(self, sender: Other, *events: KoiEvent) -> tuple[int, bytes]:
        return await self.ask(sender, BROADCAST, EventsPayload(events=list(events)))

    async def ask(self, sender: Other, path: str, payload: Payload) -> tuple[int, bytes]:
        return await receiving.answer(self.ctx, path, signed(sender.identity, payload, self.rid))

    async def make_relay(self, node: Other) -> None:
        """Trust a node to pass on what others own."""
        await self.ctx.write(lambda tx: tx.run(peers.SQL.set_relay, rid=str(node.rid)))

    async def rows(self, text: str, **values: Any) -> list[Row]:
        return await self.ctx.read(lambda tx: tx.all(Query("test", text), values))

    async def refusals(self) -> dict[str, int]:
        found = await self.rows("SELECT code, SUM(count) AS count FROM koi_refusals GROUP BY code")
        return {row["code"]: row["count"] for row in found}

    async def run(self, text: str) -> None:
        await self.ctx.write(lambda tx: tx.run(Query("test", text)))

    async def outbox(self) -> set[tuple[str, str, str]]:
        found = await self.rows("SELECT node, rid, event_type FROM koi_outbox")
        return {
            (KoiNetNode.from_reference(row["node"].split(":", 2)[2]).name, row["rid"], row["event_type"])
            for row in found
        }

    async def events(self) -> list[tuple[str, str]]:
        found = await self.rows("SELECT kind, subject FROM events ORDER BY id")
        kinds = ("personality.", "peer.", "edge.")
        return [(row["kind"], row["subject"]) for row in found if row["kind"].startswith(kinds)]

    async def registry(self) -> set[str]:
        """The personalities that it knows; the same in the store, in memory and as they are derived."""
        rows = await self.rows("SELECT rid FROM koi_bundles WHERE rid_type = 'orn:agent.personality'")
        derived = await self.rows("SELECT rid, name, is_latest FROM personalities")
        found = {row["rid"].removeprefix(f"{PERSONALITY}:") for row in rows}
        assert {row["rid"].removeprefix(f"{PERSONALITY}:") for row in derived} == found
        directory = self.ctx.node.directory
        names = {row["name"] for row in derived}
        held = {known.profile.rid.reference for name in names for known in directory.versions(name)}
        assert held == found
        latest = {row["rid"] for row in derived if row["is_latest"]}
        assert latest == {str(known.profile.rid) for known in directory.latest()}
        return found


async def reject(workbench: Workbench, key: Path) -> None:
    """Have a node be known, `picky`, that rejects the personality `odd` of this node for good, and has failed with
    `large`. It is blocked, so that nothing is sent to it."""
    ctx = workbench._ctx
    assert ctx.node.presence is not None
    picky = Other(load_or_create(key, "picky"), Clock())
    introduction = event(NEW, picky.bundle(picky.rid, picky.node().contents, ctx.store.now()))
    async with ctx.node.presence.turn:  # its introduction is not answered, which would begin anew with it
        await handle(ctx, [introduction], picky.rid)
        ctx.node.presence.greeted.pop(str(picky.rid), None)
        await workbench.call("block_peer", peer="picky")
    errors = {
        "odd": (Refused("KOI_REFUSED", "It refused the request: invalid_signature."), True),
        "large": (Unavailable("KOI_BAD_ANSWER", "The answer is wrong: its status is 500."), False),
    }

    def note(tx: Tx) -> None:
        for name, (error, is_final) in errors.items():
            found = bundles.find(tx, AgentPersonality(name, "1.0"))
            assert found is not None
            rejections.note(tx, str(picky.rid), event(NEW, found.bundle), error, is_final=is_final)

    for name in errors:
        await workbench.call("publish_personality", name=name, traits={"mood": "calm"})
        while ctx.node.directory.find(name) is None:
            await asyncio.sleep(0.005)
    await ctx.write(note)


def protocol_error(body: bytes) -> str:
    return str(ErrorResponse.model_validate_json(body).error)
