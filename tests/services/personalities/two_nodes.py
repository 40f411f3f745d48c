"""Projects that are nodes of a network, each served on a port of its own, whose traits others call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import given
from workbench.app import Workbench
from workbench.koi.identity import NodeIdentity
from workbench.koi.nodes import NodeProfile, NodeType
from workbench.koi.payloads import Bundle, EventType, KoiEvent
from workbench.model import ServerInfo
from workbench.ops import Ctx
from workbench.rules.personalities.profile import PersonalityProfile, PersonalityTrait
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.pipeline.run import handle
from workbench.services.personalities.publishing import DEFAULT_VERSION
from workbench.shells.serve import Servers
from workbench.state.settings import Settings


@dataclass
class Side:
    """A project, its server and its node."""

    workbench: Workbench
    info: ServerInfo
    servers: Servers
    identity: NodeIdentity

    @property
    def ctx(self) -> Ctx:
        return self.workbench._ctx

    @property
    def rid(self) -> str:
        return str(self.identity.rid)

    async def call(self, op: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.workbench.call(op, **arguments)

    async def question(self, number: int = 1, kind: str = "peer_call") -> list[dict[str, Any]]:
        """The questions about calls, when there are so many."""
        async with self.workbench.feed.subscribe("approval.*") as news:
            while len(approvals := (await self.call("list_approvals", kind=kind))["approvals"]) != number:
                await anext(news)
        return list(approvals)

    async def records(self) -> list[dict[str, Any]]:
        """The calls, the newest first."""
        return list((await self.call("list_tool_calls"))["calls"])

    async def publish(self, agent: str, **traits: Any) -> None:
        """Publish an agent with callable traits."""
        described = {name: {"is_callable": True, **trait} for name, trait in traits.items()}
        await self.workbench.call("publish_personality", name=agent, traits=described)
        await self.knows(agent, *traits)

    async def knows(self, agent: str, *traits: str, **fields: Any) -> None:
        """Wait until it knows an agent with these traits, each with these fields."""

        def known() -> bool:
            found = self.ctx.node.directory.find(agent)
            present = {trait.name: trait for trait in found.profile.traits} if found else {}
            return all(
                name in present and all(getattr(present[name], field) == value for field, value in fields.items())
                for name in traits
            )

        await given.until(known)

    async def believe(self, other: Side, url: str, agent: str, **traits: Any) -> None:
        """Take in what another node, whose key is known, says of itself and of an agent: both are at a URL.

        The version is that which agents get, so that a comparison of both nodes puts nothing in its place.
        """
        node = NodeProfile(
            base_url=f"{url}/koi-net", node_type=NodeType.FULL, public_key=other.identity.public_key
        ).model_dump(mode="json")
        profile = PersonalityProfile(
            rid=AgentPersonality(agent, DEFAULT_VERSION),
            node_rid=other.identity.rid,
            mcp_url=f"{url}/agents/{agent}",
            traits=[PersonalityTrait(name=name, is_callable=True, **trait) for name, trait in traits.items()],
        ).model_dump(mode="json")
        bundles = [
            Bundle.generate(other.identity.rid, node),
            Bundle.generate(AgentPersonality(agent, DEFAULT_VERSION), profile),
        ]
        events = [
            KoiEvent(rid=one.rid, event_type=EventType.NEW, manifest=one.manifest, contents=one.contents)
            for one in bundles
        ]
        assert not (await handle(self.ctx, events, other.identity.rid)).refused


@asynccontextmanager
async def side(directory: Path, name: str, first_contact: Side | None = None, **database: Any) -> AsyncIterator[Side]:
    """A served project whose node takes part in a network; both nodes know each other, if there is a first contact.

    Args:
        database: see `new_database`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        workbench = await stack.enter_async_context(Workbench.open(Settings(project=directory, port=0, **database)))
        servers = await stack.enter_async_context(Servers(workbench))
        info = await servers.start(0)
        contact = {"first_contact": f"{first_contact.info.url}/koi-net"} if first_contact else {}
        await workbench.call("join_network", name=name, **contact)
        presence = workbench._ctx.node.presence
        assert presence is not None
        made = Side(workbench, info, servers, presence.identity)
        if first_contact is not None:
            await _have_met(made, first_contact)
        yield made


async def _have_met(one: Side, other: Side) -> None:
    for here, there in ((one, other), (other, one)):
        async with here.workbench.feed.subscribe("*") as news:
            while there.rid not in [peer["rid"] for peer in (await here.workbench.call("list_peers"))["peers"]]:
                await anext(news)
