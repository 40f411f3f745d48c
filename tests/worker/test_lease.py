"""A lease that could not be renewed in time is lost if a server runs, which may have given the task to another."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests import given
from workbench.errors import Unavailable
from workbench.worker.lease import HeldTask, Lease

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("server", ["here", None])
async def test_a_worker_that_was_asleep_past_its_lease_keeps_it_while_no_server_runs(server: str | None) -> None:
    claimed, expires = "2026-11-27T12:00:00+00:00", "2026-11-27T12:00:00.200000+00:00"
    claim = HeldTask({"claimed_at": claimed, "lease_expires_at": expires}, asyncio.get_running_loop().time())
    asked = 0

    async def renew() -> bool:
        nonlocal asked
        asked += 1
        raise Unavailable("NO_SERVER", "No server runs.")

    keeping = asyncio.create_task(Lease(claim, renew, 0.1, lambda: server).until_lost())
    await asyncio.sleep(0)
    time.sleep(0.3)  # the whole process stands still for longer than the lease
    if server is not None:
        assert await keeping == "it could not be renewed in time"
        return
    await given.until(lambda: asked > 2)
    keeping.cancel()
