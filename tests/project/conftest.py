"""A project that is copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import given
from tests.services.worktrees.lab import commit
from workbench.app import Workbench
from workbench.state.settings import Settings


@pytest.fixture
async def original(migrated: Settings) -> Path:
    """A project with two open worktrees, of which one is to be merged and the other holds what is nowhere else."""
    async with Workbench.open(migrated) as workbench:
        lab, spare = await given.worktree(workbench), await given.worktree(workbench, "spare")
        commit(lab)
        (spare / "precious.txt").write_text("precious\n")
        await workbench.call("integrate_worktree", worktree_name="lab")
    return migrated.project
