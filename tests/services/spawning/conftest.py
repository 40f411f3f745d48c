"""A worktree for agents to work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import given
from tests.conftest import Served


@pytest.fixture
async def lab(served: Served) -> Path:
    """A worktree; its directory."""
    return await given.worktree(served.workbench)
