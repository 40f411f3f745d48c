"""The cache of callers: it forgets changed agents and keeps no events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.errors import Unauthenticated
from workbench.model import SECOND, Level
from workbench.services.access.authentication import CallerCache
from workbench.state.settings import Settings
from workbench.store.base import Reader

pytestmark = pytest.mark.anyio


async def test_the_caller_cache_keeps_no_reference_to_events(workbench: Workbench) -> None:
    cache = CallerCache(workbench.store)
    event: dict[str, Any] = {"subject": "agent:ada"}
    before = sys.getrefcount(event)
    cache.forget([event])
    cache.forget([event, event])
    assert sys.getrefcount(event) == before


@pytest.mark.parametrize("subject", ["agent", "team"])
async def test_an_agent_is_read_again_after_an_event_about_it_or_what_it_shares(
    workbench: Workbench, admit: Admit, subject: str
) -> None:
    cache, agent = CallerCache(workbench.store), (await admit("ada")).caller.agent
    assert agent is not None
    known = await cache.current(agent)
    assert await cache.current(agent) is known
    cache.forget([{"subject": "agent:another"}, {"subject": "task:1"}])
    assert await cache.current(agent) is known
    cache.forget([{"subject": f"agent:{agent}" if subject == "agent" else "team:1"}])
    assert await cache.current(agent) is not known


async def test_what_was_read_before_a_change_is_not_kept_after_it(
    workbench: Workbench, admit: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, agent = CallerCache(workbench.store), (await admit("ada")).caller.agent
    assert agent is not None
    answered, go_on = asyncio.Event(), asyncio.Event()

    async def over_a_network(question: Callable[[Reader], Any]) -> Any:
        answer = await workbench.store.read(question)
        answered.set()
        await go_on.wait()
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(workbench.store, "read_inline", over_a_network)
        reading = asyncio.create_task(cache.current(agent))
        await answered.wait()
        cache.forget([{"subject": f"agent:{agent}"}])
        patch.undo()
        changed = await cache.current(agent)  # which takes note of the change
        go_on.set()
        old = await reading
    assert old is not changed
    assert await cache.current(agent) is changed


async def test_a_grant_counts_until_its_expiry(settings: Settings, clock: Clock) -> None:
    async with Workbench.open(settings, clock=clock) as workbench:
        token = (await workbench.call("register", name="ada"))["token"]
        await workbench.call("approve", approval_id=1, choices={"agent_id": "ada", "expires_in_seconds": 60})
        clock.now += 60 * SECOND - 1
        assert (await workbench.identify(token)).barred is None
        clock.now += 1
        over = await workbench.identify(token)
        assert (over.level, over.barred) == (Level.ANONYMOUS, "GRANT_EXPIRED")


async def test_only_an_id_only_agent_is_identified_without_a_token(workbench: Workbench, admit: Admit) -> None:
    token = (await admit("ada")).token
    for agent_id, code in (("ada", "TOKEN_REQUIRED"), ("nobody", "INVALID_AGENT")):
        with pytest.raises(Unauthenticated) as refused:
            await CallerCache(workbench.store).identify_by_id(agent_id)
        assert refused.value.code == code
    for wrong in ("", "wba_", f"{token}x", token[:-1]):
        with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
            await workbench.identify(wrong)
    await workbench.call("revoke_agent", agent_id="ada")
    with pytest.raises(Unauthenticated, match="INVALID_TOKEN"):
        await workbench.identify(token)
