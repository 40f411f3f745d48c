"""An open project with a clock that only the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import Clock
from workbench.app import Workbench
from workbench.state.settings import Settings


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Leases of two minutes, two retries, pauses of 10, 20 and at most 25 seconds."""
    return settings.model_copy(update={"retry_base_seconds": 10.0, "retry_cap_seconds": 25.0})


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened
