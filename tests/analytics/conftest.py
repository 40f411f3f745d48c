"""A project to ask about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import Clock
from workbench.analytics.changes import Update
from workbench.analytics.live import Live, refresh
from workbench.analytics.mirrors import TABLES
from workbench.analytics.questions import SqlQuestion
from workbench.app import Workbench
from workbench.state.settings import Settings


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened


async def rows(live: Live, workbench: Workbench, query: str, **options: Any) -> Any:
    """The rows of the answer to a question that is asked now; None without any."""
    found = live.run(await refresh(live, workbench.store), SqlQuestion(query, **options))
    return None if found is None else found.fetchall()


def content(live: Live, news: Update) -> dict[str, list[Any]]:
    """All rows of all tables."""
    return {table: live.answer(news, f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in TABLES}
