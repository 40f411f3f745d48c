"""A node with a key of its own, and others that send it messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.conftest import Clock, NewDatabase
from tests.services.personalities.known import online
from tests.services.personalities.nodes import Here, Other
from workbench.app import Workbench
from workbench.koi.identity import load_or_create
from workbench.state.settings import Settings


@pytest.fixture
async def here(clock: Clock, tmp_path: Path, new_database: NewDatabase) -> AsyncIterator[Here]:
    """A node, with a key of its own."""
    project = tmp_path / "project"
    project.mkdir()
    settings = Settings(project=project, **new_database())
    async with Workbench.open(settings, clock=clock) as workbench, online(workbench, name="here"):
        yield Here(workbench, workbench._ctx, clock)


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Callable[[str], Other]:
    """Other nodes, by name."""
    return lambda name: Other(load_or_create(tmp_path / f"{name}.pem", name), clock)


@pytest.fixture
def ada(other: Callable[[str], Other]) -> Other:
    return other("ada")


@pytest.fixture
def bob(other: Callable[[str], Other]) -> Other:
    return other("bob")
