"""Projects that are nodes of one network, each served on a port of its own."""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import NewDatabase
from tests.oracle import koi_net_environments, stock
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

__all__ = ["koi_net_environments", "stock"]

PORTS, PORTS_PER_WORKER = range(30_000, 32_000), 200
QUICK = {"koi_retry_base_seconds": 0.05, "koi_retry_cap_seconds": 0.2, "koi_reconcile_seconds": 60.0}


@dataclass
class Station:
    """A project that is served, or was."""

    name: str
    project: Path
    more: dict[str, Any]
    workbench: Workbench
    stack: AsyncExitStack
    port: int

    @property
    def url(self) -> str:
        assert self.workbench.server is not None
        return f"{self.workbench.server.url}/koi-net"

    @property
    def rid(self) -> str:
        presence = self.workbench._ctx.node.presence
        assert presence is not None
        return str(presence.identity.rid)

    async def publish(self, name: str, **traits: Any) -> None:
        """Publish a personality in version 1, or change it."""
        await self.call("publish_personality", name=name, version="1", traits=traits)

    async def withdraw(self, name: str) -> None:
        await self.call("withdraw_personality", name=name)

    def registry(self) -> dict[str, dict[str, Any]]:
        """The traits of every personality that it knows."""
        return {
            known.profile.rid.reference: {trait.name: trait.value for trait in known.profile.traits}
            for latest in self.workbench._ctx.node.directory.latest()
            for known in self.workbench._ctx.node.directory.versions(latest.profile.rid.name)
        }

    async def has(self, **expected: dict[str, Any]) -> None:
        """Return once it knows these personalities, by name, in version 1, and no other."""
        await given.until(lambda: self.registry() == {f"{name}/1": traits for name, traits in expected.items()})

    async def call(self, op: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.workbench.call(op, **arguments)

    async def stop(self) -> None:
        await self.stack.aclose()


def free_port() -> int:
    """A port that is free, and that no other program gets while a node is restarted.

    The system hands out higher ones. Those of other workers of pytest are other ones, and so are those at which other
    tests must not hear from anybody: the peers of a node that has ended still send it something.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    start = PORTS.start + worker * PORTS_PER_WORKER % len(PORTS)
    while True:
        port = random.randrange(start, start + PORTS_PER_WORKER)
        with suppress(OSError), socket.socket() as bound:
            bound.bind(("127.0.0.1", port))
            return port


Network = Callable[..., Awaitable[Station]]


async def pair(network: Network, **more: Any) -> tuple[Station, Station]:
    """A hub, and ada who has joined it and whose helper it knows."""
    hub = await network("hub")
    ada = await network("ada", hub, **more)
    await ada.publish("helper")
    await hub.has(helper={})
    return hub, ada


@pytest.fixture
async def network(tmp_path: Path, new_database: NewDatabase) -> AsyncIterator[Network]:
    """`await network("ada", hub)`: a project that is served and has joined. One name means one project.

    Args:
        moves: it gets another port than before.
        port: it gets this one.
        is_new: another project has come in place of it.
    """
    async with AsyncExitStack() as stations:
        ports: dict[str, int] = {}
        databases: dict[str, dict[str, Any]] = defaultdict(new_database)

        async def started(
            name: str,
            first_contact: Station | str | None = None,
            moves: bool = False,
            port: int | None = None,
            is_new: bool = False,
            **more: Any,
        ) -> Station:
            project = tmp_path / name
            if is_new:
                shutil.rmtree(project)
                databases.pop(name)
            project.mkdir(exist_ok=True)
            stack = await stations.enter_async_context(AsyncExitStack())
            contact = first_contact.url if isinstance(first_contact, Station) else first_contact or ""
            koi = {"koi": True, "koi_name": name, "koi_first_contact": contact}
            settings = Settings(project=project, port=0, **{**koi, **databases[name], **QUICK, **more})
            workbench = await stack.enter_async_context(Workbench.open(settings))
            servers = await stack.enter_async_context(Servers(workbench))
            if port or moves or name not in ports:
                ports[name] = port or free_port()
            await servers.start(ports[name])
            return Station(name, project, more, workbench, stack, ports[name])

        yield started
