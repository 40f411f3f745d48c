"""A node with a key of its own, and others that send it messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.conftest import Clock, NewDatabase, with_store
from tests.services.personalities.known import online
from tests.services.personalities.nodes import Here, Other
from tests.services.personalities.two_nodes import Side, side
from workbench.app import Workbench
from workbench.koi.identity import load_or_create
from workbench.state.settings import Settings


@pytest.fixture
async def here(clock: Clock, tmp_path: Path, new_database: NewDatabase, empty_store: Path) -> AsyncIterator[Here]:
    """A node, with a key of its own."""
    project = tmp_path / "project"
    project.mkdir()
    settings = with_store(Settings(project=project, **new_database()), empty_store)
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


NewSide = Callable[..., AbstractAsyncContextManager[Side]]


@pytest.fixture
def new_side(tmp_path: Path, new_database: NewDatabase, empty_store: Path) -> NewSide:
    """`async with new_side("ada", hub) as ada`: a served project whose node takes part in a network; see `side`."""

    def opened(name: str, first_contact: Side | None = None) -> AbstractAsyncContextManager[Side]:
        (project := tmp_path / name).mkdir()
        database = new_database()
        with_store(Settings(project=project, **database), empty_store)
        return side(project, name, first_contact, **database)

    return opened
