"""Personalities of the KOI network, as SQL sees them."""

from __future__ import annotations

import pytest

from tests.conftest import Served
from tests.services.personalities.known import online
from workbench.analytics.live import Live, refresh

pytestmark = pytest.mark.anyio


async def test_the_view_follows_what_is_published_and_forgotten(served: Served) -> None:
    live, workbench = Live(), served.workbench

    async def known() -> list[tuple[object, ...]]:
        query = "SELECT name, version, is_latest, tools, contents->>'$.rid' FROM personalities ORDER BY name"
        return live.answer(await refresh(live, workbench.store), query).fetchall()

    async with online(workbench):
        assert await known() == []
        await workbench.call("publish_personality", name="ada", traits={"add": {"is_callable": True}})
        await workbench.call("publish_personality", name="bob")
        ada, bob = await known()
        assert ada == ("ada", "1.0", True, 1, "orn:agent.personality:ada/1.0")
        await workbench.call("publish_personality", name="ada", version="2.0", traits={})
        assert await known() == [("ada", "2.0", True, 0, "orn:agent.personality:ada/2.0"), bob]
        await workbench.call("withdraw_personality", name="ada")
        assert await known() == [bob]
