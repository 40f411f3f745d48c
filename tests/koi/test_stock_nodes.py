"""Stock nodes of koi-net among themselves: that the oracle works as its tests suppose."""

from __future__ import annotations

import pytest

from tests.oracle import PERSONALITY, Failed, Stock

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
