"""The personalities in memory are those in the store, in every process that has the project open."""

from __future__ import annotations

import asyncio

import pytest

from tests.services.personalities.nodes import Here, Other, forget
from workbench.app import Workbench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


def moods(workbench: Workbench) -> dict[str, object]:
    """What is known in memory: the moods by name."""
    latest = workbench._ctx.node.directory.latest()
    return {known.profile.rid.name: known.profile.traits[0].value for known in latest}


async def test_a_process_that_does_not_serve_knows_the_personalities_and_follows_them(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", mood="calm"), ada.personality("guide", mood=""))
    async with Workbench.open(here.ctx.settings, clock=here.clock) as beside:
        assert moods(beside) == {"helper": "calm", "guide": ""}
        here.clock.forward(1)
        await here.receive(ada, ada.personality("helper", mood="keen"), forget("guide"))
        while moods(beside) != {"helper": "keen"}:
            await asyncio.sleep(0.01)
