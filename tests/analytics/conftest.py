"""A project to ask about."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import Clock
from workbench.app import Workbench
from workbench.settings import Settings


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened
